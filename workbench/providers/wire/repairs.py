"""Repairs answers that deviate from the endpoint's API, but only if their meaning is certain.

Arguments that are one JSON object are never changed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

from workbench.dataclasses import parsed_json
from workbench.trajectory.events import REPEATED_KEY, Deviation, ReasoningDelta, TextDelta, TextWasReasoning

CUMULATIVE, REPEATED = "cumulative arguments", "repeated arguments"
ENCODED, FENCED, MARKED = "arguments encoded twice", "arguments in a code fence", "byte order mark"
EMPTIED, ENDED = "empty arguments beside", "arguments with a template's mark"
THOUGHTS, REPEATED_TEXT = "thoughts in the answer", "repeated text"

DETAILS: Mapping[str, str] = {
    CUMULATIVE: "the endpoint repeats the arguments so far in each chunk",
    REPEATED: "the endpoint sends the arguments once more after their end",
    ENCODED: "the arguments are JSON in a JSON text",
    FENCED: "the arguments are inside a code fence",
    MARKED: "the arguments begin with a byte order mark",
    EMPTIED: "the endpoint sends an empty object beside the arguments",
    ENDED: "the arguments contain the template's mark for the end of a call",
    REPEATED_KEY: "an object in the arguments has a key twice; the last value counts",
    REPEATED_TEXT: "the endpoint sends the text so far once more, in each chunk or at the end",
    THOUGHTS: "the answer contains thoughts: the endpoint does not separate them as reasoning",
}
"""The description of each kind of deviation for the user."""

_BYTE_ORDER_MARK = "\ufeff"
_FENCE = re.compile(r"`{3,}|~{3,}")
_LANGUAGE = re.compile(r"[ \t]*[\w+-]*")
_END_OF_CALL = re.compile(r"(?<=\})(?:\s*(?:</?[\w:]+>|<[|｜][^<>|｜]*[|｜]>|\[/[A-Z_]+\]))+\Z")
"""Marks of chat templates after an object, such as `</tool_call>`, `<|im_end|>` and `[/TOOL_CALLS]`."""
_BLANK = re.compile(r"\s*")
_MAX_LAYERS = 4
"""The most layers that are removed around an object: a fence, a mark, and two encodings as JSON text."""


class RepairedArguments(NamedTuple):
    """Arguments after a repair, and the kind of the repaired deviation."""

    arguments: dict[str, Any]
    kind: str


def repair(pieces: Sequence[str]) -> RepairedArguments | None:
    """Repair arguments whose pieces do not join to one JSON object; return `None` if their meaning is uncertain."""
    # The order of these steps matters, because the joined text has several objects in three cases. It may have the same
    # object twice, or an empty object before the arguments, as in `{}{"a": 1}`. Or each piece repeats the previous
    # piece.
    text = "".join(pieces)
    objects = _objects_in(text)
    if len(objects) > 1 and all(same_json(objects[0], other) for other in objects):
        return RepairedArguments(objects[0], REPEATED)
    filled = [each for each in objects if each]
    if len(filled) == 1 < len(objects):
        return RepairedArguments(filled[0], EMPTIED)
    if len(pieces) > 1 and all(after.startswith(before) for before, after in pairwise(pieces)):
        last = json_object(pieces[-1])
        if last is not None:
            return RepairedArguments(last, CUMULATIVE)
    return unwrap(text)


def unwrap(text: str) -> RepairedArguments | None:
    """Return the JSON object inside other layers, such as a code fence or a JSON string; `None` if there is no object.

    Other layers are a byte order mark and the marks of a chat template. The outermost layer determines the kind of
    deviation."""
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
            if isinstance(value, dict) and kind:
                return RepairedArguments(value, kind)
            if not isinstance(value, str):
                return None
            kind, text = kind or ENCODED, value
    value = json_object(text)
    if value is None:
        return None
    return RepairedArguments(value, kind)


def json_object(text: str) -> dict[str, Any] | None:
    """Parse a text that is one JSON object; return `None` for any other text."""
    value = _parsed(text)
    if isinstance(value, dict):
        return value
    return None


def repeats_key(text: str, value: Mapping[str, Any]) -> bool:
    """Return whether an object in a JSON text has a key twice. `value` is the parsed text."""
    # This count saves parsing most texts again, because each key is followed by a colon.
    if text.count(":") == len(value):
        return False
    repeated = False

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        found = dict(pairs)
        repeated |= len(found) < len(pairs)
        return found

    json.loads(text, object_pairs_hook=object_of)
    return repeated


def same_json(value: object, other_value: object) -> bool:
    """Return whether two values are the same JSON. Unlike in Python, `1` and `true` differ."""
    return _canonical(value) == _canonical(other_value)


def _objects_in(text: str) -> list[dict[str, Any]]:
    decoder = json.JSONDecoder()
    text = text.strip()
    at, objects = 0, []
    try:
        while at < len(text):
            _, end = decoder.raw_decode(text, at)
            # Parse the object again, because this decoder accepts NaN and Infinity, which are not JSON.
            found = json_object(text[at:end])
            if found is None:
                return []
            objects.append(found)
            at = _BLANK.match(text, end).end()  # type: ignore[union-attr]
    except (ValueError, RecursionError):
        return []
    return objects


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


_END_OF_ANALYSIS = ("<|end|><|start|>assistant", "<|start|>assistant", "")
_FINAL = tuple([f"{end}<|channel|>final<|message|>" for end in _END_OF_ANALYSIS])
_COMMENTARY = tuple([f"{end}<|channel|>commentary" for end in _END_OF_ANALYSIS])
"""The marks between the channels of gpt-oss: after its thoughts, it answers or calls a tool."""

_ENDS: Mapping[str, tuple[str, ...]] = {
    "<think>": ("</think>",),
    "<thinking>": ("</thinking>",),
    "<thought>": ("</thought>",),
    "<reasoning>": ("</reasoning>",),
    "<longcat_think>": ("</longcat_think>",),
    "<seed:think>": ("</seed:think>",),
    "<|think|>": ("<|/think|>", "</|think|>", "</think>"),
    "<|begin_of_thought|>": ("<|end_of_thought|>",),
    "<|START_THINKING|>": ("<|END_THINKING|>",),
    "[THINK]": ("[/THINK]",),
    "◁think▷": ("◁/think▷",),
    "<|channel>thought": ("<channel|>",),
    "<|channel|>analysis<|message|>": (*_FINAL, *_COMMENTARY),
}
"""The marks at the beginning of a model's thoughts, each with its end marks."""

