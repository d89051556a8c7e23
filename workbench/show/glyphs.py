"""The signs of the app's screens.

Each sign is one cell wide in all terminals and needs no variation selector.
"""

from __future__ import annotations

from workbench.dataclasses import dataclass
from workbench.grading.status import Status


@dataclass(frozen=True)
class Glyphs:
    """The signs by their meanings, each recognisable without colour."""

    passed: str = Status.PASSED.sign
    warned: str = Status.WARNED.sign
    failed: str = Status.FAILED.sign
    error: str = Status.ERROR.sign
    skipped: str = Status.SKIPPED.sign
    stopped: str = Status.STOPPED.sign
    not_graded: str = Status.NOT_GRADED.sign
    running: str = "…"
    never: str = "·"
    missing: str = "○"
    open: str = "▾"
    folded: str = "▸"
    call: str = "→"
    result: str = "←"
    retry: str = "↻"
    held: str = "‖"
    asks: str = "?"
    dot: str = "·"
    down: str = "↓"
    up: str = "↑"
    bar: str = "━"
    rest: str = "─"
    unsaved: str = "●"
    disagree: str = "≠"
    thumb: str = "┃"
    audit: str = "◇"
    breakpoint: str = "◉"
    by_hand: str = "✎"
    fork: str = "↳"
    marked: str = "◆"


GLYPHS = Glyphs()
