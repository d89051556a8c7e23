"""Aligns two trajectories: finds their first difference, and the counterpart of each round, call, text and result."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Literal, TypeVar

from workbench.checks.values import json_equal
from workbench.dataclasses import dataclass, json_text
from workbench.trajectory.events import JsonValue, ResultReceived, ToolCall
from workbench.trajectory.system_prompt import with_instructions
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory, tools_of

DifferenceKind = Literal["message", "tool", "argument", "text", "result", "end"]
"""What differs: a message to the model, a call, an argument, the model's text, a result, or the end of the run."""

_MAX_QUOTE_CHARS = 40


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference between two runs, with a sentence that describes it.

    `round` counts from 1. `call` is the index of the call in its round, from 0, and `argument` is the name of the
    argument. `by_hand` marks a difference that a person made."""

    round: int
    kind: DifferenceKind
    sentence: str
    call: int | None = None
    argument: str | None = None
    by_hand: bool = False


def first_difference(origin: Trajectory, fork: Trajectory) -> Difference | None:
    """Return the first difference of `fork` from `origin`, or `None` if both are equal to the end.

    Swapping the runs changes the sentence but not the place. Within a round, messages to the model are compared first,
    then calls, then the model's text, then results. Ids, times, tokens, the source of a result and the system prompt
    are ignored. A change by a person is reported only if there is no other difference. Otherwise, the sentence mentions
    the change."""
    changed: Difference | None = None
    for number, (old, new) in enumerate(zip_longest(origin.rounds, fork.rounds), start=1):
        if old is not None and new is not None:
            changed = changed or _message_by_hand(old, new)
        found = _in_round(number, old, new, origin, fork)
        if found is not None:
            return _after(changed, found)
        if old is not None and new is not None:
            changed = changed or _call_by_hand(old, new)
    if _end(origin) != _end(fork):
        number = max(len(fork.rounds), 1)
        ends = f"round {number}: {_end(fork)}, while the other run {_end(origin)}"
        return _after(changed, Difference(number, "end", ends))
    if changed is None:
        return None
    sentence = f"round {changed.round}: {changed.sentence}; the model does the same"
    return replace(changed, sentence=sentence)


def same_call(call: CallRecord, other_call: CallRecord) -> bool:
    """Return whether two calls have the same tool and the same arguments, both as written and as sent."""
    if call.tool != other_call.tool or _in_call(call.call, other_call.call) is not None:
        return False
    is_edited = call.edited is not None or other_call.edited is not None
    return not is_edited or _in_call(call.sent, other_call.sent) is None


def call_key(call: CallRecord) -> Hashable:
    """Return a key for a call. Two calls have the same key exactly if `same_call` holds."""
    # Many rounds are compared with many others. A key is computed once for each call, but `same_call` would compare
    # each pair.
    written = sent = _flat(call.call.arguments)
    if call.edited is not None:
        sent = _flat(call.edited)
    if call.call.problem is None:
        return call.tool, written, sent
    return call.tool, written, sent, call.call.raw, call.edited is None


def _flat(value: JsonValue | Mapping[str, JsonValue]) -> tuple[Hashable, ...]:
    """Return a JSON value as a flat tuple. Two tuples are equal if the values are `json_equal`."""
    # A stack replaces recursion, because the arguments of a broken model can nest deeper than Python's recursion limit.
    row: list[Hashable] = []
    pending: list[JsonValue | Mapping[str, JsonValue]] = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, Mapping):
            names = sorted(one)
            row.append(("object", *names))
            pending.extend(one[name] for name in names)
        elif isinstance(one, list):
            row.append(("list", len(one)))
            pending.extend(one)
        elif isinstance(one, bool):
            # In Python, True equals 1. In JSON, they differ.
            row.append(("boolean", one))
        else:
            row.append(one)
    return tuple(row)


def same_result(call: CallRecord, other_call: CallRecord) -> bool:
    """Return whether two calls have the same result. Its source (a server, a mock, a person) does not matter."""
    return result_key(call) == result_key(other_call)


def result_key(call: CallRecord) -> Hashable:
    """Return a key for the result of a call. Two calls have the same key exactly if `same_result` holds."""
    return _answer(call.result)


def _after(changed: Difference | None, difference: Difference) -> Difference:
    if changed is None:
        return difference
    return replace(difference, sentence=f"{difference.sentence}, after {changed.sentence}")


def _end(run: Trajectory) -> str:
    if run.finish is None:
        return "is not over"
    return f"ends ({run.finish.reason})"


def _in_round(
    number: int, old: Round | None, new: Round | None, origin: Trajectory, fork: Trajectory
) -> Difference | None:
    """Return the first difference in a round, except for changes by a person; `None` if there is none.

    A missing round is a difference, too."""
    at = f"round {number}"
    if new is None:
        return Difference(number, "end", f"{at}: {_end(fork)}, while the other run continues")
    if old is None:
        return Difference(number, "end", f"{at}: continues, while the other run {_end(origin)}")
    if not _has_manual_message(old, new) and (text := _other_message("says", old, new)) is not None:
        return Difference(number, "message", f"{at}: {text}")
    has_many_calls = max(len(old.calls), len(new.calls)) > 1
    for place, (before, now) in enumerate(zip_longest(old.calls, new.calls)):
        where = f"{at}, call {place + 1}" if has_many_calls else at
        if before is None or now is None or before.tool != now.tool:
            text = _other_tool(old, before, new, now)
            return Difference(number, "tool", f"{where}: {text}", place)
        found = _in_call(before.call, now.call)
        if found is not None:
            argument, text = found
            return Difference(number, "argument", f"{where}: calls {now.tool} {text}", place, argument)
    if (text := _change_text("says", new.text, old.text)) is not None:
        return Difference(number, "text", f"{at}: {text}")
    for place, (before, now) in enumerate(zip(old.calls, new.calls, strict=True)):
        was, result = _answer(before.result), _answer(now.result)
        if was != result and not _changed(before, now):
            where = f"{at}, call {place + 1}" if has_many_calls else at
            is_answered = "not answered" if result is None else f"answered {_answered(result, was)}"
            text = f"{now.tool} is {is_answered} instead of {_answered(was, result)}"
            return Difference(number, "result", f"{where}: {text}", place)
    return None


def _other_message(verb: str, old: Round, new: Round) -> str | None:
    """Describe the difference between the messages of two rounds. Return `None` if the messages are equal."""
    subject = "receives" if old.said is None and new.said is None else f"the user {verb}"
    return _change_text(subject, " ".join(_asked(new)), " ".join(_asked(old)))


def _has_manual_message(old: Round, new: Round) -> bool:
    """Return whether a person spoke in place of a conversation's user."""
    return any(each.said is not None and each.said.by == "person" for each in (old, new))


