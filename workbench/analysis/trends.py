"""Trends: the pass rates of suites from batch to batch."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING

from workbench.grading.status import Status

if TYPE_CHECKING:
    from workbench.history.history import History
    from workbench.history.records import BatchPart, BatchRow

MAX_TREND = 16
"""The most values of a trend. The latest values are shown."""

TrendKey = tuple[str, str]
"""The suite's key, and the model."""


def good_and_graded(parts: Iterable[BatchPart]) -> tuple[int, int]:
    """Return the number of good runs (passed or warned) and the number of graded runs in parts of batches."""
    good = graded = 0
    for part in parts:
        for status, count in part.counts.items():
            if status.good:
                good += count
            if status.graded:
                graded += count
    return good, graded


def is_whole(part: BatchPart) -> bool:
    """Return whether a batch ran a whole suite, with a result for each planned run and at least one graded run.

    `part` is the part of the batch for one suite and model. Runs that were skipped or had no expectations also have a
    result."""
    _, graded = good_and_graded((part,))
    not_owed = sum(count for status, count in part.counts.items() if not status.owed)
    return part.whole and bool(graded) and graded + not_owed == part.planned


def trends_of(batches: Iterable[BatchRow]) -> dict[TrendKey, list[tuple[int, float]]]:
    """Return the pass rates, 0..1, of each suite with each model, together with the batch numbers.

    Batches keep the given order. Only batches that ran a whole suite count. Forks, reruns and shards do not count.
    Batches that stopped early do not count either, because their rates are biased."""
    found: dict[TrendKey, list[tuple[int, float]]] = {}
    for batch in batches:
        if batch.kind != "runs" or batch.shard is not None:
            continue
        for part in batch.parts:
            if counts_in_trend(part, stops_early="until" in batch.settings):
                good, graded = good_and_graded((part,))
                found.setdefault((part.suite.key, part.model), []).append((batch.number, good / graded))
    return found


def counts_in_trend(part: BatchPart, *, stops_early: bool) -> bool:
    """Return whether a part of a batch counts in trends. `stops_early` is true for a batch that may stop early."""
    # An early decision skips the remaining runs, and `is_whole` counts skipped runs as results.
    return is_whole(part) and not (stops_early and part.counts[Status.SKIPPED])


def stored_trends(history: History, keys: Iterable[TrendKey], up_to: int) -> dict[TrendKey, list[tuple[int, float]]]:
    """Return the trends of some suites and models in a history, at most the latest `MAX_TREND` values up to a batch.

    The history may have any size because it is read backwards until there are enough values. Raises HistoryError."""
    found: dict[TrendKey, list[tuple[int, float]]] = {}
    for suite, model in dict.fromkeys(keys):
        latest: list[tuple[int, float]] = []
        with closing(history.parts_over_time(suite, model, up_to)) as parts:
            for batch, part, stops_early in parts:
                if counts_in_trend(part, stops_early=stops_early):
                    good, graded = good_and_graded((part,))
                    latest.append((batch, good / graded))
                if len(latest) == MAX_TREND:
                    break
        if latest:
            found[suite, model] = latest[::-1]
    return found
