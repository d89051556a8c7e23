"""Two runs of one case with the same beginning and different ends, for tests of both side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from workbench.engine.plan import PlannedRun, plan_runs
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import (
    CallFinished,
    CallStarted,
    Event,
    EventPayload,
    JsonValue,
    Message,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolDefinition,
    Usage,
)
from workbench.tui.run_book.record import RunRecord

SUITE = """
format = 1
name = "Travel"

[[cases]]
name = "Fly to London"
user = "Book a flight to London."
"""

BOOKED: dict[str, JsonValue] = {"flight": "BA 700", "class": "economy", "bags": 1}
UPGRADED: dict[str, JsonValue] = {"flight": "BA 700", "class": "business", "seat": "12A"}
CHEAP = "Done: the flight is booked in economy."
DEAR = "Done: the flight is booked in business, seat 12A, and a message about it is on its way to you. " * 3


def flight(*, dear: bool, rounds: int = 3) -> Iterator[EventPayload]:
    """Yield the events of a run that searches for some rounds, then books and reports. With `dear`, it books another
    flight and sends a message."""
    yield RunStarted("h", "c", "Fly to London", "m", "Be brief.", (Message("user", "Book it."),), (_tool("search"),))
    for number in range(1, rounds + 1):
        yield from _round(number, f"s{number}", "search", {"day": number}, '{"flights": []}')
    number = rounds + 1
    price = '{"price": 420}' if dear else '{"price": 120}'
    yield from _round(number, "b", "book", UPGRADED if dear else BOOKED, price)
    if dear:
        number += 1
        yield from _round(number, "m", "send_message", {"to": "me"}, "no such address", is_error=True)
    yield RequestStarted(number + 1)
    yield TextDelta(number + 1, DEAR if dear else CHEAP)
    yield ResponseFinished(number + 1, "answered", Usage(500, 20), 80.0, 301.0)
    yield RunFinished("answered")


def record_with(happenings: Iterator[EventPayload], model: str = "m", repeat: int = 0) -> RunRecord:
    """Return the record of a run. The record treats the run as unfinished, whatever its events are."""
    record = RunRecord(_planned(model, repeat), started_at="2026-11-22T10:00:00.000+00:00")
    for number, what in enumerate(happenings):
        record.add(Event(record.run_id, number, float(number), what))
    return record


def _planned(model: str, repeat: int) -> PlannedRun:
    return plan_runs([parse_suite(SUITE, Path("travel.toml"))], models=[model], repeats=repeat + 1)[-1]


def _tool(name: str) -> ToolDefinition:
    return ToolDefinition(name, "")


def _round(
    number: int, call_id: str, tool: str, arguments: dict[str, JsonValue], content: str, *, is_error: bool = False
) -> Iterator[EventPayload]:
    yield RequestStarted(number)
    yield CallStarted(number, call_id, tool)
    yield CallFinished(call_id, arguments)
    yield ResponseFinished(number, "tool calls", Usage(120, 38), 96.0, 412.0)
    yield ResultReceived(call_id, content, is_error, "case mock", 12.0)
