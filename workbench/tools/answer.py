"""What answers a tool call, as the model will read it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The text that goes back to the model; `is_error` marks a tool error, which is the model's to handle."""

    content: str
    is_error: bool = False
