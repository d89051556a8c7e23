"""Running and stopping, choosing models, and the run that is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.reports.values import counted
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.runs.model_choices import model_choices
from workbench.tui.runs.models_dialog import ModelsScreen
from workbench.tui.runs.repeats_dialog import RepeatsScreen
from workbench.tui.tree.state import Row

if TYPE_CHECKING:
    from workbench.tui.runs.starting import Cases
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


class RunningCommands:
    """The methods of `actions.running` and `actions.run_pane`."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "run.case": self._run_case,
            "run.suite": self._run_below,
            "run.shown": self._run_shown,
            "run.failed": self._run_failed,
            "run.repeats": self._run_repeats,
            "run.stop": self._stop,
            "run.stop_all": lambda screen: self._app.action_stop_all(),
            "run.expand": lambda screen: screen.run_pane.run_list.toggle(),
            "run.find": self._find,
            "run.find_next": lambda screen: screen.run_pane.find(1),
            "run.previous": lambda screen: self._choose_run(screen, -1),
            "run.next": lambda screen: self._choose_run(screen, 1),
            "run.save": self._save,
            "models": lambda screen: choose_models(self._app, screen.show_selected),
        }

    def _run_case(self, screen: MainScreen) -> None:
        row = screen.suites.selected
        if row is not None:
            self._run(screen, row)

    def _run_below(self, screen: MainScreen) -> None:
        if screen.suites.whole is not None:
            self._run(screen, screen.suites.whole)

    def _run(self, screen: MainScreen, row: Row) -> None:
        self._app.run_cases(screen.selection.runnable_below(row))

    def _run_shown(self, screen: MainScreen) -> None:
        tops = [row for row in screen.suites.rows if row.depth == 0]
        self._run_all(
            screen, [below for row in tops for below in screen.selection.runnable_below(row)], "no case can run now"
        )

    def _run_failed(self, screen: MainScreen) -> None:
        below = screen.selection.runnable_below(screen.suites.whole) if screen.suites.whole is not None else []
        failed = [
            (suite, tuple(key for key in keys if screen.book.is_to_run_again((suite.path, key))))
            for suite, keys in below
        ]
        self._run_all(screen, [each for each in failed if each[1]], "no case here failed, broke off or was stopped")

    def _run_all(self, screen: MainScreen, cases: Cases, otherwise: str) -> None:
        if cases:
            self._app.run_cases(cases)
        else:
            screen.announce(f"Nothing was run: {otherwise}", "warned", GLYPHS.warned)

    def _run_repeats(self, screen: MainScreen) -> None:
        row = screen.suites.selected
        if row is None:
            return
        cases = screen.selection.runnable_below(row)
        count = sum(len(keys) for _, keys in cases)

        def run(times: int | None) -> None:
            if times is not None:
                self._app.run_cases(cases, times)

        self._app.push_screen(RepeatsScreen(row.case.name if row.case is not None else counted(count, "case")), run)

    def _stop(self, screen: MainScreen) -> None:
        self._app.runner.stop([run.run_id for run in screen.book.under_way(screen.selected_case)])

    def _save(self, screen: MainScreen) -> None:
        if (run := screen.run_shown) is not None:
            self._app.run_saver.save_soon(run, screen.announce)

    def _find(self, screen: MainScreen) -> None:
        screen.go_to("run")
        screen.run_pane.search()

    def _choose_run(self, screen: MainScreen, step: int) -> None:
        screen.selection.choose_run((screen.selection.chosen_run + step) % len(screen.runs_shown))


def choose_models(app: Workbench, taken: Callable[[], object]) -> None:
    """Ask on which models to run; `taken` is called when others were chosen."""
    main = app.main
    recorded = [run.planned.model for run in main.workspace.recorded]
    choices = model_choices(app.program, [suite.file for suite in main.desk.suites], main.models, recorded)

    def take(models: tuple[str, ...] | None) -> None:
        if models is not None:
            main.selection.models, main.selection.models_for_now = models, False
            taken()
            app.remember()

    app.push_screen(ModelsScreen(choices, main.models), take)
