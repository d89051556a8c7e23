"""The shards of a plan become the batch that one machine would have made, in any order, even if repeated."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.history.entries import FILE
from tests.results import result
from workbench.engine.plan import places_in_turn
from workbench.grading.status import Status
from workbench.history.claims import claim
from workbench.history.database import open_for_writing, transaction
from workbench.history.edits import add_grading
from workbench.history.history import History
from workbench.history.merge import MergeResult, StoredShard, merge, plan_differences, shards_in
from workbench.history.packing import RunPacker
from workbench.history.records import (
    HistoryError,
    NewBatch,
    NewRun,
    NewShard,
    Outline,
    OutlinedRun,
    RunWithEvents,
    ShardRef,
)
from workbench.history.rows import SharedTexts, begin_batch, end_batch, write_run

SAID: list[str] = []


def plan_of(runs: int) -> list[NewRun]:
    """A plan: two cases in turn, on two models."""
    cases = [("paris", "Paris"), ("nowhere", "Nowhere")]
    return [
        NewRun(f"run-{place + 1}", FILE, *cases[place % 2], ("offline", "other")[place // 2 % 2], place // 4, True)
        for place in range(runs)
    ]


def keep(
    file: Path,
    runs: int,
    places: Sequence[int],
    ref: ShardRef | None,
    *,
    made: Iterable[int] | None = None,
    status: Status = Status.PASSED,
    at_ms: float = 0,
    models: dict[str, Any] | None = None,
) -> int:
    """Store a shard, or a whole batch without `ref`. Only the places in `made` have runs. Return the batch's number."""
    plan = plan_of(runs)
    outlined = [OutlinedRun(0, run.case_id, run.case_name, run.model, True, None, run.repeat) for run in plan]
    outline = Outline.of(outlined, [("weather.toml", FILE.hash)])
    batch = NewBatch(
        kind="runs",
        started_at="2030-01-01T00:00:00.000+00:00",
        program="1",
        settings={
            "models": models or {},
            **({"shard": ref.settings} if ref is not None else {}),
        },
        runs=tuple(plan[place] for place in places),
        projects={FILE.path: FILE.path.parent},
        uid=outline.uid({}, ref.plan_id if ref is not None else None),
        shard=NewShard(tuple(places), outline, (FILE,)) if ref is not None else None,
    )
    packer = RunPacker()
    with closing(open_for_writing(file, SAID.append)) as connection, transaction(connection):
        number, shared = begin_batch(connection, file, batch), SharedTexts(connection)
        for place in places if made is None else made:
            run = plan[place]
            verdict = status if status != Status.PASSED else (Status.PASSED, Status.FAILED, Status.ERROR)[place % 3]
            of_run = result(verdict, 0.5, suite="weather.toml", case=run.case_id, model=run.model, repeat=run.repeat)
            done = RunWithEvents(run.run_id, replace(of_run, run_id=run.run_id), (), at_ms + place, at_ms + place + 5)
            packed = packer.packed(done)
            assert packed is not None
            write_run(connection, number, place, packed, shared)
        if made is None:
            end_batch(connection, number, "2030-01-01T00:00:01.000+00:00")
    return number


def content(file: Path, number: int) -> list[Any]:
    """Return the content of a batch without numbers, times and packed bytes."""
    with History(file) as history:
        batch = history.batch(f"#{number}")
        rows = list(history.runs(number))
        parts = [(part.model, part.planned, part.cases, dict(part.counts)) for part in batch.parts]
        told = [
            (row.place, row.suite.key, row.case_id, row.case_name, row.model, row.repeat, row.model_of_suite)
            + ((replace(row.figures, began_ms=0, ended_ms=0), history.recording(row).result) if row.figures else ())
            for row in rows
        ]
        return [batch.planned, batch.missing, batch.ended_at is None, parts, told]


def merged(target: Path, *shards: StoredShard) -> MergeResult:
    return merge(target, shards, Path("/nowhere"), SAID.append)


