"""Forks of a run. The events before a point of the original run are replayed without asking a model or a tool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count, zip_longest

from workbench.dataclasses import dataclass
from workbench.engine.checkpoint import EditResult, HoldPlace, edited_by_person
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
    ProviderTool,
    ReasoningDelta,
    Regenerated,
    RequestStarted,
    ResultEdited,
    ResultReceived,
    TextDelta,
    UserSaid,
)
from workbench.trajectory.fold import fold
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

_ID = "call{:05}"
"""Call ids that every API accepts. The strictest API requires nine letters and digits."""


def for_another_model(rounds: Iterable[Round], opening: Iterable[Message]) -> tuple[Round, ...]:
    """Return one model's rounds in a form that any other model accepts.

    Calls get new ids that do not occur in `opening`. State of the first model's provider is left out."""
    taken = set()
    for message in opening:
        for call in message.tool_calls:
            taken.add(call.id)
    ids = (made for number in count(1) if (made := _ID.format(number)) not in taken)
    return tuple(_for_another_model_round(round_, ids) for round_ in rounds)


def _for_another_model_round(round_: Round, ids: Iterator[str]) -> Round:
    set_aside = tuple(_for_another_model_round(answer, ids) for answer in round_.superseded)
    calls = tuple(_call(call, next(ids)) for call in round_.calls)
    others = tuple(_call(call, next(ids)) for call in round_.not_offered)
    renamed = {}
    for old, new in zip(round_.calls, calls, strict=True):
        renamed[old.call.id] = new.call.id
    deviations = tuple(replace(each, call_id=renamed.get(each.call_id or "")) for each in round_.deviations)
    # Every other model refuses provider state, such as signed reasoning.
    return replace(
        round_, provider_state=None, superseded=set_aside, calls=calls, deviations=deviations, not_offered=others
    )


def _call(record: CallRecord, call_id: str) -> CallRecord:
    return replace(
        record,
        call=replace(record.call, id=call_id),
        result=_for_another_model_result(record.result, call_id),
        unedited=_for_another_model_result(record.unedited, call_id),
        asked=tuple(replace(asked, call_id=call_id) for asked in record.asked),
    )


def _for_another_model_result(result: ResultReceived | None, call_id: str) -> ResultReceived | None:
    if result is None:
        return None
    return replace(result, call_id=call_id)


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """The point up to which a fork replays the original run.

    Without `answered`, the point lies before the request of `round`. Otherwise it lies after the answer of `round` and
    the results of its first `answered` calls."""

    round: int
    answered: int | None = None

    @property
    def rounds(self) -> int:
        """The number of answers before the point."""
        return self.round if self.answered is not None else self.round - 1


@dataclass(frozen=True, slots=True)
class Fork:
    """A run forked from a run that is finished, recorded or held.

    `system` replaces the system prompt after the fork point; an empty text removes it. `result` replaces the last
    result before the point. `user` replaces the user's message right before the fork's first request. `held_again_at`
    is set if the fork returns to an earlier hold. The fork is then held at this kind of place, with the messages that a
    person had added there."""

    origin: Trajectory
    at: ForkPoint
    system: str | None = None
    result: EditResult | None = None
    user: str | None = None
    held_again_at: HoldPlace | None = None

    @property
    def added(self) -> tuple[str, ...]:
        """The messages that a person added in the original run for the fork's first request."""
        if self.at.answered is not None:
            return self.origin.added if self.held_again_at is not None else ()
        # If the original run sent this request, the added messages are in its round. Otherwise, they are in the
        # trajectory.
        following = self.origin.rounds[self.at.round - 1 : self.at.round]
        if following:
            return following[0].added
        return self.origin.added

    @property
    def user_message(self) -> UserSaid | None:
        """The message of the user right before the fork's first request; `None` if there is none."""
        if self.at.answered is not None or self.held_again_at == "user":
            return None
        said = _user_message_before(self.origin, self.at.round)
        if self.user is None:
            return said
        if said is None:
            earlier = [each.said.turn for each in self.origin.rounds[: self.at.rounds] if each.said is not None]
            return UserSaid(max(earlier, default=0) + 1, self.user, "person")
        return edited_by_person(said, self.user)


