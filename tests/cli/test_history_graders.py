"""`workbench history` names the graders of a batch, and reports when two batches had different ones."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER, WRONG


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A project with two batches. The suite's own grader decided the first, another grader the second."""
    program = Program(tmp_path)
    (tmp_path / ".workbench").mkdir()
    program.write("weather.toml", WEATHER + WRONG)
    program.run("run", "weather.toml")
    program.run("run", "weather.toml", "--by", "decision")
    return program


def said(program: Program, *words: str) -> str:
    done = program.run(*words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
def test_a_batch_is_shown_with_the_graders_that_decided(program: Program) -> None:
    assert "  graded by critics" in said(program, "history", "show", "1").splitlines()
    assert "  graded by decision" in said(program, "history", "show", "2").splitlines()
    runs = json.loads(said(program, "history", "show", "2", "--format", "json"))["runs"]
    assert [run["graded_by"] for run in runs] == ["decision", "decision"]
    said(program, "grade", "2", "--by", "critics")
    assert "  graded by critics" in said(program, "history", "show", "2", "--grading", "latest").splitlines()


def test_of_several_graders_it_is_said_how_many_runs_each_decided(program: Program) -> None:
    with closing(sqlite3.connect(program.folder / ".workbench" / "history.sqlite3")) as connection, connection:
        connection.execute("UPDATE runs SET options = '{\"by\":\"accuracy\"}' WHERE batch = 1 AND case_id = 'right'")
    assert "  graded by accuracy (1 run), critics (1 run)" in said(program, "history", "show", "1").splitlines()


@pytest.mark.slow
def test_batches_that_other_graders_decided_are_compared_with_a_word_on_that(program: Program) -> None:
    note = "graded by critics before, by decision now"
    assert note in said(program, "history", "diff", "1", "2").splitlines()
    assert note in said(program, "history", "diff", "1", "2", "--format", "markdown").splitlines()
    assert json.loads(said(program, "history", "diff", "1", "2", "--format", "json"))["notes"] == [note]
    program.run("run", "weather.toml")
    assert "graded by" not in said(program, "history", "diff", "1", "3")
