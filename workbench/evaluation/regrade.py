"""Grades runs again without running them: those in recordings and in files of calls.

Each is read as a `RunToGrade`, which `regrade` grades, and so are those of the history (`evaluation.regrade_batch`).
`graded_anew` grades a run that is still in memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from workbench.batches.judgement_cache import JudgementCache
from workbench.batches.judging import Asking, Questions, RunJudge
from workbench.batches.plan import PlannedRun, with_grader
from workbench.batches.recorded import case_of_recording, result_of_recording, suite_of_recording
from workbench.batches.redacting import shown_result
from workbench.batches.single import graded
from workbench.checks.check import CheckContext
from workbench.checks.patterns import CheckError
from workbench.config.models import DEFAULT_CONCURRENCY, ModelSpec
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.evaluation.approval import Approval, Needs
from workbench.evaluation.plan import FinishedRun, Notice
from workbench.evaluation.report import Report
from workbench.grading.grade import WHY_NOT_GRADED, GradingError, RunResult
from workbench.grading.judgements import Judgement
from workbench.grading.redacted import why_not_regraded
from workbench.grading.run import graded_run
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.model import Model, ModelError
from workbench.reports.moves import Regraded
from workbench.suite.lines import lines_of
from workbench.suite.loading import SuiteFile, load_suite
from workbench.suite.model import Case, GraderName, RepeatRule, Suite
from workbench.suite.problems import Problem
from workbench.tools.python_reference import PythonFunctions
from workbench.trajectory.recording import SUFFIX, Recording, RecordingError, read_recording, recordings_in

_logger = logging.getLogger(__name__)


class RegradingJudges:
    """The judges of runs that are regraded. With a model `chosen`, that model and those that checks name are asked
    for judgements that are not known; without it, no model is asked. Use it on one event loop, and close it there."""

    def __init__(self, program: Program, approval: Approval, chosen: str | None = None) -> None:
        self.approval = approval
        self._program = program
        self._chosen = chosen
        self.asks = chosen is not None
        self._cache = JudgementCache(program.folders.judgements, program.secrets)
        self._endpoints = Endpoints(program.secrets)
        self._under_way: Questions = {}

    def of(self, planned: PlannedRun, recorded: Iterable[Judgement]) -> RunJudge:
        """Return the judge of one run, who knows the judgements of its recording."""
        path, specs = planned.file.path, self.approval.specs

        def open_model(spec: ModelSpec) -> Model:
            why_not = self.approval.why_not_asked(path, spec)
            if why_not is not None:
                raise ModelError(why_not)
            return self._endpoints.open(spec, specs.environment_at(path))

        asking = Asking(open_model, under_way=self._under_way) if self.asks else None
        return RunJudge(partial(specs.judge_of, path), self._cache, asking, recorded=recorded, chosen=self._chosen)

    async def close(self) -> None:
        """Close all connections."""
        await self._endpoints.close()


@dataclass(frozen=True)
class RunToGrade:
    """A recording, the result stored in it, and the valid suite and the case to grade it by. `given`: it is none, but
    was made of a file of calls, and was never graded."""

    recording: Recording
    recorded: RunResult
    file: SuiteFile
    case: Case
    given: bool = False


async def regrade(runs: Iterable[RunToGrade], judges: RegradingJudges) -> list[RunResult]:
    """Grade recorded runs and return their results in the same order. A run that ended in an error keeps its error.
    Closes the judges at the end."""
    results: dict[int, RunResult] = {}
    functions: dict[Path, PythonFunctions] = {}
    waiting = enumerate(runs)

    async def work() -> None:
        for place, each in waiting:
            results[place] = await _regrade(each, judges, functions)
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise asyncio.CancelledError  # grading makes a stopped run of it, and the others are not to begin

    try:
        # Judges answer side by side; what grading itself takes would only be shared, and the time limit with it.
        await asyncio.gather(*(work() for _ in range(DEFAULT_CONCURRENCY if judges.asks else 1)))
    finally:
        await judges.close()
    return [results[place] for place in sorted(results)]


async def _regrade(run: RunToGrade, judges: RegradingJudges, functions: dict[Path, PythonFunctions]) -> RunResult:
    header, trajectory = run.recording.header, run.recording.trajectory
    planned = PlannedRun(header.run, run.file, run.case, header.model, header.repeat)
    grant = judges.approval.grant(run.file.path)
    python = functions.setdefault(run.file.path, PythonFunctions(grant.code if grant is not None else None))
    recorded = run.recorded
    if recorded.status == "skipped":  # it was never made
        return replace(recorded, grading=planned.settings.grading)
    why_not = why_not_regraded(recorded, run.case, as_stored=run.file.path == run.recording.path)
    if why_not is not None:
        return replace(recorded, grading=planned.settings.grading, not_regraded=why_not)
    judge = judges.of(planned, recorded.judgements)
    result = await graded(planned, trajectory, python.answer, judge)
    return replace(result, cost_usd=recorded.cost_usd, redacted=recorded.redacted)


def graded_anew(result: RunResult, planned: PlannedRun, context: CheckContext) -> RunResult:
    """Return the result of a finished run graded by the case of `planned`, without asking a model or a tool. A run that
    was stopped, timed out or broke keeps its result. Blocks while the checks run."""
    result = replace(result, grading=planned.settings.grading)
    finish = result.trajectory.finish
    if finish is None or finish.reason in ("error", "timed out", "stopped"):
        return result
    why_not = why_not_regraded(result, planned.case, as_stored=False)
    if why_not is not None:
        return replace(result, not_regraded=why_not)
    try:
        graded = graded_run(planned.suite, planned.case, result.trajectory, context=context)
    except (CheckError, GradingError) as error:
        return _not_graded(result, str(error))
    except Exception as error:
        _logger.exception("grading run %s of case %s anew", planned.run_id, planned.case.id)
        return _not_graded(result, f"grading: unexpected {type(error).__name__}: {error}; the log holds the details")
    why_not = WHY_NOT_GRADED if graded.status == "not graded" else None
    return replace(result, **graded._asdict(), error=why_not)


def _not_graded(result: RunResult, error: str) -> RunResult:
    return replace(result, status="error", grades=(), steps=(), metrics=(), valid_arguments=(), error=error)


@dataclass(frozen=True, kw_only=True)
class GradeOptions:
    """Which recordings are regraded, and by what: `suite` replaces the suites in them, `by` is the grader that
    decides, `repeat_rule` the rule that joins repeats, `judge` the model that judges what was not judged before;
    without it no model is asked. `calls` are files of calls, which are graded by the cases of `suite`."""

    paths: tuple[Path, ...] = ()
    calls: tuple[Path, ...] = ()
    suite: Path | None = None
    by: GraderName | None = None
    repeat_rule: RepeatRule | None = None
    min_score: float | None = None
    judge: str | None = None


class BrokenSuiteError(RecordingError):
    """The suite by which recordings are to be graded has errors; `problems` has them."""

    def __init__(self, file: SuiteFile) -> None:
        super().__init__(f"correct the suite of {file.path} first")
        self.problems: tuple[Problem, ...] = tuple(file.errors)


@dataclass(frozen=True)
class RegradePlan:
    """The recordings to grade again, each once. `problems` say why others cannot be."""

    runs: tuple[RunToGrade, ...]
    options: GradeOptions
    program: Program
    problems: tuple[Notice, ...] = ()

    @property
    def files(self) -> tuple[SuiteFile, ...]:
        """The suites that recordings are graded by, each once."""
        return tuple({id(run.file): run.file for run in self.runs}.values())

    def needs(self) -> Needs:
        """What grading would call, and which judges it would ask."""
        cases = ((run.file, run.case) for run in self.runs)
        return Needs.of_grading(cases, self.program, judges=self.options.judge is not None)


def plan_grading(options: GradeOptions, program: Program) -> RegradePlan:
    """Read the recordings and the files of calls. Raises RecordingError where none can be graded, since the
    suite cannot be used."""
    now = _valid(load_suite(options.suite)) if options.suite is not None else None
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
            problems += [*(Notice(str(each), "warning") for each in error.problems), Notice(str(error))]
        except RecordingError as error:
            problems.append(Notice(str(error)))
    for path in options.calls if now is not None else ():
        from workbench.evaluation.calls_file import read_calls, runs_given  # on use: its models take time to build

        assert now is not None
        try:
            made, wrong = runs_given(read_calls(path), now, path, options.by, options.repeat_rule)
        except RecordingError as error:
            problems.append(Notice(str(error)))
            continue
        runs += (RunToGrade(each.recording, each.recorded, now, each.case, given=True) for each in made)
        problems += [Notice(f"{path}: {each}") for each in wrong]
    return RegradePlan(tuple(runs), options, program, tuple(problems))


def grade_recordings(plan: RegradePlan, approval: Approval) -> Report:
    """Grade the recordings, on an event loop of this thread. Returns the report, with the verdicts of each run before
    and after."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    judges = RegradingJudges(plan.program, approval, plan.options.judge)
    results, suites = _by_suite(plan.runs, asyncio.run(regrade(plan.runs, judges)))
    secrets = plan.program.secrets
    return Report(
        runs=tuple(
            FinishedRun(place, run.case, result)
            for place, (run, result) in enumerate(zip(plan.runs, results, strict=True))
        ),
        suites=suites,
        started_at=started_at,
        min_score=plan.options.min_score,
        incomplete=bool(plan.problems),
        suite_of=_recorded_suite,
        line_of=lines_of(run.file for run in plan.runs if run.file.path != run.recording.path),
        regraded=tuple(
            Regraded(
                str(run.recording.path),
                run.recorded if run.recording.complete else None,
                shown_result(result, secrets),
            )
            for run, result in zip(plan.runs, results, strict=True)
            if not run.given
        ),
        secrets=secrets,
    )


