"""Two batches of an agent that passes each case by chance, compared as `--fail-on regression` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from random import Random

from tests.analysis.cells import ran
from workbench.analysis.batch_diff import batch_diff
from workbench.analysis.confirmation import RerunEvidence, fewest_reruns
from workbench.grading.run_summary import RunSummary
from workbench.grading.status import Status

Shares = Sequence[float]
Draw = Callable[[Random], tuple[Shares, Shares]]
"""Draws the share of runs that pass, for each case, before and now."""


def agent(random: Random, cases: int) -> list[float]:
    """Return shares from 0.8 to 1 with a mean of 0.97."""
    return [1 - 0.2 * random.random() ** 5.67 for _ in range(cases)]


def regression(random: Random, before: Shares, now: Shares, repeats: int) -> tuple[bool, int]:
    """Return whether a regression is reported, and the number of reruns."""
    diff = batch_diff(_batch(random, before, repeats), _batch(random, now, repeats))
    if any(test.is_worse for test in diff.tests.values()):
        return True, 0
    broke = [now[int(change.case_id)] for change in diff.of("broke")]
    evidence = [RerunEvidence(len(broke)) for _ in broke]
    made, most = 0, len(now) * repeats
    at_once = max(1, most // fewest_reruns(len(broke))) if broke else 1
    while made < most and (going := [place for place, each in enumerate(evidence) if each.decided is None]):
        of_group = [place for place in going if place // at_once == going[0] // at_once]
        for place in of_group[: most - made]:
            evidence[place].add(is_good=random.random() < broke[place])
            made += 1
    return any(each.decided == "confirmed" for each in evidence), made


def told(trials: int, seed: str, repeats: int, draw: Draw) -> tuple[float, float]:
    """Return the share of trials that report a regression, and the mean number of reruns."""
    random = Random(seed)
    found = [regression(random, *draw(random), repeats) for _ in range(trials)]
    return sum(red for red, _ in found) / trials, sum(extra for _, extra in found) / trials


def _batch(random: Random, shares: Shares, repeats: int) -> list[RunSummary]:
    return [
        _run(case, random.random() < share, repeat) for case, share in enumerate(shares) for repeat in range(repeats)
    ]


@cache
def _run(case: int, good: bool, repeat: int) -> RunSummary:
    return ran(Status.PASSED if good else Status.FAILED, case=str(case), repeat=repeat, rule="every")
