"""How often, and after what wait, a request that failed for a passing reason is made again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class RetryPolicy:
    """Waits grow from `first_wait_s` by doubling up to `longest_wait_s`, spread by up to a quarter so that runs which
    failed together do not come back together. What the endpoint asks for wins, up to `longest_asked_s`.

    `attempts` counts the first one. `sleep` waits seconds, `spread` gives a number in 0..1.
    """

    attempts: int = 5
    first_wait_s: float = 0.5
    longest_wait_s: float = 8.0
    longest_asked_s: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    spread: Callable[[], float] = random.random

    def wait_s(self, attempt: int, asked_s: float | None) -> float | None:
        """Seconds to wait after the failed attempt of that number (from 1); `None` when it was the last one."""
        if attempt >= self.attempts:
            return None
        if asked_s is not None:
            return min(max(asked_s, 0.0), self.longest_asked_s)
        grown = min(self.first_wait_s * 2.0 ** (attempt - 1), self.longest_wait_s)
        return grown * (1 - 0.25 * self.spread())


DEFAULT_RETRIES = RetryPolicy()
