"""The screen of failures: opening it, what its keys do, and the way from it to a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.reports.visible import one_line
from workbench.tui.commands.beside import on_beside, push_from
from workbench.tui.copying import copy_text
from workbench.tui.glyphs import GLYPHS
from workbench.tui.state.words import many
from workbench.tui.worked_out import worked_out

if TYPE_CHECKING:
    from workbench.analysis.causes import Cause
    from workbench.tui.screens.failures import FailuresScreen
    from workbench.tui.screens.main import MainScreen
    from workbench.tui.state.failures import RowKey
    from workbench.tui.state.open_suite import OpenSuite
    from workbench.tui.state.run_record import RunRecord
    from workbench.tui.workbench import Workbench


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
        from workbench.tui.screens.failures import FailuresScreen
        from workbench.tui.state.failures import FailureList

        suites, place = suites_below_cursor(screen)
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
                go_to_run(screen, run)

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


def go_to_run(screen: MainScreen, run: RunRecord) -> None:
    """Put the tree's cursor on the case of a run and show that run, or what has come in its place since."""
    suite = screen.desk.at(run.path)
    case = next((case for case in suite.cases if case.id == run.case_id), None) if suite is not None else None
    if case is None:
        way = "" if run.result is not None else "; its run is under way, and X stops it with all others"
        screen.announce(f"{run.case_name} is gone from its suite{way}", "warned", GLYPHS.warned)
        return
    screen.select(run.path, case.key)
    runs = screen.runs_shown
    screen.chosen_run = next((at for at, other in enumerate(runs) if other is run), screen.chosen_run)
    screen.show_run()
    screen.go_to("run")


def suites_below_cursor(screen: MainScreen) -> tuple[list[OpenSuite], str]:
    """The suite that the tree's cursor is in, or all those in its folder, and what to call them."""
    row = screen.suites.selected
    if row is not None and row.open is not None:
        return [row.open], one_line(row.open.path.name)
    folder = row.key.path if row is not None else Path()
    suites = [suite for suite in screen.desk.suites if suite.path.is_relative_to(folder)]
    return suites, row.label if row is not None else screen.workspace.place
