"""Adapters for agents of other frameworks. An agent runs its own loop, and an adapter reports its calls.

    import workbench

    report = workbench.evaluate("weather.toml", model=workbench.agents.pydantic_ai(agent))

An adapter turns a framework's agent into a `workbench.Agent`. If you call the agent in your own function,
`pydantic_ai_run` and its counterparts turn the framework's result into a `workbench.AgentRun`. Each framework is
imported only when one of its agents runs.

A suite's `system` is added to the agent's own instructions, and a case's earlier messages begin the conversation. The
agent calls its own tools, so the suite's tools are used only for grading."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pydantic_core

from workbench.engine.ai_sdk import step_parts, usage_of
from workbench.providers.function import AgentAnswer, AgentCall, AgentRequest, AgentRun
from workbench.providers.own_agent import Agent
from workbench.trajectory.events import JsonValue, Message, StopReason, Usage

__all__ = [
    "ai_sdk",
    "ai_sdk_run",
    "langgraph",
    "langgraph_run",
    "openai_agents",
    "openai_agents_run",
    "pydantic_ai",
    "pydantic_ai_run",
]


def pydantic_ai(agent: Any, **options: Any) -> Agent:
    """Return a pydantic-ai agent as an agent of Workbench.

    `options`, such as `deps`, are passed to the agent's method `run`."""

    async def ask(request: AgentRequest) -> AgentRun:
        from pydantic_ai import AgentRunError, capture_run_messages

        prompt, history = _prompt_and_history(request)
        asked = {"message_history": _pydantic_ai_messages(history), **options}
        if request.system is not None:
            asked["instructions"] = request.system
        with capture_run_messages() as messages:
            try:
                return pydantic_ai_run(await agent.run(prompt, **asked))
            except AgentRunError as error:
                done = _pydantic_ai_answers(messages[len(asked["message_history"]) :])
                return AgentRun(done, error=_failure(error))

    return Agent(ask, agent.name or "pydantic-ai")


def pydantic_ai_run(result: Any) -> AgentRun:
    """Convert an `AgentRunResult` of pydantic-ai to a run: the calls in its new messages, and its output.

    Output tools such as `final_result` do not count as tool calls. If the framework asked the model to repeat a call,
    the first call counts as an error."""
    answers = _pydantic_ai_answers(result.new_messages(), {getattr(result, "_output_tool_name", None)})
    return AgentRun(_with_output(answers, result.output))


def _pydantic_ai_answers(messages: Iterable[Any], output_tools: Collection[str | None] = ()) -> list[AgentAnswer]:
    parts = [part for message in messages for part in message.parts]
    results = {}
    for part in parts:
        # If the model must repeat a call, version 1 of pydantic-ai adds a separate part to the message, and version 2
        # sets an outcome.
        if part.part_kind == "retry-prompt" and part.tool_name is not None:
            results[part.tool_call_id] = (_text(part.content), True)
        elif part.part_kind.endswith("tool-return"):
            results[part.tool_call_id] = (_text(part.content), getattr(part, "outcome", "success") != "success")
    answers = []
    for message in messages:
        if message.kind != "response":
            continue
        calls, texts = [], {"text": "", "thinking": ""}
        for part in message.parts:
            if part.part_kind in texts:
                texts[part.part_kind] += part.content or ""
            elif part.part_kind.endswith("tool-call"):
                name = part.tool_name
                if name in output_tools or name == "final_result" or name.startswith("final_result_"):
                    continue
                calls.append(_call(part.tool_call_id, name, part.args, results))
        usage = _usage(
            message.usage.input_tokens,
            message.usage.output_tokens,
            message.usage.cache_read_tokens,
            message.usage.details.get("reasoning_tokens"),
        )
        stopped = _STOPS.get(getattr(message, "finish_reason", None) or "")
        answers.append(AgentAnswer(texts["text"], calls, texts["thinking"], usage, stopped))
    return answers


