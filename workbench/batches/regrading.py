"""Grading a recorded run again: by the case in its recording, or by that case as it is written now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from workbench.batches.plan import PlannedRun
from workbench.batches.recorded import result_of_recording
from workbench.batches.rejudging import RegradingJudges
from workbench.batches.single import graded
from workbench.checks.describe import CheckError
from workbench.checks.evaluate import CheckContext
from workbench.config.models import DEFAULT_CONCURRENCY
from workbench.grading.errors import GradingError
from workbench.grading.grade import RunResult
from workbench.grading.redacted import why_not_regraded
from workbench.grading.run import grade_run_and_steps
from workbench.suite.loading import SuiteFile
from workbench.suite.model import Case
from workbench.tools.python_reference import PythonFunctions
from workbench.trajectory.recording import Recording, RecordingError

_logger = logging.getLogger(__name__)

NAMED_CASES_MAX = 5
"""Cases of a suite that a message names: it is said of every recording."""


def case_in(file: SuiteFile, recording: Recording) -> Case:
    """The case of a recording in a sound suite; raises RecordingError when that has none of its id."""
    cases = file.suite.cases if file.suite is not None else ()
    wanted = recording.header.case
    for case in cases:
        if case.id == wanted:
            return case
    ids = [case.id for case in cases]
    if len(ids) <= NAMED_CASES_MAX:
        there_are = f": {', '.join(ids)}"
    else:
        near = get_close_matches(wanted, ids, n=1)
        there_are = f" among its {len(ids):,}{f': did you mean {near[0]!r}?' if near else ''}"
    raise RecordingError(
        f"{recording.path} is a run of the case {wanted!r}, and {file.path} has no such case{there_are}"
    )


@dataclass(frozen=True)
class ToRegrade:
    """A recorded run, and the sound suite and the case to grade it by."""

    recording: Recording
    file: SuiteFile
    case: Case


async def regrade(runs: Iterable[ToRegrade], judges: RegradingJudges) -> list[RunResult]:
    """Grade recorded runs, in their order, with what was approved for the judges. A run that ended in an error keeps
    it. Closes the judges in the end."""
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


async def _regrade(run: ToRegrade, judges: RegradingJudges, functions: dict[Path, PythonFunctions]) -> RunResult:
    header, trajectory = run.recording.header, run.recording.trajectory
    planned = PlannedRun(header.run, run.file, run.case, header.model, header.repeat)
    grant = judges.approval.grant(run.file.path)
    python = functions.setdefault(run.file.path, PythonFunctions(grant.code if grant is not None else None))
    recorded = result_of_recording(run.recording)
    why_not = why_not_regraded(recorded, run.case, as_stored=run.file.path == run.recording.path)
    if why_not is not None:
        return replace(recorded, grading=planned.settings.grading, not_regraded=why_not)
    judge = judges.of(planned, recorded.judgements)
    result = await graded(planned, trajectory, python.answer, judge)
    return replace(result, cost_usd=recorded.cost_usd, redacted=recorded.redacted)


def graded_anew(result: RunResult, planned: PlannedRun, context: CheckContext) -> RunResult:
    """A run that is over, graded by a case as it is now, which `planned` holds: no model and no tool is asked. A run
    that did not come to its end keeps what it came to. Takes as long as the checks do, those in `outside` included."""
    result = replace(result, grading=planned.settings.grading)
    finish = result.trajectory.finish
    if finish is None or finish.reason in ("error", "timed out", "stopped"):
        return result
    why_not = why_not_regraded(result, planned.case, as_stored=False)
    if why_not is not None:
        return replace(result, not_regraded=why_not)
    try:
        grades, status, steps = grade_run_and_steps(planned.suite, planned.case, result.trajectory, context=context)
    except (CheckError, GradingError) as error:
        return _not_graded(result, str(error))
    except Exception as error:
        _logger.exception("grading run %s of case %s anew", planned.run_id, planned.case.id)
        said = f"grading: unexpected {type(error).__name__}: {error}; the log holds the details"
        return _not_graded(result, said)
    return replace(result, status=status, grades=grades, steps=steps, error=None)


def _not_graded(result: RunResult, error: str) -> RunResult:
    return replace(result, status="error", grades=(), steps=(), error=error)
