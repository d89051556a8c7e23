"""A case that expects nothing yet: its runs are shown and not graded, in no rate, gate or comparison."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.cli.test_compare import BOTH, endpoints
from tests.schemas import fits

DOCS = Path(__file__).parents[2] / "docs"
NEW = """
[[cases]]
name = "New"
user = "What is the weather in Bergen?"
expect_nothing_yet = true

[[cases]]
name = "New chain"
expect_nothing_yet = true
stop_on_failure = true
steps = [{ user = "What is the weather in Bergen?" }, {}]

[[cases]]
name = "As it always was"
user = "What is the weather in Bergen?"
"""
GATED = WEATHER.replace("[[tools]]", "[gate]\nmin_score = 1.0\nmin_pass_rate = 1.0\n\n[[tools]]", 1)


def test_runs_of_a_case_that_expects_nothing_yet_are_not_graded_anywhere(program: Program) -> None:
    file = program.write("weather.toml", GATED + NEW)
    ran = program.run("run", "weather.toml", "--record", "runs")
    assert (ran.returncode, ran.stderr.count("error")) == (0, 0), ran.stdout + ran.stderr
    assert "4 runs: 2 passed, 0 failed, 2 not graded" in ran.stdout
    assert "pass rate 100.0% of 2 graded runs" in ran.stdout
    assert "    not graded: expects nothing yet" in ran.stdout

    report = json.loads(program.run("run", "weather.toml", "--format", "json").stdout)
    fits(report, "report")
    assert {run["case_id"]: run["status"] for run in report["runs"]} == {
        "right": "passed",
        "new": "not graded",
        "new-chain": "not graded",
        "as-it-always-was": "passed",
    }
    assert (report["totals"]["not_graded"], report["totals"]["pass_rate"]) == (2, 1.0)
    assert all(gate["met"] for gate in report["gates"])
    [new] = [run for run in report["runs"] if run["case_id"] == "new"]
    assert (new["score"], new["grades"], new["error"]) == (None, [], "expects nothing yet")
    assert new["rounds"], "the run is there to be looked at"

    stored = json.loads(program.run("history", "list", "--format", "json").stdout)
    fits(stored, "history")
    batch = stored["batches"][-1]
    assert (batch["missing"], batch["pass_rate"], batch["parts"][0]["not_graded"]) == (0, 1.0, 2)
    assert "4 cases: 2 passed, 0 failed, 2 not graded" in program.run("history", "show", "1").stdout
    same = json.loads(program.run("history", "diff", "1", "2", "--format", "json").stdout)
    assert same["left_out"] == 2

    # Later expectations decide about the existing runs.
    file.write_text((GATED + NEW).replace("expect_nothing_yet = true", "expect_no_calls = true", 1), encoding="utf-8")
    again = program.run("grade", "runs", "--suite", "weather.toml")
    assert again.returncode == 1
    assert "1 failed, 1 not graded" in again.stdout


@pytest.mark.slow
def test_a_comparison_counts_such_cases_apart(program: Program) -> None:
    with endpoints(program.folder):
        suite = program.folder / "weather.toml"
        suite.write_text(suite.read_text(encoding="utf-8") + NEW.split("\n\n")[0] + "\n", encoding="utf-8")
        report = json.loads(program.run(*BOTH, "--format", "json").stdout)
    fits(report, "compare")
    assert [(each["cases"], each["graded"], each["not_graded"]) for each in report["totals"]] == [(3, 2, 1)] * 2
    assert [each["pass_rate"] for each in report["totals"]] == [1.0, 0.5]


def test_next_to_an_expectation_the_key_has_no_effect_and_is_warned_about(program: Program) -> None:
    program.write("weather.toml", WEATHER.replace('tags = ["easy"]', "expect_nothing_yet = true"))
    checked = program.run("validate", "weather.toml")
    assert checked.returncode == 0
    assert "`expect_nothing_yet` has no effect: the case expects something" in checked.stderr
    assert "1 run: 1 passed" in program.run("run", "weather.toml").stdout
