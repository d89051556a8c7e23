"""Runs, compared cases and changes as rows of CSV. Columns have the names of the keys in the JSON reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from workbench.dataclasses import compact_json
from workbench.grading.argument_counts import valid_arguments_of
from workbench.grading.grade import RunResult
from workbench.grading.run_facts import NO_USER, RunFacts
from workbench.history.records import RunRow
from workbench.numerals import setting_text
from workbench.show.csv import csv_rows
from workbench.show.json.base import bounded
from workbench.show.json.comparison import ComparisonReport, cells_of
from workbench.show.json.history import DiffReport
from workbench.show.json.records import dumped
from workbench.show.views.grades import issue_text
from workbench.show.views.runs_report import ShownRun
from workbench.suite.files import relative_to_cwd


class ShownRuns(Protocol):
    """A report that yields its runs one at a time, with secrets removed."""

    def shown_runs(self) -> Iterator[ShownRun]: ...


def rows_of_runs(report: ShownRuns) -> Iterator[str]:
    return csv_rows(records_of_runs(report))


def records_of_runs(report: ShownRuns) -> Iterator[dict[str, Any]]:
    """Yield a CSV record for each run, without secrets. Calls and issues are lists of texts."""
    return (record_of_run(run.result, run.line) for run in report.shown_runs())


def rows_of_comparison(report: ComparisonReport) -> Iterator[str]:
    """Yield a CSV row for each pair of a case and a model."""
    return csv_rows(cells_of(report))


def rows_of_diff(report: DiffReport) -> Iterator[str]:
    return csv_rows(map(_change, dumped(report.changes)))


def record_of_run(run: RunResult, line: int | None) -> dict[str, Any]:
    """Return the CSV record of a run. The caller must have removed secrets from the run."""
    trajectory, usage, arguments = run.trajectory, run.trajectory.usage, valid_arguments_of(run)
    user = trajectory.user_usage
    calls = []
    for call in trajectory.calls:
        calls.append(f"{call.tool}({compact_json(dict(call.arguments))})")
    return {
        "suite": relative_to_cwd(run.suite),
        "line": line,
        "case_id": run.case_id,
        "case_name": run.case_name,
        "model": run.model,
        "repeat": run.repeat,
        "status": run.status.value,
        "score": bounded(run.score),
        "grader": run.grader,
        "reason": run.reason,
        "issues": list(map(issue_text, run.issues)),
        "finish": trajectory.finish_reason,
        "calls": calls,
        "answer": trajectory.final_answer,
        "latency_ms": trajectory.model_latency_ms,
        "loop_ms": trajectory.loop_ms,
        "duration_ms": trajectory.duration_ms,
        # If the usage is unknown, the cells are empty and not 0.
        "input_tokens": usage and usage.input_tokens,
        "output_tokens": usage and usage.output_tokens,
        "cost_usd": run.cost_usd,
        "user_requests": trajectory.user_requests,
        "user_ms": trajectory.user_latency_ms,
        "user_input_tokens": user and user.input_tokens,
        "user_output_tokens": user and user.output_tokens,
        "user_cost_usd": run.user_cost_usd,
        "touched": trajectory.touched,
        "fork": run.is_fork,
        "metrics": [f"{metric.name}: {setting_text(metric.value)}" for metric in run.metrics],
        "checked_calls": arguments.checked,
        "valid_calls": arguments.valid,
    }


def record_of_row(row: RunRow, facts: RunFacts, line: int | None) -> dict[str, Any]:
    """Return the CSV record of a finished run in the history. The record may hold secrets."""
    figures = row.figures
    assert figures is not None
    user = NO_USER if facts.report is None or facts.report.user is None else facts.report.user
    calls = [f"{call.tool}({compact_json(call.arguments)})" for call in facts.calls]
    return {
        "suite": relative_to_cwd(str(row.suite.file)),
        "line": line,
        "case_id": row.case_id,
        "case_name": row.case_name,
        "model": row.model,
        "repeat": row.repeat,
        "status": figures.status.value,
        "score": bounded(figures.score),
        "grader": facts.grader,
        "reason": figures.reason,
        "issues": list(map(issue_text, facts.issues)),
        "finish": facts.finish,
        "calls": calls,
        "answer": facts.answer,
        "latency_ms": figures.latency_ms,
        "loop_ms": figures.loop_ms,
        "duration_ms": facts.duration_ms,
        "input_tokens": figures.input_tokens,
        "output_tokens": figures.output_tokens,
        "cost_usd": figures.cost_usd,
        "user_requests": user.requests,
        "user_ms": user.latency_ms,
        "user_input_tokens": user.usage and user.usage.input_tokens,
        "user_output_tokens": user.usage and user.usage.output_tokens,
        "user_cost_usd": user.cost_usd,
        "touched": facts.touched,
        "fork": figures.is_fork,
        "metrics": [f"{name}: {setting_text(value)}" for name, value in figures.metrics],
        "checked_calls": sum(tool.checked for tool in figures.tool_arguments),
        "valid_calls": sum(tool.valid for tool in figures.tool_arguments),
    }


def texts_of_record(record: Mapping[str, Any]) -> str:
    """Return the cells of a record as text, one cell on each line. The caller searches this text for secrets."""
    cells: list[object] = []
    for value in record.values():
        cells += value if isinstance(value, list) else (value,)
    return "\n".join(map(str, cells))


def _change(change: dict[str, Any]) -> dict[str, Any]:
    # Each change is one row, so the fields of both results become columns.
    row = dict(change)
    for side in ("before", "after"):
        cell = row.pop(side) or {}
        for key in ("status", "score", "good", "graded", "latency_ms"):
            row[f"{side}_{key}"] = cell.get(key)
    return row
