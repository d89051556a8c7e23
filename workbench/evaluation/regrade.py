"""Regrading: recordings, files of calls and stored runs are graded without new runs.

`regrade` grades recordings, each prepared as a `RunToGrade`. `regrade_result` grades a run that is still in memory."""

from __future__ import annotations

import asyncio
import logging
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from workbench.analysis.over_time import edited_texts
from workbench.checks.check import CheckContext
from workbench.checks.clock import clock_at
from workbench.checks.patterns import CheckError
from workbench.config.models import DEFAULT_CONCURRENCY, ConfigError, ModelSpec
from workbench.config.program import Program
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.engine.history_recorder import stored_cases
from workbench.engine.judges import JudgeAccess, JudgementCache, PendingJudgements, RunJudge
from workbench.engine.plan import PlannedRun, parse_grader, parse_repeat_rule, sends_same_requests, with_grader
from workbench.engine.planned_run import grade_planned_run
from workbench.engine.recordings import case_of_recording, result_of_recording, suite_of_recording
from workbench.engine.redaction import regrade_refusal, shown_result
from workbench.engine.suite_secrets import register_secrets
from workbench.evaluation.approval import Approval, Needs
from workbench.evaluation.plan import FinishedRun, Notice, notices
from workbench.evaluation.report import Report
from workbench.grading.grade import NOT_GRADED_REASON, GradingError, Judgement, RunResult
from workbench.grading.lazy_sequences import LazySequence, SelectedSequence
from workbench.grading.run import graded_run
from workbench.grading.run_summary import RunSummary, summary_of
from workbench.grading.status import Status
from workbench.history.claims import is_claimed
from workbench.history.database import ReportProblem
from workbench.history.edits import add_grading
from workbench.history.history import History
from workbench.history.records import BatchRow, CaseTexts, HistoryError, RunRow, SuiteRef
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.model import Model, ModelError
from workbench.show.views.grade_moves import Regraded
from workbench.suite.grading_model import GraderName, RepeatRule
from workbench.suite.model import Case, Suite
from workbench.suite.problems import Problem
from workbench.suite.suite_file import SuiteFile, cases_by_id, lines_of, load_suite, parse_suite
from workbench.suite.variants import has_variant_of, variant_name_of
from workbench.tools.python_code import PythonFunctions
from workbench.trajectory.recording import SUFFIX, Recording, RecordingError, read_recording, recordings_in
from workbench.trajectory.trajectory import Trajectory
from workbench.version import __version__

_logger = logging.getLogger(__name__)


class RegradingJudges:
    """The judges of regraded runs. Use and close them on one event loop.

    If a model is `chosen`, judgements that are not stored are requested: from the model that a check names, otherwise
    from the chosen model. Without a chosen model, no model is called."""

    def __init__(self, program: Program, approval: Approval, chosen: str | None = None) -> None:
        self.approval = approval
        self._program = program
        self._chosen = chosen
        self.asks = chosen is not None
        self._cache = JudgementCache(program.folders.judgements, program.secrets)
        self._endpoints = Endpoints(program.secrets)
        self._under_way: PendingJudgements = {}

    def of(self, planned: PlannedRun, recorded: Iterable[Judgement]) -> RunJudge:
        """Return the judge of one run. Judgements in `recorded`, which were stored with the run, are used first."""
        path, specs = planned.file.path, self.approval.specs

        def open_model(spec: ModelSpec) -> Model:
            why_not = self.approval.model_refusal(path, spec)
            if why_not is not None:
                raise ModelError(why_not)
            return self._endpoints.open(spec, specs.environment_at(path))

        asking = None
        if self.asks:
            asking = JudgeAccess(open_model, in_flight=self._under_way)
        return RunJudge(partial(specs.judge_of, path), self._cache, asking, recorded=recorded, chosen=self._chosen)

    async def close(self) -> None:
        await self._endpoints.close()


@dataclass(frozen=True)
class RunToGrade:
    """A recording, its stored result, and the valid suite and case that grade it.

    `given` means that the recording was made from a file of calls and was never graded."""

    recording: Recording
    recorded: RunResult
    file: SuiteFile
    case: Case
    given: bool = False


