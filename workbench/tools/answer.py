"""The outcome of a tool call: an answer for the model, or an error for which the model is not responsible."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import ValidationError

from workbench.dataclasses import dataclass, json_text
from workbench.limits import MAX_MEDIA_BYTES
from workbench.startup import late_pattern
from workbench.tools.connection import first_line
from workbench.trajectory.events import JsonValue, ServerOutput
from workbench.trajectory.media import Media, media_of_base64, size_text

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

OnProgress = Callable[[float, float | None, str | None], None]
"""Callback for each progress notice of a tool call. Its arguments are the progress, the total and the message.

It must not block. It may be called after the answer."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer to a tool call, as text for the model.

    `is_error` marks an error of the tool, which the model can handle. `code` is the JSON-RPC error code if the server
    refused the call. `media` are images and sounds with their data. `content` has a placeholder for each image and
    sound."""

    content: str
    is_error: bool = False
    code: int | None = None
    media: tuple[Media, ...] = ()

    @property
    def outcome(self) -> Literal["ok", "tool error"]:
        """How the execution of the call ended, for the audit log."""
        return "tool error" if self.is_error else "ok"


class ToolsError(Exception):
    """Raised if the tools of a run are not available or cannot answer. The message gives the cause and advice."""


class ServerError(ToolsError):
    """Raised if a tool server could not be started, died, or did not answer in time.

    `output` is the end of the server's standard error, `None` unless a command started the server."""

    def __init__(self, message: str, output: ServerOutput | None = None) -> None:
        super().__init__(message)
        self.output = output


class UntrustedError(ToolsError):
    """Raised if a suite needs a command or Python code, but is not trusted."""


class PythonReferenceError(ToolsError):
    """Raised if a Python function, named as `module:function`, could not be loaded or tried to end the program."""


class UnknownToolError(ToolsError):
    """Raised if a case names a tool that does not exist."""


def answer_of(result: CallToolResult) -> ToolAnswer:
    """Convert the content of an MCP result to text for the model.

    The content blocks are joined by line breaks. An image or sound becomes a placeholder, and is in `media` if models
    accept its type. A link to a resource becomes its name, address and description, and an embedded text stays text. If
    there is no text, structured content becomes compact JSON."""
    parts: list[str] = []
    media: list[Media] = []
    for block in result.content:
        if (found := _media_of(block)) is not None:
            parts.append(found.placeholder)
            media.append(found)
        else:
            parts.append(_text_of(block))
    # Servers should repeat structured content as text. The model must not read both.
    has_text = any(block.type == "text" for block in result.content)
    if result.structured_content is not None and not has_text:
        parts.append(_json(result.structured_content))
    return ToolAnswer("\n".join(parts), bool(result.is_error), media=tuple(media))


def error_of(error: Exception) -> ToolAnswer:
    """Return a tool error for a call that the server refused or answered with an invalid result."""
    # This import is lazy, because `mcp` takes most of a second.
    from mcp import MCPError

    if isinstance(error, MCPError):
        message = error.message or f"The server refused the call with the code {error.code}."
        return ToolAnswer(message, is_error=True, code=error.code)
    if isinstance(error, ValidationError):
        fields = dict.fromkeys(str(problem["loc"][0]) for problem in error.errors() if problem["loc"])
        places = ", ".join(fields) or "all of it"
        return ToolAnswer(f"The tool's answer is not an MCP result: check {places}", is_error=True)
    return ToolAnswer(first_line(error), is_error=True)


def _text_of(block: ContentBlock) -> str:
    if block.type == "text":
        return block.text
    if block.type == "image" or block.type == "audio":
        return _placeholder(block.mime_type or block.type, block.data)
    if block.type == "resource_link":
        link = f"[resource {block.name}: {block.uri}]"
        if block.description:
            return f"{link} {block.description}"
        return link
    resource = block.resource
    if resource_text := getattr(resource, "text", None):
        return str(resource_text)
    blob = getattr(resource, "blob", None)
    if blob is None:
        return ""
    return _placeholder(f"resource {resource.uri}", blob)


def _media_of(block: ContentBlock) -> Media | None:
    """Return the image or sound of a block, `None` for any other block or for a type that models do not accept."""
    if block.type == "image" or block.type == "audio":
        return media_of_base64(block.data)
    if block.type == "resource" and isinstance(blob := getattr(block.resource, "blob", None), str):
        return media_of_base64(blob)
    return None


def _placeholder(media: str, base64_text: str) -> str:
    size = _size(base64_text)
    if size > MAX_MEDIA_BYTES:
        return f"[{media}, {size_text(size)}, not sent: it {MAX_MEDIA_BYTES.exceeded()}]"
    return f"[{media}, {size_text(size)}]"


def _json(value: object) -> str:
    # Servers may send NaN and infinity. They are not JSON, but Python's parser accepts them.
    try:
        return json_text(value)
    except ValueError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _size(base64_text: str) -> int:
    return len(base64_text) * 3 // 4 - base64_text[-2:].count("=")


# Servers may send NUL and lone surrogates. Text files and requests to models cannot contain them.

REPLACEMENT_CHARACTER = "\N{REPLACEMENT CHARACTER}"

_UNFIT = late_pattern("[\0\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Replace each NUL and each lone surrogate in a text by �."""
    return _UNFIT.sub(REPLACEMENT_CHARACTER, text)


def clean_json(value: JsonValue) -> JsonValue:
    """Apply `clean_text` to all texts and keys of a JSON value. NaN and infinity become null."""
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
    """Apply `clean_json` to a JSON object."""
    return {clean_text(name): clean_json(item) for name, item in value.items()}
