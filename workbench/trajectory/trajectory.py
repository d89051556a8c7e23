"""The trajectory: what a run's events add up to.

`TrajectoryFold` takes events one by one, so that a live view and a finished run are computed by the same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    Event,
    ExecutionProgress,
    ExecutionStarted,
    ReasoningDelta,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    RetryScheduled,
    RunFinished,
    RunStarted,
    StopReason,
    TextDelta,
)
from workbench.trajectory.messages import JsonValue, ToolCall, Usage


@dataclass(frozen=True, slots=True, weakref_slot=True)
class CallRecord:
    """A tool call and what became of it. `complete` is false while its arguments are still arriving."""

    call: ToolCall
    round: int
    complete: bool = True
    server: str | None = None
    """The server on which it really ran."""
    result: ResultReceived | None = None

    @property
    def tool(self) -> str:
        return self.call.tool

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
    errors: tuple[str, ...] = ()
    """Why earlier attempts of this request failed, or the last one did."""
    carry: JsonValue = None

    @property
    def retries(self) -> int:
        """How often the request was made again: every failure but one that was the last word."""
        return len(self.errors) - (1 if self.errors and self.stop_reason is None else 0)


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Everything that happened in one run: one case with one model, once."""

    run_id: str
    start: RunStarted | None = None
    rounds: tuple[Round, ...] = ()
    finish: RunFinished | None = None
    duration_ms: float = 0.0

    @property
    def calls(self) -> tuple[CallRecord, ...]:
        """The calls of all rounds in the order in which they were emitted."""
        return tuple([call for round_ in self.rounds for call in round_.calls])

    @property
    def notices(self) -> tuple[str, ...]:
        """What was not as the suite would have it."""
        return self.start.notices if self.start is not None else ()

    @property
    def final_answer(self) -> str:
        """The text of the answer that ended the run; empty when no answer did."""
        if self.finish is None or self.finish.reason not in ("answered", "steps done") or not self.rounds:
            return ""
        last = self.rounds[-1]
        return "" if last.calls or last.stop_reason != "answered" else last.text

    @property
    def model_latency_ms(self) -> float:
        """The sum of the latencies of all model answers; tool time is not part of it."""
        return sum([round_.latency_ms or 0.0 for round_ in self.rounds])

    @property
    def retries(self) -> int:
        """How many requests were made again, in all rounds."""
        return sum(round_.retries for round_ in self.rounds)

    @property
    def usage(self) -> Usage | None:
        """Tokens of all rounds; `None` when no provider counted any."""
        counted = [round_.usage for round_ in self.rounds if round_.usage is not None]
        return sum(counted, Usage()) if counted else None


class TrajectoryError(ValueError):
    """Events that cannot have come from one run, in the order given."""


@dataclass
class _OpenCall:
    id: str
    tool: str
    round: int
    fragments: list[str] = field(default_factory=list)
    finished: CallFinished | None = None
    server: str | None = None
    result: ResultReceived | None = None

    def record(self) -> CallRecord:
        done = self.finished
        call = (
            ToolCall(self.id, self.tool, done.arguments, done.raw, done.problem)
            if done is not None
            else ToolCall(self.id, self.tool, raw="".join(self.fragments))
        )
        return CallRecord(call, self.round, done is not None, self.server, self.result)


@dataclass
class _OpenRound:
    number: int
    reasoning: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    calls: list[_OpenCall] = field(default_factory=list)
    response: ResponseFinished | None = None
    errors: list[str] = field(default_factory=list)

    def record(self) -> Round:
        response = self.response
        return Round(
            number=self.number,
            reasoning="".join(self.reasoning),
            text="".join(self.text),
            calls=tuple(call.record() for call in self.calls),
            stop_reason=response.stop_reason if response else None,
            usage=response.usage if response else None,
            first_token_ms=response.first_token_ms if response else None,
            latency_ms=response.latency_ms if response else None,
            errors=tuple(self.errors),
            carry=response.carry if response else None,
        )


