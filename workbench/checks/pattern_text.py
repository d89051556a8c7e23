"""Constructs a text in which a regular expression is found."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any

from workbench.checks.pattern_shape import prepared_size
from workbench.checks.patterns import SearchError, found

_parse = import_module("re._parser").parse  # Python documents no other access to the tree

_ALPHABET = string.ascii_letters + string.digits + "-_ .,:/@#+\n\té中"
_MAX_CHARS = 10_000


@lru_cache(maxsize=256)
def matching_text(pattern: str) -> str | None:
    """Return a short text in which a pattern is found; `None` where none can be constructed, as for most patterns that
    look ahead, and for those that take too long to search."""
    try:
        if prepared_size(pattern) > _MAX_CHARS:
            return None
        text = _text(_parse(pattern), {})
        return text if found(pattern, text) else None
    except (_UnknownTextError, SearchError, re.error, OverflowError, RecursionError):
        return None


class _UnknownTextError(Exception):
    """No text can be constructed for an element of a pattern."""


def _text(tree: Iterable[Any], groups: dict[int, str]) -> str:
    return "".join(_of_element(str(operation), argument, groups) for operation, argument in tree)


def _of_element(operation: str, argument: Any, groups: dict[int, str]) -> str:
    match operation:
        case "LITERAL":
            return chr(argument)
        case "NOT_LITERAL":
            return next(character for character in _ALPHABET if ord(character) != argument)
        case "ANY":
            return "a"
        case "IN":
            return _of_set(argument)
        case "CATEGORY":
            return _of_set([(operation, argument)])
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            # Groups that are never entered cannot be referred to, so an optional part is written once.
            least, most, part = argument
            times: int = min(max(least, 1), most, _MAX_CHARS)
            return _text(part, groups) * times
        case "SUBPATTERN":
            number, _, _, part = argument
            groups[number] = text = _text(part, groups)
            return text
        case "ATOMIC_GROUP":
            return _text(argument, groups)
        case "BRANCH":
            return _text(argument[1][0], groups)
        case "GROUPREF":
            return groups.get(argument, "")
        case "AT" | "ASSERT" | "ASSERT_NOT":
            return ""  # whether it holds there is seen when the whole text is searched
        case _:
            raise _UnknownTextError


def _of_set(members: list[tuple[Any, Any]]) -> str:
    """Return a character of a set: the first of its own where it lists some, else one of the alphabet."""
    negated = any(str(operation) == "NEGATE" for operation, _ in members)
    own = [member for operation, argument in members for member in _own_characters(str(operation), argument)]
    for character in _ALPHABET if negated or not own else own:
        if any(_is_in(character, str(operation), argument) for operation, argument in members) is not negated:
            return character
    raise _UnknownTextError


def _own_characters(operation: str, argument: Any) -> list[str]:
    if operation == "LITERAL":
        return [chr(argument)]
    return [chr(argument[0])] if operation == "RANGE" else []


_CATEGORIES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}


def _is_in(character: str, operation: str, argument: Any) -> bool:
    match operation:
        case "LITERAL":
            return bool(ord(character) == argument)
        case "RANGE":
            return bool(argument[0] <= ord(character) <= argument[1])
        case "CATEGORY":
            name = str(argument)
            holds = re.match(_CATEGORIES[name.rsplit("_", 1)[-1]], character) is not None
            return holds is not ("_NOT_" in name)
        case _:
            return False
