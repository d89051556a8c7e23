"""Trajectories: the calls, answers and results of a run, folded from its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any, Protocol

from workbench.dataclasses import dataclass
from workbench.numerals import counted
from workbench.trajectory.events import (
    AgentNoted,
    AgentStarted,
    AnswerPaused,
    CallArgumentsDelta,
    CallEdited,
    CallFinished,
    CallStarted,
    Deviation,
    Event,
    ExecutionProgress,
    ExecutionStarted,
    FinishReason,
    Forked,
    JsonValue,
    MessageAdded,
    OwnCallAnswered,
    OwnCallStage,
    Paused,
    PromptProgress,
    ReasoningDelta,
    Regenerated,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultEdited,
    ResultReceived,
    Resumed,
    RetryScheduled,
    RunFinished,
    RunStarted,
    ServerAsked,
    ServerOutput,
    StepStarted,
    StopReason,
    TextDelta,
    TextWasReasoning,
    ToolCall,
    ToolDefinition,
    Usage,
    UserEnded,
    UserRefused,
    UserRequestStarted,
    UserSaid,
)

CUT_OFF = "an answer was cut off at the token limit: raise `max_tokens`"
"""The notice of a run with an answer cut off at the token limit."""


# `weakref_slot`, because `ByIdentity` keeps the text of a call as long as the record lives.
@dataclass(frozen=True, slots=True, weakref_slot=True)
class CallRecord:
    """A tool call and its result; `complete` is false while the arguments are still arriving."""

    call: ToolCall
    round: int
    complete: bool = True
    server: str | None = None
    """The name of the server that executed the call; `None` for a mocked call."""
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
        """The call as it is answered and sent back to the model, with edited arguments if a person changed them."""
        if self.edited is None:
            return self.call
        return ToolCall(self.call.id, self.call.tool, self.edited)

    @property
    def is_open(self) -> bool:
        """Whether the call still needs a result from a tool or a person."""
        return self.result is None and not self.by_provider

    @property
    def touched(self) -> bool:
        """Whether a person changed the call or its result, or answered a request of its server."""
        answered = self.result is not None and self.result.source in ("edited", "skipped")
        answered = answered or any(asked.source == "person" for asked in self.asked)
        return answered or self.edited is not None or self.unedited is not None

    @property
    def arguments(self) -> Mapping[str, JsonValue]:
        return self.call.arguments


class OfTool(Protocol):
    """A call with a tool's name: a call in a run, or an expected call of a case."""

    @property
    def tool(self) -> str: ...


