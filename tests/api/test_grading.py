"""Suites loaded and calls graded from Python, without a model."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import workbench
from workbench.grading.run import grade_run

GRADED = """
[[cases]]
name = "By function"
user = "What time is it?"
[[cases.ordered]]
tool = "get_time"
args = { timezone = { python = "rules:is_zone" } }

[[cases]]
name = "By judge"
user = "What time is it?"
[[cases.ordered]]
tool = "get_time"
args = { timezone = { judged = "names a city" } }

[[cases]]
name = "Chain"
tags = ["steps"]
[[cases.steps]]
user = "What time is it in Oslo?"
tool = "get_time"
args = { timezone = "Europe/Oslo" }
[[cases.steps]]
user = "Thank you."
[[cases.steps]]
user = "And in Bergen?"
tool = "get_time"

[[cases]]
name = "Relative"
user = "What was the time yesterday?"
clock = "Europe/Oslo"
grading = { invalid_arguments = "ignore" }
[[cases.ordered]]
tool = "get_time"
args = { day = { datetime = "today-1d" } }
is_error = false
result = { has_fields = { noon = true } }
"""


@pytest.fixture
def suite(folder: Path) -> workbench.LoadedSuite:
    file = folder / "clock.toml"
    file.write_text(f'tags = ["demo"]\n{file.read_text()}{GRADED}')
    (folder / "rules.py").write_text('open("imported", "w").close()\ndef is_zone(value): return "/" in value\n')
    return workbench.load(file)


def test_a_suite_knows_its_cases_and_says_which_there_are(suite: workbench.LoadedSuite) -> None:
    assert (suite.name, len(suite.cases), suite.warnings) == ("Clock", 6, ())
    assert suite.case("chain").tags == ("demo", "steps")
    with pytest.raises(KeyError, match="no case 'chian': did you mean `chain`"):
        suite.case("chian")
    with pytest.raises(workbench.SuiteError, match="there is no such file") as missing:
        workbench.load("nowhere.toml")
    assert missing.value.problems[0].line is None


def test_given_calls_are_graded_as_those_of_a_run(suite: workbench.LoadedSuite) -> None:
    case = suite.case("time-in-bergen")
    right = workbench.call("get_time", timezone="Europe/Oslo")
    result = workbench.grade(case, [right], answer="It is noon.")
    result.assert_passed()
    assert (result.passed, result.status, result.score, result.reason, result.issues) == (True, "passed", 1.0, None, ())
    trajectory = result.result.trajectory
    assert [record.call.id for record in trajectory.calls] == ["call-1"]
    assert (trajectory.final_answer, trajectory.start and trajectory.start.tools[0].name) == ("It is noon.", "get_time")
    assert grade_run(suite.definition, case.definition, trajectory) == (result.grades, result.status)

    wrong = workbench.grade(case, [[right, workbench.call("get_time", "{")]], by="accuracy")
    assert (wrong.status, wrong.grades[0].grader, len(wrong.result.trajectory.rounds)) == ("failed", "accuracy", 1)
    assert wrong.result.trajectory.calls[1].call.problem == "JSON that ends too early"
    with pytest.raises(AssertionError) as raised:
        wrong.assert_passed()
    assert str(raised.value) == wrong.details
    assert "✗ Clock › Time in Bergen" in wrong.details
    assert "Failures by cause" in wrong.details

    nothing = workbench.grade(suite.case("small-talk"), answer="I am fine.")
    assert (nothing.passed, nothing.result.trajectory.final_answer) == (True, "I am fine.")
    slow = workbench.grade(case, [right], latency_ms=60_000, by="dimensions")
    assert "latency exceeded" in {issue.kind for issue in slow.issues}
    assert (slow.result.trajectory.loop_ms, slow.result.trajectory.model_latency_ms) == (60_000, 60_000)


def test_each_answer_of_a_chain_belongs_to_a_step(suite: workbench.LoadedSuite) -> None:
    oslo, bergen = (workbench.call("get_time", timezone=f"Europe/{city}") for city in ("Oslo", "Bergen"))
    chain = suite.case("chain")
    assert workbench.grade(chain, [oslo, [], bergen]).passed
    wrong = workbench.grade(chain, [oslo, bergen])
    assert [step.status for step in wrong.result.steps] == ["passed", "failed", None]


def test_results_and_the_time_of_a_run_are_given_with_its_calls(suite: workbench.LoadedSuite) -> None:
    case, calls = suite.case("relative"), [workbench.call("get_time", day="2026-06-08")]
    now = datetime(2026, 6, 9, 1, tzinfo=timezone(timedelta(hours=2)))

    def status(*results: object) -> str:
        return workbench.grade(case, calls, results=results, now=now).status

    assert [status({"noon": True}), status('{"noon": true}'), status({"noon": False})] == ["passed", "passed", "failed"]
    assert [status(ValueError("no clock")), status(None)] == ["failed", "failed"]
    assert workbench.grade(case, calls, results=[{"noon": True}]).status == "error"
    for wrong in ({"results": [1, 2]}, {"results": [object()]}, {"now": now.replace(tzinfo=None)}):
        with pytest.raises(workbench.UsageError):
            workbench.grade(case, calls, **wrong)


def test_functions_of_checks_are_called_only_when_that_is_approved(suite: workbench.LoadedSuite, folder: Path) -> None:
    case, call = suite.case("by-function"), workbench.call("get_time", timezone="Europe/Oslo")
    with pytest.raises(workbench.ApprovalError) as refused:
        workbench.grade(case, [call])
    assert "clock.toml would, on this machine:" in str(refused.value)
    assert f"call the Python function: rules:is_zone (from {folder})" in str(refused.value)
    assert "approve=workbench.ALL" in str(refused.value)
    assert [needs.python for needs in refused.value.needs] == [("rules:is_zone",)]
    assert not (folder / "imported").exists()
    assert workbench.grade(case, [call], approve=workbench.ALL).passed
    only_rules = workbench.grade(case, [call], approve=lambda needs: needs.python == ("rules:is_zone",))
    assert only_rules.passed
    assert (folder / "imported").exists()


def test_a_check_that_needs_a_judge_is_not_graded(suite: workbench.LoadedSuite) -> None:
    result = workbench.grade(suite.case("by-judge"), [workbench.call("get_time", timezone="Oslo")])
    assert (result.status, result.passed, result.score, result.grades) == ("error", False, None, ())
    assert "needs a judge" in (result.reason or "")
    assert "needs a judge" in result.details


def test_calls_hold_what_json_holds(folder: Path) -> None:
    del folder
    words: Any = ("a", 1.5)
    assert workbench.call("search", {"words": words, "tool": 1}, tool=None).arguments == {
        "words": ["a", 1.5],
        "tool": None,
    }
    with pytest.raises(TypeError, match="the argument 'when' of search holds a value of type object"):
        workbench.call("search", when=object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="so none can be added"):
        workbench.call("search", "{", limit=1)
    with pytest.raises(TypeError, match=r"calls are made with workbench.call\(TOOL, …\) or .*, not a value of"):
        workbench.grade(workbench.load("clock.toml").case("small-talk"), [{"get_time": 1}])  # type: ignore[list-item]


def test_details_hold_no_secret(suite: workbench.LoadedSuite, folder: Path) -> None:
    (folder / ".env").write_text("CLOCK_TOKEN=planted-horse-battery\n")
    leaking = workbench.call("get_time", timezone="planted-horse-battery", **{"planted-horse-battery": 1})
    details = workbench.grade(suite.case("time-in-bergen"), [leaking], answer="planted-horse-battery").details
    assert "$CLOCK_TOKEN" in details
    assert "planted" not in details
