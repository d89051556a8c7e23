"""The equality rules of the `critics` grader, which casts the actual value to the type of the expected one."""

from __future__ import annotations

from pydantic import JsonValue

from workbench.checks.value_kinds import Equals
from workbench.checks.values import json_equal, spelled_number


def by_casting(check: Equals, value: JsonValue) -> bool:
    """The rule without `arcade_compatible`: casts without surprises.

    A boolean equals the texts true and false in any case; an integer its JSON text and 5.0, but not 5.9; a number its
    JSON text; a text what Python writes for a number or a boolean. Everything else is compared as JSON: null equals
    only null, a boolean is no number, and containers are not cast.
    """
    expected = check.equals
    if check.cast and isinstance(value, str) and isinstance(expected, bool):
        return value.lower() == str(expected).lower()
    if check.cast and isinstance(value, str) and isinstance(expected, int | float):
        number = spelled_number(value)
        return number == expected and (isinstance(number, int) or isinstance(expected, float))
    if check.cast and isinstance(expected, str) and isinstance(value, bool | int | float):
        return expected == str(value)
    return json_equal(expected, value)


def by_arcade_casting(check: Equals, value: JsonValue) -> bool:
    """Arcade's binary critic. Raises OverflowError where Arcade's fails with an error.

    The expected value itself is never cast, so the text `None` matches nothing, while null matches `None`.
    """
    expected = check.equals
    if not check.cast:
        return expected == value
    actual = None if value == "None" else value
    if expected is None or expected == "None" or actual is None:
        return expected == actual
    return expected == _cast(expected, actual)


def _cast(expected: JsonValue, value: JsonValue) -> JsonValue:
    """Returns `type(expected)(value)`, or the value itself where Python cannot cast it. Raises OverflowError."""
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
