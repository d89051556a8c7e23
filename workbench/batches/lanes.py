"""The runs of a batch in lanes, one for each model at an endpoint, so that a slow one never holds up another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from workbench.batches.plan import PlannedRun


@dataclass
class Lane:
    """Runs that wait for one model, `concurrency` of which may be under way at a time."""

    concurrency: int
    waiting: deque[PlannedRun] = field(default_factory=deque)


@dataclass(frozen=True)
class LaneOf:
    """The lane of a run: the model and its endpoint as `key`, and how many runs may be under way there."""

    key: str
    concurrency: int


def lanes_of(runs: Iterable[PlannedRun], lane_of: Callable[[PlannedRun], LaneOf]) -> tuple[Lane, ...]:
    """Sort runs into lanes, in their order. Where runs of one lane disagree about it, the smallest number holds."""
    lanes: dict[str, Lane] = {}
    for run in runs:
        said = lane_of(run)
        lane = lanes.setdefault(said.key, Lane(said.concurrency))
        lane.concurrency = min(lane.concurrency, said.concurrency)
        lane.waiting.append(run)
    return tuple(lanes.values())
