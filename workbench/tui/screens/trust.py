"""Asks before a suite starts anything on this machine, showing exactly what it would start."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from workbench.reports.visible import one_line
from workbench.suite.trust import Needs
from workbench.tui.state.spans import EMPTY, Line, Span, wrap
from workbench.tui.widgets.dialogs import ChooseLines, Dialog, Option, ReadLines, keys_line

TrustAnswer = Literal["once", "always", "no"]
ANSWERS: tuple[TrustAnswer, ...] = ("once", "always", "no")


class TrustScreen(Dialog[TrustAnswer]):
    """Once, always or no; Esc is no."""

    TITLE_LINE = "This suite wants to start something"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "answer('once')", show=False),
        Binding("a", "answer('always')", show=False),
        Binding("n", "answer('no')", show=False),
    ]

    def __init__(self, path: Path, needs: Needs) -> None:
        super().__init__(keys_line(("↑↓ Enter", "choose"), ("Esc", "do not run")))
        self._path = path
        self._needs = needs

    def body(self) -> ComposeResult:
        yield ReadLines(lambda width: trust_lines(self._path, self._needs, width), "reading")
        yield ChooseLines(
            [
                Option("once", "until this program ends", key="o"),
                Option("always", "until any of this changes", key="a"),
                Option("no", "do not run this suite", key="n"),
            ],
            cursor=2,
            widget_id="choices",
        )

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#choices").focus()

    @on(ChooseLines.Chosen)
    def _chosen(self, event: ChooseLines.Chosen) -> None:
        self.dismiss(ANSWERS[event.index])

    def action_answer(self, answer: TrustAnswer) -> None:
        """One of the keys."""
        self.dismiss(answer)

    def action_leave(self) -> None:
        self.dismiss("no")


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
