"""One run as every grader reads it: which grader is looked at, and whether in more words."""

from __future__ import annotations

from typing import NamedTuple

from workbench.grading.explaining import SYSTEMS, Explanation, explain
from workbench.grading.grade import CallPairing, Grade, Issue, RunResult, Status
from workbench.grading.step_rounds import rounds_of_steps
from workbench.reports.visible import one_line
from workbench.suite.model import AnyOrder, Case
from workbench.tui.lines.glyphs import GLYPHS

_ORDER = tuple(SYSTEMS)


class SilentStep(NamedTuple):
    """A step of a chain, counted from 1, of which a grade has no line since there was no call, and none expected."""

    number: int
    reached: bool


class GradesState:
    """The grades of a graded run. They stay in one order, whichever decides; the cursor begins on that one.

    `runs` is how many graded runs the case has, `numbered` whether they are told apart by their repeats.
    """

    def __init__(self, case: Case, result: RunResult, *, runs: int = 1, numbered: bool = False) -> None:
        self.case = case
        self.result = result
        self.runs = runs
        self.numbered = numbered
        self.expected = tuple(case.expected_calls())
        self.places = _places(case)
        """Of each expected call, when it is to be made: "in order", "any order" (of its group), "whenever"; nothing of
        a chain's, each of which has its step."""
        self.calls = result.trajectory.calls
        self.reached = rounds_of_steps(case, result.trajectory)
        """The round of each step of a chain; `None` for one that was never reached."""
        self._step_of_expected = [number for number, step in enumerate(case.steps, 1) if step.tool is not None]
        self._step_of_call = {
            found.first_call + at: number
            for number, found in enumerate(self.reached, 1)
            if found is not None
            for at in range(len(found.round.calls))
        }
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

    def step_of(self, about: CallPairing | Issue | SilentStep) -> int | None:
        """The step of a chain, from 1, that a line or an issue is about; `None` where it is about none."""
        if isinstance(about, SilentStep):
            return about.number
        if about.expected_call is not None and about.expected_call < len(self._step_of_expected):
            return self._step_of_expected[about.expected_call]
        return self._step_of_call.get(about.call) if about.call is not None else None

    def made_elsewhere(self, pairing: CallPairing) -> str:
        """The step in whose answer the call of a line was made, where that is not the step that expects it."""
        if not self.case.steps or pairing.call is None or pairing.expected_call is None:
            return ""
        made = self._step_of_call.get(pairing.call)
        if made == self.step_of(pairing):
            return ""
        return f"in step {made}" if made is not None else "after the steps"

    def decides(self, grade: Grade) -> bool:
        """Whether the grade decides the run's status."""
        return grade.grader == self.result.grades[0].grader

    @property
    def title(self) -> str:
        """Case, model and repeat."""
        repeat = f" #{self.result.repeat + 1}" if self.numbered else ""
        return f"{one_line(self.result.case_name)} {GLYPHS.dot} {one_line(self.result.model)}{repeat}"

    def look_as(self, other: GradesState) -> None:
        """Begin on the grader, and with as many words, as another run was looked at."""
        names = [grade.grader for grade in self.grades]
        if other.selected.grader in names:
            self.cursor = names.index(other.selected.grader)
        self.more = other.more

    def move_to(self, index: int) -> None:
        """Look at another grader."""
        self.cursor = min(max(index, 0), len(self.grades) - 1)

    def step(self, by: int) -> None:
        """Look at the grader `by` places on, around the end."""
        self.cursor = (self.cursor + by) % len(self.grades)


def _places(case: Case) -> tuple[str, ...]:
    places: list[str] = []
    for item in case.ordered:
        places += ["any order"] * len(item.any_order) if isinstance(item, AnyOrder) else ["in order"]
    return (*places, *["whenever"] * len(case.unordered))


def status_of(grade: Grade) -> Status:
    """What the run comes to under a grade."""
    if grade.status is not None:
        return grade.status
    return "passed" if grade.verdict == "not applicable" else grade.verdict