def tools_of(calls: Iterable[OfTool]) -> tuple[str, ...]:
    """Return the tool of each call, in order."""
    return tuple([call.tool for call in calls])


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What the user of a conversation did in one turn; `number` counts from 1, and without `said` nothing was sent."""

    number: int
    requests: tuple[UserRequestStarted, ...] = ()
    refused: tuple[UserRefused, ...] = ()
    """The messages that were not sent, in the order of the attempts."""
    said: UserSaid | None = None
    ended: UserEnded | None = None

    @property
    def text(self) -> str | None:
        """The message of the user; `None` if the user said nothing."""
        return self.said.text if self.said is not None else None

    @property
    def spent(self) -> list[UserRefused | UserSaid | UserEnded]:
        """The events with tokens, latency and cost of the model that plays the user."""
        return [each for each in (*self.refused, self.said, self.ended) if each is not None]

    @property
    def usage(self) -> Usage | None:
        """The tokens of the model that plays the user; `None` if none were counted."""
        return _sum_of([each.usage for each in self.spent])

    @property
    def latency_ms(self) -> float:
        """The latency of the model that plays the user, in milliseconds."""
        return sum(each.latency_ms for each in self.spent)


def _sum_of(usages: Iterable[Usage | None]) -> Usage | None:
    counted_usages = [usage for usage in usages if usage is not None]
    if not counted_usages:
        return None
    return sum(counted_usages[1:], counted_usages[0])


@dataclass(frozen=True, slots=True)
class Round:
    """A model request, its answer, and the results of the answer's calls; `number` counts from 1."""

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
    """The cost in US dollars as the agent reports it; `None` for a model."""
    errors: tuple[str, ...] = ()
    """The errors of the failed attempts of this request, in order."""
    provider_state: JsonValue = None
    deviations: tuple[Deviation, ...] = ()
    """The deviations of the endpoint that were repaired in the answer."""
    step: StepStarted | None = None
    """The step of a chain that the request belongs to."""
    added: tuple[str, ...] = ()
    """Messages that a person added before the request; they follow the step's own message."""
    superseded: tuple[Round, ...] = ()
    """Earlier answers to the same request, which a person discarded."""
    replayed: bool = False
    """Whether the round is replayed from another run without a model request."""
    not_offered: tuple[CallRecord, ...] = ()
    """Calls that the provider or an agent ran, of tools that the suite does not offer. These calls are only shown."""
    turn: int | None = None
    """The turn of a conversation that the request belongs to, counted from 1; `None` outside of a conversation."""
    round_in_turn: int = 0
    """The number of the round within its turn, counted from 1."""
    said: UserSaid | None = None
    """The user's message at the start of the turn; set only in the first round of the turn."""
    notes: tuple[AgentNoted, ...] = ()
    """The notes of an agent beside its answer: plans, refused permissions, calls that never reached Workbench."""

    @property
    def calls_to_answer(self) -> tuple[CallRecord, ...]:
        """The calls whose results are sent back to the model; calls that the provider ran are excluded."""
        return tuple([call for call in self.calls if not call.by_provider])

    @property
    def answered(self) -> int:
        """The number of calls before the first call that still needs a result."""
        for number, call in enumerate(self.calls):
            if call.is_open:
                return number
        return len(self.calls)

    @property
    def step_number(self) -> int | None:
        """The step of a chain that the request belongs to, counted from 1; `None` outside of a chain."""
        return self.step.step if self.step is not None else None

    @property
    def user_message(self) -> str | None:
        """The user's message before the request, from a step or a conversation; `None` if there is none."""
        if self.said is not None:
            return self.said.text
        return self.step.user if self.step is not None else None

    def response(self) -> ResponseFinished:
        """Return the event that completed the answer of the round."""
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
        """The place where the answer was cut off, and the remedy: ``after 16 tokens: raise `max_tokens` ``."""
        where = "at the token limit"
        if self.usage is not None and self.usage.output_tokens:
            where = f"after {counted(self.usage.output_tokens, 'token')}"
        return f"{where}: raise `max_tokens`"

    @property
    def retries(self) -> int:
        """The number of retries of the request."""
        # Every failure except a final one was followed by a retry.
        if self.errors and self.stop_reason is None:
            return len(self.errors) - 1
        return len(self.errors)