_ALL_ENDS = tuple(dict.fromkeys(end for end in chain.from_iterable(_ENDS.values()) if end not in _COMMENTARY))
_MAX_BEGINNING = max(map(len, _ALL_ENDS)) - 1
"""The length of the longest text that is not yet a mark, but may become one."""
_FIRST = frozenset(mark[0] for mark in (*_ENDS, *_ALL_ENDS))
_QUOTES = "`'\"“”‘’«»"

_CERTAIN_REPETITION = 16
"""The length of a text that a model hardly writes twice in a row."""


class WrittenText:
    """The text of an answer while it arrives, without repetitions of the whole text in each piece or at the end."""

    def __init__(self) -> None:
        self._written: list[str] = []
        self._length = 0
        """The number of characters in `_written`."""
        self._held: list[str] = []
        """The latest pieces, if each of them repeats the whole text before it."""
        self.deviations: tuple[Deviation, ...] = ()

    @property
    def whole(self) -> str:
        """The text that was returned so far."""
        return "".join(self._written)

    def add(self, piece: str) -> str:
        """Add a piece, and return the text that is certain. A piece that repeats the whole text so far is held back."""
        if self._held or len(piece) >= self._length > 0:
            # The whole text may come once more after the last piece. More equal pieces repeat nothing: if they were
            # held back, an endless answer would never reach its limit.
            before = self._held[-1] if self._held else self.whole
            if piece.startswith(before) and self._held[-2:] != [piece, piece]:
                self._held.append(piece)
                return ""
            piece = "".join([*self._held, piece])
            self._held = []
        return self._certain(piece)

    def flush(self) -> str:
        """End the text, and return the rest that was held back."""
        if not self._held:
            return ""
        # The last piece has the whole text. A short text, such as a line break, may really come twice.
        written, last = self.whole, self._held[-1]
        if len(written.strip()) >= _CERTAIN_REPETITION or (len(self._held) > 1 and len(last) >= _CERTAIN_REPETITION):
            self.deviations = (Deviation(REPEATED_TEXT, DETAILS[REPEATED_TEXT]),)
            return self._certain(last.removeprefix(written))
        return self._certain("".join(self._held))

    def _certain(self, text: str) -> str:
        self._length += len(text)
        self._written.append(text)
        return text


TextEvent = TextDelta | ReasoningDelta | TextWasReasoning


