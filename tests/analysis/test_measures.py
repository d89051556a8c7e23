"""Every measure that a suite can name has all its parts."""

from dataclasses import replace

import pytest

from tests.results import result
from workbench.analysis.measures import AGAINST_SCORE, GATE_MEASURES, MEASURES, measure_of
from workbench.grading.grade import Grade, Metric
from workbench.grading.status import Status
from workbench.suite import rules
from workbench.suite.model import Gate


@pytest.mark.parametrize("name", [*rules.MEASURES, "response.polite"])
def test_every_measure_of_suites_has_all_its_parts(name: str) -> None:
    measure = measure_of(name)
    assert measure.name == name and measure.title
    assert measure.unit == "share" or not rules.is_score(name)
    assert measure.of_run(result(Status.ERROR)) in (None, 0.0)
    assert measure.values([result(Status.ERROR), result(Status.STOPPED)]) == []


def test_the_measures_of_every_run_are_those_that_suites_name_first() -> None:
    assert set(MEASURES) < set(rules.MEASURES)
    assert all(measure_of(name).by_grader for name in rules.MEASURES if name not in MEASURES)
    assert {each.name for each in AGAINST_SCORE} == {"cost_usd", "latency_ms"}
    assert all(each.pooled for each in AGAINST_SCORE)


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
    assert sorted(each.demanded(gate) or 0.0 for each in GATE_MEASURES.values()) == sorted(written.values())
    assert set(Gate.model_fields) >= set(written)
    assert all(each.reached([], 0, 0) is None and each.option.startswith("--") for each in GATE_MEASURES.values())