def _user_message_before(origin: Trajectory, round_number: int) -> UserSaid | None:
    """Return the user message before a request, even if the request was never sent."""
    if round_number <= len(origin.rounds):
        return origin.rounds[round_number - 1].said
    last = origin.user_turns[-1].said if origin.user_turns else None
    if last is not None and any(each.turn == last.turn for each in origin.rounds):
        return None
    return last


@dataclass(frozen=True, slots=True)
class PastHold:
    """A place where a run was held (paused). `events[index]` is the `Paused` event of this hold."""

    events: Sequence[Event]
    index: int

    @property
    def paused(self) -> Paused:
        payload = self.events[self.index].payload
        assert isinstance(payload, Paused)
        return payload

    def fork(self, system: str | None = None) -> Fork:
        """Return a fork that is held at the same place, after the same events."""
        paused, origin = self.paused, fold(self.events[: self.index])
        assert paused.at != "permission"
        assert paused.round is not None
        if paused.at in ("user", "request"):
            return Fork(origin, ForkPoint(paused.round), system, held_again_at=paused.at)
        calls = []
        for record in origin.rounds[paused.round - 1].calls:
            calls.append(record.call.id)
        assert paused.call_id is not None
        answered = calls.index(paused.call_id) + (paused.at == "result")
        return Fork(origin, ForkPoint(paused.round, answered), system, held_again_at=paused.at)


def past_holds(events: Sequence[Event]) -> tuple[PastHold, ...]:
    """Return the holds to which a person can return with a fork, including the current hold.

    Waits for a permission are left out, because a person cannot change the run there. Holds at a server's request are
    left out, because a fork cannot bring the server back to its state during the call."""
    holds = []
    for index, each in enumerate(events):
        if isinstance(each.payload, Paused) and each.payload.at not in ("permission", "question"):
            holds.append(PastHold(events, index))
    return tuple(holds)


def system_prompt(case: Case, settings: CaseSettings, step: int | None, fork: Fork | None) -> str | None:
    """Return the system prompt of a request. `step` is the number of the request's step in a chain, from 1.

    The first of these prompts is used: the fork's own prompt, the prompt of the step, the prompt at the start of the
    original run, the prompt in the settings."""
    if fork is not None and fork.system is not None:
        return fork.system or None
    if step is not None and (own := case.steps[step - 1].system) is not None:
        return own or None
    # Steps of a chain may have different prompts, so the original run's first prompt may not apply to a later step.
    if fork is not None and not case.steps and fork.origin.start is not None:
        return fork.origin.start.system or None
    return settings.system or None


_NO_FURTHER_ROUND = "the case allows no request after round {} (limits.max_rounds)"
_NOTHING_LEFT: dict[FinishReason, str] = {
    "answered": "the model answered in round {}, so there is nothing left to ask",
    "decided": _NO_FURTHER_ROUND,
    "rounds exhausted": _NO_FURTHER_ROUND,
    "turns exhausted": "the user may say nothing after round {} (max_turns)",
    "steps done": "the chain has no step after round {}, so there is nothing left to ask",
}


def fork_refusal(fork: Fork, turns: Turns) -> str | None:
    """Return why a run cannot be forked at a point; `None` if the fork is possible.

    `turns` decides which requests the case makes. The case may have changed since the original run."""
    rounds, at = fork.origin.rounds, fork.at
    if fork.origin.start is None:
        return "the run has not begun"
    whole = []
    for round_ in rounds[: at.round]:
        if round_.stop_reason is not None:
            whole.append(round_)
    if at.round < 1 or len(whole) < at.rounds:
        return f"the run has no whole answer in round {at.rounds}"
    whole_rounds = whole[: at.rounds]
    calls: tuple[CallRecord, ...] = ()
    if at.answered is not None:
        calls = whole_rounds[-1].calls
        if not 0 <= at.answered <= len(calls):
            return f"round {at.round} has {len(calls)} calls"
    unanswered = []
    for round_ in whole_rounds[: at.round - 1]:
        for call in round_.calls:
            if call.is_open:
                unanswered.append(call)
    if unanswered or any(call.is_open for call in calls[: at.answered or 0]):
        return "a call before that point has no result"
    if fork.result is not None and not at.answered:
        return "there is no result right before that point"
    if fork.result is not None and calls[: at.answered][-1].by_provider:
        return "the provider ran the call right before that point, so its result cannot be changed"
    return _why_nothing_follows(whole_rounds, turns, under_way=fork.held_again_at in ("call", "result"))


