"""Confidence intervals and significance tests, for independent cases and for clusters of dependent cases."""

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

MISS_PROBABILITY = 0.05
"""The probability that a 95% interval misses the true value."""

# Fifty halvings shrink a width of 1 below 1e-15.
_BISECTIONS = 50

_NORMAL_FROM = 2_000
"""The degrees of freedom from which Student's t equals a normal distribution to three digits."""


class Interval(NamedTuple):
    """The bounds of an interval for a share (0..1), a mean, or a difference."""

    low: float
    high: float


def bounded_interval(values: Sequence[float], clusters: Sequence[Hashable] | None = None) -> Interval | None:
    """Return the 95% interval of the mean of values in 0..1, or `None` without values or for a value outside 0..1.

    The method extends the mid-p interval of Clopper and Pearson (1934; mid-p: Lancaster 1961) from shares to scores.
    The values and one extra value, 0 or 1, get random weights (a Dirichlet distribution). For either extra value, a
    beta distribution has the mean and variance of the weighted mean. The bounds are quantiles of the average of both
    beta distributions. If every value is 0 or 1, the result is exactly the mid-p interval.

    The interval always has a width. With `clusters`, one for each value, n values count as n / d independent values.
    Here d is the design effect times the squared ratio of Student's quantile to the normal quantile."""
    if not values or not all(0 <= value <= 1 + ROUNDING_SLACK for value in values):
        return None
    inside = [min(value, 1.0) for value in values]
    squares = [value**2 for value in inside]
    return _beta_mid(len(inside) / _effect_of(inside, clusters), mean(inside), mean(squares))


def share_interval(successes: int, trials: int) -> Interval:
    """Return the 95% interval of the true share of successes in independent trials (mid-p Clopper-Pearson).

    Raises ValueError unless 0 <= successes <= trials and trials > 0."""
    if not 0 <= successes <= trials or not trials:
        raise ValueError(f"{successes} of {trials} is not a share: pass 0 <= successes <= trials and trials > 0")
    # For values of 0 and 1, the mean of the squares equals the mean.
    return _beta_mid(float(trials), successes / trials, successes / trials)


def _effect_of(values: Sequence[float], clusters: Sequence[Hashable] | None) -> float:
    if clusters is None:
        return 1.0
    # Few clusters estimate the variance poorly. Student's quantile allows for this. The beta distribution, like the
    # normal distribution, treats the variance as known, so the sample size is divided by the squared ratio of both
    # quantiles.
    freedom = max(len(set(clusters)) - 1, 1)
    return design_effect(values, clusters) * (student_quantile(freedom) / normal_quantile(MISS_PROBABILITY)) ** 2


@lru_cache(maxsize=4096)
def _beta_mid(count: float, middle: float, square: float) -> Interval:
    # Clopper and Pearson take the lower bound from the distribution with an extra 0 and the upper bound from the
    # distribution with an extra 1. Their interval covers at least 95%. Mid-p takes both bounds from the average of both
    # distributions. Its interval covers about 95% and is narrower.
    with_0, with_1 = _beta_with(count, middle, square, 0), _beta_with(count, middle, square, 1)

    def below(at: float) -> float:
        # If all values are 0, the distribution with an extra 0 is concentrated at 0, and all of it lies below any
        # point. If all values are 1, the distribution with an extra 1 is concentrated at 1, and none of it lies below
        # any point.
        share_0, share_1 = 1.0, 0.0
        if with_0 is not None:
            share_0 = _beta_below(at, *with_0)
        if with_1 is not None:
            share_1 = _beta_below(at, *with_1)
        return (share_0 + share_1) / 2

    low, high = 0.0, 1.0
    if with_0 is not None:
        low = _root_of_decreasing(lambda at: MISS_PROBABILITY / 2 - below(at), 0.0, 1.0)
    if with_1 is not None:
        high = _root_of_decreasing(lambda at: 1 - MISS_PROBABILITY / 2 - below(at), 0.0, 1.0)
    return Interval(low, high)


