"""The command line, the app and Python callers get the same report for the same suites."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import workbench
from tests.cli.program import Program
from tests.samples import SAMPLES
from tests.tui.apps import opened
from workbench.evaluation.plan import FinishedRun
from workbench.evaluation.report import Report
from workbench.suite.suite_file import lines_of

MEASURED = ("started_at", "batch", "timing", "latency")
"""What no two batches have in common, besides everything that ends in `_ms`."""


def apart_from_times(value: Any, key: str = "") -> Any:
    """A part of a report without times and ids; suites by the names of their files."""
    if key in MEASURED or key.endswith("_ms"):
        return None
    if isinstance(value, dict):
        return {name: apart_from_times(part, name) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [apart_from_times(part) for part in value]
    return Path(value).name if key == "suite" and isinstance(value, str) else value


def shown(report: Report) -> Any:
    return apart_from_times(json.loads(report.json()))


async def by_app(home: Path, repeats: int) -> Report:
    async with opened(home / "app", paths=[SAMPLES], models=["offline"], live=True) as app:
        suites = [(suite, suite.file.suite) for suite in app.app.open_suites.suites]
        cases = [(suite, tuple(case.id for case in valid.cases)) for suite, valid in suites if valid is not None]
        await app.app.services.starter.run(cases, repeats)
        book = app.app.selection.book
        await app.until(lambda: not book.active_runs())
        records = [run for suite, ids in cases for case_id in ids for run in book.runs_of((suite.path, case_id))]
        runs = [
            FinishedRun(place, run.planned.case, run.result)
            for place, run in enumerate(records)
            if run.result is not None
        ]
        valid_suites = {str(suite.path): valid for suite, valid in suites if valid is not None}
        lines = lines_of(suite.file for suite, _ in suites)
        return Report(runs=tuple(runs), suites=valid_suites, started_at="", line_of=lines)


@pytest.mark.slow
async def test_command_line_app_and_python_come_to_the_same_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeats = 1
    words = ("run", str(SAMPLES), "--model", "offline", "--repeats", str(repeats), "--no-history", "--format", "json")
    done = Program(tmp_path).run(*words)
    for folder in ("STATE", "CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{folder}_HOME", str(tmp_path / "home" / folder))
    report = await workbench.evaluate_async(SAMPLES, model="offline", repeats=repeats, approve=workbench.ALL)
    assert len(report.results) > 50
    assert shown(report) == apart_from_times(json.loads(done.stdout))
    assert shown(report) == shown(await by_app(tmp_path, repeats))
    assert (done.returncode, report.passed) == (report.exit_code, False)
