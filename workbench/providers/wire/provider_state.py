"""The provider state of an answer: what a provider expects back verbatim, in its place among the answer's text and
calls.

As JSON it is `{"wire": NAME, "parts": [...]}`, each part one of `{"block": {...}}`, `{"text": "..."}` (perhaps with a
`phase`, and with what was `written` in place of that text) and `{"call": ID}`; a wire ignores the state of another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.dataclasses import dataclass
from workbench.trajectory.messages import JsonValue, Message, ToolCall

Part = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Block:
    """A part that goes back unchanged."""

    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A stretch of an answer's text; `phase` is the Responses API's name for its kind."""

    text: str
    phase: str | None = None


def provider_state(wire: str, parts: list[Part]) -> JsonValue:
    """Returns the state of an answer that consisted of these parts; `None` when text and calls alone suffice."""
    if any(not {"block", "phase", "written"}.isdisjoint(part) for part in parts):
        return {"wire": wire, "parts": [*parts]}
    return None


def text_part(pieces: list[str], written: list[str]) -> Part | None:
    """Returns a stretch of text, `None` for an empty one. `written` is the same with thoughts that are no part of the
    answer."""
    text, whole = "".join(pieces), "".join(written)
    if not whole:
        return None
    return {"text": text} if text == whole else {"text": text, "written": whole}


def parts_of(message: Message, wire: str) -> Iterator[Block | TextPart | ToolCall]:
    """Yields an assistant's message in its original order. Calls are those of the message: where the state no longer
    fits them or the text, its blocks come first."""
    state = message.provider_state
    parts: Any = state.get("parts") if isinstance(state, dict) and state.get("wire") == wire else None
    calls = {call.id: call for call in message.tool_calls}
    if not isinstance(parts, list) or not _fits(parts, message.content, list(calls)):
        blocks = [part for part in parts or () if "block" in part]
        parts = [*blocks, {"text": message.content}, *({"call": call_id} for call_id in calls)]
    for part in parts:
        if "block" in part:
            yield Block(part["block"])
        elif "call" in part:
            yield calls[part["call"]]
        elif (text := part.get("written", part["text"])).strip():
            yield TextPart(text, part.get("phase"))


def _fits(parts: list[Part], content: str, call_ids: list[str]) -> bool:
    text = "".join(part.get("text", "") for part in parts)
    return text == content and [part["call"] for part in parts if "call" in part] == call_ids