def _why_nothing_follows(whole_rounds: list[Round], turns: Turns, *, under_way: bool) -> str | None:
    """Return why the run cannot continue after these rounds; `None` if it can continue.

    With `under_way`, the run continues within a round, so no further request is needed."""
    last: Round | None = None
    # Check every round again with `turns`, because the case may have changed since the run.
    for number, round_ in enumerate(whole_rounds):
        turn = turns.next(number, last)
        if not isinstance(turn, Turn):
            return _NOTHING_LEFT[turn].format(number)
        if turn.step != round_.step_number:
            return f"the case no longer makes request {number + 1} of this run, because the case has changed"
        last = round_
    if under_way:
        return None
    if last is not None and last.stop_reason in ("refused", "truncated"):
        how = "refused to answer" if last.stop_reason == "refused" else "was cut off at its length limit"
        return f"the model {how} in round {last.number}, so there is nothing left to ask"
    following = turns.next(len(whole_rounds), last)
    if isinstance(following, Turn):
        return None
    return _NOTHING_LEFT[following].format(len(whole_rounds))


def replayed_events(fork: Fork, model: str) -> Iterator[EventPayload]:
    """Yield the events that a fork replays right after its start; the last one is `Forked`.

    `model` is the model that continues the fork."""
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
    if (said := fork.user_message) is not None:
        yield _without_cost(said)
    yield from map(MessageAdded, fork.added)
    yield Forked(origin.run_id, origin.start.model, at.round, at.answered)


def _round(round_: Round, answered_count: int) -> Iterator[EventPayload]:
    """Yield the events of a round, including the answers that a person discarded.

    Only the first `answered_count` calls get their results. The next call keeps its arguments as a person edited
    them."""
    if round_.step is not None:
        yield round_.step
    if round_.said is not None:
        yield _without_cost(round_.said)
    answers = (*round_.superseded, round_)
    yield from map(MessageAdded, answers[0].added)
    for answer, following in zip_longest(answers, answers[1:]):
        yield from _answer(answer)
        last = answered_count if following is None else len(answer.calls)
        for number, record in enumerate(answer.calls[: last + 1]):
            if record.edited is not None:
                yield CallEdited(record.call.id, record.edited, record.call.arguments)
            yield from record.asked if number < last else ()
            if number < last and record.result is not None and not record.by_provider:
                yield from _result(record, record.result)
        if following is not None:
            # Each answer repeats all messages added since the previous request, so only the new ones are replayed.
            yield from map(MessageAdded, following.added[len(answer.added) :])
            yield Regenerated(round_.number)


def _without_cost(message: UserSaid) -> UserSaid:
    """Return a replayed message without usage, latency and cost, because these belong to the original run."""
    return replace(message, usage=None, latency_ms=0.0, cost_usd=None)


def _answer(round_: Round) -> Iterator[EventPayload]:
    yield RequestStarted(round_.number)
    if round_.reasoning:
        yield ReasoningDelta(round_.number, round_.reasoning)
    if round_.text:
        yield TextDelta(round_.number, round_.text)
    for record in round_.not_offered:
        yield from _call_of_answer(record, "other")
    for record in round_.calls:
        yield from _call_of_answer(record, "offered" if record.by_provider else None)
    yield round_.response()


def _call_of_answer(record: CallRecord, by_provider: ProviderTool | None) -> Iterator[EventPayload]:
    call = record.call
    yield CallStarted(record.round, call.id, call.tool, by_provider)
    yield CallFinished(call.id, call.arguments, call.raw, call.problem)
    if record.by_provider and record.result is not None:
        yield record.result


def _result(record: CallRecord, result: ResultReceived) -> Iterator[EventPayload]:
    """Yield the result of a call, and a person's edit of the result.

    The source of the result becomes `replayed`, unless a person gave the result."""
    first = record.unedited or result
    source = first.source if first.source in ("edited", "skipped") else "replayed"
    yield replace(first, call_id=record.call.id, source=source)
    if record.unedited is not None:
        yield _edit_of(first, EditResult(result.content, result.is_error))


def _edit_of(result: ResultReceived, edit: EditResult) -> ResultEdited:
    return ResultEdited(result.call_id, edit.content, edit.is_error, result.content, result.is_error)
