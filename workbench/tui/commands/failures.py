"""The screen of failures: opening it, what its keys do, and the way from it to a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.reports.visible import one_line
from workbench.tui.copying import copy_text
from workbench.tui.glyphs import GLYPHS

if TYPE_CHECKING:
    from workbench.tui.screens.failures import FailuresScreen
    from workbench.tui.screens.main import MainScreen
    from workbench.tui.state.failures import FailureList
    from workbench.tui.state.open_suite import OpenSuite
    from workbench.tui.state.runs import RunRecord
    from workbench.tui.workbench import Workbench


class FailuresCommands:
    """The methods of `actions.failures`. The screen is imported when it is first opened."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._last: FailureList | None = None
        """What was shown last, so that one comes back to the same row."""
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "failures": self._open,
            "failures.open": self._on_failures(lambda failures: failures.open()),
            "failures.left": self._on_failures(lambda failures: failures.sideways(-1)),
            "failures.right": self._on_failures(lambda failures: failures.sideways(1)),
            "failures.filter": self._on_failures(lambda failures: failures.open_filter()),
            "failures.copy": self._on_failures(self._copy),
            "failures.other": self._on_failures(lambda failures: failures.other_column()),
            "failures.back": self._on_failures(lambda failures: failures.back()),
            "failures.help": self._on_failures(lambda failures: failures.help()),
            "failures.quit": self._on_failures(self._quit),
        }

    def _open(self, screen: MainScreen) -> None:
        from workbench.tui.screens.failures import FailuresScreen
        from workbench.tui.state.failures import FailureList

        suites, place = _below_cursor(screen)
        records = [
            run
            for suite in suites
            for case in {outline.id: outline for outline in suite.cases}.values()
            for run in screen.book.runs_that_count((suite.path, case.id))
        ]
        files = [suite.file for suite in suites]
        names = {file.path: file.suite.name if file.suite is not None else file.path.name for file in files}
        state = FailureList(records, names)
        if not state.failures.runs:
            screen.announce(f"Nothing has failed in {place}, but elsewhere", "warned", GLYPHS.warned)
            return
        if self._last is not None:
            state.resume(self._last)
        self._last = state

        def go(run: RunRecord | None) -> None:
            if run is not None:
                _go_to_run(screen, run)

        self._app.push_screen(FailuresScreen(self._app, state, place), go)

    def _on_failures(self, do: Callable[[FailuresScreen], object]) -> Callable[[MainScreen], object]:
        def perform(_: MainScreen) -> None:
            from workbench.tui.screens.failures import FailuresScreen

            if isinstance(failures := self._app.screen, FailuresScreen):
                do(failures)

        return perform

    def _quit(self, failures: FailuresScreen) -> None:
        """Quit by way of the main screen, where there may be something to ask."""
        failures.dismiss()
        self._app.main.call_after_refresh(self._app.ask_to_quit)

    def _copy(self, failures: FailuresScreen) -> None:
        copy_text(self._app, failures.state.as_text(), "the failures", failures.announce)


def _go_to_run(screen: MainScreen, run: RunRecord) -> None:
    """Put the tree's cursor on the case of a run and show that run, or what has come in its place since."""
    suite = screen.desk.at(run.path)
    case = next((case for case in suite.cases if case.id == run.case_id), None) if suite is not None else None
    if case is None:
        screen.announce(f"{run.case_name} is gone from its suite", "warned", GLYPHS.warned)
        return
    screen.select(run.path, case.key)
    runs = screen.runs_shown
    screen.chosen_run = next((at for at, other in enumerate(runs) if other is run), screen.chosen_run)
    screen.show_run()
    screen.go_to("run")


def _below_cursor(screen: MainScreen) -> tuple[list[OpenSuite], str]:
    """The suite that the tree's cursor is in, or all those in its folder, and what to call them."""
    row = screen.suites.selected
    if row is not None and row.open is not None:
        return [row.open], one_line(row.open.path.name)
    folder = row.key.path if row is not None else Path()
    suites = [suite for suite in screen.desk.suites if suite.path.is_relative_to(folder)]
    return suites, row.label if row is not None else screen.workspace.place
