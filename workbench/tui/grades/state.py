"""The state of the screen of grades: the selected grader and the level of detail."""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

from workbench.grading.explanation import Explanation, explain
from workbench.grading.grade import CallPairing, Grade, Issue, RunResult
from workbench.grading.matching import rounds_of_steps
from workbench.grading.traits import TRAITS, GraderTraits
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.suite.expected_calls import AnyOrder, ExpectedCall
from workbench.suite.model import Case

_ORDER = tuple(TRAITS)


class SilentStep(NamedTuple):
    """A step of a chain that expects no call and during which no call was made. `number` counts from 1."""

    number: int
    reached: bool


class GradesState:
    """The grades of a run in a fixed order. The deciding grade is selected first.

    `runs` is the number of graded runs of the case. `numbered` is whether the title needs the number of the repeat."""

    def __init__(self, case: Case, result: RunResult, *, runs: int = 1, numbered: bool = False) -> None:
        self.case = case
        self.result = result
        self.runs = runs
        self.numbered = numbered
        self.expected = tuple(case.expected_calls())
        # Another version of the case, with more expected calls, may have graded the run.
        lines = chain.from_iterable(grade.pairings for grade in result.grades)
        paired = [line.expected_call for line in lines if line.expected_call is not None]
        lacking = max(paired, default=-1) + 1 - len(self.expected)
        self.expected += (ExpectedCall(tool="a call"),) * lacking
        self.places = _places(case)
        if not case.steps:
            self.places += ("",) * lacking
        """The order of each expected call: "in order", "any order" (within its group), "one answer" or "whenever".

        Empty for a chain, in which each call has its step."""
        self.calls = result.trajectory.calls
        self.reached = rounds_of_steps(case, result.trajectory)
        """The round of each step of a chain, `None` for a step that was not reached."""
        # Pairings number the expected calls of all steps in one sequence. A step expects at most one call.
        self._step_of_expected = [number for number, step in enumerate(case.steps, 1) if step.expects_call]
        self._step_of_call: dict[int, int] = {}
        for number, found in enumerate(self.reached, 1):
            if found is not None:
                calls = range(found.first_call, found.first_call + len(found.round.calls))
                self._step_of_call.update(dict.fromkeys(calls, number))
        # The order of graders is the same for every run.
        self.grades = tuple(sorted(result.grades, key=lambda grade: _ORDER.index(grade.grader)))
        self.cursor = self.grades.index(result.grades[0])
        self.more = False
        """Whether explanations and values are shown in full."""
        self._explained: dict[str, Explanation] = {}

    @property
    def selected(self) -> Grade:
        return self.grades[self.cursor]

    @property
    def traits(self) -> GraderTraits:
        """The traits of the selected grader, which determine how its grade is shown."""
        return TRAITS[self.selected.grader]

    @property
    def explanation(self) -> Explanation:
        grade = self.selected
        if grade.grader not in self._explained:
            self._explained[grade.grader] = explain(grade, self.result.grading)
        return self._explained[grade.grader]

    def step_of(self, subject: CallPairing | Issue | SilentStep) -> int | None:
        """Return the step (from 1) to which a pairing or issue belongs, `None` if it belongs to no step."""
        if isinstance(subject, SilentStep):
            return subject.number
        if subject.expected_call is not None and subject.expected_call < len(self._step_of_expected):
            return self._step_of_expected[subject.expected_call]
        if subject.call is None:
            return None
        return self._step_of_call.get(subject.call)

    def other_step_text(self, pairing: CallPairing) -> str:
        """If a call was made in a different step than expected, return where ("in step 2"). Otherwise return ""."""
        if not self.case.steps or pairing.call is None or pairing.expected_call is None:
            return ""
        made = self._step_of_call.get(pairing.call)
        if made == self.step_of(pairing):
            return ""
        if made is not None:
            return f"in step {made}"
        return "after the steps"

    def decides(self, grade: Grade) -> bool:
        return grade.grader == self.result.grades[0].grader

    @property
    def title(self) -> str:
        """The names of the case and the model, and the number of the repeat if there are several."""
        repeat = ""
        if self.numbered:
            repeat = f" #{self.result.repeat + 1}"
        return f"{one_line(self.result.case_name)} {GLYPHS.dot} {one_line(self.result.model)}{repeat}"

    def copy_view(self, other: GradesState) -> None:
        """Select the same grader and level of detail as in `other`."""
        # The graders of the two runs may differ.
        names = [grade.grader for grade in self.grades]
        if other.selected.grader in names:
            self.cursor = names.index(other.selected.grader)
        self.more = other.more

    def move_to(self, index: int) -> None:
        self.cursor = min(max(index, 0), len(self.grades) - 1)

    def step(self, offset: int) -> None:
        """Move the selection by `offset` graders. After the last grader comes the first."""
        self.cursor = (self.cursor + offset) % len(self.grades)


def _places(case: Case) -> tuple[str, ...]:
    places: list[str] = []
    for alone, grouped, items in (("in order", "any order", case.ordered), ("whenever", "whenever", case.unordered)):
        for item in items:
            if not isinstance(item, AnyOrder):
                places.append(alone)
            else:
                places += ["one answer" if item.parallel else grouped] * len(item.any_order)
    return tuple(places)
