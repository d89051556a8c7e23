"""Aligns two trajectories: which round, call, text and result of one corresponds to which of the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Literal, TypeVar

from workbench.checks.values import json_equal
from workbench.dataclasses import dataclass, json_text
from workbench.trajectory.events import JsonValue, ResultReceived, ToolCall
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

# Finds where two trajectories begin to differ: the first place at which one run continues differently, by itself or
# because a person changed something.

What = Literal["message", "tool", "argument", "text", "result", "end"]
"""What differs: a message to the model, a call, one of its arguments, the model's text, the result of a call, or
whether and how the run ends."""

_MAX_QUOTE_CHARS = 40


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference between two runs, and a sentence for a person about it.

    `round` counts from 1; `call` is a call's place in its round, from 0, and `argument` the name of one of its
    arguments. `by_hand` is a difference that a person made."""

    round: int
    what: What
    sentence: str
    call: int | None = None
    argument: str | None = None
    by_hand: bool = False


def first_difference(origin: Trajectory, fork: Trajectory) -> Difference | None:
    """Return how the second run first differs from the first one; `None` where both are equal to the end.

    The place is the same in either order of the runs.

    Within a round, messages to the model are compared before its calls, these before its text, and that before the
    results. Ids, times, tokens and the source of a result do not count, nor does the system prompt. A person's change
    is the difference only where there is no other one; else the sentence ends with it.
    """
    changed: Difference | None = None
    for number, (old, new) in enumerate(zip_longest(origin.rounds, fork.rounds), start=1):
        if old is not None and new is not None:
            changed = changed or _message_by_hand(old, new)
        found = _in_round(number, old, new, origin, fork)
        if found is not None:
            return _after(changed, found)
        if old is not None and new is not None:
            changed = changed or _call_by_hand(old, new)
    if _divergence_end(origin) != _divergence_end(fork):
        number = max(len(fork.rounds), 1)
        ends = f"round {number}: {_divergence_end(fork)}, while the other run {_divergence_end(origin)}"
        return _after(changed, Difference(number, "end", ends))
    if changed is None:
        return None
    sentence = f"round {changed.round}: {changed.sentence}; the model does the same"
    return replace(changed, sentence=sentence)


def same_call(one: CallRecord, other: CallRecord) -> bool:
    """Return whether two calls are of one tool with the same arguments, both as the model wrote them and as they were
    answered."""
    alike = one.tool == other.tool and _in_call(one.call, other.call) is None
    if one.edited is None and other.edited is None:
        return alike
    return alike and _in_call(one.sent, other.sent) is None


def identity_of_call(call: CallRecord) -> Hashable:
    """Return a key that is equal for two calls exactly when they are the same, to compare many with many."""
    written = _flat(call.call.arguments)
    sent = written if call.edited is None else _flat(call.edited)
    broken = call.call.problem is not None
    return call.tool, written, sent, (call.call.raw if broken else None, broken, broken and call.edited is None)


def _flat(value: JsonValue | Mapping[str, JsonValue]) -> tuple[Hashable, ...]:
    """Return a JSON value as a flat row, equal for values that are `json_equal`.

    Works without recursion, at any depth."""
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
        else:
            row.append(("boolean", one) if isinstance(one, bool) else one)
    return tuple(row)


def same_answer(one: CallRecord, other: CallRecord) -> bool:
    """Return whether two calls have the same result, whatever its source."""
    return identity_of_answer(one) == identity_of_answer(other)


def identity_of_answer(call: CallRecord) -> Hashable:
    """Return a key that is equal for two calls exactly when their results are the same."""
    return _answer(call.result)


def _after(changed: Difference | None, found: Difference) -> Difference:
    return found if changed is None else replace(found, sentence=f"{found.sentence}, after {changed.sentence}")


def _divergence_end(run: Trajectory) -> str:
    return f"ends ({run.finish.reason})" if run.finish is not None else "is not over"


