"""Converts the result of an MCP tool to text, which is all that a model receives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pydantic import ValidationError

from workbench.tools.answer import ToolAnswer
from workbench.tools.connection import first_line
from workbench.trajectory.typed_json import json_text

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock


def answer_of(result: CallToolResult) -> ToolAnswer:
    """Returns texts joined by line breaks, a short placeholder for everything else, and structured content as compact
    JSON when there is no text."""
    parts = [_text_of(block) for block in result.content]
    has_text = any(block.type == "text" for block in result.content)
    if result.structured_content is not None and not has_text:
        parts.append(_json(result.structured_content))
    return ToolAnswer("\n".join(parts), bool(result.is_error))


def error_of(error: Exception) -> ToolAnswer:
    """Returns the tool error for a call that the server refused, or whose result is invalid."""
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
    """Returns how many bytes a base64 text represents."""
    return len(base64_text) * 3 // 4 - base64_text[-2:].count("=")