def _pydantic_ai_messages(messages: Iterable[Message]) -> list[Any]:
    from pydantic_ai import messages as kinds

    written: list[Any] = []
    names: dict[str, str] = {}
    for message in messages:
        if message.role == "user":
            written.append(kinds.ModelRequest([kinds.UserPromptPart(message.content)]))
        elif message.role == "tool":
            call_id = message.call_id or ""
            written.append(kinds.ModelRequest([kinds.ToolReturnPart(names[call_id], message.content, call_id)]))
        else:
            parts: list[Any] = [kinds.TextPart(message.content)] if message.content else []
            for call in message.tool_calls:
                names[call.id] = call.tool
                parts.append(kinds.ToolCallPart(call.tool, dict(call.arguments), call.id))
            written.append(kinds.ModelResponse(parts))
    return written


def openai_agents(agent: Any, **options: Any) -> Agent:
    """Return an agent of OpenAI's Agents SDK as an agent of Workbench.

    `options`, such as `context`, are passed to `Runner.run`."""

    async def ask(request: AgentRequest) -> AgentRun:
        from agents import AgentsException, Runner

        asked = _openai_items(request.messages)
        if request.system is not None:
            asked.insert(0, {"role": "system", "content": request.system})
        try:
            return openai_agents_run(await Runner.run(agent, asked, **options))
        except AgentsException as error:
            if error.run_data is None:
                raise
            return AgentRun(_openai_answers(error.run_data), error=_failure(error))

    return Agent(ask, agent.name or "openai-agents")


def openai_agents_run(result: Any) -> AgentRun:
    """Convert a `RunResult` of OpenAI's Agents SDK to a run: the calls in its answers, and its final output.

    A handoff counts as a call of its tool, such as `transfer_to_billing`."""
    return AgentRun(_with_output(_openai_answers(result), result.final_output))


# The SDK marks the error of a tool only by its default text. A custom `failure_error_function` leaves no mark.
_OPENAI_FAILURE = "An error occurred while "


def _openai_answers(result: Any) -> list[AgentAnswer]:
    results = {}
    for item in result.new_items:
        if item.type in ("tool_call_output_item", "handoff_output_item"):
            raw = item.raw_item
            text = _text(getattr(item, "output", None) or _of(raw, "output"))
            results[_of(raw, "call_id")] = (text, text.startswith(_OPENAI_FAILURE))
    answers = []
    for response in result.raw_responses:
        calls, texts, thoughts = [], [], []
        stopped: StopReason | None = None
        for item in response.output:
            if item.type == "message":
                for part in item.content:
                    if part.type == "refusal":
                        stopped = "refused"
                    texts.append(part.refusal if part.type == "refusal" else part.text)
            elif item.type == "reasoning":
                thoughts += [part.text for part in item.summary]
            elif item.type in ("function_call", "mcp_call"):
                calls.append(_call(_of(item, "call_id") or item.id, item.name, item.arguments, results))
            elif item.type.endswith("_call"):
                # OpenAI runs these tools itself, for example `web_search`.
                written = item.model_dump(mode="json", exclude={"id", "type", "status"}, exclude_none=True)
                calls.append(_call(item.id, item.type.removesuffix("_call"), written, results))
        used = response.usage
        usage = _usage(
            used.input_tokens,
            used.output_tokens,
            used.input_tokens_details.cached_tokens,
            used.output_tokens_details.reasoning_tokens,
        )
        answers.append(AgentAnswer("".join(texts), calls, "\n\n".join(thoughts), usage, stopped))
    return answers


