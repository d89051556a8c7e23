"""The parts of an answer that a provider wants back are in the next request, word for word and in their place."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.providers.wire.reading import Answer, a_request, a_spec, body_of, data, named, read
from workbench.config.models import Provider
from workbench.trajectory.events import Message, ToolCall

OSLO = '{"city": "Oslo"}'


def said(answer: Answer) -> Message:
    """The answer as the message that goes back, after its carry was written down and read again."""
    calls = tuple(
        ToolCall(call.call_id, tool, call.arguments)
        for call, (tool, _) in zip(answer.finished, answer.calls, strict=True)
    )
    return Message("assistant", answer.text, calls, provider_state=json.loads(json.dumps(answer.end.provider_state)))


def next_request(provider: Provider, message: Message) -> dict[str, Any]:
    return body_of(a_spec(provider), a_request(Message("user", "hi"), message))


THINKING = named(
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "H"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "m"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "Look:"}},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "redacted_thinking", "data": "xyz"}},
    {
        "type": "content_block_start",
        "index": 3,
        "content_block": {"type": "tool_use", "id": "a", "name": "get_weather", "input": {"city": "Oslo"}},
    },
    {"type": "content_block_stop", "index": 3},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
)

BLOCKS: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "Hm", "signature": "sig"},
    {"type": "text", "text": "Look:"},
    {"type": "redacted_thinking", "data": "xyz"},
    {"type": "tool_use", "id": "a", "name": "get_weather", "input": {"city": "Oslo"}},
]


def test_thinking_goes_back_in_its_place() -> None:
    body = next_request("anthropic", said(read("anthropic", THINKING)))
    assert body["messages"][1]["content"] == BLOCKS


def test_thinking_goes_first_when_text_or_calls_are_others_by_now() -> None:
    message = said(read("anthropic", THINKING))
    other = replace(message, content="See:", tool_calls=(ToolCall("b", "get_time"),))
    thinking, _, redacted, _ = BLOCKS
    call = {"type": "tool_use", "id": "b", "name": "get_time", "input": {}}
    assert next_request("anthropic", other)["messages"][1]["content"] == [
        thinking,
        redacted,
        {"type": "text", "text": "See:"},
        call,
    ]


def changed(message: Message) -> Message:
    """The answer after a person has changed its call: the signature is of the reasoning, not of the call."""
    return replace(message, tool_calls=(ToolCall("a", "get_weather", {"city": "Rome"}),))


def test_signed_thinking_goes_back_untouched_beside_changed_arguments() -> None:
    body = next_request("anthropic", changed(said(read("anthropic", THINKING))))
    assert body["messages"][1]["content"] == [*BLOCKS[:3], {**BLOCKS[3], "input": {"city": "Rome"}}]


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "get_weather", "arguments": OSLO}
MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "phase": "commentary",
    "content": [{"type": "output_text", "text": "Look:"}],
}


def items(*given: dict[str, Any]) -> str:
    done = (
        {"type": "response.output_item.done", "output_index": place, "item": item} for place, item in enumerate(given)
    )
    return named(*done, {"type": "response.completed", "response": {"status": "completed"}})


def test_reasoning_items_go_back_in_their_place() -> None:
    second = {**REASONING, "id": "rs_2"}
    answer = read("openai-responses", items(REASONING, MESSAGE, second, CALL))
    call = {**CALL, "arguments": '{"city":"Oslo"}'}
    assert next_request("openai-responses", said(answer))["input"][1:] == [
        REASONING,
        {**MESSAGE, "role": "assistant"},
        second,
        call,
    ]


def test_reasoning_items_go_back_untouched_beside_changed_arguments() -> None:
    body = next_request("openai-responses", changed(said(read("openai-responses", items(REASONING, CALL)))))
    call = {**CALL, "arguments": '{"city":"Rome"}'}
    assert body["input"][1:] == [REASONING, call]


def test_a_reasoning_item_that_the_api_keeps_is_not_sent_when_nothing_is_stored() -> None:
    bare: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None}
    assert read("openai-responses", items(bare, CALL)).end.provider_state is None


def chunks(*deltas: dict[str, Any]) -> str:
    return data(*({"choices": [{"index": 0, "delta": delta}]} for delta in deltas), "[DONE]")


def a_call() -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "get_weather", "arguments": OSLO}}]}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_before_a_call_goes_back_under_its_name(field: str) -> None:
    answer = read("openai", chunks({field: "H"}, {field: "m"}, a_call()))
    assert next_request("openai", said(answer))["messages"][1][field] == "Hm"


def test_the_signature_at_a_call_goes_back_at_it_whatever_a_person_made_of_its_arguments() -> None:
    signature = {"google": {"thought_signature": "AbC="}}
    (call,) = a_call()["tool_calls"]
    message = said(read("openai", chunks({"tool_calls": [{**call, "extra_content": signature}]})))
    for back in (message, changed(message)):
        (sent,) = next_request("openai", back)["messages"][1]["tool_calls"]
        assert (sent["id"], sent["extra_content"]) == ("a", signature)


def test_reasoning_goes_back_with_every_answer_once_there_was_a_call() -> None:
    thought = said(read("openai", chunks({"reasoning_content": "Hm"}, {"content": "Yes"})))
    assert "reasoning_content" not in next_request("openai", thought)["messages"][1]
    called = said(read("openai", chunks({"reasoning_content": "Go"}, a_call())))
    result = Message("tool", "rain", call_id=called.tool_calls[0].id)
    body = body_of(a_spec("openai"), a_request(Message("user", "hi"), called, result, thought))
    assert [message.get("reasoning_content") for message in body["messages"]] == [None, "Go", None, "Hm"]


def test_reasoning_goes_back_untouched_beside_changed_arguments() -> None:
    answer = read("openai", chunks({"reasoning_content": "Hm"}, a_call()))
    back = next_request("openai", changed(said(answer)))["messages"][1]
    assert back["reasoning_content"] == "Hm"
    assert back["tool_calls"][0]["function"]["arguments"] == '{"city":"Rome"}'


def test_details_of_reasoning_go_back_joined_and_with_their_signature() -> None:
    answer = read(
        "openai",
        chunks(
            {"reasoning": "H", "reasoning_details": [{"type": "reasoning.text", "text": "H", "index": 0}]},
            {"reasoning": "m", "reasoning_details": [{"type": "reasoning.text", "text": "m", "index": 0}]},
            {"reasoning_details": [{"type": "reasoning.text", "text": None, "signature": "sig", "index": 0}]},
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x", "index": 1}]},
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "y", "index": 1}]},
            {"content": "Yes"},
        ),
    )
    assert next_request("openai", said(answer))["messages"][1] == {
        "role": "assistant",
        "content": "Yes",
        "reasoning_details": [
            {"type": "reasoning.text", "text": "Hm", "index": 0, "signature": "sig"},
            {"type": "reasoning.encrypted", "data": "x", "index": 1},
            {"type": "reasoning.encrypted", "data": "y", "index": 1},
        ],
    }


@pytest.mark.parametrize(
    ("maker", "stream"),
    [
        ("anthropic", THINKING),
        ("openai-responses", items(REASONING, CALL)),
        ("openai", chunks({"reasoning": "Hm"}, a_call())),
    ],
)
@pytest.mark.parametrize("other", ["openai", "openai-responses", "anthropic"])
def test_another_api_s_carry_is_ignored(maker: Provider, stream: str, other: Provider) -> None:
    message = said(read(maker, stream))
    assert message.provider_state is not None
    if maker != other:
        assert next_request(other, message) == next_request(other, replace(message, provider_state=None))
