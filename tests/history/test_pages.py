"""Batches of any size are read a page at a time, and each page is found by an index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.history.batches import SUITE, run_kept
from tests.history.entries import batch_of
from tests.programs import program_of
from tests.sampled_rows import first_of
from workbench.analysis.trends import stored_trends, trends_of
from workbench.engine.missing_runs import resumable
from workbench.engine.recordings import result_of_recording
from workbench.grading.run_summary import summary_of
from workbench.grading.status import Status
from workbench.history import columns, edits, rows, writer
from workbench.history import history as reading
from workbench.history.database import bytes_on_disk
from workbench.history.edits import add_grading, remove_batches
from workbench.history.history import History
from workbench.history.records import HistoryError
from workbench.history.writer import BatchHandle, BeginBatch, OpenHistory


def nothing_said(said: str) -> None:
    raise AssertionError(said)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGE", 3)


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("repeats", first_of([1, 3, 4], 2))
def test_the_pages_of_a_batch_are_all_of_its_runs_by_any_grading(tmp_path: Path, file: Path, repeats: int) -> None:
    run_kept(tmp_path, file)
    run_kept(tmp_path, file, repeats=repeats)
    with History(file) as history:
        right, wrong = history.runs(2)[0], history.runs(2)[-1]
        passed = result_of_recording(history.recording(right))
        add_grading(file, 2, "2030-01-01", "9", [(wrong.id, summary_of(passed), passed)], nothing_said)
        (grading,) = history.gradings(2)
        assert list(history.each_run(2)) == history.runs(2) and len(history.runs(2)) == 2 * repeats
        regraded = list(history.each_run(2, grading))
        assert regraded == history.runs(2, grading) != history.runs(2)
        (counted,) = history.counted_again(history.batch("2"), grading)
        ended = [run.figures.status for run in regraded if run.figures is not None]
        assert counted.counts == {status: ended.count(status) for status in Status}
        assert counted.counts[Status.PASSED] == repeats + 1
        assert list(history.each_run(3)) == []


@pytest.mark.usefixtures("small_pages")
def test_a_batch_that_is_removed_while_its_pages_are_read_does_not_just_end(tmp_path: Path, file: Path) -> None:
    run_kept(tmp_path, file, repeats=4)
    with History(file) as history:
        pages = history.each_run(1)
        next(pages)
        remove_batches(file, [1], nothing_said)
        with pytest.raises(HistoryError, match=r"was removed from .* while it was being read"):
            list(pages)


def test_no_page_is_looked_for_in_all_runs(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_kept(tmp_path, file)
    asked: list[tuple[str, Sequence[Any]]] = []
    read = History._cursor

    def seen(self: History, statement: str, values: Sequence[Any]) -> object:
        asked.append((statement, values))
        return read(self, statement, values)

    monkeypatch.setattr(History, "_cursor", seen)
    with History(file) as history:
        run = history.runs_from(1, 0, 1)[0]
        add_grading(file, 1, "2030-01-01", "9", [], nothing_said)
        history.runs_from(1, 1, 1, history.gradings(1)[0])
        history.runs_of_case(run.suite.key, run.case_id, 5, nothing_said)
        history.last_runs({run.suite.key: [run.case_id]}, nothing_said)
        history.recording(run)
    with closing(sqlite3.connect(file)) as connection:
        steps = [row[3] for each in asked for row in connection.execute(f"EXPLAIN QUERY PLAN {each[0]}", each[1])]
    tables = ("runs", "one", "first", "details", "regrades", "suites", "shared")
    scans = [step for step in steps if step.startswith("SCAN") and step.split()[1] in tables]
    assert scans == [] and any("USING INDEX sqlite_autoindex_runs_1 (batch=? AND place>?)" in step for step in steps)


def test_what_a_killed_removal_leaves_is_shown_nowhere_and_goes_with_the_next_one(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_kept(tmp_path, file)
    run_kept(tmp_path, file, repeats=2)
    monkeypatch.setattr(edits, "MAX_RUNS_PER_STEP", 3)
    steps = 0

    @contextmanager
    def killed() -> Iterator[None]:
        nonlocal steps
        yield
        steps += 1
        if steps == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(edits, "yielding_step", killed)
        remove_batches(file, [2], nothing_said)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT count(*) FROM runs WHERE batch = 2").fetchone() == (1,)
    with History(file) as history:
        assert [batch.number for batch in history.all_batches()] == [1]
        key = history.runs(1)[0].suite.key
        assert {run.batch for run in history.runs_of_case(key, "nowhere", 9, nothing_said)} == {1}
        assert {run.batch for run in history.last_runs({key: ["nowhere"]}, nothing_said)} == {1}
    run_kept(tmp_path, file)
    remove_batches(file, [1], nothing_said)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT DISTINCT batch FROM runs").fetchall() == [(3,)]
        assert connection.execute("SELECT count(*) FROM details").fetchone() == (2,)


@pytest.mark.slow
def test_a_large_history_is_made_smaller_without_being_written_again(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edits, "REWRITTEN_FILE_BYTES", 0)
    for _ in range(2):
        run_kept(tmp_path, file, repeats=50)
    with History(file) as history:
        one, other = (history.bytes_of([batch]) for batch in history.batches())
        assert history.bytes_of(history.batches()) == one + other > 10_000
    before = bytes_on_disk(file)
    assert remove_batches(file, [1], nothing_said) == 0
    assert bytes_on_disk(file) < before - one / 2
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.execute("VACUUM")  # as in files of earlier versions
    run_kept(tmp_path, file, repeats=50)
    before = bytes_on_disk(file)
    assert remove_batches(file, [2], nothing_said) > one / 2
    assert bytes_on_disk(file) <= before


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_large_plan_is_written_in_steps(file: Path, monkeypatch: pytest.MonkeyPatch, *, is_killed: bool) -> None:
    monkeypatch.setattr(writer, "MAX_PLANNED_PER_STEP", 3)
    write = rows.plan_runs
    fails = [False, True, False, False]

    def failing(*values: Any) -> None:
        if fails.pop(0):
            raise KeyboardInterrupt if is_killed else sqlite3.OperationalError("database or disk is full")
        write(*values)

    monkeypatch.setattr(writer, "plan_runs", failing)
    batch = batch_of(8)
    handle = BatchHandle(places={run.run_id: place for place, run in enumerate(batch.runs)})
    with closing(OpenHistory(file, nothing_said)) as going:
        with pytest.raises(KeyboardInterrupt if is_killed else HistoryError):
            going.write([BeginBatch(handle, batch)])
        if not is_killed:
            going.write([BeginBatch(handle, batch)])
    with History(file) as history:
        (stored,) = history.batches()
        assert [run.place for run in history.runs(1)] == list(range(3 if is_killed else 8))
        assert (stored.planned, stored.missing) == (8, 8)
        if is_killed:
            with pytest.raises(HistoryError, match=r"while its plan was being written, 3 of its 8 runs are in it"):
                resumable(history, stored, program_of(file.parent))


def test_of_many_batches_only_those_are_read_that_are_looked_at(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(7):
        run_kept(tmp_path, file)
    run_kept(tmp_path, file, suite=SUITE.replace("Weather", "Climate"))
    monkeypatch.setattr(reading, "MAX_BATCHES_PER_STEP", 2)
    read_rows: list[str] = []
    read = columns.read

    def seen(wanted: Any, row: Sequence[Any]) -> list[Any]:
        read_rows.extend(["batch"] if wanted is columns.BATCH else ["part"] if wanted is columns.PART else [])
        return read(wanted, row)

    monkeypatch.setattr(columns, "read", seen)
    with History(file) as history:
        assert [batch.number for batch in islice(history.each_batch(), 3)] == [8, 7, 6]
        assert read_rows.count("batch") == read_rows.count("part") == 4
        assert [batch.number for batch in history.each_batch()] == list(range(8, 0, -1))
        weather = history.suites_called("Weather")
        assert [batch.number for batch in history.each_batch(suites=weather)] == list(range(7, 0, -1))
        assert (history.count_batches(weather), history.count_batches()) == ((7, 0), (8, 0))
        assert list(history.each_batch(forks=True)) == list(history.each_batch(lacking=True)) == []
        (suite,) = history.batch("5").suites
        read_rows.clear()
        trends = stored_trends(history, [(suite.key, "offline")], 5)
        assert trends == trends_of(reversed(history.batches()[3:]))
        monkeypatch.setattr("workbench.analysis.trends.MAX_TREND", 2)
        read_rows.clear()
        assert stored_trends(history, [(suite.key, "offline")], 7) == {(suite.key, "offline"): [(6, 0.5), (7, 0.5)]}
        assert read_rows.count("part") == 2
