"""Everything given to a writer is in the history at the end, or a message says what is missing and why."""

from __future__ import annotations

import logging
import resource
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.history.entries import batch_of, child, done, lines_of
from workbench.config.logs import log_to
from workbench.grading.status import Status
from workbench.history import database
from workbench.history import writer as writing
from workbench.history.claims import is_claimed
from workbench.history.edits import remove_batches
from workbench.history.history import History
from workbench.history.records import HistoryError
from workbench.history.writer import BatchHandle, HistoryWriter


def nothing_said(said: str) -> None:
    raise AssertionError(said)


def way_out(file: Path) -> str:
    """Return the message on how to make the missing runs of the first batch."""
    return f"'workbench run --resume 1 --history {file}' makes the missing runs"


def kept(file: Path, batch: int = 1) -> list[bool]:
    """Which runs of a batch are in the history."""
    with History(file) as history:
        return [not run.missing for run in history.runs(batch)]


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Another program that writes and does not come to an end."""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.02)
    monkeypatch.setattr(writing, "RETRY_S", 0.0)


def test_runs_are_kept_one_by_one_while_the_batch_goes_on(file: Path) -> None:
    writer = HistoryWriter(file, nothing_said)
    handle = writer.begin(batch_of(3))
    assert writer.wait_until_written(10)
    assert (handle.number, kept(file)) == (1, [False] * 3)
    writer.write_run(handle, done(1))
    assert writer.wait_until_written(10)
    assert kept(file) == [False, True, False]
    assert writer.close()


@pytest.mark.parametrize(("gather_s", "gives_way"), [(0.0, True), (60.0, False)])
def test_packing_gives_way_to_other_threads_unless_a_caller_waits(
    file: Path, monkeypatch: pytest.MonkeyPatch, gather_s: float, gives_way: bool
) -> None:
    monkeypatch.setattr(writing, "GATHER_TIME_S", gather_s)
    ways: list[str] = []
    writer = HistoryWriter(file, nothing_said, give_way=lambda: ways.append(threading.current_thread().name))
    handle = writer.begin(batch_of(2))
    assert writer.wait_until_written(10)
    for place in (0, 1):
        stored = writer.write_run(handle, done(place))
        assert gather_s or stored.result(10) is None
    assert writer.close()
    assert set(ways) == ({"history"} if gives_way else set())
    assert kept(file) == [True] * 2


def test_a_run_is_stored_although_further_runs_always_arrive(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "GATHER_TIME_S", 0.0)
    runs: list[Future[None]] = []
    begun, all_given = threading.Event(), threading.Event()
    first_is_stored: list[bool] = []

    def one_more_arrives() -> None:
        assert begun.wait(10)
        first_is_stored.append(runs[0].done())
        if len(runs) < 4:
            runs.append(writer.write_run(handle, done(len(runs))))
        else:
            all_given.set()

    writer = HistoryWriter(file, nothing_said, give_way=one_more_arrives)
    handle = writer.begin(batch_of(4))
    assert writer.wait_until_written(10)
    runs.append(writer.write_run(handle, done(0)))
    begun.set()
    assert all_given.wait(10)
    assert writer.close()
    assert first_is_stored[:1] == [False] and all(first_is_stored[1:])
    assert kept(file) == [True] * 4


@pytest.mark.usefixtures("impatient")
def test_a_log_that_cannot_be_written_costs_no_run(file: Path, tmp_path: Path) -> None:
    said: list[str] = []
    before, raising = list(logging.getLogger().handlers), logging.raiseExceptions
    (tmp_path / "log" / "workbench.log").mkdir(parents=True)
    log_to(tmp_path / "log")
    try:
        writer = HistoryWriter(file, said.append)
        handle = writer.begin(batch_of(2))
        assert writer.wait_until_written(10)
        with locked(file):
            assert writer.write_run(handle, done(0)).result(10) is None
        writer.write_run(handle, done(1))
        assert writer.close()
    finally:
        logging.getLogger().handlers[:] = before
        logging.raiseExceptions = raising
    assert kept(file) == [True] * 2
    assert "is locked by another program" in said[0]


@pytest.mark.usefixtures("impatient")
def test_what_a_lock_held_up_is_written_when_it_is_gone(file: Path) -> None:
    said: list[str] = []
    writer = HistoryWriter(file, said.append)
    handle = writer.begin(batch_of(3))
    assert writer.wait_until_written(10)
    with locked(file):
        writer.write_run(handle, done(0))
        writer.write_run(handle, done(1))
        assert not writer.wait_until_written(0.2)
    writer.write_run(handle, done(2))
    assert writer.close()
    assert said == [
        f"the history {file} is locked by another program: end that program, or wait and try again; what is not stored "
        "yet is tried again",
        f"the history {file} can be written again: all waiting results are stored",
    ]
    assert kept(file) == [True] * 3


@pytest.mark.usefixtures("impatient")
def test_what_could_not_be_written_to_the_end_is_counted(file: Path) -> None:
    said: list[str] = []
    writer = HistoryWriter(file, said.append)
    handle = writer.begin(batch_of(3))
    writer.write_run(handle, done(0))
    assert writer.wait_until_written(10)
    with locked(file):
        writer.write_run(handle, done(1))
        writer.write_run(handle, done(2))
        writer.end(handle, "2030")
        assert not writer.close()
    assert said[1:] == [f"2 runs of batch 1 are not in the history {file}: {way_out(file)}"]
    assert kept(file) == [True, False, False]


@pytest.mark.usefixtures("impatient")
def test_what_was_to_be_compared_is_made_by_the_command_that_compares(file: Path) -> None:
    said: list[str] = []
    writer = HistoryWriter(file, said.append)
    handle = writer.begin(replace(batch_of(1), settings={"compares": True}))
    assert writer.wait_until_written(10)
    with locked(file):
        writer.write_run(handle, done(0))
        assert not writer.close()
    assert said[1:] == [
        f"1 run of batch 1 is not in the history {file}: {way_out(file).replace('run', 'compare', 1)}",
    ]


def test_whoever_gives_a_run_is_told_when_it_is_written(file: Path) -> None:
    writer = HistoryWriter(file, nothing_said)
    handle = writer.begin(batch_of(2))
    for number in range(2):
        writer.write_run(handle, done(number)).result(10)
        assert kept(file)[number]
    assert writer.close()


def test_runs_that_end_together_are_committed_together_and_a_bad_one_costs_no_other(
    file: Path,
) -> None:
    said: list[str] = []
    writer = HistoryWriter(file, said.append)
    handle = writer.begin(batch_of(40))
    assert writer.wait_until_written(10)
    written = Path(f"{file}-wal")
    before = commits_in(written)
    given = [writer.write_run(handle, done(number)) for number in range(30)]
    given[-1].result(10)
    assert all(run.done() for run in given)
    assert 1 <= commits_in(written) - before <= 3
    assert kept(file) == [True] * 30 + [False] * 10
    for number in (30, 99, 31):
        given.append(writer.write_run(handle, done(number)))
    given[-1].result(10)
    assert kept(file) == [True] * 32 + [False] * 8
    assert said == [f"the history {file} cannot store everything: 'run-99'"]
    assert not writer.close()


def commits_in(wal: Path) -> int:
    """Return the number of transactions in SQLite's log: the last frame of each has the size of the file."""
    content = wal.read_bytes()
    page_size = int.from_bytes(content[8:12], "big")
    frames = range(32, len(content), page_size + 24)
    return sum(int.from_bytes(content[at + 4 : at + 8], "big") > 0 for at in frames)


