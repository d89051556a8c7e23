"""Trajectories: the requests, answers, calls and results of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from workbench.dataclasses import dataclass, kept_property
from workbench.limits import CUT_OFF_REMEDY
from workbench.numerals import counted
from workbench.trajectory.events import (
    AgentNoted,
    AgentStarted,
    Deviation,
    FinishReason,
    Forked,
    JsonValue,
    OwnCallAnswered,
    OwnCallStage,
    ResponseFinished,
    ResultReceived,
    RunFinished,
    RunStarted,
    ServerAsked,
    ServerOutput,
    StepStarted,
    StopReason,
    ToolCall,
    ToolDefinition,
    Usage,
    UserEnded,
    UserRefused,
    UserRequestStarted,
    UserSaid,
)

# Many endpoints report a full context like a reached limit, so the remedy names both.
CUT_OFF = f"an answer was cut off at the token limit: {CUT_OFF_REMEDY}"
"""The notice of a run with an answer cut off at the token limit."""


# `weakref_slot` is for `cached_by_identity`, which caches the text of a call until the record is deleted.
@dataclass(frozen=True, slots=True, weakref_slot=True)
class CallRecord:
    """A tool call and its result. `complete` is false while the arguments are still arriving."""

    call: ToolCall
    round: int
    complete: bool = True
    server: str | None = None
    """The name of the server that executed the call, or `None` for a mocked call."""
    result: ResultReceived | None = None
    """The result as the model reads it."""
    edited: Mapping[str, JsonValue] | None = None
    """The arguments that a person wrote in place of the model's."""
    unedited: ResultReceived | None = None
    """The result before a person edited it."""
    by_provider: bool = False
    """Whether the model's provider runs the call itself. No tool or person answers such a call."""
    asked: tuple[ServerAsked, ...] = ()
    """The requests that the server sent during the call, with their replies."""

    @property
    def tool(self) -> str:
        return self.call.tool

    @property
    def is_broken(self) -> bool:
        """Whether the model's arguments are incomplete or are not a JSON object."""
        return self.call.problem is not None or not self.complete

    @property
    def sent(self) -> ToolCall:
        """The call that the tool received and that later requests show to the model, including a person's edits."""
        if self.edited is None:
            return self.call
        return ToolCall(self.call.id, self.call.tool, self.edited)

    @property
    def is_open(self) -> bool:
        """Whether the call still needs a result from a tool or a person."""
        return self.result is None and not self.by_provider

    @property
    def touched(self) -> bool:
        """Whether a person changed the call or its result, or answered a request that the server sent during it."""
        answered = self.result is not None and self.result.source in ("edited", "skipped")
        answered = answered or any(asked.source == "person" for asked in self.asked)
        return answered or self.edited is not None or self.unedited is not None

    @property
    def arguments(self) -> Mapping[str, JsonValue]:
        return self.call.arguments


class HasTool(Protocol):
    """A call with a tool's name: a call in a run, or an expected call of a case."""

    @property
    def tool(self) -> str: ...


def tools_of(calls: Iterable[HasTool]) -> tuple[str, ...]:
    return tuple([call.tool for call in calls])


@dataclass(frozen=True, slots=True)
class UserTurn:
    """One turn of the simulated user. `number` counts from 1. `said` is `None` if the user sent no message."""

    number: int
    requests: tuple[UserRequestStarted, ...] = ()
    refused: tuple[UserRefused, ...] = ()
    """The messages that were not sent, in the order of the attempts."""
    said: UserSaid | None = None
    ended: UserEnded | None = None

    @property
    def text(self) -> str | None:
        """The message of the simulated user, or `None` if there is none."""
        return self.said.text if self.said is not None else None

    @property
    def spent(self) -> list[UserRefused | UserSaid | UserEnded]:
        """The events with tokens, latency and cost of the model that simulates the user."""
        return [each for each in (*self.refused, self.said, self.ended) if each is not None]

    @property
    def usage(self) -> Usage | None:
        """The tokens of the model that simulates the user, or `None` if none were counted."""
        return _sum_of([each.usage for each in self.spent])

    @property
    def latency_ms(self) -> float:
        """The latency of the model that simulates the user, in milliseconds."""
        return sum(each.latency_ms for each in self.spent)


def _sum_of(usages: Iterable[Usage | None]) -> Usage | None:
    counted_usages = [usage for usage in usages if usage is not None]
    if not counted_usages:
        return None
    return sum(counted_usages[1:], counted_usages[0])


