"""The results of repeats and of the graders in the text report and the JSON report."""

from __future__ import annotations

from dataclasses import replace

from tests.results import result
from workbench.analysis.gates import quality_of
from workbench.grading.grade import Grade, RunResult
from workbench.grading.status import Status
from workbench.show.json.report import CaseReport, case_fields
from workbench.show.text import Paint
from workbench.show.views.batch_text import Amount, text_report
from workbench.show.views.grades import deciders_line, grades_line
from workbench.suite.settings import Grading


def repeated(*runs: RunResult) -> list[RunResult]:
    grading = Grading(repeat_rule="majority")
    return [replace(run, run_id=f"run-{repeat}", repeat=repeat, grading=grading) for repeat, run in enumerate(runs)]


def lines_of(runs: list[RunResult], amount: Amount = "normal") -> list[str]:
    quality = quality_of(runs, {})
    return list(text_report(runs, quality, suite_names={}, width=100, paint=Paint(False), amount=amount))


TWO_OF_THREE = repeated(result(Status.PASSED, 1.0), result(Status.FAILED, 0.5), result(Status.PASSED, 1.0))


def test_under_the_runs_of_a_repeated_case_stands_what_they_come_to() -> None:
    lines = lines_of([*TWO_OF_THREE, result(Status.PASSED, 1.0, case="b")])
    assert lines[4] == "    3 runs by majority: ✓ passed · 2/3 passed or warned · flaky · mean 0.83 ± 0.24"
    assert lines[5].startswith("✓ suite › B")
    assert sum("by majority" in line for line in lines) == 1


def test_runs_that_were_not_graded_are_told() -> None:
    runs = repeated(result(Status.PASSED, 1.0), result(Status.ERROR, error="no route"))
    assert "    2 runs by majority: ✓ passed · 1/1 passed or warned · mean 1.00 ± 0.00 · 1 not graded" in lines_of(runs)


def test_quiet_shows_the_rule_where_it_shows_a_run() -> None:
    lines = lines_of(TWO_OF_THREE, "little")
    assert lines[1].startswith("✗ suite › Case #2")
    assert lines[2].startswith("    3 runs by majority: ✓ passed")


def graded(*grades: Grade) -> RunResult:
    return replace(result(Status.FAILED, 0.5), grades=grades)


def test_where_the_graders_disagree_there_is_a_mark_and_much_says_who_says_what() -> None:
    run = graded(
        Grade("critics", 0.5, Status.FAILED, "", status=Status.FAILED),
        Grade("decision", 0.9, Status.PASSED, "", status=Status.PASSED),
        Grade("accuracy", None, "not applicable", "", status=Status.PASSED),
        Grade("trajectory", None, Status.ERROR, "no answer", status=Status.ERROR),
    )
    assert "  0.50≠ " in lines_of([run])[1]
    assert "  graded by critics; ≠ the graders disagree on 1 run" in lines_of([run])
    said = "    critics ✗ 0.50 · decision ✓ 0.90 · accuracy n/a · trajectory ▲  ≠"
    assert said in lines_of([run], "much")
    assert said not in lines_of([run])


def test_graders_that_agree_are_not_marked() -> None:
    run = graded(
        Grade("critics", 0.5, Status.FAILED, "", status=Status.FAILED),
        Grade("decision", 0.4, Status.FAILED, "", status=Status.FAILED),
    )
    lines = lines_of([run])
    assert not [line for line in lines if "≠" in line]
    assert "  graded by critics" in lines


def test_several_deciding_graders_are_counted() -> None:
    by_accuracy = replace(result(Status.PASSED, 1.0, case="b"), grades=(Grade("accuracy", 1.0, Status.PASSED, ""),))
    said = deciders_line([result(Status.PASSED, 1.0), by_accuracy], Paint(False))
    assert said == "  graded by critics (1 run), accuracy (1 run)"


def test_the_name_of_a_grader_is_shown_and_not_acted_on() -> None:
    foreign = "mine\x1b]0;taken over\x07\n"
    grades = [
        Grade(foreign, 1.0, Status.PASSED, ""),
        Grade(foreign, 0.0, Status.ERROR, ""),
        Grade(foreign, 0.0, "not applicable", ""),
    ]
    shown = "mine␛]0;taken over␇⏎"
    assert grades_line(grades).strip() == f"{shown} ✓ 1.00 · {shown} ▲ · {shown} n/a"


def test_the_json_report_has_each_case_with_its_rule() -> None:
    (case,) = quality_of(TWO_OF_THREE, {}).cases
    report = CaseReport.model_validate(case_fields(case))
    assert (report.case_id, report.model, report.grader, report.rule) == ("case", "offline", "critics", "majority")
    assert (report.status, report.statuses) == ("passed", ("passed", "failed", "passed"))
    assert (round(report.score or 0, 3), round(report.deviation or 0, 3)) == (0.833, 0.236)


def test_a_case_without_a_graded_run_has_no_grader_and_no_score() -> None:
    (case,) = quality_of([result(Status.ERROR, error="no route")], {}).cases
    report = CaseReport.model_validate(case_fields(case))
    assert (report.grader, report.status, report.score, report.reason) == (None, "error", None, "no route")
