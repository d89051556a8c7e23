"""The screen of the history: all stored batches, and the details of the selected batch."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.history.records import BatchRow, DamagedError, HistoryError
from workbench.numerals import counted, counted_of
from workbench.show.glyphs import GLYPHS
from workbench.show.markdown import document_table
from workbench.show.spans import Line, Message, Span
from workbench.show.views.batch_list import batch_name
from workbench.tui.history.batches import HistoryList, detail_lines, list_message
from workbench.tui.kit.actions import action
from workbench.tui.kit.list_screen import MarkingScreen
from workbench.tui.run_book.stored_batches import read_active, read_agents, read_batches, read_gradings, read_trends
from workbench.tui.runs.status_line import progress_ends

if TYPE_CHECKING:
    from workbench.authoring.case_list import CaseKey
    from workbench.tui.shell.workbench import Workbench


FIRST_BATCHES = 500
"""The number of newest batches to read at first. The number doubles whenever older batches are needed."""

RELOAD_INTERVAL_S = 1.0
"""The minimum time in seconds between two updates of batches with active runs."""


class HistoryScreen(MarkingScreen[HistoryList, BatchRow]):
    """Lists all batches of the history, newest first."""

    # The history is read in threads. A batch of this app that begins or ends reloads everything. Other events reload
    # only the batches with active runs, at most once in RELOAD_INTERVAL_S. A covered screen reloads when it is
    # uncovered.
    NAME = "history"
    FIRST_ACTIONS = ("open", "mark")
    TITLE_IN_TEXT = "the history"
    AUTO_FOCUS = "#history-list"
    MARK_NOTICE = "space on another batch shows what changed between the two"
    FILTER_PLACEHOLDER = "words of number, name, date, suite or model"

    def __init__(self, app: Workbench, state: HistoryList) -> None:
        super().__init__(app, state)
        self._file = app.services.history
        self._runner = app.services.runner
        self._book = app.selection.book
        self._is_read_requested = False
        self._reading = False
        self._read_at_s = 0.0
        self._most = max(FIRST_BATCHES, len(state.batches))

    def on_mount(self) -> None:
        self.read_soon()

    def read_soon(self) -> None:
        """Reload the history in a thread. If another screen covers this screen, reload when that screen is closed."""
        if self._file is not None:
            self._is_read_requested = True
            if not self._reading and not self.is_covered:
                self._reading = True
                self.run_worker(self._read(), group="history")

    async def _read(self) -> None:
        try:
            while self._is_read_requested and not self.is_covered:
                self._is_read_requested = False
                await self._read_once()
        finally:
            self._reading = False

    async def _read_once(self) -> None:
        assert self._file is not None
        # Results of this app are written in the background. Reading waits for all of them.
        await asyncio.to_thread(self._runner.flush_history)
        try:
            read = await asyncio.to_thread(read_batches, self._file, self._most)
        except HistoryError as error:
            self.state.fail(str(error))
            self.announce(str(error), "error", GLYPHS.error)
        else:
            self.state.replace_all(read)
            self._read_older()
        self._read_at_s = self._loop_s()
        self._show_read()
        self._read_needed_gradings()

    def update_times(self) -> None:
        self._show_bars()

    def update_runs(self, cases: set[CaseKey], batches: bool) -> None:
        if batches or (self.state.active and self.is_covered):
            self.read_soon()
        elif self.state.active and not self._reading and self._loop_s() - self._read_at_s >= RELOAD_INTERVAL_S:
            self._reading = True
            self.run_worker(self._read_active(), group="history")
        if not self.is_covered:
            self._show_bars()

    async def _read_active(self) -> None:
        assert self._file is not None
        try:
            self.state.renew(*await asyncio.to_thread(read_active, self._file, self.state.active))
        except HistoryError as error:
            self.announce(str(error), "error", GLYPHS.error)
            self._is_read_requested = True
        self._read_at_s = self._loop_s()
        self._show_read()
        await self._read()

    def _show_read(self) -> None:
        """Show what was read. If another screen covers this screen, `on_screen_resume` shows it later."""
        if not self.is_covered:
            self._show_state(cursor_moved=False)

    def on_screen_resume(self) -> None:
        self._show_state(cursor_moved=False)
        if self._is_read_requested:
            self.read_soon()

    @staticmethod
    def _loop_s() -> float:
        return asyncio.get_running_loop().time()

    def _read_older(self) -> None:
        if self.state.needs_older and self.state.problem is None:
            self._most = max(self._most, 2 * len(self.state.batches))
            self.read_soon()

    async def _read_trends(self, batch: BatchRow) -> None:
        assert self._file is not None
        try:
            self.state.set_trends(batch.number, await asyncio.to_thread(read_trends, self._file, batch))
        except HistoryError as error:
            self.announce(str(error), "error", GLYPHS.error)
            # Empty trends keep a failing query from running again at every movement of the cursor.
            self.state.set_trends(batch.number, {})
        self._show_read()

    def _read_needed_gradings(self) -> None:
        batch = self.state.selected
        if batch is not None and self.state.needs_trends(batch):
            # Only the selected batch needs its trends, so a new reading cancels the previous one.
            self.run_worker(self._read_trends(batch), group="trends", exclusive=True)
        if batch is not None and self.state.needs_agents(batch):
            self.run_worker(self._read_agents(batch), group="agents", exclusive=True)
        if batch is not None and self.state.needs_gradings(batch):
            self.run_worker(self._read_gradings(batch), group="gradings", exclusive=True)

    async def _read_agents(self, batch: BatchRow) -> None:
        assert self._file is not None
        try:
            self.state.agents[batch.number] = await asyncio.to_thread(read_agents, self._file, batch.number)
        except HistoryError as error:
            self.announce(str(error), "error", GLYPHS.error)
            # The empty result keeps the agents from being requested again.
            self.state.agents[batch.number] = {}
        self._show_read()

    async def _read_gradings(self, batch: BatchRow) -> None:
        assert self._file is not None
        try:
            self.state.set_gradings(batch.number, await asyncio.to_thread(read_gradings, self._file, batch.number))
        except HistoryError as error:
            self.announce(str(error), "error", GLYPHS.error)
            if isinstance(error, DamagedError):
                # The empty result keeps the grades from being requested again.
                self.state.set_gradings(batch.number, ())
                self.read_soon()
        self._show_read()

    def _row_line(self, index: int, width: int) -> Line:
        return self.state.layout.line(self.state.facts(self.state.rows[index]), width)

    def _row_cells(self, index: int, width: int) -> int:
        return self.state.layout.natural(width)

    def _message(self) -> Message:
        return list_message(self.state, str(self._file) if self._file is not None else None)

    def _detail_lines(self, width: int) -> Sequence[Line]:
        batch = self.state.selected
        if batch is not None:
            return detail_lines(self.state, batch, width)
        return ()

    def _title(self) -> tuple[Line, Sequence[Line]]:
        state = self.state
        count = len(state.batches) + state.older
        parts: list[str] = []
        if state.is_read and state.older:
            parts.append(counted_of(len(state.batches), count, "batch"))
        elif state.is_read:
            parts.append(counted(count, "batch"))
        if state.forks and not state.shows_forks:
            parts.append(f"{counted(state.forks, 'fork')} hidden")
        if state.marked:
            parts.append(f"{len(state.marked)} marked")
        left: Line = (Span(" History ", "badge"), Span(self._filter_text))
        progress = self._book.progress()
        return left, progress_ends(progress, (Span(f"{', '.join(parts)} ", "muted"),))

    def _refusals(self) -> Mapping[str, str]:
        return self.state.refusals()

    def _show_state(self, *, cursor_moved: bool = True) -> None:
        super()._show_state(cursor_moved=cursor_moved)
        if cursor_moved:
            self._read_needed_gradings()
            if self._file is not None and not self._reading:
                self._read_older()

    @action("enter", "Show the results of the batch", label="open")
    def do_open(self) -> None:
        batch = self._batch
        grading = self.state.grading(batch)
        place = f"batch {batch_name(batch)}"
        if grading is not None:
            place += f", regraded ({grading.number})"
        elif batch.number in self.state.regraded:
            place += ", as graded when it ran"
        self.workbench.screens.show_batch(self, batch, grading, place)

    @property
    def _batch(self) -> BatchRow:
        batch = self.state.selected
        assert batch is not None, "actions on a batch are refused in an empty list"
        return batch

    def _open_pair(self, earlier: BatchRow, later: BatchRow) -> None:
        wanted = []
        for batch in (earlier, later):
            grading = self.state.grading(batch)
            wanted.append((batch.number, grading.id if grading is not None else None))
        self.workbench.screens.show_changes(self, wanted)

    @action("f2", "Name the batch; an empty name removes it", label="name", changes=True)
    def do_name(self) -> None:
        self.workbench.services.batch_work.ask_name(self, self._batch)

    @action("c", "Resume the batch: run what is missing", label="resume", changes=True)
    def do_resume(self) -> None:
        self.workbench.work(self.workbench.services.batch_work.resume(self, self._batch), "ask")

    @action("=", "Regrade by the current suites, without a model", label="regrade", changes=True)
    def do_regrade(self) -> None:
        self.workbench.work(self.workbench.services.batch_work.regrade(self, self._batch), "ask")

    @action("w", "Save its runs as recordings", changes=True)
    def do_export(self) -> None:
        self.workbench.work(self.workbench.services.batch_work.export(self, self._batch), "history")

    @action("W", "Export its runs in another form", changes=True)
    def do_export_as(self) -> None:
        self.workbench.services.batch_work.ask_form(self, self._batch)

    @action("del", "Remove the batch", label="remove", changes=True)
    def do_delete(self) -> None:
        self.workbench.services.batch_work.ask_to_remove(self, self._batch)

    @action("f5 ctrl+r", "Reload the history")
    def do_reload(self) -> None:
        self.read_soon()

    @action("y", "Copy it as Markdown", label="copy")
    def do_copy(self) -> None:
        self.workbench.copy(document_table(self.state.table), "the batches shown", self.announce)

    @action("o", "Switch to the grades of a regrade", label="other grades")
    def do_grading(self) -> None:
        self.state.other_grading()
        self._show_state(cursor_moved=False)

    @action(".", "Show or hide forks of single runs")
    def do_forks(self) -> None:
        self.state.show_forks(not self.state.shows_forks)
        self._show_state()


class StoredBatches:
    """Opens the list of batches. Keeps its cursor and filter for the next opening."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._list = HistoryList()

    def open(self) -> None:
        self._app.show(HistoryScreen(self._app, self._list))
