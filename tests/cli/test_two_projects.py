"""Two projects that share a history have separate suites, even at the same path in each project."""

from __future__ import annotations

import json

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER

BROKEN = WEATHER.replace('args = { city = "Oslo" }', 'args = { city = "Rome" }')

TWO = ("one/weather.toml", "two/weather.toml")


@pytest.fixture(scope="module")
def two_projects(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A batch over two projects, each with a suite at the same path and a passed case called main. The first project's
    case has since become wrong."""
    program = Program(tmp_path_factory.mktemp("two"))
    for file in TWO:
        program.write(file, WEATHER)
    program.run("run", *TWO)
    assert program.run("history", "name", "1", "main").returncode == 0
    program.write(TWO[0], BROKEN)
    return program


def test_what_broke_in_one_of_two_projects_is_not_hidden_by_the_other(two_projects: Program) -> None:
    done = two_projects.run("run", *TWO, "--baseline", "main", "--fail-on", "regression", "--format", "json")
    found = json.loads(done.stdout)["baseline"]
    assert (done.returncode, found["compared"], found["as_before"]) == (1, 2, 1)
    assert [(change["kind"], change["suite"]) for change in found["changes"]] == [("broke", TWO[0])]


def test_a_diff_has_the_cases_of_both_projects(two_projects: Program) -> None:
    said = two_projects.run("history", "diff", "1", "1").stdout
    assert "2 as before" in said


def test_only_the_project_that_is_run_is_held_against_the_baseline(two_projects: Program) -> None:
    done = two_projects.run("run", TWO[1], "--baseline", "main", "--fail-on", "regression")
    assert (done.returncode, "1 as before" in done.stdout) == (0, True)


def test_a_baseline_of_another_checkout_is_one(two_projects: Program) -> None:
    two_projects.run("run", TWO[1])
    newest = json.loads(two_projects.run("history", "list", "--format", "json").stdout)["batches"][0]["number"]
    two_projects.write("three/weather.toml", BROKEN)
    words = ("--baseline", str(newest), "--fail-on", "regression")
    done = two_projects.run("run", "three/weather.toml", *words)
    assert done.returncode == 1
    assert f"regression: 1 case broke since the baseline #{newest}" in done.stdout
    assert str(two_projects.folder / "two") not in done.stdout + done.stderr


def test_each_project_has_its_own_trend_and_its_own_case_over_time(two_projects: Program) -> None:
    two_projects.run("run", TWO[0])
    listed = two_projects.run("history", "list").stdout
    assert listed.count("Weather (one/weather.toml)") == listed.count("Weather (two/weather.toml)") == 1
    number = str(json.loads(two_projects.run("history", "list", "--format", "json").stdout)["batches"][0]["number"])
    said = two_projects.run("history", "show", number, "--case", "right").stdout
    assert "failed" in said
    assert "the suite" not in said.split("batches, scores by height")[0]
    newest = json.loads(two_projects.run("history", "show", number, "--case", "right", "--format", "json").stdout)
    assert {run["status"] for run in newest["runs"] if run["batch"] > 1} == {"failed"}


def test_a_suite_that_is_graded_again_stands_for_itself_alone(two_projects: Program) -> None:
    said = two_projects.run("grade", "1", "--suite", TWO[0], "--format", "json").stdout
    runs = json.loads(said)["batches"][0]["runs"]
    assert sorted(run["after"]["status"] for run in runs) == ["failed", "passed"]
