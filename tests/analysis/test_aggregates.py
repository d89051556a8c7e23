"""Statistics over the runs of suites and the gates on them. The vectors define each statistic."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results import result
from tests.trajectories import trajectory_of
from workbench.analysis.gates import AggregateResult, aggregates_of, quality_of, statistic
from workbench.grading.grade import Grade, Metric, RunResult
from workbench.grading.run import GRADERS_BY_NAME, grade_run
from workbench.grading.status import Status, Verdict
from workbench.suite.grading_model import Gate, GraderName, Statistic
from workbench.suite.model import Suite
from workbench.suite.rules import GRADER_QUANTITIES, MEASURES, STATISTICS

SUITE = "suite.toml"


def suite_of(*aggregates: dict[str, Any], **more: Any) -> Suite:
    cases = [{"name": name, "user": "go", "tags": [name]} for name in ("a", "b", "c")]
    return Suite.model_validate(
        {"format": 1, "name": "suite", "cases": cases, "aggregates": [{"name": "All", **each} for each in aggregates]}
        | more
    )


def aggregate(runs: list[RunResult], **table: Any) -> AggregateResult:
    [found] = aggregates_of(runs, {SUITE: suite_of(table)})
    return found


def run(score: float | None, case: str = "a", **numbers: float) -> RunResult:
    """A run whose deciding grade is of `trajectory`."""
    verdict: Verdict = "not applicable" if score is None else Status.PASSED if score == 1 else Status.FAILED
    status: Status = Status.FAILED if verdict == Status.FAILED else Status.PASSED
    return result(status, score, case=case, grade=Grade("trajectory", score, verdict, "by hand", numbers=numbers))


def test_the_deciding_score_is_aggregated_unless_something_else_is_named() -> None:
    found = aggregate([run(1.0), run(0.5, "b"), run(0.0, "c")])
    assert (found.name, found.of, found.count) == ("All", "score", 3)
    assert found.statistics == {
        "mean": 0.5, "median": 0.5, "mode": 0.0, "minimum": 0.0, "maximum": 1.0, "spread": 0.5,
    }  # fmt: skip


def test_a_grader_its_numbers_and_the_latency_can_be_named() -> None:
    runs = [run(1.0, matched=3.0), run(0.5, "b", matched=1.0)]
    wanted = {"statistics": ["mean"]}
    assert aggregate(runs, of="trajectory", **wanted).statistics == {"mean": 0.75}
    assert aggregate(runs, of="trajectory.matched", **wanted).statistics == {"mean": 2.0}
    assert aggregate(runs, of="latency_ms", **wanted).statistics == {"mean": runs[0].trajectory.model_latency_ms}
    assert aggregate(runs, of="critics", **wanted).count == 0


def test_named_checks_tokens_and_cost_can_be_named_and_gated_from_above() -> None:
    values = (0.25, 0.5, 1.0)
    runs = [replace(run(1.0), metrics=(Metric("polite", value, value > 0.4),), cost_usd=value) for value in values]
    runs.append(run(1.0, "b"))  # has no such check, and no price
    found = aggregate(runs, of="response.polite", statistics=["mean", "p95"], at_least={"minimum": 0.25})
    assert (found.count, found.met) == (3, True)
    assert found.statistics == {"mean": pytest.approx(1.75 / 3), "p95": 1.0}
    assert aggregate(runs, of="tokens", statistics=["mean"]).statistics == {"mean": 8}
    assert not aggregate(runs, of="cost_usd", at_most={"p95": 0.99}).met
    assert aggregate(runs, of="cost_usd", at_most={"p95": 1.0}).met
    assert not aggregate([run(1.0)], of="cost_usd", at_most={"p95": 1.0}).met


def test_runs_without_a_value_are_left_out() -> None:
    runs = [
        run(1.0),
        run(None, "b"),
        result(Status.ERROR, case="c", error="no route"),
        result(Status.SKIPPED),
        result(Status.STOPPED),
    ]
    assert aggregate(runs).count == 1


def test_tags_choose_cases() -> None:
    runs = [run(1.0), run(0.5, "b"), run(0.0, "c")]
    assert aggregate(runs, tags=["a", "b"], statistics=["mean"]).statistics == {"mean": 0.75}


def test_a_tag_of_the_suite_is_one_of_every_case() -> None:
    [found] = aggregates_of([run(1.0), run(0.0, "c")], {SUITE: suite_of({"tags": ["every"]}, tags=["every"])})
    assert found.count == 2


def test_every_suite_that_was_run_has_its_own() -> None:
    suites = {SUITE: suite_of({}), "other.toml": suite_of({}, {}), "idle.toml": suite_of({})}
    found = aggregates_of([run(1.0), result(Status.PASSED, 0.9, suite="other.toml")], suites)
    assert [(each.suite, each.count) for each in found] == [(SUITE, 1), ("other.toml", 1), ("other.toml", 1)]


@pytest.mark.parametrize(
    ("gates", "met"),
    [
        ({"at_least": {"mean": 0.75}}, True),
        ({"above": {"mean": 0.75}}, False),
        ({"above": {"mean": 0.7}, "at_least": {"minimum": 0.6}}, False),
        ({"at_least": {"variance": 0.1}}, True),
    ],
)
def test_a_gate_asks_for_a_statistic_whether_it_is_told_or_not(gates: dict[str, Any], met: bool) -> None:
    assert aggregate([run(1.0), run(0.5, "b")], statistics=["mean"], **gates).met is met


def test_a_mean_that_only_rounding_lifts_above_the_threshold_is_not_above_it() -> None:
    runs = [run(0.1), run(0.1, "b"), run(0.1, "c")]
    assert not aggregate(runs, above={"mean": 0.1}).met
    assert aggregate(runs, at_least={"mean": 0.1}).met


def test_no_value_meets_no_gate() -> None:
    found = aggregate([run(None)], at_least={"mean": 0.0, "minimum": -1.0}, above={"spread": 0.0})
    assert found.statistics["mean"] is None
    assert [gate.met for gate in found.gates] == [False, False, False]


def judged(runs: list[RunResult], *aggregates: dict[str, Any], **more: Any) -> bool:
    return quality_of(runs, aggregates=aggregates_of(runs, {SUITE: suite_of(*aggregates)}), **{"gates": {}, **more}).met


def test_a_gate_decides_for_its_suite_instead_of_the_statuses() -> None:
    runs = [run(1.0), run(0.5, "b")]
    assert not judged(runs, {})
    assert judged(runs, {"at_least": {"mean": 0.7}})
    assert not judged(runs, {"at_least": {"mean": 0.7}}, gates={SUITE: Gate(min_score=0.9)})
    assert not judged(runs, {"at_least": {"mean": 0.8}}, gates={SUITE: Gate(min_score=0.7)})


def test_the_option_wins_over_it() -> None:
    assert judged([run(1.0), run(0.5, "b")], {"at_least": {"mean": 0.9}}, min_score=0.7)


def test_it_does_not_speak_for_other_suites() -> None:
    runs = [run(1.0), result(Status.FAILED, 0.1, suite="other.toml")]
    assert not judged(runs, {"at_least": {"mean": 0.5}})


def test_every_number_that_a_grader_gives_can_be_aggregated() -> None:
    cases: list[dict[str, Any]] = [
        {"name": "one", "user": "go", "ordered": [{"tool": "a"}]},
        {
            "name": "any order",
            "user": "go",
            "unordered": [{"tool": "a"}],
            "grading": {"accuracy": {"mode": "flexible", "answer_checks": "averaged"}},
            "response": {"says": {"contains": "x"}},
        },
    ]
    suite = Suite.model_validate({"format": 1, "name": "suite", "cases": cases})
    given: dict[str, set[str]] = {grader: set() for grader in GRADERS_BY_NAME}
    for case in suite.cases:
        grades, _ = grade_run(suite, case, trajectory_of(("a", {}), ("b", {})))
        for grade in grades:
            given[grade.grader] |= grade.numbers.keys()
    assert set(GRADER_QUANTITIES) == set(get_args(GraderName)) <= set(MEASURES)
    assert {grader: set(numbers) for grader, numbers in GRADER_QUANTITIES.items() if given[grader]} == {
        grader: numbers for grader, numbers in given.items() if numbers
    }


finite = st.floats(min_value=-1e6, max_value=1e6)


@given(st.lists(finite, min_size=1, max_size=8), st.sampled_from(["mean", "median", "mode"]))
def test_what_is_in_the_middle_lies_between_the_ends(values: list[float], name: Statistic) -> None:
    found = statistic(name, values)
    assert found is not None
    assert min(values) - 1e-6 <= found <= max(values) + 1e-6


@given(st.lists(finite | st.just(-math.inf), max_size=6), st.data())
def test_no_statistic_depends_on_the_order_of_the_values_or_is_no_number(
    values: list[float], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(values))
    for name in STATISTICS:
        found = statistic(name, values)
        assert found == statistic(name, shuffled)
        assert found is None or not math.isnan(found)


def test_a_run_that_a_rule_of_critics_decided_earned_nothing() -> None:
    scored = result(
        Status.PASSED, grade=Grade("critics", 1.0, Status.PASSED, "", numbers={"earned": 8.0, "possible": 8.0})
    )
    too_many = result(Status.FAILED, case="b", grade=Grade("critics", 0.0, Status.FAILED, "2 calls for 1"))
    aside = result(Status.PASSED, case="c", grade=Grade("critics", None, "not applicable", "nothing expected"))
    found = aggregate([scored, too_many, aside], of="critics.earned", at_least={"mean": 8})
    assert (found.count, found.statistics["mean"], found.met) == (2, 4.0, False)


def test_numbers_whose_sum_is_beyond_a_float_have_statistics() -> None:
    found = aggregate([run(-1.7e308), run(-1.7e308, "b")], statistics=["mean", "median", "spread", "variance"])
    assert found.statistics == {"mean": -1.7e308, "median": -1.7e308, "spread": 0.0, "variance": 0.0}
    assert statistic("variance", [-1.7e308, 1.7e308, 0.0, 0.0]) == math.inf
