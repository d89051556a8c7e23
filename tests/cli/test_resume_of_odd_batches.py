"""A batch can be resumed although a finished part of it is unreadable, and a message says so."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER, WRONG
from tests.history.unpacking import texts_in
from tests.providers.server import Answer, Call, Request, Server, said
from workbench.history.history import History

TWO = WEATHER + WRONG
OTHER = WEATHER.replace('name = "Weather"', 'name = "Other"')
TOKEN = "planted-4711-0815"
MODEL = '[models.local]\nprovider = "openai"\nmodel = "m"\nbase_url = "{url}/v1"\n'


@pytest.fixture
def program(program: Program) -> Program:
    """The program in a project with its own history."""
    program.write("workbench.toml", "")
    (program.folder / ".workbench").mkdir()
    return program


def change(program: Program, *statements: str) -> None:
    """Change the history by hand."""
    with closing(sqlite3.connect(program.folder / ".workbench" / "history.sqlite3")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def lose(program: Program, place: int) -> None:
    """Delete a run of the first batch, as if the program had been killed before its end."""
    run = f"batch = 1 AND place = {place}"
    of_run = f"(batch, suite, model) = (SELECT batch, suite, model FROM runs WHERE {run})"
    counts = ", ".join(
        f"{status} = {status} - (SELECT status = '{status}' FROM runs WHERE {run})" for status in ("passed", "failed")
    )
    change(
        program,
        f"UPDATE parts SET {counts} WHERE {of_run}",
        f"DELETE FROM details WHERE run = (SELECT id FROM runs WHERE {run})",
        f"UPDATE runs SET status = NULL WHERE {run}",
    )


def damage(program: Program, what: str, place: int) -> None:
    change(
        program,
        f"UPDATE details SET {what} = x'00', block = NULL WHERE run = (SELECT id FROM runs WHERE place = {place})",
    )


@pytest.mark.parametrize("what", ["events", "outcome"])
def test_a_damaged_run_that_is_over_is_left_out_of_the_report_and_what_is_missing_is_made(
    program: Program, what: str
) -> None:
    program.write("weather.toml", TWO)
    program.run("run", "weather.toml", "--quiet", "--repeats", "2")
    lose(program, 0)
    damage(program, what, 3)
    done = program.run("run", "--resume", "1", "--format", "json", "--min-score", "0")
    report = json.loads(done.stdout)
    assert "left out of the report: run 4 of batch 1 " in done.stderr
    assert "1 of 4 runs are missing" in done.stderr
    assert [(run["case_id"], run["status"]) for run in report["runs"]] == [
        ("right", "passed"),
        ("right", "passed"),
        ("wrong", "failed"),
    ]
    assert done.returncode == report["exit_code"] == 2, "whether the demand is met is not known"
    assert program.run("run", "--resume", "1").stderr.startswith("nothing was run: nothing to resume in batch 1")


def test_a_run_of_a_case_that_its_suite_did_not_have_is_left_out(program: Program) -> None:
    program.write("weather.toml", TWO)
    program.run("run", "weather.toml", "--quiet", "--repeats", "2")
    lose(program, 0)
    change(program, "UPDATE runs SET case_id = 'nobody' WHERE place = 3")
    done = program.run("run", "--resume", "1", "--format", "json")
    assert "weather.toml has no case 'nobody'\n" in done.stderr
    assert (done.returncode, len(json.loads(done.stdout)["runs"])) == (2, 3)


def right(request: Request) -> Answer:
    if request.json["messages"][-1]["role"] == "tool":
        return said("openai", "Done.")
    return said("openai", calls=[Call("get_weather", {"city": "Oslo"})])


def test_a_comparison_needs_no_more_of_a_run_that_is_over_than_what_it_came_to(program: Program) -> None:
    program.write("weather.toml", TWO)
    words = ("--trust", "--model", "local", "--model", "offline")
    with Server(right) as server:
        program.write("workbench.toml", MODEL.format(url=server.url))
        before = program.run("compare", "weather.toml", *words, "--format", "json")
        lose(program, 0)
        damage(program, "outcome", 1)
        damage(program, "events", 3)
        done = program.run("compare", "--resume", "1", *words, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "resuming batch #1: 1 of 4 runs are missing\n")
    assert [total["graded"] for total in json.loads(done.stdout)["totals"]] == [2, 2]
    assert json.loads(done.stdout)["pairs"] == json.loads(before.stdout)["pairs"]


def test_what_was_compared_comes_to_the_same_when_it_is_reported_again(program: Program) -> None:
    program.write("weather.toml", TWO)
    with Server(right) as server:
        program.write("workbench.toml", MODEL.format(url=server.url))
        words = ("--trust", "--model", "local", "--model", "offline", "--format", "json")
        first = json.loads(program.run("compare", "weather.toml", *words).stdout)
    again = json.loads(program.run("compare", "--resume", "1", "--format", "json").stdout)
    assert None not in [total["cases_a_minute"] for total in first["totals"]]
    assert again["totals"] == first["totals"]


def two_suites(program: Program, text: str) -> tuple[Program, Path]:
    """Return a program with a batch of two suites, and the path of the first suite.

    A run of the second suite is missing. `text` is the first suite, whose file has changed since."""
    program = replace(program, variables={"API_TOKEN": TOKEN})
    first = program.write("a.toml", text)
    program.write("b.toml", OTHER)
    done = program.run("run", "a.toml", "b.toml", "--quiet")
    assert "history show 1" in done.stdout, done.stderr
    assert not [kept for kept in texts_in(program.folder / ".workbench" / "history.sqlite3") if TOKEN in kept]
    lose(program, 2)
    first.write_text(f"{text}# Another one.\n", encoding="utf-8")
    return program, first


SECRET = TWO.replace("Oslo?", f"Oslo? {TOKEN}") + "\n[gate]\nmin_pass_rate = 0.9\n"


@pytest.mark.slow
@pytest.mark.parametrize("gone", [False, True])
def test_a_suite_in_which_nothing_is_missing_need_not_be_what_it_was(program: Program, gone: bool) -> None:
    program, suite = two_suites(program, SECRET)
    if gone:
        suite.unlink()
    done = program.run("run", "--resume", "--format", "json")
    report = json.loads(done.stdout)
    assert done.stderr.endswith(": 1 of 3 runs are missing\n") and done.stderr.count("\n") == 1
    assert [(Path(run["suite"]).name, run["status"]) for run in report["runs"]] == [
        ("a.toml", "passed"),
        ("a.toml", "failed"),
        ("b.toml", "passed"),
    ]
    assert [gate["met"] for gate in report["gates"]] == [False], "its gate counts as it did"
    assert report["failures"]["causes"], "and so do its expectations"
    assert done.returncode == 1


def test_a_suite_that_cannot_be_read_any_more_is_left_out_of_the_report(program: Program) -> None:
    program, _ = two_suites(program, SECRET)
    change(program, "UPDATE suites SET text = x'00' WHERE name = 'Weather'")
    done = program.run("run", "--resume", "--format", "json")
    assert done.stderr.startswith("left out of the report: the suite a.toml in ")
    assert [Path(run["suite"]).name for run in json.loads(done.stdout)["runs"]] == ["b.toml"]
    assert done.returncode == 2


def test_a_suite_of_which_something_is_missing_must_be_what_it_was(program: Program) -> None:
    program, _ = two_suites(program, SECRET)
    lose(program, 0)
    done = program.run("run", "--resume")
    assert (done.returncode, done.stdout) == (2, "")
    assert "a.toml has changed since batch 1, and secrets in its old text were not stored" in done.stderr


SIGNALLED = """
import os, signal
from workbench.{module} import {name}
def signalled(*_):
    os.kill(os.getpid(), signal.SIGTERM)
{name}.{function} = signalled
"""
"""Python code for the start of a program: it gets SIGTERM in place of a call."""


def test_sigterm_before_the_first_run_tells_how_to_resume(program: Program) -> None:
    program.write("weather.toml", TWO)
    program.run("run", "weather.toml", "--quiet")
    lose(program, 0)
    first = SIGNALLED.format(module="history.history", name="History", function="missing_runs")
    done = program.run("run", "--resume", "1", first=first)
    assert done.stderr == "stopping; nothing was run; to resume: workbench run --resume 1\n"
    assert done.returncode == 130


def test_sigterm_while_runs_are_read_for_the_report_tells_where_they_are(program: Program) -> None:
    program.write("weather.toml", TWO)
    program.run("run", "weather.toml", "--quiet")
    lose(program, 0)
    first = SIGNALLED.format(module="history.history", name="History", function="readable_runs")
    done = program.run("run", "--resume", "1", "--quiet", first=first)
    assert "stopping; there is no report, but the runs are in the history: workbench history show 1\n" in done.stderr
    assert done.returncode == 130
    with History(program.folder / ".workbench" / "history.sqlite3") as history:
        assert history.batch("1").missing == 0