def _in_round(
    number: int, old: Round | None, new: Round | None, origin: Trajectory, fork: Trajectory
) -> Difference | None:
    """Return the first difference that no person made; a missing round is one."""
    at = f"round {number}"
    if new is None or old is None:
        ends = f"{_divergence_end(fork)}, while the other run continues"
        goes_on = f"continues, while the other run {_divergence_end(origin)}"
        return Difference(number, "end", f"{at}: {ends if new is None else goes_on}")
    told, is_told = _divergence_asked(old), _divergence_asked(new)
    if told != is_told:
        text = _instead(f"receives {_quoted(is_told, told)}", is_told, told, "receives nothing")
        return Difference(number, "message", f"{at}: {text}")
    several = max(len(old.calls), len(new.calls)) > 1
    for place, (before, now) in enumerate(zip_longest(old.calls, new.calls)):
        where = f"{at}, call {place + 1}" if several else at
        if before is None or now is None or before.tool != now.tool:
            text = _other_tool(old, before, new, now)
            return Difference(number, "tool", f"{where}: {text}", place)
        found = _in_call(before.call, now.call)
        if found is not None:
            argument, text = found
            return Difference(number, "argument", f"{where}: calls {now.tool} {text}", place, argument)
    if old.text != new.text:
        text = _instead(f"says {_quoted(new.text, old.text)}", new.text, old.text, "says nothing")
        return Difference(number, "text", f"{at}: {text}")
    for place, (answered, call) in enumerate(zip(old.calls, new.calls, strict=True)):
        before_result, result = _answer(answered.result), _answer(call.result)
        if before_result != result and not _changed(answered, call):
            is_answered = f"answered {_answered(result, before_result)}" if result is not None else "not answered"
            text = f"{call.tool} is {is_answered} instead of {_answered(before_result, result)}"
            where = f"{at}, call {place + 1}" if several else at
            return Difference(number, "result", f"{where}: {text}", place)
    return None


def _message_by_hand(old: Round, new: Round) -> Difference | None:
    if old.added == new.added:
        return None
    text = "\n".join(new.added or old.added)
    return _by_hand(new.number, "message", f"{_quoted(text, '')} was added by hand", here=bool(new.added))


def _call_by_hand(old: Round, new: Round) -> Difference | None:
    """Return what a person did differently with the same calls.

    Among several changes to one call the first one is named."""
    for place, (before, now) in enumerate(zip(old.calls, new.calls, strict=True)):
        found = _in_call(before.sent, now.sent)
        if found is not None:
            text = f"the arguments of {now.tool} were changed"
            return _by_hand(new.number, "argument", text, place, found[0], here=now.edited is not None)
        if _answer(before.result) != _answer(now.result):
            here = _hand_at_result(now)
            text = here or _hand_at_result(before)
            return _by_hand(new.number, "result", text, place, here=bool(here))
    return None


def _changed(one: CallRecord, other: CallRecord) -> bool:
    """Return whether two calls are answered differently because a person changed something."""
    return bool(_hand_at_result(one) or _hand_at_result(other) or _in_call(one.sent, other.sent))


def _hand_at_result(call: CallRecord) -> str:
    """Return what a person did with a call's result; empty if nothing."""
    if call.unedited is not None:
        return f"the result of {call.tool} was changed"
    source = call.result.source if call.result is not None else None
    text = {"skipped": f"{call.tool} was skipped", "edited": f"{call.tool} was answered by hand"}
    return text.get(source or "", "")


def _by_hand(
    number: int, what: What, text: str, call: int | None = None, argument: str | None = None, *, here: bool
) -> Difference:
    """Return the difference made by a person; `here` is whether it was in the second run."""
    return Difference(number, what, text if here else f"{text} in the other run", call, argument, by_hand=True)


def _divergence_asked(of: Round) -> str:
    """Return what the case says to the model before the request."""
    return (of.step.user or "") if of.step is not None else ""


def _other_tool(old: Round, before: CallRecord | None, new: Round, now: CallRecord | None) -> str:
    if now is None:
        assert before is not None
        answers = not new.calls and new.text
        return (
            f"answers in words instead of calling {_divergence_call(before)}"
            if answers
            else f"does not call {_divergence_call(before)}"
        )
    if before is None:
        answered = not old.calls and old.stop_reason is not None
        return f"calls {_divergence_call(now)} {'instead of answering' if answered else 'as well'}"
    return f"calls {_divergence_call(now)} instead of {before.tool}"


def _in_call(old: ToolCall, new: ToolCall) -> tuple[str | None, str] | None:
    """Return the first argument that differs, and a description of both."""
    names = sorted(name for name in {*old.arguments, *new.arguments} if not _same(old.arguments, new.arguments, name))
    if names:
        name = names[0]
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
    return f"{_value(call.raw)} (no JSON object)" if call.raw else "broken arguments"


def _answer(result: ResultReceived | None) -> tuple[str, bool] | None:
    return (result.content, result.is_error) if result is not None else None


def _answered(result: tuple[str, bool] | None, other: tuple[str, bool] | None) -> str:
    if result is None:
        return "nothing"
    differing_from = other[0] if other is not None else ""
    return ("by the error " if result[1] else "") + _quoted(result[0], differing_from)


