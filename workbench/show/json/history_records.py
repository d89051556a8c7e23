"""Converts the records of a history to the JSON of `workbench.show.json.history`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from pydantic import JsonValue

from workbench.analysis.batch_diff import KINDS, BatchDiff, decider_of
from workbench.analysis.gates import GateResult
from workbench.analysis.over_time import TrendKey
from workbench.history.records import BatchPart, BatchRow, Regrade, RunRow, SuiteRef
from workbench.show.json.batch_diff import change_report, test_reports
from workbench.show.json.history import (
    ComparedBatch,
    DamagedBatch,
    DiffReport,
    HistoryRun,
    ListedBatch,
    ListReport,
    RunOfCase,
    ShownBatch,
    ShownCase,
    ShownRun,
    StoredGrading,
    StoredPart,
    Trend,
    WholeBatch,
)
from workbench.show.views.batch_diff import DiffSide, names_of
from workbench.show.views.gates import GateReport


def list_report(
    file: Path,
    shown: Iterable[BatchRow],
    trends: Mapping[TrendKey, Sequence[tuple[int, float]]],
    regraded: Mapping[int, int],
) -> ListReport:
    """Returns the batches that are shown, and the trends of their suites."""
    listed = tuple(shown)
    shown = [batch for batch in listed if batch.damage is None]
    suites = {suite.key: suite for batch in shown for suite in batch.suites}
    return ListReport(
        history=str(file),
        batches=tuple(
            ListedBatch.model_validate({**_batch(batch), "graded_again": regraded.get(batch.number, 0)})
            for batch in shown
        ),
        damaged=tuple(
            DamagedBatch(number=batch.number, name=batch.name, problem=batch.damage)
            for batch in listed
            if batch.damage is not None
        ),
        trends=tuple(
            Trend(
                suite=str(suites[key].file),
                project=suites[key].project,
                path=suites[key].path,
                model=model,
                whole_batches=tuple(WholeBatch(batch=number, pass_rate=rate) for number, rate in rates),
            )
            for (key, model), rates in trends.items()
            if key in suites
        ),
    )


def shown_batch(
    batch: BatchRow,
    gradings: Iterable[Regrade],
    grading: Regrade | None,
    runs: Iterable[RunRow],
    gates: Iterable[GateResult],
) -> ShownBatch:
    """Returns a batch with its runs, by one of its gradings, and what they reach of the `gates`."""
    return ShownBatch.model_validate(
        {
            **_batch(batch),
            "gradings": tuple(
                StoredGrading(number=each.number, graded_at=each.graded_at, workbench=each.program) for each in gradings
            ),
            "grading": _number(grading),
            "runs": tuple(HistoryRun.model_validate(_run(run)) for run in runs),
            "gates": tuple(map(GateReport.model_validate, gates)),
        }
    )


def shown_run(run: RunRow, events: Iterable[JsonValue], result: Mapping[str, JsonValue]) -> ShownRun:
    """Returns a run with its events."""
    shown = {"batch": run.batch, "events": tuple(events), "result": dict(result)}
    return ShownRun.model_validate({**_run(run), **shown})


def shown_case(case_id: str, runs: Iterable[RunRow]) -> ShownCase:
    """Returns the runs of a case."""
    values = ({**_run(run), "batch": run.batch, "suite_hash": run.suite.hash} for run in runs)
    return ShownCase(case_id=case_id, runs=tuple(map(RunOfCase.model_validate, values)))


def diff_report(
    diff: BatchDiff,
    before: DiffSide,
    after: DiffSide,
    suites: Mapping[str, SuiteRef],
    notes: Iterable[str],
) -> DiffReport:
    """Returns the changes from one batch to another; `suites` by their keys."""
    return DiffReport(
        before=_compared(before),
        after=_compared(after),
        across=diff.across,
        counts={kind: len(diff.of(kind)) for kind in KINDS},
        compared=diff.compared,
        as_before=diff.as_before,
        left_out=diff.left_out,
        tests=test_reports(diff.tests, *names_of(before, after)),
        notes=tuple(notes),
        changes=tuple(change_report(change, suites) for change in diff.changes),
    )


def _compared(side: DiffSide) -> ComparedBatch:
    return ComparedBatch.model_validate({**_batch(side.batch), "grading": _number(side.grading)})


def _number(grading: Regrade | None) -> int | None:
    return grading.number if grading is not None else None


def _batch(batch: BatchRow) -> dict[str, object]:
    """Returns the values of a `StoredBatch`."""
    return {
        "number": batch.number,
        "name": batch.name,
        "kind": batch.kind,
        "started_at": batch.started_at,
        "ended_at": batch.ended_at,
        "workbench": batch.program,
        "planned": batch.planned,
        "missing": batch.missing,
        "pass_rate": batch.pass_rate,
        "valid_arguments": batch.valid_arguments,
        "parts": tuple(map(_part, batch.parts)),
        "settings": dict(batch.settings),
    }


def _part(part: BatchPart) -> StoredPart:
    suite = part.suite
    stored = {"suite": str(suite.file), **{name: value for name, value in asdict(suite).items() if name != "id"}}
    values = {"suite": stored, "model": part.model, "planned": part.planned, "cases": part.cases}
    calls = {"valid_calls": part.valid_calls, "checked_calls": part.checked_calls}
    counts = {status.column: count for status, count in part.counts.items()}
    return StoredPart.model_validate({**values, **counts, **calls})


def _run(run: RunRow) -> dict[str, object]:
    """Returns the values of a `HistoryRun`."""
    given: dict[str, object] = {
        "run": run.place + 1,
        "suite": str(run.suite.file),
        "case_id": run.case_id,
        "case_name": run.case_name,
        "model": run.model,
        "repeat": run.repeat,
        "fork": run.is_fork,
        "by": run.by,
        "graded_by": decider_of(run.figures) if run.figures is not None else None,
    }
    return given | {name: getattr(run.figures, name) if run.figures is not None else None for name in _FIGURES}


_FIGURES = (
    *("status", "score", "reason", "began_ms", "ended_ms", "latency_ms", "loop_ms", "first_token_ms"),
    *("input_tokens", "output_tokens", "cost_usd", "tool_arguments"),
)