@dataclass(frozen=True, slots=True)
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
    It excludes the time while held, the time in the queue of an endpoint, and judging."""
    held_ms: float = 0.0
    """The time while the run was held, in milliseconds."""
    agent: AgentStarted | None = None
    """The agent started for the run; `None` for a model."""
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
        """The calls of the suite before the run."""
        return tuple([call for call in self.own_calls if call.stage == "setup"])

    def asked_in(self, stage: OwnCallStage) -> tuple[ServerAsked, ...]:
        """Return the requests of servers in the suite's own calls before or after the run."""
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

    @property
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
        """The time in the system prompt of the run; `None` if there is none."""
        if self.start is not None:
            return self.start.clock
        return None

    @property
    def finish_reason(self) -> FinishReason | None:
        """The reason why the run ended; `None` for a run that has not ended."""
        if self.finish is not None:
            return self.finish.reason
        return None

    @property
    def cut_off_rounds(self) -> set[int]:
        """The numbers of the rounds whose answers were cut off at the token limit."""
        return {round_.number for round_ in self.rounds if round_.stop_reason == "truncated"}

    @property
    def notices(self) -> tuple[str, ...]:
        """The differences from the suite (`RunStarted.notices`), and the notice of a cut-off answer."""
        notices: tuple[str, ...] = ()
        if self.start is not None:
            notices = self.start.notices
        if self.finish_reason == "truncated":
            notices += (CUT_OFF,)
        # An answer that does not fit the request ends the run with an error, so no notice is needed.
        for asked in self.asked_by_servers:
            if asked.problem is None and asked.notice is not None and asked.notice not in notices:
                notices += (asked.notice,)
        return notices

    @property
    def server_outputs(self) -> tuple[ServerOutput, ...]:
        """The standard error of failed servers: servers that did not start, then the server that ended the run."""
        outputs: tuple[ServerOutput, ...] = ()
        if self.start is not None:
            outputs = self.start.server_outputs
        if self.finish is not None and self.finish.server_output is not None:
            outputs += (self.finish.server_output,)
        return outputs

    @property
    def final_answer(self) -> str:
        """The text of the answer that ended the run; empty if the run ended in another way."""
        # Even as the last answer of a chain, an answer counts only if it was neither cut off nor refused and has no
        # calls.
        if self.finish is None or self.finish.reason not in _ENDED_WITH_ANSWER or not self.rounds:
            return ""
        last = self.rounds[-1]
        if last.calls_to_answer or last.stop_reason != "answered":
            return ""
        return last.text

    @property
    def user_usage(self) -> Usage | None:
        """The tokens of the model that plays the user; `None` if none were counted."""
        return _sum_of([turn.usage for turn in self.user_turns])

    @property
    def user_latency_ms(self) -> float:
        """The latency of the model that plays the user, in milliseconds."""
        return sum(turn.latency_ms for turn in self.user_turns)

    @property
    def user_requests(self) -> int:
        """The number of requests to the model that plays the user; answers from the cache do not count."""
        return sum(not request.cached for turn in self.user_turns for request in turn.requests)

    @property
    def user_cost_usd(self) -> float | None:
        """The cost of the model that plays the user, in US dollars: 0 without requests, `None` if it is unknown."""
        total = 0.0
        for turn in self.user_turns:
            for each in turn.spent:
                if each.cost_usd is None and each.latency_ms:
                    return None
                total += each.cost_usd or 0.0
        return total

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
        """All rounds that asked a model: superseded answers are included, replayed rounds are not."""
        answers = []
        for round_ in self.rounds:
            answers += [answer for answer in (round_, *round_.superseded) if not answer.replayed]
        return answers

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """The deviations of the endpoint that were repaired in the answers."""
        return tuple([each for round_ in self.rounds for each in round_.deviations])

    @property
    def usage(self) -> Usage | None:
        """The tokens of all answers in `asked`; `None` if no provider counted any."""
        return _sum_of([answer.usage for answer in self.asked])


_ENDED_WITH_ANSWER = ("answered", "steps done", "user done", "user gave up", "stopped by rule", "turns exhausted")

# A live view and a finished run use the same fold, so the grades apply to the run as it was shown. During the fold,
# calls and rounds are mutable and hold their text in pieces.


class TrajectoryError(ValueError):
    """The events cannot come from one run in this order."""


@dataclass
class _OpenCall:
    id: str
    tool: str
    round: int
    fragments: list[str] = field(default_factory=list)
    finished: CallFinished | None = None
    server: str | None = None
    result: ResultReceived | None = None
    edited: Mapping[str, JsonValue] | None = None
    unedited: ResultReceived | None = None
    by_provider: bool = False
    asked: tuple[ServerAsked, ...] = ()

    def record(self) -> CallRecord:
        done = self.finished
        if done is not None:
            call = ToolCall(self.id, self.tool, done.arguments, done.raw, done.problem)
        else:
            call = ToolCall(self.id, self.tool, raw="".join(self.fragments))
        return CallRecord(
            call,
            self.round,
            done is not None,
            self.server,
            self.result,
            edited=self.edited,
            unedited=self.unedited,
            by_provider=self.by_provider,
            asked=self.asked,
        )


