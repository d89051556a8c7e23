"""Checkpoints, where a run can be held (paused), and commands, with which a person changes a held run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Literal, Protocol

from workbench.dataclasses import dataclass
from workbench.engine.recorder import Recorder, TimeLimit
from workbench.providers.model import HttpRequest
from workbench.tools.questions import ServerQuestion, ServerReply, problem_of_reply
from workbench.trajectory.events import (
    CallEdited,
    JsonValue,
    MessageAdded,
    Paused,
    Regenerated,
    ReplyAction,
    ResultEdited,
    ResultReceived,
    Resumed,
    ServerAsked,
    ToolCall,
    ToolDefinition,
    UserSaid,
    problem_of,
)
from workbench.trajectory.trajectory import CallRecord, Trajectory

PendingRequest = Callable[[], Awaitable[HttpRequest | None]]
"""Returns the next request of a held run as it would be sent; `None` for a model without HTTP. Raises ModelError."""

HoldPlace = Literal["user", "request", "call", "question", "result"]
"""The place of a checkpoint.

`result` is after the result of a call. The other places are before an action: a message of the user, a request to the
model, a call, or a reply to the server that executes the call."""


@dataclass(frozen=True, slots=True)
class HoldPoint:
    """A point at which a run can be held.

    If the point belongs to a tool call, `call` is this call. `tool` is the definition of the called tool, if there is
    one."""

    at: HoldPlace
    round: int
    current_trajectory: Callable[[], Trajectory]
    """Returns the trajectory up to the point; each call copies all of its rounds."""
    call: CallRecord | None = None
    tool: ToolDefinition | None = None
    hold: int | None = None
    """The sequence number of the `Paused` event. It identifies the hold while the run is held."""
    request: PendingRequest | None = None
    """The pending request with the messages added so far. Only a point before a request has a pending request."""
    question: ServerQuestion | None = None
    """The server's request that waits for a reply."""
    reply: ServerReply | None = None
    """The reply that the server gets if the run continues."""
    of_agent: bool = False
    """Whether an agent runs the case. An agent cannot be asked again."""
    user_message: UserSaid | None = None
    """The message that the user of a conversation sends if the run continues."""
    can_retry: bool = False
    """Whether the user can be asked for another message, because a model plays the user."""


@dataclass(frozen=True, slots=True)
class Continue:
    """A command at any checkpoint: let the run continue."""


@dataclass(frozen=True, slots=True)
class EditArguments:
    """A command before a call: change the arguments that are sent."""

    arguments: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class AnswerCall:
    """A command before a call: answer it in place of the tool."""

    content: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class SkipCall:
    """A command before a call: skip the call.

    The model reads `SKIPPED` as the result."""


@dataclass(frozen=True, slots=True)
class AnswerQuestion:
    """A command at a server's request: replace the reply that the case defines."""

    action: ReplyAction
    content: Mapping[str, JsonValue] | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class EditResult:
    """A command after a result: change the result that the model reads."""

    content: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class EditMessage:
    """A command before a message of the user: change its text."""

    text: str


@dataclass(frozen=True, slots=True)
class SayMessage:
    """A command before a message of the user: send another message in its place, and continue."""

    text: str


@dataclass(frozen=True, slots=True)
class AddMessage:
    """A command at any checkpoint: add a user message to the next request."""

    text: str


@dataclass(frozen=True, slots=True)
class Regenerate:
    """A command before a call or after a result: discard the model's answer and repeat the request.

    Before a message of a user that a model plays, the command asks that model for another message."""


UserMessageEdit = EditMessage | SayMessage
Edit = EditArguments | AnswerCall | AnswerQuestion | SkipCall | EditResult | UserMessageEdit | AddMessage | Regenerate
Command = Continue | Edit

# The commands that are allowed at each place. Messages can be added everywhere. A result exists only after its call,
# and arguments can change only before the call is sent.
_ALLOWED: Mapping[HoldPlace, tuple[type[Command], ...]] = {
    "user": (Continue, AddMessage, EditMessage, SayMessage, Regenerate),
    "request": (Continue, AddMessage),
    "call": (Continue, AddMessage, EditArguments, AnswerCall, SkipCall, Regenerate),
    "question": (Continue, AddMessage, AnswerQuestion),
    "result": (Continue, AddMessage, EditResult, Regenerate),
}

