"""Tests whether a difference between pairs is more than chance: McNemar's on counts, a permutation test on numbers, and
Bonferroni's correction for several tests. No result is approximated by a normal distribution."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from functools import reduce
from typing import Final, Literal

LEVEL = 0.05
"""The largest p that counts as a difference."""

DRAWS = 9_999
"""Random sign vectors where there are too many to count; with the observed one they are 10,000."""

STEPS = 277_200
"""The permutation test rounds differences to this many steps of the largest one, at least 1. It is a multiple of all
numbers up to 12, of 16, 25 and 100: the scores that occur lie on its grid, so that equal sums are equal."""

_ENUMERATED = 16
"""This many differences have 65,536 sign vectors, all of which are summed."""

_COUNTED_BITS = 400_000_000
"""How much memory may be moved for counting all sign vectors: some 20 ms."""


def mcnemar(one: int, other: int) -> float:
    """Returns the exact two-sided p of McNemar's test, from the pairs that are good on one side alone (McNemar 1947).

    If both sides were alike, each of these n pairs would fall to either side with probability 1/2: p is twice the
    probability that Binomial(n, 1/2) is at most the smaller count, and never more than 1.
    """
    of = one + other
    tail = ways = 1
    for chosen in range(min(one, other)):
        ways = ways * (of - chosen) // (chosen + 1)
        tail += ways
    return min(1.0, 2 * tail / (1 << of))


def permutation(differences: Iterable[float], seed: int = 0, clusters: Sequence[Hashable] | None = None) -> float:
    """Returns the two-sided p of the paired permutation test (Fisher 1935, Pitman 1937) on finite differences of pairs.

    If both sides were alike, each difference could as well have the other sign. p is the share of all sign vectors
    whose sum is at least as far from 0 as the observed one. It is exact where all of them can be counted; else it is
    estimated from `DRAWS` random ones, the observed one included, which are the same for the same `seed`. With
    `clusters`, one for each difference, those of a cluster change their signs together.
    """
    values = list(differences)
    unit = max(1.0, max(map(abs, values), default=0.0))
    steps = [round(value / unit * STEPS) for value in values]
    if clusters is not None:
        sums: Counter[Hashable] = Counter()
        for cluster, step in zip(clusters, steps, strict=True):
            sums[cluster] += step
        steps = list(sums.values())
    sizes = [abs(step) for step in steps if step]
    if not sum(steps):
        return 1.0
    shared = reduce(math.gcd, sizes)
    sizes = [size // shared for size in sizes]
    # A sign vector chooses the differences that are added. The others then weigh the total minus the chosen: the sum is
    # as
    # far from 0 as the observed one where the chosen weigh at most `light`, or the others do.
    light = (sum(sizes) - abs(sum(steps)) // shared) // 2
    ways = 1 << len(sizes)
    if len(sizes) <= _ENUMERATED:
        return 2 * _enumerated(sizes, light) / ways
    if len(sizes) * len(sizes) * (light + 1) <= _COUNTED_BITS:
        return 2 * _counted(sizes, light) / ways
    return (1 + _drawn(sizes, light, random.Random(seed))) / (1 + DRAWS)


def bonferroni(p: float, comparisons: int) -> float:
    """Returns the p of one of several tests, adjusted so that the probability of taking any chance result among them
    for a difference stays below the level (Dunn 1961). Unlike Holm's, it has intervals that agree with it."""
    return min(1.0, p * max(comparisons, 1))


def _enumerated(sizes: Sequence[int], light: int) -> int:
    """Returns how many choices weigh at most `light`, by weighing all of them."""
    sums = [0]
    for size in sizes:
        sums += [chosen + size for chosen in sums]
    return sum(chosen <= light for chosen in sums)


def _counted(sizes: Sequence[int], light: int) -> int:
    """Returns the same by counting: one integer holds, in fields wide enough for all of them, how many choices have
    each weight. Choosing a further size or not adds the fields to themselves, shifted."""
    width = len(sizes) + 1
    mask = (1 << (light + 1) * width) - 1
    fields = 1
    for size in sizes:
        fields += (fields << size * width) & mask
    return fields % ((1 << width) - 1)  # the sum of a number's digits is its remainder when divided by base - 1


def _drawn(sizes: Sequence[int], light: int, random_bits: random.Random) -> int:
    """Returns how many of `DRAWS` choices weigh at most `light`, or leave at most that.

    A choice is a number with a bit for each size. `planes` hold, for each binary digit, which sizes have it: the weight
    of a choice comes from counting bits, with no loop over the sizes.
    """
    total, count = sum(sizes), len(sizes)
    digits = range(max(sizes).bit_length())
    planes = [(sum(1 << place for place, size in enumerate(sizes) if size >> digit & 1), digit) for digit in digits]
    found = 0
    for _ in range(DRAWS):
        chosen = random_bits.getrandbits(count)
        weight = sum([(chosen & plane).bit_count() << digit for plane, digit in planes])
        found += weight <= light or total - weight <= light
    return found


# Tests that may be looked at while results come in, and stop as soon as they are decided. Whoever repeats a usual
# test after every few cases finds a difference between equal models far more often than at its level. These three
# do not. All of them ask for cases in random order: the first ones must be a sample of all.

ENOUGH: Final = 1 / LEVEL
"""The e-value from which on a difference is decided."""

MAX_LOOKS: Final = 10

_OBRIEN_FLEMING: Final = (1.960, 1.977, 2.004, 2.024, 2.040, 2.053, 2.063, 2.072, 2.080, 2.087)
"""The constants for 1 to 10 looks, two-sided at 5% (Jennison and Turnbull 2000, table 2.3)."""


def e_value(one: int, other: int) -> float:
    """Return the evidence against two sides being alike, from the pairs that are good on one side alone.

    It is how much likelier these pairs are if a pair falls to one side with an unknown probability, for which all are
    weighed by Beta(1/2, 1/2), than if both sides get it alike: B(one + 1/2, other + 1/2) / B(1/2, 1/2) * 2^n. If the
    sides are alike, the probability that it ever reaches 20 is at most 5%, however often one looks (Ville 1939;
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
    """Return the level of one of several looks, each after as many further cases, at which 5% hold for all together.

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
    times the stake with a probability of at most 5% (Ville 1939). Raises ValueError unless 0 < worse < gate < 1.
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