def test_whoever_gives_a_run_is_neither_held_up_nor_left_waiting_when_nothing_can_be_written(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.2)
    writer = HistoryWriter(file, lambda _: None)
    handle = writer.begin(batch_of(3))
    assert writer.wait_until_written(10)
    with locked(file):
        given = [writer.write_run(handle, done(0)), writer.write_run(handle, done(1))]
        assert not any(run.done() for run in given), "giving waits for nothing"
        for run in given:
            run.result(10)
        assert writer.write_run(handle, done(2)).done(), "what fails is not waited for"
    assert writer.close()
    assert kept(file) == [True] * 3


ROOM = """
HARD = resource.RLIM_INFINITY
def room(bytes_):
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, HARD))
writer = HistoryWriter(file, say)
handle = writer.begin(batch_of(400))
for number in range(100):
    writer.write_run(handle, done(number))
writer.wait_until_written(10)
room(Path(f"{file}-wal").stat().st_size + 10_000)
for number in range(100, 300):
    writer.write_run(handle, done(number))
writer.wait_until_written(0.5)
with History(file) as history:
    say(str(sum(not run.missing for run in history.runs(1))))
room(HARD)
say(str(writer.close()))
with History(file) as history:
    say(str(sum(not run.missing for run in history.runs(1))))
"""


