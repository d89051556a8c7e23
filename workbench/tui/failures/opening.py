"""The screen of failures: opening it, what its keys do, and the way from it to a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from workbench.reports.visible import one_line
from workbench.tui.kit.background import push_from, worked_out
from workbench.tui.kit.copying import copy_text
from workbench.tui.kit.side_screen import on_beside
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.words import many
from workbench.tui.tree.selection import go_to_run

if TYPE_CHECKING:
    from workbench.analysis.causes import Cause
    from workbench.authoring.open_suite import OpenSuite
    from workbench.tui.failures.screen import FailuresScreen
    from workbench.tui.failures.state import RowKey
    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


class FailuresCommands:
    """The methods of `actions.failures`. The screen is imported when it is first opened."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._row: RowKey | None = None
        """Where the cursor was last, so that one comes back to it."""
        self._folded: dict[str, frozenset[Cause]] = {}
        """What was folded, by the suites or the folder it was folded for."""
        of_screen: dict[str, Callable[[FailuresScreen], object]] = {
            "open": lambda failures: failures.open(),
            "left": lambda failures: failures.sideways(-1),
            "right": lambda failures: failures.sideways(1),
            "filter": lambda failures: failures.open_filter(),
            "copy": lambda failures: copy_text(app, failures.state.as_text(), "the failures", failures.announce),
            "other": lambda failures: failures.other_column(),
            "back": lambda failures: failures.back(),
        }
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "failures": lambda screen: app.run_worker(self._open(screen), group="failures", exclusive=True),
            **on_beside(app, "failures", of_screen),
        }

    async def _open(self, screen: MainScreen) -> None:
        from workbench.tui.failures.screen import FailuresScreen
        from workbench.tui.failures.state import FailureList

        suites, place = screen.selection.suites_below()
        files = [suite.file for suite in suites]
        names = {file.path: file.suite.name if file.suite is not None else file.path.name for file in files}
        state = FailureList(_runs(screen, suites), names)
        await worked_out(state.find_out)
        if self._app.screen is not screen:
            return  # somebody has gone elsewhere meanwhile
        if not state.failures.runs:
            screen.announce(f"Nothing has failed in {place}, but {_elsewhere(screen, suites)}", "warned", GLYPHS.warned)
            return
        state.resume(self._folded.get(place, frozenset()), self._row)

        def go(run: RunRecord | None) -> None:
            self._folded[place], self._row = state.folded, state.selected.key if state.selected else None
            if run is not None:
                go_to_run(screen.selection, screen, self._app, run)

        push_from(self._app, screen, FailuresScreen(self._app, state, place), go)


def _runs(screen: MainScreen, suites: Sequence[OpenSuite]) -> list[RunRecord]:
    """The runs that count, in the order of the cases."""
    return [
        run
        for suite in suites
        for case in {outline.id: outline for outline in suite.cases}.values()
        for run in screen.book.runs_that_count((suite.path, case.id))
    ]


def _has_failed(runs: Sequence[RunRecord]) -> bool:
    return any(run.status == "failed" for run in runs)


def _elsewhere(screen: MainScreen, suites: Sequence[OpenSuite]) -> str:
    """The other suites in which something has failed."""
    others = [suite for suite in screen.desk.suites if suite not in suites and _has_failed(_runs(screen, [suite]))]
    first = f"in {one_line(others[0].path.name)}" if others else "in runs that others have replaced"
    return f"{first} and {many(len(others) - 1, 'other suite')}" if len(others) > 1 else first
