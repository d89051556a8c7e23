"""Decides whether and after what wait a request that failed for a temporary reason is retried."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from workbench.dataclasses import dataclass


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential backoff. Waits double from `first_wait_s` up to `longest_wait_s`, each spread by up to a quarter so
    that runs that failed together do not retry together. A wait that the endpoint asks for takes precedence, up to
    `longest_asked_s`. `attempts` includes the first one. `sleep` waits seconds, `spread` returns a number in 0..1."""

    attempts: int = 5
    first_wait_s: float = 0.5
    longest_wait_s: float = 8.0
    longest_asked_s: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    spread: Callable[[], float] = random.random

    def wait_s(self, attempt: int, asked_s: float | None) -> float | None:
        """Returns the seconds to wait after failed attempt number `attempt` (from 1); `None` when it was the last."""
        if attempt >= self.attempts:
            return None
        if asked_s is not None:
            return min(max(asked_s, 0.0), self.longest_asked_s)
        grown = min(self.first_wait_s * 2.0 ** (attempt - 1), self.longest_wait_s)
        return grown * (1 - 0.25 * self.spread())


DEFAULT_RETRIES = RetryPolicy()
