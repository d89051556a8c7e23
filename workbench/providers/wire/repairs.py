"""Reads a call's arguments where the endpoint deviates from its API, if what was meant is certain.

Arguments that are one JSON object are never changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from workbench.dataclasses import parsed_json

CUMULATIVE, REPEATED = "cumulative arguments", "repeated arguments"
ENCODED, FENCED, MARKED = "arguments encoded twice", "arguments in a code fence", "byte order mark"
EMPTIED, ENDED = "empty arguments beside", "arguments with a template's mark"
THOUGHTS = "thoughts in the answer"

DETAILS: Mapping[str, str] = {
    CUMULATIVE: "the endpoint repeats the arguments so far in each chunk",
    REPEATED: "the endpoint sends the arguments once more after their end",
    ENCODED: "the arguments are JSON in a JSON text",
    FENCED: "the arguments stand in a code fence",
    MARKED: "the arguments begin with a byte order mark",
    EMPTIED: "the endpoint sends an empty object beside the arguments",
    ENDED: "the template's mark for the end of a call stands in the arguments",
    THOUGHTS: "the thoughts stand in the answer: the endpoint does not tell reasoning apart",
}
"""What each kind of deviation is."""

_BYTE_ORDER_MARK = "\ufeff"
_FENCE = re.compile(r"`{3,}|~{3,}")
_LANGUAGE = re.compile(r"[ \t]*[\w+-]*")
_END_OF_CALL = re.compile(r"(?<=\})(?:\s*(?:</?[\w:]+>|<[|｜][^<>|｜]*[|｜]>|\[/[A-Z_]+\]))+\Z")
"""What a chat template writes behind an object."""
_BLANK = re.compile(r"\s*")
_MAX_LAYERS = 4
"""Of texts around an object: a fence, a mark, and JSON that was encoded twice more."""


class Repaired(NamedTuple):
    """The arguments that were meant, and the kind of deviation."""

    arguments: dict[str, Any]
    kind: str


def repaired(pieces: Sequence[str]) -> Repaired | None:
    """Return the arguments in pieces of text that are no JSON object together, `None` where they are not certain."""
    text = "".join(pieces)
    objects = _objects_in(text)
    if len(objects) > 1 and all(same_json(objects[0], other) for other in objects):
        return Repaired(objects[0], REPEATED)
    filled = [each for each in objects if each]
    if len(filled) == 1 < len(objects):
        return Repaired(filled[0], EMPTIED)
    if len(pieces) > 1 and all(after.startswith(before) for before, after in pairwise(pieces)):
        last = json_object(pieces[-1])
        if last is not None:
            return Repaired(last, CUMULATIVE)
    return unwrapped(text)


def unwrapped(text: str) -> Repaired | None:
    """Return the object in a text that stands in a code fence, in a JSON text, behind a byte order mark or before a
    template's mark. The kind is that of the outermost one."""
    kind = ""
    for _ in range(_MAX_LAYERS):
        bare = text.strip()
        if bare.startswith(_BYTE_ORDER_MARK):
            kind, text = kind or MARKED, bare.removeprefix(_BYTE_ORDER_MARK)
        elif (mark := _END_OF_CALL.search(bare)) is not None:
            kind, text = kind or ENDED, bare[: mark.start()]
        elif (inside := _inside_fence(bare)) is not None:
            kind, text = kind or FENCED, inside
        else:
            value = _parsed(bare)
            if isinstance(value, dict):
                return Repaired(value, kind) if kind else None
            if not isinstance(value, str):
                return None
            kind, text = kind or ENCODED, value
    value = json_object(text)
    return Repaired(value, kind) if value is not None else None


def json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is, `None` if it is none."""
    value = _parsed(text)
    return value if isinstance(value, dict) else None


def same_json(one: object, other: object) -> bool:
    """Return whether two values are the same JSON: `1` and `true` are not."""
    return _canonical(one) == _canonical(other)


def _objects_in(text: str) -> list[dict[str, Any]]:
    """Return the objects of a text that consists of nothing else."""
    decoder = json.JSONDecoder()
    text = text.strip()
    at, objects = 0, []
    try:
        while at < len(text):
            _, end = decoder.raw_decode(text, at)
            objects.append(json_object(text[at:end]))
            at = _BLANK.match(text, end).end()  # type: ignore[union-attr]
    except (ValueError, RecursionError):
        return []
    found = [each for each in objects if each is not None]
    return found if len(found) == len(objects) else []


def _inside_fence(text: str) -> str | None:
    mark = _FENCE.match(text)
    if mark is None or len(text) < 2 * mark.end() or not text.endswith(mark[0]):
        return None
    return _LANGUAGE.sub("", text[mark.end() : -mark.end()], count=1)


def _parsed(text: str) -> object:
    try:
        return parsed_json(text)
    except (ValueError, RecursionError):
        return None


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)
