"""Aligns two trajectories: which round, call, text and result of one corresponds to which of the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import zip_longest
from typing import Literal, TypeVar

from workbench.analysis.divergence import identity_of_answer, identity_of_call, same_answer, same_call
from workbench.dataclasses import dataclass
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

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
    """One thing that happened. `round` counts from 1, and is 0 before the first one. `text` is that of prompts,
    messages and answers, and how the run ends; a call and a result have their `call`, a round its `of`."""

    kind: Kind
    round: int
    text: str = ""
    call: CallRecord | None = None
    of: Round | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A part of the left run and its counterpart of the right one. A round is the `same` when everything in it is."""

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
    """Returns every part of both runs, once and in order, with its counterpart in the other run.

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
    return [message.content for message in run.start.messages] if run.start is not None else []


def _texts(kind: Kind, rounds: tuple[int, int], left: Sequence[str], right: Sequence[str]) -> Iterator[Row]:
    """Returns texts paired in order."""
    for one, other in zip_longest(left, right):
        parts = [
            Part(kind, number, text) if text is not None else None
            for number, text in zip(rounds, (one, other), strict=True)
        ]
        yield _row(parts[0], parts[1], same=one == other)


def _row(left: Part | None, right: Part | None, *, same: bool) -> Row:
    return Row(left, right, "left" if right is None else "right" if left is None else "same" if same else "differs")


# Rounds


def _round(left: Round | None, right: Round | None) -> list[Row]:
    """Returns the rows of two corresponding rounds, or of one that stands alone."""
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
    """Returns whether two rounds are the same except for their numbers and times."""
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
    """Returns how well two rounds correspond; 0 where nothing suggests that they do."""
    if left.tools == right.tools:
        likeness = (4 if left.identity == right.identity else 3) if left.tools else 2
    else:
        likeness = 2 if not set(left.tools).isdisjoint(right.tools) else 0
    return likeness + (5 if left.step is not None and left.step == right.step else 0)


def _likeness_of_calls(left: _Sketch, right: _Sketch) -> int:
    return 0 if left.tools != right.tools else 2 if left.identity == right.identity else 1


def _sketch_of_call(call: CallRecord, known: dict[Hashable, int]) -> _Sketch:
    return _Sketch(known.setdefault(identity_of_call(call), len(known)), (call.tool,))


def _sketch_of_round(of: Round, known: dict[Hashable, int]) -> _Sketch:
    texts = (of.text, *_prompt(of), None, *_asked(of), None, *of.added)
    identity = (texts, *((identity_of_call(call), identity_of_answer(call)) for call in of.calls))
    number = known.setdefault(identity, len(known))
    return _Sketch(number, tuple(call.tool for call in of.calls), of.step.step if of.step is not None else None)


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
    """Returns the pairs, in order, with the largest total likeness; one without a match is paired with what is left of
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