def _message_by_hand(old: Round, new: Round) -> Difference | None:
    if _has_manual_message(old, new) and (said := _other_message("said", old, new)) is not None:
        return _by_hand(new.number, "message", said, here=True)
    if old.added == new.added:
        return None
    text = "\n".join(new.added or old.added)
    return _by_hand(new.number, "message", f"{_quoted(text, '')} was added by hand", here=bool(new.added))


def _call_by_hand(old: Round, new: Round) -> Difference | None:
    for place, (before, now) in enumerate(zip(old.calls, new.calls, strict=True)):
        found = _in_call(before.sent, now.sent)
        if found is not None:
            text = f"the arguments of {now.tool} were changed"
            return _by_hand(new.number, "argument", text, place, found[0], here=now.edited is not None)
        if _answer(before.result) != _answer(now.result):
            here = _manual_result_change(now)
            text = here or _manual_result_change(before)
            return _by_hand(new.number, "result", text, place, here=bool(here))
    return None


def _changed(call: CallRecord, other_call: CallRecord) -> bool:
    return bool(
        _manual_result_change(call) or _manual_result_change(other_call) or _in_call(call.sent, other_call.sent)
    )


def _manual_result_change(call: CallRecord) -> str:
    if call.unedited is not None:
        return f"the result of {call.tool} was changed"
    if call.result is None:
        return ""
    text = {"skipped": f"{call.tool} was skipped", "edited": f"{call.tool} was answered by hand"}
    return text.get(call.result.source, "")


def _by_hand(
    number: int, kind: DifferenceKind, text: str, call: int | None = None, argument: str | None = None, *, here: bool
) -> Difference:
    if not here:
        text += " in the other run"
    return Difference(number, kind, text, call, argument, by_hand=True)


