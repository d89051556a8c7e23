"""Every measure that a suite can name has all its parts."""

from dataclasses import replace
from typing import get_args

from tests.results import result
from tests.tables import each_row
from workbench.analysis.measures import (
    COST,
    DECIDING_MEASURES,
    GATE_MEASURES,
    LATENCY,
    MEASURES,
    PAIRED_MEASURES,
    PARETO_MEASURES,
    TOKENS,
    Growth,
    Measure,
    measure_of,
)
from workbench.analysis.totals import totals_of
from workbench.grading.grade import Grade, Metric
from workbench.grading.status import Status
from workbench.suite import rules
from workbench.suite.grading_model import ComparedBy, Gate


@each_row("name", [*rules.MEASURES, "response.polite"])
def test_every_measure_of_suites_has_all_its_parts(name: str) -> None:
    measure = measure_of(name)
    assert measure.name == name and measure.title
    assert measure.unit == "share" or not rules.is_score(name)
    assert measure.is_worse(-0.25) or not rules.is_score(name)
    assert measure.of_run(result(Status.ERROR)) in (None, 0.0)
    assert measure.values([result(Status.ERROR), result(Status.STOPPED)]) == []


def test_the_measures_of_every_run_are_those_that_suites_name_first() -> None:
    assert set(MEASURES) == set(rules.RUN_MEASURES)
    assert all(measure_of(name).by_grader for name in rules.MEASURES if name not in MEASURES)
    assert {each.name for each in PARETO_MEASURES} == {"cost_usd", "latency_ms"}
    assert all(each.is_worse(1.0) for each in PARETO_MEASURES)


@each_row("measure", dict.fromkeys((*MEASURES.values(), *PAIRED_MEASURES)))
def test_every_measure_of_all_suites_is_pooled_tested_and_worded(measure: Measure) -> None:
    totals, nothing = totals_of([result(Status.PASSED, 0.5, cost_usd=0.25)]), totals_of([])
    assert (measure.is_worse(-0.25), measure.is_worse(0.25)) in ((True, False), (False, True))
    assert measure.pooled
    for pooled in (*measure.pooled, *filter(None, [measure.per_run])):
        assert pooled.title and pooled.how
        assert pooled.of(nothing) is None
        assert measure.text(pooled.of(totals))
    assert (measure in PAIRED_MEASURES) == isinstance(measure.test, str) == (measure.of_case is not None)
    assert measure.test is not None or measure in (COST, TOKENS), "a change of cost or tokens decides nothing"


def test_a_latency_is_worse_that_grew_by_a_factor_and_by_an_amount() -> None:
    assert isinstance(LATENCY.test, Growth)
    assert LATENCY.test.is_worse(1_000, 1_500)
    assert not LATENCY.test.is_worse(1_000, 1_499)
    assert not LATENCY.test.is_worse(100, 299)
    assert not LATENCY.test.is_worse(None, 5_000)


def test_values_of_runs() -> None:
    grade = Grade("trajectory", 0.5, Status.FAILED, "", numbers={"matched": 3.0})
    run = result(Status.FAILED, grade=grade, cost_usd=0.25)
    assert measure_of("cost_usd").of_run(run) == 0.25
    assert measure_of("trajectory").of_run(run) == 0.5
    assert measure_of("trajectory.matched").of_run(run) == 3.0
    assert measure_of("critics").of_run(run) is None
    assert measure_of("tokens").of_run(result(Status.PASSED, 1.0, rounds=2)) == 16.0
    assert measure_of("response.polite").of_run(run) is None
    assert measure_of("response.polite").of_run(replace(run, metrics=(Metric("polite", 0.75, holds=True),))) == 0.75


def test_every_demand_of_a_gate_is_measured() -> None:
    written = {"min_score": 0.5, "min_pass_rate": 0.25}
    gate = Gate.model_validate(written)
    assert sorted(each.threshold_of(gate) or 0.0 for each in GATE_MEASURES.values()) == sorted(written.values())
    assert set(Gate.model_fields) >= set(written)
    assert all(each.reached([], 0, 0) is None and each.option.startswith("--") for each in GATE_MEASURES.values())
    assert all(each.name == each.measure.pooled[0].title for each in GATE_MEASURES.values())


def test_every_question_that_a_suite_can_ask_is_tested_in_pairs() -> None:
    assert set(DECIDING_MEASURES) == set(get_args(ComparedBy))
    assert set(DECIDING_MEASURES.values()) <= set(PAIRED_MEASURES)
