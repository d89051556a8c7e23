"""Which runs of a plan one of its shards makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.batches.known_secrets import learn_secrets_of_runs
from workbench.batches.plan import PlannedRun
from workbench.batches.shards import PlannedShard, costs_of, places_by_cost, places_in_turn
from workbench.batches.specs import Specs
from workbench.config.program import Program
from workbench.config.project import path_in, project_folder
from workbench.evaluation.options import Shard
from workbench.evaluation.plan import Notice
from workbench.history.history import History
from workbench.history.records import HistoryError, ShardRef


def part_of(shard: Shard, runs: Sequence[PlannedRun], program: Program, specs: Specs) -> PlannedShard:
    """Return the part of a plan that a shard makes. Raises HistoryError when the history of its costs cannot be
    read."""
    # All shards say the same of the whole plan, without secrets, also of models that only others ask.
    learn_secrets_of_runs(program, runs, specs)
    if shard.costs is None:
        places = places_in_turn(len(runs), shard.index, shard.of)
    else:
        if not shard.costs.exists():
            raise HistoryError(f"there is no history {shard.costs} with latencies to share runs out by")
        with History(shard.costs) as history:
            means = history.mean_latencies()
        files = {run.file.path for run in runs}
        home = program.environment.home
        paths = {str(file): path_in(project_folder(file.parent, home), file) for file in files}
        places = places_by_cost(costs_of(runs, means, paths), shard.index, shard.of)
    ref = ShardRef(shard.index, shard.of, len(runs), shard.plan_id)
    return PlannedShard(ref, tuple(runs), places)


def notices_of(shard: Shard, part: PlannedShard) -> Iterator[Notice]:
    """What is to be known of a shard before its first run."""
    yield Notice(f"{part.ref}: {len(part.places):,} of {len(part.whole):,} runs", "detail")
    if shard.plan_id is None:
        yield Notice(
            "this batch has no id: shards of the next batch of this plan would count as the same batch when they are "
            "merged; give all shards of one batch the same --plan ID",
            "warning",
        )
