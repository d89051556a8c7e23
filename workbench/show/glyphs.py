"""The signs on the app's screens.

Each sign is one cell wide in all terminals and needs no variation selector."""

from __future__ import annotations

from workbench.dataclasses import dataclass
from workbench.grading.status import Status
from workbench.show.spans import Role


class Sign(str):
    """A sign on the screen, with its meaning for the help.

    `role` is its colour in the help. `action` is the id of the action that opens the details. It is empty if there is
    no such action."""

    meaning: str
    role: Role
    action: str

    def __new__(cls, sign: str, meaning: str, role: Role, action: str = "") -> Sign:
        made = super().__new__(cls, sign)
        made.meaning, made.role, made.action = meaning, role, action
        return made


@dataclass(frozen=True)
class Glyphs:
    """The signs of the app, named by meaning. Users can tell them apart without colours."""

    passed: str = Status.PASSED.sign
    warned: str = Status.WARNED.sign
    failed: str = Status.FAILED.sign
    error: str = Status.ERROR.sign
    skipped: str = Status.SKIPPED.sign
    stopped: str = Status.STOPPED.sign
    not_graded: str = Status.NOT_GRADED.sign
    running: str = Sign("…", "waits or runs", "running")
    never: str = Sign("·", "not run yet", "muted")
    missing: str = Sign("○", "expected, never called", "failed")
    open: str = "▾"
    folded: str = "▸"
    call: str = "→"
    result: str = "←"
    retry: str = "↻"
    held: str = Sign("‖", "held", "warned", "step.held")
    asks: str = Sign("?", "asks you", "warned")
    dot: str = "·"
    down: str = "↓"
    up: str = "↑"
    bar: str = "━"
    rest: str = "─"
    unsaved: str = Sign("●", "unsaved changes", "running", "save")
    disagree: str = Sign("≠", "graders disagree", "warned", "grades")
    thumb: str = "┃"
    user_error: str = Sign("!", "errors of users", "warned")
    audit: str = Sign("◇", "checks too little", "warned", "audit")
    breakpoint: str = Sign("◉", "a breakpoint", "failed", "break.list")
    by_hand: str = Sign("✎", "changed by hand, or since", "muted")
    fork: str = "↳"
    marked: str = "◆"


GLYPHS = Glyphs()
