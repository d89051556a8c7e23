"""The history's screens: opening them, and what their keys do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.config.history_file import history_option
from workbench.history.records import HistoryError
from workbench.reports.history_list import called
from workbench.trajectory.recording import RecordingError
from workbench.tui.kit.background import push_from, worked_out
from workbench.tui.kit.copying import copy_text
from workbench.tui.kit.side_screen import on_beside
from workbench.tui.lines.glyphs import GLYPHS

if TYPE_CHECKING:
    from workbench.history.records import BatchRow, Regrade, RunRow
    from workbench.tui.comparing.batch_screen import ComparedBatchScreen
    from workbench.tui.comparing.screen import CompareScreen
    from workbench.tui.history.batches import HistoryList
    from workbench.tui.history.batches_screen import HistoryScreen
    from workbench.tui.history.changes_screen import BatchDiffScreen
    from workbench.tui.history.timeline_screen import TimelineScreen
    from workbench.tui.kit.side_screen import BesideScreen
    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


NOT_KEPT = "this session keeps no history: it was started with --no-history"


class HistoryCommands:
    """The methods of `actions.history`. The screens are imported when they are first opened."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._list: HistoryList | None = None
        """What was read when the history was last looked at, with the cursor where it was."""
        of_compare: dict[str, Callable[[CompareScreen], object]] = {"timeline": self._timeline_of_row}
        of_history: dict[str, Callable[[HistoryScreen], object]] = {
            "open": self._open_batch,
            "mark": self._mark_batch,
            "name": self._name,
            "go_on": lambda history: self._do(history, app.deeds.go_on, "ask"),
            "regrade": lambda history: self._do(history, app.deeds.regrade, "ask"),
            "grading": lambda history: history.other_grading(),
            "export": lambda history: self._do(history, app.deeds.export, "history"),
            "delete": self._delete,
            "forks": lambda history: history.turn_forks(),
            "reload": lambda history: history.read_soon(),
            "filter": lambda history: history.open_filter(),
            "copy": lambda history: copy_text(app, history.text, "the batches shown", history.announce),
            "other": lambda history: history.other_column(),
            "back": lambda history: history.back(),
        }
        of_diff: dict[str, Callable[[BatchDiffScreen], object]] = {
            "open": self._open_change,
            "left": lambda diff: diff.sideways(-1),
            "right": lambda diff: diff.sideways(1),
            "timeline": self._timeline_of_change,
            "filter": lambda diff: diff.open_filter(),
            "copy": self._copy_changes,
            "other": lambda diff: diff.other_column(),
            "back": lambda diff: diff.back(),
        }
        of_timeline: dict[str, Callable[[TimelineScreen], object]] = {
            "open": self._open_run,
            "mark": self._mark_run,
            "filter": lambda timeline: timeline.open_filter(),
            "copy": lambda timeline: copy_text(app, timeline.text, "the runs shown", timeline.announce),
            "other": lambda timeline: timeline.other_column(),
            "back": lambda timeline: timeline.back(),
        }
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "history": self._open,
            "timeline": self._timeline_of_case,
            **on_beside(app, "compare", of_compare),
            **on_beside(app, "history", of_history),
            **on_beside(app, "diff", of_diff),
            **on_beside(app, "timeline", of_timeline),
        }

    @property
    def _file(self) -> Path:
        assert self._app.history is not None
        return self._app.history

    # Opening

    def _open(self, screen: MainScreen) -> None:
        from workbench.tui.history.batches import HistoryList
        from workbench.tui.history.batches_screen import HistoryScreen

        if self._list is None:
            self._list = HistoryList()
        self._app.push_screen(HistoryScreen(self._app, self._list))

    def _open_batch(self, history: HistoryScreen) -> None:
        batch = history.state.selected
        assert batch is not None
        grading = history.state.grading(batch)
        again = f", graded again ({grading.number})" if grading is not None else ""
        if not again and batch.number in history.state.regraded:
            again = ", as graded when it ran"
        self._open_from(history, lambda: self._opened_batch(batch, grading, f"batch {called(batch)}{again}"))

    async def _opened_batch(self, batch: BatchRow, grading: Regrade | None, place: str) -> ComparedBatchScreen:
        from workbench.tui.comparing.batch_screen import ComparedBatchScreen
        from workbench.tui.comparing.sources import KeptRuns, of_batch
        from workbench.tui.comparing.state import CompareState
        from workbench.tui.run_book.kept import read_batch

        file = self._file

        def read() -> KeptRuns:
            return of_batch(file, read_batch(file, batch.number, grading.id if grading else None))

        # All of it there: of thousands of runs it takes longer than a key may.
        state = await worked_out(lambda: CompareState(read()))
        return ComparedBatchScreen(self._app, state, place, read)

    def _mark_batch(self, history: HistoryScreen) -> None:
        pair = history.mark()
        if pair is not None:
            gradings = [history.state.grading(batch) for batch in pair]
            self._open_from(history, lambda: self._opened_diff(pair, gradings))

    async def _opened_diff(self, pair: tuple[BatchRow, BatchRow], gradings: list[Regrade | None]) -> BatchDiffScreen:
        from workbench.tui.history.changes import DiffList
        from workbench.tui.history.changes_screen import BatchDiffScreen
        from workbench.tui.run_book.kept import read_two

        wanted = [
            (batch.number, grading.id if grading else None) for batch, grading in zip(pair, gradings, strict=True)
        ]
        state = await worked_out(lambda: DiffList(*read_two(self._file, *wanted), history_option(self._file)))
        return BatchDiffScreen(self._app, state)

    # What is done to a batch

    def _name(self, history: HistoryScreen) -> None:
        from workbench.tui.history.dialogs import BatchNameScreen

        batch = history.state.selected
        assert batch is not None

        def take(name: str | None) -> None:
            if name is not None and name != (batch.name or ""):
                self._app.run_worker(self._app.deeds.name(history, batch, name), group="history")

        self._app.push_screen(BatchNameScreen(batch), take)

    def _do(
        self, history: HistoryScreen, deed: Callable[[HistoryScreen, BatchRow], Coroutine[None, None, None]], group: str
    ) -> None:
        batch = history.state.selected
        assert batch is not None
        self._app.run_worker(deed(history, batch), group=group)

    def _delete(self, history: HistoryScreen) -> None:
        from workbench.tui.history.dialogs import RemoveScreen

        batch = history.state.selected
        assert batch is not None

        def take(answer: str | None) -> None:
            if answer == "remove":
                self._app.run_worker(self._app.deeds.remove(history, batch), group="history")

        self._app.push_screen(RemoveScreen(batch), take)

    # Runs

    def _open_change(self, diff: BatchDiffScreen) -> None:
        change = diff.change
        if change is None:
            diff.fold(None)
            return
        sides = [
            (f"batch {name}", side.run, side.grading)
            for name, side in zip(diff.state.names, diff.state.sides(change), strict=True)
            if side is not None
        ]
        self._open_from(diff, lambda: self._shown(sides))

    def _copy_changes(self, diff: BatchDiffScreen) -> None:
        async def copy() -> None:
            copy_text(self._app, await worked_out(diff.state.as_text), "the changes", diff.announce)

        self._app.run_worker(copy(), group="diff_copy", exclusive=True)

    def _open_run(self, timeline: TimelineScreen) -> None:
        run = timeline.state.selected
        assert run is not None
        self._open_from(timeline, lambda: self._shown([(f"batch {timeline.state.called(run)}", run, None)]))

    def _mark_run(self, timeline: TimelineScreen) -> None:
        pair = timeline.mark()
        if pair is not None:
            self._open_from(
                timeline, lambda: self._shown([(f"batch {timeline.state.called(run)}", run, None) for run in pair])
            )

    async def _shown(self, wanted: list[tuple[str, RunRow, Regrade | None]]) -> BesideScreen[None]:
        """A run, or two side by side, each with where it comes from and the grading by which it counts."""
        from workbench.tui.run_book.kept import read_recording, record_of
        from workbench.tui.trajectory.screen import TrajectoryScreen
        from workbench.tui.two_runs.screen import PairScreen, beside_each_other

        def read() -> list[RunRecord]:
            return [record_of(read_recording(self._file, run, grading)) for _, run, grading in wanted]

        records = await worked_out(read)
        if len(records) == 1:
            return TrajectoryScreen(self._app, records[0], wanted[0][0])
        state = await beside_each_other(*records)
        state.batches = tuple(f"#{run.batch}" for _, run, _ in wanted)
        return PairScreen(self._app, state)

    # One case over time

    def _timeline_of_case(self, screen: MainScreen) -> None:
        key, row = screen.selected_case, screen.suites.selected
        if key is not None and row is not None and row.case is not None:
            path, case_id, name = *key, row.case.name
            self._open_from(screen, lambda: self._timeline(_key_of(path), case_id, name))

    def _timeline_of_row(self, shown: CompareScreen) -> None:
        case = shown.state.case
        if case is not None:
            # What runs now names its suites by their paths as they are, what is kept by where those lead.
            suite = _key_of(Path(case.suite)) if shown.state.source.live else case.suite
            self._open_from(shown, lambda: self._timeline(suite, case.case_id, case.name))

    def _timeline_of_change(self, diff: BatchDiffScreen) -> None:
        change = diff.change
        assert change is not None
        self._open_from(diff, lambda: self._timeline(change.suite, change.case_id, change.case_name))

    async def _timeline(self, suite: str, case_id: str, case_name: str) -> TimelineScreen:
        from workbench.tui.history.timeline import Timeline
        from workbench.tui.history.timeline_screen import TimelineScreen
        from workbench.tui.run_book.kept import read_case

        file = self._app.history
        if file is None:
            raise HistoryError(NOT_KEPT)
        await asyncio.to_thread(self._app.runner.settle_history)
        state = await worked_out(lambda: Timeline(case_name, *read_case(file, suite, case_id)))
        return TimelineScreen(self._app, state)

    def _open_from(
        self, screen: BesideScreen[None] | MainScreen, made: Callable[[], Awaitable[BesideScreen[None]]]
    ) -> None:
        """Show a screen for which the history is read, and say on this one why not where that fails."""

        async def do() -> None:
            try:
                push_from(self._app, screen, await made())
            except (HistoryError, RecordingError) as error:
                said = str(error)
                where = screen if screen.is_attached else self._app.main
                where.announce(said[:1].upper() + said[1:], "error", GLYPHS.error)
                self._app.deeds.read_again()  # the file may be another one now

        self._app.run_worker(do(), group="kept", exclusive=True)


def _key_of(path: Path) -> str:
    """What the history calls the suite of a file, as `SuiteRef.key` does."""
    return str(path.resolve())