async def regrade(runs: Iterable[RunToGrade], judges: RegradingJudges) -> list[RunResult]:
    """Grade recorded runs again, and return the new results in the same order.

    A run that ended in an error keeps its error. The judges are closed afterwards."""
    results: dict[int, RunResult] = {}
    functions: dict[Path, PythonFunctions] = {}
    waiting = enumerate(runs)

    async def work() -> None:
        for place, each in waiting:
            results[place] = await _regrade(each, judges, functions)
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # Grading turned the cancellation of this task into a stopped run. The error is raised again to end the
                # loop.
                raise asyncio.CancelledError

    try:
        # Only waiting for judges can overlap. Without judges, runs that are graded at the same time would slow each
        # other down, and exceed their time limits.
        workers = 1
        if judges.asks:
            workers = DEFAULT_CONCURRENCY
        await asyncio.gather(*(work() for _ in range(workers)))
    finally:
        await judges.close()
    return [results[place] for place in sorted(results)]


async def _regrade(run: RunToGrade, judges: RegradingJudges, functions: dict[Path, PythonFunctions]) -> RunResult:
    header = run.recording.header
    planned = PlannedRun(header.run, run.file, run.case, header.model, header.repeat)
    trajectory = with_clock(run.recording.trajectory, planned, header.started_at)
    grant = judges.approval.grant(run.file.path)
    code = None
    if grant is not None:
        code = grant.code
    python = functions.setdefault(run.file.path, PythonFunctions(code))
    recorded = run.recorded
    # A skipped run has no trajectory to grade.
    if recorded.status == Status.SKIPPED:
        return replace(recorded, grading=planned.settings.grading)
    why_not = regrade_refusal(recorded, run.case, as_stored=run.file.path == run.recording.path)
    if why_not is not None:
        return replace(recorded, grading=planned.settings.grading, not_regraded=why_not)
    judge = judges.of(planned, recorded.judgements)
    result = await grade_planned_run(planned, trajectory, python.answer, judge, recorded.cost_usd)
    return replace(result, cost_usd=recorded.cost_usd, redacted=recorded.redacted)


def with_clock(trajectory: Trajectory, planned: PlannedRun, started_at: str) -> Trajectory:
    """Return the trajectory with the time that the case's clock showed when the run began.

    A trajectory that already has a clock, or whose case sets no clock, stays unchanged."""
    clock = planned.settings.clock
    if trajectory.start is None or trajectory.clock is not None or clock is None or not started_at:
        return trajectory
    try:
        began = datetime.fromisoformat(started_at)
        now = str(clock_at(clock, began)) if began.tzinfo is not None else None
    except ValueError:
        # If the clock cannot be read, grading reports it.
        return trajectory
    return replace(trajectory, start=replace(trajectory.start, clock=now))


def regrade_result(result: RunResult, planned: PlannedRun, context: CheckContext) -> RunResult:
    """Grade a finished run by the case of `planned`, without calling a model or a tool.

    A run that was stopped, timed out or failed unexpectedly keeps its result. The call blocks while the checks run."""
    result = replace(result, grading=planned.settings.grading)
    finish = result.trajectory.finish
    if finish is None or finish.reason in ("error", "timed out", "user error", "stopped"):
        return result
    why_not = regrade_refusal(result, planned.case, as_stored=False)
    if why_not is not None:
        return replace(result, not_regraded=why_not)
    try:
        trajectory, cost_usd = result.trajectory, result.cost_usd
        graded = graded_run(planned.suite, planned.case, trajectory, context=context, cost_usd=cost_usd)
    except (CheckError, GradingError) as error:
        return _not_graded(result, str(error))
    except Exception as error:
        # A bug in a grader must not prevent the other runs from being regraded.
        _logger.exception("regrading run %s of case %s", planned.run_id, planned.case.id)
        return _not_graded(result, f"grading: unexpected {type(error).__name__}: {error}; the log holds the details")
    why_not = None
    if graded.status == Status.NOT_GRADED:
        why_not = NOT_GRADED_REASON
    return replace(result, **graded._asdict(), error=why_not)