@hypothesis_settings(max_examples=examples(50), deadline=None)
@given(data=st.data(), runs=st.integers(1, 14), of=st.integers(1, 6))
def test_shards_in_any_order_are_the_undisturbed_batch(data: st.DataObject, runs: int, of: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        whole, source, target = (Path(folder) / f"{name}.sqlite3" for name in ("whole", "source", "target"))
        expected = content(whole, keep(whole, runs, range(runs), None))
        for index in range(1, of + 1):
            places, ref = places_in_turn(runs, index, of), ShardRef(index, of, runs, "p")
            if data.draw(st.booleans(), label=f"shard {index} is killed"):
                keep(source, runs, places, ref, made=places[: data.draw(st.integers(0, len(places)))])
            keep(source, runs, places, ref, at_ms=1000)
        shards = data.draw(st.permutations(shards_in(source)))
        twice = [*shards, *data.draw(st.permutations(shards))]
        for shard in twice:
            came = merged(target, shard)
            assert (came.number, came.second_results, came.damaged, came.kept) == (1, 0, [], [])
        assert content(target, 1) == expected
        (both,) = shards_in(target)
        assert merged(Path(folder) / "again.sqlite3", both).new_results == runs, "what is merged is merged again"
        assert content(Path(folder) / "again.sqlite3", 1) == expected
        with closing(sqlite3.connect(target)) as one, closing(sqlite3.connect(source)) as other:
            packed = "SELECT place, nth, text FROM runs JOIN details ON run = runs.id JOIN shared ON shared.id = block"
            assert set(one.execute(packed)) <= set(other.execute(packed)), "what is packed is not packed again"


def test_what_is_missing_is_known_and_what_comes_later_counts_regrades_included(file: Path, tmp_path: Path) -> None:
    source = tmp_path / "s.sqlite3"
    for index in (1, 3):
        keep(source, 8, places_in_turn(8, index, 3), ShardRef(index, 3, 8))
    one, three = shards_in(source)
    with History(source) as history:
        (row, *_) = history.runs(three.number)
    assert row.figures is not None
    regraded = [(row.id, replace(row.figures, status=Status.WARNED, score=0.25), result(Status.WARNED, 0.25))]
    add_grading(source, three.number, "2031", "2", regraded, SAID.append)
    for _ in range(2):
        merged(file, one, three)
    with History(file) as history:
        batch = history.batch("1")
        assert (batch.planned, batch.missing, batch.ended_at) == (8, 3, None)
        assert batch.merged is not None
        assert (batch.merged.shards, batch.merged.missing) == (((1, 3), (3, 3)), (2,))
        (grading,) = history.gradings(1)
        statuses = [run.figures.status if run.figures else None for run in history.runs(1, grading)]
    assert statuses == ["passed", None, "warned", "passed", None, "error", "passed", None]


def test_a_second_result_that_differs_is_counted_and_named_and_the_first_stays(file: Path, tmp_path: Path) -> None:
    source = tmp_path / "s.sqlite3"
    keep(source, 4, (0, 2), ShardRef(1, 2, 4))
    keep(source, 4, (0, 2), ShardRef(1, 2, 4), at_ms=1000, status=Status.FAILED)
    came = merged(file, *shards_in(source))
    assert (came.new_results, came.second_results) == (2, 2)
    assert came.named[0] == (
        f"run 1, paris with offline: passed 0.50 stays, failed 0.50 of shard 1/2, batch 2 of {source} is left out"
    )
    with History(file) as history:
        assert [run.figures.status for run in history.runs(1) if run.figures is not None] == ["passed", "error"]


def test_runs_that_were_not_shared_out_alike_are_counted_once_all_shards_are_there(file: Path, tmp_path: Path) -> None:
    source = tmp_path / "s.sqlite3"
    for index, places in ((1, (0, 1)), (2, (1, 2)), (1, (0, 1))):
        keep(source, 5, places, ShardRef(index, 2, 5))
    one, two, again = shards_in(source)
    for shards, uneven in (((one, again), (0, 0)), ((one, two, again), (1, 2))):
        came = merged(file, *shards)
        assert (came.covered_by_several, came.covered_by_none) == uneven


def test_shards_in_the_history_itself_become_one_batch_of_it(file: Path) -> None:
    for index in (1, 2):
        keep(file, 5, places_in_turn(5, index, 2), ShardRef(index, 2, 5))
    merged(file, *shards_in(file))
    with History(file) as history:
        (batch,) = history.batches()
    assert (batch.number, batch.missing, shards_in(file)[0].ref) == (3, 0, None)


def test_a_batch_that_goes_on_is_left_alone(file: Path, tmp_path: Path) -> None:
    source = tmp_path / "s.sqlite3"
    keep(source, 2, (0,), ShardRef(1, 2, 2))
    merged(file, *shards_in(source))
    going = claim(file, 1)
    with pytest.raises(HistoryError, match="batch 1 is running in another program"):
        merged(file, *shards_in(source))
    going.release()
    assert merged(file, *shards_in(source)).new_results == 0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("UPDATE plans SET outline = x'00'", "cannot be unpacked"),
        ("UPDATE plans SET suites = '[7]'", "its suite weather.toml is missing"),
        ("UPDATE suites SET hash = 'ff'", "differs from the one in its plan"),
        ("UPDATE runs SET case_id = 'rome' WHERE place = 2", "run 3 of .*: it differs from the run in its plan"),
        ("UPDATE runs SET score = 'good' WHERE place = 2", "run 3 of .*: score must be a score"),
        ("UPDATE runs SET place = 77 WHERE place = 2", "run 78 of .*: it differs from the run in its plan"),
        ("UPDATE details SET block = 99", "a text that the run shares with other runs is missing from the history"),
        ("DELETE FROM details WHERE run = 2", "run 3 of .*: its events are missing"),
    ],
)
def test_what_is_damaged_is_left_out_and_said(file: Path, tmp_path: Path, change: str, why: str) -> None:
    source = tmp_path / "s.sqlite3"
    keep(source, 4, (0, 2), ShardRef(1, 2, 4))
    with closing(sqlite3.connect(source)) as connection, connection:
        connection.execute(change)
    came = merged(file, *shards_in(source))
    assert any(re.search(why, said) for said in came.damaged), came.damaged
    with History(file) as history:
        finished = [run.place for batch in history.batches() for run in history.runs(batch.number) if run.figures]
    assert finished in ([], [0]), "nothing is half there"


