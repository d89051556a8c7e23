"""Recorded runs as they are opened again: the suite in a recording, and what its run came to."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches

from workbench.batches.cost import FREE, cost_of
from workbench.batches.plan import PlannedRun, grader_named, with_grader
from workbench.grading.grade import RunResult
from workbench.grading.judgements import NOBODY_ASKED, JudgeUse
from workbench.grading.result_json import outcome_from_json
from workbench.providers.built_in import is_built_in
from workbench.suite.loading import SuiteFile, parse_suite
from workbench.suite.model import GRADERS, Case, Suite
from workbench.suite.variants import UnknownVariantError, model_of, variant_of
from workbench.trajectory.events import CallEdited, MessageAdded, Paused, ResultEdited
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.recording import Recording, RecordingError

_MAX_NAMED_CASES = 5
"""How many cases of a suite a message names at most; there is one message for each recording."""


def suite_of_recording(recording: Recording) -> SuiteFile:
    """The suite in a recording, as if it stood where the recording does; its problems are in it. It has the recorded
    case alone, except where that could not be cut out of the suite's text. The case is graded by what graded the run.

    Raises RecordingError when that is no grader of this program.
    """
    header = recording.header
    file = parse_suite(header.suite.text, recording.path)
    if header.by is None or file.suite is None:
        return file
    by = grader_named(header.by)
    if by is None:
        raise RecordingError(f"{recording.path} was graded by {header.by!r}, which is not one of {', '.join(GRADERS)}")
    cases = tuple(with_grader(case, by) if case.id == header.case else case for case in file.suite.cases)
    return replace(file, suite=file.suite.model_copy(update={"cases": cases}))


def case_of_recording(recording: Recording, file: SuiteFile) -> Case:
    """Return the case of a recording in a valid suite. Raises RecordingError when the suite has no case of its id,
    or lacks its variant."""
    cases = file.suite.cases if file.suite is not None else ()
    wanted = recording.header.case
    for case in cases:
        if case.id == wanted:
            if file.suite is not None:
                _must_have_variant(recording, file.suite)
            return case
    ids = [case.id for case in cases]
    if len(ids) <= _MAX_NAMED_CASES:
        its_cases = f": {', '.join(ids)}"
    else:
        near = get_close_matches(wanted, ids, n=1)
        its_cases = f" among its {len(ids):,}{f': did you mean {near[0]!r}?' if near else ''}"
    raise RecordingError(
        f"{recording.path} is a run of the case {wanted!r}, but {file.path} has no such case{its_cases}"
    )


def _must_have_variant(recording: Recording, suite: Suite) -> None:
    try:
        variant_of(suite, recording.header.model)
    except UnknownVariantError as error:
        raise RecordingError(f"{recording.path} is a run of a variant, but {error}") from None


def run_of_recording(recording: Recording, file: SuiteFile) -> tuple[PlannedRun, RunResult] | None:
    """The recorded run as it was planned, and what it came to; `file` is what `suite_of_recording` gives. `None` where
    that does not have the case.

    Raises RecordingError when its result is none, or when the suite lacks its variant.
    """
    header = recording.header
    cases = file.suite.cases if file.suite is not None else ()
    case = next((case for case in cases if case.id == header.case), None)
    if case is None:
        return None
    assert file.suite is not None
    _must_have_variant(recording, file.suite)
    planned = PlannedRun(header.run, file, case, header.model, header.repeat, by=grader_named(header.by))
    return planned, replace(result_of_recording(recording), grading=planned.settings.grading)


def result_of_recording(recording: Recording) -> RunResult:
    """The recorded run with the grades it was given; without a result it ended in an error that says so.

    Raises RecordingError when its result is none.
    """
    header, start = recording.header, recording.trajectory.start
    try:
        outcome = outcome_from_json(recording.result or (_HELD if _is_held(recording) else _CUT))
    except ValueError as error:
        raise RecordingError(f"{recording.path}: its result cannot be read: {error}") from error
    return RunResult(
        run_id=header.run,
        suite=str(recording.path),
        case_id=header.case,
        case_name=start.case_name if start is not None else header.case,
        model=header.model,
        repeat=header.repeat,
        status=outcome.status,
        trajectory=recording.trajectory,
        grades=outcome.grades,
        error=outcome.error,
        cost_usd=cost_of(recording.trajectory, FREE if is_built_in(model_of(header.model)) else None),
        judgements=outcome.judgements,
        steps=outcome.steps,
        redacted=outcome.redacted,
        metrics=outcome.metrics,
        valid_arguments=outcome.valid_arguments,
    )


def judging_of_recording(recording: Recording) -> JudgeUse:
    """Return what it took to ask judges about a recorded run when it was made. Raises RecordingError."""
    try:
        return outcome_from_json(recording.result or _CUT).judging or NOBODY_ASKED
    except ValueError as error:
        raise RecordingError(f"{recording.path}: its result cannot be read: {error}") from error


_CUT: dict[str, JsonValue] = {
    "status": "error",
    "error": "the recording ends before the run does",
    "score": None,
    "grades": [],
}

_HELD: dict[str, JsonValue] = _CUT | {"error": "the recording ends where the run was held"}


def _is_held(recording: Recording) -> bool:
    """Whether a recording ends while its run was held."""
    whats = (event.payload for event in reversed(recording.events))
    last = next((what for what in whats if not isinstance(what, CallEdited | ResultEdited | MessageAdded)), None)
    return isinstance(last, Paused) and last.at != "permission"
