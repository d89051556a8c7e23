"""Opens the screens of the history and implements their actions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.config.folders import history_option
from workbench.history.records import HistoryError
from workbench.remote.attached.records import AttachError, is_running, record_of
from workbench.show.glyphs import GLYPHS
from workbench.show.views.batch_list import called
from workbench.trajectory.recording import RecordingError
from workbench.tui.kit.stage import Stage, in_background
from workbench.tui.lines.words import why_not_graded
from workbench.tui.run_book.stored import read_case, read_cases, read_going, read_two
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.analysis.batch_diff import CaseChange
    from workbench.authoring.case_list import CaseKey
    from workbench.config.folders import Folders
    from workbench.history.records import BatchRow, Regrade, RunRow
    from workbench.tui.comparing.batch_screen import ComparedBatchScreen
    from workbench.tui.comparing.opening import CompareCommands
    from workbench.tui.comparing.watched import WatchedBatch
    from workbench.tui.history.batch_work import BatchWork
    from workbench.tui.history.batches import HistoryList
    from workbench.tui.history.batches_screen import HistoryScreen
    from workbench.tui.history.changes_screen import BatchDiffScreen
    from workbench.tui.history.timeline_screen import TimelineScreen
    from workbench.tui.kit.side_screen import SideScreen
    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.runs.runner import Runner
    from workbench.tui.trajectory.opening import RunScreens
    from workbench.tui.two_runs.opening import PairScreens


_SHOWN_S = 120.0
"""How long the screen of a large batch may take to be shown."""

NOT_KEPT = "this session keeps no history: it was started with --no-history"


class HistoryCommands:
    """Creates the screens of the history and implements `batches_screen.HistoryWays` and
    `changes_screen.ChangesWays`. `folders` are where other processes are found, `tell` tells all screens of news of
    cases."""

    def __init__(
        self,
        stage: Stage,
        selection: Selection,
        file: Path | None,
        runner: Runner,
        *,
        batch_work: Callable[[], BatchWork],
        comparing: CompareCommands,
        runs: RunScreens,
        pairs: PairScreens,
        folders: Folders,
        tell: Callable[[set[CaseKey]], None],
    ) -> None:
        self._stage = stage
        self._selection = selection
        self._history = file
        self._runner = runner
        self._batch_work = batch_work
        self._comparing = comparing
        self._runs = runs
        self._pairs = pairs
        self._folders = folders
        self._tell = tell
        self._list: HistoryList | None = None
        """The last state of the screen, with its cursor."""
        self.methods: dict[str, Callable[[], object]] = {"history": self._open, "timeline": self._show_over_time}

    @property
    def _file(self) -> Path:
        assert self._history is not None
        return self._history

    # Opening

    def _open(self) -> None:
        from workbench.tui.history.batches import HistoryList
        from workbench.tui.history.batches_screen import HistoryScreen

        if self._list is None:
            self._list = HistoryList()
        book = self._selection.book
        self._stage.show(HistoryScreen(self._stage, self._list, self._history, self._runner, book, self))

    def open_batch(self, shown: HistoryScreen) -> None:
        """Show the results of the selected batch, case by case."""
        batch = _selected(shown)
        grading = shown.state.grading(batch)
        again = f", regraded ({grading.number})" if grading is not None else ""
        if not again and batch.number in shown.state.regraded:
            again = ", as graded when it ran"
        self._show_from(shown, lambda: self._opened_batch(batch, grading, f"batch {called(batch)}{again}"))

    def look_on(self, number: int) -> None:
        """Show a batch of the history while its runs are made."""

        async def made() -> ComparedBatchScreen:
            (batch,), _ = await in_background(partial(read_going, self._file, (number,)))
            return await self._opened_batch(batch, None, f"batch {called(batch)}")

        self._show_from(None, made)

    async def _opened_batch(self, batch: BatchRow, grading: Regrade | None, place: str) -> ComparedBatchScreen:
        from workbench.tui.comparing.batch_screen import ComparedBatchScreen
        from workbench.tui.comparing.sources import StoredRuns, of_batch
        from workbench.tui.comparing.state import CompareState

        file = self._file
        watched = await in_background(partial(self._watched, batch.number)) if batch.ended_at is None else None
        if watched is not None:
            asyncio.get_running_loop().call_later(_SHOWN_S, watched.close_unless_begun)

        def read(words: str, is_wanted: Callable[[], bool] = lambda: True) -> StoredRuns:
            cases = read_cases(file, batch.number, grading.id if grading else None, words, is_wanted)
            return of_batch(file, cases, watched)

        # Everything is read in a thread; thousands of runs take too long for a key.
        state = await in_background(lambda: CompareState(read("")))
        book = self._selection.book
        return ComparedBatchScreen(
            self._stage, state, place, book, self._comparing, read=read, runner=self._runner, watched=watched
        )

    def _watched(self, number: int) -> WatchedBatch | None:
        """Look on at a batch that goes on without a terminal, `None` if it does not. Blocks. Raises HistoryError."""
        known = record_of(self._folders, self._file, number)
        if known is None or not is_running(self._folders, known):
            return None
        from workbench.remote.attached.viewer import GoneError, Viewing
        from workbench.tui.comparing.watched import WatchedBatch

        def again() -> Viewing | None:
            return Viewing(known) if is_running(self._folders, known) else None

        try:
            return WatchedBatch(Viewing(known), self._tell, again)
        except GoneError:  # it has ended just now
            return None
        except AttachError as error:
            raise HistoryError(str(error)) from error

    def show_changes(self, shown: HistoryScreen, earlier: BatchRow, later: BatchRow) -> None:
        """Show what changed between two batches, by their selected gradings."""
        wanted = [
            (batch.number, grading.id if (grading := shown.state.grading(batch)) else None)
            for batch in (earlier, later)
        ]

        async def made() -> BatchDiffScreen:
            from workbench.tui.history.changes import DiffList
            from workbench.tui.history.changes_screen import BatchDiffScreen

            state = await in_background(lambda: DiffList(*read_two(self._file, *wanted), history_option(self._file)))
            return BatchDiffScreen(self._stage, state, self)

        self._show_from(shown, made)

    # Operations on a batch

    def name(self, shown: HistoryScreen) -> None:
        """Ask for the name of the selected batch."""
        from workbench.tui.history.dialogs import BatchNameScreen

        batch = _selected(shown)

        def take(name: str | None) -> None:
            if name is not None and name != (batch.name or ""):
                self._stage.work(self._batch_work().name(shown, batch, name), "history")

        self._stage.show(BatchNameScreen(batch), take)

    def go_on(self, shown: HistoryScreen) -> None:
        """Execute the missing runs of the selected batch."""
        self._stage.work(self._batch_work().go_on(shown, _selected(shown)), "ask")

    def regrade(self, shown: HistoryScreen) -> None:
        """Regrade the selected batch by the present expectations of its suites."""
        self._stage.work(self._batch_work().regrade(shown, _selected(shown)), "ask")

    def export(self, shown: HistoryScreen) -> None:
        """Save the runs of the selected batch as recordings."""
        self._stage.work(self._batch_work().export(shown, _selected(shown)), "history")

    def export_as(self, shown: HistoryScreen) -> None:
        """Save them in a form that a person chooses."""
        from workbench.tui.history.dialogs import FormScreen

        batch = _selected(shown)

        def take(form: str | None) -> None:
            if form:
                self._stage.work(self._batch_work().export(shown, batch, form), "history")

        self._stage.show(FormScreen(batch), take)

    def remove(self, shown: HistoryScreen) -> None:
        """Remove the selected batch after confirmation."""
        from workbench.tui.history.dialogs import RemoveScreen

        batch = _selected(shown)

        def take(answer: str | None) -> None:
            if answer == "remove":
                self._stage.work(self._batch_work().remove(shown, batch), "history")

        self._stage.show(RemoveScreen(batch), take)

    # Runs

    def show_runs(self, shown: BatchDiffScreen, change: CaseChange) -> None:
        """Show both runs of a change, or the one that exists."""
        sides = [
            (f"batch {name}", side.run, side.grading)
            for name, side in zip(shown.state.names, shown.state.sides(change), strict=True)
            if side is not None
        ]
        self._show_from(shown, lambda: self._shown(sides))

    def _show_dated(self, shown: TimelineScreen, runs: Sequence[RunRow]) -> None:
        """Show one run of a timeline, or two side by side."""
        wanted = [(f"batch {shown.state.called(run)}", run, None) for run in runs]
        self._show_from(shown, lambda: self._shown(wanted))

    async def _shown(self, wanted: Sequence[tuple[str, RunRow, Regrade | None]]) -> SideScreen[None]:
        """Return the screen of one run, or of two side by side. Each has its origin and grading."""
        from workbench.tui.run_book.stored import read_recording, record_of

        def read() -> list[RunRecord]:
            return [record_of(read_recording(self._file, run, grading)) for _, run, grading in wanted]

        records = await in_background(read)
        if len(records) == 1:
            return self._runs.of(records[0], wanted[0][0])
        left, right = records
        return await self._pairs.of(left, right, tuple(f"#{run.batch}" for _, run, _ in wanted))

    def open_last_run(self) -> None:
        """Show the run that decides the last result of the selected case, by its latest grades."""

        async def made() -> SideScreen[None]:
            record = await in_background(read)
            return self._runs.of(record, f"batch #{run.batch}")

        if (last := self._selection.last_result) is not None:
            run, read = last.worst_run, self._reader_of(last.worst_run)
            self._show_from(None, made)

    def show_last_grades(self) -> None:
        """Show the grades of the run that decides the last result of the selected case."""

        async def made() -> SideScreen[None]:
            from workbench.tui.grades.screen import GradesScreen
            from workbench.tui.grades.state import GradesState

            record = await in_background(read)
            result = record.shown_result
            if result is None or not result.grades:
                raise RecordingError(why_not_graded(result) if result is not None else "this run has no result")
            return GradesScreen(self._stage, GradesState(record.shown_case, result))

        if (last := self._selection.last_result) is not None:
            read = self._reader_of(last.worst_run)
            self._show_from(None, made)

    def _reader_of(self, run: RunRow) -> Callable[[], RunRecord]:
        """Return what reads a run with its latest grades."""
        from workbench.tui.run_book.stored import read_latest, record_of

        return lambda: record_of(read_latest(self._file, run))

    # One case over time

    def _show_over_time(self) -> None:
        suite, case = self._selection.suite, self._selection.outline
        if suite is not None and case is not None:
            path, case_id, name = suite.path, case.id, case.name
            self._show_from(None, lambda: self._timeline(_key_of(path), case_id, name))

    def show_case(self, shown: SideScreen[None], suite: Path | str, case_id: str, case_name: str) -> None:
        """Show a case over time. The suite is its file or its key in the history."""
        key = suite if isinstance(suite, str) else _key_of(suite)
        self._show_from(shown, lambda: self._timeline(key, case_id, case_name))

    def show_over_time(self, shown: BatchDiffScreen, change: CaseChange) -> None:
        """Show the case of a change over time."""
        self.show_case(shown, change.suite, change.case_id, change.case_name)

    async def _timeline(self, suite: str, case_id: str, case_name: str) -> TimelineScreen:
        from workbench.tui.history.timeline import Timeline
        from workbench.tui.history.timeline_screen import TimelineScreen

        file = self._history
        if file is None:
            raise HistoryError(NOT_KEPT)
        await asyncio.to_thread(self._runner.settle_history)
        state = await in_background(lambda: Timeline(case_name, *read_case(file, suite, case_id)))
        return TimelineScreen(self._stage, state, self._show_dated)

    def _show_from(self, shown: SideScreen[None] | None, made: Callable[[], Awaitable[SideScreen[None]]]) -> None:
        """Show a screen that needs to read the history, above the given one (`None`: the main screen). A failure is
        announced there."""

        async def do() -> None:
            try:
                screen = await made()
            except (HistoryError, RecordingError) as error:
                text = str(error)
                announce = shown.announce if shown is not None else self._stage.announce
                announce(text[:1].upper() + text[1:], "error", GLYPHS.error)
                self._batch_work().read_again()  # the file may have been replaced
            else:
                if shown is not None or self._stage.shows_main:
                    self._stage.show(screen, over=shown)

        self._stage.work(do(), "kept", exclusive=True)


def _selected(shown: HistoryScreen) -> BatchRow:
    batch = shown.state.selected
    assert batch is not None
    return batch


def _key_of(path: Path) -> str:
    """Return the history's key of a suite file, like `SuiteRef.key`."""
    return str(path.resolve())
