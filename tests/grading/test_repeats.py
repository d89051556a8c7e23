"""The result of several runs of a case: the rules, the runs they leave out, and their figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.grading.cases import call, case_of
from tests.results import result
from tests.tables import each_row
from tests.trajectories import CallSpec, trajectory_of
from workbench.grading.grade import Grade, Issue, RunResult
from workbench.grading.repeats import CaseResult, case_result, case_results, join_runs
from workbench.grading.run import grade_run
from workbench.grading.run_summary import summary_of
from workbench.grading.status import Status
from workbench.suite.grading_model import GraderName, RepeatRule
from workbench.suite.model import Suite
from workbench.suite.settings import CriticsOptions, Grading, settings_of

RULES: tuple[RepeatRule, ...] = ("every", "last", "mean", "majority")


def came_to(rule: RepeatRule, *runs: RunResult, grading: Grading | None = None) -> CaseResult:
    in_force = replace(grading or Grading(), repeat_rule=rule)
    return case_result([replace(run, repeat=repeat, grading=in_force) for repeat, run in enumerate(runs)])


PASSED, WARNED, FAILED = result(Status.PASSED, 1.0), result(Status.WARNED, 0.85), result(Status.FAILED, 0.4)
BROKEN, STOPPED, SKIPPED = (
    result(Status.ERROR, error="no route"),
    result(Status.STOPPED),
    result(Status.SKIPPED, error="later"),
)


@each_row(
    ("rule", "runs", "status"),
    [
        ("every", (PASSED, PASSED, PASSED), "passed"),
        ("every", (PASSED, WARNED, PASSED), "warned"),
        ("every", (PASSED, FAILED, PASSED), "failed"),
        ("last", (FAILED, FAILED, PASSED), "passed"),
        ("last", (PASSED, PASSED, FAILED), "failed"),
        ("mean", (PASSED, PASSED, PASSED, FAILED), "warned"),
        ("mean", (PASSED, WARNED), "passed"),
        ("mean", (PASSED, FAILED), "failed"),
        ("majority", (PASSED, PASSED, FAILED), "passed"),
        ("majority", (PASSED, FAILED), "failed"),
        ("majority", (PASSED, WARNED, FAILED), "warned"),
        ("majority", (PASSED, PASSED, FAILED, FAILED), "failed"),
    ],
)
def test_each_rule_has_its_word(rule: RepeatRule, runs: tuple[RunResult, ...], status: Status) -> None:
    assert came_to(rule, *runs).status == status


@pytest.mark.parametrize("rule", RULES)
def test_runs_that_were_not_graded_are_no_part_of_it(rule: RepeatRule) -> None:
    case = came_to(rule, BROKEN, PASSED, STOPPED, SKIPPED)
    assert (case.status, case.score, case.deviation, len(case.graded), case.good) == ("passed", 1.0, 0.0, 1, 1)
    assert len(case.runs) == 4


@pytest.mark.parametrize("rule", RULES)
def test_without_a_graded_run_the_worst_of_what_broke_them_off_is_the_status(rule: RepeatRule) -> None:
    case = came_to(rule, SKIPPED, BROKEN, STOPPED)
    assert (case.status, case.score, case.deviation, case.reason) == ("error", None, None, "no route")


def test_repeats_count_in_their_order_whenever_they_were_done() -> None:
    first, second = replace(PASSED, repeat=0), replace(FAILED, repeat=1)
    assert case_result([second, first]).status == "failed"


def test_a_broken_requirement_fails_the_mean_which_cannot_hold_it() -> None:
    forbidden = Issue("forbidden call", "this call must not be made", decides=True)
    broke = result(Status.FAILED, 1.0, grade=Grade("critics", 1.0, Status.PASSED, "all right", issues=(forbidden,)))
    case = came_to("mean", PASSED, broke)
    assert (case.status, case.score) == ("failed", 1.0)
    assert came_to("last", PASSED, broke).reason == "forbidden call: this call must not be made"


def test_a_mean_that_binary_fractions_push_below_a_threshold_has_reached_it_except_as_published() -> None:
    runs = [result(Status.PASSED, score) for score in (0.7999999999, 0.8)]
    grading = Grading(warn_threshold=0.8)
    assert came_to("mean", *runs, grading=grading).status == "passed"
    published = replace(grading, critics=CriticsOptions(arcade_compatible=True))
    assert came_to("mean", *runs, grading=published).status == "failed"


def test_a_case_that_no_grader_applies_to_passes_or_fails_by_its_requirements() -> None:
    nothing = result(Status.PASSED, grade=Grade("critics", None, "not applicable", "nothing expected"))
    case = came_to("mean", nothing, nothing)
    assert (case.status, case.score, case.deviation) == ("passed", None, None)


def test_a_reason_is_told_only_if_all_runs_have_it() -> None:
    failed = [
        result(Status.FAILED, 0.0, grade=Grade("critics", 0.0, Status.FAILED, reason)) for reason in ("a", "a", "b")
    ]
    assert came_to("mean", *failed[:2]).reason == "a"
    assert came_to("mean", *failed).reason is None
    assert came_to("last", *failed).reason == "b"
    assert came_to("majority", PASSED, PASSED).reason is None
    assert came_to("every", *failed[:2]).reason == "a"
    assert came_to("every", *failed).reason == "0 of 3 runs passed"
    assert came_to("every", failed[0], PASSED, BROKEN).reason == "1 of 2 runs passed"
    assert came_to("every", failed[0], BROKEN).reason == "a"
    assert came_to("every", PASSED, PASSED).reason is None


def test_a_case_is_flaky_if_some_of_its_graded_runs_passed() -> None:
    assert came_to("every", PASSED, FAILED).is_flaky
    assert not came_to("every", FAILED, FAILED).is_flaky
    assert not came_to("every", PASSED, WARNED, BROKEN).is_flaky


def test_every_run_decides_unless_a_published_system_is_reproduced_or_the_suite_says_otherwise() -> None:
    def rule_of(**grading: Any) -> str:
        suite = Suite.model_validate(
            {"format": 1, "name": "s", "grading": grading, "cases": [{"name": "a", "user": "x"}]}
        )
        return settings_of(suite, suite.cases[0]).grading.repeat_rule

    assert rule_of() == "every"
    assert rule_of(critics={"arcade_compatible": True}) == "last"
    assert rule_of(dimensions={"repeated_calls": "as published"}) == "last"
    assert rule_of(critics={"arcade_compatible": True}, repeat_rule="every") == "every"
    assert rule_of(repeat_rule="mean") == "mean"


def test_each_case_and_model_is_of_its_own_and_so_is_a_repeat_of_another_batch() -> None:
    runs = [
        result(Status.PASSED, 1.0, model=model, repeat=repeat)
        for _ in range(2)
        for model in "ab"
        for repeat in range(2)
    ]
    cases = case_results([*runs, result(Status.FAILED, 0.0, case="other")])
    assert [(case.runs[0].model, len(case.runs)) for case in cases] == [
        ("a", 2),
        ("b", 2),
        ("a", 2),
        ("b", 2),
        ("offline", 1),
    ]


@pytest.mark.parametrize("by", ["critics", "decision", "accuracy", "trajectory", "dimensions"])
def test_every_grader_tells_what_each_argument_earned(by: str) -> None:
    case = case_of(call("f", {"a": 1, "b": 2}), grading={"by": by})
    suite = Suite.model_validate({"format": 1, "name": "s", "cases": [case]})
    runs = [graded(suite, [("f", {"a": 1, "b": number})], repeat) for repeat, number in enumerate((2, 3))]
    (of_a, of_b) = case_result(runs).arguments
    assert of_a.normalised == (1.0, 1.0)
    assert of_b.normalised == (1.0, 0.5 if by == "dimensions" else 0.0)


def graded(suite: Suite, calls: Sequence[CallSpec], repeat: int) -> RunResult:
    (case,) = suite.cases
    run = trajectory_of(*calls)
    grades, status = grade_run(suite, case, run)
    return RunResult(str(repeat), "s", case.id, case.name, "m", repeat, status, run, grades)


def test_a_run_that_was_decided_before_any_argument_was_scored_earned_nothing_in_it() -> None:
    suite = Suite.model_validate({"format": 1, "name": "s", "cases": [case_of(call("f", {"a": 1}))]})
    runs = [graded(suite, calls, repeat) for repeat, calls in enumerate(([("f", {"a": 1})], [("f", {"a": 1})] * 2))]
    (of_a,) = case_result(runs).arguments
    assert (of_a.scores, of_a.weight) == ((1.0, 0.0), 1.0)


@given(st.lists(st.floats(allow_nan=False, max_value=1.0), min_size=1, max_size=6), st.sampled_from(RULES))
def test_any_scores_have_a_mean_and_a_deviation(scores: list[float], rule: RepeatRule) -> None:
    case = came_to(rule, *(result(Status.FAILED, score) for score in scores))
    assert case.score is not None
    assert case.deviation is not None
    assert not math.isnan(case.deviation)
    assert case.deviation >= 0


def graded_by(grader: GraderName, score: float, recall: float = 1.0) -> RunResult:
    grade = Grade(grader, score, Status.PASSED if score == 1 else Status.FAILED, "", numbers={"recall": recall})
    return result(Status.PASSED if score == 1 else Status.FAILED, grade=grade)


@pytest.mark.parametrize(
    ("runs", "status"),
    [
        ([graded_by("trajectory", 1.0), graded_by("trajectory", 10 / 11)], "failed"),
        ([graded_by("trajectory", 1.0), graded_by("trajectory", 1.0)], "passed"),
        ([graded_by("dimensions", 0.85), graded_by("dimensions", 0.8)], "passed"),
        ([graded_by("dimensions", 0.85), graded_by("dimensions", 0.7)], "failed"),
        ([graded_by("dimensions", 1.0), graded_by("dimensions", 0.94, recall=0.5)], "failed"),
    ],
)
def test_a_mean_passes_only_what_the_grader_s_own_rule_would_pass(runs: list[RunResult], status: Status) -> None:
    by: GraderName = "dimensions" if runs[0].grades[0].grader == "dimensions" else "trajectory"
    assert came_to("mean", *runs, grading=Grading(by=by, fail_threshold=0.1, warn_threshold=0.2)).status == status


FORBIDDEN = Issue("forbidden call", "this call must not be made", decides=True)
BROKE = result(Status.FAILED, 1.0, grade=Grade("critics", 1.0, Status.PASSED, "all right", issues=(FORBIDDEN,)))
NO_TOOL = graded_by("dimensions", 0.94, recall=0.5)


@given(
    st.sampled_from(RULES),
    st.sampled_from(["critics", "trajectory", "dimensions"]),
    st.lists(
        st.sampled_from([PASSED, WARNED, FAILED, BROKE, NO_TOOL, BROKEN, STOPPED, SKIPPED]), min_size=1, max_size=5
    ),
)
def test_the_figures_of_runs_come_to_what_the_runs_come_to(
    rule: RepeatRule, by: GraderName, runs: list[RunResult]
) -> None:
    case = came_to(rule, *runs, grading=Grading(by=by))
    found = join_runs([summary_of(run) for run in reversed(case.runs)])
    assert found == join_runs(case.runs)
    assert (found.status, found.score, found.reason) == (case.status, case.score, case.reason)
