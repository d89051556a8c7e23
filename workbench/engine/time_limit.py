"""The time limit of a run. Waiting for an endpoint's turn or for a person does not count."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import TracebackType


class TimeLimit:
    """Raises TimeoutError in the body of the `async with` after the given seconds, not counting time inside
    `suspended`."""

    def __init__(self, seconds: float) -> None:
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> TimeLimit:
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._timeout.__aexit__(kind, error, traceback)

    @asynccontextmanager
    async def suspended(self) -> AsyncGenerator[None]:
        """Time inside this context does not count."""
        deadline = self._timeout.when()
        if deadline is None:  # already suspended by an outer context
            yield
            return
        clock = asyncio.get_running_loop().time
        left = deadline - clock()
        self._timeout.reschedule(None)
        try:
            yield
        finally:
            if not self._timeout.expired():
                self._timeout.reschedule(clock() + left)
