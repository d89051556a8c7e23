"""The trajectory: the fold of a run's events (`workbench.trajectory.fold`)."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.dataclasses import dataclass
from workbench.trajectory.events import (
    Deviation,
    Forked,
    ResultReceived,
    RunFinished,
    RunStarted,
    ServerOutput,
    StepStarted,
    StopReason,
)
from workbench.trajectory.messages import JsonValue, ToolCall, Usage

CUT_OFF = "an answer was cut off at the token limit: raise `max_tokens`"
"""The notice of a run that ended with such an answer."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class CallRecord:
    """A tool call and its result. `complete` is false while its arguments are still arriving."""

    call: ToolCall
    round: int
    complete: bool = True
    server: str | None = None
    """The server that really executed it."""
    result: ResultReceived | None = None
    """The result, as the model reads it."""
    edited: Mapping[str, JsonValue] | None = None
    """The arguments with which a person replaced the model's."""
    unedited: ResultReceived | None = None
    """The result before a person edited it."""

    @property
    def tool(self) -> str:
        return self.call.tool

    @property
    def is_broken(self) -> bool:
        """Whether the model wrote arguments that are no JSON object, or never completed them."""
        return self.call.problem is not None or not self.complete

    @property
    def sent(self) -> ToolCall:
        """The call as it is answered and sent back to the model."""
        return self.call if self.edited is None else ToolCall(self.call.id, self.call.tool, self.edited)

    @property
    def touched(self) -> bool:
        """Whether a person changed it."""
        answered = self.result is not None and self.result.source in ("edited", "skipped")
        return answered or self.edited is not None or self.unedited is not None

    @property
    def arguments(self) -> Mapping[str, JsonValue]:
        return self.call.arguments


@dataclass(frozen=True, slots=True)
class Round:
    """One model request and its tool results. `number` counts from 1; times are milliseconds."""

    number: int
    reasoning: str = ""
    text: str = ""
    calls: tuple[CallRecord, ...] = ()
    stop_reason: StopReason | None = None
    usage: Usage | None = None
    first_token_ms: float | None = None
    latency_ms: float | None = None
    waited_ms: float = 0.0
    """How long the request waited at the endpoint for others to end, as far as known; no part of the other times."""
    errors: tuple[str, ...] = ()
    """The errors of earlier attempts of this request, and of the last one if it failed."""
    provider_state: JsonValue = None
    deviations: tuple[Deviation, ...] = ()
    """The deviations of the endpoint that were repaired in the answer."""
    step: StepStarted | None = None
    """The step of a chain that the request belongs to."""
    added: tuple[str, ...] = ()
    """Messages that a person added before the request, after the step's own message."""
    superseded: tuple[Round, ...] = ()
    """Earlier answers to the same request that a person had regenerated."""
    replayed: bool = False
    """Whether the round is replayed from another run: no model was asked in this one."""

    @property
    def touched(self) -> bool:
        """Whether a person changed it."""
        return bool(self.added or self.superseded) or any(call.touched for call in self.calls)

    @property
    def retries(self) -> int:
        """How often the request was retried: the number of failures, not counting one that was final."""
        return len(self.errors) - (1 if self.errors and self.stop_reason is None else 0)


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Everything that happened in one run: one case with one model, once."""

    run_id: str
    start: RunStarted | None = None
    rounds: tuple[Round, ...] = ()
    finish: RunFinished | None = None
    duration_ms: float = 0.0
    """From its start to its last event in milliseconds, without the time while held."""
    loop_ms: float = 0.0
    """The agent loop by the wall clock in milliseconds: answers, tools, failed attempts and waits before retries. Time
    while held, waiting for an endpoint's turn and judging is not included."""
    held_ms: float = 0.0
    """How long it was held, in milliseconds."""
    fork: Forked | None = None
    """Where a forked run starts to be a run of its own."""
    added: tuple[str, ...] = ()
    """Messages that a person added since the last request. Once the run is over, the model never reads them."""

    @property
    def touched(self) -> bool:
        """Whether a person changed a call, a result or a message, or had an answer regenerated. Messages that were
        never read do not count."""
        return any(round_.touched for round_ in self.rounds)

    @property
    def calls(self) -> tuple[CallRecord, ...]:
        """The calls of all rounds in the order in which they were emitted."""
        return tuple([call for round_ in self.rounds for call in round_.calls])

    @property
    def notices(self) -> tuple[str, ...]:
        """What differs from the suite (`RunStarted.notices`), and that an answer was cut off."""
        of_start = self.start.notices if self.start is not None else ()
        is_cut_off = self.finish is not None and self.finish.reason == "truncated"
        return (*of_start, CUT_OFF) if is_cut_off else of_start

    @property
    def server_outputs(self) -> tuple[ServerOutput, ...]:
        """What servers wrote before they failed: those that did not start, then the one that ended the run."""
        at_start = self.start.server_outputs if self.start is not None else ()
        last = self.finish.server_output if self.finish is not None else None
        return at_start if last is None else (*at_start, last)

    @property
    def final_answer(self) -> str:
        """The text of the answer that ended the run; empty when no answer did."""
        if self.finish is None or self.finish.reason not in ("answered", "steps done") or not self.rounds:
            return ""
        last = self.rounds[-1]
        return "" if last.calls or last.stop_reason != "answered" else last.text

    @property
    def model_latency_ms(self) -> float:
        """The sum of the latencies of all model answers except replayed ones; tool time is not included."""
        return sum([round_.latency_ms or 0.0 for round_ in self.rounds if not round_.replayed])

    @property
    def retries(self) -> int:
        """The number of retried requests in all rounds."""
        return sum(round_.retries for round_ in self.rounds)

    @property
    def asked(self) -> list[Round]:
        """All answers for which a model was asked in this run: superseded ones included, replayed ones not."""
        answers = [answer for round_ in self.rounds for answer in (round_, *round_.superseded)]
        return [answer for answer in answers if not answer.replayed]

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """The deviations of the endpoint that were repaired in the answers."""
        return tuple([each for round_ in self.rounds for each in round_.deviations])

    @property
    def usage(self) -> Usage | None:
        """Tokens of all answers for which a model was asked; `None` when no provider counted any."""
        counted = [answer.usage for answer in self.asked if answer.usage is not None]
        return sum(counted, Usage()) if counted else None
