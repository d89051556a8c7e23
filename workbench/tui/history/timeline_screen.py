"""The screen of one case over time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.history.records import RunRow
from workbench.numerals import counted
from workbench.show.spans import EMPTY, Line, Message, Span
from workbench.show.visible import one_line
from workbench.tui.history.stored_screens import file_of, runs_screen, show_stored
from workbench.tui.history.timeline import Timeline, detail_lines, head_lines, list_message, row_line, timeline_text
from workbench.tui.kit.actions import action
from workbench.tui.kit.list_screen import MarkingScreen
from workbench.tui.kit.stage import in_background
from workbench.tui.run_book.stored import read_case

if TYPE_CHECKING:
    from workbench.tui.kit.side_screen import SideScreen
    from workbench.tui.shell.workbench import Workbench


class TimelineScreen(MarkingScreen[Timeline, RunRow]):
    """The runs of a case, the newest first."""

    NAME = "timeline"
    FIRST = ("open", "mark")
    TITLE_IN_TEXT = "a case over time"
    AUTO_FOCUS = "#timeline-list"
    MARKED = "space on another run puts both side by side"
    FILTERED_BY = "words of batch, date, model or status"

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

    @action("enter", "Show the run", label="open")
    def do_open(self) -> None:
        """Show the run."""
        if self.state.selected is not None:
            self._show_runs([self.state.selected])

    def _take_pair(self, earlier: RunRow, later: RunRow) -> None:
        self._show_runs([earlier, later])

    def _show_runs(self, runs: Sequence[RunRow]) -> None:
        wanted = [(f"batch {self.state.called(run)}", run, None) for run in runs]
        show_stored(self.stage, self, lambda: runs_screen(self.stage, wanted))

    @action("y", "Copy it as Markdown", label="copy")
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


async def _timeline_screen(app: Workbench, key: str, case_id: str, case_name: str) -> TimelineScreen:
    """Return the screen of a case over time."""
    file = file_of(app)
    await asyncio.to_thread(app.services.runner.settle_history)
    state = await in_background(lambda: Timeline(case_name, *read_case(file, key, case_id)))
    return TimelineScreen(app, state)


def show_timeline(
    app: Workbench, shown: SideScreen[None] | None, suite: Path | str, case_id: str, case_name: str
) -> None:
    """Show a case over time, above a screen (`None`: the main screen). The suite is its file or its key in the
    history."""
    key = suite if isinstance(suite, str) else str(suite.resolve())
    show_stored(app, shown, lambda: _timeline_screen(app, key, case_id, case_name))
