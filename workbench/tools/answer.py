"""The outcome of a tool call: an answer for the model, or an error that is not the model's."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import ValidationError

from workbench.dataclasses import dataclass, json_text
from workbench.startup import late_pattern
from workbench.tools.connection import first_line
from workbench.trajectory.events import JsonValue, ServerOutput

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

OnProgress = Callable[[float, float | None, str | None], None]
"""Called with each progress notice of a tool call: the progress, its total and a message. Must not block; may be called
after the answer."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The text that goes back to the model.

    `is_error` marks a tool error, which the model has to handle; `code` is that of JSON-RPC where the server refused
    the call.
    """

    content: str
    is_error: bool = False
    code: int | None = None

    @property
    def outcome(self) -> Literal["ok", "tool error"]:
        """The outcome of the execution that gave this answer, for the audit log."""
        return "tool error" if self.is_error else "ok"


class ToolsError(Exception):
    """The tools of a run are not available or cannot answer.

    The message names the cause and the way out."""


class ServerError(ToolsError):
    """A tool server could not be started, died, or did not answer in time.

    `output` is the end of its standard error, of a server that a command started."""

    def __init__(self, message: str, output: ServerOutput | None = None) -> None:
        super().__init__(message)
        self.output = output


class UntrustedError(ToolsError):
    """A suite that is not trusted asked for a command or for Python code."""


class PythonReferenceError(ToolsError):
    """A `module:function` that could not be loaded."""


class UnknownToolError(ToolsError):
    """A case names a tool that does not exist."""


# Converts the result of an MCP tool to text, which is all that a model receives.


def answer_of(result: CallToolResult) -> ToolAnswer:
    """Return the content of a result as text.

    Texts are joined by line breaks, everything else is a short placeholder; without text, it is structured content as
    compact JSON."""
    parts = [_text_of(block) for block in result.content]
    has_text = any(block.type == "text" for block in result.content)
    if result.structured_content is not None and not has_text:
        parts.append(_json(result.structured_content))
    return ToolAnswer("\n".join(parts), bool(result.is_error))


def error_of(error: Exception) -> ToolAnswer:
    """Return the tool error for a call that the server refused, or whose result is invalid."""
    from mcp import MCPError

    if isinstance(error, MCPError):
        message = error.message or f"The server refused the call with the code {error.code}."
        return ToolAnswer(message, is_error=True, code=error.code)
    if isinstance(error, ValidationError):
        places = ", ".join(dict.fromkeys(str(found["loc"][0]) for found in error.errors() if found["loc"]))
        return ToolAnswer(f"The tool's answer is not an MCP result: look at {places or 'all of it'}", is_error=True)
    return ToolAnswer(first_line(error), is_error=True)


def _text_of(block: ContentBlock) -> str:
    if block.type == "text":
        return block.text
    if block.type == "image" or block.type == "audio":
        return f"[{block.type} {block.mime_type}, {_size(block.data)} bytes]"
    if block.type == "resource_link":
        return f"[resource {block.uri}]"
    resource = block.resource
    text = getattr(resource, "text", None)
    if isinstance(text, str):
        return text
    return f"[resource {resource.uri}, {_size(getattr(resource, 'blob', ''))} bytes]"


def _json(value: object) -> str:
    try:
        return json_text(value)
    except ValueError:  # NaN and infinity, which JSON lacks but which can arrive
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _size(base64_text: str) -> int:
    """Return how many bytes a base64 text represents."""
    return len(base64_text) * 3 // 4 - base64_text[-2:].count("=")


# Cleans texts of servers: replaces what no text file or request can hold.

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_UNFIT = late_pattern("[\0\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Return the text with � in place of NUL and lone surrogates."""
    return _UNFIT.sub(REPLACEMENT, text)


def clean_json(value: JsonValue) -> JsonValue:
    """Return a value with all its texts clean, the names in its objects included.

    NaN and infinity, which JSON lacks but which can arrive, become null."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return clean_object(value)
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def clean_object(value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return an object cleaned as by `clean_json`."""
    return {clean_text(name): clean_json(item) for name, item in value.items()}
