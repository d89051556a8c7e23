"""Tests that may be looked at while results come in, and stop as soon as they are decided.

Whoever repeats a usual test after every few cases finds a difference between equal models far more often than at its
level. These three do not. All of them ask for cases in random order: the first ones must be a sample of all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from workbench.analysis.significance import LEVEL

ENOUGH: Final = 1 / LEVEL
"""The e-value from which on a difference is decided."""

MAX_LOOKS: Final = 10

_OBRIEN_FLEMING: Final = (1.960, 1.977, 2.004, 2.024, 2.040, 2.053, 2.063, 2.072, 2.080, 2.087)
"""The constants for 1 to 10 looks, two-sided at 5 % (Jennison and Turnbull 2000, table 2.3)."""


def e_value(one: int, other: int) -> float:
    """Return the evidence against two sides being alike, from the pairs that are good on one side alone.

    It is how much likelier these pairs are if a pair falls to one side with an unknown probability, for which all are
    weighed by Beta(1/2, 1/2), than if both sides get it alike: B(one + 1/2, other + 1/2) / B(1/2, 1/2) * 2^n. If the
    sides are alike, the probability that it ever reaches 20 is at most 5 %, however often one looks (Ville 1939;
    Grünwald, de Heide and Koolen 2024). Infinite where it is too large for a number.
    """
    of = one + other
    exponent = math.lgamma(one + 0.5) + math.lgamma(other + 0.5) - math.lgamma(of + 1) - math.log(math.pi)
    exponent += of * math.log(2)
    return math.exp(exponent) if exponent < 700 else math.inf


def anytime_p(greatest: float) -> float:
    """Return the p that holds at any time, from the greatest e-value so far."""
    return min(1.0, 1 / greatest) if greatest > 0 else 1.0


def level_of_look(look: int, looks: int) -> float:
    """Return the level of one of several looks, each after as many further cases, at which 5 % hold for all together.

    By O'Brien and Fleming (1979): the early looks decide only what is very clear, and the last one is nearly a usual
    test. `look` counts from 1. Raises ValueError unless 1 <= look <= looks <= `MAX_LOOKS`.
    """
    if not 1 <= look <= looks <= MAX_LOOKS:
        raise ValueError(f"look {look} of {looks} is none of 1 to {MAX_LOOKS} looks")
    z = _OBRIEN_FLEMING[looks - 1] * math.sqrt(looks / look)
    return math.erfc(z / math.sqrt(2))


def looks_after(cases: int, looks: int) -> tuple[int, ...]:
    """Return after how many cases each look is taken, the last one after all; each number once."""
    return tuple(dict.fromkeys(math.ceil(cases * look / looks) for look in range(1, looks + 1))) if cases else ()


Decided = Literal["reached", "missed"]

_ALMOST_ALL: Final = 0.99
"""So much of what a player has may be lost with one unit."""


class GateEvidence:
    """Whether a pass rate is at least the `gate`, or no better than `worse`, by bets on units in random order.

    A unit is a case, or a cluster of cases, with the share of its runs that are good: the mean of these shares is the
    rate, however runs depend on each other. One player bets that it is above `worse`, another that it is below the
    `gate`, each in several ways at once (Wald 1945; Waudby-Smith and Ramdas 2024). One who is wrong ever has twenty
    times the stake with a probability of at most 5 % (Ville 1939). Raises ValueError unless 0 < worse < gate < 1.
    """

    def __init__(self, gate: float, worse: float) -> None:
        if not 0 < worse < gate < 1:
            raise ValueError(f"a gate of {gate:g} and {worse:g} for worse: both lie between 0 and 1, and worse is less")
        apart, most_up, most_down = gate - worse, _ALMOST_ALL / worse, _ALMOST_ALL / (1 - gate)
        walds = apart / (gate * (1 - gate))
        self._up = _Bets(worse, [min(apart / (worse * (1 - worse)), most_up), 0.9 / worse, most_up])
        self._down = _Bets(gate, [-min(times * walds, most_down) for times in (0.5, 1, 2, 4)])
        self.verdict: Decided | None = None
        """What is decided; what comes later changes nothing."""

    def take(self, share: float, size: float = 1.0) -> None:
        """Take the next unit: the share of good runs, and its cases by those of the largest unit."""
        if self.verdict is not None:
            return
        self._up.take(share, size)
        self._down.take(share, size)
        if self._up.worth >= ENOUGH:
            self.verdict = "reached"
        elif self._down.worth >= ENOUGH:
            self.verdict = "missed"

    @property
    def up(self) -> float:
        """The evidence that the rate is above `worse`."""
        return self._up.worth

    @property
    def down(self) -> float:
        """The evidence that it is below the gate."""
        return self._down.worth


class _Bets:
    """Bets on shares being above a rate, or below it with negative stakes; what they are worth on average."""

    def __init__(self, rate: float, stakes: Sequence[float]) -> None:
        self._rate = rate
        self._stakes = stakes
        self._logs = [0.0] * len(stakes)

    def take(self, share: float, size: float) -> None:
        for at, stake in enumerate(self._stakes):
            self._logs[at] += math.log1p(stake * size * (share - self._rate))

    @property
    def worth(self) -> float:
        return sum(map(math.exp, self._logs)) / len(self._logs)


def fewest_that_reach(gate: float, worse: float, sizes: Iterable[float]) -> int | None:
    """Return with how many units, all of whose runs are good, a gate is reached, in the order of their sizes; `None`
    where all of them are too few."""
    evidence = GateEvidence(gate, worse)
    for number, size in enumerate(sizes, 1):
        evidence.take(1.0, size)
        if evidence.verdict is not None:
            return number
    return None
