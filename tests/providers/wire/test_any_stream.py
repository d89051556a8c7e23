"""Whatever an endpoint sends is either an answer whose calls are whole and unique, or a ModelError."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.providers.wire.reading import Answer, a_request, a_spec, data, read, read_whole
from tests.strategies import json_values
from workbench.config.models import Provider
from workbench.providers.http.endpoints import wire_of
from workbench.providers.model import ModelError
from workbench.trajectory.events import Message, ToolCall

OSLO = '{"city": "Oslo"}'
_REASONING = {"type": "reasoning", "id": "r", "summary": [{"text": "Hm"}], "encrypted_content": "g", "content": []}
_CALL = {"type": "function_call", "id": "f", "call_id": "a", "name": "get_weather", "arguments": OSLO}

SAMPLES: dict[Provider, list[dict[str, Any]]] = {
    "openai": [
        {"choices": [{"index": 0, "delta": {"reasoning": "Hm", "content": "Hi", "refusal": None}}]},
        {"choices": [{"index": 0, "delta": {"reasoning_details": [{"type": "reasoning.text", "text": "Hm"}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "get_weather"}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": OSLO}}]}}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens_details": {"cached_tokens": 1}}},
    ],
    "openai-responses": [
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"},
        {"type": "response.output_item.added", "output_index": 1, "item": {**_CALL, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": OSLO},
        {"type": "response.output_item.done", "output_index": 1, "item": _CALL},
        {"type": "response.output_item.done", "output_index": 2, "item": _REASONING},
        {"type": "response.completed", "response": {"status": "completed", "output": [_CALL, _REASONING]}},
    ],
    "anthropic": [
        {"type": "message_start", "message": {"usage": {"input_tokens": 1}}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "a", "name": "t"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": OSLO}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    ],
}

WHOLE: dict[Provider, dict[str, Any]] = {
    "openai": {"choices": [{"message": {"content": "Hi", "tool_calls": [{"id": "a", "function": {"name": "t"}}]}}]},
    "openai-responses": {"status": "completed", "output": [_REASONING, _CALL]},
    "anthropic": {"content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}], "stop_reason": "end_turn"},
}


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for key, item in inner for deeper in _paths(item, (*path, key)))]


def _replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copy


@st.composite
def damaged(draw: st.DrawFn, document: Any) -> Any:
    """The document with any value in it replaced by any other."""
    return _replaced(document, draw(st.sampled_from(_paths(document))), draw(json_values))


_streams = st.sampled_from(sorted(SAMPLES)).flatmap(
    lambda provider: st.tuples(
        st.just(provider),
        st.lists(st.sampled_from(SAMPLES[provider]).flatmap(lambda event: st.just(event) | damaged(event)), max_size=8),
        st.sampled_from([SAMPLES[provider][-1:], []]),
    )
)


@given(_streams)
def test_any_stream(stream: tuple[Provider, list[Any], list[Any]]) -> None:
    provider, events, ending = stream
    try:
        answer = read(provider, data(*(json.dumps(event) for event in [*events, *ending])))
    except ModelError as error:
        assert str(error)
    else:
        holds_together(provider, answer)


@given(
    st.sampled_from(sorted(WHOLE)).flatmap(lambda name: st.tuples(st.just(name), damaged(WHOLE[name]) | json_values))
)
def test_any_document(given_document: tuple[Provider, Any]) -> None:
    provider, document = given_document
    try:
        answer = read_whole(provider, document)
    except ModelError as error:
        assert str(error)
    else:
        holds_together(provider, answer)


def holds_together(provider: Provider, answer: Answer) -> None:
    assert len(set(answer.ids)) == len(answer.ids)
    assert len(answer.finished) == len(answer.ids)
    assert answer.end.stop_reason in ("answered", "tool calls", "truncated", "refused")
    assert all(call.problem is None or (call.raw is not None and not call.arguments) for call in answer.finished)
    calls = tuple(ToolCall(call_id, "t") for call_id in answer.ids)
    again = Message("assistant", answer.text, calls, provider_state=answer.end.provider_state)
    assert wire_of(a_spec(provider)).body(a_request(again))
