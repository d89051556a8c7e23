"""A run at its checkpoint: held as long as somebody wants it, changed meanwhile, everything written down."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from workbench.engine.checkpoint import (
    AddMessage,
    AnswerCall,
    AskAgain,
    At,
    Checkpoint,
    Command,
    EditArguments,
    EditResult,
    GoOn,
    HoldPoint,
    SkipCall,
)
from workbench.engine.recorder import Recorder
from workbench.engine.time_limit import TimeLimit
from workbench.trajectory.events import (
    AskedAgain,
    CallEdited,
    MessageAdded,
    Paused,
    ResultEdited,
    ResultReceived,
    Resumed,
)
from workbench.trajectory.messages import ToolDefinition
from workbench.trajectory.trajectory import CallRecord

SKIPPED = "This call was not made: the person who watches this run skipped it."
"""What the model reads in the place of a result."""

After = Literal["go on", "answered", "ask again"]
"""What a hold leads to: the run goes on; the call is answered already; its round is asked again."""


class Holding:
    """Holds one run where its checkpoint wants it; without a checkpoint, nowhere. What a person says to the model waits
    in `added` for the next request."""

    def __init__(self, checkpoint: Checkpoint | None, recorder: Recorder, limit: TimeLimit) -> None:
        self._checkpoint = checkpoint
        self._recorder = recorder
        self._limit = limit
        self.added: list[str] = []

    def take_added(self) -> tuple[str, ...]:
        """What was said to the model since its last request."""
        added = tuple(self.added)
        self.added.clear()
        return added

    async def pass_by(
        self, at: At, round_number: int, call: CallRecord | None = None, tool: ToolDefinition | None = None
    ) -> tuple[After, CallRecord | None]:
        """Come by a place where the run may be held, and stay there as long as it is. What it leads to, and the call as
        it is then."""
        checkpoint = self._checkpoint
        if checkpoint is None:
            return "go on", call
        point = HoldPoint(at, round_number, lambda: self._recorder.trajectory, call, tool)
        async with self._limit.suspended():
            why = await checkpoint.why_hold(point)
            if why is None:
                return "go on", call
            self._recorder.emit(Paused(why, call.call.id if call is not None else None, at, round_number))
            point = replace(point, hold=self._recorder.last)
            began = self._recorder.clock()
            after: After | None = None
            try:
                while after is None:
                    command = await checkpoint.next_command(point)
                    after, changed = self._do(command, round_number, point.call)
                    point = replace(point, call=changed)
            finally:
                self._recorder.emit(Resumed(self._recorder.ms_since(began)))
        if after == "answered":
            assert isinstance(command, AnswerCall | SkipCall)
            assert point.call is not None
            return after, replace(point.call, result=self._answer(point.call.call.id, command))
        if after == "ask again":
            self._recorder.emit(AskedAgain(round_number))
        return after, point.call

    def _do(
        self, command: Command, round_number: int, call: CallRecord | None
    ) -> tuple[After | None, CallRecord | None]:
        """Do what is said; `None` where the run stays held, and the call as it is then."""
        match command:
            case GoOn():
                return "go on", call
            case AddMessage(text=text):
                self._recorder.emit(MessageAdded(text))
                self.added.append(text)
            case AskAgain():
                return "ask again", call
            case AnswerCall() | SkipCall():
                return "answered", call
            case EditArguments(arguments=arguments) if call is not None:
                self._recorder.emit(CallEdited(call.call.id, arguments, call.call.arguments))
                return None, replace(call, edited=arguments)
            case EditResult(content=content, is_error=is_error) if call is not None and call.result is not None:
                now = call.result
                self._recorder.emit(ResultEdited(call.call.id, content, is_error, now.content, now.is_error))
                return None, replace(call, result=replace(now, content=content, is_error=is_error))
        return None, call

    def _answer(self, call_id: str, command: AnswerCall | SkipCall) -> ResultReceived:
        if isinstance(command, AnswerCall):
            result = ResultReceived(call_id, command.content, command.is_error, "edited", 0.0)
        else:
            result = ResultReceived(call_id, SKIPPED, True, "skipped", 0.0)
        self._recorder.emit(result)
        return result
