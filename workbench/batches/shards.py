"""Shards: one plan of which several programs, also on several machines, make some runs each. Every run keeps its place
in the whole plan."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import replace

from workbench.batches.plan import PlannedRun
from workbench.dataclasses import dataclass
from workbench.history.records import ShardRef


@dataclass(frozen=True)
class PlannedShard:
    """One shard of a plan. `whole` are all runs of the plan in their order, `places` those of the runs that this shard
    makes."""

    ref: ShardRef
    whole: tuple[PlannedRun, ...]
    places: tuple[int, ...]

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        """The runs that this shard makes, in the order of the plan. Their ids are those of no run of another shard."""
        return tuple(
            replace(self.whole[place], run_id=run_id_at(self.whole[place].run_id, place)) for place in self.places
        )


def run_id_at(run_id: str, place: int) -> str:
    """Return the id of a run that a shard makes: programs number their runs alike, and shards are put together."""
    return run_id if run_id == f"run-{place + 1}" else f"{run_id}.{place + 1}"


def places_in_turn(planned: int, index: int, of: int) -> tuple[int, ...]:
    """Return the places of a shard that takes its runs in turn with the others: each then has all models."""
    return tuple(range(index - 1, planned, of))


def places_by_cost(costs: Sequence[float], index: int, of: int) -> tuple[int, ...]:
    """Return the places of a shard where what runs cost is shared out evenly: the dearest first, each to the shard that
    has least so far. The same costs give the same shards."""
    load = [(0.0, shard) for shard in range(of)]
    mine: list[int] = []
    for place in sorted(range(len(costs)), key=lambda place: (-costs[place], place)):
        cost, shard = load[0]
        heapq.heapreplace(load, (cost + costs[place], shard))
        if shard == index - 1:
            mine.append(place)
    return tuple(sorted(mine))


def costs_of(
    runs: Sequence[PlannedRun], means: Mapping[tuple[str, str, str], float], paths: Mapping[str, str]
) -> list[float]:
    """Return what each run of a plan is expected to take, in milliseconds: as its case took with its model, else as its
    model takes, else as all models do. `means` are by path of the suite in its project, case and model; `paths` has
    that path of each suite's file."""
    of_model: dict[str, list[float]] = {}
    for (_, _, model), mean in means.items():
        of_model.setdefault(model, []).append(mean)
    usual = {model: sum(each) / len(each) for model, each in of_model.items()}
    of_all = sum(means.values()) / len(means) if means else 1.0
    return [
        means.get((paths[str(run.file.path)], run.case.id, run.model), usual.get(run.model, of_all)) for run in runs
    ]
