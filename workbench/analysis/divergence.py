"""Where two trajectories begin to differ: the first place at which one run goes another way than the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from workbench.checks.equality import json_equal
from workbench.trajectory.events import ResultReceived
from workbench.trajectory.json_text import json_text
from workbench.trajectory.messages import JsonValue, ToolCall
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

What = Literal["message", "tool", "argument", "text", "result", "end"]
"""What is another: something said to the model, a call, one of its arguments, the model's text, what answered a call,
or whether and how the run ends."""

_LONGEST_QUOTE = 40


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference of a run to another one, and a sentence for people about what it does otherwise. `round`
    counts from 1; `call` is a call's place in its round, from 0, and `argument` the name of one of its arguments."""

    round: int
    what: What
    sentence: str
    call: int | None = None
    argument: str | None = None


def first_difference(origin: Trajectory, fork: Trajectory) -> Difference | None:
    """How the second run differs first from the first one; `None` where both say and do the same, and end alike.

    The place is the same whichever of them comes first. Within a round, what was said to the model counts before its
    calls, these before its text, and that before what answers the calls. Ids, times, tokens and who answered a call do
    not count, nor does the system prompt.
    """
    number = 0
    for number, (old, new) in enumerate(zip_longest(origin.rounds, fork.rounds), start=1):
        if new is None:
            return Difference(number, "end", f"round {number}: {_end(fork)}, where the other run goes on")
        if old is None:
            return Difference(number, "end", f"round {number}: goes on, where the other run {_end(origin)}")
        found = _in_round(old, new)
        if found is not None:
            return found
    if _end(origin) != _end(fork):
        number = max(number, 1)
        return Difference(number, "end", f"round {number}: {_end(fork)}, where the other run {_end(origin)}")
    return None


def _end(run: Trajectory) -> str:
    return f"ends ({run.finish.reason})" if run.finish is not None else "is not over"


def _in_round(old: Round, new: Round) -> Difference | None:
    at = f"round {new.number}"
    if _told(old) != _told(new):
        said = _instead(f"is told {_quoted(_told(new), _told(old))}", _told(new), _told(old), "is told nothing")
        return Difference(new.number, "message", f"{at}: {said}")
    several = max(len(old.calls), len(new.calls)) > 1
    for place, (before, now) in enumerate(zip_longest(old.calls, new.calls)):
        where = f"{at}, call {place + 1}" if several else at
        if before is None or now is None or before.tool != now.tool:
            said = _other_tool(old, before, new, now)
            return Difference(new.number, "tool", f"{where}: {said}", place)
        found = _in_call(before.call, now.call) or _in_call(before.sent, now.sent)
        if found is not None:
            argument, said = found
            return Difference(new.number, "argument", f"{where}: calls {now.tool} {said}", place, argument)
    if old.text != new.text:
        said = _instead(f"says {_quoted(new.text, old.text)}", new.text, old.text, "says nothing")
        return Difference(new.number, "text", f"{at}: {said}")
    for place, (answered, call) in enumerate(zip(old.calls, new.calls, strict=True)):
        before_result, result = _answer(answered.result), _answer(call.result)
        if before_result != result:
            is_answered = f"answered {_answered(result, before_result)}" if result is not None else "not answered"
            said = f"{call.tool} is {is_answered} instead of {_answered(before_result, result)}"
            where = f"{at}, call {place + 1}" if several else at
            return Difference(new.number, "result", f"{where}: {said}", place)
    return None


def _told(of: Round) -> str:
    """What is said to the model before its request."""
    user = of.step.user if of.step is not None else None
    return "\n".join((user, *of.added) if user is not None else of.added)


def _other_tool(old: Round, before: CallRecord | None, new: Round, now: CallRecord | None) -> str:
    if now is None:
        assert before is not None
        answers = not new.calls and new.stop_reason is not None
        return f"answers instead of calling {_call(before)}" if answers else f"does not call {_call(before)}"
    if before is None:
        answered = not old.calls and old.stop_reason is not None
        return f"calls {_call(now)} {'instead of answering' if answered else 'as well'}"
    return f"calls {_call(now)} instead of {before.tool}"


def _in_call(old: ToolCall, new: ToolCall) -> tuple[str | None, str] | None:
    """The first argument that is another, and what is said of it."""
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
    return ("by the error " if result[1] else "") + _quoted(result[0], other[0] if other is not None else "")


def _call(record: CallRecord) -> str:
    given = ", ".join(f"{name}={json_text(value)}" for name, value in record.arguments.items())
    return f"{record.tool}({_cut(given)})"


def _value(value: JsonValue) -> str:
    return _cut(json_text(value))


def _instead(said: str, new: str, old: str, nothing: str) -> str:
    if not new:
        return f"{nothing} instead of {_quoted(old, new)}"
    return f"{said} instead of {_quoted(old, new)}" if old else f"{said}, where nothing was said"


def _quoted(text: str, other: str) -> str:
    """A text from a little before where it begins to be another one."""
    shorter = min(len(text), len(other))
    same = next((at for at in range(shorter) if text[at] != other[at]), shorter)
    begin = text.rfind(" ", 0, max(same - 8, 0)) + 1
    return json_text(("…" if begin else "") + _cut(text[begin:]))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…"
