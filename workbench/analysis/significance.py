"""Tests whether a difference between pairs is more than chance: McNemar's on counts, a permutation test on numbers, and
Bonferroni's correction for several tests. No result is approximated by a normal distribution."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from functools import reduce

from workbench.decimals import decimals

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


def p_text(p: float) -> str:
    """Returns a p for a person, such as `p = 0.18`, with as many digits as it takes to show on which side of the level
    it is."""
    if p < 0.001:
        return "p < 0.001"
    digits = 1 - math.floor(math.log10(p))
    text = decimals(p, digits)
    while (float(text) <= LEVEL) != (p <= LEVEL):
        digits += 1
        text = f"{p:.{digits}f}"  # at the latest with all digits, it is on its side
    return f"p = {text.rstrip('0').rstrip('.') if '.' in text else text}"


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
