"""Equality of JSON values: by the rule of JSON, and by Python's."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import JsonValue

from workbench.checks.kinds import Equals

EqualsRule = Callable[[Equals, JsonValue], bool]
"""Compares an `equals` check (or a plain value) with a value. May raise what the comparison raises."""


def json_equal(left: JsonValue, right: JsonValue) -> bool:
    """Compare two JSON values deeply: numbers by value (5 = 5.0, integers exactly), and a boolean is never a number.

    The order of an object's keys does not matter, that of a list does. Works without recursion, at any depth.
    """
    if isinstance(left, str):
        return left == right
    pending: list[tuple[JsonValue, JsonValue]] = [(left, right)]
    while pending:
        a, b = pending.pop()
        if isinstance(a, dict):
            if not isinstance(b, dict) or a.keys() != b.keys():
                return False
            pending.extend((value, b[key]) for key, value in a.items())
        elif isinstance(a, list):
            if not isinstance(b, list) or len(a) != len(b):
                return False
            pending.extend(zip(a, b, strict=True))
        elif isinstance(a, bool) is not isinstance(b, bool) or a != b:
            return False
    return True


def by_json(check: Equals, value: JsonValue) -> bool:
    """The rule of mocks, breakpoints and answers."""
    return json_equal(check.equals, value)


def by_python(check: Equals, value: JsonValue) -> bool:
    """Python's `==`, deep: 5 = 5.0, and true = 1."""
    return check.equals == value
