"""A damaged history causes one sentence of error, and the file keeps its content."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest

from tests.history.batches import run_kept
from tests.history.entries import batch_of, done, lines_of
from tests.sampled_rows import first_of
from workbench.config.folders import APP_NAME, HISTORY_NAME, PROJECT_HISTORY
from workbench.history import database
from workbench.history.database import as_history_errors, open_for_reading, open_for_writing, transaction
from workbench.history.history import History
from workbench.history.packing import RunPacker
from workbench.history.records import DamagedError, HistoryError
from workbench.history.rows import SharedTexts, begin_batch, write_run
from workbench.history.writer import HistoryWriter

NOBODY = 65534


def nothing_said(said: str) -> None:
    raise AssertionError(said)


def filled(file: Path, batches: int = 1, runs: int = 3) -> None:
    """Write a history with finished batches."""
    with closing(open_for_writing(file, nothing_said)) as connection, transaction(connection):
        shared = SharedTexts(connection)
        for _ in range(batches):
            number = begin_batch(connection, file, batch_of(runs))
            for place in range(runs):
                packed = RunPacker().packed(done(place))
                assert packed is not None
                write_run(connection, number, place, packed, shared)


def numbers(file: Path) -> list[int]:
    with History(file) as history:
        return [batch.number for batch in history.batches()]


def test_a_transaction_that_finds_no_room_leaves_nothing_and_says_so(file: Path) -> None:
    filled(file)
    with closing(open_for_writing(file, nothing_said)) as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        no_room = f"there is no room left for the history {file}: make room on its disk"
        with pytest.raises(HistoryError, match=no_room), as_history_errors(file), transaction(connection):
            begin_batch(connection, file, batch_of(5000))
        assert not connection.in_transaction
    assert numbers(file) == [1]


def test_a_lock_that_is_not_let_go_of_is_said_after_a_while(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(file)
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with closing(open_for_writing(file, nothing_said)) as connection:
            locked = "locked by another program: end that program, or wait"
            with pytest.raises(HistoryError, match=locked), as_history_errors(file), transaction(connection):
                begin_batch(connection, file, batch_of(1))
        assert numbers(file) == [1], "reading goes on beside whoever writes"


@pytest.mark.parametrize("place", ["a file", "a folder"])
def test_a_place_where_no_file_can_be_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    file = tmp_path / "file" / "history.sqlite3" if place == "a file" else tmp_path
    with pytest.raises(HistoryError, match=f"{file} (cannot be|is a folder)"):
        open_for_writing(file, nothing_said)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can reach."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


AS_ANOTHER_USER = f"""
if os.geteuid() == 0:
    os.setgroups([])
    os.setuid({NOBODY})
"""
READING_AS_ANOTHER_USER = f"""{AS_ANOTHER_USER}
from workbench.history.records import HistoryError
try:
    History(file)
except HistoryError as error:
    say(error)
"""
WRITING_AS_ANOTHER_USER = f"""{AS_ANOTHER_USER}
with History(file) as history:
    say(f"{{len(history.batches())}} batches, {{len(history.runs(1))}} runs")
writer = HistoryWriter(file, say)
handle = writer.begin(batch_of(2))
writer.write_run(handle, done(0))
say(str(writer.close()))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("folder_mode", "file_mode"), [(0o555, 0o444), (0o777, 0o444), (0o555, 0o666)])
def test_a_history_that_is_read_only_is_read_and_not_written(
    open_folder: Path, folder_mode: int, file_mode: int
) -> None:
    file = open_folder / "history.sqlite3"
    filled(file)
    (open_folder / "history.sqlite3-claims").chmod(0o666)
    before = file.read_bytes()
    file.chmod(file_mode)
    open_folder.chmod(folder_mode)
    said = lines_of(WRITING_AS_ANOTHER_USER, file)
    refused = f"the history {file} cannot be written: change its permissions, or name another with --history"
    assert said == [
        "1 batches, 3 runs",
        f"{refused}; what is not stored yet is tried again",
        f"1 run is not in the history {file}",
        "False",
    ]
    assert file.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize(("folder_mode", "file_mode"), [(0o755, 0o000), (0o700, 0o644)])
def test_a_history_that_may_not_be_read_is_said_to_be_that(open_folder: Path, folder_mode: int, file_mode: int) -> None:
    file = open_folder / "history.sqlite3"
    filled(file)
    file.chmod(file_mode)
    open_folder.chmod(folder_mode if os.geteuid() == 0 else folder_mode & 0o077)
    refused = f"the history {file} cannot be read: change its permissions, or name another with --history"
    assert lines_of(READING_AS_ANOTHER_USER, file) == [refused]


def test_a_damaged_file_is_set_aside_with_what_belongs_to_it_when_it_is_written(file: Path) -> None:
    filled(file)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("UPDATE batches SET program = '2'")  # keeps -wal and -shm there
        not_in_it_yet = Path(f"{file}-wal").read_bytes()
        file.write_bytes(b"x" * 4096)
        with pytest.raises(DamagedError, match="is damaged: the next batch renames it") as caught:
            open_for_reading(file)
        assert str(caught.value).endswith(f"; 'sqlite3 {file} .recover' may recover its content")
        assert list(file.parent.glob("*damaged*")) == [], "who only reads moves nothing"
        said: list[str] = []
        open_for_writing(file, said.append).close()
        assert len(said) == 1 and f"the history {file} was damaged and renamed to history.damaged-" in said[0]
        (aside,) = file.parent.glob("*damaged*.sqlite3")
        assert said[0].endswith(f"; 'sqlite3 {aside} .recover' may recover its content")
        assert aside.read_bytes() == b"x" * 4096
        assert Path(f"{aside}-wal").read_bytes() == not_in_it_yet
    assert {name.name for name in file.parent.iterdir() if "damaged" not in name.name} == {
        file.name,
        f"{file.name}-claims",
    }


