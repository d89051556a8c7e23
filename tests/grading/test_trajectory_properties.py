"""What the `trajectory` grader does with anything: bounds, freedom of order, and pairings against trying all ways."""

from __future__ import annotations

from copy import deepcopy
from itertools import permutations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import checks, json_objects
from tests.trajectories import CallSpec, trajectory_of
from workbench.checks.check import EMPTY_CONTEXT
from workbench.grading.grade import Grade
from workbench.grading.requirements import extra_call_rule_of
from workbench.grading.run import grade_by, grade_run
from workbench.grading.status import Status
from workbench.grading.trajectory import grade_trajectory
from workbench.suite.expected_calls import AnyOrder, DisallowedCall, ExpectedCall
from workbench.suite.grading_model import GRADERS
from workbench.suite.model import Case, Suite
from workbench.suite.settings import Grading, settings_of

TOOLS = st.sampled_from(["a", "b"])
NUMBERS = st.integers(0, 3)

calls: st.SearchStrategy[list[CallSpec]] = st.lists(
    st.tuples(TOOLS, st.fixed_dictionaries({}, optional={"n": NUMBERS})), max_size=5
)
singles = st.builds(
    lambda tool, check: ExpectedCall.model_validate({"tool": tool, "args": None if check is None else {"n": check}}),
    TOOLS,
    st.none() | NUMBERS | st.tuples(NUMBERS, NUMBERS).map(lambda pair: {"range": sorted(pair)}),
)
few = st.lists(singles, max_size=3)
groups = st.lists(singles, min_size=1, max_size=3).map(lambda members: AnyOrder(any_order=tuple(members)))
steps = st.lists(singles | groups, max_size=3)
cases = st.builds(
    lambda ordered, unordered, disallowed, extra: case_of(
        ordered=ordered, unordered=unordered, disallowed=disallowed, extra_calls=extra
    ),
    steps,
    few,
    few.map(lambda calls: [DisallowedCall(tool=call.tool, args=call.args) for call in calls]),
    st.sampled_from(["allow", "forbid"]),
)
wild_cases = st.builds(
    lambda ordered, unordered: case_of(ordered=ordered, unordered=unordered),
    *[
        st.lists(
            st.builds(
                lambda tool, args: ExpectedCall(tool=tool, args=args),
                TOOLS,
                st.none() | st.dictionaries(st.sampled_from(["n", "k"]), checks(), max_size=2),
            ),
            max_size=3,
        )
    ]
    * 2,
)
wild_calls = st.lists(
    st.tuples(TOOLS, json_objects | st.dictionaries(st.sampled_from(["n", "k"]), st.text(max_size=3))), max_size=4
)


def case_of(**lists: Any) -> Case:
    return Case(id="case", name="case", user="go", **{"extra_calls": "allow", **lists})


def grade(case: Case, made: list[CallSpec]) -> Grade:
    run = trajectory_of(*made)
    return grade_trajectory(case, extra_call_rule_of(case, Grading(), run), run)


@given(cases | wild_cases, calls | wild_calls)
def test_graders_that_share_what_they_find_out_grade_as_each_does_alone(case: Case, made: list[CallSpec]) -> None:
    suite = Suite.model_validate({"format": 1, "name": "s", "cases": [case]})
    run, settings = trajectory_of(*made), settings_of(suite, case)
    together = grade_run(suite, case, run)[0]
    assert together == tuple(grade_by(name, case, settings, run, EMPTY_CONTEXT) for name in GRADERS)
    # Values cached for a case equal those of a copy that was never graded.
    assert repr(grade_run(suite, deepcopy(case), run)[0]) == repr(together)


def score(case: Case, made: list[CallSpec]) -> float:
    found = grade(case, made).score
    assert found is not None
    return found


def fits(expected: ExpectedCall, made: CallSpec) -> bool:
    return score(case_of(ordered=(expected,)), [made]) == 1