_WHEN: Mapping[type[Command], str] = {
    EditArguments: "arguments can be changed before the call",
    AnswerCall: "a call can be answered before it is made",
    SkipCall: "a call can be skipped before it is made",
    AnswerQuestion: "a server can be answered only while it asks",
    EditResult: "a result can be changed right after it arrives",
    EditMessage: "the user's words can be changed before they are sent",
    SayMessage: "the user's words can be replaced before they are sent",
    Regenerate: "a round can be asked again before one of its calls, or after a result",
}


_WHERE: Mapping[HoldPlace, str] = {
    "user": "before a message of the user",
    "request": "before a request",
    "call": "before a call",
    "question": "while a server asks",
    "result": "after a result",
}


def refusal(command: Command, point: HoldPoint) -> str | None:
    """Return why a command is not allowed at a checkpoint; `None` if it is allowed."""
    question = point.question
    if point.of_agent and isinstance(command, Regenerate) and point.at != "user":
        return AGENT_NOT_REPEATABLE
    if not isinstance(command, _ALLOWED[point.at]):
        where = _WHERE[point.at]
        return f"the run is held {where}: {_WHEN[type(command)]}"
    if isinstance(command, AddMessage | UserMessageEdit) and not command.text.strip():
        return "a message to the model needs a text"
    if isinstance(command, Regenerate) and point.at == "user" and not point.can_retry:
        return SCRIPT_NOT_REPEATABLE
    if isinstance(command, EditArguments) and (problem := problem_of(command.arguments)) is not None:
        return f"these arguments cannot be sent: {problem}"
    if isinstance(command, AnswerQuestion) and question is not None:
        return problem_of_reply(question, command.action, command.content, command.text)
    return None


SCRIPT_NOT_REPEATABLE = "no model plays this user, so its words would be the same"
AGENT_NOT_REPEATABLE = "an agent cannot be asked again for an answer: it has acted on it; run the case again instead"


class RunControl(Protocol):
    """Decides where a run is held, and supplies the commands to the held run."""

    async def hold_reason(self, point: HoldPoint) -> str | None:
        """Return a short reason to hold the run at this point, or `None` to let the run continue."""
        ...

    async def next_command(self, point: HoldPoint) -> Command:
        """Wait for the next command to the held run, and return the command.

        Implementations return only commands for which `refusal` returns `None` at this point."""
        ...


def question_event(call: ToolCall, question: ServerQuestion, reply: ServerReply) -> ServerAsked:
    """Return the event that records a server's request and the reply."""
    return ServerAsked(
        *(call.id, call.tool, question.server, question.kind, question.message, question.request),
        *(reply.action, reply.source, reply.content, reply.text, reply.problem, question.undeclared),
    )


def edited_by_person(message: UserSaid, text: str) -> UserSaid:
    """Return a user message with its text replaced by a person's text. The message keeps its original text too."""
    return replace(message, text=text, by="person", original=message.original or message.text)


SKIPPED = "This call was not made: the person who watches this run skipped it."
"""The text that the model reads in place of the result of a skipped call."""

AfterHold = Literal["continue", "answered", "regenerate"]
"""How a run continues after a checkpoint: normally, with an answered call, or by regenerating its round."""