def _openai_items(messages: Iterable[Message]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "tool":
            items.append({"type": "function_call_output", "call_id": message.call_id, "output": message.content})
            continue
        if message.content:
            items.append({"role": message.role, "content": message.content})
        for call in message.tool_calls:
            arguments = _text(dict(call.arguments))
            items.append({"type": "function_call", "call_id": call.id, "name": call.tool, "arguments": arguments})
    return items


def langgraph(graph: Any, **options: Any) -> Agent:
    """Return a LangGraph graph as an agent of Workbench.

    The graph's state must have `messages`. An uncompiled graph is compiled. `options`, such as `context` and `config`,
    are passed to its method `astream`. If the graph has a checkpointer, each request gets its own thread, unless
    `config` names a thread."""
    if not hasattr(graph, "astream"):
        graph = graph.compile()

    async def ask(request: AgentRequest) -> AgentRun:
        from langgraph.errors import GraphRecursionError

        thread = f"{request.run}-{request.round}"
        given = _langchain_messages(request, thread)
        config = dict(options.get("config") or {})
        config["configurable"] = {"thread_id": thread, **config.get("configurable", {})}
        ids = {message["id"] for message in given}
        state: Mapping[str, Any] = {"messages": ()}
        try:
            asked = {**options, "config": config, "stream_mode": "values"}
            async for newest in graph.astream({"messages": given}, **asked):
                state = newest
        except GraphRecursionError as error:
            return replace(langgraph_run(state, ids), error=_failure(error))
        return langgraph_run(state, ids)

    return Agent(ask, getattr(graph, "name", None) or "langgraph")


def langgraph_run(state: Mapping[str, Any], given: Collection[str] = ()) -> AgentRun:
    """Convert the final state of a graph to a run: the calls in its `messages`, and its last answer.

    Messages whose id is in `given` are left out, because they precede the run. A `structured_response` in the state is
    the answer. The call by which the model submitted it does not count as a tool call."""
    messages = [message for message in state["messages"] if message.id not in given]
    structured = state.get("structured_response")
    results = {}
    for message in messages:
        if message.type == "tool":
            results[message.tool_call_id] = (_text(message.content), message.status == "error")
    answers = []
    for message in messages:
        if message.type != "ai":
            continue
        calls = []
        for call in (*message.tool_calls, *message.invalid_tool_calls):
            if structured is None or call["name"] != type(structured).__name__:
                calls.append(_call(call["id"], call["name"], call["args"], results))
        used = message.usage_metadata or {}
        usage = _usage(
            used.get("input_tokens"),
            used.get("output_tokens"),
            used.get("input_token_details", {}).get("cache_read"),
            used.get("output_token_details", {}).get("reasoning"),
        )
        metadata = message.response_metadata
        stopped = _STOPS.get(metadata.get("finish_reason") or metadata.get("stop_reason") or "")
        answers.append(AgentAnswer(_content_text(message.content), calls, usage=usage, stop_reason=stopped))
    return AgentRun(_with_output(answers, structured))


def _langchain_messages(request: AgentRequest, thread: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    if request.system is not None:
        messages.append({"role": "system", "content": request.system})
    for message in request.messages:
        entry: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.role == "tool":
            entry |= {"tool_call_id": message.call_id, "status": "error" if message.is_error else "success"}
        elif message.tool_calls:
            entry["tool_calls"] = [
                {"type": "tool_call", "id": call.id, "name": call.tool, "args": dict(call.arguments)}
                for call in message.tool_calls
            ]
        messages.append(entry)
    return [{**message, "id": f"{thread}-{number}"} for number, message in enumerate(messages)]


def ai_sdk(function: Callable[[AgentRequest], Any]) -> Agent:
    """Return a function as an agent of Workbench, for an agent in a program with Vercel's AI SDK.

    The function sends a request to the program, and returns the parsed JSON of its answer. The function may be async.
    The answer is `{ steps: result.steps }`, in which `result` is the result of `generateText` or of an agent's
    `generate`.

    >>> import json, urllib.request, workbench
    >>> @workbench.agents.ai_sdk
    ... def agent(request):
    ...     body = json.dumps({"prompt": request.prompt}).encode()
    ...     with urllib.request.urlopen("http://localhost:3000/agent", body) as answer:
    ...         return json.load(answer)
    """

    async def converted(answer: Awaitable[Any]) -> AgentRun:
        return ai_sdk_run(await answer)

    def ask(request: AgentRequest) -> Any:
        answer = function(request)
        return converted(answer) if isinstance(answer, Awaitable) else ai_sdk_run(answer)

    return Agent(ask, getattr(function, "__name__", "ai-sdk"))


def ai_sdk_run(result: Any) -> AgentRun:
    """Convert a result of the AI SDK, read from JSON, to a run.

    The result is an object with `steps`, or the list of steps itself. Raises TypeError for anything else."""
    steps = result.get("steps") if isinstance(result, Mapping) else result
    if not isinstance(steps, list) or not all(isinstance(step, Mapping) for step in steps):
        raise TypeError("the answer has no list of steps: let the program answer with { steps: result.steps }")
    answers = []
    for step in steps:
        parts = step_parts(step)
        results = {}
        for part in parts:
            if part["type"] == "tool-result":
                results[part["toolCallId"]] = (_text(_first(part, "output", "result")), False)
            elif part["type"] == "tool-error":
                results[part["toolCallId"]] = (_ai_sdk_error(part, step), True)
        calls = []
        for part in parts:
            if part["type"] == "tool-call":
                calls.append(_call(part["toolCallId"], part["toolName"], _first(part, "input", "args"), results))
        text = "".join(part["text"] for part in parts if part["type"] == "text")
        thoughts = "".join(part["text"] for part in parts if part["type"] == "reasoning")
        used = usage_of(step.get("usage"))
        usage = Usage(**used) if used else None
        answers.append(AgentAnswer(text, calls, thoughts, usage, _STOPS.get(step.get("finishReason") or "")))
    return AgentRun(answers)


def _ai_sdk_error(part: Mapping[str, Any], step: Mapping[str, Any]) -> str:
    """Return the text of a tool's error.

    In JSON, a JavaScript `Error` is an empty object. The text is then taken from the message to the model."""
    if isinstance(part["error"], str):
        return part["error"]
    for message in step.get("response", {}).get("messages", ()):
        if message["role"] != "tool":
            continue
        for answered in message["content"]:
            if answered.get("toolCallId") == part["toolCallId"]:
                return _text(answered["output"].get("value"))
    return _text(part["error"])


# The following constants and functions serve the adapters of all frameworks.

_STOPS: Mapping[str, StopReason] = {
    "length": "truncated",
    "max_tokens": "truncated",
    "content_filter": "refused",
    "content-filter": "refused",
    "refusal": "refused",
}
"""The stop reasons of answers that were cut off or refused, by the words that the frameworks use for them."""


def _prompt_and_history(request: AgentRequest) -> tuple[str | None, Sequence[Message]]:
    if request.messages and request.messages[-1].role == "user":
        return request.messages[-1].content, request.messages[:-1]
    return None, request.messages


def _call(call_id: str | None, tool: str, arguments: Any, results: Mapping[Any, tuple[str, bool]]) -> AgentCall:
    result, is_error = results.get(call_id, (None, False))
    if arguments is None or arguments == "":
        arguments = {}
    if not isinstance(arguments, str | Mapping):
        arguments = _text(arguments)  # graded as arguments that are no object
    return AgentCall(tool, arguments, result, is_error, call_id or "")


def _usage(
    input_tokens: int | None, output_tokens: int | None, cached: int | None, reasoning_tokens: int | None
) -> Usage | None:
    if input_tokens is None and output_tokens is None:
        return None
    return Usage(input_tokens or 0, output_tokens or 0, cached or 0, reasoning_tokens or 0)


def _with_output(answers: Sequence[AgentAnswer], output: object) -> list[AgentAnswer]:
    """Return the answers with the agent's output as the text of the last answer.

    An output of `None` leaves the answers unchanged, because the text of the last answer is then the output."""
    if output is None:
        return list(answers)
    if answers and not answers[-1].calls:
        return [*answers[:-1], replace(answers[-1], text=_text(output))]
    return [*answers, AgentAnswer(_text(output))]


def _text(value: object) -> str:
    """Return a text unchanged, and any other value as JSON. The value may have Pydantic models and data classes."""
    if isinstance(value, str):
        return value
    return pydantic_core.to_json(value, fallback=str).decode()


def _content_text(content: object) -> str:
    """Return the text in the content of a LangChain message, which is a text or a list of blocks."""
    if not isinstance(content, list):
        return _text(content)
    texts = []
    for block in content:
        if isinstance(block, str):
            texts.append(block)
        elif block.get("type") == "text":
            texts.append(block["text"])
    return "".join(texts)


def _of(raw: Any, name: str) -> Any:
    return raw.get(name) if isinstance(raw, Mapping) else getattr(raw, name, None)


def _first(part: Mapping[str, JsonValue], *names: str) -> Any:
    """Return the value of the first of these keys that an object has; `None` if it has none of the keys.

    Versions of the SDK use different names for a field."""
    return next((part[name] for name in names if name in part), None)


def _failure(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
