"""How the `critics` grader compares a plain value: the actual value is first cast to the type of the expected one."""

from __future__ import annotations

from pydantic import JsonValue

from workbench.suite.checks import Equals


def by_casting(check: Equals, value: JsonValue) -> bool:
    """The rule without `arcade_compatible`: casts that cannot surprise. Never raises but RecursionError.

    A boolean matches the texts true and false in any case, and 1 and 0; an integer matches `"5"` and 5.0, not 5.9; a
    number its text; a text what Python writes for the value; null only null. Containers are compared by value.
    """
    expected = check.equals
    if type(expected) is type(value) or not check.cast or expected is None or value is None:
        return expected == value
    if isinstance(expected, bool):
        return _as_boolean(value) is expected
    if isinstance(expected, int) and isinstance(value, float):
        return expected == value
    try:
        return expected == _cast(expected, value)
    except OverflowError:
        return False


def by_arcade_casting(check: Equals, value: JsonValue) -> bool:
    """Arcade's binary critic. Raises OverflowError where that fails with an error.

    The expected value itself is never cast, so the text `None` matches nothing, while it lets null match `None`.
    """
    expected = check.equals
    if not check.cast:
        return expected == value
    actual = None if value == "None" else value
    if expected is None or expected == "None" or actual is None:
        return expected == actual
    return expected == _cast(expected, actual)


def _as_boolean(value: JsonValue) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower())
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    return None


def _cast(expected: JsonValue, value: JsonValue) -> JsonValue:
    """`type(expected)(value)` as Python casts, or the value itself where Python cannot; OverflowError goes through."""
    try:
        if isinstance(expected, bool):
            return bool(value)
        if isinstance(expected, str):
            return str(value)
        if isinstance(expected, int):
            return int(value)  # type: ignore[arg-type]
        if isinstance(expected, float):
            return float(value)  # type: ignore[arg-type]
        if isinstance(expected, list):
            return list(value)  # type: ignore[arg-type]
        if isinstance(expected, dict):
            return dict(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    return value
