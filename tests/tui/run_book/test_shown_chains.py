"""Steps of chains, forks, and how a run a person changed ends, as they are shown."""

from __future__ import annotations

from tests.results import result
from tests.trajectory.scripts import stamped
from tests.tui.run_book.shown_runs import ASKED, CHANGED, START, WRITTEN, answered, called, received, screen_of, view_of
from workbench.grading.grade import CallPairing, Grade, Issue, RunResult, StepGrade
from workbench.grading.status import Status
from workbench.show.spans import plain
from workbench.show.views.run_view import RunView
from workbench.suite.expected_calls import ExpectedCall
from workbench.trajectory.events import (
    CallEdited,
    EventPayload,
    Forked,
    MessageAdded,
    Paused,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    Resumed,
    RunFinished,
    StepStarted,
    TextDelta,
)
from workbench.trajectory.fold import fold
from workbench.tui.trajectory.run_lines import RunLines


def steps() -> RunView:
    view = RunView()
    view.steps = 3
    happenings: list[EventPayload] = [
        START,
        StepStarted(1, "Be brief."),
        RequestStarted(1),
        *called("a", "lock", x=1),
        answered(1),
        received("a"),
        StepStarted(2, "Be kind.", "Now dim."),
        RequestStarted(2),
        TextDelta(2, "No."),
        ResponseFinished(2, "answered", None, None, 5.0),
        StepStarted(3, None),
    ]
    for event in stamped(happenings):
        view.add(event)
    return view


def test_each_step_has_a_heading_its_own_system_prompt_and_its_message() -> None:
    assert screen_of(steps()) == [
        "   system Be brief.",
        "   tools  1 offered: set_lights",
        "",
        " step 1 of 3",
        " 1 user   Dim.",
        " 2 model  5 ms",
        "   → lock",
        "      x  1",
        "   ← suite mock · 12 ms  ok",
        "",
        " step 2 of 3",
        "   system Be kind.",
        " 3 user   Now dim.",
        " 4 model  5 ms",
        "   No.",
        "",
        " step 3 of 3",
        "   no system prompt",
    ]


def graded_steps() -> RunResult:
    pairings = (CallPairing(0, 0, True, 1.0, 1.0), CallPairing(1, None, False, 0.0, 1.0))
    judged = (
        StepGrade(1, Status.PASSED, 1.0, "right", 0, (), 0),
        StepGrade(
            2, Status.FAILED, 0.0, "no call was made", None, (Issue("missing call", "none", expected_call=1),), 1
        ),
        StepGrade(3, None, None, "never reached"),
    )
    graded = result(Status.FAILED, 0.5, grade=Grade("critics", 0.5, Status.FAILED, "", pairings))
    return RunResult(**{**{name: getattr(graded, name) for name in RunResult.__slots__}, "steps": judged})


def test_graded_steps_have_their_sign_score_and_why_and_missing_calls_stand_in_their_step() -> None:
    view = steps()
    view.grade(graded_steps(), [(("steps", 0), ExpectedCall(tool="lock")), (("steps", 1), ExpectedCall(tool="dim"))])
    said = screen_of(view)
    assert " step 1 of 3  ✓ passed 1.00" in said
    failed = said.index(" step 2 of 3  ✗ failed 0.00")
    assert said[failed + 1] == "   no call was made"
    assert said.index("   ○ dim  expected, never called") == said.index("   No.") + 1
    assert " - step 3 was never reached" in said


def test_a_step_is_found_by_its_number() -> None:
    lines = RunLines(steps(), 60)
    line = lines.step_start(2)
    assert line is not None
    assert plain(lines.line(line)) == " step 2 of 3"
    assert lines.step_start(4) is None


def test_what_a_fork_replays_says_so_and_makes_up_no_times() -> None:
    told = [START, RequestStarted(1), TextDelta(1, "Dimming."), *called(), answered()]
    replayed = ResultReceived("a", "ok", False, "replayed", 12.0)
    view = view_of(*told, replayed, Forked("run-7", "m", 2), RequestStarted(2), TextDelta(2, "Done."), answered(2))
    said = screen_of(view, 80)
    assert " 2 model  replayed" in said
    assert "   ← replayed  ok" in said
    assert "   ↳ forked from the run on m before round 2; live from here on" in said
    assert " 3 model  5 ms" in said
    assert not any("12 ms" in line for line in said)


def test_what_a_fork_does_not_call_is_missing_behind_where_it_begins() -> None:
    told = [START, RequestStarted(1), *called(), answered(), ResultReceived("a", "ok", False, "replayed", 12.0)]
    own: list[EventPayload] = [RequestStarted(2), TextDelta(2, "Done."), answered(2), RunFinished("answered")]
    view = view_of(*told, Forked("run-7", "m", 2), *own)
    pairings = (CallPairing(0, 0, True, 1.0, 1.0), CallPairing(1, None, False, 0.0, 1.0))
    view.grade(result(Status.FAILED, 0.5, grade=Grade("critics", 0.5, Status.FAILED, "", pairings)))
    said = screen_of(view, 80)
    fork = said.index("   ↳ forked from the run on m before round 2; live from here on")
    assert any("expected, never called" in line for line in said[fork:])


def test_the_end_says_how_much_a_person_changed_and_how_long_it_was_held() -> None:
    happenings = [
        *ASKED,
        Paused("step by step", "a", "call", 1),
        CallEdited("a", CHANGED, WRITTEN),
        MessageAdded("Now!"),
        Resumed(12_000.0),
        received(),
        RunFinished("answered"),
    ]
    view = view_of(*happenings)
    graded = result(
        Status.FAILED, 0.5, grade=Grade("critics", 0.5, Status.FAILED, ""), trajectory=fold(stamped(happenings))
    )
    view.grade(graded)
    said = screen_of(view, 90)
    assert " ✎ graded by what the model wrote itself; a person changed 1 thing" in said
    assert " ✎ the model never read the last message of a person: no request followed it" in said
    assert said[-1] == "   1 round · 1 call · model 5 ms · held 12.0 s"
