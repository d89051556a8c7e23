"""A graded chain as its run shows it: at each call the status of its step, at the end the result of the chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.chains import chain_happenings, step_happenings
from tests.trajectories import CallSpec
from tests.trajectory.scripts import stamped
from workbench.grading.grade import RunResult
from workbench.grading.run import grade_run_and_steps
from workbench.show.spans import plain
from workbench.show.views.run_grade import expected_of
from workbench.show.views.run_view import RunView
from workbench.suite.model import Case, Suite
from workbench.trajectory.events import (
    EventPayload,
    Message,
    Paused,
    Regenerated,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    RetryScheduled,
    RunFinished,
    RunStarted,
    StepStarted,
    TextDelta,
)
from workbench.trajectory.fold import fold
from workbench.tui.grades.lines import grade_page
from workbench.tui.grades.state import GradesState
from workbench.tui.trajectory.run_lines import RunLines

WEATHER: CallSpec = ("weather", {"city": "Oslo"})
TASK: CallSpec = ("task", {"title": "Pack"})
STEPS = [{"user": "Go.", "tool": "weather", "args": {"city": "Oslo"}}, {"tool": "task", "args": {"title": "Pack"}}]
STOPPED = RunFinished("step failed")


def graded(happenings: Sequence[EventPayload], **case: Any) -> tuple[Case, RunResult]:
    read = Case.model_validate({"name": "Sum", "steps": STEPS, **case})
    trajectory = fold(stamped(happenings))
    grades, status, steps = grade_run_and_steps(Suite(format=1, name="S"), read, trajectory)
    return read, RunResult("r", "s", "sum", "Sum", "m", 0, status, trajectory, grades, steps=steps)


def run_pane(happenings: Sequence[EventPayload], **case: Any) -> list[str]:
    view = RunView()
    for event in stamped(happenings):
        view.add(event)
    read, result = graded(happenings, **case)
    view.grade(result, expected_of(read))
    return said(view)


def said(view: RunView) -> list[str]:
    lines = RunLines(view, 120)
    lines.settle(0, 1_000)
    return [plain(lines.line(index)).rstrip() for index in range(lines.count)]


def grades_screen(happenings: Sequence[EventPayload], **case: Any) -> str:
    return "\n".join(plain(line).rstrip() for line in grade_page(GradesState(*graded(happenings, **case)), 100).lines)


def below(lines: Sequence[str], heading: str) -> list[str]:
    """Return the lines under a step's heading without its messages."""
    start = next(at for at, line in enumerate(lines) if line.startswith(heading))
    end = next(at for at in range(start + 1, len(lines)) if not lines[at])
    return [line.strip() for line in lines[start:end] if not line[1:2].isdigit()]


def test_a_call_that_is_right_for_another_step_is_wrong_where_it_was_made() -> None:
    shown = run_pane(chain_happenings([TASK], [WEATHER]))
    assert below(shown, " step 1") == [
        "step 1 of 2  ✗ failed 0.00",
        "selection: 'task' called where 'weather' was expected",
        "→ task",
        'title  "Pack"',
        '! wrong tool: expected weather(city="Oslo"), got task(title="Pack")',
        '← step mock · 1 ms  {"ok": true}',
    ]
    assert not [line for line in shown if line.endswith('" ✓')]


def test_the_call_too_many_is_marked_in_its_step_and_the_one_that_came_too_early_is_missing_in_its_own() -> None:
    shown = run_pane(chain_happenings([WEATHER, TASK], []))
    assert below(shown, " step 1")[3:] == [
        'city  "Oslo"  ✓',
        '← step mock · 1 ms  {"ok": true}',
        "→ task",
        'title  "Pack"',
        '! extra call: got task(title="Pack") (it matches no expected call)',
        '← step mock · 1 ms  {"ok": true}',
    ]
    assert below(shown, " step 2")[-2:] == ["○ task  expected, never called", 'task(title="Pack")']


def test_that_steps_failed_is_said_once_at_the_end() -> None:
    shown = run_pane(chain_happenings([TASK], [WEATHER]))
    assert [line for line in shown if "the chain" in line] == [" ✗ steps 1 and 2 failed, and with them the chain"]
    assert not [line for line in shown if "failed step" in line]


def test_what_a_step_expects_that_was_never_reached_is_not_missing() -> None:
    shown = run_pane(chain_happenings([TASK], ending=STOPPED), stop_on_failure=True)
    assert " - step 2 was never reached" in shown
    assert not [line for line in shown if "never called" in line or "missing call" in line]


def test_the_grades_have_the_issues_of_each_step_below_it_and_say_in_which_step_a_call_was_made() -> None:
    shown = grades_screen(chain_happenings([WEATHER, TASK], ending=STOPPED), stop_on_failure=True)
    steps = shown.partition("Steps, each on its own")[2].partition("Expected")[0]
    assert '! extra call: call 2 task: got task(title="Pack")' in steps
    assert "step 2     –  never reached" in steps
    (made,) = [line for line in shown.split("\n") if line.startswith(" step 2  task")]
    assert "→ call 2 in step 1 task" in made
    assert shown.count("extra call") == 1


def test_the_grades_say_once_which_steps_failed() -> None:
    shown = grades_screen(chain_happenings([TASK], [WEATHER]))
    assert shown.partition("Fails the run, whatever the score")[2] == (
        "\n ✗ steps 1 and 2 failed, and with them the chain"
    )


START = RunStarted("h", "c", "C", "m", "Be brief.", (Message("user", "Go."),), ())


def answer_after(*between: EventPayload) -> list[EventPayload]:
    """Return the events of a chain of one step with its own prompt, up to the request after it."""
    step = [StepStarted(1, "Be kind."), *step_happenings(1, [WEATHER])[1:]]
    answered = ResponseFinished(2, "answered", None, None, 5.0)
    return [START, *step, *between, RequestStarted(2), TextDelta(2, "Snow."), answered]


RETRIED = (RequestStarted(2), RequestFailed(2, "busy"), RetryScheduled(2, 2, 1.0, "busy"))
AGAIN = (RequestStarted(2), TextDelta(2, "Rain."), ResponseFinished(2, "answered", None, None, 5.0), Regenerated(2))


@pytest.mark.parametrize("between", [(), RETRIED, AGAIN, (Paused("breakpoint", None, "request", 2),)])
def test_the_request_for_the_final_answer_has_a_heading_and_its_prompt_and_belongs_to_no_step(
    between: Sequence[EventPayload],
) -> None:
    view = RunView()
    for event in stamped(answer_after(*between)):
        view.add(event)
    shown = said(view)
    at = shown.index(" answer")
    assert shown[at - 1 : at + 2] == ["", " answer", "   system Be brief."]
    assert shown.count(" answer") == 1
    assert view.items[-1] is not None
    place = view.place(len(view.items) - 1)
    assert place is not None
    assert (place.round, place.step) == (2, None)


def test_a_step_without_a_prompt_says_so_below_its_heading() -> None:
    view = RunView()
    for event in stamped([START, StepStarted(1, None), RequestStarted(1), *step_happenings(2, [])]):
        view.add(event)
    shown = said(view)
    assert shown.count("   no system prompt") == 2
    assert shown[shown.index(" step 1") + 1] == "   no system prompt"
