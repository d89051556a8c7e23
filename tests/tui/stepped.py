"""A case that is stepped through in the app, held at chosen places."""

from __future__ import annotations

from textual.events import Paste

from tests.tui.apps import Opened, opening
from workbench.engine.plan import PlannedRun
from workbench.trajectory.events import (
    CallFinished,
    CallStarted,
    EventPayload,
    HoldPlace,
    Paused,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
)
from workbench.tui.holds.held_editor import HeldEditor
from workbench.tui.run_book.record import RunRecord


async def stepped(app: Opened) -> PlannedRun:
    """Start the case under the cursor step by step."""
    (run,) = await app.run("s")
    return run


async def held(app: Opened, run: PlannedRun, at: HoldPlace = "call", answer: str = "dimmed\n") -> None:
    """Hold a run before its first request, before a call of set_lights, or after the call's result."""
    happenings: list[EventPayload] = [opening(run)]
    if at != "request":
        call = CallFinished("c1", {"room": "bedroom", "brightness": 60})
        happenings += [RequestStarted(1), CallStarted(1, "c1", "set_lights"), call]
        happenings += [ResponseFinished(1, "tool calls", None, 1.0, 2.0)]
    if at == "result":
        happenings.append(ResultReceived("c1", answer, False, "case mock", 1.0))
    app.session.say(run, *happenings, Paused("step by step", None if at == "request" else "c1", at, 1))
    await app.settle()


def shown(app: Opened) -> RunRecord:
    run = app.app.main.selection.run
    assert run is not None
    return run


def editor(app: Opened) -> HeldEditor:
    found = app.app.main.run_pane.editor
    assert found is not None
    return found


async def typed(app: Opened, text: str) -> None:
    """Replace the text in the editor."""
    await app.press("f7")
    app.app.post_message(Paste(text))
    await app.settle()
