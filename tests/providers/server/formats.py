"""Answers in the formats of the three model APIs: Chat Completions, Responses and Messages."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tests.providers.server.script import MARK, Answer

if TYPE_CHECKING:
    from tests.providers.server.server import Server

Api = Literal["openai", "openai-responses", "anthropic"]
APIS: tuple[Api, ...] = ("openai", "openai-responses", "anthropic")


@dataclass(frozen=True)
class Call:
    """A tool call. `arguments` is an object or a JSON text. `namespace` is the tool's namespace in the Responses
    API."""

    tool: str
    arguments: dict[str, Any] | str
    id: str = "call_1"
    namespace: str = ""

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Usage:
    input_tokens: int = 11
    output_tokens: int = 7


def base_url_of(server: Server, api: Api) -> str:
    """Return the `base_url` that a user would write: with `/v1` for OpenAI's APIs, without it for Anthropic's."""
    return server.url if api == "anthropic" else f"{server.url}/v1"


def said(
    api: Api, text: str = "", calls: Sequence[Call] = (), *, usage: Usage | None = Usage(), end: bool = True
) -> Answer:
    """Return a streamed answer. If `end` is false, the marker of a complete answer is missing."""
    return Answer(tuple(blocks_of(api, text, calls, usage=usage, end=end)))


def blocks_of(
    api: Api, text: str = "", calls: Sequence[Call] = (), *, usage: Usage | None = Usage(), end: bool = True
) -> list[bytes]:
    """Return the server-sent events of an answer, one block each."""
    return {"openai": _chat, "openai-responses": _responses, "anthropic": _messages}[api](text, calls, usage, end)


def whole_document(api: Api, text: str = "", calls: Sequence[Call] = ()) -> dict[str, Any]:
    """Return the same answer as one JSON document, for a request without streaming."""
    usage = Usage()
    if api == "openai":
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = [_chat_call(call) for call in calls]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        return {"id": "c1", "object": "chat.completion", "choices": [choice], "usage": _chat_usage(usage)}
    if api == "openai-responses":
        items = [*([_message_item(text)] if text else []), *(_call_item(call) for call in calls)]
        return _response("completed", items, usage)
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    content += [{"type": "tool_use", "id": c.id, "name": c.tool, "input": json.loads(c.text)} for c in calls]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "usage": {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
    }


def error_document(api: Api, message: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    """Return the body of an error response."""
    if api == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def error_event(api: Api, message: str, kind: str = "server_error") -> bytes:
    """Return an error in the middle of a stream."""
    if api == "openai":
        return sse(error_document(api, message, kind))
    if api == "openai-responses":
        return sse({"type": "error", "code": kind, "message": message, "param": None}, "error")
    return sse(error_document(api, message, kind), "error")


def models_document(*names: str) -> dict[str, Any]:
    """Return a list of models that both vendors' clients can read."""
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "type": "model"} for name in names],
        "has_more": False,
    }


def sse(data: Any, event: str | None = None) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {event}\n" if event else "").encode() + f"data: {text}\n\n".encode()


def call_in_pieces(call: Call) -> list[str]:
    """Return the text of a call's arguments in several pieces."""
    if MARK in call.text:
        return [piece for piece in re.split(f"({MARK})", call.text) if piece]
    size = max(1, len(call.text) // 3)
    return [call.text[start : start + size] for start in range(0, len(call.text), size)]


def _words(text: str) -> list[str]:
    return [word for word in text.replace(" ", " \0").split("\0") if word]


def _chat(text: str, calls: Sequence[Call], usage: Usage | None, end: bool) -> list[bytes]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word} for word in _words(text)]
    for index, call in enumerate(calls):
        function = {"name": call.tool, "arguments": ""}
        deltas.append({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
        for piece in call_in_pieces(call):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    blocks = [sse(_chat_chunk([{"index": 0, "delta": delta, "finish_reason": None}])) for delta in deltas]
    if end:
        reason = "tool_calls" if calls else "stop"
        blocks.append(sse(_chat_chunk([{"index": 0, "delta": {}, "finish_reason": reason}])))
        if usage is not None:
            blocks.append(sse({**_chat_chunk([]), "usage": _chat_usage(usage)}))
        blocks.append(sse("[DONE]"))
    return blocks


def _chat_chunk(choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "test-model", "choices": choices}


def _chat_call(call: Call) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": call.text}}


def _chat_usage(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _responses(text: str, calls: Sequence[Call], usage: Usage | None, end: bool) -> list[bytes]:
    events: list[dict[str, Any]] = [{"type": "response.created", "response": _response("in_progress", [], None)}]
    items: list[dict[str, Any]] = []
    if text:
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
        events.append({"type": "response.output_item.added", "output_index": 0, "item": item})
        events += [{"type": "response.output_text.delta", **place, "delta": word} for word in _words(text)]
        events.append({"type": "response.output_text.done", **place, "text": text})
        items.append(_message_item(text))
        events.append({"type": "response.output_item.done", "output_index": 0, "item": items[-1]})
    for call in calls:
        index = len(items)
        done = _call_item(call)
        place = {"item_id": done["id"], "output_index": index}
        item = {**done, "arguments": "", "status": "in_progress"}
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        for piece in call_in_pieces(call):
            events.append({"type": "response.function_call_arguments.delta", **place, "delta": piece})
        events.append({"type": "response.function_call_arguments.done", **place, "arguments": call.text})
        events.append({"type": "response.output_item.done", "output_index": index, "item": done})
        items.append(done)
    if end:
        events.append({"type": "response.completed", "response": _response("completed", items, usage)})
    return [sse({**event, "sequence_number": number}, event["type"]) for number, event in enumerate(events)]


def _response(status: str, items: list[dict[str, Any]], usage: Usage | None) -> dict[str, Any]:
    counted = None
    if usage is not None:
        counted = {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        }
    document = {"id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "test-model"}
    return {**document, "error": None, "incomplete_details": None, "output": items, "usage": counted}


def _message_item(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


def _call_item(call: Call) -> dict[str, Any]:
    ids = {"id": f"fc_{call.id}", "call_id": call.id}
    if call.namespace:
        ids["namespace"] = call.namespace
    return {"type": "function_call", **ids, "name": call.tool, "arguments": call.text, "status": "completed"}


def _messages(text: str, calls: Sequence[Call], usage: Usage | None, end: bool) -> list[bytes]:
    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "test-model"}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None}
    if usage is not None:
        message["usage"] = {"input_tokens": usage.input_tokens, "output_tokens": 1}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    if text:
        block: dict[str, Any] = {"type": "text", "text": ""}
        events.append({"type": "content_block_start", "index": 0, "content_block": block})
        for word in _words(text):
            delta = {"type": "text_delta", "text": word}
            events.append({"type": "content_block_delta", "index": 0, "delta": delta})
        events.append({"type": "content_block_stop", "index": 0})
    for index, call in enumerate(calls, start=1 if text else 0):
        block = {"type": "tool_use", "id": call.id, "name": call.tool, "input": {}}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        for piece in call_in_pieces(call):
            delta = {"type": "input_json_delta", "partial_json": piece}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    if end:
        reason = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
        closing: dict[str, Any] = {"type": "message_delta", "delta": reason}
        if usage is not None:
            closing["usage"] = {"output_tokens": usage.output_tokens}
        events += [closing, {"type": "message_stop"}]
    return [sse(event, event["type"]) for event in events]
