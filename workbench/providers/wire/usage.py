"""Reads token counts of endpoints, which may be incomplete, fractional, or missing."""

from __future__ import annotations

from typing import Any

from workbench.limits import MAX_TOKENS
from workbench.trajectory.messages import Usage

_MAX_NUMBER = MAX_TOKENS // 3
"""Three of them are added up."""


class UsageCount:
    """Collects an endpoint's statements on usage. For a field that comes several times the last value counts."""

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}

    def update(self, usage: object) -> None:
        """Take the usage from a chunk, if it has any."""
        if isinstance(usage, dict):
            for name, value in usage.items():
                if value is not None:
                    self._fields[name] = value

    def chat(self) -> Usage | None:
        """Returns the usage with the keys of Chat Completions; DeepSeek counts cached tokens separately."""
        cached = self._number("prompt_tokens_details", "cached_tokens") or self._number("prompt_cache_hit_tokens")
        reasoning = self._number("completion_tokens_details", "reasoning_tokens")
        return self._usage(self._number("prompt_tokens"), self._number("completion_tokens"), cached, reasoning)

    def responses(self) -> Usage | None:
        """Returns the usage with the keys of Responses."""
        cached = self._number("input_tokens_details", "cached_tokens")
        reasoning = self._number("output_tokens_details", "reasoning_tokens")
        return self._usage(self._number("input_tokens"), self._number("output_tokens"), cached, reasoning)

    def messages(self) -> Usage | None:
        """Returns the usage with the keys of Messages, whose input tokens exclude those written to and read from the
        cache."""
        cached = self._number("cache_read_input_tokens")
        total = self._number("input_tokens") + self._number("cache_creation_input_tokens") + cached
        reasoning = self._number("output_tokens_details", "thinking_tokens")
        return self._usage(total, self._number("output_tokens"), cached, reasoning)

    def _usage(self, given: int, made: int, cached: int, reasoning: int) -> Usage | None:
        return Usage(given, made, cached, reasoning) if self._fields else None

    def _number(self, *path: str) -> int:
        value: Any = self._fields
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return int(value) if isinstance(value, int | float) and 0 <= value <= _MAX_NUMBER else 0
