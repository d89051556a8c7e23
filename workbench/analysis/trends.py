"""The pass rates of suites from batch to batch."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING

from workbench.grading.status import Status

if TYPE_CHECKING:
    from workbench.history.history import History
    from workbench.history.records import BatchPart, BatchRow

MAX_TREND = 16
"""The number of latest values that a trend shows."""

TrendKey = tuple[str, str]
"""The key of a suite, and a model."""


def rate_of(parts: Iterable[BatchPart]) -> tuple[int, int]:
    """Return how many runs of some parts passed or were warned, and how many were graded."""
    counts = [each for part in parts for each in part.counts.items()]
    good = sum(count for status, count in counts if status.good)
    return good, sum(count for status, count in counts if status.graded)


def is_whole(part: BatchPart) -> bool:
    """Return whether every case of the suite has a result with the model: graded, skipped, or without expectations."""
    _, graded = rate_of((part,))
    not_owed = sum(count for status, count in part.counts.items() if not status.owed)
    return part.whole and bool(graded) and graded + not_owed == part.planned


def trends_of(batches: Iterable[BatchRow]) -> dict[TrendKey, list[tuple[int, float]]]:
    """Return the pass rate, 0..1, of each suite with each model in every whole batch, with the batch's number.

    Batches stay in the given order. Forks and shards are ignored, and so are batches that stopped early: their rates
    are biased."""
    found: dict[TrendKey, list[tuple[int, float]]] = {}
    for batch in batches:
        for part in batch.parts if batch.kind == "runs" and batch.shard is None else ():
            if counts_in_trend(part, stops_early="until" in batch.settings):
                good, graded = rate_of((part,))
                found.setdefault((part.suite.key, part.model), []).append((batch.number, good / graded))
    return found


def counts_in_trend(part: BatchPart, *, stops_early: bool) -> bool:
    """Return whether a part is in trends; `stops_early` is whether its batch was to end when it was decided."""
    return is_whole(part) and not (stops_early and part.counts[Status.SKIPPED])


def stored_trends(history: History, keys: Iterable[TrendKey], up_to: int) -> dict[TrendKey, list[tuple[int, float]]]:
    """Return the latest `MAX_TREND` of `trends_of` for these keys, up to a batch, from a history of any size.

    Raises HistoryError."""
    found: dict[TrendKey, list[tuple[int, float]]] = {}
    for suite, model in dict.fromkeys(keys):
        with closing(history.parts_over_time(suite, model, up_to)) as parts:
            whole = ((at, part) for at, part, stops_early in parts if counts_in_trend(part, stops_early=stops_early))
            latest = []
            for at, part in islice(whole, MAX_TREND):
                latest.append((at, *rate_of((part,))))
        if latest:
            found[suite, model] = [(at, good / graded) for at, good, graded in reversed(latest)]
    return found
