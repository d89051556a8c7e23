"""Asks before a suite starts anything on this machine, showing exactly what it would start, all of it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from workbench.reports.visible import one_line
from workbench.suite.trust import Needs
from workbench.tui.glyphs import GLYPHS
from workbench.tui.state.spans import EMPTY, Line, Span, wrap
from workbench.tui.widgets.dialogs import ChooseLines, Dialog, Option, ReadLines, keys_line
from workbench.tui.widgets.line_view import Motion

TrustAnswer = Literal["once", "always", "no"]
ANSWERS: tuple[TrustAnswer, ...] = ("once", "always", "no")


class TrustScreen(Dialog[TrustAnswer]):
    """Once, always or no; Esc is no. A yes is taken only after the end of the text has been on the screen."""

    TITLE_LINE = "This suite wants to start something"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "answer('once')", show=False),
        Binding("a", "answer('always')", show=False),
        Binding("n", "answer('no')", show=False),
    ]

    def __init__(self, path: Path, needs: Needs) -> None:
        super().__init__(keys_line(("PgDn", "read on"), ("Esc", "do not run"), ("↑↓ Enter", "choose")))
        self._path = path
        self._needs = needs

    def body(self) -> ComposeResult:
        yield ReadLines(lambda width: trust_lines(self._path, self._needs, width), "reading")
        yield _Answers(
            [
                Option("once", "until this program ends", key="o"),
                Option("always", "until this changes", key="a"),
                Option("no", "do not run this suite", key="n"),
            ],
            cursor=2,
            widget_id="choices",
        )

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#choices").focus()

    @on(ReadLines.Ended)
    def _read(self) -> None:
        reading = self.query_one("#reading", ReadLines)
        scroll = (("PgUp PgDn", "scroll"),) if reading.last_top else ()
        self.say_keys(keys_line(("↑↓ Enter", "choose"), ("Esc", "do not run"), *scroll))

    @on(ChooseLines.Chosen)
    def _chosen(self, event: ChooseLines.Chosen) -> None:
        self.action_answer(ANSWERS[event.index])

    def action_answer(self, answer: TrustAnswer) -> None:
        """One of the keys."""
        if answer == "no" or self.query_one("#reading", ReadLines).was_at_end:
            self.dismiss(answer)
        else:
            self.say_keys((Span(f" {GLYPHS.warned} Read to the end first: ", "warned"), Span("PgDn", "accent")))

    def action_leave(self) -> None:
        self.dismiss("no")


class _Answers(ChooseLines):
    """The answers have the focus, and page through the text above them."""

    def action_move(self, motion: Motion) -> None:
        if motion in ("page_up", "page_down"):
            self.screen.query_one("#reading", ReadLines).action_move(motion)
        else:
            super().action_move(motion)


def trust_lines(path: Path, needs: Needs, width: int) -> list[Line]:
    """What would happen, word for word."""
    room = max(width - 4, 10)
    lines: list[Line] = [EMPTY]
    lines += [(Span("  "), Span(row, "strong")) for row in wrap(one_line(str(path.absolute())), room)]
    lines += [(Span("  "), Span(row)) for row in wrap("Running it would, on this machine:", room)]
    lines.append(EMPTY)
    for need in needs.lines:
        for at, row in enumerate(wrap(one_line(need), room - 2)):
            lines.append((Span("  - " if at == 0 else "    ", "warned"), Span(row, "warned")))
    lines.append(EMPTY)
    return lines
