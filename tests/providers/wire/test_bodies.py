"""Request bodies of all three APIs, checked against the SDKs' own request types."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pydantic import TypeAdapter

from tests.providers.wire.reading import WEATHER, a_request, a_spec, body_of
from tests.tables import each_row
from workbench.config.models import OWN_URLS, Provider
from workbench.providers.http.endpoints import wire_of
from workbench.providers.model import ModelError, ModelRequest
from workbench.providers.wire.messages import NO_TEXT
from workbench.trajectory.events import Message, ToolCall, ToolDefinition

PROVIDERS = tuple(OWN_URLS)

CONVERSATION = (
    Message("user", "Oslo and Rome?"),
    Message(
        "assistant",
        "Looking.",
        (ToolCall("a:1", "get_weather", {"city": "Oslo"}), ToolCall("b", "get_weather", {}, '{"ci', "breaks off")),
    ),
    Message("tool", "Rain", call_id="a:1"),
    Message("tool", "no city", call_id="b", is_error=True),
    Message("user", "Well?"),
    Message("assistant", "Rain."),
    Message("user", "Thanks"),
)


def chat_body(request: ModelRequest, **params: Any) -> dict[str, Any]:
    return body_of(a_spec("openai", **params), request)


def responses_body(request: ModelRequest, **params: Any) -> dict[str, Any]:
    return body_of(a_spec("openai-responses", **params), request)


def messages_body(request: ModelRequest, **params: Any) -> dict[str, Any]:
    return body_of(a_spec("anthropic", **params), request)


# Chat Completions


def test_a_chat_conversation() -> None:
    body = chat_body(a_request(*CONVERSATION, system="Be brief."))
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert body["messages"][:5] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Oslo and Rome?"},
        {
            "role": "assistant",
            "content": "Looking.",
            "tool_calls": [
                {"id": "a:1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}},
                {
                    "id": "b",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": '{"unparsed_arguments":"{\\"ci"}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "a:1", "content": "Rain"},
        {"role": "tool", "tool_call_id": "b", "content": "no city"},
    ]
    assert body["messages"][6] == {"role": "assistant", "content": "Rain."}


def test_calls_without_text_have_null_as_content() -> None:
    body = chat_body(a_request(Message("assistant", "", (ToolCall("a", "get_time"),))))
    assert body["messages"][0]["content"] is None


def test_a_chat_tool() -> None:
    assert chat_body(a_request(tools=[WEATHER]))["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "description": "The weather in a city.",
                "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
            },
        }
    ]


# Responses


def test_a_responses_conversation() -> None:
    body = responses_body(a_request(*CONVERSATION, system="Be brief."))
    assert (body["stream"], body["store"], body["instructions"]) == (True, False, "Be brief.")
    assert "include" not in body
    assert body["input"] == [
        {"type": "message", "role": "user", "content": "Oslo and Rome?"},
        {"type": "message", "role": "assistant", "content": "Looking."},
        {"type": "function_call", "call_id": "a:1", "name": "get_weather", "arguments": '{"city":"Oslo"}'},
        {
            "type": "function_call",
            "call_id": "b",
            "name": "get_weather",
            "arguments": '{"unparsed_arguments":"{\\"ci"}',
        },
        {"type": "function_call_output", "call_id": "a:1", "output": "Rain"},
        {"type": "function_call_output", "call_id": "b", "output": "no city"},
        {"type": "message", "role": "user", "content": "Well?"},
        {"type": "message", "role": "assistant", "content": "Rain."},
        {"type": "message", "role": "user", "content": "Thanks"},
    ]


def test_a_responses_tool_is_flat_and_not_strict() -> None:
    (tool,) = responses_body(a_request(tools=[WEATHER]))["tools"]
    assert (tool["type"], tool["name"], tool["strict"]) == ("function", "get_weather", False)


def test_encrypted_reasoning_is_asked_for_where_reasoning_is_set() -> None:
    wanted = "reasoning.encrypted_content"
    assert responses_body(a_request(), reasoning={"effort": "low"})["include"] == [wanted]
    assert responses_body(a_request(), reasoning={}, include=["x"])["include"] == ["x"]
    assert responses_body(a_request(), reasoning={"effort": "low"}, include=[wanted])["include"] == [wanted]
    assert "include" not in responses_body(a_request(), reasoning={"effort": "low"}, store=True)


# Messages


def test_a_messages_conversation_alternates() -> None:
    body = messages_body(a_request(*CONVERSATION, system="Be brief."))
    assert (body["stream"], body["max_tokens"], body["system"]) == (True, 8192, "Be brief.")
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Oslo and Rome?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "a_1", "name": "get_weather", "input": {"city": "Oslo"}},
                {"type": "tool_use", "id": "b", "name": "get_weather", "input": {"unparsed_arguments": '{"ci'}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a_1", "content": "Rain"},
                {"type": "tool_result", "tool_use_id": "b", "content": "no city", "is_error": True},
                {"type": "text", "text": "Well?"},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Rain."}]},
        {"role": "user", "content": [{"type": "text", "text": "Thanks"}]},
    ]


def test_ids_that_would_become_the_same_stay_apart() -> None:
    calls = (ToolCall("a:1", "get_time"), ToolCall("a_1", "get_time"), ToolCall("a.1", "get_time"))
    results = [Message("tool", str(number), call_id=call.id) for number, call in enumerate(calls)]
    body = messages_body(a_request(Message("user", "hi"), Message("assistant", "", calls), *results))
    assert [block["id"] for block in body["messages"][1]["content"]] == ["a_1_2", "a_1", "a_1_3"]
    assert [block["tool_use_id"] for block in body["messages"][2]["content"]] == ["a_1_2", "a_1", "a_1_3"]


def test_blank_texts_are_left_out_of_messages() -> None:
    call = ToolCall("a", "get_time")
    result = Message("tool", "", call_id="a")
    body = messages_body(a_request(Message("user", "hi"), Message("assistant", " \n", (call,)), result, system="  "))
    assert "system" not in body
    assert [block["type"] for block in body["messages"][1]["content"]] == ["tool_use"]
    assert body["messages"][2]["content"] == [{"type": "tool_result", "tool_use_id": "a"}]


def test_a_failure_without_a_text_gets_one() -> None:
    call = ToolCall("a", "get_time")
    result = Message("tool", " ", call_id="a", is_error=True)
    body = messages_body(a_request(Message("user", "hi"), Message("assistant", "", (call,)), result))
    block = {"type": "tool_result", "tool_use_id": "a", "content": NO_TEXT, "is_error": True}
    assert body["messages"][2]["content"] == [block]


def test_a_message_without_content_is_left_out_and_its_neighbours_join() -> None:
    body = messages_body(a_request(Message("user", "a"), Message("assistant", ""), Message("user", "b")))
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    ]


def test_the_path_of_messages_fits_the_base_url() -> None:
    assert wire_of(a_spec("anthropic", "https://api.example.com")).path == "/v1/messages"
    assert wire_of(a_spec("anthropic", "https://api.example.com/v1/")).path == "/messages"


# All three


@each_row(
    ("schema", "sent"),
    [
        ({}, {"type": "object", "properties": {}}),
        ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        ({"type": None, "$defs": {}}, {"type": "object", "$defs": {}, "properties": {}}),
        ({"type": "object", "properties": {}, "required": []}, {"type": "object", "properties": {}, "required": []}),
        ({"type": "string"}, {"type": "string"}),
    ],
)
def test_schemas_are_those_of_objects(schema: dict[str, Any], sent: dict[str, Any]) -> None:
    request = a_request(tools=[ToolDefinition("t", parameters=schema)])
    assert chat_body(request)["tools"][0]["function"]["parameters"] == sent
    assert responses_body(request)["tools"][0]["parameters"] == sent
    assert messages_body(request)["tools"][0]["input_schema"] == sent


@pytest.mark.parametrize("provider", PROVIDERS)
def test_without_tools_nothing_is_said_about_tools(provider: Provider) -> None:
    body = body_of(a_spec(provider, tool_choice="auto"), a_request(tools=[]))
    assert "tools" not in body
    assert "tool_choice" not in body


@pytest.mark.parametrize("provider", PROVIDERS)
def test_names_go_out_as_the_api_accepts_them(provider: Provider) -> None:
    history = Message("assistant", "", (ToolCall("a", "home.set_tv"), ToolCall("b", "made.up")))
    text = json.dumps(body_of(a_spec(provider), a_request(history, tools=[ToolDefinition("home.set_tv")])))
    assert text.count('"home_set_tv"') == 2
    assert text.count('"made_up"') == 1
    assert "home.set_tv" not in text


@pytest.mark.parametrize("provider", PROVIDERS)
def test_any_text_can_be_sent(provider: Provider) -> None:
    body = wire_of(a_spec(provider)).body(a_request(Message("user", 'é🎉\ud800\x00"')))
    assert body.decode()
    assert 'é🎉\ud800\x00"' in json.dumps(json.loads(body), ensure_ascii=False).replace("\\u0000", "\0").replace(
        '\\"', '"'
    )


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_json_cannot_say_is_an_error(provider: Provider) -> None:
    with pytest.raises(ModelError, match="a request cannot be written as JSON"):
        wire_of(a_spec(provider, temperature=float("nan"))).body(a_request())
    with pytest.raises(ModelError, match="a request cannot be written as JSON"):
        wire_of(a_spec(provider)).body(a_request(tools=[ToolDefinition("t", parameters={"x": float("inf")})]))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_requests_with_other_tools_do_not_mix(provider: Provider) -> None:
    wire = wire_of(a_spec(provider))
    sets = [(ToolDefinition(f"tool{number}"),) for number in range(12)] * 2
    for tools in sets:
        body = json.loads(wire.body(a_request(tools=tools)))
        assert tools[0].name in json.dumps(body["tools"])


def chat_type() -> Any:
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    return CompletionCreateParamsStreaming


def responses_type() -> Any:
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    return ResponseCreateParamsStreaming


def messages_type() -> Any:
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

    return MessageCreateParamsStreaming


@pytest.mark.parametrize(
    ("provider", "request_type"),
    [("openai", chat_type), ("openai-responses", responses_type), ("anthropic", messages_type)],
)
def test_bodies_have_the_shape_of_the_sdk_s_own_requests(provider: Provider, request_type: Callable[[], Any]) -> None:
    body = body_of(a_spec(provider, max_tokens=9), a_request(*CONVERSATION, system="Be brief."))
    known = TypeAdapter(request_type()).validate_python(body)
    assert isinstance(known, Mapping)
    assert known.keys() == body.keys()
