"""Grades the runs of a batch in the history again, by the suites as they are today, and stores what comes of that."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from workbench.batches.history_recorder import cases_as_stored
from workbench.batches.known_secrets import learn_secrets
from workbench.batches.plan import PlannedRun, grader_named, rule_named, same_question, with_grader
from workbench.batches.recorded import result_of_recording
from workbench.config.models import ConfigError
from workbench.config.program import Program
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.evaluation.regrade import RegradingJudges, RunToGrade, regrade
from workbench.grading.grade import RunResult
from workbench.grading.lazy import Chosen, Lazy
from workbench.grading.run_summary import RunSummary, summary_of
from workbench.history.claims import claimed
from workbench.history.database import Say
from workbench.history.editing import add_grading
from workbench.history.history import History
from workbench.history.records import BatchRow, HistoryError, RunRow, SuiteRef
from workbench.suite.loading import SuiteFile, load_suite, parse_suite
from workbench.suite.model import Case, GraderName
from workbench.suite.variants import has_variant_of, variant_name_of
from workbench.trajectory.trajectory import Trajectory
from workbench.version import __version__

_AT_A_TIME = 256
"""How many runs of the history are read at a time: the events of thousands would fill the memory."""


@dataclass(frozen=True)
class StoredRun:
    """A finished run of the history, with its suite and case as they are today. `asked_otherwise` is whether the case
    asks something else today than it did when it ran."""

    row: RunRow
    file: SuiteFile
    case: Case
    asked_otherwise: bool


@dataclass(frozen=True)
class RegradingPlan:
    """The `runs` of a batch that can be regraded. `gone` are runs of cases that today's suites lack, and `problems`
    say which suites cannot be used and why. Runs that never finished are in neither."""

    batch: BatchRow
    runs: StoredRunsToGrade
    gone: Sequence[RunRow]
    problems: tuple[str, ...]


_Today = tuple[SuiteFile, Case, bool]
"""What a run is graded by today: the suite, the case, and whether that asks something else than it did when it ran."""


class StoredRunsToGrade(Lazy[StoredRun]):
    """Runs of a batch with what they are graded by today: some bytes for each."""

    def __init__(self, rows: Sequence[RunRow]) -> None:
        self._rows = rows
        self._places, self._codes = array("L"), array("L")
        self._today: list[_Today] = []

    def __len__(self) -> int:
        return len(self._places)

    def at(self, index: int) -> StoredRun:
        return StoredRun(self._rows[self._places[index]], *self._today[self._codes[index]])

    def kind(self, today: _Today) -> int:
        """Returns the number of what some runs are graded by."""
        self._today.append(today)
        return len(self._today) - 1

    def add(self, place: int, kind: int) -> None:
        """Add the run at a place among the rows."""
        self._places.append(place)
        self._codes.append(kind)

    @property
    def graded_by(self) -> list[tuple[SuiteFile, Case]]:
        """The suites and cases by which runs are graded."""
        return [(file, case) for file, case, _ in self._today]


@dataclass(frozen=True)
class GradedAgain:
    """The results of a run when it ran and today, both without its trajectory."""

    run: StoredRun
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
    """Find today's suites and cases for the runs of a batch.

    Each suite is looked for at its old path. `suite` replaces the one that has its path, else the only one of the
    batch, else the one whose file has the same name. `by` is the grader that decides instead of the cases' own, and
    `load` reads a suite. The program learns the secrets of the suites.

    Raises HistoryError, also when the batch is still running: its later runs would be graded by other rules.
    """
    if batch.ended_at is None and claimed(history.file, batch.number):
        raise HistoryError(f"batch {batch.number} is still running: regrade it when it is finished, or stop it first")
    today: dict[int, tuple[SuiteFile, dict[str, Case]]] = {}
    problems: list[str] = []
    is_here = suite is not None and any(ref.file == suite.path.resolve() for ref in batch.suites)
    for ref in batch.suites:
        given = suite if suite and _stands_for(suite, ref, is_here=is_here, alone=len(batch.suites) == 1) else None
        file = given or load(ref.file)
        if file.suite is not None:
            try:
                learn_secrets(program, file.path.parent, file.suite, file.text)
            except ConfigError as error:
                problems.append(f"{error}: correct that first")
                continue
            today[ref.id] = file, cases_as_stored(file, program.secrets)
        elif file.is_missing:
            problems.append(f"there is no suite at {file.path}: give its new path with --suite FILE")
        else:
            problems.append(f"{file.errors[0]}: correct the suite first")
    rows = history.runs(batch.number)
    runs, gone = StoredRunsToGrade(rows), array("L")
    then = _OldSuites(history)
    rule = rule_named(batch.settings.get("repeat_rule"))
    kinds: dict[tuple[int, str, str | None, str | None], int | None] = {}
    for place, row in enumerate(rows):
        if row.missing or row.suite.id not in today:
            continue
        key = row.suite.id, row.case_id, variant_name_of(row.model), row.by
        if key not in kinds:
            file, cases = today[row.suite.id]
            case = cases.get(row.case_id)
            varied = then.with_variant(row, file)
            kinds[key] = None
            if case is not None and varied is not None:
                graded_by = with_grader(case, by or grader_named(row.by), rule)
                kinds[key] = runs.kind((varied, graded_by, then.asked_otherwise(row, varied, case)))
        if (kind := kinds[key]) is None:
            gone.append(place)
        else:
            runs.add(place, kind)
    return RegradingPlan(batch, runs, Chosen(rows, gone), tuple(problems))


def _stands_for(suite: SuiteFile, ref: SuiteRef, *, is_here: bool, alone: bool) -> bool:
    return ref.file == suite.path.resolve() if is_here else alone or suite.path.name == ref.file.name


def grade_again(
    history: History,
    runs: Sequence[StoredRun],
    judges: Callable[[], RegradingJudges],
    damaged: Say,
) -> Iterator[GradedAgain]:
    """Grade stored runs in their order, on event loops of this thread. `judges` is called for each portion of runs.
    Damaged runs are left out; `damaged` is called with the reason.

    Raises HistoryError, and RecordingError for a result that cannot be read.
    """
    for first in range(0, len(runs), _AT_A_TIME):
        by_id = {run.row.id: run for run in runs[first : first + _AT_A_TIME]}
        rows = (run.row for run in by_id.values())
        stored = [(by_id[row.id], recording) for row, recording in history.recordings(rows, None, damaged)]
        wanted = [
            RunToGrade(recording, result_of_recording(recording), run.file, run.case) for run, recording in stored
        ]
        results = asyncio.run(regrade(wanted, judges()))
        for (run, _), before, after in zip(stored, wanted, results, strict=True):
            figures = summary_of(after, suite=run.row.suite.key)
            yield GradedAgain(run, figures, _small(before.recorded, run), _small(after, run))


def store_grades(
    file: Path, batch: BatchRow, graded: Iterable[GradedAgain], graded_at: str, secrets: Secrets, say: Say
) -> None:
    """Store new grades of a batch in addition to the old ones, one by one; `graded_at` is ISO 8601. Raises
    HistoryError."""
    rows = ((each.run.row.id, secrets.redacted(each.figures), secrets.redacted(each.after)) for each in graded)
    add_grading(file, batch.number, graded_at, __version__, rows, say)


def _small(result: RunResult, run: StoredRun) -> RunResult:
    """Return a result without its trajectory, under the name that the history has for its suite."""
    return replace(result, suite=run.row.suite.key, trajectory=Trajectory(result.run_id))


class _OldSuites:
    """What cases asked when they ran, read from the suites in the history."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._then: dict[int, tuple[SuiteFile, dict[str, Case]]] = {}
        self._varied: dict[tuple[int, str | None], SuiteFile | None] = {}
        self._known: dict[tuple[int, str, str | None], bool] = {}

    def with_variant(self, row: RunRow, file: SuiteFile) -> SuiteFile | None:
        """Return today's suite with the variant that a run names: its own, else the one that the suite had then, which
        may have come from another file. `None` where that cannot be read."""
        assert file.suite is not None
        name = variant_name_of(row.model)
        if has_variant_of(file.suite, row.model):
            return file
        key = (row.suite.id, name)
        if key not in self._varied:
            then, _ = self._read(row)
            old = [variant for variant in then.suite.variants if variant.name == name] if then.suite else []
            update = {"variants": (*file.suite.variants, *old)}
            self._varied[key] = replace(file, suite=file.suite.model_copy(update=update)) if old else None
        return self._varied[key]

    def asked_otherwise(self, row: RunRow, file: SuiteFile, case: Case) -> bool:
        """Return whether a run's case asks something else in today's suite; `False` where the old suite cannot be read,
        because a secret was taken out of it."""
        key = (row.suite.id, row.case_id, variant_name_of(row.model))
        if key not in self._known:
            self._known[key] = row.suite.hash != file.hash and self._differs(row, file, case)
        return self._known[key]

    def _differs(self, row: RunRow, file: SuiteFile, case: Case) -> bool:
        then, cases = self._read(row)
        if row.case_id not in cases or file.suite is None or then.suite is None:
            return False
        planned = PlannedRun("", then, cases[row.case_id], row.model, row.repeat)
        return not same_question(planned, file.suite, case)

    def _read(self, row: RunRow) -> tuple[SuiteFile, dict[str, Case]]:
        if row.suite.id not in self._then:
            then = parse_suite(self._history.suite_text(row.suite), row.suite.file)
            self._then[row.suite.id] = then, {each.id: each for each in then.suite.cases} if then.suite else {}
        return self._then[row.suite.id]
