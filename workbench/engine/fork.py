"""A run that begins like another one: what came before a point of it is told again, and no model or tool is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from workbench.engine.checkpoint import EditResult
from workbench.trajectory.events import (
    CallEdited,
    CallFinished,
    CallStarted,
    Forked,
    Happening,
    MessageAdded,
    ReasoningDelta,
    RequestStarted,
    ResponseFinished,
    ResultEdited,
    ResultReceived,
    TextDelta,
)
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """Where a fork goes on by itself: before the request of a round or, with `answered`, after its answer and the
    results of that many of its calls."""

    round: int
    answered: int | None = None


@dataclass(frozen=True, slots=True)
class Fork:
    """A run forked from another one, which may be finished, recorded or held. `system` is another system prompt (empty:
    none) from the point on, `result` what takes the place of the last result before it."""

    origin: Trajectory
    at: ForkPoint
    system: str | None = None
    result: EditResult | None = None


def fork_refusal(fork: Fork) -> str | None:
    """Why a run cannot be forked there; `None` when it can."""
    rounds, at = fork.origin.rounds, fork.at
    if fork.origin.start is None:
        return "the run has not begun"
    whole = [round_ for round_ in rounds[: at.round] if round_.stop_reason is not None]
    before = at.round if at.answered is not None else at.round - 1
    if at.round < 1 or len(whole) < before:
        return f"the run has no whole answer in round {before}"
    calls = rounds[at.round - 1].calls if at.answered is not None else ()
    if at.answered is not None and not 0 <= at.answered <= len(calls):
        return f"round {at.round} has {len(calls)} calls"
    unanswered = [call for round_ in whole[: at.round - 1] for call in round_.calls if call.result is None]
    if unanswered or any(call.result is None for call in calls[: at.answered or 0]):
        return "a call before that point has no result"
    if fork.result is not None and not at.answered:
        return "there is no result right before that point"
    return None


def replayed(fork: Fork) -> Iterator[Happening]:
    """What a fork tells again, to be told right after its start; last of all, that it is a run of its own from here."""
    origin, at = fork.origin, fork.at
    assert origin.start is not None
    for round_ in origin.rounds[: at.round - 1]:
        yield from _round(round_, len(round_.calls))
    if at.answered is not None:
        yield from _round(origin.rounds[at.round - 1], at.answered)
        if fork.result is not None:
            yield from _edit(origin.rounds[at.round - 1].calls[at.answered - 1], fork.result)
    elif len(origin.rounds) >= at.round:
        yield from map(MessageAdded, origin.rounds[at.round - 1].added)
    yield Forked(origin.run_id, origin.start.model, at.round, at.answered)


def _round(of: Round, answered: int) -> Iterator[Happening]:
    assert of.stop_reason is not None
    if of.step is not None:
        yield of.step
    yield from map(MessageAdded, of.added)
    yield RequestStarted(of.number)
    if of.reasoning:
        yield ReasoningDelta(of.number, of.reasoning)
    if of.text:
        yield TextDelta(of.number, of.text)
    for record in of.calls:
        call = record.call
        yield CallStarted(of.number, call.id, call.tool)
        yield CallFinished(call.id, call.arguments, call.raw, call.problem)
    yield ResponseFinished(of.number, of.stop_reason, of.usage, of.first_token_ms, of.latency_ms or 0.0, of.carry)
    for record in of.calls[:answered]:
        yield from _answer(record)


def _answer(record: CallRecord) -> Iterator[Happening]:
    assert record.result is not None
    call_id = record.call.id
    if record.edited is not None:
        yield CallEdited(call_id, record.edited, record.call.arguments)
    first = record.unedited or record.result
    yield ResultReceived(call_id, first.content, first.is_error, "replayed", first.latency_ms)
    if record.unedited is not None:
        yield from _edit_of(first, EditResult(record.result.content, record.result.is_error))


def _edit(record: CallRecord, edit: EditResult) -> Iterator[Happening]:
    assert record.result is not None
    yield from _edit_of(record.result, edit)


def _edit_of(result: ResultReceived, edit: EditResult) -> Iterator[Happening]:
    yield ResultEdited(result.call_id, edit.content, edit.is_error, result.content, result.is_error)
