"""All keys, those of the pane one comes from first, and why some do nothing right now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from workbench.tui.actions import ACTIONS, PANE_TITLES, Action, Situation, keys_of
from workbench.tui.glyphs import GLYPHS
from workbench.tui.state.outcome import STATUS_SIGNS
from workbench.tui.state.spans import EMPTY, Line, Role, Span, wrap
from workbench.tui.widgets.dialogs import Dialog, ReadLines, keys_line

KEY_COLUMN = 13

_SIGNS: tuple[tuple[str, Role, str], ...] = (
    (*STATUS_SIGNS["passed"], "passed"),
    (*STATUS_SIGNS["warned"], "warned: good enough to pass, worth a look"),
    (*STATUS_SIGNS["failed"], "failed: the model called tools wrongly"),
    (*STATUS_SIGNS["error"], "error: the infrastructure failed; never counted against the model"),
    (*STATUS_SIGNS["stopped"], "stopped by you: not graded"),
    (GLYPHS.running, "running", "waiting or running"),
    (GLYPHS.missing, "failed", "a call that was expected and never came"),
)


class HelpScreen(Dialog[None]):
    """The help. Any of its own keys, or Esc, closes it."""

    TITLE_LINE = "Keys"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,q,enter", "leave", show=False),
    ]

    def __init__(self, now: Situation) -> None:
        super().__init__(keys_line(("↑↓", "scroll"), ("Esc", "close"), ("Ctrl+P", "all commands")))
        self._now = now

    def body(self) -> ComposeResult:
        yield ReadLines(lambda width: help_lines(self._now, width), "reading")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#reading").focus()


def help_lines(now: Situation, width: int) -> list[Line]:
    """Every action by where it applies, with the reason of those that cannot be taken now."""
    own = [action for action in ACTIONS if action.where == now.pane and action.keys]
    everywhere = [action for action in ACTIONS if action.where == "everywhere" and action.keys]
    moving = [action for action in ACTIONS if action.where == "move"]
    lines: list[Line] = []
    for title, actions in ((f"Here, in {PANE_TITLES[now.pane]}", own), ("Everywhere", everywhere), ("Moving", moving)):
        lines += _section(title, actions, now, width) if actions else []
    lines += [EMPTY, (Span(" Signs", "heading"),)]
    lines += [(Span(f"   {sign}".ljust(KEY_COLUMN + 1), role), Span(meaning)) for sign, role, meaning in _SIGNS]
    return lines


def _section(title: str, actions: Sequence[Action], now: Situation, width: int) -> list[Line]:
    lines: list[Line] = [EMPTY, (Span(f" {title}", "heading"),)]
    for action in actions:
        why = action.why_not(now)
        keys = keys_of(action)
        gap = " " * max(KEY_COLUMN - 2 - cell_len(keys), 1)
        lines.append((Span(f"   {keys}{gap}", "accent" if why is None else "muted"), Span(action.title)))
        if why is not None:
            rows = wrap(f"not now: {why}", max(width - KEY_COLUMN - 3, 10))
            lines += [(Span(" " * (KEY_COLUMN + 1)), Span(row, "muted")) for row in rows]
    return lines