class Checkpoint:
    """Holds one run at the points that `control` selects, and records a person's changes.

    Without `control`, the run is never held. `added` holds a person's messages for the next request."""

    def __init__(
        self, control: RunControl | None, recorder: Recorder, limit: TimeLimit, *, of_agent: bool = False
    ) -> None:
        self._of_agent = of_agent
        self._control = control
        self._recorder = recorder
        self._limit = limit
        self.added: list[str] = []

    def pop_added(self) -> tuple[str, ...]:
        """Remove and return the messages added since the last request."""
        added = tuple(self.added)
        self.added.clear()
        return added

    async def reach(
        self,
        place: HoldPlace,
        round_number: int,
        call: CallRecord | None = None,
        tool: ToolDefinition | None = None,
        request: PendingRequest | None = None,
    ) -> tuple[AfterHold, CallRecord | None]:
        """Hold the run at this checkpoint if `control` selects it, and wait until it may continue.

        Returns how the run continues, and the given call with a person's edits."""
        # Most runs have no control, so this fast return comes first.
        control = self._control
        if control is None:
            return "continue", call
        point = HoldPoint(
            place, round_number, lambda: self._recorder.trajectory, call, tool, request=request, of_agent=self._of_agent
        )
        # The run's time limit excludes the time of a person's decision, and of judges that breakpoints ask.
        async with self._limit.suspended():
            why = await control.hold_reason(point)
            if why is None:
                return "continue", call
            call_id = call.call.id if call is not None else None
            self._recorder.emit(Paused(why, call_id, place, round_number))
            # A command has the number of the hold for which it was given. So a late command cannot change the run at
            # the next hold.
            point = replace(point, hold=self._recorder.last)
            began = self._recorder.clock()
            after: AfterHold | None = None
            # `Resumed` is emitted even if the run is stopped during the hold, because it reports the held time, which
            # never counts as time of the run.
            try:
                while after is None:
                    command = await control.next_command(point)
                    after, changed = self._apply(command, round_number, point.call)
                    point = replace(point, call=changed)
            finally:
                self._recorder.emit(Resumed(self._recorder.ms_since(began)))
        if after == "answered":
            assert isinstance(command, AnswerCall | SkipCall)
            assert point.call is not None
            return after, replace(point.call, result=self._answer(point.call.call.id, command))
        if after == "regenerate":
            self._recorder.emit(Regenerated(round_number))
        return after, point.call

    async def review(
        self,
        round_number: int,
        call: CallRecord,
        tool: ToolDefinition | None,
        question: ServerQuestion,
        reply: ServerReply,
    ) -> ServerReply:
        """Hold the run at a server's request if `control` selects it, and return the reply to send.

        The reply is `reply` unless a person changes it."""
        control = self._control
        if control is None:
            return reply
        so_far = lambda: self._recorder.trajectory  # noqa: E731
        point = HoldPoint("question", round_number, so_far, call, tool, question=question, reply=reply)
        async with self._limit.suspended():
            why = await control.hold_reason(point)
            if why is None:
                return reply
            asked = question_event(call.call, question, reply)
            self._recorder.emit(Paused(why, call.call.id, "question", round_number, asked))
            point = replace(point, hold=self._recorder.last)
            began = self._recorder.clock()
            try:
                while True:
                    match await control.next_command(point):
                        case AddMessage(text=text):
                            self._recorder.emit(MessageAdded(text))
                            self.added.append(text)
                        case AnswerQuestion(action=action, content=content, text=text):
                            return ServerReply(action, "person", content, text)
                        case _:
                            return reply
            finally:
                self._recorder.emit(Resumed(self._recorder.ms_since(began)))

    async def before_message(self, round_number: int, message: UserSaid, may_differ: bool) -> UserSaid | None:
        """Hold the run before a user message if `control` selects this point, and return the message to send.

        Returns `None` if a person wants another message from the user. `may_differ` means that a model plays the user,
        so another message is possible."""
        control = self._control
        if control is None:
            return message
        so_far = lambda: self._recorder.trajectory  # noqa: E731
        why = await control.hold_reason(
            HoldPoint("user", round_number, so_far, user_message=message, can_retry=may_differ)
        )
        while why is not None:
            self._recorder.emit(Paused(why, None, "user", round_number, said=message))
            point = HoldPoint(
                "user", round_number, so_far, hold=self._recorder.last, user_message=message, can_retry=may_differ
            )
            began = self._recorder.clock()
            try:
                command = await control.next_command(point)
                while isinstance(command, AddMessage):
                    self._apply(command, round_number, None)
                    command = await control.next_command(point)
            finally:
                self._recorder.emit(Resumed(self._recorder.ms_since(began)))
            match command:
                case Regenerate():
                    return None
                case SayMessage(text=text):
                    return edited_by_person(replace(message, end=None), text)
                case EditMessage(text=text):
                    # The run is held again, so that the person sees the change before the run continues.
                    message = edited_by_person(message, text)
                case _:
                    why = None
        return message

    def _apply(
        self, command: Command, round_number: int, call: CallRecord | None
    ) -> tuple[AfterHold | None, CallRecord | None]:
        """Apply a command to the held run.

        Returns how the run continues (`None` while it stays held) and the call with a person's edits."""
        match command:
            case Continue():
                return "continue", call
            case AddMessage(text=text):
                self._recorder.emit(MessageAdded(text))
                self.added.append(text)
            case Regenerate():
                return "regenerate", call
            case AnswerCall() | SkipCall():
                return "answered", call
            # An edit does not end the hold, so that the person sees the change before the run continues.
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
