"""Token counts as endpoints give them: perhaps in part, perhaps not as whole numbers, perhaps not at all."""

from __future__ import annotations

from typing import Any

from workbench.trajectory.messages import Usage


class UsageCount:
    """Adds up what an endpoint says about usage. Of a field that comes several times the last value holds."""

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}

    def update(self, usage: object) -> None:
        """Take what a chunk says; nothing when it says nothing."""
        if isinstance(usage, dict):
            for name, value in usage.items():
                if value is not None:
                    self._fields[name] = value

    def chat(self) -> Usage | None:
        """In the words of Chat Completions; DeepSeek counts cached tokens apart."""
        cached = self._number("prompt_tokens_details", "cached_tokens") or self._number("prompt_cache_hit_tokens")
        reasoning = self._number("completion_tokens_details", "reasoning_tokens")
        return self._usage(self._number("prompt_tokens"), self._number("completion_tokens"), cached, reasoning)

    def responses(self) -> Usage | None:
        """In the words of Responses."""
        cached = self._number("input_tokens_details", "cached_tokens")
        reasoning = self._number("output_tokens_details", "reasoning_tokens")
        return self._usage(self._number("input_tokens"), self._number("output_tokens"), cached, reasoning)

    def messages(self) -> Usage | None:
        """In the words of Messages, whose input tokens leave out those written to and read from the cache."""
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
        return int(value) if isinstance(value, int | float) and 0 <= value < 2**63 else 0
