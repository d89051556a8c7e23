"""An action for one hold of a run is done there or not at all, with a message, and the typed text stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from tests.tui.stepped import editor, held, shown, stepped, typed
from workbench.engine.checkpoint import AddMessage, EditArguments
from workbench.engine.plan import PlannedRun
from workbench.trajectory.events import (
    CallFinished,
    CallStarted,
    EventPayload,
    Paused,
    Regenerated,
    RequestStarted,
    ResponseFinished,
    Resumed,
)

ELSEWHERE = "the run has moved on to another stop"


async def asked_again(app: Opened, run: PlannedRun) -> None:
    """The answer is set aside, and the new one calls another tool under the same id."""
    happenings: list[EventPayload] = [
        Resumed(1.0),
        Regenerated(1),
        RequestStarted(1),
        CallStarted(1, "c1", "lock_door"),
        CallFinished("c1", {"door": "front"}),
        ResponseFinished(1, "tool calls", None, 1.0, 2.0),
        Paused("step by step", "c1", "call", 1),
    ]
    app.session.say(run, *happenings, first=len(shown(app).events))
    await app.settle()


@pytest.mark.slow
async def test_what_was_typed_for_a_call_is_shown_with_the_reason_and_never_sent_to_another(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(160, 36)) as app:
        run = await stepped(app)
        await held(app, run)
        await app.press("e")
        await typed(app, '{"brightness": 1}')
        await app.press("escape")
        await asked_again(app, run)
        await app.press("e")
        assert (editor(app).held_text.title, editor(app).text) == ("Arguments of set_lights", '{"brightness": 1}')
        assert f"{ELSEWHERE}: this was not sent" in app.screen
        await app.press("ctrl+s")
        assert f"Not sent, but kept: {ELSEWHERE}" in app.screen
        await app.press("escape", "e")
        assert (editor(app).held_text.title, editor(app).text) == ("Arguments of lock_door", '{\n  "door": "front"\n}')
        await typed(app, '{"door": "back"}')
        await app.press("ctrl+s")
        assert app.session.done == [(run.run_id, EditArguments({"door": "back"}))]


async def test_an_editor_that_stays_open_while_its_round_is_asked_again_says_so_and_sends_nothing(
    tmp_path: Path,
) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(160, 36)) as app:
        run = await stepped(app)
        await held(app, run)
        await app.press("e")
        await typed(app, '{"brightness": 1}')
        await asked_again(app, run)
        assert f"{ELSEWHERE}: this was not sent" in app.screen
        await app.press("ctrl+s")
        assert app.session.done == []
        assert editor(app).text == '{"brightness": 1}'


@pytest.mark.slow
async def test_a_message_that_was_not_sent_can_be_sent_at_a_later_stop(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        run = await stepped(app)
        await held(app, run)
        await app.press("I", *"Wait", "escape")
        await asked_again(app, run)
        await app.press("I", "enter")
        assert app.session.done == [(run.run_id, AddMessage("Wait"))]


@pytest.mark.parametrize("key", first_of(["s", "c", "right_curly_bracket", "D", "L"], 2))
async def test_keys_pressed_for_a_stop_that_is_over_do_nothing_and_say_so(tmp_path: Path, key: str) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        run = await stepped(app)
        await held(app, run)
        app.session.held[run.run_id] += 10  # of which the app has not heard yet
        await app.press(key)
        assert f"Nothing was done: {ELSEWHERE}" in app.screen
        assert not app.session.gone_on and not app.session.done


async def test_what_was_typed_for_a_stop_that_is_over_is_refused_and_kept(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        run = await stepped(app)
        await held(app, run)
        app.session.held[run.run_id] += 10
        await app.press("i", *"dark", "enter")
        assert f"Not sent, but kept: {ELSEWHERE}" in app.screen
        assert app.session.done == []
        assert editor(app).text == "dark"


async def test_a_text_is_sent_once_however_often_that_is_asked_for_before_the_answer(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        run = await stepped(app)
        await held(app, run)
        await app.press("I", *"Wait")
        app.session.slow = True
        await app.pilot.press("enter", "enter", "ctrl+s", "escape")
        await app.pilot.pause()
        assert app.session.done == [(run.run_id, AddMessage("Wait"))]
        assert editor(app).text == "Wait"
        (answer,) = app.session.answers
        answer.set_result(None)
        await app.settle()
        assert "The model reads this before its next request" in app.screen
        assert app.app.main.run_pane.editor is None
        await app.press("I")
        assert editor(app).text == ""