@pytest.mark.slow
@pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_FSIZE)[1] != resource.RLIM_INFINITY, reason="there is a limit")
def test_what_found_no_room_is_written_when_there_is_some(file: Path) -> None:
    assert lines_of(ROOM, file) == [
        f"the disk refuses the history {file} (disk I/O error): make room on it, or check that it works; "
        "what is not stored yet is tried again",
        "100",
        f"the history {file} can be written again: all waiting results are stored",
        "True",
        "300",
    ]


def test_a_run_that_cannot_be_written_costs_no_other_one(file: Path) -> None:
    said: list[str] = []
    writer = HistoryWriter(file, said.append)
    handle = writer.begin(batch_of(3))
    good = done(1)
    writer.write_run(handle, replace(good, run_id="run-0", result=replace(good.result, error=float("nan"))))  # type: ignore[arg-type]
    writer.write_run(handle, good)
    assert not writer.close()
    assert kept(file) == [False, True, False]
    assert said == [
        f"the history {file} cannot store everything: ValueError: Out of range float values are not JSON compliant",
        f"1 run of batch 1 is not in the history {file}: {way_out(file)}",
    ]


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_batch_goes_on_in_another_file_when_its_own_is_taken_away(file: Path, how: str) -> None:
    said: list[str] = []
    writer = HistoryWriter(file, said.append)
    writer.end(writer.begin(batch_of(1, started_at="2029")), "2029")
    handle = writer.begin(batch_of(2))
    writer.write_run(handle, done(0))
    assert writer.wait_until_written(10)
    assert handle.number == 2
    file.unlink()
    if how == "replaced":
        HistoryWriter(file, nothing_said).close()
        with closing(database.open_for_writing(file, nothing_said)):
            pass
    writer.write_run(handle, done(1))
    assert writer.close()
    assert said == [
        f"the history {file} was removed or replaced: a new one was started under that name",
        f"1 run of batch 1 is not in the history {file}: {way_out(file)}",
    ]
    assert (handle.number, kept(file)) == (1, [False, True])


def test_a_file_that_comes_back_as_it_was_is_written_on(file: Path) -> None:
    said: list[str] = []
    writer = HistoryWriter(file, said.append)
    handle = writer.begin(batch_of(2))
    writer.write_run(handle, done(0))
    assert writer.wait_until_written(10)
    with closing(sqlite3.connect(file)) as saved, closing(sqlite3.connect(file.with_name("saved"))) as copy:
        saved.backup(copy)
    for ending in ("", "-wal", "-shm"):
        Path(f"{file}{ending}").unlink(missing_ok=True)
    file.with_name("saved").rename(file)
    writer.write_run(handle, done(1))
    assert writer.close()
    assert (handle.number, kept(file), len(said)) == (1, [True, True], 1)


def test_a_batch_is_claimed_for_as_long_as_it_goes_on(file: Path) -> None:
    writer = HistoryWriter(file, nothing_said)
    handle = writer.begin(batch_of(2))
    assert writer.wait_until_written(10)
    assert is_claimed(file, 1)
    with pytest.raises(HistoryError, match="batch 1 is running"):
        writer.resume(BatchHandle(1, {"again": 1}))
    with pytest.raises(HistoryError, match="batch 1 is running"):
        remove_batches(file, [1], nothing_said)
    writer.end(handle, "2030")
    assert writer.wait_until_written(10)
    assert not is_claimed(file, 1)
    writer.resume(again := BatchHandle(1, {"run-1": 1}))
    assert is_claimed(file, 1)
    writer.write_run(again, done(1))
    assert writer.close()
    assert not is_claimed(file, 1)
    assert kept(file) == [False, True]