def _other_tool(old: Round, before: CallRecord | None, new: Round, now: CallRecord | None) -> str:
    if now is None:
        assert before is not None
        if not new.calls and new.text:
            return f"answers in words instead of calling {_call_text(before)}"
        return f"does not call {_call_text(before)}"
    if before is not None:
        return f"calls {_call_text(now)} instead of {before.tool}"
    if not old.calls and old.stop_reason is not None:
        return f"calls {_call_text(now)} instead of answering"
    return f"calls {_call_text(now)} as well"


def _in_call(old: ToolCall, new: ToolCall) -> tuple[str | None, str] | None:
    """Return the name of the first argument that differs, and the difference in words, or `None` if all are equal.

    If the arguments of one side are not a JSON object, they differ as a whole and the name is `None`."""
    for name in sorted({*old.arguments, *new.arguments}):
        if _same(old.arguments, new.arguments, name):
            continue
        if name not in new.arguments:
            return name, f"without {name}, not with {_value(old.arguments[name])}"
        value = _value(new.arguments[name])
        if name not in old.arguments:
            return name, f"with {name}={value}, not without"
        return name, f"with {name}={value} instead of {_value(old.arguments[name])}"
    if (old.problem is None) != (new.problem is None) or (old.problem is not None and old.raw != new.raw):
        return None, f"with {_raw(new)} instead of {_raw(old)}"
    return None


def _same(old: Mapping[str, JsonValue], new: Mapping[str, JsonValue], name: str) -> bool:
    return name in old and name in new and json_equal(old[name], new[name])


def _raw(call: ToolCall) -> str:
    if call.problem is None:
        return "an object of arguments"
    if call.raw:
        return f"{_value(call.raw)} (not a JSON object)"
    return "broken arguments"


def _answer(result: ResultReceived | None) -> tuple[str, bool] | None:
    if result is None:
        return None
    return result.content, result.is_error


def _answered(result: tuple[str, bool] | None, other: tuple[str, bool] | None) -> str:
    if result is None:
        return "nothing"
    content, is_error = result
    quoted = _quoted(content, other[0] if other is not None else "")
    if is_error:
        return f"by the error {quoted}"
    return quoted


def _call_text(record: CallRecord) -> str:
    given = ", ".join(f"{name}={_value(value)}" for name, value in record.arguments.items())
    return f"{record.tool}({_cut(given)})"


def _value(value: JsonValue) -> str:
    try:
        return _cut(json_text(value))
    except RecursionError:
        return "a value too deep to show"


def _change_text(verb: str, new: str, old: str) -> str | None:
    """Describe how two texts differ, as in `says "Yes" instead of nothing`. Return `None` if they are equal."""
    if new == old:
        return None
    return f"{verb} {_quoted(new, old)} instead of {_quoted(old, new)}"


def _quoted(text: str, other: str) -> str:
    """Quote a text from shortly before its first difference to another text. Return `nothing` for an empty text."""
    if not text:
        return "nothing"
    same = 0
    while same < min(len(text), len(other)) and text[same] == other[same]:
        same += 1
    # The quote begins eight characters before the difference, or earlier at the start of a word.
    begin = text.rfind(" ", 0, max(same - 8, 0)) + 1
    if begin == 0:
        return json_text(_cut(text))
    return json_text("…" + _cut(text[begin:]))


def _cut(text: str) -> str:
    if len(text) <= _MAX_QUOTE_CHARS:
        return text
    return text[: _MAX_QUOTE_CHARS - 1] + "…"


# The alignment: every part of both runs beside its counterpart.


PartKind = Literal["system", "said", "round", "text", "call", "result", "end"]
"""The kind of a part of a run. `said` is a message to the model, `round` is the start of a round, `text` is the model's
text, and `result` is the result of a call."""

PartState = Literal["same", "differs", "left", "right"]
"""The result of comparing a part with its counterpart. With `left` and `right`, only one side has the part."""

