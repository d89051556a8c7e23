"""Breakpoints: where runs are held without being stepped through."""

from __future__ import annotations

from typing import Literal

from workbench.checks.check import Checks
from workbench.dataclasses import dataclass

BreakOn = Literal["tool", "error", "failed-check", "round", "not-read-only"]
"""The kinds of breakpoints, as they are written (`workbench.engine.breakpoint_text`)."""


@dataclass(frozen=True)
class Breakpoint:
    """Holds a run before calls of a `tool` (with `when`: only those whose arguments meet these checks), after results
    that are errors, before calls that fail a check of the case, before the request of a `round`, or before calls of a
    tool that is not marked read-only. With `tool`, the second and third kind apply to that tool alone. A breakpoint
    that is not `enabled` holds nothing."""

    on: BreakOn
    tool: str | None = None
    when: Checks | None = None
    round: int | None = None
    enabled: bool = True

    def same_place(self, other: Breakpoint) -> bool:
        """Returns whether both hold runs at the same places, enabled or not."""
        return (self.on, self.tool, self.when or None, self.round) == (
            other.on,
            other.tool,
            other.when or None,
            other.round,
        )