def test_a_batch_that_is_not_there_cannot_go_on(file: Path) -> None:
    writer = HistoryWriter(file, nothing_said)
    writer.end(writer.begin(batch_of(1)), "2030")
    assert writer.wait_until_written(10)
    with pytest.raises(HistoryError, match=r"batch 7 is no longer in the history .*: start a new one"):
        writer.resume(BatchHandle(7, {"run-0": 0}))
    assert not is_claimed(file, 7)
    assert writer.close()


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_batch_does_not_go_on_while_nothing_can_be_written(file: Path) -> None:
    said: list[str] = []
    writer = HistoryWriter(file, said.append)
    writer.end(writer.begin(batch_of(1)), "2030")
    other = writer.begin(batch_of(1))
    assert writer.wait_until_written(10)
    for waiting in (0, 1):
        with locked(file):
            if waiting:
                writer.write_run(other, done(0)).result(10)
            with pytest.raises(HistoryError, match="locked by another program: end that program, or wait"):
                writer.resume(BatchHandle(1, {"run-0": 0}))
        assert not is_claimed(file, 1)
        assert len(said) == waiting, "what waits for nothing is tried again by nobody"
    writer.resume(again := BatchHandle(1, {"run-0": 0}))
    writer.write_run(again, done(0))
    assert writer.close()
    assert kept(file, 1) == kept(file, 2) == [True]
    with pytest.raises(HistoryError, match="is no longer written"):
        writer.resume(BatchHandle(1, {}))


def test_what_is_in_the_history_is_not_written_over(file: Path) -> None:
    writer = HistoryWriter(file, nothing_said)
    handle = writer.begin(batch_of(1))
    writer.write_run(handle, done(0))
    writer.end(handle, "2030")
    writer.wait_until_written(10)
    again = done(0)
    writer.resume(second := BatchHandle(1, {"run-0": 0}))
    writer.write_run(second, replace(again, result=replace(again.result, status=Status.FAILED)))
    assert writer.close()
    with History(file) as history:
        (batch,) = history.batches()
        assert (batch.count(Status.PASSED), batch.count(Status.FAILED), batch.missing) == (1, 0, 0)


def test_a_writer_that_closes_leaves_one_file_with_everything_in_it(file: Path) -> None:
    writer = HistoryWriter(file, nothing_said)
    writer.write_run(writer.begin(batch_of(1)), done(0))
    assert writer.close()
    assert sorted(path.name for path in file.parent.iterdir()) == [file.name, f"{file.name}-claims"]


TWO = """
writer = HistoryWriter(file, say)
say("ready")
sys.stdin.readline()
for number in range(15):
    handle = writer.begin(batch_of(20))
    for run in range(20):
        writer.write_run(handle, done(run))
    writer.end(handle, "2030")
say(str(writer.close()))
"""


@pytest.mark.slow
def test_two_programs_write_at_once(file: Path) -> None:
    programs = [child(TWO, file) for _ in range(2)]
    for program in programs:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
    said = []
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()
    for program in programs:
        said.append(program.communicate(timeout=60)[0])
    assert said == ["True\n"] * 2
    with History(file) as history:
        assert [(batch.count(Status.PASSED), batch.missing) for batch in history.batches()] == [(20, 0)] * 30


def test_what_is_removed_makes_the_file_smaller(file: Path) -> None:
    writer = HistoryWriter(file, nothing_said)
    for _ in range(3):
        handle = writer.begin(batch_of(200))
        for number in range(200):
            writer.write_run(handle, done(number))
        writer.end(handle, "2030")
    assert writer.close()
    before = file.stat().st_size
    remove_batches(file, [1, 2], nothing_said)
    assert file.stat().st_size < before * 0.65
    assert kept(file, 3) == [True] * 200
