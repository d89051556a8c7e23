"""Opens the grades of the selected run, and switches to those of other runs of its case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from workbench.tui.kit.stage import Stage
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.grading.grade import RunResult
    from workbench.suite.model import Case
    from workbench.tui.grades.state import GradesState
    from workbench.tui.run_book.record import RunRecord


class GradesCommands:
    """Opens the screen of grades."""

    def __init__(self, stage: Stage, selection: Selection, *, show_last: Callable[[], object]) -> None:
        self._stage = stage
        self._selection = selection
        self._show_last = show_last
        self.methods: dict[str, Callable[[], object]] = {"grades": self._open}

    def _open(self) -> None:
        from workbench.tui.grades.screen import GradesScreen

        run = self._selection.run
        if run is None:
            self._show_last()
        elif (result := run.shown_result) is not None and result.grades:
            state = self._state_of(run.shown_case, result)
            self._stage.show(GradesScreen(self._stage, state, self._other_run))

    def _state_of(self, case: Case, result: RunResult) -> GradesState:
        from workbench.tui.grades.state import GradesState

        runs = self._selection.runs
        numbered = any(run.repeat for run in runs)
        return GradesState(case, result, runs=len(_graded(runs)), numbered=numbered)

    def _other_run(self, state: GradesState, step: int) -> GradesState | None:
        """Select a different graded run of the case and return its grades."""
        graded = _graded(self._selection.runs)
        if not graded:
            return None
        now = next((at for at, (_, _, result) in enumerate(graded) if result is state.result), 0)
        index, case, result = graded[(now + step) % len(graded)]
        self._selection.choose_run(index)
        return self._state_of(case, result)


def _graded(runs: Sequence[RunRecord]) -> list[tuple[int, Case, RunResult]]:
    """Return the runs with grades, each with its index."""
    return [
        (index, run.shown_case, result)
        for index, run in enumerate(runs)
        if (result := run.shown_result) is not None and result.grades
    ]
