"""Grading a recorded run again: by the case in its recording, or by that case as it is written now."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from workbench.batches.plan import PlannedRun
from workbench.batches.recordings import result_of_recording
from workbench.batches.rejudging import RegradingJudges
from workbench.batches.single import graded, result_of
from workbench.checks.errors import CheckError
from workbench.checks.evaluate import Outside
from workbench.grading.errors import GradingError
from workbench.grading.grade import RunResult
from workbench.grading.run import grade_run
from workbench.suite.loading import SuiteFile
from workbench.suite.model import Case, GraderName, Suite
from workbench.suite.trust import needs_trust
from workbench.suite.unbuilt import unbuilt_parts
from workbench.tools.python_reference import PythonFunctions
from workbench.trajectory.recording import Recording, RecordingError

_logger = logging.getLogger(__name__)


def case_in(file: SuiteFile, recording: Recording) -> Case:
    """The case of a recording in a sound suite; raises RecordingError when that has none of its id."""
    cases = file.suite.cases if file.suite is not None else ()
    wanted = recording.header.case
    for case in cases:
        if case.id == wanted:
            return case
    ids = ", ".join(case.id for case in cases)
    raise RecordingError(f"{recording.path} is a run of the case {wanted!r}, and {file.path} has no such case: {ids}")


def decided_by(case: Case, grader: GraderName) -> Case:
    """The same case with another grader to decide its status."""
    return case.model_copy(update={"grading": case.grading.model_copy(update={"by": grader})})


def grading_needs_trust(file: SuiteFile, case: Case) -> bool:
    """Whether grading a run of the case calls Python functions of the suite. Nothing else of it is started."""
    return file.suite is not None and bool(needs_trust(_graded_by(file.suite, case), file.path).python)


def regrade(
    recording: Recording, file: SuiteFile, case: Case, *, trusted: bool, judges: RegradingJudges | None = None
) -> RunResult:
    """Grade a recorded run by a case of a sound suite. A run that ended in an error keeps it.

    Not to be called on an event loop.
    """
    header = recording.header
    planned = PlannedRun(header.run, file, case, header.model, header.repeat)
    if parts := unbuilt_parts(case):
        said = f"this version cannot grade {', '.join(parts)} yet"
        return result_of(planned, "error", recording.trajectory, error=said)
    functions = PythonFunctions(file.path.parent, trusted=trusted)

    async def grade() -> RunResult:
        if judges is None:
            return await graded(planned, recording.trajectory, functions.answer)
        async with judges.of(planned, result_of_recording(recording).judgements, trusted=trusted) as judge:
            return await graded(planned, recording.trajectory, functions.answer, judge)

    return asyncio.run(grade())


def graded_anew(result: RunResult, planned: PlannedRun, outside: Outside) -> RunResult:
    """A run that is over, graded by a case as it is now, which `planned` holds: no model and no tool is asked. A run
    that did not come to its end keeps what it came to. Takes as long as the checks do, those in `outside` included."""
    result = replace(result, grading=planned.settings.grading)
    finish = result.trajectory.finish
    if finish is None or finish.reason in ("error", "timed out", "stopped"):
        return result
    if parts := unbuilt_parts(planned.case):
        return _not_graded(result, f"this version cannot grade {', '.join(parts)} yet")
    try:
        grades, status = grade_run(planned.suite, planned.case, result.trajectory, outside=outside)
    except (CheckError, GradingError) as error:
        return _not_graded(result, str(error))
    except Exception as error:
        _logger.exception("grading run %s of case %s anew", planned.run_id, planned.case.id)
        said = f"grading: unexpected {type(error).__name__}: {error}; the log holds the details"
        return _not_graded(result, said)
    return replace(result, status=status, grades=grades, error=None)


def _not_graded(result: RunResult, error: str) -> RunResult:
    return replace(result, status="error", grades=(), error=error)


def _graded_by(suite: Suite, case: Case) -> Suite:
    """What of a suite takes part in grading a case: not its other cases, nor what starts and answers tools."""
    alone = case.model_copy(update={"mocks": ()})
    return suite.model_copy(update={"servers": (), "mocks": (), "cases": (alone,)})
