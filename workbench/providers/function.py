"""Lets a Python function take the place of a model, so that a user's own agent can run the cases of a suite."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import math
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import copy_context
from dataclasses import field, fields, replace
from functools import partial
from typing import Any, get_args

from workbench.dataclasses import dataclass
from workbench.providers.model import AnswerFinished, ModelError, ModelRequest
from workbench.providers.wire.tool_calls import read_arguments
from workbench.threads import in_thread
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
from workbench.trajectory.external_run import ExternalResult, ExternalRound, ExternalRun

_logger = logging.getLogger(__name__)

# Python refuses to convert an integer with more digits to text.
_MAX_DIGITS = sys.get_int_max_str_digits() or sys.int_info.default_max_str_digits
_INTEGER_LIMIT = 10**_MAX_DIGITS


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A request to an agent to continue a conversation. The agent may call the offered tools.

    `messages` is the conversation so far. A message has a `role` and a `content`. An assistant's message may have
    `tool_calls` (each with `id`, `tool` and `arguments`). A tool's message has the `call_id` of the answered call, and
    `is_error` if the call failed. A tool has a `name`, a `description` and `parameters`, a JSON Schema. `round` counts
    the requests of a run from 1. `run` identifies the run, for agents that keep conversations themselves; `case` is the
    id of the case."""

    system: str | None
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    round: int
    case: str
    run: str

    @property
    def prompt(self) -> str:
        """The text of the user's latest message; empty if there is none."""
        return next((message.content for message in reversed(self.messages) if message.role == "user"), "")

    @property
    def results(self) -> tuple[Message, ...]:
        """The results of the agent's latest calls; empty if the latest message is not a result."""
        newest = list(self.messages)
        while newest and newest[-1].role == "tool":
            newest.pop()
        return self.messages[len(newest) :]


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """An agent's answer to one request: text, calls, or both.

    If the answer has calls, the agent is called again with their results. A call without `id` gets an id. `reasoning`
    is shown and never graded. `usage` has the tokens, and `cost_usd` is in US dollars. An agent that executes its calls
    itself returns an `AgentRun` instead."""

    text: str = ""
    calls: Sequence[ToolCall | AgentCall] = ()
    reasoning: str = ""
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    """`truncated` or `refused`; `None` for an answer that ends normally."""
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class AgentCall:
    """A call that an agent has executed itself, with its result.

    `arguments` is a dictionary, or the JSON text that a model wrote. `result` is a text, another value that JSON can
    express, or the exception that the tool raised. It is `None` if the result is unknown. With `is_error`, the result
    is an error. A call without `id` gets an id."""

    tool: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    result: object = None
    is_error: bool = False
    id: str = ""


AgentCalls = AgentCall | ToolCall | AgentAnswer | Sequence[AgentCall | ToolCall]
"""One answer of a model in the run of an agent: a call, several calls, or calls with a text."""


@dataclass(frozen=True, slots=True)
class AgentRun:
    """A whole run of an agent that calls tools itself: its calls with their results, and its final answer.

    Each element of `calls` is one answer of the model, in the order of the run. It is a call, a list of calls that were
    made at once, or an `AgentAnswer` with text, calls and tokens. `usage` has the tokens of the whole run, and replaces
    the usage of its answers. `cost_usd` is in US dollars. `latency_ms` is by default the time that the function took.
    `error` is a text or an exception if the run failed after its calls; the run then has the status `error`.

    >>> import workbench
    >>> def clock_agent(request):
    ...     noon = workbench.AgentCall("get_time", {"timezone": "Europe/Oslo"}, result="It is 12:00.")
    ...     return workbench.AgentRun(calls=[noon], answer="It is noon.")
    >>> report = workbench.evaluate("clock.toml", model=clock_agent, cases=["time-in-bergen"])
    >>> report.passed, report.results[0].trajectory.final_answer
    (True, 'It is noon.')
    """

    calls: Sequence[AgentCalls] = ()
    answer: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None
    error: str | BaseException | None = None


AgentReply = str | ToolCall | Sequence[ToolCall] | AgentAnswer | AgentRun
"""The reply of an agent: a text, one or several calls, a whole answer, or a whole run."""

