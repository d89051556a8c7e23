"""OpenAI's Chat Completions API, and the many servers that approximate it: the requests."""

from __future__ import annotations

from typing import Any

from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.model import ModelRequest
from workbench.providers.wire.assembly import CallAssembly
from workbench.providers.wire.chat_answer import WIRE, ChatReader
from workbench.providers.wire.errors import AnswerErrors
from workbench.providers.wire.offer import Offers, arguments_text, body_text, object_schema
from workbench.providers.wire.params import sent_params, whole_seed
from workbench.providers.wire.tool_names import ToolNames
from workbench.trajectory.messages import Message, ToolDefinition

_ABOUT_TOOLS = ("tool_choice", "parallel_tool_calls")
"""Parameters that the API refuses in a request without tools."""


class ChatWire:
    """Chat Completions for one model."""

    path = "/chat/completions"

    def __init__(self, spec: ModelSpec, secrets: Secrets) -> None:
        self._model = spec.model
        self._thoughts_apart = spec.thoughts == "reasoning"
        self._params, self.notices = sent_params(spec, "Chat Completions")
        self._errors = AnswerErrors(spec.name, "Chat Completions", spec.base_url, secrets)
        self._offers = Offers(_tool)
        self._more: dict[str, bool] = {}
        self.seed = whole_seed(self._params)

    def body(self, request: ModelRequest) -> bytes:
        """Returns the request as JSON. Raises ModelError when something in it cannot be written as JSON."""
        offer = self._offers.of(request.tools)
        system = [{"role": "system", "content": request.system}] if request.system else []
        fields = {
            **self._more,
            **{name: value for name, value in self._params.items() if request.tools or name not in _ABOUT_TOOLS},
            "model": self._model,
            "messages": [*system, *(_message(message, offer.names) for message in request.messages)],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return body_text(fields, offer)

    def reader(self, request: ModelRequest) -> ChatReader:
        """Returns a reader for one answer."""
        calls = CallAssembly(request, self._offers.of(request.tools).names)
        return ChatReader(request.round, calls, self._errors, thoughts_apart=self._thoughts_apart)

    def expect_llama_cpp(self) -> None:
        """Have the progress with the prompt be part of the stream."""
        self._more = {"return_progress": True}

    def tool_at(self, request: ModelRequest, error_text: str) -> str | None:
        """Returns the tool that an error complains about."""
        return self._offers.of(request.tools).tool_at(error_text)


def _tool(tool: ToolDefinition, name: str) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    return {"type": "function", "function": {"name": name, **described, "parameters": object_schema(tool.parameters)}}


def _message(message: Message, names: ToolNames) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id or "", "content": message.content}
    if message.role == "user" or not (message.tool_calls or message.provider_state):
        return {"role": message.role, "content": message.content}
    state: Any = (
        message.provider_state
        if isinstance(message.provider_state, dict) and message.provider_state.get("wire") == WIRE
        else {}
    )
    signed = state.get("calls", {})
    calls = [
        {
            **signed.get(call.id, {}),
            "id": call.id,
            "type": "function",
            "function": {"name": names.accepted(call.tool), "arguments": arguments_text(call)},
        }
        for call in message.tool_calls
    ]
    content = message.content or (None if calls else "")
    return {
        "role": "assistant",
        "content": content,
        **({"tool_calls": calls} if calls else {}),
        **state.get("fields", {}),
    }
