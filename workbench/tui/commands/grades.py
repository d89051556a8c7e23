"""The screen of grades: opening it on the run that is shown, and what its keys do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from workbench.tui.copying import copy_text

if TYPE_CHECKING:
    from workbench.grading.grade import RunResult
    from workbench.suite.model import Case
    from workbench.tui.screens.grades import GradesScreen
    from workbench.tui.screens.main import MainScreen
    from workbench.tui.state.grades import GradesState
    from workbench.tui.state.runs import RunRecord
    from workbench.tui.workbench import Workbench


class GradesCommands:
    """The methods of `actions.grades`. The screen is imported when it is first opened."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "grades": self._open,
            "grades.next": self._on_grades(lambda grades: grades.step(1)),
            "grades.previous": self._on_grades(lambda grades: grades.step(-1)),
            "grades.bad": self._on_grades(lambda grades: grades.to_next_bad()),
            "grades.next_run": self._on_grades(lambda grades: self._step_run(grades, 1)),
            "grades.previous_run": self._on_grades(lambda grades: self._step_run(grades, -1)),
            "grades.explain": self._on_grades(lambda grades: grades.explain()),
            "grades.show": self._on_grades(lambda grades: grades.show()),
            "grades.copy": self._on_grades(self._copy),
            "grades.other": self._on_grades(lambda grades: grades.other_column()),
            "grades.back": self._on_grades(lambda grades: grades.back()),
            "grades.help": self._on_grades(lambda grades: grades.help()),
            "grades.quit": self._on_grades(self._quit),
        }

    def _open(self, screen: MainScreen) -> None:
        from workbench.tui.screens.grades import GradesScreen

        run = screen.run_shown
        if run is not None and run.result is not None and run.result.grades:
            self._app.push_screen(GradesScreen(self._app, self._state_of(screen, run.planned.case, run.result)))

    def _state_of(self, screen: MainScreen, case: Case, result: RunResult) -> GradesState:
        from workbench.tui.state.grades import GradesState

        runs = screen.runs_shown
        numbered = any(run.repeat for run in runs)
        return GradesState(case, result, runs=len(_graded(runs)), numbered=numbered)

    def _step_run(self, grades: GradesScreen, by: int) -> None:
        """Show another graded run of the case, here and in the run pane."""
        main = self._app.main
        graded = _graded(main.runs_shown)
        if not graded:
            return
        now = next((at for at, (_, _, result) in enumerate(graded) if result is grades.state.result), 0)
        main.chosen_run, case, result = graded[(now + by) % len(graded)]
        main.show_run()
        grades.show_run(self._state_of(main, case, result))

    def _on_grades(self, do: Callable[[GradesScreen], object]) -> Callable[[MainScreen], object]:
        def perform(_: MainScreen) -> None:
            from workbench.tui.screens.grades import GradesScreen

            if isinstance(grades := self._app.screen, GradesScreen):
                do(grades)

        return perform

    def _quit(self, grades: GradesScreen) -> None:
        """Quit by way of the main screen, where there may be something to ask."""
        grades.dismiss()
        self._app.main.call_after_refresh(self._app.ask_to_quit)

    def _copy(self, grades: GradesScreen) -> None:
        copy_text(self._app, *grades.text_to_copy(), grades.announce)


def _graded(runs: Sequence[RunRecord]) -> list[tuple[int, Case, RunResult]]:
    """The runs that have grades, each with its place among all."""
    return [
        (index, run.planned.case, run.result)
        for index, run in enumerate(runs)
        if run.result is not None and run.result.grades
    ]