def most_pairs(expected: list[ExpectedCall], made: list[CallSpec]) -> int:
    """Return the size of the largest pairing, found by trying all. `None` stands for an expectation without a call."""
    chances: list[CallSpec | None] = [*made, *[None] * len(expected)]
    return max(
        sum(one is not None and fits(single, one) for single, one in zip(expected, way, strict=True))
        for way in permutations(chances, len(expected))
    )


@given(cases | wild_cases, calls | wild_calls)
def test_a_score_lies_between_0_and_1_and_is_1_just_when_everything_passed(case: Case, made: list[CallSpec]) -> None:
    found = grade(case, made)
    assert 0 <= score(case, made) <= 1
    assert (found.score == 1) is (found.verdict == Status.PASSED) is (found.numbers["all_pass"] == 1)


@given(cases | wild_cases, calls | wild_calls)
def test_lines_issues_and_numbers_tell_one_story(case: Case, made: list[CallSpec]) -> None:
    found = grade(case, made)
    assert sum(line.credit for line in found.pairings) == found.numbers["matched"]
    of_expected = [line.expected_call for line in found.pairings if line.expected_call is not None]
    assert of_expected == list(range(len(tuple(case.expected_calls()))))
    assert {line.call for line in found.pairings} - {None} == set(range(len(made)))
    assert bool(found.issues) is (found.verdict == Status.FAILED)


@given(few, calls)
def test_unordered_expectations_are_paired_as_well_as_can_be(
    expected: list[ExpectedCall], made: list[CallSpec]
) -> None:
    assert grade(case_of(unordered=tuple(expected)), made).numbers["matched"] == most_pairs(expected, made)


@given(st.lists(singles, min_size=1, max_size=3), calls)
def test_the_members_of_a_group_are_paired_as_well_as_can_be(members: list[ExpectedCall], made: list[CallSpec]) -> None:
    case = case_of(ordered=(AnyOrder(any_order=tuple(members)),))
    assert grade(case, made).numbers["matched"] == most_pairs(members, made)


@given(few, few, calls, st.data())
def test_the_order_in_which_unordered_expectations_are_listed_is_free(
    ordered: list[ExpectedCall], unordered: list[ExpectedCall], made: list[CallSpec], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(unordered))
    lists = {"ordered": tuple(ordered), "extra_calls": "forbid"}
    first = grade(case_of(unordered=tuple(unordered), **lists), made)
    assert grade(case_of(unordered=tuple(shuffled), **lists), made).numbers == first.numbers


@given(few, calls, st.data())
def test_the_order_of_the_calls_is_free_where_no_order_is_asked_for(
    expected: list[ExpectedCall], made: list[CallSpec], data: st.DataObject
) -> None:
    case = case_of(unordered=tuple(expected), extra_calls="forbid")
    assert score(case, data.draw(st.permutations(made))) == score(case, made)


@given(cases, calls, st.integers(0, 5))
def test_a_call_of_another_tool_changes_nothing_where_extra_calls_are_allowed(
    case: Case, made: list[CallSpec], at: int
) -> None:
    allowed = case.model_copy(update={"extra_calls": "allow"})
    assert grade(allowed, [*made[:at], ("another", {}), *made[at:]]).numbers == grade(allowed, made).numbers


@given(cases, calls, st.integers(0, 5))
def test_where_they_are_forbidden_it_adds_one_to_the_total(case: Case, made: list[CallSpec], at: int) -> None:
    strict = case.model_copy(update={"extra_calls": "forbid"})
    before, after = grade(strict, made).numbers, grade(strict, [*made[:at], ("another", {}), *made[at:]]).numbers
    assert (after["matched"], after["total"]) == (before["matched"], before["total"] + 1)


@given(few, calls)
def test_a_run_that_does_what_is_asked_in_order_passes(expected: list[ExpectedCall], made: list[CallSpec]) -> None:
    met = [(single, one) for one in made for single in expected if fits(single, one)]
    case = case_of(ordered=tuple(single for single, _ in met))
    assert score(case, [one for _, one in met]) == 1
