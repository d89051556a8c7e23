"""Decides whether a breakpoint holds a run at a point, and describes why."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

from workbench.checks.check import Checks
from workbench.checks.values import describe_value
from workbench.engine.breakpoint_text import breakpoint_line
from workbench.engine.breakpoints import Breakpoint
from workbench.engine.checkpoint import At, HoldPoint
from workbench.trajectory.messages import JsonValue

_AT: Mapping[str, At] = {"error": "result", "round": "request"}
"""Where the kinds of breakpoints hold a run. The kinds that are not listed hold it before a call."""

Holds = Callable[[Checks, Mapping[str, JsonValue]], Awaitable[bool]]
"""Answers whether the checks of a condition hold for arguments. Raises ConditionError."""

Failing = Callable[[HoldPoint], Awaitable[str | None]]
"""Returns which check of the case the next call fails, in a few words; `None` when it fails none. Raises
ConditionError."""


class ConditionError(Exception):
    """It cannot be decided whether a breakpoint holds a run. The message says why."""


async def why_break(breakpoints: Iterable[Breakpoint], point: HoldPoint, holds: Holds, failing: Failing) -> str | None:
    """Returns why a run is held at a point, by the first breakpoint that matches; `None` when none does. Cheap
    breakpoints are evaluated first. A condition that cannot be evaluated holds the run too, with the error as the
    reason."""
    for each in sorted((each for each in breakpoints if _is_about(each, point)), key=_cost):
        try:
            why = await _why(each, point, holds, failing)
        except ConditionError as error:
            return f"breakpoint {breakpoint_line(each)} cannot be evaluated: {error}"
        if why is not None:
            return f"breakpoint: {why}"
    return None


def _is_about(each: Breakpoint, point: HoldPoint) -> bool:
    """Returns whether an enabled breakpoint can hold a run at a point, judged without evaluating its condition."""
    if not each.enabled or point.at != _AT.get(each.on, "call"):
        return False
    if each.on == "round":
        return each.round == point.round
    call = point.call
    if call is None or each.tool not in (None, call.tool):
        return False
    if each.on == "error":
        result = call.result
        return result is not None and result.is_error and result.source not in ("edited", "skipped")
    return each.on != "not-read-only" or point.tool is None or point.tool.annotations.get("readOnlyHint") is not True


def _cost(each: Breakpoint) -> int:
    return 2 if each.on == "failed-check" else int(each.when is not None)


async def _why(each: Breakpoint, point: HoldPoint, holds: Holds, failing: Failing) -> str | None:
    if each.on == "round":
        return f"round {point.round}"
    assert point.call is not None
    tool, arguments = point.call.tool, point.call.sent.arguments
    match each.on:
        case "error":
            return f"error of {tool}"
        case "not-read-only":
            return f"{tool} is not marked read-only"
        case "failed-check":
            return await failing(point)
        case _:
            when = each.when or {}
            if when and not await holds(when, arguments):
                return None
            values = (f"{name} {describe_value(arguments[name])}" for name in when if name in arguments)
            return ", ".join((f"tool {tool}", *values))
