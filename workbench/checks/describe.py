"""Describes checks and JSON values as short texts for a person, on screens and in issues."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Callable

from pydantic import JsonValue

from workbench.by_identity import ByIdentity
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
)


class CheckError(Exception):
    """A check could not be evaluated: its Python function raised, or something it needs is missing.

    That says nothing about the model, so it ends a run with status `error`. The message names the check.
    """


class FunctionRaisedError(CheckError):
    """The function of a `python` check raised, or returned neither True nor False."""


SHOWN_CELLS = 60
"""Width in terminal cells beyond which a value is cut."""

_LONG = 10**15
"""Whole numbers below it need no encoder; the largest ones cannot be written at all."""

_ENCODER = json.JSONEncoder(ensure_ascii=False)


def _describe(check: Check, say: Callable[[JsonValue], str]) -> str:
    match check:
        case Equals(equals=value):
            return say(value)
        case EqualsNull():
            return "null"
        case Present():
            return "any value"
        case OneOf(one_of=values):
            return "one of " + ", ".join(say(value) for value in values) if values else "one of nothing"
        case Range(range=(low, high)):
            return _describe_range(low, high)
        case Near(near=number, tolerance=tolerance, value_range=value_range):
            if value_range is not None:
                return f"near {_number(number)} on {_describe_range(*value_range)}"
            return f"near {_number(number)} ± {_number(tolerance or 0.0)}"
        case Similar(similar=text):
            return f"similar to {say(text)}"
        case DateTime(datetime=text, tolerance=span, offset=offset):
            return f"{say(text)} ± {span.strip()}" + (", with an offset" if offset == "required" else "")
        case Contains(contains=text):
            return f"containing {say(text)}"
        case Prefix(prefix=text):
            return f"starting with {say(text)}"
        case Suffix(suffix=text):
            return f"ending with {say(text)}"
        case Pattern(pattern=text):
            return f"matching /{text}/".replace("\n", "\\n")
        case OfType(type=name):
            return _TYPES[name]
        case EqualsText(equals_text=value):
            return f"{say(value)}, ignoring case and punctuation"
        case AllOf(all_of=parts):
            return " and ".join(_describe_part(part, say) for part in parts)
        case AnyOf(any_of=parts):
            return " or ".join(_describe_part(part, say) for part in parts)
        case Judged(judged=criteria, scale=scale, at_least=least):
            words = " ".join(criteria.split())
            if scale is None or least is None:
                return f"judged: {words}"
            return f"judged at least {_number(least)} on {_describe_range(*scale)}: {words}"
        case PythonCheck(python=reference):
            return f"python {reference}"


def _describe_part(check: Check, say: Callable[[JsonValue], str]) -> str:
    text = _describe(check, say)
    return f"({text})" if len(check.parts) > 1 else text


_TYPES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


def _described(check: Check) -> str:
    return cut(_describe(check, describe_value))


describe: ByIdentity[Check, str] = ByIdentity(_described)
"""Returns what a check asks for, in a few words: `"on"`, `5..40`, `near 21 ± 2`, `one of "a", "b"`."""


def describe_whole(check: Check) -> str:
    """Returns what a check asks for on one line of any length."""
    return _describe(check, _as_json)


def describe_value(value: JsonValue) -> str:
    """Returns a JSON value as JSON on one line, cut to `SHOWN_CELLS`."""
    return cut(_as_json(value))


def _as_json(value: JsonValue) -> str:
    if type(value) is int and -_LONG < value < _LONG:
        return repr(value)
    try:
        return _ENCODER.encode(value)
    except (RecursionError, ValueError):
        return "a value too deep or too long to show"


def cut(text: str, cells: int = SHOWN_CELLS) -> str:
    """Returns the text cut to a number of terminal cells, ending in an ellipsis when it was longer."""
    if text.isascii():
        return text if len(text) <= cells else text[: cells - 1] + "…"
    width = 0
    keep = 0
    for index, character in enumerate(text):
        width += _cells(character)
        if width <= cells - 1:
            keep = index + 1
        if width > cells:
            return text[:keep] + "…"
    return text


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _number(number: float) -> str:
    return str(int(number)) if isinstance(number, int) or (number.is_integer() and abs(number) < 1e15) else repr(number)


def _describe_range(low: float, high: float) -> str:
    if low == -math.inf and high == math.inf:
        return "any number"
    if low == -math.inf:
        return f"at most {_number(high)}"
    if high == math.inf:
        return f"at least {_number(low)}"
    return f"{_number(low)}..{_number(high)}"
