"""The user of one conversation: the user's messages, the user's departure, and the rules that end the run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import zip_longest
from typing import Protocol, TypeVar

from workbench.checks.check import CheckContext
from workbench.engine.recorder import Recorder
from workbench.engine.script import Departure, is_stop_reached, next_scripted_message, user_messages
from workbench.suite.user_model import UserTable
from workbench.trajectory.events import FinishReason, RunFinished, UserEnd, UserEnded, UserRefused, UserSaid
from workbench.trajectory.trajectory import Trajectory

_Decided = TypeVar("_Decided")

FINISH_REASONS: dict[UserEnd, FinishReason] = {"done": "user done", "gave up": "user gave up"}
"""The reason why a run ends, for each way in which its user leaves."""


class ConditionEvaluator(Protocol):
    """Evaluates the conditions of a conversation. `RunGrading` implements this protocol."""

    async def result_or_reason(
        self, grade: Callable[[CheckContext], _Decided], trajectory: Trajectory
    ) -> _Decided | str:
        """Return the result of `grade`, or a text with the reason why a check cannot be evaluated."""
        ...


class UserError(Exception):
    """The simulated user broke its rules or could not be asked. The message gives the reason."""


class ConversationUser(Protocol):
    """A user whose messages are not scripted. With `can_retry`, a second request may return a different message."""

    can_retry: bool

    async def reply(self, trajectory: Trajectory, turn: int, /) -> UserSaid | UserEnded:
        """Return the user's message or departure in a turn. Turns count from 1.

        Raises UserError."""
        ...


ReviewMessage = Callable[[UserSaid, bool], Awaitable[UserSaid | None]]
"""Returns the message to send in place of a message, or `None` to ask for another. The flag is whether the user can be
asked again."""


class Conversation:
    """The user of one conversation.

    `user` is a model that plays the user, or a recorded user. If it is `None`, a script plays the user."""

    def __init__(
        self,
        table: UserTable,
        recorder: Recorder,
        conditions: ConditionEvaluator,
        user: ConversationUser | None = None,
    ) -> None:
        self._table = table
        self._recorder = recorder
        self._conditions = conditions
        self._reply = self._scripted_reply if user is None else user.reply
        self._may_differ = user is not None and user.can_retry

    async def next_message(self, review: ReviewMessage) -> UserSaid | RunFinished:
        """Emit and return the user's next message, or return the run's final event.

        `review` returns the message to send. If it returns `None`, the user is asked for another message."""
        trajectory = self._recorder.trajectory
        said = user_messages(trajectory)
        if said and (not trajectory.rounds or trajectory.rounds[-1].turn != said[-1].turn):
            return said[-1]  # a replayed message of a fork, which the model has not answered yet
        if said and said[-1].end is not None:
            # The model answers a message with `end` too. The user leaves after this answer.
            return self._emit_departure(UserEnded(said[-1].turn, said[-1].end))
        if len(said) >= self._table.max_turns:
            return RunFinished("turns exhausted")
        sent: UserSaid | None = None
        while sent is None:
            try:
                reply = await self._reply(self._recorder.trajectory, len(said) + 1)
            except UserError as error:
                return RunFinished("user error", str(error))
            except ConditionError as error:
                return RunFinished("error", str(error))
            if isinstance(reply, UserEnded):
                return self._emit_departure(reply)
            sent = await review(reply, self._may_differ)
            if sent is None:
                turn, cost = reply.turn, (reply.usage, reply.latency_ms, reply.cost_usd)
                attempt = len(self._recorder.trajectory.user_turns[-1].refused) + 1
                self._recorder.emit(UserRefused(turn, attempt, reply.text, "asked again", "", *cost))
        self._recorder.emit(sent)
        return sent

    async def stop_result(self) -> RunFinished | None:
        """Return the run's final event if the conversation's `stop` condition is met now."""
        if self._table.stop is None:
            return None
        trajectory = self._recorder.trajectory
        try:
            found = await evaluate_condition(
                self._conditions, trajectory, lambda context: is_stop_reached(self._table, trajectory, context)
            )
        except ConditionError as error:
            return RunFinished("error", str(error))
        return RunFinished("stopped by rule") if found else None

    def _emit_departure(self, event: UserEnded) -> RunFinished:
        self._recorder.emit(event)
        return RunFinished(FINISH_REASONS[event.end])

    async def _scripted_reply(self, trajectory: Trajectory, turn: int) -> UserSaid | UserEnded:
        def decide(context: CheckContext) -> UserSaid | Departure:
            return next_scripted_message(self._table, trajectory, context)

        found = await evaluate_condition(self._conditions, trajectory, decide)
        if isinstance(found, Departure):
            return UserEnded(turn, "done" if found.is_done else "gave up", found.why)
        return replace(found, turn=turn)


class RecordedUser:
    """A user that repeats the turns of a recorded conversation without a model.

    `origin` is the recorded run. If a model played its user, the model's refused messages are repeated too, so that
    both runs have the same events."""

    can_retry = False

    def __init__(self, origin: Trajectory, recorder: Recorder) -> None:
        self._origin = origin
        self._recorder = recorder

    async def reply(self, _trajectory: Trajectory, turn: int) -> UserSaid | UserEnded:
        """Return the recorded message or departure of a turn.

        Raises UserError if the recording lacks this turn."""
        found = next((each for each in self._origin.user_turns if each.number == turn), None)
        if found is not None:
            for request, refused in zip_longest(found.requests, found.refused):
                for event in (request, refused):
                    if event is not None:
                        self._recorder.emit(event)
            reply = found.said or found.ended
            if reply is not None:
                return reply
        finish = self._origin.finish
        if finish is not None and finish.reason == "user error" and finish.error is not None:
            raise UserError(finish.error)
        raise UserError(
            f"the recording has no message of the user for turn {turn}, because the model answers differently"
        )


class UnavailableUser:
    """A user that cannot send messages; `why` is the reason."""

    can_retry = False

    def __init__(self, reason: str) -> None:
        self._why = reason

    async def reply(self, _trajectory: Trajectory, _turn: int) -> UserSaid | UserEnded:
        raise UserError(self._why)


class ConditionError(Exception):
    """A condition of the user cannot be evaluated. The message gives the reason."""


async def evaluate_condition(
    conditions: ConditionEvaluator, trajectory: Trajectory, decide: Callable[[CheckContext], _Decided]
) -> _Decided:
    """Return the result of `decide`, which evaluates the conditions of a conversation's user.

    Raises ConditionError if a check in a condition cannot be evaluated."""
    found = await conditions.result_or_reason(decide, trajectory)
    if isinstance(found, str):
        raise ConditionError(f"a condition of the user cannot be checked: {found}")
    return found
