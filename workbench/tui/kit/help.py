"""The help: all keys, those of the current pane first, and why some are unavailable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from workbench.tui.kit.actions import Action, Situation
from workbench.tui.kit.dialogs import Dialog, ReadLines, keys_line
from workbench.tui.kit.keymap import Keymap
from workbench.tui.kit.painting import keymap_of
from workbench.tui.lines.glyphs import GLYPHS, STATUS_SIGNS
from workbench.tui.lines.prose import behind
from workbench.tui.lines.spans import EMPTY, Line, Role, Span

KEY_COLUMN = 13
LONGEST_KEYS = len("Tab Shift+Tab")
"""The width of the key column in each section."""

_SIGNS: tuple[tuple[str, Role, str], ...] = (
    (*STATUS_SIGNS["passed"], "passed"),
    (*STATUS_SIGNS["warned"], "warned: good enough to pass, worth a look; an issue; a warning of a suite"),
    (*STATUS_SIGNS["failed"], "failed: the model called tools wrongly"),
    (*STATUS_SIGNS["error"], "error: the infrastructure failed, never the model; a suite that cannot run"),
    (*STATUS_SIGNS["stopped"], "stopped by you: not graded"),
    (GLYPHS.running, "running", "waiting or running"),
    (GLYPHS.held, "warned", "held: s steps to the next stop, c continues, H goes there"),
    (GLYPHS.breakpoint, "failed", "a breakpoint holds runs here, B lists them all"),
    (GLYPHS.missing, "failed", "an expected call that was never made"),
    (GLYPHS.disagree, "warned", "graders disagree on whether the run fails; = shows why"),
    (GLYPHS.audit, "warned", "the audit found something: the case checks too little, or can never be met; ! shows it"),
)


Sections = Sequence[tuple[str, Sequence[Action]]]
"""Titles with their actions."""


class HelpScreen(Dialog[None]):
    """The help. It closes on any of its keys or Esc."""

    TITLE_LINE = "Keys"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,q,enter", "leave", "Quit the help", show=False),
    ]

    def __init__(self, sections: Sections, now: Situation) -> None:
        super().__init__(keys_line(("↑↓", "scroll"), ("Esc", "close"), ("Ctrl+P", "all commands")))
        self._sections = sections
        self._now = now

    def body(self) -> ComposeResult:
        yield ReadLines(lambda width: help_lines(self._sections, self._now, width, keymap_of(self)), "reading")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#reading"))


def help_lines(sections: Sections, now: Situation, width: int, keymap: Keymap) -> list[Line]:
    """Return every action with a key, by section, with the reason if it is unavailable."""
    lines: list[Line] = []
    for title, listed in sections:
        actions = [action for action in listed if keymap.keys(action)]
        lines += _section(title, actions, now, width, keymap) if actions else []
    lines += [EMPTY, (Span(" Signs", "heading"),)]
    for sign, role, meaning in _SIGNS:
        lines += _beside(Span(f"   {sign}".ljust(KEY_COLUMN + 1), role), meaning, width)
    return lines


def _section(title: str, actions: Sequence[Action], now: Situation, width: int, keymap: Keymap) -> list[Line]:
    lines: list[Line] = [EMPTY, (Span(f" {title}", "heading"),)]
    longest = max(cell_len(keymap.names(action)) for action in actions)
    column = min(max(KEY_COLUMN - 2, longest + 1), LONGEST_KEYS + 1)
    for action in actions:
        why = action.why_not(now)
        keys = keymap.names(action)
        gap = " " * max(column - cell_len(keys), 1)
        lines += _beside(Span(f"   {keys}{gap}", "accent" if why is None else "muted"), action.title, width)
        if why is not None:
            lines += _beside(Span(" " * (KEY_COLUMN + 1)), f"not now: {why}", width, "muted")
    return lines


def _beside(head: Span, text: str, width: int, role: Role = "text") -> list[Line]:
    return behind((head,), text, role, max(width - cell_len(head.text) - 1, 10))
