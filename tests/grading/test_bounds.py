"""Large runs: the work grows with the number of calls, not with the number of pairs or faster."""

from __future__ import annotations

import pytest

from tests.grading.cases import call, case_of
from tests.trajectories import CallSpec, trajectory_of
from workbench.checks.check import CheckContext
from workbench.grading.matching import maximum_matching
from workbench.grading.run import GRADERS_BY_NAME
from workbench.suite.grading_model import GraderName
from workbench.suite.model import Suite
from workbench.suite.settings import settings_of
from workbench.trajectory.events import JsonValue


@pytest.mark.parametrize("grader", ["critics", "dimensions"])
def test_a_call_of_a_large_run_is_held_against_a_hundred_others_at_most(grader: GraderName) -> None:
    size = 150
    expected = [call("a", {"x": {"python": "checks:f"}}) for _ in range(size)]
    made: list[CallSpec] = [("a", {"x": str(index)}) for index in range(size)]
    suite = Suite.model_validate({"format": 1, "name": "s", "cases": [case_of(*expected)]})
    (case,) = suite.cases
    asked: list[JsonValue] = []

    def function(reference: str, value: JsonValue) -> bool:
        asked.append(value)
        return value == "7"

    grade = GRADERS_BY_NAME[grader].grade(case, settings_of(suite, case), trajectory_of(*made), CheckContext(function))
    assert len(asked) <= size * 101
    assert sorted(line.call for line in grade.pairings if line.call is not None) == [*range(size)]
    assert [line.call for line in grade.pairings if any(verdict.holds for verdict in line.arguments)] == [7]


def test_calls_for_which_no_place_can_be_made_are_not_sought_one_again_and_again() -> None:
    asked = 0

    def fits(member: int, call: int) -> bool:
        nonlocal asked
        asked += 1
        return member < 50

    assert len(maximum_matching(range(100), range(1000), fits)) == 50
    assert asked <= 2 * 100 * 1000
