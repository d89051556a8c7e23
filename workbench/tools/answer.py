"""What answers a tool call, as the model will read it, and how far it says it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

OnProgress = Callable[[float, float | None, str | None], None]
"""Told of an execution's progress, its total and a message; must not block, and may be told after the answer."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The text that goes back to the model; `is_error` marks a tool error, which is the model's to handle."""

    content: str
    is_error: bool = False