@dataclass
class _OpenRound:
    number: int
    reasoning: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    calls: list[_OpenCall] = field(default_factory=list)
    response: ResponseFinished | None = None
    errors: list[str] = field(default_factory=list)
    step: StepStarted | None = None
    added: tuple[str, ...] = ()
    superseded: tuple[Round, ...] = ()
    replayed: bool = False
    not_offered: list[_OpenCall] = field(default_factory=list)
    turn: int | None = None
    round_in_turn: int = 0
    said: UserSaid | None = None
    notes: list[AgentNoted] = field(default_factory=list)

    def unanswered(self, **changes: Any) -> _OpenRound:
        """Return a copy with the same request and without the answer."""
        return _OpenRound(
            self.number,
            step=self.step,
            added=self.added,
            superseded=self.superseded,
            turn=self.turn,
            round_in_turn=self.round_in_turn,
            said=self.said,
            **changes,
        )

    def record(self) -> Round:
        stop_reason = usage = first_token_ms = latency_ms = provider_state = cost_usd = None
        waited_ms = 0.0
        deviations: tuple[Deviation, ...] = ()
        if (response := self.response) is not None:
            stop_reason, usage = response.stop_reason, response.usage
            first_token_ms, latency_ms = response.first_token_ms, response.latency_ms
            provider_state, waited_ms = response.provider_state, response.waited_ms
            deviations, cost_usd = response.deviations, response.cost_usd
        not_offered = tuple([call.record() for call in self.not_offered])
        return Round(
            number=self.number,
            reasoning="".join(self.reasoning),
            text="".join(self.text),
            calls=tuple([call.record() for call in self.calls]),
            stop_reason=stop_reason,
            usage=usage,
            first_token_ms=first_token_ms,
            latency_ms=latency_ms,
            waited_ms=waited_ms,
            cost_usd=cost_usd,
            errors=tuple(self.errors),
            provider_state=provider_state,
            deviations=deviations,
            step=self.step,
            added=self.added,
            superseded=self.superseded,
            replayed=self.replayed,
            not_offered=not_offered,
            turn=self.turn,
            round_in_turn=self.round_in_turn,
            said=self.said,
            notes=tuple(self.notes),
        )


