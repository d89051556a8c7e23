"""Cases in quarantine are run and graded, and decide nothing."""

from __future__ import annotations

import json

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER, WRONG
from tests.sampled_rows import first_of

HEAD = 'tags = ["demo"]'
FLAKY = WRONG.replace('name = "Wrong"', 'name = "Wrong"\ntags = ["flaky"]')


@pytest.mark.parametrize("gate", first_of(["", "min_score = 0.9\nmin_pass_rate = 1.0\n"], 1))
def test_a_case_in_quarantine_misses_no_gate_and_fails_no_run(program: Program, gate: str) -> None:
    suite = (WEATHER + FLAKY).replace(HEAD, f"{HEAD}\n[gate]\n{gate}")
    program.write("weather.toml", suite)
    assert program.run("run", "weather.toml").returncode == 1
    program.write("weather.toml", suite.replace("[gate]\n", '[gate]\nquarantine = ["flaky"]\n'))
    done = program.run("run", "weather.toml", "--record", "runs")
    assert done.returncode == 0, done.stdout
    assert "in quarantine, and in no gate: Wrong" in done.stdout
    assert "2 runs: 1 passed, 1 failed" in done.stdout
    gates = json.loads(program.run("history", "show", "2", "--format", "json").stdout)["gates"]
    assert json.loads(program.run("run", "weather.toml", "--format", "json").stdout)["nothing_graded"] is False
    assert [gate["reached"] for gate in gates] == ([1.0, 1.0] if gate else [])
    assert program.run("grade", "runs").returncode == 0


def test_a_batch_in_quarantine_alone_is_no_success_and_its_failures_are_skipped_in_junit(program: Program) -> None:
    program.write("weather.toml", (WEATHER + FLAKY).replace(HEAD, f'{HEAD}\n[gate]\nquarantine = ["demo"]'))
    done = program.run("run", "weather.toml", "--report", "junit.xml")
    assert done.returncode == 4, done.stdout
    assert "no run that counts was graded: 2 in quarantine\n" in done.stdout
    report = json.loads(program.run("run", "weather.toml", "--format", "json").stdout)
    assert (report["exit_code"], report["nothing_graded"]) == (4, True)
    junit = (program.folder / "junit.xml").read_text(encoding="utf-8")
    assert 'failures="0" errors="0"' in junit
    assert '<skipped type="quarantined" message="failed, in quarantine">' in junit
    assert "<failure" not in junit


def test_a_tag_that_no_case_has_is_warned_of(program: Program) -> None:
    program.write("weather.toml", WEATHER.replace(HEAD, f'{HEAD}\n[gate]\nquarantine = ["demo", "flakey"]'))
    assert 'no case has the tag "flakey"' in program.run("validate", "weather.toml").stderr
