"""Lets a person step through a run: decides where it is held next and passes on commands. Use it on the engine's
loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

from workbench.engine.checkpoint import AddMessage, Command, Continue, EditArguments, EditResult, HoldPoint, refusal

Until = Literal["stop", "round", "end"]
"""How far a run continues: to the next place where it can be held, to the next model request, or to its end unless a
breakpoint holds it earlier."""

WhyBreak = Callable[[HoldPoint], Awaitable[str | None]]
"""Returns why a breakpoint holds a run at a point; `None` when none does."""


OnHeld = Callable[[HoldPoint], Awaitable[object]]
"""Is called when a run is held, and again after each change of it."""


async def not_told(point: HoldPoint) -> None:
    """The default of `Stepper`: nobody is told."""


async def no_breakpoint(point: HoldPoint) -> str | None:
    """The default of `Stepper`: no breakpoint holds a run."""
    return None


class Stepper:
    """Controls one run. `until` is how far it runs at first; every breakpoint on the way holds it too."""

    def __init__(self, until: Until = "end", why_break: WhyBreak = no_breakpoint, on_held: OnHeld = not_told) -> None:
        self._until: Until = until
        self._why_break = why_break
        self._on_held = on_held
        self.held: HoldPoint | None = None
        """Where the run is held; `None` while it is not."""
        self._commands: asyncio.Queue[Command] = asyncio.Queue()

    async def why_hold(self, point: HoldPoint) -> str | None:
        """Returns the breakpoint that holds the run, or that it is being stepped through; `None` to let it pass."""
        why = await self._why_break(point)
        if why is None and (self._until == "stop" or (self._until == "round" and point.at == "request")):
            why = "step by step"
        if why is not None:
            self._until = "stop"
        return why

    async def next_command(self, point: HoldPoint) -> Command:
        """Wait for the next command. A held run is stepped through from then on, until it is told to continue."""
        self.held = point
        try:
            await self._on_held(point)
            return await self._commands.get()
        finally:
            self.held = None

    def go_on(self, until: Until, hold: int | None) -> str | None:
        """Let the run continue to the next stop, round, or its end, from the `hold` (`HoldPoint.hold`) that is meant. A
        run that was not seen held is only told how far to continue. Returns why not, when that is impossible."""
        now = self.held.hold if self.held is not None else None
        if hold != now:
            return None if hold is None and until == "stop" else _elsewhere(now)
        self._until = until
        if now is not None:
            self.held = None  # a second command before the run has continued must not apply to the next place
            self._commands.put_nowait(Continue())
        return None

    def do(self, command: Command, hold: int) -> str | None:
        """Carry out a command on the run where it is held, if that is the `hold` that is meant. Returns why not, when
        that is impossible."""
        if self.held is None or self.held.hold != hold:
            return _elsewhere(self.held.hold if self.held is not None else None)
        why_not = refusal(command, self.held.at)
        if why_not is None:
            if not isinstance(command, EditArguments | EditResult | AddMessage):
                self.held = None  # as above: the run continues with this command
            self._commands.put_nowait(command)
        return why_not


def _elsewhere(now: int | None) -> str:
    """Returns why a command does not apply: the run is not held at the expected place."""
    return "the run has continued" if now is None else "the run has moved on to another stop"
