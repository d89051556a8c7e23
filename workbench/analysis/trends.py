"""How suites did from batch to batch: the pass rates of whole batches."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.history.records import BatchPart, BatchRow

TREND_MAX = 16
"""Values that a trend shows, the latest of them."""

TrendKey = tuple[str, str]
"""The key of a suite, and a model."""


def rate_of(parts: Iterable[BatchPart]) -> tuple[int, int]:
    """How many runs of some parts passed, warned ones among them, and how many were graded."""
    counts = [part.counts for part in parts]
    good = sum(count["passed"] + count["warned"] for count in counts)
    return good, good + sum(count["failed"] for count in counts)


def is_whole(part: BatchPart) -> bool:
    """Whether every case of the suite was run with the model, and each run was graded or skipped."""
    _, graded = rate_of((part,))
    return part.whole and bool(graded) and graded + part.counts["skipped"] == part.planned


def trends_of(batches: Iterable[BatchRow]) -> dict[TrendKey, list[tuple[int, float]]]:
    """The pass rate, 0..1, of each suite with each model in every whole batch, with that batch's number; in the order
    in which the batches are given. Forks speak for no suite."""
    found: dict[TrendKey, list[tuple[int, float]]] = {}
    for batch in batches:
        for part in batch.parts if batch.kind != "fork" else ():
            if is_whole(part):
                good, graded = rate_of((part,))
                found.setdefault((part.suite.key, part.model), []).append((batch.number, good / graded))
    return found
