"""One run as every grader reads it: which grader is looked at, and whether in more words."""

from __future__ import annotations

from workbench.grading.explaining import SYSTEMS, Explanation, explain
from workbench.grading.grade import Grade, RunResult, Status
from workbench.suite.model import Case

_ORDER = tuple(SYSTEMS)


class GradesState:
    """The grades of a graded run. They stay in one order, whichever decides; the cursor begins on that one."""

    def __init__(self, case: Case, result: RunResult) -> None:
        self.case = case
        self.result = result
        self.expected = tuple(case.expected_calls())
        self.calls = result.trajectory.calls
        self.grades = tuple(sorted(result.grades, key=lambda grade: _ORDER.index(grade.grader)))
        self.cursor = self.grades.index(result.grades[0])
        self.more = False
        """Whether everything is said in more words, and values are shown whole."""
        self._explained: dict[str, Explanation] = {}

    @property
    def selected(self) -> Grade:
        """The grade under the cursor."""
        return self.grades[self.cursor]

    @property
    def explanation(self) -> Explanation:
        """How the grade under the cursor came about."""
        grade = self.selected
        if grade.grader not in self._explained:
            self._explained[grade.grader] = explain(grade, self.result.grading)
        return self._explained[grade.grader]

    def decides(self, grade: Grade) -> bool:
        """Whether the grade decides the run's status."""
        return grade.grader == self.result.grades[0].grader

    def move_to(self, index: int) -> None:
        """Look at another grader."""
        self.cursor = min(max(index, 0), len(self.grades) - 1)

    def step(self, by: int) -> None:
        """Look at the grader `by` places on, around the end."""
        self.cursor = (self.cursor + by) % len(self.grades)


def status_of(grade: Grade) -> Status:
    """What the run comes to under a grade."""
    if grade.status is not None:
        return grade.status
    return "passed" if grade.verdict == "not applicable" else grade.verdict