NO_SQLITE = random.Random(7).randbytes(8192)


@pytest.mark.parametrize("place", ["vault.sqlite3", "history.sqlite3", "vault"])
@pytest.mark.parametrize("reading", [True, False])
def test_what_no_sqlite_wrote_keeps_its_name_where_no_history_of_ours_is(
    tmp_path: Path, place: str, reading: bool
) -> None:
    file = tmp_path / place
    file.write_bytes(NO_SQLITE)
    refused = f"{file} is not a history: name another with --history, or move it away"
    with pytest.raises(HistoryError, match=refused):
        open_for_reading(file) if reading else open_for_writing(file, nothing_said)
    assert [(left, left.read_bytes()) for left in tmp_path.iterdir()] == [(file, NO_SQLITE)]


@pytest.mark.parametrize("folder", [PROJECT_HISTORY, APP_NAME])
def test_whatever_stands_where_our_history_is_makes_room_for_a_new_one(tmp_path: Path, folder: str) -> None:
    file = tmp_path / folder / HISTORY_NAME
    file.parent.mkdir()
    file.write_bytes(NO_SQLITE)
    said: list[str] = []
    open_for_writing(file, said.append).close()
    (aside,) = file.parent.glob("*damaged*")
    assert (aside.read_bytes(), len(said), numbers(file)) == (NO_SQLITE, 1, [])


def test_a_history_elsewhere_that_is_damaged_further_in_is_set_aside_too(tmp_path: Path) -> None:
    file = tmp_path / "mine.db"
    filled(file, batches=3, runs=40)
    cut = file.read_bytes()[:20_000]
    file.write_bytes(cut)
    with pytest.raises(DamagedError, match="is damaged"):
        open_for_reading(file)
    assert file.read_bytes() == cut
    said: list[str] = []
    open_for_writing(file, said.append).close()
    (aside,) = tmp_path.glob("mine.damaged-*.db")
    assert (aside.read_bytes(), len(said), numbers(file)) == (cut, 1, [])


@pytest.mark.parametrize("kept", first_of([0.3, 0.6, 0.9], 1))
def test_a_truncated_file_is_set_aside_before_anything_is_written(file: Path, kept: float) -> None:
    filled(file, batches=3, runs=40)
    content = file.read_bytes()
    cut = content[: int(len(content) * kept)]
    file.write_bytes(cut)
    said: list[str] = []
    open_for_writing(file, said.append).close()
    (aside,) = file.parent.glob("*damaged*.sqlite3")
    assert (aside.read_bytes(), len(said), numbers(file)) == (cut, 1, [])


def test_what_a_quick_look_does_not_find_is_found_while_writing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(file, batches=3, runs=40)
    with closing(sqlite3.connect(file)) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'details'").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    content = bytearray(file.read_bytes())
    content[(root - 1) * size : root * size] = b"\xff" * size
    file.write_bytes(content)
    monkeypatch.setattr(database, "FULLY_CHECKED_BYTES", 1)
    said: list[str] = []
    writer = HistoryWriter(file, said.append)
    handle = writer.begin(batch_of(2))
    writer.write_run(handle, done(0))
    writer.write_run(handle, done(1))
    assert writer.close()
    assert len(said) == 1 and "was damaged" in said[0]
    with History(file) as history:
        assert [run.missing for run in history.runs(1)] == [False, False]
    (aside,) = file.parent.glob("*damaged*.sqlite3")
    assert len(aside.read_bytes()) >= len(content)


@pytest.mark.slow
def test_whatever_is_damaged_where_a_history_is_a_history_or_says_what_is_wrong(tmp_path: Path, file: Path) -> None:
    run_kept(tmp_path, file, repeats=3)
    sound, chance = file.read_bytes(), random.Random(7)
    refused = 0
    for number in range(150):
        damaged = bytearray(sound)
        for _ in range(chance.choice([1, 3, 30])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        copy = tmp_path / f"copy-{number}" / "history.sqlite3"
        copy.parent.mkdir()
        copy.write_bytes(damaged)
        try:
            with History(copy) as history:
                for batch in history.batches():
                    for run in history.runs(batch.number):
                        with suppress(HistoryError):
                            history.recording(run)
        except HistoryError:
            refused += 1
            assert copy.read_bytes() == damaged
        shutil.rmtree(copy.parent)
    assert refused


def test_a_lock_does_not_pass_for_damage(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(file)
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("UPDATE batches SET program = '2'")
        for use in (open_for_reading, partial(open_for_writing, report=nothing_said)):
            with pytest.raises(HistoryError, match="locked by another program") as caught:
                use(file)
            assert not isinstance(caught.value, DamagedError)
    assert list(file.parent.glob("*damaged*")) == []
