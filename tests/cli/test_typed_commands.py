"""The commands that messages recommend work with the history of the message."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.batches import interrupted
from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.sampled_rows import first_of

HISTORY = "a place/kept.sqlite3"


@pytest.fixture(scope="module")
def cut_off(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a batch of weather.toml in its own history, with two of three runs missing. The user's own history
    has a batch of another suite under the same number."""
    folder = tmp_path_factory.mktemp("cut off")
    program = Program(folder)
    program.write("mine.toml", WEATHER)
    (folder / "a place").mkdir()
    assert program.run("run", "mine.toml").returncode == 0
    interrupted(program, signal.SIGKILL, "--history", HISTORY)
    return folder


@pytest.fixture
def program(tmp_path: Path, cut_off: Path) -> Program:
    """The program in a copy of that folder."""
    shutil.copytree(cut_off, tmp_path, dirs_exist_ok=True)
    with closing(sqlite3.connect(tmp_path / HISTORY)) as connection, connection:
        connection.execute("UPDATE suites SET project = ?", (str(tmp_path.resolve()),))
    return Program(tmp_path)


def said_of(program: Program, *words: str) -> str:
    done = program.run(*words, "--history", HISTORY)
    return done.stdout + done.stderr


def typed(program: Program, said: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a message, with `N` and `PATH` filled in."""
    (command,) = re.findall(r"'(workbench .*)'(?: \w|$)", said, re.MULTILINE)
    name, *words = shlex.split(command)
    assert name == "workbench"
    return program.run(*({"N": "1", "PATH": "weather.toml"}.get(word, word) for word in words))


@pytest.mark.parametrize(
    "words",
    first_of(
        [
            ["show", "99"],
            ["show", "1", "--case", "none"],
            ["show", "--case", "none"],
            ["show", "1", "--grading", "3"],
            ["diff", "99", "1"],
        ],
        2,
    ),
    ids=" ".join,
)
def test_the_way_out_of_a_mistake_leads_into_the_same_history(program: Program, words: list[str]) -> None:
    done = typed(program, said_of(program, "history", *words))
    assert done.returncode == 0, done.stderr
    assert "2 of 3 runs" in done.stdout or "2 runs never finished" in done.stderr


def test_a_batch_that_lacks_runs_goes_on_where_it_is(program: Program) -> None:
    missing = next(line for line in said_of(program, "history", "show", "1").splitlines() if "missing" in line)
    done = typed(program, missing)
    assert done.stderr == "resuming batch #1: 2 of 3 runs are missing\n"


def test_a_run_is_told_of_the_same_batch(program: Program) -> None:
    program.run("run", "--resume", "1", "--history", HISTORY)
    done = typed(program, said_of(program, "history", "show", "1"))
    assert done.stdout == said_of(program, "history", "show", "1", "--run", "1")


@pytest.mark.parametrize("words", first_of([["history", "show", "1"], ["history", "diff", "1", "1"]], 1), ids=" ".join)
def test_what_came_after_a_grading_is_graded_there(program: Program, words: list[str]) -> None:
    assert program.run("grade", "1", "--history", HISTORY).returncode == 0
    program.run("run", "--resume", "1", "--history", HISTORY)
    said = said_of(program, *words, "--grading", "1").splitlines()
    note = next(line for line in said if "ended after it was regraded" in line)
    assert "3 runs regraded, grading 2" in typed(program, note).stdout


def test_a_fork_is_told_where_it_is_kept(program: Program) -> None:
    with closing(sqlite3.connect(program.folder / HISTORY)) as connection, connection:
        connection.execute("UPDATE batches SET kind = 'fork'")
    done = typed(program, said_of(program, "history", "diff", "1"))
    assert done.stdout == said_of(program, "history", "show", "1", "--run", "1")


@pytest.mark.parametrize("word", ["list", "show"])
def test_an_empty_history_is_filled_by_what_it_says(program: Program, word: str) -> None:
    (program.folder / HISTORY).unlink()
    typed(program, said_of(program, "history", word))
    assert "weather.toml" in said_of(program, "history", "show", "1")


def test_the_users_own_history_needs_no_naming(program: Program) -> None:
    said = program.run("history", "show", "1").stdout
    assert said.endswith("'workbench history show 1 --run N' shows a run step by step\n")
    assert program.run("history", "show", "99").stderr.endswith(": 'workbench history list' lists all\n")
