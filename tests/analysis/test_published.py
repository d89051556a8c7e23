"""The figures that the published systems would report for a batch."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from tests.results import result
from tests.tables import each_row
from workbench.analysis.published_reports import PublishedReport, printed_latency, published_reports, system_of
from workbench.grading.grade import CallPairing, Grade, Issue, RunResult, StepGrade
from workbench.grading.run import GRADERS_BY_NAME
from workbench.grading.status import Status
from workbench.suite.settings import Grading
from workbench.trajectory.trajectory import Trajectory


def by(grader: str, score: float | None, verdict: Any, *issues: Issue, **more: Any) -> RunResult:
    """A run that a grader decided; `numbers` are those of `dimensions`."""
    numbers = {"precision": 1.0, "recall": 1.0, "parameters": 2 / 3, "content": 1.0, "latency_ms": 10.5}
    status = Status.PASSED if verdict == "not applicable" else Status(verdict)
    verdict = verdict if verdict == "not applicable" else status
    return result(
        status,
        grade=Grade(grader, score, verdict, "", (), issues, numbers),
        **more,
    )


def the_report(*runs: RunResult) -> PublishedReport:
    (report,) = published_reports(runs)
    return report


def numbers_of(*runs: RunResult) -> dict[str, Any]:
    return dict(the_report(*runs).summary.numbers)


def test_every_grader_has_a_published_system_behind_it() -> None:
    assert len({id(system_of(name)) for name in GRADERS_BY_NAME}) == len(GRADERS_BY_NAME)


def test_a_suite_is_reported_by_the_system_of_the_grader_that_decides_it() -> None:
    arcade, dimensions = by("critics", 1.0, "passed", suite="a"), by("dimensions", 1.0, "passed", suite="b")
    reports = list(published_reports([arcade, dimensions]))
    assert [(report.suite, report.model, report.grader) for report in reports] == [
        ("a", "offline", "critics"),
        ("b", "offline", "dimensions"),
    ]


def test_runs_without_a_word_on_the_model_are_left_out() -> None:
    left_out = [result(Status.ERROR), result(Status.SKIPPED), by("critics", None, "not applicable")]
    assert list(published_reports(left_out)) == []


def test_a_run_counts_by_the_grader_s_verdict_whatever_else_failed_it() -> None:
    run = replace(by("critics", 1.0, Status.PASSED), status=Status.FAILED)
    assert numbers_of(run)["passed"] == 1


def test_arcade_s_numbers_are_percentages_with_two_digits() -> None:
    runs = [
        by("critics", 0.8571428, "passed", case="a"),
        by("critics", 0.5, "failed", case="b"),
        by("critics", 0.85, "warned", case="c"),
    ]
    summary = the_report(*runs).summary
    assert summary.headline == "3 cases, 2 passed, 1 failed, pass rate 66.67%"
    assert summary.numbers == {
        "total": 3,
        "passed": 2,
        "warned": 0,
        "failed": 1,
        "pass_rate": 66.67,
        "cases": [
            {"case": "a", "status": "passed", "score": 85.71},
            {"case": "b", "status": "failed", "score": 50.0},
            {"case": "c", "status": "passed", "score": 85.0},
        ],
    }


def test_arcade_warns_below_a_fail_threshold_that_lies_above_and_counts_that_in_no_rate() -> None:
    run = replace(by("critics", 0.85, "warned"), grading=Grading(fail_threshold=0.9, warn_threshold=0.8))
    headline = "1 case, 0 passed, 1 warned, 0 failed, pass rate 0.00%, warned not counted"
    assert the_report(run).summary.headline == headline


def test_arcade_puts_the_repeats_of_a_case_together_by_its_rule() -> None:
    runs = [by("critics", 0.5, "failed", repeat=0), by("critics", 1.0, "passed", repeat=1)]
    assert numbers_of(*runs)["cases"] == [{"case": "case", "status": "passed", "score": 75.0}]


def test_arcade_compares_models_by_pass_rate_and_case_by_case() -> None:
    runs = [
        by("critics", 1.0, "passed", case="a", model="m"),
        by("critics", 0.5, "failed", case="b", model="m"),
        by("critics", 1.0, "passed", case="a", model="n"),
        by("critics", 0.9, "passed", case="b", model="n"),
    ]
    comparison = list(published_reports(runs))[-1]
    assert comparison.model is None
    assert comparison.summary.numbers == {
        "best_model": "n",
        "pass_rates": {"m": 50.0, "n": 100.0},
        "best_by_case": {"a": "Tie", "b": "n"},
    }
    assert comparison.summary.headline == "best model n, pass rate 100.00%"
    assert list(published_reports(runs[1:]))[-1].summary.headline.endswith("100.00%, the cases of the models differ")


def test_of_equal_pass_rates_the_first_model_is_the_best() -> None:
    runs = [by("critics", 1.0, "passed", model=model) for model in ("z", "a")]
    assert list(published_reports(runs))[-1].summary.numbers["best_model"] == "z"


def test_an_infinitely_bad_score_is_a_number_in_the_report() -> None:
    (case,) = numbers_of(by("critics", float("-inf"), "failed"))["cases"]
    assert -math.inf < case["score"] < -1e300


def test_the_five_dimensions_are_reported_with_advice_from_what_failed() -> None:
    wrong = Issue("wrong argument", "not equal", "f", 0, 0, "a")
    needless = Issue("extra call", "no calls are expected", "f", 0, decides=True)
    runs = [
        by("dimensions", 1.0, "passed", wrong, case="a"),
        by("dimensions", 0.7, "failed", wrong, case="b"),
        by("dimensions", 0.0, "failed", needless, case="c"),
    ]
    summary = the_report(*runs).summary
    assert summary.headline == (
        "1 of 3 passed (33.3%), score 0.567, precision 1.0, recall 1.0, parameters 0.667, 10 ms"
    )
    assert summary.details == (
        "failed: b, c",
        "parameters were wrong: describe them better, with examples: b",
        "tools were called needlessly: say when not to call them: c",
    )
    assert summary.numbers["failures"] == ["b", "c"]


def test_apple_s_metrics_come_with_their_statistics() -> None:
    runs = [by("trajectory", 0.5, "failed", case="a"), by("trajectory", 1.0, "passed", case="b")]
    assert the_report(*runs).summary.headline == "1 of 2 all pass, percentage mean 0.75"
    assert numbers_of(*runs)["all_pass"]["mean"] == 0.5


def test_toolvaluator_s_score_is_a_mean_and_two_latencies_have_no_percentiles() -> None:
    runs = [by("decision", 0.5, "failed", case="a"), by("decision", 1.0, "passed", case="b")]
    numbers = numbers_of(*runs)
    assert (numbers["score"], numbers["examples"]) == (0.75, 2)
    assert numbers["latency"] == {"mean": 2.0, "p50": None, "p95": None, "max": 2.0}
    headline = "overall score 0.750 of 2 examples, latency mean 2.0, max 2.0 ms"
    assert the_report(*runs).summary.headline == headline


def test_toolvaluator_s_chains_are_counted_with_their_steps() -> None:
    steps = (StepGrade(1, Status.PASSED, 1.0, ""), StepGrade(2, None, None, "not reached"))
    chain = replace(by("decision", 0.5, "failed", case="a"), steps=steps)
    assert (numbers_of(chain)["chains"], numbers_of(chain)["steps"]) == (1, 2)
    both = the_report(chain, by("decision", 1.0, "passed", case="b")).summary
    assert both.headline.startswith("overall score 0.750 of 1 example and 1 chain of 2 steps")


@each_row("number", [*range(1, 45), 100, 1000])
def test_toolvaluator_s_percentiles_are_shown_where_there_are_enough_values_and_in_their_order(number: int) -> None:
    latency = printed_latency([float(each**2) for each in range(number)])
    assert latency.has_percentiles is ("p95" in str(latency)) is (number >= 20)
    assert latency.p50 <= latency.p95 or not latency.has_percentiles


def test_toolvaluator_prints_no_latency_where_none_was_measured() -> None:
    run = replace(by("decision", 1.0, "passed"), trajectory=Trajectory("run"))
    assert the_report(run).summary.headline == "overall score 1.000 of 1 example"


def test_evalite_s_average_is_a_percentage_with_halves_rounded_up_and_the_counts_under_its_names() -> None:
    counts = {"expected": 2.0, "made": 1.0, "exact": 1.0, "name_only": 0.0, "wrong": 0.0}
    run = result(Status.FAILED, case="a", grade=Grade("accuracy", 0.625, Status.FAILED, "", numbers=counts))
    summary = the_report(run).summary
    assert summary.headline == "score 63%, 1 eval"
    assert summary.details == ("A: 63%",)
    metadata = {"mode": "exact", "exactMatches": 1, "nameOnlyMatches": 0, "wrongOrMissing": 0}
    totals = {"reference": 2, "output": 1}
    assert summary.numbers["evals"] == [{"name": "A", "score": 0.625, "metadata": {**metadata, "totals": totals}}]


def test_arcade_s_mean_of_repeats_knows_nothing_of_requirements_either() -> None:
    keyword = Issue("response", "the answer lacks 'rain'", decides=True)
    run = replace(by("critics", 1.0, Status.PASSED, keyword), status=Status.FAILED, grading=Grading(repeat_rule="mean"))
    assert numbers_of(run)["passed"] == 1


def test_a_call_of_an_unexpected_tool_is_of_the_wrong_tools_also_where_extra_calls_are_forbidden() -> None:
    forbidden = Issue("extra call", "extra calls are forbidden", "u", 1, decides=True)
    run = by("dimensions", 0.7, "failed", forbidden)
    expecting = run.grades[0]._replace(pairings=(CallPairing(0, 0, True, 1.0, 1.0),))
    analysis = numbers_of(replace(run, grades=(expecting,)))["analysis"]
    assert (analysis["wrong_tool"], analysis["over_calling"]) == (["case"], [])
