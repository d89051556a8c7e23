"""One step back from a hold: the run is held at the earlier place in the same pane, and no call is executed twice."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.tui.apps import NEEDY, SMART_HOME, Opened, opened, opening, suites_in
from tests.tui.stepped import held, shown, stepped
from workbench.engine.fork import ForkPoint
from workbench.trajectory.events import (
    CallEdited,
    CallFinished,
    CallStarted,
    Paused,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    Resumed,
)
from workbench.tui.runs.dialogs import TrustScreen

SERVERS = Path(__file__).parents[2] / "tools" / "servers"
COUNTING = """
format = 1
name = "Looking"
execute = true

[[servers]]
name = "counting"
command = ["python", "counting.py"]

[[cases]]
name = "Look"
user = "Look at the place roof."
[[cases.ordered]]
tool = "look"
"""


async def held_at(app: Opened, place: str) -> None:
    await app.until(lambda: (run := app.app.main.selection.run) is not None and run.is_held and place in app.screen)


@pytest.mark.slow
async def test_steps_lead_back_to_the_first_hold_and_execute_nothing_again(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, looking=COUNTING)
    for name in ("counting.py", "plain.py"):
        shutil.copy(SERVERS / name, suites)
    async with opened(suites, live=True, trust=True, size=(120, 40)) as app:
        await app.press("s")
        await held_at(app, "held before the request of round 1")
        first = shown(app)
        await app.press("3", "left_curly_bracket")
        assert "This is the first place where the run was held" in app.screen
        assert shown(app) is first
        for place in ("held before look", "held after the result of look", "held before the request of round 2"):
            await app.press("s")
            await held_at(app, place)
        assert "look 1: " in app.screen
        await app.press("left_curly_bracket")
        await held_at(app, "held after the result of look")
        assert "Back after the result of look, in a fork, which counts for no case" in app.screen
        assert "look 1: " in app.screen, "replayed"
        again = shown(app)
        assert again is not first
        assert app.app.main.selection.runs == [again], "the abandoned run is gone"
        await app.press("left_curly_bracket")
        await held_at(app, "held before look")
        assert "look 1: " not in app.screen
        await app.press("s")
        await held_at(app, "held after the result of look")
        assert "look 2: " in app.screen, "executed anew, by the server that still runs"
        await app.press("left_curly_bracket")
        await held_at(app, "held before look")
        await app.press("left_curly_bracket")
        await held_at(app, "held before the request of round 1")
        await app.press("left_curly_bracket")
        assert "This is the first place where the run was held" in app.screen
        await app.press("c")
        await app.until(lambda: shown(app).result is not None)
        assert shown(app).status == "passed"
        case = shown(app).path, shown(app).case_id
        assert app.app.main.selection.book.summary(case).status is None, "neither run counts for the case"
        assert app.app.main.selection.book.by_model.of(case) == {}
        audit = app.app.services.program.folders.audit_log.read_text(encoding="utf-8")
        assert audit.count('"tool": "look"') + audit.count('"tool":"look"') == 3 * 2, audit


async def test_what_was_changed_at_the_hold_is_undone_and_what_was_before_stays(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        run = await stepped(app)
        await held(app, run, "request")
        app.session.say(
            run,
            Resumed(1.0),
            RequestStarted(1),
            CallStarted(1, "c1", "set_lights"),
            CallFinished("c1", {"room": "bedroom"}),
            ResponseFinished(1, "tool calls", None, 1.0, 2.0),
            Paused("step by step", "c1", "call", 1),
            CallEdited("c1", {"room": "hall"}, {"room": "bedroom"}),
            Resumed(1.0),
            ResultReceived("c1", "dimmed", False, "case mock", 1.0),
            Paused("step by step", "c1", "result", 1),
            first=2,
        )
        await app.settle()
        await app.press("3")
        (back,) = await app.run("left_curly_bracket")
        assert back.fork is not None
        assert (back.fork.at, back.fork.held_again_at, app.session.until) == (ForkPoint(1, 0), "call", ["stop", "stop"])
        (call,) = back.fork.origin.calls
        assert (call.edited, call.result) == (None, None), "as it was when the run came there"
        assert app.session.stopped == [run.run_id]
        assert shown(app).run_id == back.run_id
        app.session.say(back, opening(back))
        await app.settle()
        await app.press("left_curly_bracket")
        assert "The run is not held" in app.screen
        assert len(app.session.runs) == 2


async def test_a_step_back_that_is_not_trusted_leaves_the_run_as_it_is(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, needy=NEEDY)
    async with opened(suites, trust=False) as app:
        app.app.services.starter._trust._all_of_them = True
        run = await stepped(app)
        app.app.services.starter._trust._all_of_them = False
        app.session.say(
            run,
            opening(run),
            Paused("step by step", None, "request", 1),
            Resumed(1.0),
            RequestStarted(1),
            CallStarted(1, "c1", "look"),
            CallFinished("c1", {}),
            ResponseFinished(1, "tool calls", None, 1.0, 2.0),
            Paused("step by step", "c1", "call", 1),
        )
        await app.settle()
        await app.press("3")
        before = shown(app)
        await app.pilot.press("left_curly_bracket")
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        await app.press("escape")
        await app.until(lambda: "No step back: needy.toml is not trusted" in app.screen)
        assert shown(app) is before
        assert before.is_held
        assert app.session.stopped == []
