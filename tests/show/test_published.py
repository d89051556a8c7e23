from __future__ import annotations

from tests.results import result
from workbench.grading.status import Status
from workbench.show.json.report import published_summaries
from workbench.show.spans import plain
from workbench.show.views.published import published_lines

RUNS = [result(Status.PASSED, 1.0), result(Status.FAILED, 0.5, case="other")]


def test_a_suite_has_one_line_and_its_details_when_asked() -> None:
    line = "  Weather as Arcade evals reports it: 2 cases, 1 passed, 1 failed, pass rate 50.00%"
    names = {"suite.toml": "Weather"}
    assert list(map(plain, published_lines(RUNS, names, with_details=False))) == [line]
    assert list(map(plain, published_lines(RUNS, names, with_details=True))) == [
        line,
        "    case: 100.00%, passed",
        "    other: 50.00%, failed",
    ]


def test_several_models_are_told_apart_and_names_are_made_safe() -> None:
    runs = [result(Status.PASSED, 1.0, model=model) for model in ("one\x1b[2J", "two")]
    lines = list(map(plain, published_lines(runs, {}, with_details=False)))
    assert [line.partition(" as Arcade")[0] for line in lines] == [
        "  suite with one␛[2J",
        "  suite with two",
        "  suite",
    ]


def test_the_json_report_names_suite_model_grader_and_system() -> None:
    (summary,) = published_summaries(RUNS)
    assert (summary.suite, summary.model, summary.grader, summary.system) == (
        "suite.toml",
        "offline",
        "critics",
        "Arcade evals",
    )
    assert summary.numbers["pass_rate"] == 50.0
