"""The report on a batch of the history, as `workbench run` would have made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.analysis.stopping import stored_watch
from workbench.config.secrets import Secrets
from workbench.evaluation.report import Report
from workbench.evaluation.stored_runs import StoredRuns
from workbench.grading.grade import GRADED, RunResult
from workbench.grading.run_summary import is_cost_limited
from workbench.history.database import Say
from workbench.history.history import History
from workbench.history.records import BatchRow, DamagedError, Regrade, RunRow
from workbench.reports.baseline import AgainstBaseline
from workbench.show.views.batch_list import called
from workbench.suite.lines import lines_of
from workbench.suite.loading import SuiteFile, parse_suite
from workbench.suite.model import GraderName

if TYPE_CHECKING:
    from workbench.reports.runs_report import MissingRuns


def stored_report(
    history: History,
    batch: BatchRow,
    runs: Sequence[RunRow],
    grading: Regrade | None,
    secrets: Secrets,
    damaged: Say,
) -> Report:
    """Return the report on those of all `runs` of a batch that are finished, by one of its gradings. Each is read once
    for its figures, and again when more of it is wanted. Lines are those of the suites as they were. What is damaged is
    left out, and `damaged` is told."""
    files = _suites(history, batch, damaged)
    suites = {path: file.suite for path, file in files.items() if file.suite is not None}
    cases = {path: {case.id: case for case in suite.cases} for path, suite in suites.items()}
    return Report(
        runs=StoredRuns(history, runs, grading, cases, damaged),
        suites=suites,
        started_at=batch.started_at,
        min_score=batch.min_score,
        shard=batch.shard,
        interrupted=batch.missing > sum(run.figures is not None and is_cost_limited(run.figures) for run in runs),
        missing=missing_of(runs),
        batch=batch.number,
        watch=stored_watch(batch, runs, {path: suite.gate for path, suite in suites.items()}),
        program_version=batch.program,
        line_of=lines_of(files.values()),
        secrets=secrets,
    )


def missing_of(runs: Sequence[RunRow]) -> tuple[MissingRuns, ...]:
    """Returns the cases of which runs were never finished."""
    from workbench.reports.runs_report import MissingRuns  # on use: it loads the models of the JSON report

    cases: dict[tuple[str, str, str, str], list[int]] = {}
    for run in runs:
        if not run.is_fork:
            counts = cases.setdefault((str(run.suite.file), run.case_id, run.case_name, run.model), [0, 0])
            counts[0] += run.figures is None
            counts[1] += 1
    return tuple(MissingRuns(*case, *counts) for case, counts in cases.items() if counts[0])


def as_graded_by(result: RunResult, by: GraderName) -> RunResult:
    """Returns a stored run as if another grader had decided it, by the grade that is stored with it. Without one that
    applies, a run that was graded is not. The options of grading stay."""
    if result.status not in GRADED or result.grading.by == by:
        return result
    named = next((grade for grade in result.grades if grade.grader == by), None)
    grading = replace(result.grading, by=by)
    if named is None or named.status not in GRADED:
        why = named.reason if named is not None else f"no grade of {by} is stored"
        return replace(result, status="not graded", grades=(), steps=(), error=why, grading=grading)
    others = [grade for grade in result.grades if grade.grader != by]
    return replace(result, status=named.status, grades=(named, *others), grading=grading)


def report_beside(earlier: Report, later: Report, against: AgainstBaseline, same: Mapping[str, str]) -> Report:
    """Return the report on a batch together with the runs of an earlier one, under models named after it. `same` has
    the path of each suite in the later batch by its path in the earlier one."""
    name = called(against.batch)
    before = tuple(
        replace(
            run,
            result=replace(
                run.result,
                run_id=f"{name} {run.result.run_id}",
                suite=same.get(run.result.suite, run.result.suite),
                model=f"{run.result.model} ({name})",
            ),
        )
        for run in earlier.runs
    )
    suites = {same.get(path, path): suite for path, suite in earlier.suites.items()}
    return replace(later, runs=(*before, *later.runs), suites={**suites, **later.suites}, against=against)


def _suites(history: History, batch: BatchRow, damaged: Say) -> Mapping[str, SuiteFile]:
    """The suites of a batch as they were, by their paths; without those that can no longer be read, for a secret that
    was taken out of them, or for damage, which `damaged` is told."""
    files = []
    for suite in batch.suites:
        try:
            files.append(parse_suite(history.suite_text(suite), suite.file))
        except DamagedError as error:
            damaged(str(error))
    return {str(file.path): file for file in files}
