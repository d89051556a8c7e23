"""Constructs values that meet a check, as a perfect agent would send them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from workbench.analysis.audit.schema_values import ANY_TEXT, TEXTS
from workbench.checks.evaluate import evaluate
from workbench.checks.kinds import (
    AllOf,
    AnyOf,
    Check,
    Contains,
    DateTime,
    Equals,
    EqualsNull,
    EqualsText,
    Judged,
    Near,
    OfType,
    OneOf,
    Pattern,
    Prefix,
    Present,
    PythonCheck,
    Range,
    Similar,
    Suffix,
    asks,
)
from workbench.checks.pattern_text import matching_text
from workbench.checks.patterns import SearchError
from workbench.trajectory.json_schema import UNIONS, alternatives_of
from workbench.trajectory.messages import JsonValue


class NeverHoldsError(Exception):
    """No value meets the check. The message says why."""


class UnknownSampleError(Exception):
    """There may be values that meet the check, but none can be constructed: a judge, a Python function, a pattern that
    looks ahead."""


def samples_of(check: Check) -> tuple[JsonValue, ...]:
    """Returns values that meet a check: all of them where they are listed, else one or two typical ones. Raises
    NeverHoldsError and UnknownSampleError."""
    match check:
        case Equals():
            return (check.equals,)
        case EqualsNull():
            return (None,)
        case OneOf():
            if not check.one_of:
                raise NeverHoldsError("one_of lists nothing")
            return tuple(check.one_of)
        case Range():
            return _within(*check.range)
        case Near():
            return (_whole(check.near),)
        case Similar():
            return (check.similar,)
        case DateTime():
            return (check.datetime,)
        case Contains():
            return (check.contains,)
        case Prefix():
            return (check.prefix,)
        case Suffix():
            return (check.suffix,)
        case Pattern():
            return _matching(check)
        case OfType():
            return (_OF_TYPE[check.type],)
        case EqualsText():
            return (check.equals_text,)
        case AllOf():
            return _samples_of_all(check)
        case AnyOf():
            return _samples_of_any(check)
        case _:
            raise UnknownSampleError


def _matching(check: Pattern) -> tuple[JsonValue, ...]:
    text = matching_text(check.pattern)
    if text is None:
        raise UnknownSampleError
    return (text,)


def _samples_of_all(check: AllOf) -> tuple[JsonValue, ...]:
    if asks(check, Judged, PythonCheck):
        raise UnknownSampleError
    found = [value for part in check.parts for value in _known_samples(part)]
    meeting = tuple(value for value in found if holds(check, value))
    if not meeting:
        raise UnknownSampleError
    return meeting


def _samples_of_any(check: AnyOf) -> tuple[JsonValue, ...]:
    reasons: list[str] = []
    found: list[JsonValue] = []
    for part in check.parts:
        try:
            found += _known_samples(part)
        except NeverHoldsError as error:
            reasons.append(str(error))
    if len(reasons) == len(check.parts):
        raise NeverHoldsError("; ".join(reasons))
    if not found:
        raise UnknownSampleError
    return tuple(found)


def _known_samples(check: Check) -> tuple[JsonValue, ...]:
    """Returns the samples of a check, none where none can be constructed. Raises NeverHoldsError."""
    try:
        return samples_of(check)
    except UnknownSampleError:
        return ()


def holds(check: Check, value: JsonValue) -> bool:
    """Returns whether a value meets a check, compared as JSON. Raises UnknownSampleError where a search takes too long,
    and CheckError for checks that need a judge or Python."""
    try:
        return evaluate(check, value).holds
    except SearchError:
        raise UnknownSampleError from None


def is_wildcard(check: Check) -> bool:
    """Returns whether every value meets the check."""
    return isinstance(check, Present)


def _within(low: float, high: float) -> tuple[JsonValue, ...]:
    if not low <= high:
        raise NeverHoldsError(f"no number lies between {low:g} and {high:g}")
    whole = math.ceil(low) if math.isfinite(low) else math.floor(high) if math.isfinite(high) else 0
    ends = [_whole(end) for end in (low, high) if math.isfinite(end)]
    inside: list[JsonValue] = [whole] if low <= whole <= high else []
    return (*inside, *(end for end in ends if end not in inside))


def _whole(number: float) -> JsonValue:
    return int(number) if math.isfinite(number) and number == int(number) else number


def other_values(check: Check, schema: Mapping[str, JsonValue]) -> Iterator[JsonValue]:
    """Yields values that a schema may allow and that the check refuses, the most different ones first. Python functions
    and judges are not asked. Raises CheckError for a check that needs them."""
    try:
        met = samples_of(check)[0]
    except (NeverHoldsError, UnknownSampleError):
        met = None
    for value in _different(met, schema):
        if not holds(check, value):
            yield value


def _different(met: JsonValue, schema: Mapping[str, JsonValue]) -> Iterator[JsonValue]:
    choices = schema.get("enum")
    if isinstance(choices, list) or "const" in schema:
        yield from choices if isinstance(choices, list) else ()
        return
    for option in (schema, *_alternatives(schema)):
        named = option.get("type") or _TYPE_OF.get(type(met), "string")
        for kind in named if isinstance(named, list) else [named]:
            match kind:
                case "boolean":
                    yield from (True, False)
                case "integer" | "number":
                    number = met if isinstance(met, int | float) and math.isfinite(met) else 0
                    bounds = (option.get("minimum"), option.get("maximum"))
                    yield from (number + 1000, number - 1000, number + 1, number - 1)
                    yield from (bound for bound in bounds if isinstance(bound, int | float))
                case "string":
                    yield from TEXTS
                case "array":
                    yield []
                    yield [*met, *met] if isinstance(met, list) else ["something else"]
                case "object":
                    yield {}
                case _:
                    pass


def _alternatives(schema: Mapping[str, JsonValue]) -> Iterator[Mapping[str, JsonValue]]:
    for options in alternatives_of(schema, *UNIONS):
        yield from (option for option in options if isinstance(option, Mapping))


_TYPE_OF: dict[type, str] = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}

_OF_TYPE: dict[str, JsonValue] = {
    "string": ANY_TEXT,
    "integer": 0,
    "number": 0,
    "boolean": True,
    "null": None,
    "array": [],
    "object": {},
}
