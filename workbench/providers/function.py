"""A model made of an async Python function, so that a user's own agent can run the cases of a suite."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Any

from workbench.dataclasses import dataclass
from workbench.providers.model import AnswerFinished, ModelError, ModelRequest
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    JsonValue,
    Message,
    ModelEvent,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCall,
    ToolDefinition,
    Usage,
)

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A request to an agent to continue a conversation, with some tools on offer.

    `messages` is the conversation so far. A message has a `role` and a `content`. An assistant's message may have
    `tool_calls` (each with `id`, `tool` and `arguments`). A tool's message has the `call_id` of the call that it
    answers, and `is_error` if the call failed. A tool has a `name`, a `description` and `parameters`, a JSON Schema.
    `round` counts the requests of a run from 1. `run` identifies the run, for agents that keep conversations
    themselves; `case` is the id of the case.
    """

    system: str | None
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    round: int
    case: str
    run: str

    @property
    def prompt(self) -> str:
        """The text of the newest message of the user; empty without one."""
        return next((message.content for message in reversed(self.messages) if message.role == "user"), "")

    @property
    def results(self) -> tuple[Message, ...]:
        """The results of the agent's last calls; empty if the newest message is not a result."""
        newest = list(self.messages)
        while newest and newest[-1].role == "tool":
            newest.pop()
        return self.messages[len(newest) :]


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """An agent's answer: text, calls, or both; after calls, the agent is asked again with their results.

    A call without an `id` is given one. `reasoning` is shown and never graded, `usage` counts tokens.
    """

    text: str = ""
    calls: Sequence[ToolCall] = ()
    reasoning: str = ""
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    """`truncated` or `refused`; `None` for an answer that ends with its text or with calls."""


AgentReply = str | ToolCall | Sequence[ToolCall] | AgentAnswer
"""The reply of an agent: a text, a call, several calls, or a whole answer."""

AgentFunction = Callable[[AgentRequest], Awaitable[AgentReply]]
"""An agent: an async function from a request to a reply."""


class CallerLoop:
    """The event loop of the caller, on which agents run, with the context variables at the time of creation.

    It must be created on that loop."""

    # Agents use clients that belong to the caller's loop, while the engine has a loop on another thread.

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._running: set[asyncio.Task[AgentReply]] = set()

    async def run(self, agent: Callable[[], Coroutine[Any, Any, AgentReply]]) -> AgentReply:
        """Run a coroutine on the caller's loop, and wait for it on another loop.

        Cancelling the wait cancels the coroutine."""

        async def tracked() -> AgentReply:
            task = asyncio.current_task()
            assert task is not None
            self._running.add(task)
            try:
                return await agent()
            finally:
                self._running.discard(task)

        # A copy for each run: a context can be entered only once at a time.
        context = self._context.copy()
        return await asyncio.wrap_future(context.run(asyncio.run_coroutine_threadsafe, tracked(), self._loop))

    async def settle(self) -> None:
        """Wait for cancelled agents that are still cleaning up."""
        if self._running:
            await asyncio.wait(self._running)


class FunctionModel:
    """A model that asks an async function on the loop of its caller, for one run.

    An exception of the function ends the run with an error; after a retryable ModelError, the request is repeated.
    """

    seed = None
    notices = ()

    def __init__(self, name: str, function: AgentFunction, *, case: str, run: str, loop: CallerLoop) -> None:
        self.name = name
        self._function = function
        self._case = case
        self._run = run
        self._loop = loop

    async def start(self) -> None:
        """Do nothing: a function is ready."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Let every request begin at once."""
        return nullcontext()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        """Ask the function, and yield its answer as the events of a model."""
        asked = AgentRequest(request.system, request.messages, request.tools, request.round, self._case, self._run)
        try:
            answer = answer_of(await self._loop.run(partial(self._reply, asked)))
        except ModelError:
            raise
        except Exception as error:
            _logger.exception("the agent %s on case %s", self.name, self._case)
            raise ModelError(f"the agent {self.name} raised {type(error).__name__}: {error}") from error
        for event in _events(answer, request):
            yield event
        yield AnswerFinished(answer.stop_reason or ("tool calls" if answer.calls else "answered"), answer.usage)

    async def _reply(self, request: AgentRequest) -> AgentReply:
        reply = self._function(request)
        if not inspect.isawaitable(reply):
            raise TypeError("an agent must be an async function: write it with `async def`")
        return await reply