MAX_COMPARED = 10_000
"""The most pairs of rounds (or of calls) that are compared. Above this limit, rounds and calls are paired in order."""

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a run.

    `round` counts from 1, and is 0 before the first round. `text` is a prompt, a message, the model's text, or a
    description of the end. `call` is set if the part is a call or a result, and `of` is set if it is a round."""

    kind: PartKind
    round: int
    text: str = ""
    call: CallRecord | None = None
    of: Round | None = None


@dataclass(frozen=True, slots=True)
class AlignedRow:
    """A part of the left run beside its counterpart in the right run. A side without a counterpart is `None`.

    `state` says whether the sides are the same. For a round, this includes everything in the round."""

    left: Part | None
    right: Part | None
    state: PartState

    @property
    def part(self) -> Part:
        """The left part, or the right part if the left run has none."""
        part = self.left or self.right
        assert part is not None
        return part


def align(left: Trajectory, right: Trajectory) -> tuple[AlignedRow, ...]:
    """Return every part of both runs, in order, each beside its counterpart in the other run.

    Equal rounds at the beginning and the end stay together. In between, rounds and calls are matched so that as many as
    possible have the same tools on both sides. A round without a match is paired with the other side's round at the
    same position, or stands alone. The differences are of the kinds of `first_difference`. Differences in system
    prompts and first messages are added."""
    rows = [*_texts("system", (0, 0), _first_prompt(left), _first_prompt(right))]
    rows += _texts("said", (0, 0), _first_texts(left), _first_texts(right))
    for one, other in _matched_rounds(left.rounds, right.rounds):
        rows += _round(one, other)
    return (*rows, *_texts("end", (0, 0), [_end(left)], [_end(right)]))


def _first_prompt(run: Trajectory) -> list[str]:
    if run.start is None:
        return []
    prompt = with_instructions(run.start.system, run.start.instructions)
    if not prompt:
        return []
    return [prompt]


def _first_texts(run: Trajectory) -> list[str]:
    if run.start is None:
        return []
    return [message.content for message in run.start.messages]


def _texts(kind: PartKind, rounds: tuple[int, int], left: Sequence[str], right: Sequence[str]) -> Iterator[AlignedRow]:
    lefts = (Part(kind, rounds[0], text) for text in left)
    rights = (Part(kind, rounds[1], text) for text in right)
    for old, new in zip_longest(lefts, rights):
        same = old is not None and new is not None and old.text == new.text
        yield _row(old, new, is_same=same)


def _row(left: Part | None, right: Part | None, *, is_same: bool) -> AlignedRow:
    if right is None:
        return AlignedRow(left, right, "left")
    if left is None:
        return AlignedRow(left, right, "right")
    return AlignedRow(left, right, "same" if is_same else "differs")


# Rounds and calls, matched by their tools.


def _round(left: Round | None, right: Round | None) -> list[AlignedRow]:
    # A missing side is replaced by a round without parts, so the code below need not check for it.
    one, other = left or _NO_ROUND, right or _NO_ROUND
    numbers = (one.number, other.number)
    old = Part("round", left.number, of=left) if left is not None else None
    new = Part("round", right.number, of=right) if right is not None else None
    rows = [
        *_texts("system", numbers, _prompt(one), _prompt(other)),
        *_texts("said", numbers, _asked(one), _asked(other)),
        *_texts("said", numbers, one.added, other.added),
        *_texts("text", numbers, _text(one), _text(other)),
    ]
    for call, beside in _matched(one.calls, other.calls, _call_fingerprint, _call_similarity):
        rows += _call(call, beside, numbers)
    return [_row(old, new, is_same=all(row.state == "same" for row in rows)), *rows]


_NO_ROUND = Round(0)


def _prompt(round_: Round) -> list[str]:
    if round_.step is None or not round_.step.system:
        return []
    return [round_.step.system]


def _asked(round_: Round) -> list[str]:
    texts = []
    if round_.step is not None:
        texts.append(round_.step.user)
    if round_.said is not None:
        texts.append(round_.said.text)
    return [text for text in texts if text]


def _text(round_: Round) -> list[str]:
    return [round_.text] if round_.text else []


def _call(left: CallRecord | None, right: CallRecord | None, rounds: tuple[int, int]) -> Iterator[AlignedRow]:
    old, new = _part_of("call", rounds[0], left), _part_of("call", rounds[1], right)
    was, now = _part_of("result", rounds[0], left), _part_of("result", rounds[1], right)
    has_same_call = has_same_answer = False
    if left is not None and right is not None:
        has_same_call, has_same_answer = same_call(left, right), same_result(left, right)
    yield _row(old, new, is_same=has_same_call)
    if was is not None or now is not None:
        yield _row(was, now, is_same=has_same_answer)


def _part_of(kind: Literal["call", "result"], round_: int, call: CallRecord | None) -> Part | None:
    if call is None or (kind == "result" and call.result is None):
        return None
    return Part(kind, round_, call=call)


def _alike(left: Round, right: Round) -> bool:
    """Return whether two rounds are equal except for their numbers and times."""
    if len(left.calls) != len(right.calls) or left.text != right.text:
        return False
    if (_prompt(left), _asked(left), left.added) != (_prompt(right), _asked(right), right.added):
        return False
    pairs = zip(left.calls, right.calls, strict=True)
    return all(same_call(one, other) and same_result(one, other) for one, other in pairs)


@dataclass(frozen=True, slots=True)
class _Fingerprint:
    """A round or a call prepared for many comparisons.

    Two rounds (or two calls) are equal exactly if their `identity` is equal."""

    identity: int
    tools: tuple[str, ...]
    step: int | None = None


def _round_similarity(left: _Fingerprint, right: _Fingerprint) -> int:
    """Return how similar two rounds are. 0 means that no property suggests that they correspond."""
    # Two rounds that answer the same step of a case correspond. A common step counts 5, because equal tools count at
    # most 4.
    likeness = 5 if left.step is not None and left.step == right.step else 0
    if left.tools and left.tools == right.tools:
        return likeness + 3 + (left.identity == right.identity)
    if left.tools == right.tools or not set(left.tools).isdisjoint(right.tools):
        return likeness + 2
    return likeness


def _call_similarity(left: _Fingerprint, right: _Fingerprint) -> int:
    if left.tools != right.tools:
        return 0
    return 1 + (left.identity == right.identity)


def _call_fingerprint(call: CallRecord, known: dict[Hashable, int]) -> _Fingerprint:
    return _Fingerprint(known.setdefault(call_key(call), len(known)), (call.tool,))


def _round_fingerprint(round_: Round, known: dict[Hashable, int]) -> _Fingerprint:
    # `None` separates the texts, so a prompt alone differs from a message alone.
    texts = (round_.text, *_prompt(round_), None, *_asked(round_), None, *round_.added)
    calls = tuple((call_key(call), result_key(call)) for call in round_.calls)
    number = known.setdefault((texts, calls), len(known))
    return _Fingerprint(number, tools_of(round_.calls), round_.step_number)


def _matched_rounds(left: Sequence[Round], right: Sequence[Round]) -> Iterator[tuple[Round | None, Round | None]]:
    # Equal items at both ends are paired first, without the table of all pairs: most runs differ only in a few rounds.
    shorter = min(len(left), len(right))
    first = last = 0
    while first < shorter and _alike(left[first], right[first]):
        first += 1
    while last < shorter - first and _alike(left[-1 - last], right[-1 - last]):
        last += 1
    left_end, right_end = len(left) - last, len(right) - last
    yield from zip(left[:first], right[:first], strict=True)
    yield from _matched(left[first:left_end], right[first:right_end], _round_fingerprint, _round_similarity)
    yield from zip(left[left_end:], right[right_end:], strict=True)


def _matched(
    left: Sequence[_Item],
    right: Sequence[_Item],
    sketch: Callable[[_Item, dict[Hashable, int]], _Fingerprint],
    likeness: Callable[[_Fingerprint, _Fingerprint], int],
) -> Iterator[tuple[_Item | None, _Item | None]]:
    """Yield the pairs of items with the largest total likeness, in order.

    An item without a match is paired with an unmatched item of the other side at the same position, or stands alone."""
    if not left or not right or len(left) * len(right) > MAX_COMPARED:
        yield from zip_longest(left, right)
        return
    known: dict[Hashable, int] = {}
    others = [sketch(other, known) for other in right]
    like = []
    for each in left:
        one = sketch(each, known)
        like.append([likeness(one, other) for other in others])
    # The alignment of Needleman and Wunsch (1970) without a penalty for gaps: `best[at][to]` is the largest total
    # likeness of left[at:] and right[to:]. The table is filled from the end, so the walk through the table runs
    # forward.
    best = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for at in range(len(left) - 1, -1, -1):
        for to in range(len(right) - 1, -1, -1):
            together = like[at][to] + best[at + 1][to + 1]
            best[at][to] = max(together, best[at + 1][to], best[at][to + 1])
    at = to = 0
    while at < len(left) and to < len(right):
        if best[at][to] == like[at][to] + best[at + 1][to + 1]:
            yield left[at], right[to]
            at, to = at + 1, to + 1
        elif best[at][to] == best[at + 1][to]:
            yield left[at], None
            at += 1
        else:
            yield None, right[to]
            to += 1
    yield from zip_longest(left[at:], right[to:])
