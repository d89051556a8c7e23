"""The dialog that asks which of several runs of a cell to show."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from workbench.analysis.comparison import Cell
from workbench.reports.visible import one_line
from workbench.tui.comparing.sources import to_look_at
from workbench.tui.kit.dialogs import ChooseLines, Dialog, Option, keys_line
from workbench.tui.lines.glyphs import STATUS_SIGNS
from workbench.tui.lines.words import duration, score


class RepeatChoiceScreen(Dialog[int]):
    """Asks for a repeat. The deciding one is preselected."""

    TITLE_LINE: ClassVar[str] = "Which run?"
    DEFAULT_CSS = "RepeatChoiceScreen #repeats { max-height: 16; }"

    def __init__(self, cell: Cell) -> None:
        super().__init__(keys_line(("Enter", "show"), ("Esc", "leave")))
        self._repeats = [run.repeat for run in cell.runs]
        self._first = self._repeats.index(to_look_at(cell.runs))
        self._options = [
            Option(
                f"{run.repeat + 1:>3}  {STATUS_SIGNS[run.status][0]} {run.status:<8} {score(run.score):>4}",
                f"{duration(run.latency_ms):>8}  {one_line(run.reason or '')}",
            )
            for run in cell.runs
        ]

    def body(self) -> ComposeResult:
        yield ChooseLines(self._options, self._first, widget_id="repeats")

    def on_mount(self) -> None:
        repeats = self.query_one("#repeats", ChooseLines)
        self.set_focus(repeats)
        self.call_after_refresh(repeats.move_cursor, self._first)

    @on(ChooseLines.Chosen)
    def _chosen(self, event: ChooseLines.Chosen) -> None:
        self.dismiss(self._repeats[event.index])
