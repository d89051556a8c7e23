"""Whether a batch is good enough is decided by the option, else by each suite's gate, else by the statuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.analysis.runs import graded
from tests.grading.cases import call, case_of
from tests.results import result
from tests.tables import each_row
from tests.trajectories import CallSpec, trajectory_of
from workbench.analysis.gates import AggregateGate, AggregateResult, aggregates_of, gates_of, quality_of
from workbench.grading.grade import RunResult
from workbench.grading.result_json import outcome_from_json, outcome_of, outcome_to_json
from workbench.grading.run_summary import summary_of
from workbench.grading.status import Status
from workbench.show.spans import plain
from workbench.show.views.gates import aggregate_demands, gate_demands
from workbench.suite.grading_model import Gate
from workbench.suite.model import Suite


def test_without_demands_a_failed_case_misses_and_a_warned_one_does_not() -> None:
    assert quality_of([result(Status.PASSED, 1.0), result(Status.WARNED, 0.85, case="b")], {}).met
    assert not quality_of([result(Status.PASSED, 1.0), result(Status.FAILED, 0.5, case="b")], {}).met


def test_every_repeat_of_a_case_decides() -> None:
    first_bad = [result(Status.FAILED, 0.0), result(Status.PASSED, 1.0, repeat=1)]
    assert not quality_of(first_bad, {}).met
    assert not quality_of([result(Status.PASSED, 1.0), result(Status.FAILED, 0.0, repeat=1)], {}).met


def test_each_model_is_judged_on_its_own() -> None:
    assert not quality_of([result(Status.FAILED, 0.0, model="a"), result(Status.PASSED, 1.0, model="b")], {}).met


def test_a_gate_decides_for_its_suite_instead_of_the_statuses() -> None:
    runs = [result(Status.FAILED, 0.5, case="a"), result(Status.PASSED, 1.0, case="b")]
    assert quality_of(runs, {"suite.toml": Gate(min_score=0.75)}).met
    strict = quality_of(runs, {"suite.toml": Gate(min_score=0.5, min_pass_rate=0.9)})
    assert not strict.met
    assert [(gate.measure, gate.met) for gate in strict.gates] == [("mean score", True), ("pass rate", False)]


def test_a_gate_does_not_speak_for_other_suites() -> None:
    runs = [result(Status.FAILED, 0.5), result(Status.FAILED, 0.5, suite="other.toml")]
    assert not quality_of(runs, {"suite.toml": Gate(min_score=0.1)}).met


def test_the_option_wins_over_the_file() -> None:
    runs = [result(Status.FAILED, 0.5), result(Status.PASSED, 1.0, case="b")]
    gates = {"suite.toml": Gate(min_score=0.99)}
    assert quality_of(runs, gates, min_score=0.75).met
    assert not quality_of(runs, gates, min_score=0.76).met


@pytest.mark.parametrize("gate", [Gate(min_score=0.0), Gate(min_pass_rate=0.0)])
def test_no_graded_run_meets_no_gate(gate: Gate) -> None:
    assert not quality_of([result(Status.ERROR, error="no route")], {"suite.toml": gate}).met
    assert not quality_of([result(Status.ERROR, error="no route")], {}, min_score=0.0).met


def test_under_the_option_no_gate_of_an_aggregate_is_said_to_be_demanded() -> None:
    missed = AggregateResult("suite.toml", "All", "score", (), 1, {}, (AggregateGate("mean", 0.6, True, 0.5),))
    assert not quality_of([result(Status.PASSED, 0.5)], {}, aggregates=(missed,)).met
    quality = quality_of([result(Status.PASSED, 0.5)], {}, 0.4, aggregates=(missed,))
    assert quality.met
    assert [each.gates for each in quality.aggregates] == [()]


SUITE = "suite.toml"
LISTS = call("list_files", {"folder": "reports"})
RIGHT: CallSpec = ("list_files", {"folder": "reports"})
REMOVES: CallSpec = ("remove", {"file": "a"})


def test_each_model_must_meet_a_demand_unless_it_is_of_the_batch() -> None:
    runs = [
        result(Status.PASSED, 1.0, model="good"),
        result(Status.FAILED, 0.0, model="bad"),
        result(Status.SKIPPED, model="never asked"),
    ]

    def demands(gate: Gate) -> dict[str | None, bool]:
        quality = quality_of(runs, {SUITE: gate})
        assert quality.met is all(each.met for each in quality.gates)
        return {each.model: each.met for each in quality.gates}

    assert demands(Gate(min_score=0.45)) == demands(Gate(min_pass_rate=0.45)) == {"good": True, "bad": False}
    assert demands(Gate(min_score=0.45, per="batch")) == demands(Gate(min_pass_rate=0.45, per="batch")) == {None: True}
    assert not quality_of(runs, {}, min_score=0.45).met
    assert quality_of(runs[:1], {}, min_score=0.45).met
    assert [gate.model for gate in quality_of(runs[2:], {SUITE: Gate(min_score=0)}).gates] == ["never asked"]

    def aggregated(per: str, **more: Any) -> dict[str | None, tuple[int, bool]]:
        table = {"name": "All", "per": per, "statistics": ["mean"], "at_least": {"mean": 0.45}, **more}
        suite = Suite.model_validate({"format": 1, "name": "s", "cases": [case_of(name="case")], "aggregates": [table]})
        found = aggregates_of(runs, {SUITE: suite})
        assert quality_of(runs, {}, aggregates=found).met is all(each.met for each in found)
        return {each.model: (each.count, each.met) for each in found}

    assert aggregated("model") == {"good": (1, True), "bad": (1, False)}
    assert aggregated("batch") == {None: (2, True)}
    assert aggregated("model", tags=["of no case"]) == {None: (0, False)}


FAILED_BESIDE_THE_SCORE: dict[str, tuple[dict[str, Any], list[CallSpec], float | None]] = {
    "a prohibition": ({"ordered": [LISTS], "disallowed": [call("remove")]}, [RIGHT, REMOVES], 1.0),
    "an extra call": ({"ordered": [LISTS], "extra_calls": "forbid"}, [RIGHT, REMOVES], 1.0),
    "the answer": ({"ordered": [LISTS], "response": "forty-two"}, [RIGHT], 1.0),
    "no score at all": ({"response_contains": ["forty-two"]}, [], None),
    "a prohibition alone": ({"disallowed": [call("remove")]}, [REMOVES], None),
    "a step of a chain": (
        {"steps": [{"user": "a", **LISTS}, {"user": "b", "tool": "remove", "args": {"file": "b"}}]}, [], 0.0,
    ),
    "a call where none is expected": ({"expect_no_calls": True}, [REMOVES], 0.0),
}  # fmt: skip
QUANTITY = {"fail_on_tool_call_quantity": False, "fail_on_tool_selection": False}


@each_row("why", FAILED_BESIDE_THE_SCORE)
def test_a_run_that_failed_beside_its_score_counts_0_where_something_is_demanded(why: str) -> None:
    demands, calls, score = FAILED_BESIDE_THE_SCORE[why]
    fields = {"name": "bad", **demands}
    case = case_of(**fields) if "steps" not in fields else case_of().model_validate(fields)
    bad, _ = graded(case, trajectory_of(*calls, answer="Done."), critics=QUANTITY)
    bad = replace(bad, suite=SUITE)
    assert (bad.status, bad.score) == ("failed", score)
    good = result(Status.PASSED, 1.0, model=bad.model, case="good")
    stored = outcome_from_json(outcome_to_json(outcome_of(bad)))
    reread = replace(bad, status=stored.status, grades=stored.grades, steps=stored.steps)
    gate = Gate(min_score=0.6)
    for run in (bad, reread):
        [found] = quality_of([good, run], {SUITE: gate}).gates
        assert (found.reached, found.counted_zero, found.met) == (0.5, 1, False)
    assert list(gates_of(SUITE, gate, map(summary_of, (good, bad)))) == [found]
    [demand] = gate_demands([found], {SUITE: "Files"}, with_model=True)
    line = plain(demand.line)
    assert line == "gate of Files with model: mean score 0.50 (1 failed run counts 0), 0.6 required: missed"
    [option] = quality_of([good, bad, bad], {}, min_score=0.6).gates
    [demand] = gate_demands([option], {}, with_model=False)
    assert plain(demand.line) == "--min-score: mean score 0.33 (2 failed runs count 0), 0.6 required: missed"

    table = {"name": "All", "statistics": ["mean"], "at_least": {"mean": 0.6}}
    suite = Suite.model_validate({"format": 1, "name": "s", "cases": [case], "aggregates": [table]})
    [each] = aggregates_of([good, bad], {SUITE: suite})
    assert (each.statistics, each.counted_zero, each.met) == ({"mean": 0.5}, 1, False)
    demand = next(aggregate_demands([each], {SUITE: "Files"}, with_model=False))
    assert plain(demand.line) == "All of Files: score, 2 runs (1 failed run counts 0): mean 0.50"


@each_row("why", FAILED_BESIDE_THE_SCORE)
def test_an_aggregate_over_a_published_metric_is_that_metric_and_excuses_no_other_failure(why: str) -> None:
    demands, calls, score = FAILED_BESIDE_THE_SCORE[why]
    fields = {"name": "bad", **demands}
    case = case_of(**fields) if "steps" not in fields else case_of().model_validate(fields)
    bad, _ = graded(case, trajectory_of(*calls, answer="Done."), critics=QUANTITY)
    bad = replace(bad, suite=SUITE)
    table = {"name": "All", "of": "critics", "statistics": ["mean"], "at_least": {"mean": 0.0}}
    suite = Suite.model_validate({"format": 1, "name": "s", "cases": [case], "aggregates": [table]})
    [found] = aggregates_of([bad], {SUITE: suite})
    assert (found.statistics, found.counted_zero) == ({"mean": score}, 0)
    assert not quality_of([bad], {}, aggregates=(found,)).met


def test_a_demand_on_a_published_metric_decides_in_the_place_of_scores() -> None:
    low = result(Status.FAILED, 0.5, case="low")
    table = {"name": "All", "of": "critics", "statistics": ["mean"], "at_least": {"mean": 0.4}}
    suite = Suite.model_validate({"format": 1, "name": "s", "cases": [], "aggregates": [table]})
    found = aggregates_of([low], {low.suite: suite})
    assert quality_of([low], {}, aggregates=found).met


def test_what_lowers_a_score_is_counted_by_it_and_quantities_stay_what_they_are() -> None:
    forbids = case_of(LISTS, name="forbids", disallowed=[call("remove")])

    def run(calls: list[CallSpec], answer: str = "Done.", **demands: Any) -> RunResult:
        case = forbids.model_copy(update=demands)
        found, _ = graded(case, trajectory_of(*calls, answer=answer), by="trajectory")
        return replace(found, suite=SUITE)

    def mean_of(of: str, *runs: RunResult) -> float | None:
        table = {"name": "All", "of": of, "statistics": ["mean"]}
        suite = Suite.model_validate({"format": 1, "name": "s", "cases": [forbids], "aggregates": [table]})
        [found] = aggregates_of(runs, {SUITE: suite})
        return found.statistics["mean"]

    forbidden, silent = run([RIGHT, REMOVES]), run([RIGHT], response_contains=("forty-two",))
    assert [each.status for each in (forbidden, silent)] == ["failed", "failed"]
    [gate] = quality_of([forbidden], {SUITE: Gate(min_score=0.5)}).gates
    assert (gate.reached, gate.counted_zero) == (0.5, 0), "a prohibition is half of what this grader counts"
    assert (mean_of("score", silent), mean_of("trajectory", silent)) == (0, 1)
    assert mean_of("trajectory.matched", silent) == 2
    missing, _ = graded(case_of(LISTS, call("remove")), trajectory_of(RIGHT, ("a", {})), by="dimensions")
    assert missing.score
    assert quality_of([missing], {SUITE: Gate(min_score=0.0)}).gates[0].counted_zero == 1