AgentFunction = Callable[[AgentRequest], Awaitable[AgentReply]] | Callable[[AgentRequest], AgentReply]
"""An agent: a function from a request to a reply, async or not."""


class CallerLoop:
    """The event loop of the Python caller, on which async agents run.

    Create the object on that loop. Agents see the context variables that were set when the object was created."""

    # Agents must run on this loop, because their clients belong to it. The engine has its own loop on another thread.

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._running: set[asyncio.Task[AgentReply]] = set()

    async def run(self, agent: Callable[[], Coroutine[Any, Any, AgentReply]]) -> AgentReply:
        """Run a coroutine on the caller's loop, and return its result on the current loop.

        Cancelling this call cancels the coroutine."""

        async def tracked() -> AgentReply:
            task = asyncio.current_task()
            assert task is not None
            self._running.add(task)
            try:
                return await agent()
            finally:
                self._running.discard(task)

        # Each call gets a copy of the context, because a context cannot be entered twice at the same time.
        context = self._context.copy()
        return await asyncio.wrap_future(context.run(asyncio.run_coroutine_threadsafe, tracked(), self._loop))

    async def wait_for_cancelled(self) -> None:
        """Wait for cancelled agents that are still cleaning up."""
        if self._running:
            await asyncio.wait(self._running)


class FunctionModel:
    """A model whose answers come from a Python function, for one run.

    An async function runs on its caller's loop, and a plain function runs in a thread. If the function raises a
    retryable ModelError, the request is repeated. Any other exception ends the run with an error."""

    seed = None
    notices = ()

    def __init__(self, name: str, function: AgentFunction, *, case: str, run: str, loop: CallerLoop) -> None:
        self.name = name
        self._function = function
        self._case = case
        self._run = run
        self._loop = loop

    async def start(self) -> None:
        """Do nothing, because a function needs no preparation."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return a context without effect, because no limit applies to calls of a function."""
        return nullcontext()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        """Call the function with the request, and yield its answer as the events of a model. Raises ModelError."""
        asked = AgentRequest(request.system, request.messages, request.tools, request.round, self._case, self._run)
        try:
            answer = parse_reply(await self._loop.run(partial(self._reply, asked)))
            events: list[ModelEvent] = []
            if isinstance(answer, AgentAnswer):
                events += _events(answer, request)
        except ModelError:
            raise
        except Exception as error:
            _logger.exception("the agent %s on case %s", self.name, self._case)
            raise ModelError(f"the agent {self.name} raised {type(error).__name__}: {error}") from error
        if isinstance(answer, ExternalRun):
            yield AnswerFinished("answered", run=answer)
            return
        for event in events:
            yield event
        reason = answer.stop_reason or ("tool calls" if answer.calls else "answered")
        yield AnswerFinished(reason, answer.usage, cost_usd=answer.cost_usd)

    async def _reply(self, request: AgentRequest) -> AgentReply:
        reply: Any
        if is_async(self._function):
            reply = self._function(request)
        else:
            # The function runs in a thread. On the caller's loop, it would block all other runs and the caller's own
            # tasks.
            context = copy_context()
            reply = await in_thread(lambda: context.run(self._function, request), name=f"agent {self.name}")
        if inspect.isawaitable(reply):
            reply = await reply
        answer: AgentReply = reply
        return answer


