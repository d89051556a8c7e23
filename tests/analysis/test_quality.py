"""What decides whether a batch is good enough: the option, else each suite's gate, else the statuses."""

from __future__ import annotations

import pytest

from tests.results import result
from workbench.analysis.aggregates import AggregateGate, AggregateResult
from workbench.analysis.quality import quality_of
from workbench.suite.model import Gate


def test_without_demands_a_failed_case_misses_and_a_warned_one_does_not() -> None:
    assert quality_of([result("passed", 1.0), result("warned", 0.85, case="b")], {}).met
    assert not quality_of([result("passed", 1.0), result("failed", 0.5, case="b")], {}).met


def test_the_last_repeat_of_a_case_decides() -> None:
    first_bad = [result("failed", 0.0), result("passed", 1.0, repeat=1)]
    assert quality_of(first_bad, {}).met
    assert not quality_of([result("passed", 1.0), result("failed", 0.0, repeat=1)], {}).met


def test_each_model_is_judged_on_its_own() -> None:
    assert not quality_of([result("failed", 0.0, model="a"), result("passed", 1.0, model="b")], {}).met


def test_a_gate_decides_for_its_suite_instead_of_the_statuses() -> None:
    runs = [result("failed", 0.5, case="a"), result("passed", 1.0, case="b")]
    assert quality_of(runs, {"suite.toml": Gate(min_score=0.75)}).met
    strict = quality_of(runs, {"suite.toml": Gate(min_score=0.5, min_pass_rate=0.9)})
    assert not strict.met
    assert [(gate.measure, gate.met) for gate in strict.gates] == [("mean score", True), ("pass rate", False)]


def test_a_gate_does_not_speak_for_other_suites() -> None:
    runs = [result("failed", 0.5), result("failed", 0.5, suite="other.toml")]
    assert not quality_of(runs, {"suite.toml": Gate(min_score=0.1)}).met


def test_the_option_wins_over_the_file() -> None:
    runs = [result("failed", 0.5), result("passed", 1.0, case="b")]
    gates = {"suite.toml": Gate(min_score=0.99)}
    assert quality_of(runs, gates, min_score=0.75).met
    assert not quality_of(runs, gates, min_score=0.76).met


@pytest.mark.parametrize("gate", [Gate(min_score=0.0), Gate(min_pass_rate=0.0)])
def test_no_graded_run_meets_no_gate(gate: Gate) -> None:
    assert not quality_of([result("error", error="no route")], {"suite.toml": gate}).met
    assert not quality_of([result("error", error="no route")], {}, min_score=0.0).met


def test_under_the_option_no_gate_of_an_aggregate_is_said_to_be_demanded() -> None:
    missed = AggregateResult("suite.toml", "All", "score", (), 1, {}, (AggregateGate("mean", 0.6, True, 0.5),))
    assert not quality_of([result("passed", 0.5)], {}, aggregates=(missed,)).met
    quality = quality_of([result("passed", 0.5)], {}, 0.4, aggregates=(missed,))
    assert quality.met
    assert [each.gates for each in quality.aggregates] == [()]