def _divergence_call(record: CallRecord) -> str:
    given = ", ".join(f"{name}={_value(value)}" for name, value in record.arguments.items())
    return f"{record.tool}({_cut(given)})"


def _value(value: JsonValue) -> str:
    try:
        return _cut(json_text(value))
    except RecursionError:
        return "a value too deep to show"


def _instead(text: str, new: str, old: str, nothing: str) -> str:
    if not new:
        return f"{nothing} instead of {_quoted(old, new)}"
    return f"{text} instead of {_quoted(old, new)}" if old else f"{text} instead of nothing"


def _quoted(text: str, other: str) -> str:
    """Return a text from shortly before the place where it begins to differ."""
    shorter = min(len(text), len(other))
    same = next((at for at in range(shorter) if text[at] != other[at]), shorter)
    begin = text.rfind(" ", 0, max(same - 8, 0)) + 1
    return json_text(("…" if begin else "") + _cut(text[begin:]))


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_QUOTE_CHARS else text[: _MAX_QUOTE_CHARS - 1] + "…"


Kind = Literal["system", "said", "round", "text", "call", "result", "end"]
"""The kind of a part: a system prompt, a message to the model, the start of a round, the model's text in it, one of its
calls, the result of a call, and the end of the run."""

How = Literal["same", "differs", "left", "right"]
"""How a part compares with its counterpart; `left` and `right`: only that side has it."""

MAX_COMPARED = 10_000
"""With more pairs of rounds than this, the rounds between the first and the last difference are paired in order."""

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that happened.

    `round` counts from 1, and is 0 before the first one. `text` is that of prompts, messages and answers, and how the
    run ends; a call and a result have their `call`, a round its `of`."""

    kind: Kind
    round: int
    text: str = ""
    call: CallRecord | None = None
    of: Round | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A part of the left run and its counterpart of the right one.

    A round is the `same` when everything in it is."""

    left: Part | None
    right: Part | None
    how: How

    @property
    def part(self) -> Part:
        """The part of either side."""
        part = self.left or self.right
        assert part is not None
        return part


def aligned(left: Trajectory, right: Trajectory) -> tuple[Row, ...]:
    """Return every part of both runs, once and in order, with its counterpart in the other run.

    Equal beginnings and endings stay together. In between, rounds and calls are matched so that as many as possible
    have the same tools on both sides; one without a match is paired with what happened in its place, or stands alone.
    What counts as a difference is the same as for `first_difference`, and in addition system prompts and the first
    messages.
    """
    rows = [*_texts("system", (0, 0), _first_prompt(left), _first_prompt(right))]
    rows += _texts("said", (0, 0), _first_texts(left), _first_texts(right))
    for one, other in _matched_rounds(left.rounds, right.rounds):
        rows += _round(one, other)
    return (*rows, *_texts("end", (0, 0), [_end(left)], [_end(right)]))


def _end(run: Trajectory) -> str:
    return f"ends ({run.finish.reason})" if run.finish is not None else "is not over"


def _first_prompt(run: Trajectory) -> list[str]:
    return [run.start.system] if run.start is not None and run.start.system else []


def _first_texts(run: Trajectory) -> list[str]:
    messages = run.start.messages if run.start is not None else ()
    return [message.content for message in messages]


def _texts(kind: Kind, rounds: tuple[int, int], left: Sequence[str], right: Sequence[str]) -> Iterator[Row]:
    """Return texts paired in order."""
    for one, other in zip_longest(left, right):
        parts = [
            Part(kind, number, text) if text is not None else None
            for number, text in zip(rounds, (one, other), strict=True)
        ]
        yield _row(parts[0], parts[1], same=one == other)


def _row(left: Part | None, right: Part | None, *, same: bool) -> Row:
    if left is None or right is None:
        return Row(left, right, "left" if right is None else "right")
    return Row(left, right, "same" if same else "differs")


# Rounds


def _round(left: Round | None, right: Round | None) -> list[Row]:
    """Return the rows of two corresponding rounds, or of one that stands alone."""
    heads = [Part("round", of.number, of=of) if of is not None else None for of in (left, right)]
    one, other = left or _NO_ROUND, right or _NO_ROUND
    numbers = (one.number, other.number)
    rows = [
        *_texts("system", numbers, _prompt(one), _prompt(other)),
        *_texts("said", numbers, _asked(one), _asked(other)),
        *_texts("said", numbers, one.added, other.added),
        *_texts("text", numbers, _text(one), _text(other)),
    ]
    for call, beside in _matched(one.calls, other.calls, _sketch_of_call, _likeness_of_calls):
        rows += _call(call, beside, numbers)
    return [_row(heads[0], heads[1], same=all(row.how == "same" for row in rows)), *rows]


