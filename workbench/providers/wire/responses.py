"""OpenAI's Responses API: the requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.model import ModelRequest
from workbench.providers.wire.assembly import CallAssembly
from workbench.providers.wire.errors import AnswerErrors
from workbench.providers.wire.offer import Offers, arguments_text, body_text, object_schema
from workbench.providers.wire.params import sent_params
from workbench.providers.wire.provider_state import Block, TextPart, parts_of
from workbench.providers.wire.responses_answer import WIRE, ResponsesReader
from workbench.providers.wire.tool_names import ToolNames
from workbench.trajectory.messages import Message, ToolDefinition

_RENAMED = {"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}
_LACKING = {
    "audio": "",
    "frequency_penalty": "",
    "function_call": "tool_choice",
    "functions": "",
    "logit_bias": "",
    "logprobs": "top_logprobs",
    "modalities": "",
    "n": "",
    "prediction": "",
    "presence_penalty": "",
    "reasoning_effort": "reasoning = { effort = … }",
    "response_format": "text = { format = … }",
    "seed": "",
    "stop": "",
    "stop_sequences": "",
    "thinking": "reasoning",
    "top_k": "",
    "verbosity": "text = { verbosity = … }",
    "web_search_options": "",
}
"""Parameters of the other two APIs that this one refuses, and what it has instead."""

_ABOUT_TOOLS = ("tool_choice", "parallel_tool_calls")
_ENCRYPTED_REASONING = "reasoning.encrypted_content"


class ResponsesWire:
    """Responses for one model, stateless: the whole conversation is sent with every request."""

    path = "/responses"
    seed: int | None = None

    def __init__(self, spec: ModelSpec, secrets: Secrets) -> None:
        self._model = spec.model
        self._thoughts_apart = spec.thoughts == "reasoning"
        params, self.notices = sent_params(spec, "Responses", lacking=_LACKING, renamed=_RENAMED)
        self._params = {"store": False, **params, **_include(params)}
        self._stored = bool(self._params["store"])
        self._errors = AnswerErrors(spec.name, "Responses", spec.base_url, secrets)
        self._offers = Offers(_tool)

    def body(self, request: ModelRequest) -> bytes:
        """Returns the request as JSON. Raises ModelError when something in it cannot be written as JSON."""
        offer = self._offers.of(request.tools)
        fields = {
            **{name: value for name, value in self._params.items() if request.tools or name not in _ABOUT_TOOLS},
            "model": self._model,
            **({"instructions": request.system} if request.system else {}),
            "input": [item for message in request.messages for item in _items(message, offer.names)],
            "stream": True,
        }
        return body_text(fields, offer)

    def reader(self, request: ModelRequest) -> ResponsesReader:
        """Returns a reader for one answer."""
        calls = CallAssembly(request, self._offers.of(request.tools).names)
        return ResponsesReader(
            request.round, calls, self._errors, stored=self._stored, thoughts_apart=self._thoughts_apart
        )

    def expect_llama_cpp(self) -> None:
        """Change nothing: progress is part of Chat Completions alone."""

    def tool_at(self, request: ModelRequest, error_text: str) -> str | None:
        """Returns the tool that an error complains about."""
        return self._offers.of(request.tools).tool_at(error_text)


def _include(params: dict[str, Any]) -> dict[str, Any]:
    """The API now sends encrypted reasoning with every reasoning item, and refuses the older parameter for it with
    models that do not reason. So it is requested only where the user sets `reasoning`, which such models refuse too."""
    include = params.get("include")
    asked = list(include) if isinstance(include, list) else []
    if params.get("reasoning") and not params.get("store") and _ENCRYPTED_REASONING not in asked:
        asked.append(_ENCRYPTED_REASONING)
    return {"include": asked} if asked else {}


def _tool(tool: ToolDefinition, name: str) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    schema = object_schema(tool.parameters)
    return {"type": "function", "name": name, **described, "parameters": schema, "strict": False}


def _items(message: Message, names: ToolNames) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        yield {"type": "function_call_output", "call_id": message.call_id or "", "output": message.content}
    elif message.role == "user":
        yield {"type": "message", "role": "user", "content": message.content}
    else:
        for part in parts_of(message, WIRE):
            match part:
                case Block(document):
                    yield document
                case TextPart(text, phase):
                    phase_field = {"phase": phase} if phase else {}
                    yield {"type": "message", "role": "assistant", "content": text, **phase_field}
                case call:
                    yield {
                        "type": "function_call",
                        "call_id": call.id,
                        "name": names.accepted(call.tool),
                        "arguments": arguments_text(call),
                    }
