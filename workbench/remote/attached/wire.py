"""What is said over the socket of a batch: JSON lines, in both directions, which `docs/detached.md` describes. All that
a batch says is without secrets when it comes here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.dataclasses import compact_json, parsed_json, reader_of
from workbench.engine.events import BatchEvent, JudgeAsked, RequestPutOff, RunDone, StartUp
from workbench.history.packing import grading_text
from workbench.remote.attached.records import PROTOCOL
from workbench.trajectory.events import RetryScheduled
from workbench.version import __version__


class WireError(ValueError):
    """A line that nobody of this protocol says; the message says why, without quoting the line."""


def packed(**message: object) -> bytes:
    """A message as a line."""
    return f"{compact_json(message)}\n".encode()


def unpacked(line: bytes) -> Mapping[str, Any]:
    """The message of a line. Raises WireError."""
    try:
        message = parsed_json(line.decode())
    except ValueError as error:
        raise WireError(f"not JSON ({error})") from None
    if not isinstance(message, dict):
        raise WireError("not an object")
    return message


def greeting(**more: object) -> bytes:
    """How each side begins: which protocol it speaks, and its version."""
    return packed(protocol=PROTOCOL, version=__version__, **more)


def begun_line(place: int, ago_ms: float) -> bytes:
    """The run at a place of the plan is under way, since so many milliseconds; its events follow."""
    return packed(place=place, begun_ago_ms=round(ago_ms))


def event_line(place: int, line: str) -> bytes:
    """An event of the run at a place of the plan, without secrets, given as a line of a recording."""
    return f'{{"place":{place},"event":{line}}}\n'.encode()


def done_line(place: int, line: str, done: RunDone) -> bytes:
    """The end of a run; `line` is the last line of its recording."""
    result = done.result
    more = {"cost_usd": result.cost_usd, "grading": grading_text(result.grading)}
    more |= {"began_ms": done.began_ms, "ended_ms": done.ended_ms}
    return f'{{"place":{place},"done":{line},{compact_json(more)[1:]}\n'.encode()


def news_line(event: BatchEvent, place: int | None, redact: Any) -> bytes | None:
    """What happens beside the events of runs; `None` for what no viewer shows. `redact` takes secrets out of values."""
    match event:
        case StartUp(number, what, took_ms):
            return packed(start_up={"number": number, "what": redact(what), "took_ms": took_ms})
        case JudgeAsked(_, judge, values, again):
            return packed(place=place, judge=redact({"judge": judge, "values": values, "again": again}))
        case RequestPutOff(_, wait_s):
            return packed(place=place, put_off=wait_s)
        case _:
            return None


def news_of(message: Mapping[str, Any], run_id: str) -> BatchEvent | None:
    """The event of such a line; `None` for a line that says something else. Raises ValueError or LookupError."""
    if "start_up" in message:
        event: BatchEvent = reader_of(StartUp)(message["start_up"])
        return event
    if "judge" in message:
        asked = message["judge"]
        again = reader_of(RetryScheduled)(asked["again"]) if asked["again"] is not None else None
        return JudgeAsked(run_id, str(asked["judge"]), int(asked["values"]), again)
    if "put_off" in message:
        return RequestPutOff(run_id, float(message["put_off"]))
    return None
