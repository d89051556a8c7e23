"""Runs that were made elsewhere, told as the events of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from workbench.dataclasses import dataclass
from workbench.engine.arguments import usable
from workbench.engine.conversation import opening_messages
from workbench.providers.function import call_events, with_ids
from workbench.suite.model import Case, Suite
from workbench.suite.settings import settings_of
from workbench.trajectory.events import (
    CallFinished,
    Deviation,
    EventPayload,
    ReasoningDelta,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    RunStarted,
    SourceScore,
    StopReason,
    TextDelta,
)
from workbench.trajectory.messages import ToolCall, ToolDefinition, Usage


@dataclass(frozen=True)
class ToldResult:
    """What a tool answered."""

    content: str
    is_error: bool = False


@dataclass(frozen=True)
class ToldRound:
    """One answer of a model, and what its calls were answered, by their ids. Latency and time to the first token in
    milliseconds. `deviations` of the endpoint were repaired in it, and name calls by those ids."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: Mapping[str, ToldResult] = field(default_factory=dict)
    latency_ms: float = 0.0
    usage: Usage | None = None
    first_token_ms: float | None = None
    deviations: tuple[Deviation, ...] = ()


@dataclass(frozen=True)
class Told:
    """What an agent did in a run. With `error`, it broke off there. `latency_ms` is `None` where it is not known."""

    rounds: tuple[ToldRound, ...]
    error: str | None = None
    latency_ms: float | None = None


def told(
    calls: Sequence[Sequence[ToolCall]],
    answer: str | None,
    *,
    results: Mapping[str, ToldResult] | None = None,
    usage: Usage | None = None,
    latency_ms: float | None = None,
    error: str | None = None,
) -> Told:
    """Return a run of which only its calls, each list made at once, and its answer are known."""
    last = ToldRound(answer or "", usage=usage, latency_ms=latency_ms or 0.0)
    rounds = [ToldRound(calls=tuple(made), results=results or {}) for made in calls]
    if rounds and (answer is None or error is not None):
        last = replace(last, calls=rounds.pop().calls, results=results or {})
    return Told((*rounds, last), error, latency_ms)


def started_elsewhere(
    suite: Suite,
    case: Case,
    model: str,
    suite_hash: str,
    tools: Iterable[ToolDefinition],
    notices: tuple[str, ...] = (),
    scores: tuple[SourceScore, ...] = (),
) -> RunStarted:
    """Return the beginning of a run of a case that was made elsewhere."""
    return RunStarted(
        suite_hash=suite_hash,
        case_id=case.id,
        case_name=case.name,
        model=model,
        system=settings_of(suite, case).system,
        messages=opening_messages(case),
        tools=tuple(tools),
        notices=notices,
        source_scores=scores,
    )


def told_payloads(rounds: Iterable[ToldRound]) -> Iterator[EventPayload]:
    """Yield the events of rounds that were made elsewhere; call ids become unique."""
    rounds = tuple(rounds)
    ids = (call_id for call_id, _ in with_ids(call for each in rounds for call in each.calls))
    for number, each in enumerate(rounds, start=1):
        yield RequestStarted(number)
        if each.reasoning:
            yield ReasoningDelta(number, each.reasoning)
        if each.text:
            yield TextDelta(number, each.text)
        made = [(next(ids), call) for call in each.calls]
        for call_id, call in made:
            for event in call_events(call_id, call, number):
                yield usable(event) if isinstance(event, CallFinished) else event
        reason: StopReason = "tool calls" if made else "answered"
        renamed = {call.id: call_id for call_id, call in made}
        deviations = tuple(replace(one, call_id=renamed.get(one.call_id or "")) for one in each.deviations)
        yield ResponseFinished(number, reason, each.usage, each.first_token_ms, each.latency_ms, deviations=deviations)
        for call_id, call in made:
            if (result := each.results.get(call.id)) is not None:
                yield ResultReceived(call_id, result.content, result.is_error, "reported", 0.0)
