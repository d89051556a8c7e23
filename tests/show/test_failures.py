"""Failures in reports: a summary by cause after the totals, everything as text, and the JSON report's part."""

from __future__ import annotations

from tests.analysis.runs import called
from tests.grading.cases import call, case_of
from workbench.analysis.causes import Failures
from workbench.analysis.failures import failures_of
from workbench.show.json.report import failures_report
from workbench.show.text import Paint
from workbench.show.views.failures import failure_lines, failures_text

WEATHER = case_of(call("weather", {"city": "Oslo"}))


def some() -> Failures:
    """A wrong tool, a wrong argument, and a run that passed."""
    return failures_of(
        [
            called(WEATHER, ("forecast", {"city": "Oslo"})),
            called(WEATHER, ("weather", {"city": "\x1b[31mRome"})),
            called(WEATHER, ("weather", {"city": "Oslo"})),
        ]
    )


def test_the_summary_names_cause_count_subject_and_advice() -> None:
    assert list(failure_lines(some().numbers, Paint(False))) == [
        "",
        "Failures by cause: 2 of 3 graded runs",
        "wrong tool      1 run  weather, but forecast was called 1×",
        "    → tell weather and forecast apart: say in both descriptions when to use which",
        "wrong argument  1 run  weather.city 1×",
        "    → describe the values of weather.city with an example, or list them as enum in the schema",
        "expected and called: weather → forecast 1×",
    ]


def test_a_short_summary_has_no_advice() -> None:
    assert not any("→ tell" in line for line in failure_lines(some().numbers, Paint(False), with_advice=False))


def test_where_nothing_failed_nothing_is_said() -> None:
    passed = failures_of([called(WEATHER, ("weather", {"city": "Oslo"}))])
    assert list(failure_lines(passed.numbers, Paint(False))) == []


def test_all_of_it_as_text_names_every_run_and_is_safe_to_show() -> None:
    text = failures_text(some(), {"suite.toml": "Suite"})
    assert " wrong tool  1 run\n" in text
    assert '     weather.city: expected "Oslo", got "\\u001b[31mRome" (not equal)\n' in text
    assert " expected  forecast  weather\n weather          1        2\n" in text
    assert "\x1b" not in text


def test_the_json_report_points_to_its_runs() -> None:
    report = failures_report(some().numbers)
    assert [(cause.cause, cause.runs, cause.main) for cause in report.causes] == [
        ("wrong tool", (0,), (0,)),
        ("wrong argument", (1,), (1,)),
    ]
    (subject,) = report.causes[0].subjects
    assert (subject.tool, subject.argument, subject.instead, subject.count) == ("weather", None, "forecast", 1)
    assert {(entry.expected, entry.called, entry.count) for entry in report.confusion} == {
        ("weather", "weather", 2),
        ("weather", "forecast", 1),
    }


def test_a_long_list_of_tools_mixed_up_says_how_much_of_it_is_missing() -> None:
    runs = [called(case_of(call(f"t{number}", {})), (f"u{number}", {})) for number in range(8)]
    *_, last = failure_lines(failures_of(runs).numbers, Paint(False))
    assert last.count("→") == 5
    assert last.endswith(", and 3 others")
