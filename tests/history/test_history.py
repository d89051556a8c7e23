"""A stored batch is read back unchanged."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.history.batches import SUITE, run_kept
from workbench.analysis.trends import trends_of
from workbench.engine.recordings import result_of_recording, suite_of_recording
from workbench.grading.run_summary import summary_of
from workbench.grading.status import Status
from workbench.history import columns, database
from workbench.history.database import MIGRATIONS, open_for_writing
from workbench.history.edits import add_grading, name_batch, remove_batches
from workbench.history.history import History
from workbench.history.records import DamagedError, HistoryError


def nothing_said(said: str) -> None:
    raise AssertionError(said)


def test_a_history_that_was_never_written_is_empty(file: Path) -> None:
    with History(file) as history:
        assert history.batches() == []
    assert not file.parent.exists()


def test_a_batch_is_listed_with_what_its_runs_came_to(tmp_path: Path, file: Path) -> None:
    results, said = run_kept(tmp_path, file, repeats=2)
    assert said == []
    with History(file) as history:
        (batch,) = history.batches()
        assert history.batch("#1") == history.batch("1") == batch
    assert (batch.number, batch.planned, batch.missing, batch.kind) == (1, 4, 0, "runs")
    assert batch.count(Status.PASSED) == sum(result.status == "passed" for result in results) == 2
    assert (batch.models, batch.pass_rate) == (("offline",), 0.5)
    (suite,) = batch.suites
    assert (suite.name, suite.path, suite.cases) == ("Weather", "weather.toml", 2)
    assert batch.ended_at is not None and batch.ended_at >= batch.started_at
    assert batch.settings["models"] == {"offline": {"provider": "built in"}}


def test_each_run_has_its_figures(tmp_path: Path, file: Path) -> None:
    results, _ = run_kept(tmp_path, file)
    with History(file) as history:
        runs = history.runs(1)
    by_case = {result.case_id: result for result in results}
    assert [run.case_id for run in runs] == ["paris", "nowhere"]
    for run in runs:
        kept = run.figures
        assert kept is not None and kept.began_ms is not None and kept.ended_ms is not None
        wanted = summary_of(by_case[run.case_id], began_ms=kept.began_ms, ended_ms=kept.ended_ms)
        assert kept == replace(wanted, suite=run.suite.key)


def test_a_run_is_opened_with_all_that_happened_in_it(tmp_path: Path, file: Path) -> None:
    results, _ = run_kept(tmp_path, file)
    with History(file) as history:
        for run, result in zip(history.runs(1), results, strict=True):
            recording = history.recording(run)
            opened = result_of_recording(recording)
            assert recording.trajectory == result.trajectory
            assert (opened.grades, opened.status, opened.steps) == (result.grades, result.status, result.steps)
            suite = suite_of_recording(recording).suite
            assert suite is not None and [case.id for case in suite.cases] == [run.case_id]
        assert history.suite_text(run.suite) == SUITE


def test_a_case_is_found_in_all_batches_of_its_suite_the_newest_first(tmp_path: Path, file: Path) -> None:
    run_kept(tmp_path, file)
    run_kept(tmp_path, file, suite=SUITE.replace("Rome", "Berlin"))
    with History(file) as history:
        found = history.runs_of_case(str(tmp_path.resolve() / "weather.toml"), "nowhere", 10, nothing_said)
    assert [run.batch for run in found] == [2, 1]
    assert [run.figures.status for run in found if run.figures] == ["passed", "failed"]


def test_cases_of_two_projects_are_two_even_where_their_paths_are_the_same(tmp_path: Path, file: Path) -> None:
    for project in ("a", "b"):
        (tmp_path / project).mkdir()
        run_kept(tmp_path / project, file)
    with History(file) as history:
        one, other = (history.runs(number)[0] for number in (1, 2))
        found = history.runs_of_case(other.suite.key, "paris", 10, nothing_said)
        trends = trends_of(history.batches())
    assert one.suite.path == other.suite.path
    assert one.figures is not None and one.figures.suite == one.suite.key != other.suite.key
    assert [run.batch for run in found] == [2]
    assert trends == {(one.suite.key, "offline"): [(1, 0.5)], (other.suite.key, "offline"): [(2, 0.5)]}


def test_a_name_belongs_to_the_batch_that_got_it_last(tmp_path: Path, file: Path) -> None:
    run_kept(tmp_path, file)
    run_kept(tmp_path, file)
    name_batch(file, 1, "good", nothing_said)
    for _ in range(2):
        name_batch(file, 2, "good", nothing_said)
    with History(file) as history:
        assert (history.batch("good").number, history.batch("good").named_after) == (2, 1)
        assert (history.batch("1").name, history.batch("1").named_after) == (None, None)
    name_batch(file, 2, "best", nothing_said)
    with History(file) as history:
        assert history.batch("best").named_after is None, "nothing was called best before"
    with pytest.raises(HistoryError, match="a name cannot be a number"):
        name_batch(file, 1, "12", nothing_said)
    with pytest.raises(HistoryError, match="there is no batch 7"):
        name_batch(file, 7, "good", nothing_said)


def test_new_grades_stand_beside_the_old_ones(tmp_path: Path, file: Path) -> None:
    results, _ = run_kept(tmp_path, file)
    with History(file) as history:
        before = history.runs(1)
        failed, passed = before[1], results[0]
        figures = summary_of(passed)
        add_grading(file, 1, "2030-01-01", "9", [(failed.id, figures, passed)], nothing_said)
        (grading,) = history.gradings(1)
        assert history.runs(1) == before
        again = history.runs(1, grading)
        assert again[0] == before[0]
        assert again[1].figures is not None and again[1].figures.status == "passed"
        assert history.recording(again[1], grading).result != history.recording(failed).result


def test_the_outcome_of_a_run_is_read_without_its_events(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, _ = run_kept(tmp_path, file)
    with History(file) as history:
        runs = history.runs(1)
        passed = results[0]
        add_grading(file, 1, "2030-01-01", "9", [(runs[1].id, summary_of(passed), passed)], nothing_said)
        (grading,) = history.gradings(1)
        wanted = [history.recording_and_outcome(run, each)[1] for each in (None, grading) for run in runs]
        monkeypatch.setattr("workbench.history.history.events_in", None)
        assert [history.outcome(run, each) for each in (None, grading) for run in runs] == wanted
        assert wanted[1] != wanted[3] == wanted[0]
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM details WHERE run = ?", (runs[0].id,))
    with History(file) as history, pytest.raises(DamagedError, match="its events are missing"):
        history.outcome(runs[0])


def test_removing_a_batch_leaves_nothing_of_it_and_everything_else(tmp_path: Path, file: Path) -> None:
    run_kept(tmp_path, file)
    run_kept(tmp_path, file, suite=SUITE + "\n# another text\n")
    remove_batches(file, [1], nothing_said)
    with History(file) as history:
        assert [batch.number for batch in history.batches()] == [2]
        assert len(history.runs(2)) == 2
    with closing(sqlite3.connect(file)) as connection:
        counts = {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("suites", "batches", "parts", "runs", "details")
        }
    assert counts == {"suites": 1, "batches": 1, "parts": 1, "runs": 2, "details": 2}


@pytest.mark.parametrize("at", [columns.BATCH, columns.PART, columns.SUITE, columns.RUN])
def test_what_is_removed_while_it_is_read_is_there_as_a_whole_or_not_at_all(
    tmp_path: Path, file: Path, at: Mapping[str, columns.Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_kept(tmp_path, file)
    read = columns.read
    removed: list[int] = []

    def removed_meanwhile(wanted: Mapping[str, columns.Reader], row: Sequence[Any]) -> list[Any]:
        if wanted is at and not removed:
            removed.append(1)
            remove_batches(file, removed, nothing_said)
        return read(wanted, row)

    monkeypatch.setattr(columns, "read", removed_meanwhile)
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)  # making the file smaller waits for who reads it
    with History(file) as history:
        if at is not columns.RUN:
            (batch,) = history.batches()
            assert (batch.planned, batch.missing, len(batch.parts), batch.suites[0].name) == (2, 0, 1, "Weather")
        else:
            assert [run.figures is not None for run in history.runs(1)] == [True, True]
        assert removed
        assert (history.batches(), list(history.runs(1))) == ([], [])
        with pytest.raises(HistoryError, match="there is no batch '1'"):
            history.batch("1")


def test_a_suite_that_takes_the_place_of_a_removed_one_is_not_taken_for_it(tmp_path: Path, file: Path) -> None:
    run_kept(tmp_path, file)
    with History(file) as history:
        assert [suite.name for suite in history.batches()[0].suites] == ["Weather"]
        remove_batches(file, [1], nothing_said)
        run_kept(tmp_path, file, suite=SUITE.replace('"Weather"', '"Another"'))
        assert [suite.name for suite in history.batches()[0].suites] == ["Another"]
        assert [run.suite.name for run in history.runs(2)] == ["Another"] * 2


def test_what_earlier_programs_wrote_beside_a_grading_is_in_nobodys_way(tmp_path: Path, file: Path) -> None:
    run_kept(tmp_path, file)
    add_grading(file, 1, "2030", "9", [], nothing_said)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE gradings SET hashes = ?", ('{"/there/weather.toml": "0f"}',))
        connection.commit()
    add_grading(file, 1, "2031", "9", [], nothing_said)
    with History(file) as history:
        assert [(grading.number, grading.graded_at) for grading in history.gradings(1)] == [(1, "2030"), (2, "2031")]


def test_a_history_of_the_first_version_is_brought_up_to_this_one(file: Path) -> None:
    file.parent.mkdir()
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(MIGRATIONS[0] + "PRAGMA application_id = 0x576B4248; PRAGMA user_version = 1;")
        connection.execute(
            "INSERT INTO batches (kind, started_at, program, settings, planned) VALUES ('runs', '2030', '1', '{}', 1)"
        )
        connection.execute("INSERT INTO suites VALUES (1, 'shop', 'shop.toml', '0f', 'Shop', 1, x'', NULL)")
        connection.execute(
            "INSERT INTO parts (batch, suite, model, planned, passed, cases) VALUES (1, 1, 'm', 1, 1, 1)"
        )
        connection.execute(
            "INSERT INTO runs (batch, place, suite, case_id, case_name, model, model_of_suite, repeat, is_fork, run_id,"
            " status, broken, latency_ms, asked) VALUES (1, 0, 1, 'a', 'A', 'm', 0, 0, 0, 'run-1', 'passed', 0, 62, 1)"
        )
        connection.commit()
    with History(file) as history:
        assert [batch.number for batch in history.batches()] == [1]
        assert history.gradings(1) == []
        (run,) = history.runs(1)
    assert run.figures is not None
    assert (run.figures.latency_ms, run.figures.loop_ms) == (62, None), "that time was not kept then"


def test_a_history_of_a_newer_program_is_left_alone(file: Path) -> None:
    open_for_writing(file, nothing_said).close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    before = file.read_bytes()
    with pytest.raises(HistoryError, match="update this one"):
        History(file)
    assert file.read_bytes() == before


def test_a_damaged_history_is_set_aside_and_a_new_one_begins(tmp_path: Path, file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"no database" * 100)
    _, said = run_kept(tmp_path, file)
    assert len(said) == 1 and "was damaged" in said[0]
    (aside,) = file.parent.glob("*damaged*")
    assert aside.read_bytes() == b"no database" * 100
    with History(file) as history:
        assert [batch.number for batch in history.batches()] == [1]


@pytest.mark.slow
def test_a_database_of_something_else_is_left_alone(tmp_path: Path, file: Path) -> None:
    file.parent.mkdir()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE addresses (name TEXT)")
    _, said = run_kept(tmp_path, file)
    assert any("not a history" in text for text in said)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("addresses",)]