def _not_graded(result: RunResult, error: str) -> RunResult:
    return replace(result, status=Status.ERROR, grades=(), steps=(), metrics=(), valid_arguments=(), error=error)


@dataclass(frozen=True, kw_only=True)
class GradeOptions:
    """The recordings to regrade, and the rules of regrading.

    `suite` replaces the suites of the recordings, and also grades the files in `calls`. `by` is the deciding grader.
    `repeat_rule` decides whether a case with repeats passes. `judge` is the model that is asked for judgements that are
    not stored; if it is `None`, no model is asked."""

    paths: tuple[Path, ...] = ()
    calls: tuple[Path, ...] = ()
    suite: Path | None = None
    by: GraderName | None = None
    repeat_rule: RepeatRule | None = None
    min_score: float | None = None
    judge: str | None = None


class BrokenSuiteError(RecordingError):
    """The suite that grades recordings has errors. `problems` lists them."""

    def __init__(self, file: SuiteFile) -> None:
        super().__init__(f"correct the suite of {file.path} first")
        self.problems: tuple[Problem, ...] = tuple(file.errors)


@dataclass(frozen=True)
class RegradePlan:
    """The recordings to regrade, without duplicates.

    `problems` says why other recordings cannot be graded."""

    runs: tuple[RunToGrade, ...]
    options: GradeOptions
    program: Program
    problems: tuple[Notice, ...] = ()

    @property
    def files(self) -> tuple[SuiteFile, ...]:
        """The suites that grade the recordings, without duplicates."""
        return tuple({id(run.file): run.file for run in self.runs}.values())

    def needs(self) -> Needs:
        """Return what grading needs on this machine: functions to call and judges to ask."""
        cases = ((run.file, run.case) for run in self.runs)
        return Needs.of_grading(cases, self.program, judges=self.options.judge is not None)


def plan_grading(options: GradeOptions, program: Program) -> RegradePlan:
    """Read recordings and files of calls, and return the plan of their regrading.

    Raises RecordingError if the chosen suite cannot be used."""
    now = None
    if options.suite is not None:
        now = _valid(load_suite(options.suite)).standalone
    runs: list[RunToGrade] = []
    problems: list[Notice] = []
    files: dict[Path, None] = {}
    for path in options.paths:
        try:
            files |= dict.fromkeys(_files(path))
        except RecordingError as error:
            problems.append(Notice(str(error)))
    for path in files:
        try:
            recording = read_recording(path)
            recorded = result_of_recording(recording)
            file = now or _valid(suite_of_recording(recording))
            case = with_grader(case_of_recording(recording, file), options.by, options.repeat_rule)
            runs.append(RunToGrade(recording, recorded, file, case))
        except BrokenSuiteError as error:
            for each in error.problems:
                problems.append(Notice(str(each), "warning"))
            problems.append(Notice(str(error)))
        except RecordingError as error:
            problems.append(Notice(str(error)))
    if options.calls and now is not None:
        # This import is lazy, because building its models takes time.
        from workbench.evaluation.calls_file import read_calls, runs_of_calls_file

        for path in options.calls:
            try:
                made, wrong = runs_of_calls_file(read_calls(path), now, path, options.by, options.repeat_rule)
            except RecordingError as error:
                problems.append(Notice(str(error)))
                continue
            for given in made:
                runs.append(RunToGrade(given.recording, given.recorded, now, given.case, given=True))
            problems += notices((f"{path}: {each}" for each in wrong), "error")
    return RegradePlan(tuple(runs), options, program, tuple(problems))


