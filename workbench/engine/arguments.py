"""Checks whether the arguments of a model's call can be processed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace

from workbench.limits import MAX_JSON_LEVELS
from workbench.trajectory.events import CallFinished, JsonValue


def usable(finished: CallFinished) -> CallFinished:
    """Returns the call unchanged, or marked as broken when its arguments are nested too deeply or hold what JSON
    lacks."""
    problem = problem_of(finished.arguments)
    if problem is None:
        return finished
    return replace(finished, arguments={}, raw=finished.raw or _written(finished.arguments, problem), problem=problem)


def _written(arguments: Mapping[str, JsonValue], problem: str) -> str:
    """Returns an approximate text of a call's arguments when the original text is not available."""
    try:
        return json.dumps(dict(arguments), ensure_ascii=False)
    except RecursionError:
        return f"({problem})"


def problem_of(arguments: Mapping[str, JsonValue]) -> str | None:
    """Returns why arguments cannot be used; `None` when they can."""
    level: list[JsonValue] = [dict(arguments)]
    for _ in range(MAX_JSON_LEVELS):
        if any(isinstance(item, float) and not math.isfinite(item) for item in level):
            return "a number that is not finite"
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return None
    return MAX_JSON_LEVELS.exceeded()


def _inside(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
