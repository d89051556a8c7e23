"""Grades recordings again without running anything: finds them, reads what grades each, and says what moved."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from workbench.batches.plan import decided_by
from workbench.batches.recorded import result_of_recording, suite_of_recording
from workbench.config.program import Program
from workbench.evaluation.approval import Approval, Needs
from workbench.evaluation.plan import FinishedRun, Notice
from workbench.evaluation.regrade import RegradingJudges, ToRegrade, case_in, regrade
from workbench.evaluation.report import Report
from workbench.grading.grade import RunResult
from workbench.reports.moves import Regraded
from workbench.suite.loading import SuiteFile, load_suite
from workbench.suite.model import Case, GraderName, Suite
from workbench.suite.problems import Problem
from workbench.trajectory.recording import SUFFIX, Recording, RecordingError, read_recording, recordings_in


@dataclass(frozen=True, kw_only=True)
class GradeOptions:
    """Which recordings are graded again, and by what: `suite` stands for the suites in them, `by` is the grader that
    decides, `judge` the model that judges what was not judged before; without it none is asked."""

    paths: tuple[Path, ...]
    suite: Path | None = None
    by: GraderName | None = None
    min_score: float | None = None
    judge: str | None = None


class BrokenSuiteError(RecordingError):
    """The suite by which recordings are to be graded has errors; `problems` has them."""

    def __init__(self, file: SuiteFile) -> None:
        super().__init__(f"correct the suite of {file.path} first")
        self.problems: tuple[Problem, ...] = tuple(file.errors)


@dataclass(frozen=True)
class RecordedRun:
    """A recording, what its run came to, and the valid suite and the case to grade it by."""

    recording: Recording
    recorded: RunResult
    file: SuiteFile
    case: Case


@dataclass(frozen=True)
class RegradePlan:
    """The recordings to grade again, each once. `problems` say why others cannot be."""

    runs: tuple[RecordedRun, ...]
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
    """Read the recordings. Raises RecordingError where none can be graded, since the suite cannot be used."""
    now = _valid(load_suite(options.suite)) if options.suite is not None else None
    runs: list[RecordedRun] = []
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
            case = case_in(file, recording)
            by = options.by
            runs.append(RecordedRun(recording, recorded, file, case if by is None else decided_by(case, by)))
        except BrokenSuiteError as error:
            problems += [*(Notice(str(each), "warning") for each in error.problems), Notice(str(error))]
        except RecordingError as error:
            problems.append(Notice(str(error)))
    return RegradePlan(tuple(runs), options, program, tuple(problems))


def grade_recordings(plan: RegradePlan, approval: Approval) -> tuple[Report, tuple[Regraded, ...]]:
    """Grade the recordings, on an event loop of this thread. Returns the report, and each run with its verdicts before
    and after."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    judges = RegradingJudges(plan.program, approval, plan.options.judge)
    wanted = [ToRegrade(run.recording, run.file, run.case) for run in plan.runs]
    results, suites = _by_suite(plan.runs, asyncio.run(regrade(wanted, judges)))
    report = Report(
        runs=tuple(
            FinishedRun(place, run.case, result)
            for place, (run, result) in enumerate(zip(plan.runs, results, strict=True))
        ),
        suites=suites,
        started_at=started_at,
        min_score=plan.options.min_score,
        incomplete=bool(plan.problems),
        suite_of=_recorded_suite,
        secrets=plan.program.secrets,
    )
    regraded = (
        Regraded(str(run.recording.path), run.recorded if run.recording.complete else None, after)
        for run, after in zip(plan.runs, report.shown, strict=True)
    )
    return report, tuple(regraded)


def _files(path: Path) -> list[Path]:
    """The file of that path, or the recordings of a folder; raises RecordingError."""
    try:
        found = recordings_in(path) if path.is_dir() else [path]
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}") from error
    if not found:
        raise RecordingError(f"{path} contains no recording: *{SUFFIX}")
    return found


def _by_suite(runs: Sequence[RecordedRun], results: Sequence[RunResult]) -> tuple[list[RunResult], dict[str, Suite]]:
    """The results, those of one recorded suite under the path of the first, and each suite by that path: a recording
    has a path of its own, and of its suite's cases only one."""
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
    """The hash of the suite that was recorded."""
    start = result.trajectory.start
    return start.suite_hash if start is not None else result.suite


def _valid(file: SuiteFile) -> SuiteFile:
    if file.suite is None:
        raise BrokenSuiteError(file)
    return file
