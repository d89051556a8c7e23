"""Damage in a history affects only the batch or the run that contains it."""

from __future__ import annotations

import re
import sqlite3
import zlib
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from secrets import token_hex

import pytest

from tests.history.batches import SUITE, run_kept
from tests.history.entries import batch_of, done
from tests.history.unpacking import store_alone
from tests.sampled_rows import first_rows
from workbench.history.edits import name_batch, remove_batches
from workbench.history.history import History
from workbench.history.packing import RUNS_IN_BLOCK
from workbench.history.records import DamagedError, HistoryError
from workbench.history.writer import HistoryWriter

NO_JSON = "settings Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"


def nothing_said(said: str) -> None:
    raise AssertionError(said)


def written(file: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute(statement, values).rowcount


@pytest.fixture
def three(tmp_path: Path, file: Path) -> Path:
    """Three batches; the suite of the first one was another text."""
    run_kept(tmp_path, file, suite=f"{SUITE}\n# another text\n")
    run_kept(tmp_path, file)
    run_kept(tmp_path, file)
    return file


@pytest.mark.parametrize(
    ("statement", "value", "why"),
    first_rows(
        [
            ("UPDATE batches SET settings = ? WHERE id = 1", "{", NO_JSON),
            ("UPDATE batches SET planned = ? WHERE id = 1", "x", "planned must be a whole number"),
            ("UPDATE batches SET planned = ? WHERE id = 1", 3, "the number of planned runs is not the sum"),
            ("UPDATE batches SET name = ? WHERE id = 1", b"\xff", "name must be a text"),
            ("UPDATE batches SET kind = ? WHERE id = 1", "x", "kind must be one of runs, fork"),
            ("UPDATE parts SET passed = ? WHERE batch = 1", -1, "passed must not be negative"),
            ("UPDATE parts SET batch = ? WHERE batch = 1", "x", "the number of planned runs is not the sum"),
            ("UPDATE parts SET suite = ? WHERE batch = 1", 77, "its suite 77 is missing"),
            ("UPDATE suites SET path = ? WHERE id = 1", "a\0b", "its suite 1: path must be a valid path"),
            ("UPDATE suites SET cases = ? WHERE id = 1", "x", "its suite 1: cases must be a whole number"),
        ],
        5,
    ),
)
def test_one_bad_value_costs_its_batch_alone(three: Path, statement: str, value: object, why: str) -> None:
    written(three, statement, value)
    with History(three) as history:
        assert [batch.number for batch in history.batches()] == [3, 2]
        first = history.all_batches()[-1]
        assert (first.number, first.parts, first.missing) == (1, (), 0)
        assert first.damage is not None and first.damage.startswith(why)
        way_out = f"'workbench history prune --batch 1 --history {three}' removes it"
        with pytest.raises(DamagedError) as caught:
            history.batch("1")
        assert str(caught.value) == f"batch 1 in {three} is damaged: {first.damage}; {way_out}"
        assert history.batch("1", damaged=True) == first
        assert history.batch("2").graded == len(history.runs(2)) == 2
    remove_batches(three, [1], nothing_said)
    with History(three) as history:
        assert [batch.number for batch in history.all_batches()] == [3, 2]


def test_what_can_be_read_of_a_damaged_batch_is_told(three: Path) -> None:
    name_batch(three, 1, "good", nothing_said)
    with History(three) as history:
        sound = history.batch("good")
    written(three, "UPDATE batches SET settings = '{' WHERE id = 1")
    with History(three) as history:
        damaged = history.batch("good", damaged=True)
        assert history.names() == {1: "good"}
    assert (damaged.name, damaged.started_at, damaged.ended_at) == ("good", sound.started_at, sound.ended_at)
    written(three, "UPDATE batches SET name = ? WHERE id = 2", b"\xff")
    with History(three) as history:
        assert history.names() == {1: "good"}


def test_a_damaged_run_costs_no_other_run_of_its_case(three: Path) -> None:
    written(three, "UPDATE runs SET status = 'x' WHERE batch = 2")
    damaged: list[str] = []
    with History(three) as history:
        key = history.runs(1)[0].suite.key
        found = history.runs_of_case(key, "paris", 10, damaged.append)
        with pytest.raises(DamagedError):
            history.runs(2)
    assert [run.batch for run in found] == [3, 1]
    assert len(damaged) == 1 and damaged[0].startswith(f"a run of batch 2 in {three} is damaged: status must be one of")


@pytest.mark.parametrize(
    ("statement", "value", "why"),
    first_rows(
        [
            ("DELETE FROM details WHERE run = ?", 1, "its events are missing"),
            ("UPDATE details SET nth = ? WHERE run = 1", 7, "list index out of range"),
            ("UPDATE details SET nth = ? WHERE run = 1", -1, "must not be negative"),
            ("UPDATE details SET block = ? WHERE run = 1", 99, "a text that the run shares with other runs is missing"),
        ],
        2,
    ),
)
def test_a_damaged_run_is_named_and_left_out(three: Path, statement: str, value: object, why: str) -> None:
    written(three, statement, value)
    damaged: list[str] = []
    with History(three) as history:
        runs = history.runs(1)
        left = [run.place for run, _ in history.recordings(runs, None, damaged.append)]
    assert left == [1]
    assert len(damaged) == 1 and damaged[0].startswith(f"run 1 of batch 1 in {three} is damaged: {why}")


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("outcome", zlib.compress(b"{}"), "status is missing"),
        ("outcome", zlib.compress(b'{"status":"passed","steps":[{"x":1e999}]}'), "1e999 is too large a number"),
        ("outcome", zlib.compress(b'{"status":"passed","score":' + b"1" * 400 + b".0}"), "1111"),
        ("events", b"", "cannot be unpacked"),
        ("events", zlib.compress(b'{"event":"a"},{"event":"b"}'), "a line of its events does not hold exactly one"),
    ],
)
def test_a_damaged_run_of_an_earlier_version_is_named_and_left_out(
    three: Path, column: str, value: bytes, why: str
) -> None:
    store_alone(three)
    test_a_damaged_run_is_named_and_left_out(three, f"UPDATE details SET {column} = ? WHERE run = 1", value, why)