class AnswerText:
    """The text of one answer while it arrives.

    With `apart`, the model's thoughts at the beginning of the text become reasoning."""

    # A chat template may write the opening mark of thoughts into the prompt. The answer then has only the closing mark,
    # and the thoughts before it were already emitted as answer text. The event `TextWasReasoning` corrects this.

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
        """The deviation that reports thoughts in the answer; empty if there were none."""
        if not self._found:
            return ()
        return (Deviation(THOUGHTS, DETAILS[THOUGHTS]),)

    def add(self, piece: str) -> list[TextEvent]:
        """Add a piece of the text, and return events for the text that is certainly answer or reasoning."""
        self._held += piece
        return self._steps(is_complete=False)

    def flush(self) -> list[TextEvent]:
        """End the text, or a block of the text, and return the events for the rest that was held back."""
        return self._steps(is_complete=True)

    def _steps(self, *, is_complete: bool) -> list[TextEvent]:
        events: list[TextEvent] = []
        read = None
        while self._held and read != self._read:
            read = self._read
            events += read(is_complete)
        return events

    def _as_it_is(self, is_complete: bool) -> list[TextEvent]:
        text, self._held = self._held, ""
        return [TextDelta(self._round, text)]

    def _at_beginning(self, is_complete: bool) -> list[TextEvent]:
        text = self._held.lstrip()
        begin = next((mark for mark in _ENDS if text.startswith(mark)), None)
        if begin is not None:
            self._held, self._ends = text.removeprefix(begin), _ENDS[begin]
            self._found, self._thought = True, False
            self._read = self._within_thoughts
        elif text and (is_complete or not any(mark.startswith(text) for mark in _ENDS)):
            if self._found:
                self._held, self._read = text, self._as_it_is
            else:
                self._read = self._unmarked
        elif is_complete and not self._found:
            return self._as_it_is(is_complete)
        return []

    def _within_thoughts(self, is_complete: bool) -> list[TextEvent]:
        at, end = _first_of(self._ends, self._held)
        if end:
            thoughts, self._held = self._held[:at].rstrip(), self._held[at + len(end) :]
            self._read = self._at_beginning
        elif is_complete:
            thoughts, self._held = self._held.rstrip(), ""
        else:
            # Trailing blanks are held back too, because blanks right before the end of the thoughts are dropped.
            thoughts = self._held[: _certain(self._held, self._ends)].rstrip()
            self._held = self._held[len(thoughts) :]
        if not self._thought:
            thoughts = thoughts.lstrip()
        if not thoughts:
            return []
        self._thought = True
        return [ReasoningDelta(self._round, thoughts)]

    def _unmarked(self, is_complete: bool) -> list[TextEvent]:
        """Read a text that does not begin with an opening mark of thoughts.

        If a closing mark arrives, the text before it was thoughts. `is_complete` means that no more text follows."""
        at, end = _first_of(_ALL_ENDS, self._held)
        if not end:
            at = len(self._held) if is_complete else _certain(self._held, _ALL_ENDS)
        elif not is_complete and not self._held[at + len(end) :].strip(" \t"):
            end = ""  # wait: the next character decides whether the text before the mark was thoughts
        text, rest = self._held[:at], self._held[at:]
        self._said.append(text)
        self._held = rest
        events: list[TextEvent] = []
        if text:
            events.append(TextDelta(self._round, text))
        if not end:
            return events
        before, after = "".join(self._said), rest.removeprefix(end)
        if not _ends_thoughts(before, end, after):
            self._read = self._as_it_is
            return events
        self._held, self._found = after, True
        self._read = self._at_beginning
        return [*events, TextWasReasoning(self._round)]


def split_thoughts(text: str) -> tuple[str, str]:
    """Split a complete text into the thoughts at its beginning and the answer after them."""
    reading = AnswerText(1, apart=True)
    thoughts, answer = "", ""
    for event in (*reading.add(text), *reading.flush()):
        match event:
            case TextDelta(text=piece):
                answer += piece
            case ReasoningDelta(text=piece):
                thoughts += piece
            case TextWasReasoning():
                thoughts, answer = thoughts + answer, ""
    return thoughts, answer


def _first_of(marks: tuple[str, ...], text: str) -> tuple[int, str]:
    # This fast test comes first, because most pieces have no character that could begin a mark.
    if _FIRST.isdisjoint(text):
        return len(text), ""
    places = [(at, mark) for mark in marks if (at := text.find(mark)) >= 0]
    return min(places, default=(len(text), ""))


def _certain(text: str, marks: tuple[str, ...]) -> int:
    """Return how many characters of a text precede an ending that may be the beginning of a mark."""
    for at in range(max(len(text) - _MAX_BEGINNING, 0), len(text)):
        if text[at] in _FIRST and any(mark.startswith(text[at:]) for mark in marks):
            return at
    return len(text)


def _ends_thoughts(before: str, end: str, after: str) -> bool:
    """Return whether the mark `end` between two texts ends thoughts, or is only mentioned in the answer."""
    # A closing mark counts only if no opening mark precedes it, and outside quotes and code. It must stand at the
    # beginning or the end of a line, or without a space between a text and a letter or digit.
    if any(begin in before for begin, ends in _ENDS.items() if end in ends) or before.count("```") % 2:
        return False
    if any(beside and beside in _QUOTES for beside in (before[-1:], after[:1])):
        return False
    line, following = before.rpartition("\n")[2], after.partition("\n")[0]
    if not line.strip() or not following.strip():
        return True
    return not line[-1].isspace() and following[0].isalnum()
