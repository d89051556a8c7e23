"""Where a run can be held, and what a person may do while it is: the one door through which a run can be changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from workbench.engine.arguments import problem_of
from workbench.trajectory.messages import JsonValue, ToolDefinition
from workbench.trajectory.trajectory import CallRecord, Trajectory

At = Literal["request", "call", "result"]
"""Before the request of a round, before a tool call, or after its result."""


@dataclass(frozen=True, slots=True)
class HoldPoint:
    """A place where a run can be held. `call` is the one that it is about, `tool` what is known of its tool, if there
    is such a tool; `so_far` gives the run as it stands, which costs something. `hold` is which hold it is, once the run
    is held there: the sequence number of its `Paused`."""

    at: At
    round: int
    so_far: Callable[[], Trajectory]
    call: CallRecord | None = None
    tool: ToolDefinition | None = None
    hold: int | None = None


@dataclass(frozen=True, slots=True)
class GoOn:
    """The run goes on."""


@dataclass(frozen=True, slots=True)
class EditArguments:
    """Before a call: it is made with other arguments."""

    arguments: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class AnswerCall:
    """Before a call: it is answered in place of the tool."""

    content: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class SkipCall:
    """Before a call: it is not made, and the model is told so."""


@dataclass(frozen=True, slots=True)
class EditResult:
    """After a result: the model reads another one."""

    content: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class AddMessage:
    """Anywhere: the model reads one message more, of the user, before its next request."""

    text: str


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Before a call or after a result: the round's answer is set aside, and its request made again."""


Edit = EditArguments | AnswerCall | SkipCall | EditResult | AddMessage | AskAgain
Command = GoOn | Edit

_ALLOWED: Mapping[At, tuple[type[Command], ...]] = {
    "request": (GoOn, AddMessage),
    "call": (GoOn, AddMessage, EditArguments, AnswerCall, SkipCall, AskAgain),
    "result": (GoOn, AddMessage, EditResult, AskAgain),
}

_WHEN: Mapping[type[Command], str] = {
    EditArguments: "arguments can be changed before the call",
    AnswerCall: "a call can be answered before it is made",
    SkipCall: "a call can be skipped before it is made",
    EditResult: "a result can be changed right after it has come",
    AskAgain: "a round can be asked again before one of its calls, or after a result",
}


def refusal(command: Command, at: At) -> str | None:
    """Why a command cannot be given where a run is held; `None` when it can."""
    if not isinstance(command, _ALLOWED[at]):
        where = {"request": "before a request", "call": "before a call", "result": "after a result"}[at]
        return f"the run is held {where}: {_WHEN[type(command)]}"
    if isinstance(command, AddMessage) and not command.text.strip():
        return "a message to the model needs a text"
    if isinstance(command, EditArguments) and (problem := problem_of(command.arguments)) is not None:
        return f"these arguments cannot be sent: {problem}"
    return None


class Checkpoint(Protocol):
    """What a run passes wherever it could be held."""

    async def why_hold(self, point: HoldPoint) -> str | None:
        """Why the run is to be held here, in a few words; `None` lets it pass."""
        ...

    async def next_command(self, point: HoldPoint) -> Command:
        """What is done with the run that is held, once somebody says so: one that `refusal` allows here."""
        ...