@dataclass(frozen=True, slots=True)
class Round:
    """A model request, its answer, and the results of the answer's calls. `number` counts from 1."""

    number: int
    reasoning: str = ""
    text: str = ""
    calls: tuple[CallRecord, ...] = ()
    stop_reason: StopReason | None = None
    usage: Usage | None = None
    first_token_ms: float | None = None
    latency_ms: float | None = None
    waited_ms: float = 0.0
    """The known time that the request waited at the endpoint behind other requests, in milliseconds. The other times
    exclude it."""
    cost_usd: float | None = None
    """The cost in US dollars as the agent reports it, or `None` for a model."""
    errors: tuple[str, ...] = ()
    """The errors of the failed attempts of this request, in order."""
    provider_state: JsonValue = None
    deviations: tuple[Deviation, ...] = ()
    """The deviations of the endpoint that were repaired in the answer."""
    step: StepStarted | None = None
    """The step of a chain that the request belongs to."""
    added: tuple[str, ...] = ()
    """Messages that a person added before the request. They follow the step's own message."""
    superseded: tuple[Round, ...] = ()
    """Earlier answers to the same request, which a person discarded."""
    replayed: bool = False
    """Whether the round is replayed from another run without a model request."""
    not_offered: tuple[CallRecord, ...] = ()
    """Calls that the provider or an agent ran, of tools that the suite does not offer. These calls are only shown."""
    turn: int | None = None
    """The turn of a conversation that the request belongs to, counted from 1, or `None` outside of a conversation."""
    round_in_turn: int = 0
    """The number of the round within its turn, counted from 1."""
    said: UserSaid | None = None
    """The user's message at the start of the turn. Set only in the first round of the turn."""
    notes: tuple[AgentNoted, ...] = ()
    """The notes of an agent beside its answer: plans, refused permissions, calls that never reached Workbench."""

    @property
    def calls_to_answer(self) -> tuple[CallRecord, ...]:
        """The calls whose results are sent back to the model. Calls that the provider ran are excluded."""
        return tuple([call for call in self.calls if not call.by_provider])

    @property
    def answered_count(self) -> int:
        """The number of calls before the first call without a result."""
        for number, call in enumerate(self.calls):
            if call.is_open:
                return number
        return len(self.calls)

    @property
    def step_number(self) -> int | None:
        """The number, from 1, of the step of a chain that made the request, or `None` outside of a chain."""
        return self.step.step if self.step is not None else None

    @property
    def user_message(self) -> str | None:
        """The user's message before the request, from a step or a conversation, or `None` if there is none."""
        if self.said is not None:
            return self.said.text
        return self.step.user if self.step is not None else None

    def response(self) -> ResponseFinished:
        """Return the event `ResponseFinished` for the answer of the round."""
        assert self.stop_reason is not None, "otherwise it has no answer"
        return ResponseFinished(
            self.number,
            self.stop_reason,
            self.usage,
            self.first_token_ms,
            self.latency_ms or 0.0,
            self.provider_state,
            self.deviations,
            self.waited_ms,
            self.cost_usd,
        )

    @property
    def touched(self) -> bool:
        """Whether a person changed something in the round."""
        return bool(self.added or self.superseded) or any(call.touched for call in self.calls)

    @property
    def cut_off(self) -> str:
        """Where the answer was cut off, and the remedy, such as ``after 16 tokens: raise `max_tokens`, … ``."""
        where = "at the token limit"
        if self.usage is not None and self.usage.output_tokens:
            where = f"after {counted(self.usage.output_tokens, 'token')}"
        return f"{where}: {CUT_OFF_REMEDY}"

    @property
    def retries(self) -> int:
        """The number of retries of the request."""
        # A retry followed each failure, except a failure that ended the run.
        if self.errors and self.stop_reason is None:
            return len(self.errors) - 1
        return len(self.errors)


