"""A history of which something is damaged, on the command line: the rest of it is as usable as ever."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.history.batches import run_kept
from tests.schemas import fits

DAMAGE = "damaged: settings Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A project's history with three batches, the first of which is damaged."""
    file = tmp_path / ".workbench" / "history.sqlite3"
    file.parent.mkdir()
    for _ in range(3):
        run_kept(tmp_path, file)
    change(file, "UPDATE batches SET settings = '{' WHERE id = 1")
    return file


def change(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def lose(file: Path, batch: int) -> None:
    """Delete the second run of a batch, as if the program had been killed before its end."""
    change(
        file,
        f"DELETE FROM details WHERE run = (SELECT id FROM runs WHERE batch = {batch} AND place = 1)",
        f"UPDATE runs SET status = NULL WHERE batch = {batch} AND place = 1",
        f"UPDATE parts SET failed = 0 WHERE batch = {batch}",
    )


def test_the_other_batches_are_listed_shown_named_compared_and_gone_on_with(program: Program, file: Path) -> None:
    lines = program.run("history", "list").stdout.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["#3", "#2", "#1"]
    assert lines[3].strip().startswith("damaged: settings Expecting property name")
    listed = json.loads(program.run("history", "list", "--format", "json").stdout)
    fits(listed, "history")
    assert [batch["number"] for batch in listed["batches"]] == [3, 2]
    assert listed["damaged"] == [{"number": 1, "name": None, "problem": DAMAGE.removeprefix("damaged: ")}]
    for words in (["show"], ["show", "2"], ["show", "--case", "nowhere"], ["diff", "2"], ["name", "2", "good"]):
        done = program.run("history", *words)
        assert (done.returncode, done.stderr) == (0, ""), words
    lose(file, 2)
    done = program.run("run", "--resume", "--quiet")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.endswith("details: workbench history show 2\n")


def test_what_is_damaged_says_how_it_is_removed(program: Program, file: Path) -> None:
    of_history = [["history", *words] for words in (["show", "1"], ["diff", "1", "2"], ["name", "1", "x"])]
    for words in (*of_history, ["export", "1", "-o", "runs"], ["grade", "1"]):
        done = program.run(*words)
        assert done.returncode == 2
        assert done.stderr == f"batch 1 in {file} is {DAMAGE}; 'workbench history prune --batch 1' removes it\n"


def test_a_damaged_batch_is_removed_by_its_number_alone(program: Program, file: Path) -> None:
    done = program.run("history", "prune", "--keep", "1", "--yes")
    assert (done.returncode, done.stderr) == (0, "batch 1 is damaged and was not removed: --batch 1 removes it\n")
    assert done.stdout.splitlines()[-1].startswith("removed 1 batch;")
    done = program.run("history", "prune", "--batch", "1", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()][:2] == ["#1", "damaged:"]
    assert program.run("history", "list").stdout.splitlines()[0].split()[0] == "#3"
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT batch, count(*) FROM runs GROUP BY batch").fetchall() == [(3, 2)]


@pytest.mark.parametrize("form", ["recordings", "json"])
@pytest.mark.parametrize(
    "damage",
    ["DELETE FROM details WHERE run = ", "UPDATE details SET block = NULL WHERE run = "],
)
def test_a_run_of_which_nothing_is_there_is_named_and_the_others_are_exported(
    program: Program, file: Path, form: str, damage: str
) -> None:
    change(file, f"{damage}(SELECT id FROM runs WHERE batch = 2 AND place = 0)")
    done = program.run("export", "2", "-o", "runs", "--format", form)
    assert done.returncode == 2
    assert re.fullmatch(rf"left out: run 1 of batch 2 in {file} is damaged: .*\n", done.stderr)
    assert done.stdout.startswith("#2: 1 re" if form == "recordings" else "#2: 1 run in")
    assert len(list((program.folder / "runs").iterdir())) == 1


def test_a_case_over_time_leaves_out_what_is_damaged(program: Program, file: Path) -> None:
    change(file, "UPDATE runs SET status = 'x' WHERE batch = 2 AND place = 1")
    done = program.run("history", "show", "--case", "nowhere")
    assert done.returncode == 2
    assert done.stderr.startswith(f"left out: a run of batch 2 in {file} is damaged: status must be one of")
    assert "good in 0 of 2 batches" in done.stdout
    done = program.run("history", "show", "--case", "nowere")
    assert done.stderr.endswith("ran a case 'nowere': did you mean 'nowhere'?\n")
