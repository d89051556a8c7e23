"""Every sign that the screens draw. Each is one cell wide and needs no variation selector."""

from __future__ import annotations

from workbench.dataclasses import dataclass
from workbench.grading.grade import Status
from workbench.show import signs
from workbench.show.spans import Role


@dataclass(frozen=True)
class Glyphs:
    """Signs by meaning. Each is recognisable without colour."""

    passed: str = signs.STATUS_SIGNS["passed"]
    warned: str = signs.STATUS_SIGNS["warned"]
    failed: str = signs.STATUS_SIGNS["failed"]
    error: str = signs.STATUS_SIGNS["error"]
    skipped: str = signs.STATUS_SIGNS["skipped"]
    stopped: str = signs.STATUS_SIGNS["stopped"]
    not_graded: str = signs.STATUS_SIGNS["not graded"]
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

STATUS_SIGNS: dict[Status, tuple[str, Role]] = {
    "passed": (GLYPHS.passed, "passed"),
    "warned": (GLYPHS.warned, "warned"),
    "failed": (GLYPHS.failed, "failed"),
    "error": (GLYPHS.error, "error"),
    "skipped": (GLYPHS.skipped, "muted"),
    "stopped": (GLYPHS.stopped, "muted"),
    "not graded": (GLYPHS.not_graded, "muted"),
}
"""The sign and role of each status."""
