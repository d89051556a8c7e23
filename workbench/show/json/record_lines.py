"""JSON lines: the records of the JSON reports, each on a line of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from workbench.dataclasses import json_text, parsed_json
from workbench.show.json.base import ReportModel
from workbench.show.json.comparison import ComparisonReport
from workbench.show.json.history import DiffReport
from workbench.show.runs_report import RunsReport


def lines_of_runs(report: RunsReport) -> Iterator[str]:
    """Yields each of the `runs` of the JSON report."""
    return _lines(map(parsed_json, report.json_records()["runs"].texts("", report.secrets)))


def lines_of_comparison(report: ComparisonReport) -> Iterator[str]:
    """Yields each case with each model."""
    return _lines(cells_of(report))


def lines_of_diff(report: DiffReport) -> Iterator[str]:
    """Yields each change."""
    return _lines(_dumped(report.changes))


def cells_of(report: ComparisonReport) -> Iterator[dict[str, Any]]:
    """Yields each case with each model of a comparison, as one object."""
    for case in _dumped(report.cases):
        cells = case.pop("cells")
        yield from ({**case, **cell} for cell in cells)


def _dumped(records: Iterable[ReportModel]) -> Iterator[dict[str, Any]]:
    return (record.model_dump(mode="json") for record in records)


def _lines(records: Iterable[dict[str, Any]]) -> Iterator[str]:
    return (f"{json_text(record)}\n" for record in records)
