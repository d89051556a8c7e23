"""Opens the screens of stored batches and runs. The history is read in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.history.records import HistoryError
from workbench.show.glyphs import GLYPHS
from workbench.show.views.batch_list import batch_name
from workbench.show.views.grades import why_not_graded
from workbench.trajectory.recording import RecordingError
from workbench.tui.kit.stage import in_background

if TYPE_CHECKING:
    from workbench.history.records import BatchRow, Regrade, RunRow
    from workbench.tui.comparison.batch_screen import ComparedBatchScreen
    from workbench.tui.comparison.watched_batch import WatchedBatch
    from workbench.tui.history.timeline import TimelineScreen
    from workbench.tui.kit.side_screen import SideScreen
    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.shell.workbench import Workbench


_SHOWN_S = 120.0
"""The time in seconds after which an unused connection to a batch's process is closed. Reading a batch may take
long."""

NO_HISTORY = "this session keeps no history: it was started with --no-history"


def show_stored(
    app: Workbench, shown: SideScreen[None] | None, make_screen: Callable[[], Awaitable[SideScreen[None]]]
) -> None:
    """Show the screen that `make_screen` returns. It covers the screen `shown` (`None`: the main screen).

    `make_screen` reads the history. If that fails, the reason is announced on the screen `shown`."""

    async def do() -> None:
        try:
            screen = await make_screen()
        except (HistoryError, RecordingError) as error:
            _announce_failure(app, shown, error)
        else:
            # The user may have opened another screen meanwhile.
            if shown is not None or app.shows_main:
                app.show(screen, below=shown)

    app.work(do(), "kept", exclusive=True)


def _announce_failure(app: Workbench, screen: SideScreen[None] | None, error: Exception) -> None:
    text = str(error)
    announce = screen.announce if screen is not None else app.announce
    announce(text[:1].upper() + text[1:], "error", GLYPHS.error)
    # The failure may come from another program that replaced the file, so the list is read again.
    app.services.batch_work.read_again()


def file_of(app: Workbench) -> Path:
    """Return the path of the history file.

    Raises HistoryError in a session without a history."""
    file = app.services.history
    if file is None:
        raise HistoryError(NO_HISTORY)
    return file


async def batch_screen(app: Workbench, batch: BatchRow, grading: Regrade | None, place: str) -> ComparedBatchScreen:
    """Read a batch with the grades of a regrade, and return its screen.

    `place` names the batch in titles. If another process still runs the batch, the screen shows its active runs."""
    from workbench.tui.comparison.batch_screen import ComparedBatchScreen
    from workbench.tui.comparison.sources import StoredRuns, batch_source
    from workbench.tui.comparison.state import CompareState
    from workbench.tui.run_book.stored_batches import read_cases

    file = file_of(app)
    watched = None
    if batch.ended_at is None:
        watched = await in_background(partial(_observed_batch, app, file, batch.number))
    if watched is not None:
        asyncio.get_running_loop().call_later(_SHOWN_S, watched.close_unless_begun)

    def read(words: str, is_wanted: Callable[[], bool] = lambda: True, *, first: bool = False) -> StoredRuns:
        cases = read_cases(file, batch.number, grading.id if grading else None, words, is_wanted, first=first)
        return batch_source(file, cases, watched)

    # The screen opens with the first runs, and reads the others itself.
    state = await in_background(lambda: CompareState(read("", first=True)))
    return ComparedBatchScreen(app, state, place, read=read, watched=watched)


def _observed_batch(app: Workbench, file: Path, number: int) -> WatchedBatch | None:
    """Connect to the process that runs an unattended batch. Return `None` if there is no such process.

    Blocks, so call it in a thread. Raises HistoryError if the process does not answer."""
    from workbench.remote.records import AttachError, is_running, record_of

    # A killed process leaves its record behind, so a record does not prove that the process still runs.
    known = record_of(app.program.folders, file, number)
    if known is None or not is_running(app.program.folders, known):
        return None
    from workbench.remote.viewer import BatchView, ConnectionEndedError
    from workbench.tui.comparison.watched_batch import WatchedBatch

    def again() -> BatchView | None:
        if is_running(app.program.folders, known):
            return BatchView(known)
        return None

    try:
        return WatchedBatch(BatchView(known), app.services.update_grades_above_main, again)
    except ConnectionEndedError:
        return None  # the process ended after the check above
    except AttachError as error:
        raise HistoryError(str(error)) from error


def observe_batch(app: Workbench, number: int) -> None:
    """Show a stored batch as a table of cases by models. Another process may still run the batch."""

    async def made() -> ComparedBatchScreen:
        from workbench.tui.run_book.stored_batches import read_active

        (batch,), _ = await in_background(partial(read_active, file_of(app), (number,)))
        return await batch_screen(app, batch, None, f"batch {batch_name(batch)}")

    show_stored(app, None, made)


async def _timeline_screen(app: Workbench, key: str, case_id: str, case_name: str) -> TimelineScreen:
    from workbench.tui.history.timeline import Timeline, TimelineScreen
    from workbench.tui.run_book.stored_batches import read_case

    file = file_of(app)
    await asyncio.to_thread(app.services.runner.flush_history)
    state = await in_background(lambda: Timeline(case_name, *read_case(file, key, case_id)))
    return TimelineScreen(app, state)


def show_timeline(
    app: Workbench, screen: SideScreen[None] | None, suite: Path | str, case_id: str, case_name: str
) -> None:
    """Show the stored runs of a case over time, above a screen (`None`: the main screen).

    `suite` is the path of the suite's file or the key of the suite in the history."""
    key = suite if isinstance(suite, str) else str(suite.resolve())
    show_stored(app, screen, lambda: _timeline_screen(app, key, case_id, case_name))