def grade_recordings(plan: RegradePlan, approval: Approval) -> Report:
    """Regrade recordings on a new event loop, and return the report.

    For each run, the report has the earlier and the new verdict."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    judges = RegradingJudges(plan.program, approval, plan.options.judge)
    results, suites = _by_suite(plan.runs, asyncio.run(regrade(plan.runs, judges)))
    secrets = plan.program.secrets
    finished: list[FinishedRun] = []
    regraded: list[Regraded] = []
    for place, (run, result) in enumerate(zip(plan.runs, results, strict=True)):
        finished.append(FinishedRun(place, run.case, result))
        if not run.given:
            before = None
            if run.recording.complete:
                before = run.recorded
            regraded.append(Regraded(str(run.recording.path), before, shown_result(result, secrets)))
    return Report(
        runs=tuple(finished),
        suites=suites,
        started_at=started_at,
        min_score=plan.options.min_score,
        incomplete=bool(plan.problems),
        suite_of=_recorded_suite,
        line_of=lines_of(run.file for run in plan.runs if run.file.path != run.recording.path),
        regraded=tuple(regraded),
        secrets=secrets,
    )


def _files(path: Path) -> list[Path]:
    """Return the given file, or the recordings in a folder.

    Raises RecordingError if there are none."""
    try:
        found = [path]
        if path.is_dir():
            found = recordings_in(path)
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}") from error
    if not found:
        raise RecordingError(f"{path} contains no recording (a file *{SUFFIX})")
    return found


def _by_suite(runs: Sequence[RunToGrade], results: Sequence[RunResult]) -> tuple[list[RunResult], dict[str, Suite]]:
    """Return the results with one suite path for all runs of the same suite, and the suites by this path.

    Each recording contains its own copy of the suite, with only one case. The path of the first copy becomes the path
    of the whole suite."""
    paths: dict[tuple[str, str], str] = {}
    suites: dict[str, Suite] = {}
    cases: dict[str, dict[str, Case]] = {}
    under_paths: list[RunResult] = []
    for run, result in zip(runs, results, strict=True):
        assert run.file.suite is not None
        # Results belong together if their recordings contain the same suite, or if one suite grades all recordings.
        key = ("", result.suite)
        if run.file.path == run.recording.path:
            key = (_recorded_suite(result), "")
        path = paths.setdefault(key, result.suite)
        suites.setdefault(path, run.file.suite)
        cases.setdefault(path, {}).setdefault(run.case.id, run.case)
        under_paths.append(replace(result, suite=path))
    for path, suite in suites.items():
        suites[path] = suite.model_copy(update={"cases": tuple(cases[path].values())})
    return under_paths, suites


def _recorded_suite(result: RunResult) -> str:
    start = result.trajectory.start
    if start is not None:
        return start.suite_hash
    return result.suite


def _valid(file: SuiteFile) -> SuiteFile:
    if file.suite is None:
        raise BrokenSuiteError(file)
    return file


# Regrading of stored batches by the suites as they are now. The new grades are stored beside the old ones.

_AT_A_TIME = 256
"""The number of runs read from the history at a time. The events of thousands of runs would fill the memory."""


@dataclass(frozen=True)
class StoredRun:
    """A finished run of the history, with its suite and case as they are now.

    `has_other_requests` means that the case was edited and would now send other requests than in this run."""

    row: RunRow
    file: SuiteFile
    case: Case
    has_other_requests: bool


@dataclass(frozen=True)
class RegradingPlan:
    """The stored runs of a batch that can be regraded (`runs`), and those that cannot.

    `missing` holds runs whose cases no longer exist in the suites. `problems` says why suites cannot be used. Runs that
    never finished are left out. `texts` holds the present texts of edited cases that still send the same requests."""

    batch: BatchRow
    runs: StoredRunsToGrade
    missing: Sequence[RunRow]
    problems: tuple[str, ...]
    texts: CaseTexts


_CurrentCase = tuple[SuiteFile, Case, bool]
"""The suite and case that now grade a run, and whether the case sends other requests than in the run."""


class StoredRunsToGrade(LazySequence[StoredRun]):
    """The runs of a batch, with their suites and cases as they are now. Each run takes only a few bytes of memory."""

    def __init__(self, rows: Sequence[RunRow]) -> None:
        self._rows = rows
        self._places, self._codes = array("L"), array("L")
        self._today: list[_CurrentCase] = []

    def __len__(self) -> int:
        return len(self._places)

    def at(self, index: int) -> StoredRun:
        return StoredRun(self._rows[self._places[index]], *self._today[self._codes[index]])

    def add_current_case(self, current: _CurrentCase) -> int:
        """Register a case and its suite as they are now. Returns the number by which `add` refers to the case."""
        self._today.append(current)
        return len(self._today) - 1

    def add(self, place: int, case_number: int) -> None:
        """Add a run that a registered case grades.

        `place` is the index of the run in the rows, and `case_number` is the result of `add_current_case`."""
        self._places.append(place)
        self._codes.append(case_number)

    @property
    def graded_by(self) -> list[tuple[SuiteFile, Case]]:
        return [(file, case) for file, case, _ in self._today]


@dataclass(frozen=True)
class RunRegrade:
    """The earlier and the new result of a run, both without their trajectories."""

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
    """Find the suites and cases, as they are now, that grade the runs of a batch.

    `load` reads each suite at its old path. `suite` replaces one suite of the batch. This is the suite with the same
    path, or else the only suite, or else the suite with the same file name. `by` is the deciding grader, instead of the
    cases' own graders. The secrets of the suites are registered.

    Raises HistoryError. A batch that is still running is refused, because its remaining runs would be graded by the
    old suites."""
    if batch.ended_at is None and is_claimed(history.file, batch.number):
        raise HistoryError(f"batch {batch.number} is still running: regrade it when it is finished, or stop it first")
    today: dict[int, tuple[SuiteFile, dict[str, Case]]] = {}
    problems: list[str] = []
    replaced = set[SuiteRef]()
    if suite is not None:
        replaced = _replaced_by(suite, batch.suites)
    for ref in batch.suites:
        file = suite
        if file is None or ref not in replaced:
            file = load(ref.file)
        file = file.standalone
        if file.suite is not None:
            try:
                register_secrets(program, file.path.parent, file.suite, file.text)
            except ConfigError as error:
                problems.append(f"{error}: correct that first")
                continue
            today[ref.id] = file, stored_cases(file, program.secrets)
        elif file.is_missing:
            problems.append(f"there is no suite at {file.path}: give its new path with --suite FILE")
        else:
            problems.append(f"{file.errors[0]}: correct the suite first")
    rows = history.runs(batch.number)
    runs, gone = StoredRunsToGrade(rows), array("L")
    then = _OldSuites(history)
    rule = parse_repeat_rule(batch.settings.get("repeat_rule"))
    # A batch may have a million runs, but few combinations of suite, case, variant and grader. Each is looked up once.
    kinds: dict[tuple[int, str, str | None, str | None], int | None] = {}
    alike: dict[int, dict[str, None]] = {}
    """The ids of cases that still send the same requests as in the batch, by suite."""
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
                graded_by = with_grader(case, by or parse_grader(row.by), rule)
                asked_otherwise = then.has_other_requests(row, varied, case)
                kinds[key] = runs.add_current_case((varied, graded_by, asked_otherwise))
                if not asked_otherwise:
                    alike.setdefault(row.suite.id, {})[row.case_id] = None
        if (kind := kinds[key]) is None:
            gone.append(place)
        else:
            runs.add(place, kind)
    texts = {}
    for ref in batch.suites:
        if ref.id in alike:
            file, _ = today[ref.id]
            texts[ref.key] = edited_texts(history, ref, file, alike[ref.id], program.secrets.redact)
    return RegradingPlan(batch, runs, SelectedSequence(rows, gone), tuple(problems), texts)


def _replaced_by(suite: SuiteFile, batch_suites: Sequence[SuiteRef]) -> set[SuiteRef]:
    if same_path := {ref for ref in batch_suites if ref.file == suite.path.resolve()}:
        return same_path
    if len(batch_suites) == 1:
        return set(batch_suites)
    return {ref for ref in batch_suites if ref.file.name == suite.path.name}


def regrade_stored_runs(
    history: History,
    runs: Sequence[StoredRun],
    judges: Callable[[], RegradingJudges],
    damaged: ReportProblem,
) -> Iterator[RunRegrade]:
    """Grade stored runs again, in order, on new event loops.

    The runs are graded some hundred at a time, and `judges` is called before each group. A damaged run is left out, and
    `damaged` is called with a message about it.

    Raises HistoryError, and RecordingError for a result that cannot be read."""
    for first in range(0, len(runs), _AT_A_TIME):
        by_id = {run.row.id: run for run in runs[first : first + _AT_A_TIME]}
        rows = (run.row for run in by_id.values())
        stored: list[StoredRun] = []
        wanted: list[RunToGrade] = []
        for row, recording in history.recordings(rows, None, damaged):
            run = by_id[row.id]
            stored.append(run)
            wanted.append(RunToGrade(recording, result_of_recording(recording), run.file, run.case))
        results = asyncio.run(regrade(wanted, judges()))
        for run, before, after in zip(stored, wanted, results, strict=True):
            figures = summary_of(after, suite=run.row.suite.key)
            yield RunRegrade(run, figures, _without_trajectory(before.recorded, run), _without_trajectory(after, run))


def store_grades(
    file: Path,
    plan: RegradingPlan,
    graded: Iterable[RunRegrade],
    graded_at: str,
    secrets: Secrets,
    report: ReportProblem,
) -> None:
    """Store new grades of a batch, and keep its old grades.

    `graded_at` is an ISO 8601 time. Raises HistoryError."""

    def rows() -> Iterator[tuple[int, RunSummary, RunResult]]:
        for each in graded:
            # Results are redacted one at a time, because redaction copies them, and memory may not hold all copies.
            yield each.run.row.id, secrets.redacted(each.figures), secrets.redacted(each.after)

    add_grading(file, plan.batch.number, graded_at, __version__, rows(), report, plan.texts)


def _without_trajectory(result: RunResult, run: StoredRun) -> RunResult:
    """Return a result without its trajectory, and with the suite's key in the history as its suite."""
    return replace(result, suite=run.row.suite.key, trajectory=Trajectory(result.run_id))


