"""Forks a run: everything before a point of another run is replayed, and no model or tool is asked for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count, zip_longest

from workbench.dataclasses import dataclass
from workbench.engine.checkpoint import At, EditResult
from workbench.engine.turns import Turn, Turns
from workbench.suite.model import Case
from workbench.suite.settings import CaseSettings
from workbench.suite.variants import model_of
from workbench.trajectory.events import (
    CallEdited,
    CallFinished,
    CallStarted,
    Event,
    EventPayload,
    FinishReason,
    Forked,
    Message,
    MessageAdded,
    Paused,
    ReasoningDelta,
    Regenerated,
    RequestStarted,
    ResultEdited,
    ResultReceived,
    TextDelta,
)
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory, fold

# Converts the answers of one model so that any other model accepts them: with new call ids, and without provider
# state.

_ID = "call{:05}"
"""The strictest API requires nine letters and digits. Others limit the length or the characters."""


def for_another_model(rounds: Iterable[Round], opening: Iterable[Message]) -> tuple[Round, ...]:
    """Return rounds that follow the opening of a conversation, with call ids that differ from those in the opening."""
    taken = set()
    for message in opening:
        for call in message.tool_calls:
            taken.add(call.id)
    ids = (made for number in count(1) if (made := _ID.format(number)) not in taken)
    return tuple(_for_another_model_round(round_, ids) for round_ in rounds)


def _for_another_model_round(of: Round, ids: Iterator[str]) -> Round:
    set_aside = tuple(_for_another_model_round(answer, ids) for answer in of.superseded)
    calls = tuple(_call(call, next(ids)) for call in of.calls)
    renamed = {}
    for old, new in zip(of.calls, calls, strict=True):
        renamed[old.call.id] = new.call.id
    deviations = tuple(replace(each, call_id=renamed.get(each.call_id or "")) for each in of.deviations)
    return replace(of, provider_state=None, superseded=set_aside, calls=calls, deviations=deviations)


def _call(of: CallRecord, call_id: str) -> CallRecord:
    return replace(
        of,
        call=replace(of.call, id=call_id),
        result=_for_another_model_result(of.result, call_id),
        unedited=_for_another_model_result(of.unedited, call_id),
    )


def _for_another_model_result(of: ResultReceived | None, call_id: str) -> ResultReceived | None:
    return replace(of, call_id=call_id) if of is not None else None


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """The place from which a fork continues on its own.

    It is before the request of a round or, with `answered`, after its answer and the results of that many of its calls.
    """

    round: int
    answered: int | None = None

    @property
    def rounds(self) -> int:
        """The number of answers before it."""
        return self.round if self.answered is not None else self.round - 1


@dataclass(frozen=True, slots=True)
class Fork:
    """A run forked from another one, which may be finished, recorded or held.

    `system` replaces the system prompt from the point on (empty: none), `result` replaces the last result before it.
    With `back_to`, the origin ends where it was held, and the fork is held at the same place, with the messages that
    wait for the next request."""

    origin: Trajectory
    at: ForkPoint
    system: str | None = None
    result: EditResult | None = None
    back_to: At | None = None

    @property
    def added(self) -> tuple[str, ...]:
        """The messages that a person added in the original run right before the first request of the fork."""
        if self.at.answered is not None:
            return self.origin.added if self.back_to is not None else ()
        following = self.origin.rounds[self.at.round - 1 : self.at.round]
        return following[0].added if following else self.origin.added


@dataclass(frozen=True, slots=True)
class PastHold:
    """A place where a run was held: at `events[index]`, which is a `Paused` event."""

    events: Sequence[Event]
    index: int

    @property
    def paused(self) -> Paused:
        payload = self.events[self.index].payload
        assert isinstance(payload, Paused)
        return payload

    def fork(self, system: str | None = None) -> Fork:
        """Return the fork that is held at the same place, as the run was when it came there."""
        paused, origin = self.paused, fold(self.events[: self.index])
        assert paused.at != "permission"
        assert paused.round is not None
        if paused.at == "request":
            return Fork(origin, ForkPoint(paused.round), system, back_to=paused.at)
        calls = []
        for record in origin.rounds[paused.round - 1].calls:
            calls.append(record.call.id)
        assert paused.call_id is not None
        answered = calls.index(paused.call_id) + (paused.at == "result")
        return Fork(origin, ForkPoint(paused.round, answered), system, back_to=paused.at)


def past_holds(events: Sequence[Event]) -> tuple[PastHold, ...]:
    """Return where a run was held, the present hold included."""
    paused = []
    for index, each in enumerate(events):
        if isinstance(each.payload, Paused):
            paused.append((index, each.payload))
    return tuple(PastHold(events, index) for index, payload in paused if payload.at != "permission")


def system_prompt(case: Case, settings: CaseSettings, step: int | None, fork: Fork | None) -> str | None:
    """Return the system prompt of a request: for a step of a chain, counted from 1, or for none.

    The prompt of the fork takes precedence. A case without steps keeps the prompt with which its run began."""
    own = case.steps[step - 1].system if step is not None else None
    if fork is not None and fork.system is not None:
        system: str | None = fork.system
    elif own is not None:
        system = own
    elif fork is not None and not case.steps and fork.origin.start is not None:
        system = fork.origin.start.system
    else:
        system = settings.system
    return system or None


_NO_FURTHER_ROUND = "the case allows no request after round {} (limits.max_rounds)"
_NOTHING_LEFT: dict[FinishReason, str] = {
    "answered": "the model answered in round {}, so there is nothing left to ask",
    "decided": _NO_FURTHER_ROUND,
    "rounds exhausted": _NO_FURTHER_ROUND,
    "steps done": "the chain has no step after round {}, so there is nothing left to ask",
}


def fork_refusal(fork: Fork, turns: Turns) -> str | None:
    """Return why a run cannot be forked there, given the requests of its case as it is now; `None` when it can."""
    rounds, at = fork.origin.rounds, fork.at
    if fork.origin.start is None:
        return "the run has not begun"
    whole = []
    for round_ in rounds[: at.round]:
        if round_.stop_reason is not None:
            whole.append(round_)
    if at.round < 1 or len(whole) < at.rounds:
        return f"the run has no whole answer in round {at.rounds}"
    told = whole[: at.rounds]
    calls: tuple[CallRecord, ...] = ()
    if at.answered is not None:
        calls = told[-1].calls
        if not 0 <= at.answered <= len(calls):
            return f"round {at.round} has {len(calls)} calls"
    unanswered = []
    for round_ in told[: at.round - 1]:
        for call in round_.calls:
            if call.result is None:
                unanswered.append(call)
    if unanswered or any(call.result is None for call in calls[: at.answered or 0]):
        return "a call before that point has no result"
    if fork.result is not None and not at.answered:
        return "there is no result right before that point"
    return _why_nothing_follows(told, turns, under_way=fork.back_to in ("call", "result"))


def _why_nothing_follows(told: list[Round], turns: Turns, *, under_way: bool) -> str | None:
    """Return why no request follows these rounds; `None` when one does, or need not because the last is under way."""
    last: Round | None = None
    for number, round_ in enumerate(told):
        turn = turns.next(number, last)
        step = round_.step.step if round_.step is not None else None
        if not isinstance(turn, Turn):
            return _NOTHING_LEFT[turn].format(number)
        if turn.step != step:
            return f"the case no longer makes request {number + 1} as this run did: the case has changed"
        last = round_
    if under_way:
        return None
    if last is not None and last.stop_reason in ("refused", "truncated"):
        how = "refused to answer" if last.stop_reason == "refused" else "was cut off at its length limit"
        return f"the model {how} in round {last.number}, so there is nothing left to ask"
    following = turns.next(len(told), last)
    if isinstance(following, Turn):
        return None
    return _NOTHING_LEFT[following].format(len(told))


def replayed(fork: Fork, model: str) -> Iterator[EventPayload]:
    """Return the events that a fork on a model replays right after its start.

    The last one is `Forked`."""
    origin, at = fork.origin, fork.at
    assert origin.start is not None
    rounds = origin.rounds[: at.rounds]
    if model_of(model) != model_of(origin.start.model):
        rounds = for_another_model(rounds, origin.start.messages)
    for round_ in rounds[: at.round - 1]:
        yield from _round(round_, len(round_.calls))
    if at.answered is not None:
        yield from _round(rounds[-1], at.answered)
        if fork.result is not None:
            result = rounds[-1].calls[at.answered - 1].result
            assert result is not None
            yield _edit_of(result, fork.result)
    yield from map(MessageAdded, fork.added)
    yield Forked(origin.run_id, origin.start.model, at.round, at.answered)


def _round(of: Round, answered: int) -> Iterator[EventPayload]:
    """Yield the events of a round, superseded answers included, with the results of the first `answered` calls.

    The next call keeps the arguments as edited by a person."""
    if of.step is not None:
        yield of.step
    answers = (*of.superseded, of)
    yield from map(MessageAdded, answers[0].added)
    for answer, following in zip_longest(answers, answers[1:]):
        yield from _answer(answer)
        last = len(answer.calls) if following is not None else answered
        for number, record in enumerate(answer.calls[: last + 1]):
            if record.edited is not None:
                yield CallEdited(record.call.id, record.edited, record.call.arguments)
            if number < last and record.result is not None:
                yield from _result(record, record.result)
        if following is not None:
            yield from map(MessageAdded, following.added[len(answer.added) :])
            yield Regenerated(of.number)


def _answer(of: Round) -> Iterator[EventPayload]:
    yield RequestStarted(of.number)
    if of.reasoning:
        yield ReasoningDelta(of.number, of.reasoning)
    if of.text:
        yield TextDelta(of.number, of.text)
    for record in of.calls:
        call = record.call
        yield CallStarted(of.number, call.id, call.tool)
        yield CallFinished(call.id, call.arguments, call.raw, call.problem)
    yield of.response()


def _result(record: CallRecord, result: ResultReceived) -> Iterator[EventPayload]:
    """Return the result of a call.

    A result that a person gave in place of the tool stays marked as such."""
    first = record.unedited or result
    source = first.source if first.source in ("edited", "skipped") else "replayed"
    yield ResultReceived(record.call.id, first.content, first.is_error, source, first.latency_ms, first.code)
    if record.unedited is not None:
        yield _edit_of(first, EditResult(result.content, result.is_error))


def _edit_of(result: ResultReceived, edit: EditResult) -> ResultEdited:
    return ResultEdited(result.call_id, edit.content, edit.is_error, result.content, result.is_error)
