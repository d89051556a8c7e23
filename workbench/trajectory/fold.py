"""Conversion of a run's events to its trajectory.

Live views and finished runs both use it, so a run is graded exactly as it was shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any

from workbench.dataclasses import dataclass
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
    Forked,
    JsonValue,
    MessageAdded,
    OwnCallAnswered,
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
    StepStarted,
    TextDelta,
    TextWasReasoning,
    ToolCall,
    UserEnded,
    UserRefused,
    UserRequestStarted,
    UserSaid,
)
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory, UserTurn

_PIECES = {TextDelta, ReasoningDelta, CallStarted, CallArgumentsDelta, CallFinished}
"""The pieces of an answer. The time before them belongs to the agent loop."""


class TrajectoryError(ValueError):
    """Events that cannot come from one run in this order."""


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

    def without_answer(self, **changes: Any) -> _OpenRound:
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
    """A trajectory that is built event by event. The sequence numbers of events must start at 0 and have no gaps."""

    def __init__(self) -> None:
        self._run_id = ""
        self._start: RunStarted | None = None
        self._rounds: list[_OpenRound] = []
        self._last_round: Round | None = None
        """The latest round, if it was read and no event has changed it since."""
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
        """Add an event. Raise TrajectoryError if it cannot follow the previous events."""
        if event.sequence != self._next_sequence:
            raise TrajectoryError(f"event {event.sequence} came where event {self._next_sequence} was expected")
        if self._finish is not None:
            raise TrajectoryError(f"event {event.sequence} came after the end of the run")
        what = event.payload
        if isinstance(what, RunStarted) != (event.sequence == 0):
            raise TrajectoryError("the first event of a run, and no other event, must be RunStarted")
        if self._next_sequence and event.run_id != self._run_id:
            raise TrajectoryError(f"an event of run {event.run_id} cannot be added to run {self._run_id}")
        if type(what) not in _PIECES:
            self._outside_ms += self._time_outside_loop_ms(event)
        # The most frequent events come first, because each case takes time.
        match what:
            case TextDelta(round=number, text=text):
                self._round(number).text.append(text)
            case CallArgumentsDelta(call_id=call_id, fragment=fragment):
                self._call(call_id).fragments.append(fragment)
            case RequestStarted(round=number):
                # A second request in the same round is a retry.
                if self._rounds and self._rounds[-1].number == number:
                    self._begin_again(self._rounds[-1])
                else:
                    self._rounds.append(self._opened(number))
                    self._step, self._added, self._said = None, (), None
            case CallStarted() as started:
                self._begin_call(started)
            case CallFinished(call_id=call_id):
                self._call(call_id).finished = what
            case ResponseFinished(round=number):
                self._round(number).response = what
            case ResultReceived(call_id=call_id):
                self._call(call_id).result = what
            case RunStarted():
                self._start = what
            case RunFinished():
                self._finish = what
            case ReasoningDelta(round=number, text=text):
                self._round(number).reasoning.append(text)
            case StepStarted():
                self._step = what
            case MessageAdded(text=text):
                self._added += (text,)
            case Regenerated(round=number):
                self._supersede(self._round(number))
            case RequestFailed(round=number, error=error):
                self._round(number).errors.append(error)
            case PromptProgress(round=number) | AnswerPaused(round=number):
                # The trajectory does not store this event. `_round` raises an error if the event belongs to another
                # round.
                self._round(number)
            case AgentStarted():
                self._agent = what
            case AgentNoted(round=number):
                self._round(number).notes.append(what)
            case TextWasReasoning(round=number):
                answering = self._round(number)
                answering.reasoning += answering.text
                answering.text = []
            case RetryScheduled(round=number, wait_ms=wait_ms):
                self._round(number)
                self._retry_wait_ms = wait_ms
            case ExecutionStarted(call_id=call_id, server=server):
                self._call(call_id).server = server
            case ExecutionProgress(call_id=call_id):
                # The trajectory does not store this event. `_call` raises an error if the run has no such call.
                self._call(call_id)
            case CallEdited(call_id=call_id, arguments=arguments):
                self._call(call_id).edited = arguments
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
                # A call that the suite makes is not known until it is answered.
                if (asking := self._calls.get(what.call_id)) is not None:
                    asking.asked += (what,)
            case OwnCallAnswered():
                self._own_calls += (what,)
        if self._finish is None:
            self._last_round = None
        self._run_id = event.run_id
        self._next_sequence += 1
        self._time_ms = event.time_ms

    @property
    def trajectory(self) -> Trajectory:
        """The trajectory so far, as an immutable value."""
        rounds = [round_.record() for round_ in self._rounds[:-1]]
        if self._rounds:
            rounds.append(self.last_round)
        return Trajectory(
            run_id=self._run_id,
            start=self._start,
            rounds=tuple(rounds),
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
        """The latest round. The run must have begun a round."""
        if self._last_round is None:
            self._last_round = self._rounds[-1].record()
        return self._last_round

    def _time_outside_loop_ms(self, event: Event) -> float:
        """Return how much of the time since the last event was spent outside the agent loop, in milliseconds."""
        since_last_ms = event.time_ms - self._time_ms
        # The event `Resumed` adds the time of the pause.
        if self._is_held:
            return 0.0
        match event.payload:
            case RunStarted():
                inside_ms = 0.0
            case RequestStarted():
                inside_ms, self._retry_wait_ms = self._retry_wait_ms, 0.0
            case ResponseFinished(waited_ms=waited_ms):
                return waited_ms
            case ResultReceived(source="provider"):
                return 0.0  # the result is a part of the model's answer
            case ResultReceived(latency_ms=latency_ms):
                # Before the tool began, a judge may have decided whether a mock applies. That time is outside the loop.
                inside_ms = latency_ms
            case StepStarted() | RunFinished(reason="step failed"):
                # The time since the last event may have been spent by a judge that decided whether the previous step
                # failed.
                inside_ms = 0.0
            case ServerAsked(call_id=call_id) if call_id in self._calls:
                return 0.0
            case UserSaid() | UserRefused() | UserEnded() | UserRequestStarted():
                # The time that the simulated user takes is not part of the agent loop.
                inside_ms = 0.0
            case ServerAsked() | OwnCallAnswered():
                # Calls that the suite makes are not part of the agent loop.
                inside_ms = 0.0
            case _:
                return 0.0
        return max(since_last_ms - inside_ms, 0.0)

    def _opened(self, number: int) -> _OpenRound:
        """Return a new round for a request.

        It belongs to the turn of the user's message before the request, otherwise to the turn of the last round."""
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
        self._rounds[-1] = failed.without_answer(errors=failed.errors)

    def _supersede(self, answer: _OpenRound) -> None:
        """Move an answer to `superseded`, so that its round can take another answer to the request.

        Messages that were added after the answer become part of the request."""
        self._forget_calls(answer)
        asked = answer.without_answer()
        asked.added += self._added
        asked.superseded += (replace(answer.record(), superseded=()),)
        self._rounds[-1], self._added = asked, ()

    def _forget_calls(self, answer: _OpenRound) -> None:
        for call in (*answer.calls, *answer.not_offered):
            del self._calls[call.id]

    def _begin_call(self, started: CallStarted) -> None:
        call_id, by_provider = started.call_id, started.by_provider
        if call_id in self._calls:
            raise TrajectoryError(f"two calls have the id {call_id}")
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
            raise TrajectoryError(f"the result of the call {call.id} was edited, but the call has no result")
        call.unedited = call.unedited or call.result
        call.result = replace(call.result, content=edit.content, is_error=edit.is_error)

    def _round(self, number: int) -> _OpenRound:
        if not self._rounds or self._rounds[-1].number != number:
            raise TrajectoryError(f"an event of round {number} cannot be added: another round is the current one")
        return self._rounds[-1]

    def _call(self, call_id: str) -> _OpenCall:
        try:
            return self._calls[call_id]
        except KeyError:
            raise TrajectoryError(f"an event names the call {call_id}, which has not started") from None


def fold(events: Iterable[Event]) -> Trajectory:
    """Return the trajectory of the events of one run.

    Raises TrajectoryError if the events do not belong together."""
    folded = TrajectoryFold()
    for event in events:
        folded.add(event)
    return folded.trajectory
