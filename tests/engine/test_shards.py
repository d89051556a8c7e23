"""Shards of a plan: exactly one of them makes each run, and all know the whole plan."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.engine.plan import PlannedShard, places_by_cost, places_in_turn, plan_runs, run_id_at
from workbench.history.records import Outline, OutlinedRun, ShardRef
from workbench.suite.suite_file import parse_suite

SUITE = """format = 1
name = "Two"
models = ["offline", "offline:careless"]

[[cases]]
name = "Once"
user = "Once."

[[cases]]
name = "Thrice"
user = "Thrice."
repeats = 3
"""


@given(costs=st.lists(st.sampled_from([0.0, 1.0, 1.5, 700.0]), max_size=30), of=st.integers(1, 12))
def test_every_place_is_in_exactly_one_shard(costs: list[float], of: int) -> None:
    everything = list(range(len(costs)))
    in_turn = [places_in_turn(len(costs), index, of) for index in range(1, of + 1)]
    by_cost = [places_by_cost(costs, index, of) for index in range(1, of + 1)]
    assert sorted(place for shard in in_turn for place in shard) == everything
    assert sorted(place for shard in by_cost for place in shard) == everything
    loads = [sum(costs[place] for place in shard) for shard in by_cost]
    assert max(loads) <= sum(costs) / of + max(costs, default=0.0) + 1e-6, "no shard has much more than its part"


def test_what_costs_the_same_is_taken_in_turn() -> None:
    assert [places_by_cost([1.0] * 7, index, 3) for index in (1, 2, 3)] == [(0, 3, 6), (1, 4), (2, 5)]


def test_an_outline_has_all_runs_of_a_plan_in_their_order() -> None:
    files = [parse_suite(SUITE, Path(f"/here/{name}.toml")) for name in ("a", "b")]
    numbers = count(1)
    planned = plan_runs(files, by="accuracy", next_run_id=lambda: f"run-{next(numbers)}")
    runs = [
        OutlinedRun(files.index(run.file), run.case.id, run.case.name, run.model, True, run.by, run.repeat)
        for run in planned
    ]
    outline = Outline.of(runs, [("a.toml", files[0].hash), ("b.toml", files[1].hash)])
    read = Outline.read(outline.text)
    assert read == outline
    assert list(read.runs()) == runs
    assert (read.planned, sum(read.parts.values()), len(read.parts)) == (16, 16, 4)
    assert read.uid({}, None) == outline.uid({}, None) != outline.uid({}, "tuesday") != outline.uid({"a": 1}, "tuesday")
    shard = PlannedShard(ShardRef(2, 3, 16), planned, places_in_turn(16, 2, 3))
    assert [run.run_id for run in shard.runs] == ["run-2", "run-5", "run-8", "run-11", "run-14"]
    assert run_id_at("run-102", 1) == "run-102.2"


@each_row(
    "text",
    [
        "[]",
        '{"version": 2, "suites": [], "shapes": [], "blocks": []}',
        '{"version": 1, "suites": [["a", "0f"]], "shapes": [], "blocks": [[0, 0, [["a", "A"]]]]}',
        '{"version": 1, "suites": [], "shapes": [[["m", true, null, 0, 1]]], "blocks": [[0, 0, [["a", "A"]]]]}',
        '{"version": 1, "suites": [["a", "0f"]], "shapes": [[["m", true, null, 0, 1000000000]]],'
        ' "blocks": [[0, 0, [["a", "A"]]]]}',
        '{"version": 1, "suites": [["a", 1]], "shapes": [], "blocks": []}',
    ],
)
def test_what_is_no_outline_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="plan"):
        Outline.read(text)
