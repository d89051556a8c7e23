"""Arguments that a model gives, as far as everything behind the engine can hold them."""

from __future__ import annotations

import math
from dataclasses import replace

from workbench.trajectory.events import CallFinished
from workbench.trajectory.messages import JsonValue

MAX_DEPTH = 100
"""Levels of nesting. Real tools need a handful; JSON and pydantic give up at some hundreds."""


def usable(finished: CallFinished) -> CallFinished:
    """The call as it is, or as one with broken arguments when they are nested too deeply or hold what JSON lacks."""
    problem = _problem(dict(finished.arguments))
    if problem is None:
        return finished
    return replace(finished, arguments={}, raw=finished.raw or f"({problem})", problem=problem)


def _problem(value: JsonValue) -> str | None:
    level: list[JsonValue] = [value]
    for _ in range(MAX_DEPTH):
        if any(isinstance(item, float) and not math.isfinite(item) for item in level):
            return "a number that JSON does not have: not finite"
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return None
    return f"nested more than {MAX_DEPTH} levels deep"


def _inside(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
