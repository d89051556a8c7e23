"""Find the causes of failed runs in a suite or folder, and open the screen of failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.analysis.failures import failures_of
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.tui.failures.screen import FailuresScreen
from workbench.tui.failures.state import FailureList
from workbench.tui.kit.stage import in_background
from workbench.tui.tree.selection import go_to_run

if TYPE_CHECKING:
    from workbench.analysis.causes import Cause
    from workbench.authoring.open_suite import OpenSuite
    from workbench.tui.failures.state import RowKey
    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.shell.workbench import Workbench


class FailureFinder:
    """Opens the screen of failures for the runs below the tree's cursor.

    Keeps the screen's cursor and folded causes for the next opening."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._selection = app.selection
        self._row: RowKey | None = None
        """The last selected row of the screen."""
        self._folded: dict[str, frozenset[Cause]] = {}
        """The folded causes, by the name of the suite or folder."""

    def open(self) -> None:
        self._app.work(self._find_and_show(), "failures", exclusive=True)

    async def _find_and_show(self) -> None:
        suites, place = self._selection.suites_below()
        failed = [suite for suite in self._selection.open_suites.suites if self._has_failed(suite)]
        title = place
        if failed and not any(suite in suites for suite in failed):
            suites, without = failed, place
            place = one_line(failed[0].path.name)
            if len(failed) > 1:
                place += f" and {counted(len(failed) - 1, 'other suite')}"
            title = f"{place} {GLYPHS.dot} nothing has failed in {without}"
        files = [suite.file for suite in suites]
        names = {}
        for file in files:
            names[file.path] = file.suite.name if file.suite is not None else file.path.name
        state = FailureList(self._runs(suites), names)
        state.set_failures(await in_background(lambda: failures_of(state.results())))
        if not self._app.shows_main:
            # The user opened another screen meanwhile.
            return
        if not state.failures.runs:
            text = f"Nothing has failed in {place}, except in runs that newer ones have replaced"
            self._app.announce(text, "warned", GLYPHS.warned)
            return
        state.resume(self._folded.get(place, frozenset()), self._row)

        def go(run: RunRecord | None) -> None:
            self._folded[place] = state.folded
            self._row = state.selected.key if state.selected is not None else None
            if run is not None:
                go_to_run(self._selection, self._app.main, self._app, run)
                self._app.main.run_pane.run_list.go_to_failure()

        self._app.show(FailuresScreen(self._app, state, title), go)

    def _runs(self, suites: Sequence[OpenSuite]) -> list[RunRecord]:
        runs: list[RunRecord] = []
        for suite in suites:
            # A suite with errors may have the same id twice.
            for case_id in dict.fromkeys(outline.id for outline in suite.run_cases):
                runs += self._selection.book.counting_runs((suite.path, case_id))
        return runs

    def _has_failed(self, suite: OpenSuite) -> bool:
        return any(run.status == Status.FAILED for run in self._runs([suite]))
