"""The size of a history, removing batches from it, and the names of its cases in reports without a line limit."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.history.batches import SUITE, run_kept
from workbench.history.claims import claim

RIGHT = SUITE.replace("Rome", "Berlin")
"""The same suite with an expectation that the offline model meets."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The history of the project in that folder, with two batches: the case *Nowhere* passed, and fails since."""
    file = tmp_path / ".workbench" / "history.sqlite3"
    file.parent.mkdir()
    run_kept(tmp_path, file, suite=_named(RIGHT))
    run_kept(tmp_path, file, suite=_named(SUITE))
    return file


CALLED = "Customer support assistant: routing of requests to the people who know"


def _named(suite: str) -> str:
    return suite.replace('name = "Weather"', f'name = "{CALLED}"')


@pytest.mark.usefixtures("file")
def test_which_case_it_is_stands_in_full_where_nothing_limits_a_line(tmp_path: Path) -> None:
    program = Program(tmp_path)
    broke = f"  {CALLED} › Nowhere  passed 1.00 → failed 0.50"
    assert broke in program.run("history", "diff", "1", "2").stdout
    assert f"{CALLED} › Nowhere  offline  0.50  wrong argument" in program.run("history", "show", "2").stdout
    assert broke in program.run("run", "weather.toml", "--baseline", "1").stdout


def test_what_is_not_in_the_file_itself_yet_counts_to_its_size(tmp_path: Path, file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE more AS SELECT zeroblob(2000000) AS much")
        connection.commit()
        assert file.stat().st_size < 1_000_000
        assert " MB)" in Program(tmp_path).run("history", "list").stdout


def test_what_is_named_and_goes_on_is_no_success_and_the_others_are_removed(tmp_path: Path, file: Path) -> None:
    program, going = Program(tmp_path), "batch 2 is still running and was not removed: stop it first\n"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE batches SET ended_at = NULL WHERE id = 2")
        connection.commit()
    claimed = claim(file, 2)
    done = program.run("history", "prune", "--batch", "2", "--yes")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", going)
    done = program.run("history", "prune", "--batch", "2", "--batch", "1", "--yes")
    assert (done.returncode, done.stderr) == (2, going)
    assert "removed 1 batch;" in done.stdout
    assert program.run("history", "list").stdout.startswith("#2")
    claimed.release()