class _OldSuites:
    """The suites of a batch as they were when it ran, read from the history."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._then: dict[int, tuple[SuiteFile, dict[str, Case]]] = {}
        self._varied: dict[tuple[int, str | None], SuiteFile | None] = {}
        self._known: dict[tuple[int, str, str | None], bool] = {}

    def with_variant(self, row: RunRow, file: SuiteFile) -> SuiteFile | None:
        """Return the present suite with the variant of a run; `None` if no such variant is known.

        If the present suite no longer has the variant, it is added as it was when the batch ran."""
        assert file.suite is not None
        name = variant_name_of(row.model)
        if has_variant_of(file.suite, row.model):
            return file
        key = (row.suite.id, name)
        if key not in self._varied:
            self._varied[key] = None
            then = self._read(row)[0].suite
            old = []
            if then is not None:
                old = [variant for variant in then.variants if variant.name == name]
            if old:
                suite = file.suite.model_copy(update={"variants": (*file.suite.variants, *old)})
                self._varied[key] = replace(file, suite=suite)
        return self._varied[key]

    def has_other_requests(self, row: RunRow, file: SuiteFile, case: Case) -> bool:
        """Return whether the present suite would send other requests for a run's case.

        Returns `False` if the old suite cannot be read, because a secret in it was redacted."""
        key = (row.suite.id, row.case_id, variant_name_of(row.model))
        if key not in self._known:
            self._known[key] = row.suite.hash != file.hash and self._differs(row, file, case)
        return self._known[key]

    def _differs(self, row: RunRow, file: SuiteFile, case: Case) -> bool:
        then, cases = self._read(row)
        if row.case_id not in cases or file.suite is None or then.suite is None:
            return False
        planned = PlannedRun("", then, cases[row.case_id], row.model, row.repeat)
        return not sends_same_requests(planned, file.suite, case)

    def _read(self, row: RunRow) -> tuple[SuiteFile, dict[str, Case]]:
        if row.suite.id not in self._then:
            then = parse_suite(self._history.suite_text(row.suite), row.suite.file)
            self._then[row.suite.id] = then, cases_by_id(then.suite)
        return self._then[row.suite.id]
