"""Grading a kept batch again by what its suites expect today: what of it can be, and keeping what it comes to beside
the grades that it has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from workbench.batches.asked import same_question
from workbench.batches.keeping import cases_as_kept
from workbench.batches.known_secrets import learn_secrets
from workbench.batches.plan import PlannedRun, decided_by
from workbench.batches.recorded import result_of_recording
from workbench.batches.regrading import ToRegrade, regrade
from workbench.batches.rejudging import RegradingJudges
from workbench.config.models import ConfigError
from workbench.config.program import Program
from workbench.config.secrets import Secrets
from workbench.grading.figures import RunSummary, figures_of
from workbench.grading.grade import RunResult
from workbench.history.claims import claimed
from workbench.history.database import Say
from workbench.history.editing import add_grading
from workbench.history.history import History
from workbench.history.records import BatchRow, HistoryError, RunRow, SuiteRef
from workbench.suite.loading import SuiteFile, load_suite, parse_suite
from workbench.suite.model import Case, GraderName
from workbench.trajectory.trajectory import Trajectory
from workbench.version import __version__

_AT_A_TIME = 256
"""Runs that are opened together: what happened in thousands of them would fill the memory."""


@dataclass(frozen=True)
class KeptRun:
    """A run that is over, with the suite and the case as they are today. `asked_otherwise` says that the case asks
    something else by now than the run was asked."""

    row: RunRow
    file: SuiteFile
    case: Case
    asked_otherwise: bool


@dataclass(frozen=True)
class RegradingPlan:
    """What of a batch can be graded again: `runs`. `gone` are runs of cases that today's suites do not have, and
    `problems` say which suites cannot be used, and why. Runs that never finished are nowhere."""

    batch: BatchRow
    runs: tuple[KeptRun, ...]
    gone: tuple[RunRow, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class GradedAgain:
    """A run as it was graded when it ran, and as it is today. The results are without what happened in it."""

    run: KeptRun
    figures: RunSummary
    before: RunResult
    after: RunResult


def plan_regrading(
    history: History,
    batch: BatchRow,
    program: Program,
    *,
    suite: SuiteFile | None = None,
    by: GraderName | None = None,
    load: Callable[[Path], SuiteFile] = load_suite,
) -> RegradingPlan:
    """Find today's suites and cases of a batch's runs: where its suites were, or in `suite`, which stands for the one
    that was there, else for the only one of the batch, else for the one whose file has its name. `by` is the grader to
    decide instead of the cases' own; `load` reads a suite that is where it was. What is secret for the suites is known
    to the program then.

    Raises HistoryError, as when the batch is going on: runs that come later would be counted by other grades.
    """
    if batch.ended_at is None and claimed(history.file, batch.number):
        raise HistoryError(f"batch {batch.number} is going on: grade it again when it is over, or stop it first")
    today: dict[int, tuple[SuiteFile, dict[str, Case]]] = {}
    problems: list[str] = []
    is_here = suite is not None and any(ref.file == suite.path.resolve() for ref in batch.suites)
    for ref in batch.suites:
        given = suite if suite and _stands_for(suite, ref, is_here=is_here, alone=len(batch.suites) == 1) else None
        file = given or load(ref.file)
        if file.suite is not None:
            try:
                learn_secrets(program, file.path.parent, file.suite)
            except ConfigError as error:
                problems.append(f"{error}: put that right first")
                continue
            today[ref.id] = file, cases_as_kept(file, program.secrets)
        elif file.is_missing:
            problems.append(f"there is no suite at {file.path}: say where it is now with --suite FILE")
        else:
            problems.append(f"{file.errors[0]}: put the suite right first")
    runs: list[KeptRun] = []
    gone: list[RunRow] = []
    asked_otherwise = _Questions(history).asked_otherwise
    for row in history.runs(batch.number):
        if row.missing or row.suite.id not in today:
            continue
        file, cases = today[row.suite.id]
        case = cases.get(row.case_id)
        if case is None:
            gone.append(row)
            continue
        grader = by or next((name for name in _GRADERS if name == row.by), None)
        runs.append(KeptRun(row, file, decided_by(case, grader) if grader else case, asked_otherwise(row, file, case)))
    return RegradingPlan(batch, tuple(runs), tuple(gone), tuple(problems))


def _stands_for(suite: SuiteFile, ref: SuiteRef, *, is_here: bool, alone: bool) -> bool:
    return ref.file == suite.path.resolve() if is_here else alone or suite.path.name == ref.file.name


_GRADERS: tuple[GraderName, ...] = get_args(GraderName)


def grade_again(
    history: History,
    runs: Sequence[KeptRun],
    judges: Callable[[], RegradingJudges],
    damaged: Say,
) -> Iterator[GradedAgain]:
    """Grade kept runs, in their order, on event loops of this thread. `judges` are made anew for some runs at a time.
    Runs that are damaged are left out, which `damaged` is told.

    Raises HistoryError, and RecordingError for a result that cannot be read.
    """
    for first in range(0, len(runs), _AT_A_TIME):
        by_id = {run.row.id: run for run in runs[first : first + _AT_A_TIME]}
        rows = (run.row for run in by_id.values())
        some = [(by_id[row.id], recording) for row, recording in history.recordings(rows, None, damaged)]
        wanted = [ToRegrade(recording, run.file, run.case) for run, recording in some]
        results = asyncio.run(regrade(wanted, judges()))
        for (run, recording), after in zip(some, results, strict=True):
            figures = figures_of(after, suite=run.row.suite.key)
            yield GradedAgain(run, figures, _small(result_of_recording(recording), run), _small(after, run))


def keep_grades(
    file: Path, batch: BatchRow, graded: Sequence[GradedAgain], graded_at: str, secrets: Secrets, say: Say
) -> None:
    """Keep new grades of a batch beside the old ones; `graded_at` is ISO 8601. Raises HistoryError."""
    kept = [(each.run.row.id, secrets.redacted(each.figures), secrets.redacted(each.after)) for each in graded]
    add_grading(file, batch.number, graded_at, __version__, kept, say)


def _small(result: RunResult, run: KeptRun) -> RunResult:
    """A result without what happened in the run, under what the history calls the suite."""
    return replace(result, suite=run.row.suite.key, trajectory=Trajectory(result.run_id))


class _Questions:
    """What cases asked when they ran, by the suites that the history has kept."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._then: dict[int, tuple[SuiteFile, dict[str, Case]]] = {}
        self._known: dict[tuple[int, str], bool] = {}

    def asked_otherwise(self, row: RunRow, file: SuiteFile, case: Case) -> bool:
        """Whether a run's case asks something else in today's suite. Of a suite that can no longer be read as it was,
        for a secret that was taken out of it, nothing is known."""
        key = (row.suite.id, row.case_id)
        if key not in self._known:
            self._known[key] = row.suite.hash != file.hash and self._differs(row, file, case)
        return self._known[key]

    def _differs(self, row: RunRow, file: SuiteFile, case: Case) -> bool:
        if row.suite.id not in self._then:
            then = parse_suite(self._history.suite_text(row.suite), row.suite.file)
            self._then[row.suite.id] = then, {each.id: each for each in then.suite.cases} if then.suite else {}
        then, cases = self._then[row.suite.id]
        if row.case_id not in cases or file.suite is None:
            return False
        planned = PlannedRun("", then, cases[row.case_id], row.model, row.repeat)
        return not same_question(planned, file.suite, case)