_NO_ROUND = Round(0)


def _prompt(of: Round) -> list[str]:
    return [of.step.system] if of.step is not None and of.step.system else []


def _asked(of: Round) -> list[str]:
    return [of.step.user] if of.step is not None and of.step.user else []


def _text(of: Round) -> list[str]:
    return [of.text] if of.text else []


def _call(left: CallRecord | None, right: CallRecord | None, rounds: tuple[int, int]) -> Iterator[Row]:
    sides = list(zip((left, right), rounds, strict=True))
    calls = [Part("call", number, call=call) if call is not None else None for call, number in sides]
    yield _row(calls[0], calls[1], same=left is not None and right is not None and same_call(left, right))
    answers = [
        Part("result", number, call=call) if call is not None and call.result is not None else None
        for call, number in sides
    ]
    if any(answers):
        yield _row(answers[0], answers[1], same=left is not None and right is not None and same_answer(left, right))


def _alike(left: Round, right: Round) -> bool:
    """Return whether two rounds are the same except for their numbers and times."""
    if len(left.calls) != len(right.calls) or left.text != right.text:
        return False
    if (_prompt(left), _asked(left), left.added) != (_prompt(right), _asked(right), right.added):
        return False
    pairs = zip(left.calls, right.calls, strict=True)
    return all(same_call(one, other) and same_answer(one, other) for one, other in pairs)


@dataclass(frozen=True, slots=True)
class _Sketch:
    """A round or a call prepared for many comparisons: `identity` is a number that only equal ones share."""

    identity: int
    tools: tuple[str, ...]
    step: int | None = None


def _likeness_of_rounds(left: _Sketch, right: _Sketch) -> int:
    """Return how well two rounds correspond; 0 where nothing suggests that they do."""
    if left.tools and left.tools == right.tools:
        likeness = 4 if left.identity == right.identity else 3
    else:
        related = left.tools == right.tools or not set(left.tools).isdisjoint(right.tools)
        likeness = 2 if related else 0
    return likeness + (5 if left.step is not None and left.step == right.step else 0)


def _likeness_of_calls(left: _Sketch, right: _Sketch) -> int:
    if left.tools != right.tools:
        return 0
    return 2 if left.identity == right.identity else 1


def _sketch_of_call(call: CallRecord, known: dict[Hashable, int]) -> _Sketch:
    return _Sketch(known.setdefault(identity_of_call(call), len(known)), (call.tool,))


def _sketch_of_round(of: Round, known: dict[Hashable, int]) -> _Sketch:
    texts = (of.text, *_prompt(of), None, *_asked(of), None, *of.added)
    identity = (texts, *((identity_of_call(call), identity_of_answer(call)) for call in of.calls))
    number = known.setdefault(identity, len(known))
    tools = tuple(call.tool for call in of.calls)
    return _Sketch(number, tools, of.step.step if of.step is not None else None)


def _matched_rounds(left: Sequence[Round], right: Sequence[Round]) -> Iterator[tuple[Round | None, Round | None]]:
    shorter = min(len(left), len(right))
    first = next((at for at in range(shorter) if not _alike(left[at], right[at])), shorter)
    last = next((at for at in range(shorter - first) if not _alike(left[-1 - at], right[-1 - at])), shorter - first)
    left_end, right_end = len(left) - last, len(right) - last
    yield from zip(left[:first], right[:first], strict=True)
    yield from _matched(left[first:left_end], right[first:right_end], _sketch_of_round, _likeness_of_rounds)
    yield from zip(left[left_end:], right[right_end:], strict=True)


def _matched(
    left: Sequence[_Item],
    right: Sequence[_Item],
    sketch: Callable[[_Item, dict[Hashable, int]], _Sketch],
    likeness: Callable[[_Sketch, _Sketch], int],
) -> Iterator[tuple[_Item | None, _Item | None]]:
    """Return the pairs, in order, with the largest total likeness; one without a match is paired with what is left of
    the other side in its place, or stands alone."""
    if not left or not right or len(left) * len(right) > MAX_COMPARED:
        yield from zip_longest(left, right)
        return
    known: dict[Hashable, int] = {}
    others = [sketch(other, known) for other in right]
    like = [[likeness(one, other) for other in others] for one in (sketch(each, known) for each in left)]
    # The best total that can begin at a pair of places.
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