@dataclass(frozen=True)
class Trajectory:
    """One run of a case with a model: its start, rounds and end."""

    run_id: str
    start: RunStarted | None = None
    rounds: tuple[Round, ...] = ()
    finish: RunFinished | None = None
    duration_ms: float = 0.0
    """The time from the start to the last event, in milliseconds, without the time while the run was held."""
    loop_ms: float = 0.0
    """The wall-clock time of the agent loop, in milliseconds: answers, tools, failed attempts and waits before retries.
    It excludes the time while the run was held, the time in the queue of an endpoint, and judging."""
    held_ms: float = 0.0
    """The time while the run was held, in milliseconds."""
    agent: AgentStarted | None = None
    """The agent started for the run, or `None` for a model."""
    fork: Forked | None = None
    """The event that ends the replayed part of a forked run."""
    added: tuple[str, ...] = ()
    """The messages that a person added after the last request. If the run has ended, the model never reads them."""
    own_calls: tuple[OwnCallAnswered, ...] = ()
    """The calls that the suite made itself, before and after the run."""
    asked_by_servers: tuple[ServerAsked, ...] = ()
    """The servers' requests and replies in all calls of the run and of the suite."""
    user_turns: tuple[UserTurn, ...] = ()
    """The turns of the user of a conversation."""

    def __repr__(self) -> str:
        reason = "unfinished" if self.finish is None else self.finish.reason
        return f"Trajectory({self.run_id!r}, rounds={len(self.rounds)}, calls={len(self.calls)}, {reason!r})"

    @property
    def setup_calls(self) -> tuple[OwnCallAnswered, ...]:
        return tuple([call for call in self.own_calls if call.stage == "setup"])

    def asked_in(self, stage: OwnCallStage) -> tuple[ServerAsked, ...]:
        """Return the requests that servers sent during the suite's own calls of a stage."""
        in_calls = [asked for round_ in self.rounds for call in round_.calls for asked in call.asked]
        own = [asked for asked in self.asked_by_servers if asked not in in_calls]
        return tuple([asked for asked in own if asked.call_id.startswith(f"{stage}-")])

    @property
    def final_calls(self) -> tuple[OwnCallAnswered, ...]:
        """The calls of the suite after the run."""
        return tuple([call for call in self.own_calls if call.stage == "final"])

    @property
    def touched(self) -> bool:
        """Whether a person changed a call or a result, added a message that the model read, or discarded an answer."""
        return any(round_.touched for round_ in self.rounds)

    @kept_property
    def calls(self) -> tuple[CallRecord, ...]:
        """The calls of all rounds, in order."""
        return tuple([call for round_ in self.rounds for call in round_.calls])

    @property
    def offered(self) -> tuple[ToolDefinition, ...]:
        """The tools offered to the model."""
        if self.start is not None:
            return self.start.tools
        return ()

    @property
    def instructed_by(self) -> tuple[str, ...]:
        """The names of the servers whose instructions were a part of the system prompt."""
        if self.start is not None:
            return tuple(each.server for each in self.start.instructions)
        return ()

    @property
    def clock(self) -> str | None:
        """The time in the system prompt of the run, or `None` if there is none."""
        if self.start is not None:
            return self.start.clock
        return None

    @property
    def finish_reason(self) -> FinishReason | None:
        """The reason why the run ended, or `None` for a run that has not ended."""
        if self.finish is not None:
            return self.finish.reason
        return None

    @property
    def cut_off_rounds(self) -> set[int]:
        """The numbers of the rounds whose answers were cut off at the token limit."""
        return {round_.number for round_ in self.rounds if round_.stop_reason == "truncated"}

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences on differences from the suite, an answer that was cut off, and unanswered requests of servers."""
        notices: tuple[str, ...] = ()
        if self.start is not None:
            notices = self.start.notices
        if self.finish_reason == "truncated":
            notices += (CUT_OFF,)
        # A request with a `problem` ends the run with an error, so it needs no notice.
        for asked in self.asked_by_servers:
            if asked.problem is None and asked.notice is not None and asked.notice not in notices:
                notices += (asked.notice,)
        return notices

    @property
    def server_outputs(self) -> tuple[ServerOutput, ...]:
        """The standard error of servers that did not start, and then of the server that ended the run, if any."""
        outputs: tuple[ServerOutput, ...] = ()
        if self.start is not None:
            outputs = self.start.server_outputs
        if self.finish is not None and self.finish.server_output is not None:
            outputs += (self.finish.server_output,)
        return outputs

    @property
    def final_answer(self) -> str:
        """The text of the answer that ended the run, or "" if something else ended it."""
        # A chain may end after any answer, so the answer must also be complete, not refused, and without calls.
        if self.finish is None or self.finish.reason not in _ENDED_WITH_ANSWER or not self.rounds:
            return ""
        last = self.rounds[-1]
        if last.calls_to_answer or last.stop_reason != "answered":
            return ""
        return last.text

    @property
    def user_usage(self) -> Usage | None:
        """The tokens of the model that simulates the user, or `None` if none were counted."""
        return _sum_of([turn.usage for turn in self.user_turns])

    @property
    def user_latency_ms(self) -> float:
        """The latency of the model that simulates the user, in milliseconds."""
        return sum(turn.latency_ms for turn in self.user_turns)

    @property
    def user_requests(self) -> int:
        """The number of requests to the model that simulates the user. Cached answers do not count."""
        return sum(not request.cached for turn in self.user_turns for request in turn.requests)

    @property
    def user_cost_usd(self) -> float | None:
        """The cost of the model that simulates the user, in US dollars, or `None` if it is unknown."""
        total = 0.0
        for turn in self.user_turns:
            for each in turn.spent:
                if each.cost_usd is None and each.latency_ms:
                    return None
                total += each.cost_usd or 0.0
        return total

    @kept_property
    def model_latency_ms(self) -> float:
        """The sum of the latencies of all model answers except replayed answers. Tool time is not included."""
        return sum([round_.latency_ms or 0.0 for round_ in self.rounds if not round_.replayed], 0.0)

    @property
    def retries(self) -> int:
        """The number of retried requests in all rounds."""
        return sum(round_.retries for round_ in self.rounds)

    @kept_property
    def requested_rounds(self) -> tuple[Round, ...]:
        """All rounds and superseded answers for which a request was sent to a model. Replayed rounds are excluded."""
        answers = [answer for round_ in self.rounds for answer in (round_, *round_.superseded)]
        return tuple([answer for answer in answers if not answer.replayed])

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """The deviations of the endpoint that were repaired in the answers."""
        return tuple([each for round_ in self.rounds for each in round_.deviations])

    @kept_property
    def usage(self) -> Usage | None:
        """The tokens of all answers in `requested_rounds`, or `None` if no provider counted any."""
        return _sum_of([answer.usage for answer in self.requested_rounds])


_ENDED_WITH_ANSWER = ("answered", "steps done", "user done", "user gave up", "stopped by rule", "turns exhausted")
