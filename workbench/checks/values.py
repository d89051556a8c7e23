"""JSON values as checks compare, read and show them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from pydantic import JsonValue

SHOWN_CELLS = 60
"""Width in terminal cells beyond which a value is cut."""

_LONG = 10**15
"""Whole numbers below it need no encoder; the largest ones cannot be written at all."""

_ENCODER = json.JSONEncoder(ensure_ascii=False)
_SPACE = " \t\n\r"
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LEFT_OUT = str.maketrans({**dict.fromkeys(" ,./-_*^", ""), "'": '"'})


def describe_value(value: JsonValue) -> str:
    """Return a JSON value as JSON on one line, cut to `SHOWN_CELLS`."""
    return cut(json_text(value))


def json_text(value: JsonValue) -> str:
    """Return a JSON value as JSON on one line of any length."""
    if type(value) is int and -_LONG < value < _LONG:
        return repr(value)
    try:
        return _ENCODER.encode(value)
    except (RecursionError, ValueError):
        return "a value too deep or too long to show"


def cut(text: str, cells: int = SHOWN_CELLS) -> str:
    """Return the text cut to a number of terminal cells, ending in an ellipsis when it was longer."""
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


def canonical_text(text: str) -> str:
    """Return the text in NFC."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def canonical(value: JsonValue) -> JsonValue:
    """Return the value with all its texts and keys in NFC. Works without recursion, at any depth."""
    if isinstance(value, str):
        return canonical_text(value)
    if not isinstance(value, list | dict):
        return value
    whole: list[JsonValue] = [value]
    pending: list[list[JsonValue] | dict[str, JsonValue]] = [whole]
    while pending:
        container = pending.pop()
        places: Iterable[Any] = range(len(container)) if isinstance(container, list) else tuple(container)
        for place in places:
            inner = container[place]
            if isinstance(inner, str):
                container[place] = canonical_text(inner)
            elif isinstance(inner, list):
                container[place] = copied = inner.copy()
                pending.append(copied)
            elif isinstance(inner, dict):
                container[place] = renamed = {canonical_text(name): held for name, held in inner.items()}
                pending.append(renamed)
    return whole[0]


def loose(value: JsonValue) -> JsonValue:
    """Return the value with its texts in lower case and NFC, without blanks and `, . / - _ * ^`, and with single
    quotes as double ones, as BFCL standardises texts. Names in objects stay. May raise RecursionError."""
    if isinstance(value, str):
        return canonical_text(value.translate(_LEFT_OUT).lower())
    if isinstance(value, list):
        return [loose(inner) for inner in value]
    if isinstance(value, dict):
        return {name: loose(inner) for name, inner in value.items()}
    return value


def spelled_number(text: str) -> int | float | None:
    """Return the number that a text spells by JSON's grammar, with optional JSON white space around it; `None` for any
    other text, and for an integer of more digits than Python reads (4,300)."""
    spelled = text.strip(_SPACE)
    if _NUMBER.fullmatch(spelled) is None:
        return None
    try:
        number: int | float = json.loads(spelled)
    except ValueError:
        return None
    return number


def json_number(value: JsonValue) -> int | float:
    """Return the number that a value is or, as a text, spells. Raises TypeError for everything else, booleans
    included."""
    number = spelled_number(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError("not a number")
    return number


def published_number(value: JsonValue) -> float:
    """Return the number that Arcade's numeric critic reads: Python's `float`, with booleans as 1 and 0.

    Raises TypeError, ValueError or OverflowError as `float` does.
    """
    if value is None or isinstance(value, list | dict):
        raise TypeError("not a number")
    return float(value)
