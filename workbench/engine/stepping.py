"""A run stepped through by a person: where it is held next, and what is done with it while it is held.

To be used on the engine's loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

from workbench.engine.checkpoint import Command, GoOn, HoldPoint, refusal

Until = Literal["stop", "round", "end"]
"""How far a run goes: to the next place where it can be held, to the next model request, or to its end unless a
breakpoint holds it before."""

WhyBreak = Callable[[HoldPoint], Awaitable[str | None]]
"""Why a breakpoint holds a run at a point; `None` when none does."""


async def no_breakpoint(point: HoldPoint) -> str | None:
    """Nothing breaks anywhere."""
    return None


class Stepper:
    """The checkpoint of one run. `until` is how far it goes at first; every breakpoint on the way holds it too."""

    def __init__(self, until: Until = "end", why_break: WhyBreak = no_breakpoint) -> None:
        self._until: Until = until
        self._why_break = why_break
        self.held: HoldPoint | None = None
        """Where it is held, if it is."""
        self._commands: asyncio.Queue[Command] = asyncio.Queue()

    async def why_hold(self, point: HoldPoint) -> str | None:
        """The breakpoint that holds it, else that it is stepped through."""
        broken = await self._why_break(point)
        if broken is not None:
            return broken
        if self._until == "stop" or (self._until == "round" and point.at == "request"):
            return "step by step"
        return None

    async def next_command(self, point: HoldPoint) -> Command:
        """Wait for what the person says; from then on the run is stepped through, until it is let go."""
        self._until = "stop"
        self.held = point
        try:
            return await self._commands.get()
        finally:
            self.held = None

    def go_on(self, until: Until) -> None:
        """Let the run go on to the next stop, round, or its end; one that is not held goes only so far from now on."""
        self._until = until
        if self.held is not None:
            self.held = None  # a second word before it has gone on must not count for the place after this one
            self._commands.put_nowait(GoOn())

    def do(self, command: Command) -> str | None:
        """Have a command done to the run that is held. Says why not where that is impossible."""
        if self.held is None:
            return "the run is not held"
        why_not = refusal(command, self.held.at)
        if why_not is None:
            self._commands.put_nowait(command)
        return why_not