@pytest.mark.parametrize("bytes_", [b"", b"x", zlib.compress(b"[]"), zlib.compress(b"{}\x1f{}\x1f{}")])
def test_a_damaged_block_costs_its_runs_and_no_others(three: Path, bytes_: bytes) -> None:
    written(three, "UPDATE shared SET text = ? WHERE id = (SELECT block FROM details WHERE run = 1)", bytes_)
    damaged: list[str] = []
    with History(three) as history:
        for batch in (1, 2):
            for _ in history.recordings(history.runs(batch), None, damaged.append):
                assert batch == 2
    assert [said.partition(" in ")[0] for said in damaged] == ["run 1 of batch 1", "run 2 of batch 1"]


def test_a_run_that_never_finished_is_not_damaged(three: Path) -> None:
    written(three, "DELETE FROM details WHERE run = 1")
    written(three, "UPDATE runs SET status = NULL WHERE id = 1")
    with History(three) as history, pytest.raises(HistoryError, match="the run never finished") as caught:
        history.recording(history.runs(1)[0])
    assert not isinstance(caught.value, DamagedError)


def test_every_run_whose_pages_are_damaged_is_named(tmp_path: Path) -> None:
    runs, file = 6 * RUNS_IN_BLOCK, tmp_path / "history.sqlite3"
    writer = HistoryWriter(file, nothing_said)
    handle = writer.begin(batch_of(runs))
    for number in range(runs):
        run = done(number)
        writer.write_run(handle, replace(run, result=replace(run.result, error=token_hex(200))))
    assert writer.close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        ((block,),) = connection.execute(
            "SELECT text FROM shared JOIN details ON block = shared.id ORDER BY length(text) DESC LIMIT 1"
        )
    content = bytearray(file.read_bytes())
    page = content.index(block[-2000:-1900]) // size
    content[page * size : (page + 1) * size] = b"\xff" * size
    file.write_bytes(content)
    damaged: list[str] = []
    with History(file) as history:
        left = [run.place for run, _ in history.recordings(history.runs(1), None, damaged.append)]
    named = [int(number) - 1 for said in damaged for number in re.findall(r"^run (\d+) of batch 1 ", said)]
    assert left and named and sorted([*left, *named]) == list(range(runs))
    assert len(named) == len(damaged)
