"""The last results of cases from the history. The tree shows them until a run of this session replaces them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.case_list import CaseKey
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import SuitesChanged
from workbench.history.records import HistoryError, RunRow
from workbench.numerals import age_text, duration_text, moment_text, score_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Message, Role
from workbench.show.visible import model_label, one_line
from workbench.suite.suite_file import SuiteFile
from workbench.tui.kit.stage import in_background
from workbench.tui.run_book.book import RunBook
from workbench.tui.run_book.record import RERUN_STATUSES, RunRecord
from workbench.tui.run_book.stored_runs import main_causes
from workbench.tui.run_book.summaries import CaseSummary, CaseTally, worst_graded
from workbench.tui.tree.rows import Row

if TYPE_CHECKING:
    from workbench.analysis.causes import Cause
    from workbench.analysis.comparison import Cell
    from workbench.analysis.over_time import LastResult, LastResults
    from workbench.tui.shell.workbench import Workbench


MAX_RUNS_TO_EXPLAIN = 200
"""The maximum number of failed runs to explain at once."""


class StoredResults:
    """The last results of cases in the history."""

    def __init__(self) -> None:
        self._results: LastResults = {}
        self._has_reruns = False
        self._causes: dict[str, Cause] = {}
        """The main causes of failed runs, by their ids in the events."""
        self._tallies: dict[Path, tuple[tuple[str, ...], int, CaseTally]] = {}

    @property
    def is_filled(self) -> bool:
        return bool(self._results)

    @property
    def results(self) -> LastResults:
        """The last results by case. Every reading of the history makes a new dictionary."""
        return self._results

    def set_results(self, results: LastResults) -> None:
        self._results = results
        self._has_reruns = any(result.status in RERUN_STATUSES for result in results.values())
        self._tallies = {}

    def of(self, case: CaseKey) -> LastResult | None:
        """Return the last result of a case in the history, if any."""
        return self._results.get(case)

    def shown(self, case: CaseKey, book: RunBook) -> LastResult | None:
        """Return the last result of a case in the history, `None` if the case has a run of this session."""
        # Each repaint calls this for every row of the tree, so the cheapest test comes first.
        result = self._results.get(case)
        if book.has_runs(case):
            return None
        return result

    def summary(self, case: CaseKey, book: RunBook) -> CaseSummary:
        """Return the summary of a case: its runs of this session, or else its last result in the history."""
        result = self.shown(case, book)
        if result is None:
            return book.summary(case)
        return _summary(result)

    def needs_rerun(self, case: CaseKey, book: RunBook) -> bool:
        """Return whether a case failed, broke off or was stopped, in this session or earlier."""
        return book.needs_rerun(case) or self.summary(case, book).status in RERUN_STATUSES

    @property
    def has_reruns(self) -> bool:
        """Whether the last result of any case is a failure, an error or a stopped run."""
        return self._has_reruns

    def explain(self, causes: Mapping[str, Cause]) -> None:
        """Store the main causes of failed runs, by the ids of the runs."""
        self._causes |= causes

    def causes_of(self, failed: Iterable[RunRow | RunRecord]) -> Counter[Cause]:
        """Count failed runs by main cause. Runs whose cause is unknown are left out."""
        counts: Counter[Cause] = Counter()
        for run in failed:
            if (cause := self._causes.get(_id_of(run))) is not None:
                counts[cause] += 1
        return counts

    def tally(self, suite: Path, cases: tuple[str, ...], book: RunBook) -> CaseTally:
        """Count the results of these cases, in this session or earlier."""
        if not self._results:
            return book.tally(suite, cases)
        revision = book.revision(suite)
        # Each repaint needs this for every suite, so it is cached until the cases or their runs change.
        known = self._tallies.get(suite)
        if known is None or known[0] is not cases or known[1] != revision:
            before = CaseTally.of(self._summaries_before(suite, cases, book))
            known = self._tallies[suite] = (cases, revision, book.tally(suite, cases).plus(before))
        return known[2]

    def _summaries_before(self, suite: Path, cases: Iterable[str], book: RunBook) -> Iterator[CaseSummary]:
        for case in cases:
            if (result := self.shown((suite, case), book)) is not None:
                yield _summary(result)


class HistoryReader:
    """Reads the last results of all open cases in a thread, and calls `shown` after reading new results.

    Results are read after the first screen was drawn, after suites were saved or reloaded, and on request. For a suite
    without a file, they are also read after each change."""

    def __init__(
        self,
        app: Workbench,
        results: StoredResults,
        file: Path | None,
        redacted: Callable[[str], str],
        suites: Callable[[], Iterable[OpenSuite]],
        shown: Callable[[], object],
    ) -> None:
        self._app = app
        self._results = results
        self._file = file
        self._redacted = redacted
        self._suites = suites
        self._shown = shown
        self._requested: set[str] = set()
        """The ids of the failed runs to explain or already explained."""
        self._read: dict[Path, str] | None = None
        """The hashes of the suites at the last reading, `None` before the first screen."""

    def begin(self) -> None:
        """Read the results for the first time. Called when the first screen has been drawn without results."""
        if self._read is None:
            self._read = {}
        self._read_changed()

    def follow(self, change: SuitesChanged) -> None:
        """Read again if suites were opened, closed or changed."""
        if self._read is not None:
            self._read_changed()

    def read_again(self) -> None:
        """Read all results again, because another program may have stored runs."""
        if self._read is not None:
            self._read = {}
            self._read_changed()

    def _read_changed(self) -> None:
        # Runs of a suite that is not on disk are stored with the path and the text of its draft.
        files: list[SuiteFile] = []
        for suite in self._suites():
            file = suite.file if suite.is_new else suite.disk
            if file.hash and not suite.is_recording:
                files.append(file)
        hashes = {file.path: file.hash for file in files}
        if self._file is not None and hashes != self._read:
            self._read = hashes
            self._app.work(partial(self._read_them, self._file, files), "remembered", exclusive=True)

    def explain_soon(self, failed: Iterable[RunRow | RunRecord]) -> None:
        """Find the main causes of failed runs in a thread."""
        wanted = list(islice((run for run in failed if _id_of(run) not in self._requested), MAX_RUNS_TO_EXPLAIN))
        if wanted:
            self._requested.update(map(_id_of, wanted))
            self._app.work(self._explain(wanted), "causes")

    async def _explain(self, runs: list[RunRow | RunRecord]) -> None:
        try:
            causes = await in_background(lambda: main_causes(self._file, runs))
        except HistoryError as error:
            self._app.announce(_sentence(str(error)), "error", GLYPHS.error)
            return
        if causes:
            self._results.explain(causes)
            self._shown()

    async def _read_them(self, history: Path, files: list[SuiteFile]) -> None:
        try:
            results, damaged = await in_background(lambda: _read_last(history, files, self._redacted))
        except HistoryError as error:
            self._app.announce(_sentence(str(error)), "error", GLYPHS.error)
            return
        if damaged:
            text = _sentence(damaged[0])
            if len(damaged) > 1:
                text += f" (the first of {len(damaged)})"
            self._app.announce(text, "warned", GLYPHS.warned)
        if results or self._results.is_filled:
            self._results.set_results(results)
            self._shown()


def _read_last(file: Path, suites: list[SuiteFile], redacted: Callable[[str], str]) -> tuple[LastResults, list[str]]:
    # Opening the history would create its file.
    if not file.exists():
        return {}, []
    # Lazy imports: they run in this thread, because loading SQLite would delay a key.
    from workbench.analysis.over_time import last_results
    from workbench.history.history import History

    damaged: list[str] = []
    with History(file) as history:
        results = last_results(history, suites, redacted, damaged.append)
    # A suite may have thousands of cases, so their results are computed in this thread.
    for result in results.values():
        result.compute()
    return results, damaged


def _summary(result: LastResult) -> CaseSummary:
    graded = worst_graded(result.statuses)
    return CaseSummary(result.status, result.score, graded=graded)


def _id_of(run: RunRow | RunRecord) -> str:
    if isinstance(run, RunRow):
        return f"#{run.id}"
    return run.run_id


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def is_edited_since(row: Row, last: LastResult) -> bool:
    """Return whether a case was edited since its last result, on disk or in its unsaved draft."""
    # `edited` compares with the saved file, or with the draft of a suite without a file. Unsaved edits are checked
    # here.
    if last.edited or row.open is None or row.case is None or row.open.is_new:
        return last.edited
    return row.open.is_changed(row.case.index)


def last_result_message(row: Row, last: LastResult, now: datetime) -> Message:
    """Return the run pane's message for a stored last result: the status on each model, and why the case failed."""
    lines: list[tuple[str, Role]] = [(f"Last run: {_when(last, now)}, batch #{last.runs[-1].batch}", "strong")]
    if is_edited_since(row, last):
        lines.append(("The case was edited since.", "warned"))
    lines.append(("", "text"))
    for cell in last.cells:
        lines.append(_cell(cell))
        if cell.reason:
            lines.append((one_line(cell.reason), "muted"))
    opens = "it" if len(last.runs) == 1 else "the worst of its runs"
    # The text needs "3 Enter", because Enter alone goes to the case while the tree has the focus.
    return (*lines, ("", "text"), (f"3 Enter  opens {opens}", "text"), ("=  shows its grades", "text"))


def _when(last: LastResult, now: datetime) -> str:
    old = age_text(last.began_ms, now)
    # The age of an old run is a date, to which the time of day is added.
    if "-" in old:
        return moment_text(last.began_ms)
    if old == "now":
        return old
    return f"{old} ago"


def _cell(cell: Cell) -> tuple[str, Role]:
    sign, role = cell.status.mark
    text = f"{sign} {cell.status}"
    if cell.score is not None:
        text += f" {score_text(cell.score, '')}"
    text += f" {GLYPHS.dot} {model_label(cell.model)}"
    if cell.latency_ms is not None:
        text += f" {GLYPHS.dot} {duration_text(cell.latency_ms)}"
    return text, role
