"""The screen that compares the models of a batch in the history. Reloads the batch while its runs are active."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from textual.timer import Timer

from workbench.history.records import HistoryError
from workbench.numerals import count_text, counted, of_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import ELLIPSIS, EMPTY, Line, Role, Span
from workbench.tui.comparison.screen import CompareScreen
from workbench.tui.comparison.sources import StoredRuns, changed_cases
from workbench.tui.comparison.state import CompareState, row_keys
from workbench.tui.run_book.stored_batches import OutdatedError

if TYPE_CHECKING:
    from workbench.authoring.case_list import CaseKey
    from workbench.tui.comparison.watched_batch import WatchedBatch
    from workbench.tui.shell.workbench import Workbench


RELOAD_INTERVAL_S = 1.0
"""The minimum time in seconds between two reloads of an active batch."""

MAX_RELOAD_SHARE = 0.1
"""The maximum share of time spent on reloading. Large batches are therefore reloaded less often."""

SEARCH_S = 0.3
"""The pause in typing before the filter searches the unread part of a large batch."""

CASES_PER_STEP = 50
"""The number of cases to update before the next key is handled."""


class ComparedBatchScreen(CompareScreen):
    """Compares the models of a stored batch (`state`).

    `read(words, are_wanted)` reloads the batch and is called in a thread. If the batch is large, `read` loads only
    cases that contain all words, and stops when `are_wanted()` returns `False`. `watched` observes a batch that another
    process runs."""

    def __init__(
        self,
        app: Workbench,
        state: CompareState,
        place: str,
        *,
        read: Callable[[str, Callable[[], bool]], StoredRuns],
        watched: WatchedBatch | None = None,
    ) -> None:
        super().__init__(app, state, place)
        self._runner = app.services.runner
        self._watched = watched
        self._ended_runs = 0
        """The number of ended runs of the watched batch at the last reload."""
        self._read = read
        self._read_at = datetime.now()
        self._is_ours = False
        """Whether this program runs the batch. The runner then reports ended runs."""
        self._is_wanted = False
        self._is_asked = False
        """Whether the user asked for a reload and expects a notice."""
        self._is_reading = False
        self._earliest_read_s = 0.0
        self._reload_timer: Timer | None = None
        self._was_left = False

    def on_mount(self) -> None:
        self._is_ours = self._runs_here()
        self._earliest_read_s = self._loop_s() + RELOAD_INTERVAL_S
        if self._watched is not None:
            self._watched.announce = lambda text: self.announce(text, "warned", GLYPHS.warned)
            self._watched.begin()
        if self._stored.read.is_first:
            self._not_before_s = 0.0
            self._read_soon()

    def on_unmount(self) -> None:
        if self._watched is not None:
            self._watched.close()

    @property
    def _stored(self) -> StoredRuns:
        stored = self.state.source
        assert isinstance(stored, StoredRuns)
        return stored

    def _runs_here(self) -> bool:
        batches = {run.batch for run in self._book.active_runs()}
        return self._stored.is_active and self._stored.batch.number in map(self._runner.batch_number, batches)

    @property
    def _is_large(self) -> bool:
        return not self._stored.read.is_whole

    @property
    def _wants_words(self) -> bool:
        return self._is_large and self.state.filter.split() != self._stored.read.words.split()

    def _show_state(self) -> None:
        if self._wants_words:
            self._earliest_read_s = self._loop_s() + SEARCH_S
            self._read_soon()
        super()._show_state()

    def _refusals(self) -> dict[str, str]:
        refused = super()._refusals()
        if self._is_large:
            number = self._stored.batch.number
            why = f"only some cases of this batch are here: 'workbench history show {number}' counts them all"
            if self._stored.read.is_first:
                why = "the other runs of this batch are still being read"
            refused |= dict.fromkeys(("compare.pair", "compare.copy"), why)
        return refused

    def _part_ends(self, details: Sequence[Line]) -> Sequence[Line]:
        """Return texts on how much of a large batch was read, longest first. The title shows the first one that fits.

        The longest text also contains the first line of `details`."""
        planned = self._stored.batch.planned
        if self._stored.read.is_first and self._is_reading:
            return _ends([f"reading {count_text(planned)} runs {ELLIPSIS}", f"reading {ELLIPSIS}"], "muted", details)
        texts = [f"searching {count_text(planned)} runs {ELLIPSIS}", f"searching {ELLIPSIS}"]
        if not self._wants_words:
            part = self._part_text()
            texts = [f"{part}, also in the totals; / searches all", part]
        return _ends(texts, "warned", details)

    def _part_text(self) -> str:
        read, planned = self._stored.read, self._stored.batch.planned
        if not read.words:
            return f"the first {of_text(len(read.runs), planned)} runs"
        if read.is_all:
            return f"{of_text(len(read.runs), planned)} runs fit"
        return f"the first {count_text(len(read.runs))} that fit, of {count_text(planned)} runs"

    def _title_ends(self, details: Sequence[Line]) -> Sequence[Line]:
        if self._is_large:
            return self._part_ends(details)
        batch = self._stored.batch
        if not self._stored.is_active and not batch.missing:
            return *details, EMPTY
        if not self._stored.is_active:
            missing = Span(f"{GLYPHS.missing} {counted(batch.missing, 'run')} missing  ", "warned")
            return *((missing, *each) for each in details), EMPTY
        far = f"{GLYPHS.running} {of_text(batch.planned - batch.missing, batch.planned)}"
        if self._is_ours or self._watched is not None:
            ends = [f"{far} runs", far]
        else:
            # If the batch's process is not observed, nothing reports its progress, so the user has to reload the batch.
            of_then = f"{far} as of {self._read_at:%H:%M}"
            ends = [f"{far} runs as of {self._read_at:%H:%M}, F5 reloads it", f"{of_then}, F5", of_then, far]
        return _ends(ends, "running", details)

    # Reading

    def update_runs(self, cases: set[CaseKey], batches: bool) -> None:
        if batches or self._is_ours:
            self._read_soon()
        if (watched := self._watched) is None:
            return
        others = self.state.update_cases(row_keys(cases))
        self._show_news(others)
        if watched.end_message:
            self._watched = None
            watched.close()
            self.announce(watched.end_message[:1].upper() + watched.end_message[1:])
            self._earliest_read_s = 0.0
        # Ended runs are read from the history. Active runs come from the observer.
        if watched.end_message or watched.ended_runs != self._ended_runs:
            self._ended_runs = watched.ended_runs
            self._read_soon()

    def do_reload(self) -> None:
        self._is_asked = True
        self._earliest_read_s = 0.0
        self._read_soon()

    def on_screen_suspend(self) -> None:
        self._was_left = True

    def on_screen_resume(self) -> None:
        if self._is_wanted or (self._was_left and self._stored.is_active):
            self._read_soon()

    def _read_soon(self) -> None:
        self._is_wanted = True
        if self._is_reading or self.is_covered:
            return
        if self._reload_timer is not None:
            self._reload_timer.stop()
            self._reload_timer = None
        wait_s = self._earliest_read_s - self._loop_s()
        if wait_s > 0:
            self._reload_timer = self.set_timer(wait_s, self._read_soon)
        else:
            self._is_reading = True
            self.run_worker(self._read_now(), group="compared_batch")

    async def _read_now(self) -> None:
        asked = self._is_asked
        searched: bool | None = self._wants_words
        self._is_wanted = self._is_asked = False
        began_s = self._loop_s()
        try:
            read = await asyncio.to_thread(self._read_others, self._stored)
        except OutdatedError:
            pass
        except HistoryError as error:
            text = str(error)
            searched = None
            # With `_is_ours`, every event of a run would start to read the history again, and fail. The user can still
            # reload with F5.
            self._is_ours = False
            self.announce(text[:1].upper() + text[1:], "error", GLYPHS.error)
        else:
            if not searched:
                self._earliest_read_s = self._loop_s() + max(
                    RELOAD_INTERVAL_S, (self._loop_s() - began_s) / MAX_RELOAD_SHARE
                )
            await self._show_reloaded(*read, is_requested=asked)
        finally:
            self._is_reading = False
        if self._is_wanted or (searched is not None and self._wants_words):
            self._read_soon()

    def _read_others(self, before: StoredRuns) -> tuple[StoredRuns, list[tuple[str, str]] | CompareState]:
        # Runs that ended in this program may still wait to be written to the history.
        self._runner.flush_history()
        words = ""
        if not before.read.is_whole:
            words = self.state.filter
        after = self._read(words, lambda: before.read.is_whole or self.state.filter == words)
        others = changed_cases(before, after)
        if others is None:
            return after, CompareState(after)
        return after, others

    async def _show_reloaded(
        self, stored: StoredRuns, others: list[tuple[str, str]] | CompareState, *, is_requested: bool
    ) -> None:
        """Show the reloaded batch. `others` are the changed cases, or a new state if rows or columns changed too.

        If the user asked for the reload (`is_requested`), announce its result."""
        finished = self._stored.batch.missing - stored.batch.missing
        state, rows = self.state, self.state.rows
        state.source, self._read_at = stored, datetime.now()
        if self._watched is not None:
            stored.report_stored(self._watched)
        self._is_ours = self._runs_here()
        if isinstance(others, CompareState):
            state.adopt(others)
        else:
            # A large batch is taken over in parts, so keys are handled between the parts.
            for at in range(0, len(others), CASES_PER_STEP):
                state.update_cases(others[at : at + CASES_PER_STEP])
                await asyncio.sleep(0)
        self._show_news(state.rows is not rows)
        if is_requested:
            text = "no more runs finished"
            if finished > 0:
                text = f"{counted(finished, 'more run')} finished"
            self.announce(f"Reloaded: {text}")

    @staticmethod
    def _loop_s() -> float:
        return asyncio.get_running_loop().time()


def _ends(texts: Sequence[str], role: Role, details: Sequence[Line]) -> Sequence[Line]:
    """Return texts for the right end of the title, longest first. The title shows the first one that fits.

    The longest text joins the first of `texts` and the first line of `details`. The `texts` alone follow, then an empty
    text."""
    lines: list[Line] = [(Span(f"{text} ", role),) for text in texts]
    return [(*lines[0], Span(" "), *details[0]), *lines, EMPTY]