def _files(path: Path) -> list[Path]:
    """Return the file of a path, or the recordings in a folder. Raises RecordingError when there are none."""
    try:
        found = recordings_in(path) if path.is_dir() else [path]
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}") from error
    if not found:
        raise RecordingError(f"{path} contains no recording: *{SUFFIX}")
    return found


def _by_suite(runs: Sequence[RunToGrade], results: Sequence[RunResult]) -> tuple[list[RunResult], dict[str, Suite]]:
    """Return the results, those of one recorded suite under the path of the first, and each suite by that path: each
    recording has its own path, and holds only one of its suite's cases."""
    paths: dict[tuple[str, str], str] = {}
    suites: dict[str, Suite] = {}
    cases: dict[str, dict[str, Case]] = {}
    under_paths: list[RunResult] = []
    for run, result in zip(runs, results, strict=True):
        assert run.file.suite is not None
        by_itself = run.file.path == run.recording.path
        path = paths.setdefault((_recorded_suite(result), "") if by_itself else ("", result.suite), result.suite)
        suites.setdefault(path, run.file.suite)
        cases.setdefault(path, {}).setdefault(run.case.id, run.case)
        under_paths.append(replace(result, suite=path))
    return under_paths, {
        path: suite.model_copy(update={"cases": tuple(cases[path].values())}) for path, suite in suites.items()
    }


def _recorded_suite(result: RunResult) -> str:
    """Return the hash of the recorded suite."""
    start = result.trajectory.start
    return start.suite_hash if start is not None else result.suite


def _valid(file: SuiteFile) -> SuiteFile:
    if file.suite is None:
        raise BrokenSuiteError(file)
    return file
