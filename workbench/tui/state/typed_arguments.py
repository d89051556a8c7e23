"""Arguments of a call as a person types them: JSON that says one thing only, and of what is none the place."""

from __future__ import annotations

import json
import math
import re

from workbench.trajectory.messages import JsonValue
from workbench.trajectory.typed_json import parsed_json

_SYNTAX = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
"""Takes any number: what is wrong with one is said after what is wrong with the text."""

_TOKEN = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}\[\]]|[^\s{}\[\]:,"]+')


def arguments_in(text: str) -> dict[str, JsonValue]:
    """The JSON object in a text. Raises ValueError for what is none, for a key that stands twice in one object, and for
    numbers that JSON has not or that are too large; `json.JSONDecodeError` where that has a place."""
    try:
        value = _SYNTAX.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("arguments are a JSON object: { and } around them")
    _check(text)
    arguments: dict[str, JsonValue] = parsed_json(text)
    return arguments


def _check(text: str) -> None:
    """Look through a text that is JSON for what it leaves open. Raises JSONDecodeError for the first of that."""
    keys: list[set[str]] = []
    for found in _TOKEN.finditer(text):
        token, string, is_key = found[0], found[1], found[2]
        wrong = None
        if token in ("{", "["):
            keys.append(set())
        elif token in ("}", "]"):
            keys.pop()
        elif is_key:
            key = json.loads(string)
            wrong = "this key is in the object already" if key in keys[-1] else None
            keys[-1].add(key)
        elif not string and token not in ("true", "false", "null"):
            wrong = _why_no_number(token)
        if wrong is not None:
            raise json.JSONDecodeError(wrong, text, found.start())


def _why_no_number(token: str) -> str | None:
    if token in ("NaN", "Infinity", "-Infinity"):
        return f"there is no {token} in JSON"
    try:
        fits = math.isfinite(float(token)) if set(token) & set(".eE") else int(token) is not None
    except ValueError:  # Python reads whole numbers up to some thousands of digits
        fits = False
    return None if fits else "too large a number"