class TrajectoryFold:
    """A trajectory built event by event; sequence numbers start at 0 without gaps."""

    def __init__(self) -> None:
        self._run_id = ""
        self._start: RunStarted | None = None
        self._rounds: list[_OpenRound] = []
        self._calls: dict[str, _OpenCall] = {}
        self._finish: RunFinished | None = None
        self._next_sequence = 0
        self._time_ms = 0.0
        self._held_ms = 0.0
        self._is_held = False
        self._outside_ms = 0.0
        """Time outside the agent loop: before the start, waiting for an endpoint's turn, and judging."""
        self._retry_wait_ms = 0.0
        self._step: StepStarted | None = None
        self._added: tuple[str, ...] = ()
        self._fork: Forked | None = None
        self._agent: AgentStarted | None = None
        self._own_calls: tuple[OwnCallAnswered, ...] = ()
        self._asked: tuple[ServerAsked, ...] = ()
        self._turns: list[UserTurn] = []
        self._said: UserSaid | None = None

    def add(self, event: Event) -> None:
        """Add an event; raise TrajectoryError if it cannot follow the previous events."""
        if event.sequence != self._next_sequence:
            raise TrajectoryError(f"event {event.sequence} where {self._next_sequence} was due")
        if self._finish is not None:
            raise TrajectoryError(f"event {event.sequence} after the end of the run")
        what = event.payload
        if isinstance(what, RunStarted) != (event.sequence == 0):
            raise TrajectoryError("a run starts with RunStarted, once")
        if self._next_sequence and event.run_id != self._run_id:
            raise TrajectoryError(f"an event of run {event.run_id} among those of {self._run_id}")
        self._outside_ms += self._outside_before(event)
        match what:
            case RunStarted():
                self._start = what
            case StepStarted():
                self._step = what
            case MessageAdded(text=text):
                self._added += (text,)
            case RequestStarted(round=number):
                # A second request in the same round is a retry.
                if self._rounds and self._rounds[-1].number == number:
                    self._begin_again(self._rounds[-1])
                else:
                    self._rounds.append(self._opened(number))
                    self._step, self._added, self._said = None, (), None
            case Regenerated(round=number):
                self._supersede(self._round(number))
            case RequestFailed(round=number, error=error):
                self._round(number).errors.append(error)
            case PromptProgress(round=number) | AnswerPaused(round=number):
                # Prompt progress is not stored in the trajectory, but its round must be the current one.
                self._round(number)
            case AgentStarted():
                self._agent = what
            case AgentNoted(round=number):
                self._round(number).notes.append(what)
            case TextDelta(round=number, text=text):
                self._round(number).text.append(text)
            case ReasoningDelta(round=number, text=text):
                self._round(number).reasoning.append(text)
            case TextWasReasoning(round=number):
                answering = self._round(number)
                answering.reasoning += answering.text
                answering.text = []
            case CallStarted() as started:
                self._begin_call(started)
            case CallArgumentsDelta(call_id=call_id, fragment=fragment):
                self._call(call_id).fragments.append(fragment)
            case CallFinished(call_id=call_id):
                self._call(call_id).finished = what
            case ResponseFinished(round=number):
                self._round(number).response = what
            case RetryScheduled(round=number, wait_ms=wait_ms):
                self._round(number)
                self._retry_wait_ms = wait_ms
            case ExecutionStarted(call_id=call_id, server=server):
                self._call(call_id).server = server
            case ExecutionProgress(call_id=call_id):
                # Execution progress is not stored either, but its call must exist.
                self._call(call_id)
            case CallEdited(call_id=call_id, arguments=arguments):
                self._call(call_id).edited = arguments
            case ResultReceived(call_id=call_id):
                self._call(call_id).result = what
            case ResultEdited(call_id=call_id):
                self._edit_result(self._call(call_id), what)
            case Paused():
                self._is_held = True
            case Resumed(held_ms=held_ms):
                self._held_ms += held_ms
                self._is_held = False
            case UserRequestStarted(turn=turn):
                self._in_turn(turn, requests=(*self._turn(turn).requests, what))
            case UserRefused(turn=turn):
                self._in_turn(turn, refused=(*self._turn(turn).refused, what))
            case UserSaid(turn=turn):
                self._in_turn(turn, said=what)
                self._said = what
            case UserEnded(turn=turn):
                self._in_turn(turn, ended=what)
            case Forked():
                # All rounds so far came from the original run.
                self._fork = what
                for round_ in self._rounds:
                    round_.replayed = True
                    round_.superseded = tuple(replace(answer, replayed=True) for answer in round_.superseded)
            case ServerAsked():
                self._asked += (what,)
                # A call of the suite has no record until it is answered.
                if (asking := self._calls.get(what.call_id)) is not None:
                    asking.asked += (what,)
            case OwnCallAnswered():
                self._own_calls += (what,)
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
            duration_ms=round(max(self._time_ms - self._held_ms, 0.0), 3),
            loop_ms=round(max(self._time_ms - self._held_ms - self._outside_ms, 0.0), 3),
            held_ms=round(self._held_ms, 3),
            fork=self._fork,
            agent=self._agent,
            added=self._added,
            own_calls=self._own_calls,
            asked_by_servers=self._asked,
            user_turns=tuple(self._turns),
        )

    @property
    def last_round(self) -> Round:
        """The latest round; there must be one."""
        return self._rounds[-1].record()

    def _outside_before(self, event: Event) -> float:
        """Return how many of the milliseconds since the last event were spent outside the agent loop."""
        since_last_ms = event.time_ms - self._time_ms
        # `Resumed` adds the time while held.
        if self._is_held:
            return 0.0
        match event.payload:
            case RunStarted():
                inside_ms = 0.0
            case RequestStarted():
                inside_ms, self._retry_wait_ms = self._retry_wait_ms, 0.0
            case StepStarted() | RunFinished(reason="step failed"):
                # A judge may have been asked whether the previous step failed.
                inside_ms = 0.0
            case ServerAsked(call_id=call_id) if call_id in self._calls:
                return 0.0
            case UserSaid() | UserRefused() | UserEnded() | UserRequestStarted():
                # The user is not part of the agent either.
                inside_ms = 0.0
            case ServerAsked() | OwnCallAnswered():
                # The suite's own calls are not part of the agent's work.
                inside_ms = 0.0
            case ResultReceived(source="provider"):
                return 0.0  # it arrives within an answer
            case ResultReceived(latency_ms=latency_ms):
                # Before the tool began, a judge may have been asked whether a mock applies.
                inside_ms = latency_ms
            case ResponseFinished(waited_ms=waited_ms):
                return waited_ms
            case _:
                return 0.0
        return max(since_last_ms - inside_ms, 0.0)

    def _opened(self, number: int) -> _OpenRound:
        """Return the round of a new request.

        A new user message begins its turn; otherwise the turn of the last round goes on."""
        opened = _OpenRound(number, step=self._step, added=self._added, said=self._said)
        if self._said is not None:
            opened.turn, opened.round_in_turn = self._said.turn, 1
        elif self._rounds and self._rounds[-1].turn is not None:
            opened.turn, opened.round_in_turn = self._rounds[-1].turn, self._rounds[-1].round_in_turn + 1
        return opened

    def _turn(self, number: int) -> UserTurn:
        if not self._turns or self._turns[-1].number != number:
            self._turns.append(UserTurn(number))
        return self._turns[-1]

    def _in_turn(self, number: int, **changes: Any) -> None:
        self._turns[-1] = replace(self._turn(number), **changes)

    def _begin_again(self, failed: _OpenRound) -> None:
        """Discard a failed attempt's partial answer before the retry, and keep the error."""
        self._forget_calls(failed)
        self._rounds[-1] = failed.unanswered(errors=failed.errors)

    def _supersede(self, answered: _OpenRound) -> None:
        """Move an answer to `superseded`, and reopen the round for the same request with the messages added since."""
        self._forget_calls(answered)
        asked = answered.unanswered()
        asked.added += self._added
        asked.superseded += (replace(answered.record(), superseded=()),)
        self._rounds[-1], self._added = asked, ()

    def _forget_calls(self, answered: _OpenRound) -> None:
        for call in (*answered.calls, *answered.not_offered):
            del self._calls[call.id]

    def _begin_call(self, started: CallStarted) -> None:
        call_id, by_provider = started.call_id, started.by_provider
        if call_id in self._calls:
            raise TrajectoryError(f"two calls with the id {call_id}")
        call = self._calls[call_id] = _OpenCall(
            call_id, started.tool, started.round, by_provider=by_provider is not None
        )
        answer = self._round(started.round)
        if by_provider == "other":
            answer.not_offered.append(call)
        else:
            answer.calls.append(call)

    def _edit_result(self, call: _OpenCall, edit: ResultEdited) -> None:
        if call.result is None:
            raise TrajectoryError(f"an edited result of the call {call.id}, which has none")
        call.unedited = call.unedited or call.result
        call.result = replace(call.result, content=edit.content, is_error=edit.is_error)

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
    """Return the trajectory of the events of one run; raise TrajectoryError if they do not belong together."""
    folded = TrajectoryFold()
    for event in events:
        folded.add(event)
    return folded.trajectory