def is_async(function: Callable[..., object]) -> bool:
    """Return whether calling this function or object returns a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def parse_reply(reply: object) -> AgentAnswer | ExternalRun:
    """Convert the reply of a function to an answer or to a whole run.

    Raises TypeError for a value that is not a reply."""
    match reply:
        case AgentRun():
            return external_run_of_agent(reply)
        case AgentAnswer():
            return _checked_answer(reply)
        case str():
            return AgentAnswer(reply)
        case ToolCall() | AgentCall():
            return AgentAnswer(calls=(reply,))
        case list() | tuple():
            return AgentAnswer(calls=reply)
        case _:
            raise TypeError(
                "an agent must answer with a text, a call, a list of calls, an AgentAnswer or an AgentRun, not "
                f"{_kind(reply)}"
            )


def external_run_of_agent(run: AgentRun) -> ExternalRun:
    """Convert the run that an agent reported to rounds with calls and results.

    Raises TypeError for values of wrong types, and for numbers that are negative or not finite."""
    if not isinstance(run.calls, list | tuple):
        raise TypeError(f"the calls of an AgentRun must be a list, not {_kind(run.calls)}")
    answers = [*map(_answer_in_run, run.calls)]
    # Ids are assigned over the whole run, because many agents restart the numbering of calls in each answer.
    named = with_ids([plain_call(call) for answer in answers for call in answer.calls])
    rounds = []
    for answer in answers:
        results, calls = {}, []
        for made in answer.calls:
            call_id, call = next(named)
            calls.append(replace(call, id=call_id))
            if isinstance(made, AgentCall) and (made.result is not None or made.is_error):
                results[call_id] = external_result(made.result, is_error=made.is_error)
        rounds.append(
            ExternalRound(
                *(answer.text, answer.reasoning, tuple(calls), results),
                usage=answer.usage,
                stop_reason=answer.stop_reason,
                cost_usd=answer.cost_usd,
            )
        )
    if run.answer is not None or not rounds:
        rounds.append(ExternalRound(_text(run.answer, "answer of an AgentRun")))
    if run.usage is not None:
        rounds = [replace(each, usage=None) for each in rounds]
        rounds[-1] = replace(rounds[-1], usage=_usage(run.usage, "AgentRun"))
    if run.cost_usd is not None:
        rounds = [replace(each, cost_usd=None) for each in rounds]
        rounds[-1] = replace(rounds[-1], cost_usd=_amount(run.cost_usd, "cost_usd of an AgentRun"))
    if run.latency_ms is not None:
        rounds[-1] = replace(rounds[-1], latency_ms=_amount(run.latency_ms, "latency_ms of an AgentRun"))
    return ExternalRun(tuple(rounds), _error_text(run.error), run.latency_ms)


def _answer_in_run(result: object) -> AgentAnswer:
    match result:
        case AgentAnswer():
            return _checked_answer(result)
        case list() | tuple():
            return AgentAnswer(calls=result)
        case _:
            # Any other value is passed on as a call, so that `plain_call` refuses it and lists the accepted types.
            return AgentAnswer(calls=[result])  # type: ignore[list-item]


def _checked_answer(answer: AgentAnswer) -> AgentAnswer:
    if not isinstance(answer.calls, list | tuple):
        raise TypeError(f"the calls of an AgentAnswer must be a list, not {_kind(answer.calls)}")
    if answer.stop_reason not in (None, *get_args(StopReason)):
        reasons = ", ".join(map(repr, get_args(StopReason)))
        raise TypeError(f"the stop_reason of an AgentAnswer must be one of {reasons}, not {answer.stop_reason!r}")
    if answer.usage is not None:
        _usage(answer.usage, "AgentAnswer")
    if answer.cost_usd is not None:
        _amount(answer.cost_usd, "cost_usd of an AgentAnswer")
    text = _text(answer.text, "text of an AgentAnswer")
    return replace(answer, text=text, reasoning=_text(answer.reasoning, "reasoning of an AgentAnswer"))


def _text(value: object, description: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise TypeError(f"the {description} must be a text, not {_kind(value)}: write it as JSON")


def _error_text(error: object) -> str | None:
    if error is None:
        return None
    if isinstance(error, BaseException):
        return f"{type(error).__name__}: {error}"
    if not isinstance(error, str) or not error:
        raise TypeError(f"the error of an AgentRun must be a text or an exception, not {_kind(error)}")
    return error


def _usage(usage: object, description: str) -> Usage:
    if not isinstance(usage, Usage):
        raise TypeError(f"the usage of an {description} must be a workbench.Usage(input_tokens=…), not {_kind(usage)}")
    for each in fields(usage):
        count = getattr(usage, each.name)
        if not isinstance(count, int) or count < 0:
            raise TypeError(
                f"{each.name} of the usage of an {description} must be a whole number of at least 0, not {count!r}"
            )
    return usage


def _amount(value: object, description: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise TypeError(f"{description} must be a number of at least 0, not {value!r}")
    return value


def external_result(value: object, *, is_error: bool = False) -> ExternalResult:
    """Convert the result of a call, which is a text, an exception or a value for JSON.

    An exception is always an error. Any other result is an error if `is_error` is set.

    Raises TypeError for a value that JSON cannot express."""
    if isinstance(value, BaseException):
        return ExternalResult(str(value) or type(value).__name__, is_error=True)
    if isinstance(value, str):
        return ExternalResult(value, is_error)
    try:
        return ExternalResult(json.dumps(value, ensure_ascii=False, allow_nan=False), is_error)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"a result cannot be written as JSON: {error}") from None


def plain_call(call: object) -> ToolCall:
    """Return a copy of a call whose arguments are plain JSON, with lists in place of tuples.

    Raises TypeError for a value that is not a call, and for arguments that JSON cannot express."""
    if isinstance(call, AgentCall):
        call = tool_call(call.id, call.tool, call.arguments)
    if not isinstance(call, ToolCall):
        raise TypeError(
            f"calls are made with workbench.call(TOOL, …) or workbench.AgentCall(TOOL, …), not {_kind(call)}"
        )
    if not isinstance(call.tool, str):
        raise TypeError(f"the tool of a call must be its name, not {_kind(call.tool)}")
    if not isinstance(call.id, str | None):
        raise TypeError(f"the id of a call of {call.tool} must be a text, not {_kind(call.id)}")
    if not isinstance(call.arguments, Mapping):
        raise TypeError(f"the arguments of {call.tool} must be an object or JSON text, not {_kind(call.arguments)}")
    arguments = {}
    for name, value in call.arguments.items():
        where = f"the argument {name!r} of {call.tool}"
        try:
            arguments[_name(name, f"a call of {call.tool}")] = _json(value, where)
        except RecursionError:
            raise TypeError(f"{where} is nested too deeply, or holds itself") from None
    return replace(call, arguments=arguments)


def tool_call(call_id: str, tool: str, arguments: Mapping[str, Any] | str) -> ToolCall:
    if not isinstance(arguments, str):
        return ToolCall(call_id, tool, arguments)
    read, problem = read_arguments(arguments)
    if problem is not None:
        return ToolCall(call_id, tool, raw=arguments, problem=problem)
    return ToolCall(call_id, tool, read)


def _json(value: object, location: str) -> JsonValue:
    match value:
        case int() if abs(value) >= _INTEGER_LIMIT:
            raise TypeError(f"{location} has more than {_MAX_DIGITS} digits: give it as a text")
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_json(item, location) for item in value]
        case Mapping():
            return {_name(name, location): _json(item, location) for name, item in value.items()}
        case _:
            raise TypeError(
                f"{location} holds {_kind(value)}, which JSON does not have: give it as the tool receives it"
            )


def _name(name: object, location: str) -> str:
    if isinstance(name, str):
        return name
    raise TypeError(f"{location} holds an object with {_kind(name)} as a key, but keys in JSON are strings")


def _kind(value: object) -> str:
    if value is None:
        return "None"
    return f"a value of type {type(value).__name__}"


def with_ids(calls: Iterable[ToolCall], used_ids: Iterable[str] = (), first: int = 1) -> Iterator[tuple[str, ToolCall]]:
    """Yield each call with an id that is unique in its run.

    A call keeps its own id, unless the id is missing, in `used_ids`, or used by an earlier call. Missing ids are made
    from the numbers of the calls in the run. `first` is the number of the first of these calls."""
    used = set(used_ids)
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
    # An agent may restart the numbering of calls in every answer, but APIs require ids that are unique in a
    # conversation.
    taken = set()
    for message in request.messages:
        for call in message.tool_calls:
            taken.add(call.id)
    calls = []
    for made in answer.calls:
        if isinstance(made, AgentCall) and (made.result is not None or made.is_error):
            raise TypeError(f"the call of {made.tool} has a result: return AgentRun(calls=[…], answer=…)")
        calls.append(plain_call(made))
    for call_id, call in with_ids(calls, taken, request.calls_before + 1):
        yield from call_events(call_id, call, request.round)


def call_events(call_id: str, call: ToolCall, number: int) -> Iterator[CallStarted | CallArgumentsDelta | CallFinished]:
    """Yield the events of one call, as a model would emit them."""
    yield CallStarted(number, call_id, call.tool)
    text = call.raw
    if text is None:
        text = json.dumps(dict(call.arguments))
    yield CallArgumentsDelta(call_id, text)
    yield CallFinished(call_id, call.arguments, call.raw, call.problem)