async def runs_screen(app: Workbench, runs: Sequence[tuple[str, RunRow, Regrade | None]]) -> SideScreen[None]:
    """Read one or two runs and return their screen.

    Each run is given with a text that names its origin, and with the regrade to show (`None`: the original grades)."""
    from workbench.tui.run_book.stored_runs import read_recording, record_of
    from workbench.tui.run_pair.screen import pair_screen
    from workbench.tui.trajectory.screen import TrajectoryScreen

    file = file_of(app)

    def read() -> list[RunRecord]:
        return [record_of(read_recording(file, run, grading)) for _, run, grading in runs]

    records = await in_background(read)
    if len(records) == 1:
        return TrajectoryScreen(app, records[0], runs[0][0])
    left, right = records
    return await pair_screen(app, left, right, tuple(f"#{run.batch}" for _, run, _ in runs))


def open_last_run(app: Workbench) -> None:
    """Show the stored run that decided the last result of the selected case, with its latest grades."""

    async def made() -> SideScreen[None]:
        from workbench.tui.trajectory.screen import TrajectoryScreen

        record = await in_background(read)
        return TrajectoryScreen(app, record, f"batch #{run.batch}")

    if (last := app.selection.last_result) is not None:
        run, read = last.worst_run, _reader_of(app, last.worst_run)
        show_stored(app, None, made)


def edit_last_failure(app: Workbench) -> None:
    """Open the expectation that failed in the selected case's last result, for editing.

    If no expectation failed, edit the case at the cursor of its form."""
    last, selected = app.selection.last_result, app.selection.case
    if last is None:
        return
    read = _reader_of(app, last.worst_run)

    async def do() -> None:
        from workbench.authoring.failed_expectation import failed_place

        try:
            record = await in_background(read)
        except (HistoryError, RecordingError) as error:
            _announce_failure(app, None, error)
            return
        # The user may have selected another case or screen meanwhile.
        if not app.shows_main or app.selection.case != selected:
            return
        place = None
        if record.shown_result is not None:
            place = failed_place(record.shown_case, record.shown_result)
        pane = app.main.case_pane
        if place is None:
            pane.edit()
        else:
            pane.edit_at(place)

    app.work(do(), "kept", exclusive=True)


def open_last_grades(app: Workbench) -> None:
    """Show the grades of the stored run that decided the last result of the selected case."""

    async def made() -> SideScreen[None]:
        from workbench.tui.grades.screen import GradesScreen
        from workbench.tui.grades.state import GradesState

        record = await in_background(read)
        result = record.shown_result
        if result is None:
            raise RecordingError("this run has no result")
        if not result.grades:
            raise RecordingError(why_not_graded(result))
        return GradesScreen(app, GradesState(record.shown_case, result))

    if (last := app.selection.last_result) is not None:
        read = _reader_of(app, last.worst_run)
        show_stored(app, None, made)


def _reader_of(app: Workbench, run: RunRow) -> Callable[[], RunRecord]:
    from workbench.tui.run_book.stored_runs import read_latest, record_of

    return lambda: record_of(read_latest(file_of(app), run))
