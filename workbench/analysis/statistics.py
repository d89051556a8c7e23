"""Confidence intervals and tests of significance, also of clusters, whose members are no independent observations."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from functools import cache, lru_cache, reduce
from itertools import accumulate
from statistics import NormalDist
from typing import Final, Literal, NamedTuple

from workbench.grading.scoring import ROUNDING_SLACK, mean
from workbench.limits import MAX_LOOKS
from workbench.numerals import setting_text

BEYOND = 0.05
"""An interval of 95% lacks the true value so often."""

_BISECTIONS = 50

_NORMAL_FROM = 2_000
"""With so many degrees of freedom, Student's t is a normal distribution to three digits."""


class Interval(NamedTuple):
    """The bounds of a share, each 0..1, of a mean or of a difference."""

    low: float
    high: float


def bounded_interval(values: Sequence[float], clusters: Sequence[Hashable] | None = None) -> Interval | None:
    """Return the 95% interval of the mean behind values in 0..1; `None` without values, or with one beyond.

    It is that of Clopper and Pearson (1934), by mid-p (Lancaster 1961), for scores: the values and one more, 0 or 1,
    are weighed at random (Dirichlet), the mean and variance of their weighted mean are those of a beta distribution,
    and the bounds are quantiles of the two distributions' mean. For values of 0 and 1 alone, it is exactly theirs. It
    always has a width. Of values that depend on each other, n count as n / d: d is the design effect, times how much
    wider Student's distribution is than a normal one.
    """
    if not values or not all(0 <= value <= 1 + ROUNDING_SLACK for value in values):
        return None
    inside = [min(value, 1.0) for value in values]
    return _beta_mid(len(inside) / _effect_of(inside, clusters), mean(inside), mean([value**2 for value in inside]))


def share_interval(good: int, of: int) -> Interval:
    """Return the same for the share behind `good` of `of` independent trials.

    Raises ValueError unless 0 <= good <= of and of > 0."""
    if not 0 <= good <= of or not of:
        raise ValueError(f"{good} of {of} is no share")
    return _beta_mid(float(of), good / of, good / of)


def _effect_of(values: Sequence[float], clusters: Sequence[Hashable] | None) -> float:
    if clusters is None:
        return 1.0
    return design_effect(values, clusters) * (student(max(len(set(clusters)) - 1, 1)) / z_of(BEYOND)) ** 2


@lru_cache(maxsize=4096)
def _beta_mid(count: float, middle: float, square: float) -> Interval:
    low, high = (_beta_with(count, middle, square, extra) for extra in (0, 1))

    def below(at: float) -> float:
        """Return the mean of both distribution functions.

        Without a beta distribution all is at 0, or at 1."""
        of_low = 1.0 if low is None else _beta_below(at, *low)
        of_high = 0.0 if high is None else _beta_below(at, *high)
        return (of_low + of_high) / 2

    return Interval(
        0.0 if low is None else _falls(lambda at: BEYOND / 2 - below(at), 0.0, 1.0),
        1.0 if high is None else _falls(lambda at: 1 - BEYOND / 2 - below(at), 0.0, 1.0),
    )


def _beta_with(count: float, middle: float, square: float, extra: int) -> tuple[float, float] | None:
    """Return the parameters of the beta distribution with one more value; `None` where all values are that one."""
    mean_of = (count * middle + extra) / (count + 1)
    if not 1e-12 < mean_of < 1 - 1e-12:
        return None
    spread = (count * square + extra) / (count + 1) - mean_of**2
    weight = mean_of * (1 - mean_of) * (count + 2) / spread - 1
    return mean_of * weight, (1 - mean_of) * weight