def test_shards_of_different_plans_differ_in_what_is_asked(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"provider": "openai", "model": "large", "base_url": "http://there", "params": {}}
    made = [(4, asked), (4, {**asked, "origin": "project", "price": None}), (8, {**asked, "model": "small"})]
    for number, (runs, model) in enumerate(made):
        keep(tmp_path / f"{number}", runs, (0,), ShardRef(1, 2, runs, f"day {number}"), models={"other": model})
    one, dear, small = (shards_in(tmp_path / f"{number}")[0] for number in range(3))
    assert plan_differences(one, dear) == ["ids day 0 and day 1"]
    assert plan_differences(one, small) == ["ids day 0 and day 2", "model other", "cases, repeats, variants or graders"]


@pytest.mark.parametrize("settings", [None, '{"shard": ', b"\xff"], ids=["whole", "cut off", "bytes"])
def test_a_shard_changes_nothing_in_what_runs_take(file: Path, settings: Any) -> None:
    keep(file, 8, range(8), None)
    with History(file) as history:
        before = history.mean_latencies()
    number = keep(file, 8, (0, 1), ShardRef(1, 4, 8, None), status=Status.FAILED, at_ms=70)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE runs SET latency_ms = 1000 WHERE batch = ?", (number,))
        connection.execute("UPDATE batches SET settings = coalesce(?, settings) WHERE id = ?", (settings, number))
    with History(file) as history:
        assert before and history.mean_latencies() == before


def test_a_file_that_is_no_history_with_shards_is_named(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite3"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE notes (text)")
    (tmp_path / "empty.sqlite3").touch()
    for name, why in (("other", "different database"), ("empty", "empty.sqlite3-wal"), ("none", "there is no history")):
        with pytest.raises(HistoryError, match=why):
            shards_in(tmp_path / f"{name}.sqlite3")
    whole = tmp_path / "whole.sqlite3"
    keep(whole, 2, (0, 1), None)
    assert shards_in(whole) == []
    with closing(sqlite3.connect(whole)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(HistoryError, match="newer Workbench"):
        shards_in(whole)
