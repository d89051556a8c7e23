"""The tokens and the cost that an agent reports for its prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.trajectory.events import Usage

_USAGE_OF_LAST_REQUEST = ("opencode", "vibe")
"""Agents that report the usage of their last request only. The tokens of their runs are unknown."""


class PromptUsage:
    """The tokens and the cost of the prompts since the last `pop`.

    Most agents report tokens in `usage` of the answer to a prompt. Gemini reports them in `_meta`. Qwen reports the
    tokens of each model request in a message with a part of the answer's text. Agents report the cost as a running
    total of the session."""

    def __init__(self, agent: str | None) -> None:
        self._tells_tokens = agent not in _USAGE_OF_LAST_REQUEST
        self._tokens: Usage | None = None
        self._of_requests: Usage | None = None
        self._cost: float | None = None
        self._cost_before = 0.0

    def update(self, update: Mapping[str, Any]) -> None:
        cost = _object(update.get("cost"))
        if isinstance(amount := cost.get("amount"), int | float) and cost.get("currency") == "USD":
            self._cost = max(float(amount), 0.0)
        self._of_requests = _sum(self._of_requests, _tokens(_object(_object(update.get("_meta")).get("usage"))))

    def prompt_ended(self, result: Mapping[str, Any]) -> None:
        quota = _object(_object(_object(result.get("_meta")).get("quota")).get("token_count"))
        told = _tokens(_object(result.get("usage"))) or _tokens(quota) or self._of_requests
        self._of_requests = None
        if self._tells_tokens:
            self._tokens = _sum(self._tokens, told)

    def pop(self) -> tuple[Usage | None, float | None]:
        """Return the tokens and the cost in dollars since the last call; `None` for an unreported figure."""
        tokens, self._tokens = self._tokens, None
        if self._cost is None:
            return tokens, None
        cost, self._cost_before = max(self._cost - self._cost_before, 0.0), self._cost
        return tokens, cost


def _tokens(reported: Mapping[str, Any]) -> Usage | None:
    read, written = (
        _count(reported, f"{what}Tokens") or _count(reported, f"{what}_tokens") for what in ("input", "output")
    )
    cached, cached_anew, thought, total = [
        _count(reported, key) for key in ("cachedReadTokens", "cachedWriteTokens", "thoughtTokens", "totalTokens")
    ]
    if not read + written:
        return None
    # In ACP, input and output exclude cached and thought tokens, but some agents include them.
    if total != read + written:
        read, written = read + cached + cached_anew, written + thought
    return Usage(read, written, cached, thought)


def _count(reported: Mapping[str, Any], key: str) -> int:
    count = reported.get(key)
    return max(count, 0) if isinstance(count, int) else 0


def _sum(first: Usage | None, second: Usage | None) -> Usage | None:
    if first is None or second is None:
        return first or second
    return first + second


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
