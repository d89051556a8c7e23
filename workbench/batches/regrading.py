"""Grading a recorded run again: by the case in its recording, or by that case as it is written now."""

from __future__ import annotations

import asyncio

from workbench.batches.plan import PlannedRun
from workbench.batches.single import graded, result_of
from workbench.grading.grade import RunResult
from workbench.suite.loading import SuiteFile
from workbench.suite.model import Case, Suite
from workbench.suite.trust import needs_trust
from workbench.suite.unbuilt import unbuilt_parts
from workbench.tools.python_reference import PythonFunctions
from workbench.trajectory.recording import Recording, RecordingError


def case_in(file: SuiteFile, recording: Recording) -> Case:
    """The case of a recording in a sound suite; raises RecordingError when that has none of its id."""
    cases = file.suite.cases if file.suite is not None else ()
    wanted = recording.header.case
    for case in cases:
        if case.id == wanted:
            return case
    ids = ", ".join(case.id for case in cases)
    raise RecordingError(f"{recording.path} is a run of the case {wanted!r}, and {file.path} has no such case: {ids}")


def grading_needs_trust(file: SuiteFile, case: Case) -> bool:
    """Whether grading a run of the case calls Python functions of the suite. Nothing else of it is started."""
    return file.suite is not None and bool(needs_trust(_graded_by(file.suite, case), file.path).python)


def regrade(recording: Recording, file: SuiteFile, case: Case, *, trusted: bool) -> RunResult:
    """Grade a recorded run by a case of a sound suite. A run that ended in an error keeps it.

    Not to be called on an event loop.
    """
    header = recording.header
    planned = PlannedRun(header.run, file, case, header.model, header.repeat)
    checking = _graded_by(planned.suite, case)
    parts = unbuilt_parts(checking, checking.cases[0])
    if parts:
        said = f"this version cannot grade {', '.join(parts)} yet"
        return result_of(planned, "error", recording.trajectory, error=said)
    functions = PythonFunctions(file.path.parent, trusted=trusted)
    return asyncio.run(graded(planned, recording.trajectory, functions.answer))


def _graded_by(suite: Suite, case: Case) -> Suite:
    """What of a suite takes part in grading a case: not its other cases, nor what starts and answers tools."""
    alone = case.model_copy(update={"mocks": ()})
    return suite.model_copy(update={"servers": (), "mocks": (), "cases": (alone,)})
