"""Chains on the command line: each step with its sign, its score and why, in every report and from recordings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.suites import CHAIN, WEATHER
from tests.schemas import fits

DOCS = Path(__file__).parents[2] / "docs"
RECORDING = "out/weather.chain.offline.1.run.jsonl"
STOPPING = CHAIN.replace('name = "Chain"', 'name = "Chain"\nstop_on_failure = true')


def test_every_step_is_shown_as_it_is_judged_and_in_the_report(program: Program) -> None:
    program.write("weather.toml", WEATHER + CHAIN)
    done = program.run("run", "weather.toml", "--case", "chain")
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert "Chain  ✓ step 1  1.00  1 of 1 argument right" in lines
    assert "    ✓ step 1  1.00  1 of 1 argument right" in lines
    at = lines.index("    ✗ step 2  0.50  0 of 1 argument right")
    assert lines[at + 1].startswith('      wrong argument: call 2 get_weather.city: expected "Rome", got "Bergen"')


def test_the_json_report_has_the_steps_of_each_run_and_another_grader_may_judge_them(program: Program) -> None:
    program.write("weather.toml", WEATHER + STOPPING)
    runs = {}
    for by in ("critics", "dimensions"):
        done = program.run("run", "weather.toml", "--format", "json", "--by", by, "--repeats", "2")
        report = json.loads(done.stdout)
        fits(report, "report")
        runs[by] = [run for run in report["runs"] if run["case_id"] == "chain"]
        assert all(run["steps"] == [] for run in report["runs"] if run["case_id"] == "right")
    for run in runs["critics"]:
        assert [(step["status"], step["call"]) for step in run["steps"]] == [("passed", 0), ("failed", 1)]
        assert [issue["call"] for issue in run["steps"][1]["issues"]] == [1]
        assert [round_["step"] for round_ in run["rounds"]] == [1, 2]
    assert [[step["status"] for step in run["steps"]] for run in runs["dimensions"]] == [["passed", "passed"]] * 2


@pytest.mark.slow
def test_a_recorded_chain_is_graded_again_step_by_step(program: Program) -> None:
    program.write("weather.toml", WEATHER + CHAIN)
    program.run("run", "weather.toml", "--case", "chain", "--record", "out")
    (program.folder / "weather.toml").unlink()
    done = program.run("grade", RECORDING, "--by", "trajectory")
    assert done.returncode == 1, done.stderr
    assert "    ✗ step 2  0.00  0 of 1 met" in done.stdout.splitlines()
    report = json.loads(program.run("grade", RECORDING, "--format", "json").stdout)
    fits(report, "grade-report")
    assert [step["status"] for step in report["runs"][0]["steps"]] == ["passed", "failed"]
    assert not report["regraded"][0]["moved"]


def test_a_run_of_an_ordinary_case_can_be_graded_as_a_chain(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    program.run("run", "weather.toml", "--record", "out")
    chain = CHAIN.replace('"Chain"', '"Chain"\nid = "right"')
    program.write("weather.toml", WEATHER[: WEATHER.index("[[cases]]")] + chain)
    done = program.run("grade", "out", "--suite", "weather.toml")
    assert "    ✓ step 1  1.00  1 of 1 argument right" in done.stdout.splitlines()
    assert "    ✗ step 2  0.00  quantity: 1 call expected, 0 made" in done.stdout.splitlines()


def test_a_chain_that_stopped_is_played_again_and_says_where_it_has_nothing_to_play(program: Program) -> None:
    stopping_first = STOPPING.replace('city = "Oslo"', 'city = "Paris"')
    program.write("weather.toml", WEATHER + stopping_first)
    program.run("run", "weather.toml", "--case", "chain", "--record", "out")
    words = ("run", "weather.toml", "--case", "chain", "--model", f"replay:{RECORDING}")
    again = program.run(*words).stdout
    assert "    – step 2     –  never reached: the chain stops at the first step that fails" in again.splitlines()
    further = program.run(*words, "--by", "dimensions")
    assert further.returncode == 3
    assert "the recorded chain stopped at a failed step, which does not fail now" in further.stdout
