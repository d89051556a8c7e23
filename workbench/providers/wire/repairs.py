"""Reads a call's arguments where the endpoint deviates from its API, if what was meant is certain.

Arguments that are one JSON object are never changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from workbench.dataclasses import parsed_json
from workbench.trajectory.events import Deviation, ReasoningDelta, TextDelta, TextWasReasoning

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


_ENDS: Mapping[str, tuple[str, ...]] = {
    "<think>": ("</think>",),
    "<thinking>": ("</thinking>",),
    "<thought>": ("</thought>",),
    "<seed:think>": ("</seed:think>",),
    "<|think|>": ("<|/think|>", "</|think|>", "</think>"),
    "<|begin_of_thought|>": ("<|end_of_thought|>",),
    "<|START_THINKING|>": ("<|END_THINKING|>",),
    "[THINK]": ("[/THINK]",),
    "◁think▷": ("◁/think▷",),
}
"""The marks with which models begin their thoughts, and the ones that end those."""

_ALL_ENDS = tuple({end: None for ends in _ENDS.values() for end in ends})
_FIRST = frozenset(mark[0] for mark in (*_ENDS, *_ALL_ENDS))
_QUOTES = "`'\"“”‘’«»"

TextEvent = TextDelta | ReasoningDelta | TextWasReasoning


class AnswerText:
    """The text of one answer while it comes.

    Thoughts at its beginning become reasoning, unless not `apart`.

    Chat templates may write the first mark themselves: then the text before the last mark came as an answer, and
    `TextWasReasoning` corrects that. A text that only mentions the mark stays as it is.
    """

    def __init__(self, round_number: int, *, apart: bool) -> None:
        self._round = round_number
        self._read = self._at_beginning if apart else self._as_it_is
        self._held = ""
        self._ends: tuple[str, ...] = ()
        self._said: list[str] = []
        self._thought = False
        self._found = False

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """That thoughts stood in the answer, if they did."""
        return (Deviation(THOUGHTS, DETAILS[THOUGHTS]),) if self._found else ()

    def next(self, piece: str) -> Iterator[TextEvent]:
        """Add a piece of the text."""
        self._held += piece
        yield from self._steps(over=False)

    def flush(self) -> Iterator[TextEvent]:
        """End the text, or a block of it: nothing is held back any longer."""
        yield from self._steps(over=True)

    def _steps(self, *, over: bool) -> Iterator[TextEvent]:
        read = None
        while self._held and read != self._read:
            read = self._read
            yield from read(over)

    def _as_it_is(self, over: bool) -> Iterator[TextEvent]:
        text, self._held = self._held, ""
        yield TextDelta(self._round, text)

    def _at_beginning(self, over: bool) -> Iterator[TextEvent]:
        text = self._held.lstrip()
        begin = next((mark for mark in _ENDS if text.startswith(mark)), None)
        if begin is not None:
            self._held, self._ends = text.removeprefix(begin), _ENDS[begin]
            self._found, self._thought = True, False
            self._read = self._within_thoughts
        elif text and (over or not any(mark.startswith(text) for mark in _ENDS)):
            self._held = text if self._found else self._held
            self._read = self._as_it_is if self._found else self._unmarked
        elif over and not self._found:
            yield from self._as_it_is(over)

    def _within_thoughts(self, over: bool) -> Iterator[TextEvent]:
        at, end = _first_of(self._ends, self._held)
        if end:
            thoughts, self._held = self._held[:at].rstrip(), self._held[at + len(end) :]
            self._read = self._at_beginning
        else:
            until = len(self._held) if over else _certain(self._held, self._ends)
            thoughts = self._held[:until].rstrip()
            self._held = "" if over else self._held[len(thoughts) :]
        if not self._thought:
            thoughts = thoughts.lstrip()
        if thoughts:
            self._thought = True
            yield ReasoningDelta(self._round, thoughts)

    def _unmarked(self, over: bool) -> Iterator[TextEvent]:
        """Read a text without a mark at its beginning, which may prove to be thoughts."""
        at, end = _first_of(_ALL_ENDS, self._held)
        if not end:
            at = len(self._held) if over else _certain(self._held, _ALL_ENDS)
        elif not over and not self._held[at + len(end) :].strip(" \t"):
            end = ""  # what follows decides
        text, rest = self._held[:at], self._held[at:]
        self._said.append(text)
        self._held = rest
        if text:
            yield TextDelta(self._round, text)
        if not end:
            return
        before, after = "".join(self._said), rest.removeprefix(end)
        if not _ends_thoughts(before, end, after):
            self._read = self._as_it_is
            return
        self._held, self._found = after, True
        self._read = self._at_beginning
        yield TextWasReasoning(self._round)


def parted(text: str) -> tuple[str, str]:
    """Return the thoughts at the beginning of a whole text, and the answer behind them."""
    reading = AnswerText(1, apart=True)
    thoughts, answer = "", ""
    for event in (*reading.next(text), *reading.flush()):
        match event:
            case TextDelta(text=piece):
                answer += piece
            case ReasoningDelta(text=piece):
                thoughts += piece
            case TextWasReasoning():
                thoughts, answer = thoughts + answer, ""
    return thoughts, answer


def _first_of(marks: tuple[str, ...], text: str) -> tuple[int, str]:
    """Return where the first of some marks stands, and which it is; an empty one where none does."""
    if _FIRST.isdisjoint(text):
        return len(text), ""  # most pieces of an answer
    places = [(at, mark) for mark in marks if (at := text.find(mark)) >= 0]
    return min(places, default=(len(text), ""))


def _certain(text: str, marks: tuple[str, ...]) -> int:
    """Return how much of a text cannot be the beginning of a mark."""
    longest = max(map(len, marks)) - 1
    for at in range(max(len(text) - longest, 0), len(text)):
        if text[at] in _FIRST and any(mark.startswith(text[at:]) for mark in marks):
            return at
    return len(text)


def _ends_thoughts(before: str, end: str, after: str) -> bool:
    """Return whether a mark ends thoughts, rather than being mentioned in an answer: it stands at an end of a line, or
    directly between two words, and neither in quotes nor in code, and nothing before it begins thoughts."""
    if any(begin in before for begin, ends in _ENDS.items() if end in ends) or before.count("```") % 2:
        return False
    if any(beside and beside in _QUOTES for beside in (before[-1:], after[:1])):
        return False
    line, following = before.rpartition("\n")[2], after.partition("\n")[0]
    if not line.strip() or not following.strip():
        return True
    return not line[-1].isspace() and following[0].isalnum()
