"""The displayed lines of runs, and short names for their events."""

from __future__ import annotations

from collections.abc import Sequence

from tests.trajectory.scripts import stamped
from workbench.show.spans import plain
from workbench.show.views.run_view import RunView
from workbench.trajectory.events import (
    CallFinished,
    CallStarted,
    EventPayload,
    JsonValue,
    Message,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    RunStarted,
    ToolDefinition,
)
from workbench.tui.trajectory.run_lines import RunLines

EVERYTHING = 1_000_000
"""A number of lines above that of any run in these tests."""

START = RunStarted("h", "c", "C", "m", "Be brief.", (Message("user", "Dim."),), (ToolDefinition("set_lights"),))
WRITTEN: dict[str, JsonValue] = {"room": "hall", "brightness": 60, "speed": 2}
CHANGED: dict[str, JsonValue] = {"room": "hall", "brightness": 20, "scene": "movie"}


def called(
    call_id: str = "a", tool: str = "set_lights", round_number: int = 1, **arguments: object
) -> list[EventPayload]:
    return [CallStarted(round_number, call_id, tool), CallFinished(call_id, arguments or WRITTEN)]  # type: ignore[arg-type]


def answered(number: int = 1) -> ResponseFinished:
    return ResponseFinished(number, "tool calls", None, None, 5.0)


def received(call_id: str = "a", content: str = "ok") -> ResultReceived:
    return ResultReceived(call_id, content, False, "suite mock", 12.0)


ASKED: Sequence[EventPayload] = (START, RequestStarted(1), *called(), answered())


def view_of(*happenings: EventPayload) -> RunView:
    view = RunView()
    for event in stamped(happenings):
        view.add(event)
    return view


def screen_of(view: RunView, width: int = 60, *, expanded: bool = False) -> list[str]:
    return shown_by(RunLines(view, width), expanded=expanded)


def shown_by(lines: RunLines, *, expanded: bool = False) -> list[str]:
    for index in range(len(lines.view.items)) if expanded else ():
        lines.toggle(index)
    lines.settle(0, EVERYTHING)
    return [plain(lines.line(index)).rstrip() for index in range(lines.count)]


def lines_with(view: RunView, text: str, *, expanded: bool = False) -> list[str]:
    return [line for line in screen_of(view, expanded=expanded) if text in line]
