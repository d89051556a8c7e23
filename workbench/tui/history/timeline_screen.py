"""The screen of one case over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import BindingType

from workbench.history.records import RunRow
from workbench.numerals import counted
from workbench.show.spans import EMPTY, Line, Span
from workbench.show.visible import one_line
from workbench.tui.history.actions import FEATURE
from workbench.tui.history.timeline import Timeline, detail_lines, head_lines, list_message, row_line, timeline_text
from workbench.tui.kit.actions import bindings_for
from workbench.tui.kit.list_screen import MarkingScreen
from workbench.tui.kit.stage import Stage
from workbench.tui.lines.prose import Message

ShowRuns = Callable[["TimelineScreen", Sequence[RunRow]], None]
"""Shows one run of the history, or two side by side."""


class TimelineScreen(MarkingScreen[Timeline, RunRow]):
    """The runs of a case, the newest first."""

    FEATURE = FEATURE
    NAME = "timeline"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(FEATURE.at(NAME))
    AUTO_FOCUS = "#timeline-list"
    MARKED = "space on another run puts both side by side"
    FILTERED_BY = "words of batch, date, model or status"

    def __init__(self, stage: Stage, state: Timeline, show_runs: ShowRuns) -> None:
        super().__init__(stage, state)
        self._show_runs = show_runs

    def _row_line(self, index: int, width: int) -> Line:
        return row_line(self.state, self.state.rows[index], width)

    def _message(self) -> Message:
        return list_message(self.state)

    def _head_lines(self, width: int) -> Sequence[Line]:
        return head_lines(self.state, width)

    def _detail_lines(self, width: int) -> Sequence[Line]:
        run = self.state.selected
        return detail_lines(self.state, run, width) if run is not None else ()

    def _title(self) -> tuple[Line, Sequence[Line]]:
        state = self.state
        left: Line = (Span(" Over time ", "badge"), Span(f" {one_line(state.case_name)}{self._filter_text}"))
        batches = len({run.batch for run in state.runs})
        text = f"{counted(len(state.runs), 'run')} in {batches:,} batch{'' if batches == 1 else 'es'} "
        damaged = f" {counted(state.damaged, 'damaged run')} left out · " if state.damaged else ""
        return left, [(Span(damaged, "warned"), Span(text, "muted")), EMPTY]

    def do_open(self) -> None:
        """Show the run."""
        if self.state.selected is not None:
            self._show_runs(self, [self.state.selected])

    def _take_pair(self, earlier: RunRow, later: RunRow) -> None:
        self._show_runs(self, [earlier, later])

    def do_copy(self) -> None:
        """Copy the displayed runs as Markdown."""
        self.stage.copy(timeline_text(self.state), "the runs shown", self.announce)

    def _refusals(self) -> dict[str, str]:
        run = self.state.selected
        if run is None:
            return dict.fromkeys(("timeline.open", "timeline.mark", "timeline.copy"), "there is no run here")
        if run.figures is None:
            return dict.fromkeys(("timeline.open", "timeline.mark"), "this run never finished: none of it was stored")
        return {}
