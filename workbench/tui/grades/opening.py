"""The screen of grades: opening it on the run that is shown, and what its keys do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from workbench.tui.kit.copying import copy_text
from workbench.tui.kit.side_screen import on_beside

if TYPE_CHECKING:
    from workbench.grading.grade import RunResult
    from workbench.suite.model import Case
    from workbench.tui.grades.screen import GradesScreen
    from workbench.tui.grades.state import GradesState
    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


class GradesCommands:
    """The methods of `actions.grades`. The screen is imported when it is first opened."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        of_screen: dict[str, Callable[[GradesScreen], object]] = {
            "next": lambda grades: grades.step(1),
            "previous": lambda grades: grades.step(-1),
            "bad": lambda grades: grades.to_next_bad(),
            "next_run": lambda grades: self._step_run(grades, 1),
            "previous_run": lambda grades: self._step_run(grades, -1),
            "explain": lambda grades: grades.explain(),
            "show": lambda grades: grades.show(),
            "copy": lambda grades: copy_text(app, *grades.text_to_copy(), grades.announce),
            "other": lambda grades: grades.other_column(),
            "back": lambda grades: grades.back(),
        }
        self.methods = {"grades": self._open, **on_beside(app, "grades", of_screen)}

    def _open(self, screen: MainScreen) -> None:
        from workbench.tui.grades.screen import GradesScreen

        run = screen.run_shown
        result = run.shown_result if run is not None else None
        if run is not None and result is not None and result.grades:
            self._app.push_screen(GradesScreen(self._app, self._state_of(screen, run.shown_case, result)))

    def _state_of(self, screen: MainScreen, case: Case, result: RunResult) -> GradesState:
        from workbench.tui.grades.state import GradesState

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
        index, case, result = graded[(now + by) % len(graded)]
        main.selection.choose_run(index)
        grades.show_run(self._state_of(main, case, result))


def _graded(runs: Sequence[RunRecord]) -> list[tuple[int, Case, RunResult]]:
    """The runs that have grades, each with its place among all."""
    return [
        (index, run.shown_case, result)
        for index, run in enumerate(runs)
        if (result := run.shown_result) is not None and result.grades
    ]