def _beta_with(count: float, middle: float, square: float, extra: int) -> tuple[float, float] | None:
    mean_of = (count * middle + extra) / (count + 1)
    if not 1e-12 < mean_of < 1 - 1e-12:
        return None
    # Under Dirichlet weights, the variance of the weighted mean is spread / (count + 2). A beta distribution with this
    # mean and variance has a + b = weight.
    spread = (count * square + extra) / (count + 1) - mean_of**2
    weight = mean_of * (1 - mean_of) * (count + 2) / spread - 1
    return mean_of * weight, (1 - mean_of) * weight


def _beta_below(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function by its continued fraction (Abramowitz and Stegun 1964, 26.5.8).

    The fraction is evaluated by Lentz's method (1976)."""
    if not 0 < x < 1:
        return float(x >= 1)
    # The fraction converges fast only to the left of about the mean. To the right, the distribution is mirrored.
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_below(1 - x, b, a)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    above, found = 1.0, 1 / _away_from_0(1 - (a + b) * x / (a + 1))
    below = found
    for step in range(1, 10_000):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for part in (even, odd):
            below = 1 / _away_from_0(1 + part * below)
            above = _away_from_0(1 + part / above)
            found *= above * below
        if abs(above * below - 1) < 1e-14:
            break
    return math.exp(scale) / a * found


def _away_from_0(number: float) -> float:
    # Lentz's method divides by these numbers. A tiny number in place of 0 leaves the result unchanged.
    return number if abs(number) > 1e-300 else 1e-300


def _root_of_decreasing(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of a decreasing function between two bounds, by bisection."""
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if function(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def standard_error(values: Sequence[float], clusters: Sequence[Hashable] | None = None) -> float | None:
    """Return the standard error of the mean of finite values, or `None` with fewer than two clusters.

    With the deviations from the mean summed within each of G clusters, se² = G / (G - 1) · Σ sums² / n² (Liang and
    Zeger 1986). If each value is a separate cluster, this is the usual standard error."""
    sums = _sums(values, clusters, mean(values) if values else 0.0)
    count = len(sums)
    # The deviations within a single cluster add up to 0 and say nothing about the error.
    if count < 2:
        return None
    found = math.sqrt(count / (count - 1) * math.fsum(map(_square, sums))) / len(values)
    # Equal values have an error of 0, but rounding leaves about this much in their sums.
    if found <= 1e-12:
        return 0.0
    return found


def _square(number: float) -> float:
    # `**` raises OverflowError where a product becomes infinite.
    return number * number


def _sums(values: Sequence[float], clusters: Sequence[Hashable] | None, middle: float) -> Collection[float]:
    if clusters is None:
        return [value - middle for value in values]
    sums: dict[Hashable, float] = {}
    for cluster, value in zip(clusters, values, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + value - middle
    return sums.values()


def design_effect(values: Sequence[float], clusters: Sequence[Hashable] | None) -> float:
    """Return the design effect (Kish 1965), at least 1.

    This is the variance of the mean divided by the variance for independent values. If all values are equal, each
    cluster counts as one observation."""
    if clusters is None:
        return 1.0
    alone, together = standard_error(values), standard_error(values, clusters)
    if alone and together is not None:
        return max(1.0, (together / alone) ** 2)
    # Equal values have no variance to compare. The cautious assumption is that the members of a cluster depend on each
    # other completely.
    sizes = Counter(clusters).values()
    return sum(map(_square, sizes)) / len(values)


def paired_shares_interval(
    better_pairs: int, worse_pairs: int, pairs: int, effect: float = 1.0, z: float | None = None
) -> Interval:
    """Return the interval of the difference between two shares of the same cases: Tango's score interval (1998).

    `better_pairs` and `worse_pairs` count the pairs that are good on only one side. A difference lies in the interval
    if the observed difference is at most `z` standard errors away, where the standard error is computed under the
    assumed difference. `z` defaults to the normal quantile of 95%. Dependent pairs count as `pairs / effect`
    independent pairs."""
    b, c, n = better_pairs / effect, worse_pairs / effect, pairs / effect
    reach = normal_quantile(MISS_PROBABILITY) if z is None else z

    # Tango's interval excludes 0 wherever McNemar's test calls the difference real. Wald's simpler interval uses the
    # observed standard error. It does not agree with the test, and has no width if no pair differs.
    def away(distance: float) -> float:
        # `worse_share` is the maximum-likelihood estimate of the share of worse pairs if the difference is `distance`:
        # the positive root of a quadratic equation (closed form: Yang, Sun and Hardin 2013).
        linear = -b - c + (2 * n - b + c) * distance
        root = max(linear**2 + 8 * n * c * distance * (1 - distance), 0.0)
        worse_share = (math.sqrt(root) - linear) / (4 * n)
        return (b - c - n * distance) / math.sqrt(max(n * (2 * worse_share + distance * (1 - distance)), 1e-300))

    found = (better_pairs - worse_pairs) / pairs
    low, high = (
        _root_of_decreasing(lambda at: away(at) - reach, -1.0, found),
        _root_of_decreasing(lambda at: away(at) + reach, found, 1.0),
    )
    return Interval(low, high)


def mean_difference_interval(
    differences: Sequence[float], clusters: Sequence[Hashable] | None = None, level: float = MISS_PROBABILITY
) -> Interval | None:
    """Return Student's interval of the mean of finite score differences, by cluster.

    `level` is the probability of missing the true mean. The least and the greatest possible difference are each added
    as a quarter of a case, so the interval always has a width. Returns `None` with fewer than two clusters."""
    freedom = len(differences if clusters is None else set(clusters)) - 1
    if freedom < 1:
        return None
    # Most score differences are 0, and Student's interval of many zeros is far too narrow: it covers 82% instead of
    # 95%. The quarters of a case at both ends raise the coverage to at least 94%.
    most = max(1.0, max(map(abs, differences)))
    cases, groups = len(differences) + 0.5, freedom + 1.5
    middle = math.fsum(differences) / cases
    squares = math.fsum(map(_square, _sums(differences, clusters, middle)))
    squares += ((most - middle) ** 2 + (most + middle) ** 2) / 4
    reach = student_quantile(freedom, level) * math.sqrt(groups / (groups - 1) * squares) / cases
    return Interval(max(middle - reach, -most), min(middle + reach, most))


def adjusted_to_test(interval: Interval, *, is_real: bool, distance: float) -> Interval:
    """Return the interval, changed if necessary so that it excludes 0 exactly if the test finds a real difference.

    The test decides about 0, and the interval about every other value. Test and interval use different approximations
    and disagree in 1 to 5% of comparisons. `distance` is the observed difference, whose sign decides which bound is
    changed. After a real difference, a bound of 0 means "above 0" or "below 0"."""
    if not is_real:
        return Interval(min(interval.low, 0.0), max(interval.high, 0.0))
    if distance > 0:
        return Interval(max(interval.low, 0.0), interval.high)
    return Interval(interval.low, min(interval.high, 0.0))


POWER = 0.8
"""The probability that a test detects its smallest detectable difference."""

MIN_CLUSTERS = 6
"""The fewest cases or clusters that can give a p of at most 0.05. Five of them give a p of at least 2 / 32."""


def detectable_share(
    better_pairs: int, worse_pairs: int, pairs: int, level: float, effect: float = 1.0
) -> float | None:
    """Return the approximate smallest difference of two shares that a test at `level` usually detects.

    "Usually" means in four of five tries. The formula is (z + z') · √(share of discordant pairs ÷ n), with the observed
    share, and with the normal quantiles z of the level and z' of `POWER`. n is `pairs` divided by the design effect
    `effect`. If the difference is larger than this share, more discordant pairs are needed, and all of them are assumed
    to be better. Returns `None` if no difference up to 1 is large enough."""
    trials = pairs / effect
    reach = _z_sum(level) ** 2 / trials
    # Two extra discordant pairs keep the share above 0 if no pair differed.
    discordant = ((better_pairs + worse_pairs) / effect + 2) / (trials + 2)
    # If all discordant pairs are better, the difference equals their share: d = (z + z') · √(d ÷ n), so d = `reach`.
    found = max(math.sqrt(reach * discordant), reach)
    return found if found <= 1 else None


def detectable_mean(error: float | None, clusters: int, level: float) -> float | None:
    """Return the approximate smallest mean difference that a test at `level` detects in four of five tries.

    `error` is the standard error of the mean. Returns `None` if the error is unknown, or with fewer than `MIN_CLUSTERS`
    clusters."""
    if not error or clusters < MIN_CLUSTERS:
        return None
    return _z_sum(level) * error


def _z_sum(level: float) -> float:
    # This is the detectable difference, in standard errors, of a test at `level` with a power of `POWER`.
    return normal_quantile(level) + NormalDist().inv_cdf(POWER)


def normal_quantile(level: float) -> float:
    """Return the two-sided quantile of the standard normal distribution, such as 1.96 for a level of 0.05."""
    return NormalDist().inv_cdf(1 - level / 2)


@cache
def student_quantile(freedom: int, level: float = MISS_PROBABILITY) -> float:
    """Return the two-sided quantile of Student's t distribution.

    `freedom` is the number of degrees of freedom, 1 or more. For example, 10 degrees of freedom at a level of 0.05 give
    2.23."""
    if freedom >= _NORMAL_FROM:
        return normal_quantile(level)
    high = 16.0
    while _within(high, freedom) < 1 - level:
        high *= 2
    return _root_of_decreasing(lambda at: 1 - level - _within(at, freedom), 0.0, high)


def _within(t: float, freedom: int) -> float:
    """Return the probability that Student's t lies between -t and t (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
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


# Repeated runs: pass@k is the probability of at least one good run among k runs, and pass^k that of k good runs.


class PassAtK(NamedTuple):
    """The means of pass@k and pass^k, each 0..1, over the `cases` with at least `k` graded runs."""

    k: int
    cases: int
    at_least_one: float
    all_of_them: float


def pass_at_k(cases: Iterable[tuple[int, int]]) -> tuple[PassAtK, ...]:
    """Return pass@k and pass^k for each k from 1 to the largest number of runs of a case.

    A case is given as its number of good runs and its number of graded runs. For c good runs of n, there are C(n, k)
    ways to draw k runs. pass@k is 1 - C(n-c, k) / C(n, k) (Chen et al. 2021), and pass^k is C(c, k) / C(n, k) (Yao et
    al. 2024). Both are unbiased, unlike powers of the pass rate c / n."""
    cases_of_share: list[_CasesOfShare] = []
    most = 0
    for (good, of), times in Counter(cases).items():
        cases_of_share.append(_CasesOfShare(times, list(_shares(of - good, of)), list(_shares(good, of))))
        most = max(most, of)
    return tuple(_passing_of(k, cases_of_share) for k in range(1, most + 1))


class _CasesOfShare(NamedTuple):
    """A group of `times` cases that have the same numbers of good and graded runs.

    `none_good` and `all_good` hold probabilities for 1, 2, … drawn runs. `none_good` is the probability that no drawn
    run is good, and `all_good` that every drawn run is good."""

    times: int
    none_good: Sequence[float]
    all_good: Sequence[float]


def _shares(part: int, whole: int) -> Iterator[float]:
    """Yield C(part, k) / C(whole, k) for each k up to `whole`, as a product over draws, without factorials."""
    return accumulate((max(part - drawn, 0) / (whole - drawn) for drawn in range(whole)), float.__mul__)


def _passing_of(k: int, cases_of_share: Iterable[_CasesOfShare]) -> PassAtK:
    count = 0
    none_good: list[float] = []
    all_good: list[float] = []
    for cases in cases_of_share:
        # A case with fewer than k runs has no way to draw k runs.
        if len(cases.all_good) >= k:
            count += cases.times
            none_good.append(cases.times * cases.none_good[k - 1])
            all_good.append(cases.times * cases.all_good[k - 1])
    return PassAtK(k, count, 1 - math.fsum(none_good) / count, math.fsum(all_good) / count)


SIGNIFICANCE_LEVEL = 0.05
"""The largest p for which a difference counts as real."""

RANDOM_DRAWS = 9_999
"""The number of random sign vectors drawn if there are too many to count. With the observed vector, there are
10,000."""

PERMUTATION_STEPS = 277_200
"""The number of steps into which the permutation test divides the largest difference (or 1, if 1 is larger).

The number is a multiple of all numbers up to 12, and of 16, 25 and 100. The graders' scores therefore lie on the grid,
and equal sums stay equal. Sums of floats would break ties at random."""

_ENUMERATED = 16
"""The most differences whose sign vectors are enumerated. 16 differences have 65,536 sign vectors."""

_COUNTED_BITS = 400_000_000
"""The most bits that may be shifted to count all sign vectors. This takes about 20 ms."""


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the exact two-sided p-value of McNemar's test (1947).

    `only_first` counts the pairs that are good only on the first side, and `only_second` counts the pairs that are good
    only on the second side. If the sides are equal, each side is the good side with probability 1/2 in each of these
    pairs, n = only_first + only_second. So p is twice the probability that Binomial(n, 1/2) is at most the smaller
    count, and at most 1."""
    of = only_first + only_second
    tail = ways = 1
    for chosen in range(min(only_first, only_second)):
        ways = ways * (of - chosen) // (chosen + 1)
        tail += ways
    return min(1.0, 2 * tail / (1 << of))


def permutation(differences: Iterable[float], seed: int = 0, clusters: Sequence[Hashable] | None = None) -> float:
    """Return the two-sided p-value of the paired permutation test (Fisher 1935, Pitman 1937) on finite differences.

    If the sides are equal, each difference is equally likely to have the opposite sign. So p is the share of sign
    vectors whose sum is at least as far from 0 as the observed sum. The result is exact if all sign vectors can be
    counted. Otherwise, it is estimated from `RANDOM_DRAWS` random sign vectors and the observed vector. The same `seed`
    gives the same estimate. With `clusters`, one for each difference, all differences of a cluster change their signs
    together."""
    values = list(differences)
    unit = max(1.0, max(map(abs, values), default=0.0))
    steps = [round(value / unit * PERMUTATION_STEPS) for value in values]
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
    # A sign vector splits the sizes into a part with plus and a part with minus. The vector's sum is at least as far
    # from 0 as the observed sum if either part weighs at most `light`. By symmetry, both parts are equally likely to do
    # so.
    light = (sum(sizes) - abs(sum(steps)) // shared) // 2
    ways = 1 << len(sizes)
    if len(sizes) <= _ENUMERATED:
        return 2 * _enumerated(sizes, light) / ways
    if len(sizes) * len(sizes) * (light + 1) <= _COUNTED_BITS:
        return 2 * _counted(sizes, light) / ways
    return (1 + _drawn(sizes, light, random.Random(seed))) / (1 + RANDOM_DRAWS)


def bonferroni(p: float, comparisons: int) -> float:
    """Return the p-value of one of several tests, adjusted for the number of tests (Dunn 1961).

    The adjustment bounds the probability that any of the tests mistakes chance for a difference. Holm's adjustment is
    slightly more powerful but has no matching intervals."""
    return min(1.0, p * max(comparisons, 1))


def _enumerated(sizes: Sequence[int], max_weight: int) -> int:
    sums = [0]
    for size in sizes:
        sums += [chosen + size for chosen in sums]
    return sum(chosen <= max_weight for chosen in sums)


def _counted(sizes: Sequence[int], max_weight: int) -> int:
    """Return how many subsets of sizes weigh at most `max_weight`, by dynamic programming over the weights.

    One large integer holds a field for each weight up to `max_weight`. The field has the number of subsets with this
    weight. For each size, a copy of the integer is shifted by the size and added, because every subset without the size
    yields a subset with it. One addition of large integers thus replaces a loop over a list of counts."""
    width = len(sizes) + 1
    mask = (1 << (max_weight + 1) * width) - 1
    fields = 1
    for size in sizes:
        fields += (fields << size * width) & mask
    # Modulo base - 1, a number equals the sum of its digits. Here, the fields are the digits.
    return fields % ((1 << width) - 1)


def _drawn(sizes: Sequence[int], max_weight: int, random_bits: random.Random) -> int:
    """Draw `RANDOM_DRAWS` random subsets of `sizes`. Count each if its sum or the sum of the rest is ≤ `max_weight`."""
    total, count = sum(sizes), len(sizes)
    # A subset is an integer with a bit for each size. The plane of a binary digit marks the sizes with this digit.
    # Counting the common bits of subset and plane weighs the subset without a loop over thousands of sizes.
    planes = []
    for digit in range(max(sizes).bit_length()):
        plane = 0
        for place, size in enumerate(sizes):
            if size >> digit & 1:
                plane |= 1 << place
        planes.append((plane, digit))
    found = 0
    for _ in range(RANDOM_DRAWS):
        chosen = random_bits.getrandbits(count)
        weight = sum([(chosen & plane).bit_count() << digit for plane, digit in planes])
        found += weight <= max_weight or total - weight <= max_weight
    return found


# Sequential tests may be read while results come in, and may stop a batch. If an ordinary test is repeated every few
# cases, it finds equal models different far more often than its level allows. The three tests below keep their level.
# They need cases in random order, so that the first cases are a sample of all.

DECIDING_E_VALUE: Final = 1 / SIGNIFICANCE_LEVEL
"""The smallest e-value that decides a difference."""


_OBRIEN_FLEMING: Final = (1.960, 1.977, 2.004, 2.024, 2.040, 2.053, 2.063, 2.072, 2.080, 2.087)
"""The constants of O'Brien and Fleming for 1 to 10 looks, two-sided at 5% (Jennison and Turnbull 2000, table 2.3)."""


def e_value(only_first: int, only_second: int) -> float:
    """Return the evidence that two sides differ, from the numbers of pairs good on only one side.

    The e-value is a likelihood ratio for these pairs, n = only_first + only_second. The numerator is their probability
    if each pair favours one side with an unknown probability (with the prior Beta(1/2, 1/2)). The denominator is their
    probability if both sides are equally likely. The ratio is B(only_first + 1/2, only_second + 1/2) / B(1/2, 1/2) ·
    2ⁿ. It is infinite if a float cannot hold it.

    If the sides are equal, the e-value ever reaches 20 with a probability of at most 5%, no matter how often it is read
    (Ville 1939; Grünwald, de Heide and Koolen 2024)."""
    of = only_first + only_second
    exponent = math.lgamma(only_first + 0.5) + math.lgamma(only_second + 0.5) - math.lgamma(of + 1) - math.log(math.pi)
    exponent += of * math.log(2)
    # `exp` overflows above about 709.
    return math.exp(exponent) if exponent < 700 else math.inf


def anytime_p(greatest: float) -> float:
    """Return the anytime-valid p-value, which is the inverse of the greatest e-value so far, at most 1."""
    return min(1.0, 1 / greatest) if greatest > 0 else 1.0


def level_of_look(look: int, looks: int) -> float:
    """Return the significance level of one of several equally spaced looks at results.

    Together, the looks have a level of 5%. Their levels follow O'Brien and Fleming (1979): the early looks decide only
    very clear differences, and the last look is nearly a usual test. `look` counts from 1. Raises ValueError unless 1
    <= look <= looks <= `MAX_LOOKS`."""
    if not 1 <= look <= looks <= MAX_LOOKS:
        raise ValueError(f"a test has 1 to {MAX_LOOKS} looks, numbered from 1: look {look} of {looks} does not exist")
    z = _OBRIEN_FLEMING[looks - 1] * math.sqrt(looks / look)
    return math.erfc(z / math.sqrt(2))


def looks_after(cases: int, looks: int) -> tuple[int, ...]:
    """Return the numbers of cases after which a test looks at the results.

    For example, three looks at the results of 10 cases come after 4, 7 and 10 cases. With fewer cases than looks, there
    is one look after each case."""
    if not cases:
        return ()
    numbers = (math.ceil(cases * look / looks) for look in range(1, looks + 1))
    return tuple(dict.fromkeys(numbers))


GateDecision = Literal["reached", "missed"]

_ALMOST_ALL: Final = 0.99
"""The largest share of its wealth that a bet may lose on one unit. A player who has lost everything can never win
again."""


class GateEvidence:
    """A sequential test of whether a pass rate is above `worse` or below `gate`, on units in random order.

    A unit is a case or a cluster of cases, with its share of good runs. Shares of whole units keep the test valid for
    any dependence between the runs within a unit. The test is a pair of betting games (Wald 1945; Waudby-Smith and
    Ramdas 2024). One player bets that the rate is above `worse`, and the other bets that it is below `gate`. If a
    player is wrong, the wealth ever reaches twenty times its initial value with a probability of at most 5% (Ville
    1939). Therefore, twenty times the initial wealth decides. Raises ValueError unless 0 < worse < gate < 1."""

    def __init__(self, gate: float, worse: float) -> None:
        if not 0 < worse < gate < 1:
            raise ValueError(
                f"`gate` must be above `worse`, and both must lie between 0 and 1: gate is {setting_text(gate)}, "
                f"worse is {setting_text(worse)}"
            )
        # Wald's stakes win fastest if the rate is exactly `gate` or exactly `worse`. Each player spreads the wealth
        # over several stakes to win soon at other rates, too.
        apart, most_up, most_down = gate - worse, _ALMOST_ALL / worse, _ALMOST_ALL / (1 - gate)
        walds = apart / (gate * (1 - gate))
        self._up = _Bets(worse, [min(apart / (worse * (1 - worse)), most_up), 0.9 / worse, most_up])
        self._down = _Bets(gate, [-min(times * walds, most_down) for times in (0.5, 1, 2, 4)])
        self.verdict: GateDecision | None = None
        """The verdict. Later units do not change it."""

    def add(self, share: float, size: float = 1.0) -> None:
        """Add the next unit: its share of good runs, and its size relative to the largest unit."""
        if self.verdict is not None:
            return
        self._up.add(share, size)
        self._down.add(share, size)
        if self._up.wealth >= DECIDING_E_VALUE:
            self.verdict = "reached"
        elif self._down.wealth >= DECIDING_E_VALUE:
            self.verdict = "missed"

    @property
    def evidence_above(self) -> float:
        """The evidence that the rate is above `worse`. It starts at 1 and decides at 20."""
        return self._up.wealth

    @property
    def evidence_below(self) -> float:
        """The evidence that the rate is below the gate. It starts at 1 and decides at 20."""
        return self._down.wealth


class _Bets:
    """The bets of one player against a rate, with several stakes.

    A bet with a positive stake gains from shares above `rate`. A bet with a negative stake gains from shares below
    it."""

    def __init__(self, rate: float, stakes: Sequence[float]) -> None:
        self._rate = rate
        self._stakes = stakes
        # This is the logarithm of each bet's wealth, because a product of hundreds of factors would overflow.
        self._logs = [0.0] * len(stakes)

    def add(self, share: float, size: float) -> None:
        for at, stake in enumerate(self._stakes):
            self._logs[at] += math.log1p(stake * size * (share - self._rate))

    @property
    def wealth(self) -> float:
        return sum(map(math.exp, self._logs)) / len(self._logs)


def fewest_units_to_reach(gate: float, worse: float, sizes: Iterable[float]) -> int | None:
    """Return how many units reach a gate if all their runs are good. `sizes` are the units' sizes, in order.

    Returns `None` if even all units together do not reach the gate."""
    evidence = GateEvidence(gate, worse)
    for number, size in enumerate(sizes, 1):
        evidence.add(1.0, size)
        if evidence.verdict is not None:
            return number
    return None
