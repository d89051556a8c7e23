"""The run pane during stepping: it follows the holds unless the user looks elsewhere."""

from __future__ import annotations

from pathlib import Path

from tests.trajectory.scripts import stamped
from tests.tui.apps import SMART_HOME, Opened, assert_golden, opened, opening, suites_in
from workbench.engine.plan import PlannedRun
from workbench.show.spans import plain
from workbench.show.views.run_view import RunPlace
from workbench.trajectory.events import (
    CallEdited,
    CallFinished,
    CallStarted,
    EventPayload,
    JsonValue,
    MessageAdded,
    Paused,
    Regenerated,
    RequestStarted,
    ResponseFinished,
    ResultEdited,
    ResultReceived,
    Resumed,
    RunFinished,
    TextDelta,
    Usage,
)
from workbench.trajectory.fold import fold

WRITTEN: dict[str, JsonValue] = {"room": "living room", "brightness": 60, "speed": 2}
CHANGED: dict[str, JsonValue] = {"room": "living room", "brightness": 20, "scene": "movie"}


def until_the_call(run: PlannedRun) -> list[EventPayload]:
    """A run whose first answer was set aside, held before the first of the two calls of its second one."""
    first: list[EventPayload] = [CallStarted(1, "a", "set_tv"), CallFinished("a", {"power": "off"})]
    second: list[EventPayload] = [
        *(CallStarted(1, "a", "set_lights"), CallFinished("a", WRITTEN)),
        *(CallStarted(1, "b", "set_tv"), CallFinished("b", {"power": "on"})),
    ]
    answered = ResponseFinished(1, "tool calls", Usage(120, 38), 96.0, 412.0)
    return [
        *(opening(run), RequestStarted(1), *first, answered),
        *(Paused("step by step", "a", "call", 1), MessageAdded("Lights first."), Resumed(900.0), Regenerated(1)),
        *(RequestStarted(1), TextDelta(1, "Dimming."), *second, answered),
        *(Paused("breakpoint: tool set_lights", "a", "call", 1), CallEdited("a", CHANGED, WRITTEN)),
    ]


def until_the_end() -> list[EventPayload]:
    return [
        *(Resumed(12_000.0), ResultReceived("a", "dim", False, "suite mock", 12.0)),
        *(Paused("step by step", "a", "result", 1), ResultEdited("a", "broken", True, "dim", False), Resumed(800.0)),
        *(ResultReceived("b", "on", False, "edited", 0.0), RequestStarted(2), TextDelta(2, "Done.")),
        *(ResponseFinished(2, "answered", Usage(171, 12), 80.0, 301.0), RunFinished("answered")),
    ]


def line_under_cursor(app: Opened) -> str:
    pane = app.app.main.run_pane.run_list
    return plain(pane.line_at(pane.cursor)).strip()


async def test_a_stepped_run_is_shown_where_it_is_held_and_with_what_was_changed(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        (run,) = await app.run("r")
        happenings = until_the_call(run)
        app.session.say(run, *happenings)
        await app.press("3")
        assert line_under_cursor(app) == "‖ held before set_lights"
        assert app.app.main.run_pane.run_list.place == RunPlace(1, "a", 0, 0)
        assert_golden(app.screen, "held-80x24")
        after = until_the_end()
        app.session.say(run, *after, first=len(happenings))
        app.session.grade(run, fold(stamped([*happenings, *after], run.run_id)))
        await app.settle()
        assert_golden(app.screen, "stepped-80x24")


async def test_what_is_read_elsewhere_stays_and_going_to_the_held_place_follows_again(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 10)) as app:
        (run,) = await app.run("r")
        happenings = until_the_call(run)
        app.session.say(run, *happenings)
        await app.press("3", "home")
        pane = app.app.main.run_pane.run_list
        said = line_under_cursor(app)
        after = until_the_end()
        app.session.say(run, *after[:4], first=len(happenings))
        await app.settle()
        assert line_under_cursor(app) == said
        assert pane.go_to_held()
        await app.settle()
        assert line_under_cursor(app) == "‖ held after the result of set_lights"
        assert pane.place == RunPlace(1, "a", 0, 1, after_result=True)
        app.session.say(run, *after[4:-2], first=len(happenings) + 4)
        await app.settle()
        assert line_under_cursor(app) == "Done."
        assert not pane.go_to_held()
