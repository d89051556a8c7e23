"""A run stepped through by a person: where it is held next, and what is done with it while it is held.

To be used on the engine's loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

from workbench.engine.checkpoint import AddMessage, Command, Continue, EditArguments, EditResult, HoldPoint, refusal

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
        why = await self._why_break(point)
        if why is None and (self._until == "stop" or (self._until == "round" and point.at == "request")):
            why = "step by step"
        if why is not None:
            self._until = "stop"
        return why

    async def next_command(self, point: HoldPoint) -> Command:
        """Wait for what the person says. A run that is held is stepped through from then on, until it is let go."""
        self.held = point
        try:
            return await self._commands.get()
        finally:
            self.held = None

    def go_on(self, until: Until, hold: int | None) -> str | None:
        """Let the run go on to the next stop, round, or its end, from the `hold` (`HoldPoint.hold`) that is meant; a
        run of which none was seen goes only so far from now on. Says why not where that is impossible."""
        now = self.held.hold if self.held is not None else None
        if hold != now:
            return None if hold is None and until == "stop" else _elsewhere(now)
        self._until = until
        if now is not None:
            self.held = None  # a second word before it has gone on must not count for the place after this one
            self._commands.put_nowait(Continue())
        return None

    def do(self, command: Command, hold: int) -> str | None:
        """Have a command done to the run where it is held, if that is the `hold` that is meant. Says why not where that
        is impossible."""
        if self.held is None or self.held.hold != hold:
            return _elsewhere(self.held.hold if self.held is not None else None)
        why_not = refusal(command, self.held.at)
        if why_not is None:
            if not isinstance(command, EditArguments | EditResult | AddMessage):
                self.held = None  # as above: it goes on with this
            self._commands.put_nowait(command)
        return why_not


def _elsewhere(now: int | None) -> str:
    """Why nothing can be done to a run that is not held where somebody thinks that it is."""
    return "the run has gone on" if now is None else "the run has gone on to another stop"
