"""How long a server may take, and how much it may say."""

from __future__ import annotations

from dataclasses import dataclass

MAX_MESSAGE_BYTES = 32 * 1024 * 1024
"""A server that sends a longer message is closed. Legacy SSE has a limit of the SDK's own, 1 MiB."""

MAX_PAGES = 100
"""Pages of a tool listing that are read; a listing that goes on after that is refused."""

MAX_PROGRESS_CHARACTERS = 200
"""A message about progress is cut there."""


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """How long a server may take, in seconds: to start and list its tools, to answer one call, to end once its input is
    closed, and to end after SIGTERM."""

    start_s: float = 30.0
    call_s: float = 60.0
    polite_s: float = 2.0
    terminate_s: float = 1.0

    @property
    def close_s(self) -> float:
        """When closing has failed and the last resort is due: what the polite way may take, and a little more."""
        return self.polite_s + self.terminate_s + 1.5
