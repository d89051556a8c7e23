"""Tells a case that broke from one that failed by chance, by rerunning it (Wald 1945) or by the repeats that it has.

The evidence that a case passes less than a share p of its runs begins at 1. A rerun that fails multiplies it by
(1 - p/4) / (1 - p), a good one by 1/4. While the case passes p of its runs or more, the evidence ever reaches 40 · B
with a probability of at most 1 / (40 · B) (Ville 1939): 2.5% for B cases together, whatever their number.
"""

from __future__ import annotations

import math
from typing import Literal

from workbench.dataclasses import dataclass
from workbench.numerals import of_text

Confirmation = Literal["confirmed", "recovered", "perhaps by chance"]
"""The verdict on a case that broke: it did, it passes again, or neither is sure."""

WRONG = 0.025
"""How likely it is that any of several cases is called broken although each passes its typical share of runs."""

TYPICAL = 0.8
"""The share of its runs that a sound case passes, unless its earlier runs show a smaller one."""

MAX_RERUNS = 15
"""The most reruns of one case; after these it stays undecided."""

_RECOVERED = -2 * math.log(4)
_MIN_EARLIER = 5
_SLACK = 1e-9


def typical_share(good: int, graded: int) -> float:
    """Return the least share of its runs that an unchanged case passes, by its earlier runs."""
    if graded < _MIN_EARLIER:
        return TYPICAL
    return min(TYPICAL, (good + 0.5) / (graded + 1))


@dataclass
class Evidence:
    """The evidence of a case's reruns, of `among` cases that broke."""

    among: int
    typical: float = TYPICAL
    good: int = 0
    failed: int = 0

    def take(self, *, good: bool) -> None:
        """Take in the verdict on one rerun."""
        self.good += good
        self.failed += not good

    @property
    def decided(self) -> Confirmation | None:
        """The verdict; `None` while the case is rerun."""
        return self._after(self.good, self.failed)

    @property
    def needed(self) -> int:
        """The fewest further reruns that can decide it; 0 once it is decided."""
        more = 0
        while self._after(self.good + more, self.failed) is None and self._after(self.good, self.failed + more) is None:
            more += 1
        return more

    def _after(self, good: int, failed: int) -> Confirmation | None:
        each = math.log((1 - self.typical / 4) / (1 - self.typical))
        shown = failed * each - good * math.log(4)
        if shown >= math.log(self.among / WRONG) - _SLACK:
            return "confirmed"
        if shown <= _RECOVERED + _SLACK:
            return "recovered"
        if good + failed >= MAX_RERUNS:
            return "perhaps by chance"
        return None


def fewest_reruns(among: int) -> int:
    """Return the fewest reruns, all failed, that confirm one case where `among` cases broke."""
    evidence = Evidence(among)
    while evidence.decided is None:
        evidence.take(good=False)
    return evidence.failed


def repeats_confirm(failed: int, graded: int, among: int) -> bool:
    """Return whether the repeats of a case, one of `among` that could break, show by themselves that it broke.

    They do if the probability of so many failures is at most 0.025 / among while each repeat passes with `TYPICAL`."""
    ways = (
        math.comb(graded, count) * (1 - TYPICAL) ** count * TYPICAL ** (graded - count)
        for count in range(failed, graded + 1)
    )
    return math.fsum(ways) <= WRONG / among


@dataclass(frozen=True)
class ConfirmedCase:
    """A case that broke, under its name in the later batch: its reruns, or `why` it has none."""

    suite: str
    case_id: str
    case_name: str
    model: str
    outcome: Confirmation
    failed: int = 0
    good: int = 0
    why: str | None = None

    @property
    def sentence(self) -> str:
        """The outcome and its evidence: `broke: failed 4 of 4 reruns`."""
        made = self.good + self.failed
        reruns = "rerun" if made == 1 else "reruns"
        if self.outcome == "recovered":
            return f"not confirmed: passed {of_text(self.good, made)} {reruns}"
        reasons: list[str] = []
        if made:
            reasons.append(f"failed {of_text(self.failed, made)} {reruns}")
        if self.why is not None:
            reasons.append(self.why)
        outcome = "broke" if self.outcome == "confirmed" else self.outcome
        return f"{outcome}: {'; '.join(reasons)}"


@dataclass(frozen=True)
class Confirmed:
    """The outcome of each case that broke, after `reruns` more runs.

    `batch` has them, if they are recorded; `errors` counts the cases that errors of reruns left undecided."""

    cases: tuple[ConfirmedCase, ...]
    reruns: int = 0
    batch: int | None = None
    errors: int = 0
    interrupted: bool = False

    def of(self, outcome: Confirmation) -> tuple[ConfirmedCase, ...]:
        """Return the cases with one outcome."""
        return tuple(case for case in self.cases if case.outcome == outcome)
