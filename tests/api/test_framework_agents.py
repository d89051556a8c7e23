"""Adapters for agents of frameworks: the run that Workbench sees, from recorded messages and from the real packages."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import workbench
from tests.tables import each_row
from workbench import AgentRun, agents
from workbench.providers.function import external_run_of_agent
from workbench.trajectory.external_run import ExternalRun

AI_SDK = json.loads((Path(__file__).parent / "ai_sdk_6_result.json").read_text(encoding="utf-8"))
"""Two steps of `generateText` of the package `ai`, version 6.0.326, as JSON: a failed tool, an unknown one, and a call
with broken JSON among them."""

SUITE = """
format = 1
name = "Weather"
system = "Answer in one word."
tools = [{ name = "get_weather" }]
[[cases]]
name = "Two cities"
messages = [
  { role = "user", content = "Is it cold in Oslo?" },
  { role = "assistant", tool_calls = [{ id = "before", tool = "get_weather", args = { city = "Oslo" } }] },
  { role = "tool", call = "before", content = "3 °C" },
  { role = "assistant", content = "Yes." },
]
user = "Does it rain in Oslo and Bergen?"
response = { contains = "Oslo" }
[[cases.unordered]]
tool = "get_weather"
args = { city = "Oslo" }
[[cases.unordered]]
tool = "get_weather"
args = { city = "Bergen" }
"""
ASKED = "Does it rain in Oslo and Bergen?"

Seen = list[tuple[str, list[tuple[str, object, str | None, bool]]]]
"""The answers of a run: the text, and the tool, arguments, result and error of each call."""

LOOKED: Seen = [
    (
        "Let me look.",
        [
            ("get_weather", {"city": "Oslo"}, '{"rain":"Oslo"}', False),
            ("get_weather", {"city": "Bergen"}, "no such city", True),
        ],
    )
]


def thing(**fields: Any) -> Any:
    return SimpleNamespace(**fields)


def seen(run: ExternalRun) -> Seen:
    answers: Seen = []
    for each in run.rounds:
        calls: list[tuple[str, object, str | None, bool]] = []
        for call in each.calls:
            result = each.results.get(call.id)
            arguments = call.raw if call.problem else dict(call.arguments)
            if result is None:
                calls.append((call.tool, arguments, None, False))
            else:
                calls.append((call.tool, arguments, result.content, result.is_error))
        answers.append((each.text, calls))
    return answers


def pydantic_ai_result(*, version: int) -> Any:
    """Return a result whose first output was invalid. In version 1, a repeated call has its own part."""

    def called(call_id: str, tool: str, args: object) -> Any:
        return thing(part_kind="tool-call", tool_name=tool, args=args, tool_call_id=call_id)

    def returned(call_id: str, content: object) -> Any:
        return thing(part_kind="tool-return", content=content, tool_call_id=call_id)

    def repeated(call_id: str, tool: str, content: object) -> Any:
        if version == 1:
            return thing(part_kind="retry-prompt", tool_name=tool, content=content, tool_call_id=call_id)
        return thing(part_kind="tool-return", content=content, tool_call_id=call_id, outcome="retried")

    def response(*parts: Any) -> Any:
        usage = thing(input_tokens=10, output_tokens=3, cache_read_tokens=4, details={"reasoning_tokens": 1})
        return thing(kind="response", parts=parts, usage=usage, finish_reason="stop")

    def request(*parts: Any) -> Any:
        return thing(kind="request", parts=parts)

    messages = [
        request(thing(part_kind="user-prompt", content=ASKED)),
        response(
            thing(part_kind="text", content="Let me look."),
            called("1", "get_weather", {"city": "Oslo"}),
            called("2", "get_weather", '{"city":"Bergen"}'),
        ),
        request(returned("1", {"rain": "Oslo"}), repeated("2", "get_weather", "no such city")),
        response(
            called("3", "final_result", {"city": 1}),
            thing(part_kind="builtin-tool-call", tool_name="web_search", args=None, tool_call_id="4"),
            thing(part_kind="builtin-tool-return", content="found", tool_call_id="4"),
        ),
        request(repeated("3", "final_result", [{"type": "string_type", "msg": "Input should be a string"}])),
        request(thing(part_kind="retry-prompt", tool_name=None, content="again", tool_call_id="5")),
        response(called("6", "final_result", {"city": "Oslo"})),
    ]  # fmt: skip
    return thing(new_messages=lambda: messages, output={"city": "Oslo"}, _output_tool_name="final_result")


def openai_result() -> Any:
    def called(call_id: str, name: str, arguments: str) -> Any:
        return thing(type="function_call", call_id=call_id, name=name, arguments=arguments)

    def said(**part: str) -> Any:
        return thing(type="message", content=[thing(**part)])

    def output(kind: str, call_id: str, text: str) -> Any:
        return thing(type=kind, raw_item={"call_id": call_id, "output": text})

    def response(*output: Any) -> Any:
        usage = thing(
            input_tokens=10,
            output_tokens=3,
            input_tokens_details=thing(cached_tokens=4),
            output_tokens_details=thing(reasoning_tokens=1),
        )
        return thing(output=output, usage=usage)

    search = thing(type="web_search_call", id="ws", model_dump=lambda **_: {"action": {"query": "rain"}})
    return thing(
        new_items=[
            output("tool_call_output_item", "1", '{"rain":"Oslo"}'),
            output("tool_call_output_item", "2", "An error occurred while running the tool. Please try again."),
            output("handoff_output_item", "3", '{"assistant": "billing"}'),
            thing(type="message_output_item"),
        ],
        raw_responses=[
            response(
                thing(type="reasoning", summary=[thing(text="Both.")]),
                said(type="output_text", text="Let me look."),
                called("1", "get_weather", '{"city":"Oslo"}'),
                called("2", "get_weather", '{"city":"Bergen"}'),
            ),
            response(search, called("3", "transfer_to_billing", "")),
            response(said(type="refusal", refusal="I must not.")),
        ],
        final_output=None,
    )


def langgraph_state(structured: object = None) -> Any:
    def said(content: object, *calls: tuple[str, str, object], wrong: Any = (), reason: str = "stop") -> Any:
        used = {"input_tokens": 10, "output_tokens": 3, "input_token_details": {"cache_read": 4}}
        return thing(
            type="ai",
            id="new",
            content=content,
            tool_calls=[{"id": call_id, "name": name, "args": args} for call_id, name, args in calls],
            invalid_tool_calls=wrong,
            usage_metadata={**used, "output_token_details": {"reasoning": 1}},
            response_metadata={"finish_reason": reason},
        )

    def result(call_id: str, content: str, status: str = "success") -> Any:
        return thing(type="tool", id="new", content=content, tool_call_id=call_id, status=status)

    broken = {"id": "3", "name": "get_weather", "args": '{"ci', "error": "bad JSON"}
    messages = [
        thing(type="human", id="given-0", content=ASKED),
        said("Let me look.", ("1", "get_weather", {"city": "Oslo"}), ("2", "get_weather", {"city": "Bergen"})),
        result("1", '{"rain":"Oslo"}'),
        result("2", "no such city", "error"),
        said([], wrong=[broken]) if structured is None else said("", ("4", "Rain", {"city": "Oslo"})),
        said([{"type": "text", "text": "Rain in "}, "Oslo."], reason="length"),
    ]
    return {"messages": messages, **({} if structured is None else {"structured_response": structured})}


@dataclass
class Rain:
    city: str


@each_row(
    ("run", "then"),
    [
        pytest.param(
            lambda version=version: agents.pydantic_ai_run(pydantic_ai_result(version=version)),
            [("", [("web_search", {}, "found", False)]), ('{"city":"Oslo"}', [])],
            id=f"pydantic-ai {version}",
        )
        for version in (1, 2)
    ]
    + [
        pytest.param(
            lambda: agents.openai_agents_run(openai_result()),
            [
                (
                    "",
                    [
                        ("web_search", {"action": {"query": "rain"}}, None, False),
                        ("transfer_to_billing", {}, '{"assistant": "billing"}', False),
                    ],
                ),
                ("I must not.", []),
            ],
            id="openai-agents",
        ),
        pytest.param(
            lambda: agents.langgraph_run(langgraph_state(), {"given-0"}),
            [("", [("get_weather", '{"ci', None, False)]), ("Rain in Oslo.", [])],
            id="langgraph",
        ),
        pytest.param(
            lambda: agents.langgraph_run(langgraph_state(Rain(city="Oslo"))),
            [("", []), ('{"city":"Oslo"}', [])],
            id="langgraph structured",
        ),
        pytest.param(
            lambda: agents.ai_sdk_run(AI_SDK),
            [
                (
                    "",
                    [
                        ("nope", {}, "Model tried to call unavailable tool 'nope'.", True),
                        ("get_weather", '{"ci', "Invalid input for tool get_weather: JSON parsing failed.", True),
                    ],
                ),
                ("Rain.", []),
            ],
            id="ai-sdk",
        ),
    ],
)  # fmt: skip
def test_messages_of_a_framework_become_the_calls_that_were_made(run: Callable[[], AgentRun], then: Seen) -> None:
    made = external_run_of_agent(run())
    first, *others = seen(made)
    # OpenAI's agents report an error by the text alone.
    assert first[0] == LOOKED[0][0]
    assert [(*call[:2], call[3]) for call in first[1]] == [(*call[:2], call[3]) for call in LOOKED[0][1]]
    assert first[1][0] == LOOKED[0][1][0]
    assert others == then
    assert [each.usage for each in made.rounds] == [workbench.Usage(10, 3, 4, 1)] * len(made.rounds)


@pytest.mark.parametrize("answer", [None, {}, {"text": "Rain."}, {"steps": ["?"]}])
def test_an_answer_of_the_ai_sdk_without_steps_is_refused(folder: Path, answer: object) -> None:
    report = workbench.evaluate("clock.toml", model=agents.ai_sdk(lambda request: answer), cases=["small-talk"])
    assert "has no list of steps: let the program answer with { steps: result.steps }" in (
        report.results[0].error or ""
    )


@pytest.mark.parametrize("is_async", [False, True])
def test_a_program_with_the_ai_sdk_is_asked_by_a_function(folder: Path, is_async: bool) -> None:
    async def answered(request: workbench.AgentRequest) -> object:
        return AI_SDK["steps"]

    Path("s.toml").write_text(SUITE, encoding="utf-8")
    agent = agents.ai_sdk(answered if is_async else lambda request: AI_SDK)
    result = workbench.evaluate("s.toml", model=agent).results[0]
    assert result.trajectory.final_answer == "Rain."
    assert [call.tool for call in result.trajectory.calls] == ["get_weather", "get_weather", "nope", "get_weather"]


# The real packages, in an environment that has them: pip install pydantic-ai-slim openai-agents langgraph.


def of_pydantic_ai(sent: list[Any], **options: Any) -> workbench.Agent:
    pydantic_ai = pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed")
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def model(messages: list[Any], info: Any) -> Any:
        sent.append((messages, info))
        if len(sent) == 1:
            calls = [ToolCallPart("get_weather", {"city": city}) for city in ("Oslo", "Bergen")]
            return ModelResponse([TextPart("Let me look."), *calls])
        return ModelResponse([ToolCallPart("final_result", {"city": 1 if len(sent) == 2 else "Oslo"})])

    agent = pydantic_ai.Agent(FunctionModel(model), output_type=Rain, retries=2, name="weather")

    @agent.tool_plain  # type: ignore[untyped-decorator]
    def get_weather(city: str) -> dict[str, str]:
        if city == "Bergen":
            raise pydantic_ai.ModelRetry("no such city")
        return {"rain": city}

    return agents.pydantic_ai(agent, **options)


def of_openai_agents(sent: list[Any], **options: Any) -> workbench.Agent:
    sdk = pytest.importorskip("agents", reason="openai-agents is not installed")
    from agents.usage import Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    def said(text: str) -> object:
        part = ResponseOutputText(text=text, type="output_text", annotations=[])
        return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[part])

    class Fake(sdk.Model):  # type: ignore[misc, name-defined]
        async def get_response(self, *args: Any, **asked: Any) -> Any:
            sent.append(asked or args)
            output = [said("In Oslo.")]
            if len(sent) == 1:
                output = [said("Let me look.")]
                for city in ("Oslo", "Bergen"):
                    arguments = json.dumps({"city": city})
                    output.append(
                        ResponseFunctionToolCall(
                            type="function_call", name="get_weather", arguments=arguments, call_id=city
                        )
                    )
            usage = Usage(requests=1, input_tokens=10, output_tokens=3, total_tokens=13)
            return sdk.ModelResponse(output=output, usage=usage, response_id=None)

        def stream_response(self, *args: Any, **asked: Any) -> Any:
            raise NotImplementedError

    @sdk.function_tool  # type: ignore[untyped-decorator]
    def get_weather(city: str) -> str:
        if city == "Bergen":
            raise ValueError("no such city")
        return json.dumps({"rain": city}, separators=(",", ":"))

    sdk.set_tracing_disabled(True)
    return agents.openai_agents(sdk.Agent(name="weather", model=Fake(), tools=[get_weather]), **options)


def of_langgraph(sent: list[Any], **options: Any) -> workbench.Agent:
    pytest.importorskip("langgraph", reason="langgraph is not installed")
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    def model(state: Any) -> object:
        sent.append(state["messages"])
        if len(sent) > 1:
            return {"messages": [AIMessage("In Oslo.")]}
        calls = [{"name": "get_weather", "args": {"city": city}, "id": city} for city in ("Oslo", "Bergen")]
        return {"messages": [AIMessage("Let me look.", tool_calls=calls)]}

    @tool  # type: ignore[untyped-decorator]
    def get_weather(city: str) -> dict[str, str]:
        """Weather of a city."""
        if city == "Bergen":
            raise ValueError("no such city")
        return {"rain": city}

    builder = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_node("tools", ToolNode([get_weather], handle_tool_errors=True))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return agents.langgraph(builder.compile(checkpointer=InMemorySaver(), name="weather"), **options)


def one_request() -> Any:
    usage = pytest.importorskip("pydantic_ai.usage", reason="pydantic-ai-slim is not installed")
    return {"usage_limits": usage.UsageLimits(request_limit=1)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "options", "error"),
    [
        (of_pydantic_ai, one_request, "UsageLimitExceeded: "),
        (of_openai_agents, lambda: {"max_turns": 1}, "MaxTurnsExceeded: "),
        (of_langgraph, lambda: {"config": {"recursion_limit": 2}}, "GraphRecursionError: "),
    ],
)
def test_a_limit_of_the_framework_is_an_error_with_the_calls_before(
    folder: Path, make: Callable[..., workbench.Agent], options: Callable[[], Any], error: str
) -> None:
    Path("s.toml").write_text(SUITE, encoding="utf-8")
    result = workbench.evaluate("s.toml", model=make([], **options())).results[0]
    assert result.status == "error"
    assert (result.error or "").startswith(error)
    assert [dict(call.arguments) for call in result.trajectory.calls] == [{"city": "Oslo"}, {"city": "Bergen"}]


@pytest.mark.slow
@pytest.mark.parametrize("make", [of_pydantic_ai, of_openai_agents, of_langgraph])
def test_an_agent_of_the_real_package_is_graded_by_what_it_did(
    folder: Path, make: Callable[..., workbench.Agent]
) -> None:
    """The system prompt and the earlier messages of the case reach its model."""
    Path("s.toml").write_text(SUITE, encoding="utf-8")
    sent: list[Any] = []
    result = workbench.evaluate("s.toml", model=make(sent)).results[0]
    assert (result.model, result.error, result.status) == ("weather", None, "passed")
    oslo, bergen = result.trajectory.calls
    assert oslo.result is not None
    assert bergen.result is not None
    assert json.loads(oslo.result.content) == {"rain": "Oslo"}
    assert (oslo.result.is_error, bergen.result.is_error) == (False, True)
    assert (oslo.result.source, dict(bergen.arguments)) == ("reported", {"city": "Bergen"})
    assert result.trajectory.rounds[0].text == "Let me look."
    for told in ("Answer in one word.", "Is it cold in Oslo?", "3 °C", "before", "Yes.", ASKED):
        assert told in str(sent[0]), told