def answer_of(reply: object) -> AgentAnswer:
    """Return the reply of a function as an answer.

    Raises TypeError for a value that is not a reply."""
    match reply:
        case AgentAnswer():
            answer = reply
        case str():
            answer = AgentAnswer(reply)
        case ToolCall():
            answer = AgentAnswer(calls=(reply,))
        case list() | tuple():
            answer = AgentAnswer(calls=tuple(reply))
        case _:
            raise TypeError(
                f"an agent must answer with a text, a call, a list of calls or an AgentAnswer, not {_kind(reply)}"
            )
    return replace(answer, calls=tuple(map(checked_call, answer.calls)))


def checked_call(call: object) -> ToolCall:
    """Return a copy of a call whose arguments are plain JSON, with lists in place of tuples.

    Raises TypeError for a value that is not a call, and for arguments that JSON cannot express."""
    if not isinstance(call, ToolCall):
        raise TypeError(f"calls are made with workbench.call(TOOL, …), not {_kind(call)}")
    arguments = {}
    for name, value in call.arguments.items():
        arguments[name] = _json(value, f"the argument {name!r} of {call.tool}")
    return replace(call, arguments=arguments)


def _json(value: object, where: str) -> JsonValue:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_json(item, where) for item in value]
        case Mapping():
            return {_name(name, where): _json(item, where) for name, item in value.items()}
        case _:
            raise TypeError(f"{where} holds {_kind(value)}, which JSON does not have: give it as the tool receives it")


def _name(name: object, where: str) -> str:
    if isinstance(name, str):
        return name
    raise TypeError(f"{where} holds an object with {_kind(name)} as a name: names in JSON are texts")


def _kind(value: object) -> str:
    if value is None:
        return "None"
    return f"a value of type {type(value).__name__}"


def with_ids(calls: Iterable[ToolCall], taken: Iterable[str] = (), first: int = 1) -> Iterator[tuple[str, ToolCall]]:
    """Yield each call with an id that is unique in its run: its own, or a new one if that is missing or taken.

    `first` is the number of the first of these calls in the run."""
    used = set(taken)
    for number, call in enumerate(calls, start=first):
        call_id, extra = call.id or f"call-{number}", 1
        while call_id in used:
            call_id = f"call-{number}" if extra == 1 else f"call-{number}-{extra}"
            extra += 1
        used.add(call_id)
        yield call_id, call


def _events(answer: AgentAnswer, request: ModelRequest) -> Iterator[ModelEvent]:
    if answer.reasoning:
        yield ReasoningDelta(request.round, answer.reasoning)
    if answer.text:
        yield TextDelta(request.round, answer.text)
    # An agent may number its calls anew in every answer, but APIs want ids that are unique in a conversation.
    taken = set()
    for message in request.messages:
        for call in message.tool_calls:
            taken.add(call.id)
    for call_id, call in with_ids(answer.calls, taken, request.calls_before + 1):
        yield from call_events(call_id, call, request.round)


def call_events(call_id: str, call: ToolCall, number: int) -> Iterator[CallStarted | CallArgumentsDelta | CallFinished]:
    """Yield a call of a round as the events of a model."""
    yield CallStarted(number, call_id, call.tool)
    text = call.raw
    if text is None:
        text = json.dumps(dict(call.arguments))
    yield CallArgumentsDelta(call_id, text)
    yield CallFinished(call_id, call.arguments, call.raw, call.problem)