def _beta_below(at: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction.

    Abramowitz and Stegun 1964, 26.5.8; evaluated by Lentz's method (1976)."""
    if not 0 < at < 1:
        return float(at >= 1)
    if at > (a + 1) / (a + b + 2):
        return 1 - _beta_below(1 - at, b, a)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(at) + b * math.log1p(-at)
    above, found = 1.0, 1 / _away_from_0(1 - (a + b) * at / (a + 1))
    below = found
    for step in range(1, 10_000):
        even = step * (b - step) * at / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * at / ((a + 2 * step) * (a + 2 * step + 1))
        for part in (even, odd):
            below = 1 / _away_from_0(1 + part * below)
            above = _away_from_0(1 + part / above)
            found *= above * below
        if abs(above * below - 1) < 1e-14:
            break
    return math.exp(scale) / a * found


def _away_from_0(number: float) -> float:
    return number if abs(number) > 1e-300 else 1e-300


def _falls(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a falling function between two places is 0."""
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return (low + high) / 2


def standard_error(values: Sequence[float], clusters: Sequence[Hashable] | None = None) -> float | None:
    """Return the standard error of the mean of finite values; `None` where there are fewer than two clusters.

    The deviations from the mean are added up in each of G clusters: se² = G / (G - 1) · Σ sums² / n² (Liang and Zeger
    1986). Where each value is a cluster of its own, this is the usual one.
    """
    sums = _sums(values, clusters, mean(values) if values else 0.0)
    count = len(sums)
    if count < 2:
        return None
    found = math.sqrt(count / (count - 1) * math.fsum(each * each for each in sums)) / len(values)
    # Equal values have no error; rounding leaves about this much in their sums.
    if found <= 1e-12:
        return 0.0
    return found


def _sums(values: Sequence[float], clusters: Sequence[Hashable] | None, middle: float) -> Collection[float]:
    """Return the deviations from the middle, added up in each cluster."""
    sums: dict[Hashable, float] = {}
    for place, value in enumerate(values):
        cluster = place if clusters is None else clusters[place]
        sums[cluster] = sums.get(cluster, 0.0) + value - middle
    return sums.values()


def design_effect(values: Sequence[float], clusters: Sequence[Hashable] | None) -> float:
    """Return how many times as large the variance of the mean is as if values were independent, at least 1.

    Where all values are the same, clusters are taken for one observation each."""
    if clusters is None:
        return 1.0
    alone, together = standard_error(values), standard_error(values, clusters)
    if alone and together is not None:
        return max(1.0, (together / alone) ** 2)
    sizes = [clusters.count(cluster) for cluster in set(clusters)]
    return sum(size * size for size in sizes) / len(values)


def paired_shares_interval(
    better: int, worse: int, pairs: int, effect: float = 1.0, z: float | None = None
) -> Interval:
    """Return the interval of the difference of two shares of the same cases: Tango's score interval (1998).

    It is computed from the pairs that are good on one side alone, and contains the differences from which the observed
    one is at most `z` standard errors away, with standard errors under that difference. The default `z` is that of 95%.
    Dependent pairs count as `pairs / effect` independent ones."""
    b, c, n = better / effect, worse / effect, pairs / effect
    reach = z_of(BEYOND) if z is None else z

    def away(apart: float) -> float:
        linear = -b - c + (2 * n - b + c) * apart
        root = max(linear**2 + 8 * n * c * apart * (1 - apart), 0.0)
        worse_share = (math.sqrt(root) - linear) / (4 * n)
        return (b - c - n * apart) / math.sqrt(max(n * (2 * worse_share + apart * (1 - apart)), 1e-300))

    found = (better - worse) / pairs
    low, high = _falls(lambda at: away(at) - reach, -1.0, found), _falls(lambda at: away(at) + reach, found, 1.0)
    return Interval(low, high)


def mean_difference_interval(
    differences: Sequence[float], clusters: Sequence[Hashable] | None = None, level: float = BEYOND
) -> Interval | None:
    """Return the interval of the mean behind finite differences of scores: Student's, by cluster.

    A quarter of a case is added at each end of the possible range, so that the interval always has a width. `None` with
    fewer than two clusters."""
    freedom = len(differences if clusters is None else set(clusters)) - 1
    if freedom < 1:
        return None
    most = max(1.0, max(map(abs, differences)))
    cases, groups = len(differences) + 0.5, freedom + 1.5
    middle = math.fsum(differences) / cases
    squares = math.fsum(total * total for total in _sums(differences, clusters, middle))
    squares += ((most - middle) ** 2 + (most + middle) ** 2) / 4
    reach = student(freedom, level) * math.sqrt(groups / (groups - 1) * squares) / cases
    return Interval(max(middle - reach, -most), min(middle + reach, most))


def agreeing(found: Interval, *, is_real: bool, apart: float) -> Interval:
    """Return an interval that agrees with the test of the same difference, which decides about 0.

    Where the test calls the difference real, a bound of 0 is outside."""
    if not is_real:
        return Interval(min(found.low, 0.0), max(found.high, 0.0))
    if apart > 0:
        return Interval(max(found.low, 0.0), found.high)
    return Interval(found.low, min(found.high, 0.0))


POWER = 0.8
"""How likely a test is to show the smallest difference that it is said to."""

MIN_CLUSTERS = 6
"""Fewer cases, or clusters, never make a p of at most 0.05: with five of them it is at least 2 / 32."""


def detectable_share(better: int, worse: int, pairs: int, level: float, effect: float = 1.0) -> float | None:
    """Return about the smallest difference of two shares that a test at `level` shows in four of five comparisons.

    It assumes that as many of the same cases differ as did here: (z + z') · √(share that differs ÷ n). If so large a
    difference takes more, all that differ count as better. `None` if there is none up to 1."""
    trials = pairs / effect
    reach = _z_sum(level) ** 2 / trials
    found = max(math.sqrt(reach * ((better + worse) / effect + 2) / (trials + 2)), reach)
    return found if found <= 1 else None


def detectable_mean(error: float | None, clusters: int, level: float) -> float | None:
    """Return about the smallest mean difference that a test at `level` shows in four of five comparisons.

    `error` is the standard error of the mean. `None` if it is unknown or there are too few clusters."""
    if not error or clusters < MIN_CLUSTERS:
        return None
    return _z_sum(level) * error


def _z_sum(level: float) -> float:
    return z_of(level) + NormalDist().inv_cdf(POWER)


def z_of(level: float) -> float:
    """Return between minus and plus which value all but `level` of a standard normal distribution lies."""
    return NormalDist().inv_cdf(1 - level / 2)


@cache
def student(freedom: int, level: float = BEYOND) -> float:
    """Return the t within which, on both sides of 0, all but `level` of Student's distribution lies.

    `freedom` is the number of degrees of freedom, 1 or more."""
    if freedom >= _NORMAL_FROM:
        return z_of(level)
    high = 16.0
    while _within(high, freedom) < 1 - level:
        high *= 2
    return _falls(lambda at: 1 - level - _within(at, freedom), 0.0, high)


def _within(t: float, freedom: int) -> float:
    """Return how likely Student's t is between -t and t (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    squared = math.cos(angle) ** 2
    total = term = 1.0
    odd = freedom % 2
    for step in range(2 + odd, freedom - 1, 2):
        term *= squared * (step - 1) / step
        total += term
    if not odd:
        return math.sin(angle) * total
    inner = math.sin(angle) * math.cos(angle) * total if freedom > 1 else 0.0
    return 2 / math.pi * (angle + inner)


# Estimates from repeats how likely at least one of k tries is good (pass@k), and how likely all are (pass^k).


class Passing(NamedTuple):
    """Means over the `cases` that have at least `k` graded runs, each 0..1."""

    k: int
    cases: int
    at_least_one: float
    all_of_them: float


def passing(cases: Iterable[tuple[int, int]]) -> tuple[Passing, ...]:
    """Return pass@k and pass^k for each k from 1 to the most runs of a case.

    A case is given as its good and its graded runs. Of n runs, c of them good, both are shares of the C(n, k) ways to
    draw k runs: 1 - C(n-c, k) / C(n, k) is pass@k (Chen et al. 2021), C(c, k) / C(n, k) is pass^k (Yao et al. 2024).
    Neither is biased by n being more than k."""
    counts = Counter(cases)
    shares = []
    for (good, of), times in counts.items():
        shares.append((times, list(_shares(of - good, of)), list(_shares(good, of))))
    return tuple(
        _mean([share for share in shares if len(share[1]) >= k], k)
        for k in range(1, max((of for _, of in counts), default=0) + 1)
    )


def _shares(some: int, of: int) -> Iterator[float]:
    """Return C(some, k) / C(of, k) for k from 1 to `of`, one draw after the other, so that no factorial overflows."""
    return accumulate(((some - drawn) / (of - drawn) if drawn < some else 0.0 for drawn in range(of)), float.__mul__)


def _mean(shares: list[tuple[int, list[float], list[float]]], k: int) -> Passing:
    cases = sum(times for times, _, _ in shares)
    none = math.fsum(times * bad[k - 1] for times, bad, _ in shares) / cases
    every = math.fsum(times * good[k - 1] for times, _, good in shares) / cases
    return Passing(k, cases, 1 - none, every)


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
    """Return the exact two-sided p of McNemar's test, from the pairs that are good on one side alone (McNemar 1947).

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
    """Return the two-sided p of the paired permutation test (Fisher 1935, Pitman 1937) on finite differences of pairs.

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
    """Return the p of one of several tests, adjusted for their number (Dunn 1961).

    The probability of calling any chance result among them a difference stays below the level. Unlike Holm's, this
    adjustment has intervals that agree with it."""
    return min(1.0, p * max(comparisons, 1))


def _enumerated(sizes: Sequence[int], light: int) -> int:
    """Return how many choices weigh at most `light`, by weighing all of them."""
    sums = [0]
    for size in sizes:
        sums += [chosen + size for chosen in sums]
    return sum(chosen <= light for chosen in sums)


def _counted(sizes: Sequence[int], light: int) -> int:
    """Return the same by counting.

    One integer holds, in fields wide enough for all of them, how many choices have each weight. To choose a further
    size or not is to add the fields to themselves, shifted."""
    width = len(sizes) + 1
    mask = (1 << (light + 1) * width) - 1
    fields = 1
    for size in sizes:
        fields += (fields << size * width) & mask
    return fields % ((1 << width) - 1)  # the sum of a number's digits is its remainder when divided by base - 1


def _drawn(sizes: Sequence[int], light: int, random_bits: random.Random) -> int:
    """Return how many of `DRAWS` choices weigh at most `light`, or leave at most that.

    A choice is a number with a bit for each size. `planes` hold, for each binary digit, which sizes have it: the weight
    of a choice comes from counting bits, with no loop over the sizes.
    """
    total, count = sum(sizes), len(sizes)
    digits = range(max(sizes).bit_length())
    planes = []
    for digit in digits:
        planes.append((sum(1 << place for place, size in enumerate(sizes) if size >> digit & 1), digit))
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
    if cases:
        return tuple(dict.fromkeys(math.ceil(cases * look / looks) for look in range(1, looks + 1)))
    return ()


Decided = Literal["reached", "missed"]

_ALMOST_ALL: Final = 0.99
"""The share of a player's wealth that one unit may lose."""


class GateEvidence:
    """Whether a pass rate is at least the `gate`, or no better than `worse`, by bets on units in random order.

    A unit is a case, or a cluster of cases, with the share of its runs that are good: the mean of these shares is the
    rate, however runs depend on each other. One player bets that it is above `worse`, another that it is below the
    `gate`, each in several ways at once (Wald 1945; Waudby-Smith and Ramdas 2024). One who is wrong ever has twenty
    times the stake with a probability of at most 5% (Ville 1939). Raises ValueError unless 0 < worse < gate < 1.
    """

    def __init__(self, gate: float, worse: float) -> None:
        if not 0 < worse < gate < 1:
            raise ValueError(
                f"a gate of {setting_text(gate)} and {setting_text(worse)} for worse: both lie between 0 and 1, and "
                "worse is less"
            )
        apart, most_up, most_down = gate - worse, _ALMOST_ALL / worse, _ALMOST_ALL / (1 - gate)
        walds = apart / (gate * (1 - gate))
        self._up = _Bets(worse, [min(apart / (worse * (1 - worse)), most_up), 0.9 / worse, most_up])
        self._down = _Bets(gate, [-min(times * walds, most_down) for times in (0.5, 1, 2, 4)])
        self.verdict: Decided | None = None
        """The verdict; later units do not change it."""

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
    """Return the number of units, in the order of their sizes, that reach a gate if all their runs are good.

    `None` if all of them are too few."""
    evidence = GateEvidence(gate, worse)
    for number, size in enumerate(sizes, 1):
        evidence.take(1.0, size)
        if evidence.verdict is not None:
            return number
    return None
