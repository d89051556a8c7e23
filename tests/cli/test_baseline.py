"""`workbench run --baseline` reports changes since a batch, and `--fail-on regression` sets the exit code by them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.suites import TOO_LATE, WEATHER, WRONG
from tests.sampled_rows import first_of

BROKEN = WEATHER.replace('args = { city = "Oslo" }', 'args = { city = "Rome" }')


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A batch of one case that is right and one that is wrong; it is called main."""
    program = Program(tmp_path_factory.mktemp("baseline"))
    program.write("weather.toml", WEATHER + WRONG)
    program.run("run", "weather.toml")
    assert program.run("history", "name", "1", "main").returncode == 0
    return program


def test_without_a_regression_a_case_that_failed_before_may_fail(before: Program) -> None:
    before.write("weather.toml", WEATHER + WRONG)
    done = before.run("run", "weather.toml", "--baseline", "main", "--fail-on", "regression")
    assert done.returncode == 0
    assert "0 broke · 0 fixed · 0 moved · 2 as before" in done.stdout
    assert "✓ no regression since the baseline #1 main" in done.stdout


def test_what_broke_is_a_regression(before: Program) -> None:
    before.write("weather.toml", BROKEN + WRONG)
    done = before.run("run", "weather.toml", "--baseline", "1", "--fail-on", "regression", "--format", "json")
    report = json.loads(done.stdout)
    assert done.returncode == report["exit_code"] == 1
    assert done.stderr.endswith("regression: 1 case broke since the baseline #1 main\n")
    found = report["baseline"]
    assert (found["batch"], found["name"], found["regressed"], found["compared"]) == (1, "main", True, 2)
    assert [(change["kind"], change["case_id"]) for change in found["changes"]] == [("broke", "right")]
    assert [(test["model"], test["better"], test["worse"]) for test in found["tests"]] == [("offline", 0, 1)]
    assert "better on 0, worse on 1 of " in found["tests"][0]["sentence"]


@pytest.mark.slow
def test_a_baseline_that_another_grader_decided_is_said_to_be_one(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.write("weather.toml", WEATHER + WRONG)
    program.run("run", "weather.toml", "--by", "decision")
    note = "graded by decision before, by critics now"
    baseline = ("run", "weather.toml", "--baseline", "1", "--fail-on", "regression")
    assert f"\n  {note}\n" in program.run(*baseline).stdout
    assert json.loads(program.run(*baseline, "--format", "json").stdout)["baseline"]["notes"] == [note]
    same = program.run(*baseline, "--by", "decision", "--format", "json")
    assert (same.returncode, json.loads(same.stdout)["baseline"]["notes"]) == (0, [])


def test_a_case_that_is_gone_is_a_regression(before: Program) -> None:
    before.write("weather.toml", WEATHER)
    words = ("run", "weather.toml", "--baseline", "main", "--fail-on", "regression", "--quiet")
    done = before.run(*words, "--report", "junit.xml")
    assert done.returncode == 1
    assert '<failure type="missed" message="regression: 1 case is gone' in (before.folder / "junit.xml").read_text()
    assert "✗ Regression: 1 case is gone since the baseline #1 main\n" in done.stdout


@pytest.mark.parametrize("chosen", first_of([(), ("--model", "offline")], 1))
def test_cases_of_a_model_that_is_not_planned_are_not_gone(tmp_path: Path, chosen: tuple[str, ...]) -> None:
    program = Program(tmp_path)
    program.write("weather.toml", WEATHER)
    program.run("run", "weather.toml", "--record", "made")
    both = program.run("run", "weather.toml", "--model", "offline", "--model", "replay:made")
    assert both.returncode == 0, both.stderr
    words = ("run", "weather.toml", "--baseline", "2", "--fail-on", "regression", *chosen)
    done = program.run(*words)
    assert done.returncode == 0, done.stderr
    assert "0 broke · 0 fixed · 0 moved · 1 as before" in done.stdout
    said = "only the baseline has replay:made: only offline is compared"
    assert [line.strip() for line in done.stdout.splitlines() if "only the baseline" in line] == [said]
    assert json.loads(program.run(*words, "--format", "json").stdout)["baseline"]["notes"] == [said]
    assert said.replace("the baseline", "#2") in program.run("history", "diff", "2", "3").stdout.splitlines()


def test_a_case_that_is_not_selected_is_not_gone(before: Program) -> None:
    before.write("weather.toml", WEATHER + WRONG)
    done = before.run("run", "weather.toml", "--case", "right", "--baseline", "main", "--fail-on", "regression")
    assert done.returncode == 0
    assert "0 broke · 0 fixed · 0 moved · 1 as before" in done.stdout


def test_errors_are_no_regression_and_stay_errors(before: Program) -> None:
    before.write("weather.toml", WEATHER + WRONG + TOO_LATE)
    done = before.run("run", "weather.toml", "--baseline", "main", "--fail-on", "regression")
    assert done.returncode == 3
    assert "✓ no regression" in done.stdout


def test_without_fail_on_a_regression_is_only_told(before: Program) -> None:
    before.write("weather.toml", WEATHER)
    done = before.run("run", "weather.toml", "--baseline", "main")
    assert done.returncode == 0
    assert "✗ regression: 1 case is gone since the baseline #1 main" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--baseline", "release"), "nothing was run: there is no batch 'release' in "),
        (("--fail-on", "regression"), "--fail-on regression needs a batch to compare with"),
    ],
)
def test_a_baseline_that_is_none_is_said_before_any_run(before: Program, words: tuple[str, ...], said: str) -> None:
    before.write("weather.toml", WEATHER + WRONG)
    done = before.run("run", "weather.toml", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)


def test_a_baseline_of_another_suite_is_none(before: Program) -> None:
    before.write("other.toml", WEATHER)
    done = before.run("run", "other.toml", "--baseline", "main")
    assert (done.returncode, done.stdout) == (2, "")
    assert "batch 1 has no run of the selected cases, so it cannot be their baseline" in done.stderr
    assert (
        "(Weather was at weather.toml and is now at other.toml: a suite at a different path is a different suite)"
        in done.stderr
    )