class TrajectoryFold:
    """Adds events up to a trajectory. Events must come in sequence, from 0, without gaps."""

    def __init__(self) -> None:
        self._run_id = ""
        self._start: RunStarted | None = None
        self._rounds: list[_OpenRound] = []
        self._calls: dict[str, _OpenCall] = {}
        self._finish: RunFinished | None = None
        self._next_sequence = 0
        self._time_ms = 0.0

    def add(self, event: Event) -> None:
        """Take one more event; raises TrajectoryError when it cannot follow those before it."""
        if event.sequence != self._next_sequence:
            raise TrajectoryError(f"event {event.sequence} where {self._next_sequence} was due")
        if self._finish is not None:
            raise TrajectoryError(f"event {event.sequence} after the end of the run")
        what = event.what
        if isinstance(what, RunStarted) != (event.sequence == 0):
            raise TrajectoryError("a run starts with RunStarted, once")
        if self._next_sequence and event.run_id != self._run_id:
            raise TrajectoryError(f"an event of run {event.run_id} among those of {self._run_id}")
        match what:
            case RunStarted():
                self._start = what
            case RequestStarted(round=number):
                if self._rounds and self._rounds[-1].number == number:
                    self._begin_again(self._rounds[-1])
                else:
                    self._rounds.append(_OpenRound(number))
            case RequestFailed(round=number, error=error):
                self._round(number).errors.append(error)
            case TextDelta(round=number, text=text):
                self._round(number).text.append(text)
            case ReasoningDelta(round=number, text=text):
                self._round(number).reasoning.append(text)
            case CallStarted(round=number, call_id=call_id, tool=tool):
                if call_id in self._calls:
                    raise TrajectoryError(f"two calls with the id {call_id}")
                self._calls[call_id] = _OpenCall(call_id, tool, number)
                self._round(number).calls.append(self._calls[call_id])
            case CallArgumentsDelta(call_id=call_id, fragment=fragment):
                self._call(call_id).fragments.append(fragment)
            case CallFinished(call_id=call_id):
                self._call(call_id).finished = what
            case ResponseFinished(round=number):
                self._round(number).response = what
            case RetryScheduled(round=number):
                self._round(number)
            case ExecutionStarted(call_id=call_id, server=server):
                self._call(call_id).server = server
            case ExecutionProgress(call_id=call_id):
                self._call(call_id)
            case ResultReceived(call_id=call_id):
                self._call(call_id).result = what
            case RunFinished():
                self._finish = what
        self._run_id = event.run_id
        self._next_sequence += 1
        self._time_ms = event.time_ms

    @property
    def trajectory(self) -> Trajectory:
        """The trajectory so far, as an immutable value."""
        return Trajectory(
            run_id=self._run_id,
            start=self._start,
            rounds=tuple(round_.record() for round_ in self._rounds),
            finish=self._finish,
            duration_ms=self._time_ms,
        )

    def _begin_again(self, failed: _OpenRound) -> None:
        """A retry: what the failed attempt answered is void, why it failed stays."""
        for call in failed.calls:
            del self._calls[call.id]
        self._rounds[-1] = _OpenRound(failed.number, errors=failed.errors)

    def _round(self, number: int) -> _OpenRound:
        if not self._rounds or self._rounds[-1].number != number:
            raise TrajectoryError(f"an event of round {number}, which is not the one under way")
        return self._rounds[-1]

    def _call(self, call_id: str) -> _OpenCall:
        try:
            return self._calls[call_id]
        except KeyError:
            raise TrajectoryError(f"an event of the call {call_id}, which never started") from None


def fold(events: Iterable[Event]) -> Trajectory:
    """Add up the events of one run; raises TrajectoryError when they do not belong together."""
    adding = TrajectoryFold()
    for event in events:
        adding.add(event)
    return adding.trajectory
