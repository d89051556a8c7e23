"""Confirms regressions: finds out which cases broke and which failed by chance, with reruns or repeats.

The reruns are a sequential likelihood-ratio test (Wald 1945) of pass rate p/4 against p. The evidence begins at 1. A
failed rerun multiplies it by (1 - p/4) / (1 - p), and a good rerun multiplies it by 1/4. If a case passes p or more of
its runs, the evidence ever reaches 40 · B with a probability of at most 1 / (40 · B) (Ville 1939). So if none of B
cases broke, the probability of confirming any of them is at most 2.5%."""

from __future__ import annotations

import math
from typing import Literal

from workbench.dataclasses import dataclass
from workbench.numerals import of_text

Confirmation = Literal["confirmed", "recovered", "perhaps by chance"]
"""The verdict on a case that failed after it had passed: it broke, it passes again, or the evidence is not
sufficient."""

FALSE_ALARM_RATE = 0.025
"""The probability of confirming any case although every case still has its typical pass rate.

It is half of 5%. The other half belongs to the regression gate's test of all cases together."""

TYPICAL_PASS_RATE = 0.8
"""The pass rate of an unchanged case, unless its earlier runs show a lower rate."""

MAX_RERUNS = 15
"""The most reruns of one case. A case that is still undecided is "perhaps by chance"."""

# The logarithm of 1/16, which is the evidence after two good reruns and no failed rerun.
_RECOVERED = -2 * math.log(4)

_MIN_EARLIER = 5
"""The fewest earlier runs that determine a typical pass rate."""

# Sums of logarithms are rounded. Evidence of exactly 40 · B must still count as reached.
_SLACK = 1e-9


def typical_pass_rate(passed_count: int, graded_count: int) -> float:
    """Return the pass rate to assume for a case if nothing has changed, from its earlier runs.

    The rate is at most `TYPICAL_PASS_RATE`."""
    if graded_count < _MIN_EARLIER:
        return TYPICAL_PASS_RATE
    # Half a good and half a failed run are added because a few earlier runs do not prove a rate of 0.
    return min(TYPICAL_PASS_RATE, (passed_count + 0.5) / (graded_count + 1))


@dataclass
class RerunEvidence:
    """The evidence from the reruns of one case. `good` and `failed` count its good and failed reruns.

    `among` is the number of cases that may have broken, and `typical` is the pass rate of the case before."""

    among: int
    typical: float = TYPICAL_PASS_RATE
    good: int = 0
    failed: int = 0

    def add(self, *, is_good: bool) -> None:
        self.good += is_good
        self.failed += not is_good

    @property
    def decided(self) -> Confirmation | None:
        """The verdict, or `None` while more reruns are needed."""
        return self._after(self.good, self.failed)

    @property
    def needed(self) -> int:
        """The fewest further reruns that can decide the case, or 0 if it is decided."""
        more = 0
        while self._after(self.good + more, self.failed) is None and self._after(self.good, self.failed + more) is None:
            more += 1
        return more

    def _after(self, passed_count: int, failed_count: int) -> Confirmation | None:
        each = math.log((1 - self.typical / 4) / (1 - self.typical))
        shown = failed_count * each - passed_count * math.log(4)
        # A likelihood ratio of `among / FALSE_ALARM_RATE` confirms the case: with it, the false alarms of all `among`
        # cases together stay below this rate.
        if shown >= math.log(self.among / FALSE_ALARM_RATE) - _SLACK:
            return "confirmed"
        if shown <= _RECOVERED + _SLACK:
            return "recovered"
        if passed_count + failed_count >= MAX_RERUNS:
            return "perhaps by chance"
        return None


def fewest_reruns(case_count: int) -> int:
    """Return how many failed reruns in a row confirm that a case broke.

    `case_count` is the number of cases that may have broken."""
    evidence = RerunEvidence(case_count)
    while evidence.decided is None:
        evidence.add(is_good=False)
    return evidence.failed


def repeats_confirm(failed: int, graded: int, case_count: int) -> bool:
    """Return whether the repeats of a case already show, without reruns, that the case broke.

    This is a binomial test. `case_count` is the number of cases that could have broken. The case broke if, at
    `TYPICAL_PASS_RATE`, the probability of at least `failed` failures in `graded` repeats is at most 0.025 /
    `case_count`."""
    tail = []
    for count in range(failed, graded + 1):
        tail.append(math.comb(graded, count) * (1 - TYPICAL_PASS_RATE) ** count * TYPICAL_PASS_RATE ** (graded - count))
    return math.fsum(tail) <= FALSE_ALARM_RATE / case_count


@dataclass(frozen=True)
class ConfirmedCase:
    """The result of rerunning one case of the later batch.

    `good` and `failed` count its reruns. `why` is the reason if there were no reruns, or if they did not decide."""

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
        """The outcome and its evidence in words: `broke: failed 4 of 4 reruns`."""
        made = self.good + self.failed
        reruns = "rerun" if made == 1 else "reruns"
        if self.outcome == "recovered":
            return f"not confirmed: passed {of_text(self.good, made)} {reruns}"
        reasons: list[str] = []
        if made:
            reasons.append(f"failed {of_text(self.failed, made)} {reruns}")
        if self.why is not None:
            reasons.append(self.why)
        outcome: str = self.outcome
        if outcome == "confirmed":
            outcome = "broke"
        return f"{outcome}: {'; '.join(reasons)}"


@dataclass(frozen=True)
class ConfirmationReport:
    """The results for every case that broke, after `reruns` reruns.

    `batch` is the number of the batch that records the reruns, if any. `errors` counts the cases that stayed undecided
    because reruns ended in errors or a cost limit was reached. `interrupted` is true if the reruns were interrupted."""

    cases: tuple[ConfirmedCase, ...]
    reruns: int = 0
    batch: int | None = None
    errors: int = 0
    interrupted: bool = False

    def of(self, outcome: Confirmation) -> tuple[ConfirmedCase, ...]:
        return tuple(case for case in self.cases if case.outcome == outcome)
