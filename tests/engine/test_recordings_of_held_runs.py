"""Recordings of held runs: their content and their grades."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from workbench.config.secrets import NO_SECRETS
from workbench.engine.plan import plan_runs
from workbench.engine.planned_run import grade_planned_run
from workbench.engine.recordings import case_of_recording, result_of_recording, save_recording, suite_of_recording
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import (
    CallEdited,
    CallFinished,
    CallStarted,
    Event,
    EventPayload,
    MessageAdded,
    Paused,
    RequestStarted,
    Resumed,
    RunStarted,
)
from workbench.trajectory.recording import Recording, read_recording

SUITE = parse_suite('format = 1\nname = "S"\n\n[[cases]]\nname = "Dim"\nuser = "Dim."\n', Path("s.toml"))
BEGUN: tuple[EventPayload, ...] = (
    RunStarted(SUITE.hash, "dim", "Dim", "offline", None, (), ()),
    RequestStarted(1),
    CallStarted(1, "c1", "set_lights"),
    CallFinished("c1", {"brightness": 60}),
)
HELD = Paused("step by step", "c1", "call", 1)
EDITED = CallEdited("c1", {"brightness": 5}, {"brightness": 60})


def saved(folder: Path, happenings: Sequence[EventPayload]) -> Recording:
    """Save an unfinished run, and read the file."""
    (planned,) = plan_runs([SUITE])
    events = [Event(planned.run_id, number, float(number), what) for number, what in enumerate(happenings)]
    began = "2026-11-22T10:00:00.000+00:00"
    return read_recording(save_recording(folder, planned, events, None, started_at=began, secrets=NO_SECRETS))


@pytest.mark.parametrize(
    ("last", "why"),
    [
        ((HELD,), "the recording ends where the run was held"),
        ((HELD, EDITED, MessageAdded("Wait.")), "the recording ends where the run was held"),
        ((HELD, Resumed(1.0)), "the recording ends before the run does"),
        ((Paused("may it be executed?", "c1"),), "the recording ends before the run does"),
    ],
)
def test_a_run_that_was_not_over_says_so(tmp_path: Path, last: Sequence[EventPayload], why: str) -> None:
    result = result_of_recording(saved(tmp_path, (*BEGUN, *last)))
    assert (result.status, result.error, result.grades) == ("error", why, ())


def test_what_was_changed_while_it_was_held_is_in_it(tmp_path: Path) -> None:
    recording = saved(tmp_path, (*BEGUN, HELD, EDITED))
    (call,) = recording.trajectory.calls
    assert (call.arguments, call.sent.arguments) == ({"brightness": 60}, {"brightness": 5})
    assert not recording.complete


async def test_it_is_graded_as_a_run_that_never_ended(tmp_path: Path) -> None:
    recording = saved(tmp_path, (*BEGUN, HELD))
    file = suite_of_recording(recording)
    (planned,) = plan_runs([file], case_ids=[case_of_recording(recording, file).id])
    result = await grade_planned_run(planned, recording.trajectory, lambda reference, value: None)
    assert (result.status, result.error) == ("error", "the run never ended")
