"""Anthropic's Messages API: the requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.model import ModelRequest
from workbench.providers.wire.assembly import CallAssembly
from workbench.providers.wire.errors import AnswerErrors
from workbench.providers.wire.messages_answer import WIRE, MessagesReader
from workbench.providers.wire.offer import Offers, arguments_to_send, body_text, object_schema
from workbench.providers.wire.params import sent_params
from workbench.providers.wire.provider_state import Block, TextPart, parts_of
from workbench.providers.wire.tool_names import ToolNames, accepted_names
from workbench.trajectory.messages import Message, ToolDefinition

DEFAULT_MAX_TOKENS = 8192
"""The API requires a limit; this one suffices for calls and answers, and every model allows it."""

NO_TEXT = "The tool failed without saying why."
"""Replaces the blank text of a failure, which the API refuses."""

_RENAMED = {"max_completion_tokens": "max_tokens", "max_output_tokens": "max_tokens"}
_LACKING = {
    "frequency_penalty": "",
    "function_call": "tool_choice",
    "functions": "",
    "include": "",
    "logit_bias": "",
    "logprobs": "",
    "max_tool_calls": "",
    "modalities": "",
    "n": "",
    "parallel_tool_calls": 'tool_choice = { type = "auto", disable_parallel_tool_use = true }',
    "prediction": "",
    "presence_penalty": "",
    "previous_response_id": "",
    "reasoning": "thinking",
    "reasoning_effort": "thinking or output_config",
    "response_format": "output_config",
    "seed": "",
    "stop": "stop_sequences",
    "store": "",
    "text": "output_config",
    "top_logprobs": "",
    "truncation": "",
    "user": "metadata = { user_id = … }",
    "verbosity": "",
    "web_search_options": "",
}
"""Parameters of the other two APIs that this one refuses, and what it has instead."""


class MessagesWire:
    """Messages for one model."""

    seed: int | None = None

    def __init__(self, spec: ModelSpec, secrets: Secrets) -> None:
        self.path = "/messages" if spec.base_url.rstrip("/").endswith("/v1") else "/v1/messages"
        self._model = spec.model
        self._thoughts_apart = spec.thoughts == "reasoning"
        params, self.notices = sent_params(spec, "Messages", lacking=_LACKING, renamed=_RENAMED)
        self._params = {"max_tokens": DEFAULT_MAX_TOKENS, **params}
        self._errors = AnswerErrors(spec.name, "Messages", spec.base_url, secrets)
        self._offers = Offers(_tool)

    def body(self, request: ModelRequest) -> bytes:
        """Returns the request as JSON. Raises ModelError when something in it cannot be written as JSON."""
        offer = self._offers.of(request.tools)
        fields = {
            **{name: value for name, value in self._params.items() if request.tools or name != "tool_choice"},
            "model": self._model,
            **({"system": request.system} if request.system and request.system.strip() else {}),
            "messages": _messages(request.messages, offer.names),
            "stream": True,
        }
        return body_text(fields, offer)

    def reader(self, request: ModelRequest) -> MessagesReader:
        """Returns a reader for one answer."""
        calls = CallAssembly(request, self._offers.of(request.tools).names)
        return MessagesReader(request.round, calls, self._errors, thoughts_apart=self._thoughts_apart)

    def expect_llama_cpp(self) -> None:
        """Change nothing: progress is part of Chat Completions alone."""

    def tool_at(self, request: ModelRequest, error_text: str) -> str | None:
        """Returns the tool that an error complains about."""
        return self._offers.of(request.tools).tool_at(error_text)


def _tool(tool: ToolDefinition, name: str) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    return {"name": name, **described, "input_schema": object_schema(tool.parameters)}


def _messages(messages: tuple[Message, ...], names: ToolNames) -> list[dict[str, Any]]:
    """Returns the conversation with alternating roles: consecutive messages of one role become one message, with the
    user's text behind results. The API refuses blank texts, failures without a text, and ids with other characters than
    those of tool names."""
    ids = accepted_names(call_id for message in messages for call_id in _call_ids(message))
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = list(_blocks(message, names, ids))
        if blocks and turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    return turns


def _call_ids(message: Message) -> Iterator[str]:
    yield from (call.id for call in message.tool_calls)
    if message.call_id is not None:
        yield message.call_id


def _blocks(message: Message, names: ToolNames, ids: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        text = message.content if message.content.strip() else NO_TEXT if message.is_error else None
        content = {"content": text} if text is not None else {}
        failed = {"is_error": True} if message.is_error else {}
        yield {"type": "tool_result", "tool_use_id": ids.get(message.call_id or "", "unnamed"), **content, **failed}
        return
    for part in parts_of(message, WIRE):
        match part:
            case Block(document):
                yield document
            case TextPart(text):
                yield {"type": "text", "text": text}
            case call:
                arguments = arguments_to_send(call)
                yield {"type": "tool_use", "id": ids[call.id], "name": names.accepted(call.tool), "input": arguments}
