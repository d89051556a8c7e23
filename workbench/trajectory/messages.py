"""The parts of a conversation: messages, tool definitions, tool calls, results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from workbench.dataclasses import dataclass
from workbench.trajectory.typed_json import Tokens

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

Role = Literal["user", "assistant", "tool"]

ResultSource = Literal[
    "step mock", "case mock", "suite mock", "server", "default", "edited", "skipped", "replayed", "reported"
]
"""What answered a tool call. `edited`: a person in place of the tool. `skipped`: a person skipped it. `replayed`: the
run from which this one was forked. `reported`: a tool elsewhere, as the agent or the file says that made the call."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ToolDefinition:
    """A tool as models see it. `server` names the MCP server it comes from, `None` for a tool written in the suite."""

    name: str
    description: str = ""
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    annotations: Mapping[str, JsonValue] = field(default_factory=dict)
    server: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model emitted it. `arguments` is a JSON object. When the model wrote something else, `arguments` is
    empty, `raw` holds the text and `problem` says why it is not an object. Where a deviation was repaired, `raw` is the
    text from which the arguments were read."""

    id: str
    tool: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    raw: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation. `tool_calls` belong to an assistant's message, `call_id` and `is_error` to a
    tool's.

    `provider_state` is what a provider expects back verbatim with its answer, such as signed reasoning. Only that
    provider understands it.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    is_error: bool = False
    provider_state: JsonValue = field(default=None, metadata={"stored": "carry"})


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model request, as the provider counts them.

    `input_tokens` includes those read from a cache (`cached_input_tokens`), `output_tokens` those spent on reasoning
    (`reasoning_tokens`).
    """

    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    cached_input_tokens: Tokens = 0
    reasoning_tokens: Tokens = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )
