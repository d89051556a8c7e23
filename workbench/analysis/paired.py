"""Compares two models case by case: the cases on which they differ, and a test of the difference against chance."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from workbench.analysis.comparison import Cell, scores_differ
from workbench.analysis.measures import (
    DECIDING_MEASURES,
    GOOD_RUNS,
    PAIRED_MEASURES,
    PASS_RATE,
    SCORE,
    VALID_ARGUMENTS,
    Measure,
    PairTest,
)
from workbench.analysis.statistics import (
    MIN_CLUSTERS,
    SIGNIFICANCE_LEVEL,
    Interval,
    adjusted_to_test,
    bonferroni,
    design_effect,
    detectable_mean,
    detectable_share,
    mcnemar,
    mean_difference_interval,
    normal_quantile,
    paired_shares_interval,
    permutation,
    standard_error,
    student_quantile,
)
from workbench.dataclasses import dataclass
from workbench.grading.scoring import mean
from workbench.numerals import count_text, counted, decimals, of_text, p_text
from workbench.suite.grading_model import ComparedBy

if TYPE_CHECKING:
    from workbench.analysis.early_stop_state import PairEarlyStop


CellPair = tuple[Cell, Cell]
"""The cells of one case: with model A, and with model B."""

MAX_MORE_CASES = 10_000
"""The most further cases that are proposed. If more cases are needed, the models are practically equal."""

_MIN_APPROXIMATED = 50
"""The fewest discordant pairs for which the normal approximation may replace the exact test."""


Clusters = Sequence[Hashable] | None
"""The cluster of each pair, or `None` if every pair is independent."""


class Differences(NamedTuple):
    """The value with model B minus the value with model A, for each pair in which both are known.

    `clusters` has the clusters of the pairs, or `None` if the pairs are independent."""

    values: Sequence[float]
    clusters: Clusters

    @property
    def units(self) -> int:
        """The number of independent observations. These are clusters, or pairs if there are no clusters."""
        return len(self.values if self.clusters is None else set(self.clusters))

    @property
    def better(self) -> int:
        """The number of pairs in which only B is good, if the differences are of statuses."""
        return self.values.count(1)

    @property
    def worse(self) -> int:
        """The number of pairs in which only A is good, if the differences are of statuses."""
        return self.values.count(-1)


class Statistics(NamedTuple):
    """A test of paired differences, its interval, and the smallest difference that it usually detects.

    "Usually" means in four of five tries. `interval` and `detectable` are called with the differences and with the
    level of the test, which is 0.05 for a single comparison."""

    p: Callable[[Differences], float]
    interval: Callable[[Differences, float], Interval | None]
    detectable: Callable[[Differences, float], float | None]


def _shares_p(differences: Differences) -> float:
    # Without clusters, the permutation test of differences of 1 and -1 is McNemar's test.
    if differences.clusters is not None:
        return _means_p(differences)
    return mcnemar(differences.better, differences.worse)


def _shares_interval(differences: Differences, level: float) -> Interval | None:
    if differences.clusters is None:
        z = normal_quantile(level)
    elif differences.units > 1:
        z = student_quantile(differences.units - 1, level)
    else:
        return None
    return paired_shares_interval(
        differences.better, differences.worse, len(differences.values), design_effect(*differences), z
    )


def _shares_detectable(differences: Differences, level: float) -> float | None:
    if differences.units < MIN_CLUSTERS:
        return None
    return detectable_share(
        differences.better, differences.worse, len(differences.values), level, design_effect(*differences)
    )


def _means_p(differences: Differences) -> float:
    return permutation(differences.values, clusters=differences.clusters)


def _means_interval(differences: Differences, level: float) -> Interval | None:
    return mean_difference_interval(differences.values, differences.clusters, level)


def _means_detectable(differences: Differences, level: float) -> float | None:
    return detectable_mean(standard_error(*differences), differences.units, level)


_STATISTICS: Mapping[PairTest, Statistics] = {
    "McNemar": Statistics(_shares_p, _shares_interval, _shares_detectable),
    "permutation": Statistics(_means_p, _means_interval, _means_detectable),
}


@dataclass(frozen=True)
class Contrast:
    """Model B compared with model A by one measure. `comparisons` counts the comparisons that are shown together.

    `statistics` is `None` if the batch may have stopped early. Tests for a fixed number of cases are then invalid."""

    measure: Measure
    found: Differences
    comparisons: int
    statistics: Statistics | None

    @property
    def count(self) -> int:
        return len(self.found.values)

    @property
    def differs(self) -> bool:
        return any(self.found.values)

    @property
    def difference(self) -> float | None:
        """The mean of B's value minus A's value over the pairs, or `None` without pairs."""
        if self.found.values:
            return mean(self.found.values)
        return None

    @cached_property
    def p(self) -> float | None:
        """The p-value of the test, or `None` without pairs or without a test."""
        if self.statistics is None or not self.found.values:
            return None
        return self.statistics.p(self.found)

    @property
    def adjusted(self) -> float | None:
        """The p-value adjusted for all comparisons (Bonferroni), or `None` without a p-value."""
        if self.p is None:
            return None
        return bonferroni(self.p, self.comparisons)

    @property
    def is_real(self) -> bool:
        """Whether the difference is significant."""
        return _is_real(self.adjusted)

    @property
    def level(self) -> float:
        """The significance level of each comparison that keeps the error over all comparisons at 5% (Bonferroni)."""
        return SIGNIFICANCE_LEVEL / max(1, self.comparisons)

    @property
    def interval(self) -> Interval | None:
        """The confidence interval of `difference`, with a level of 95% for all comparisons together (Bonferroni).

        The interval excludes 0 if the difference is significant, and includes 0 otherwise. It is `None` without a test,
        without pairs, or with a single cluster."""
        if self.difference is None or self.statistics is None:
            return None
        found = self.statistics.interval(self.found, self.level)
        if found is None:
            return None
        return adjusted_to_test(found, is_real=self.is_real, distance=self.difference)

    @property
    def detectable(self) -> float | None:
        """The approximate smallest difference that a test of this many cases detects in four of five tries.

        It is `None` without a test, or if there are too few cases to detect any difference."""
        if self.statistics is None:
            return None
        return self.statistics.detectable(self.found, self.level)

    @property
    def method(self) -> str:
        if self.measure.test != "McNemar":
            return f"{self.measure.test} test on {self.measure.title}s"
        if self.found.clusters is None:
            return "McNemar"
        return f"permutation by {counted(self.found.units, 'cluster')}"

    @property
    def bounds(self) -> str:
        """The interval in words, or an empty text without an interval."""
        if (found := self.interval) is None:
            return ""
        low, high = map(self.measure.signed_text, found)
        # The interval of a real difference excludes 0. A rounded bound must not show 0 either.
        if self.is_real and found.low >= 0 and not float(low):
            low = "above 0"
        if self.is_real and found.high <= 0 and not float(high):
            high = "below 0"
        together = f" for all {self.comparisons}" if self.comparisons > 1 else ""
        return f" (95%{together}: {low} to {high})"

    @property
    def size(self) -> str:
        return f"{self.measure.difference_text(self.difference or 0.0)}{self.bounds}"

    def result(self, *, decides: bool) -> str:
        """Return the result of the test in words. With `decides`, a significant difference is called real."""
        if self.p is None or self.adjusted is None:
            return ""
        shown, adjusted = p_text(self.p, SIGNIFICANCE_LEVEL), p_text(self.adjusted, SIGNIFICANCE_LEVEL)
        if adjusted != shown:
            shown += f" ({adjusted} for {self.comparisons} comparisons)"
        if self.is_real and decides:
            return f"{shown}: a real difference at the 5% level"
        # Status and score are two tests of the same runs. If either test could decide, more than 5% of comparisons
        # would report a difference by chance.
        if self.is_real:
            return f"{shown}: a hint, which does not decide"
        if self.p <= SIGNIFICANCE_LEVEL:
            return f"{shown}: not enough to tell among this many comparisons"
        return f"{shown}: not enough to tell"


@dataclass(frozen=True)
class PairNumbers:
    """The differences of pairs that the tests of a comparison need, by name of the measure.

    The other fields mean the same as the properties of `PairedComparison` with these names."""

    differences: Mapping[str, Differences]
    both_good: int
    other_scores: int
    primary: ComparedBy


@dataclass(frozen=True)
class PairedComparison:
    """Model B compared with model A on the cases that were graded with both models.

    Each case counts once, by the joined result of its repeats. `pairs` begins with the discordant pairs, the largest
    differences in score first. `left_out` counts the cases that ran with A or B but were not graded with both: in
    error, skipped, stopped, or run with only one model. `family` holds all comparisons shown together, including this
    one."""

    pairs: tuple[CellPair, ...]
    left_out: int
    watched: PairEarlyStop | None = None
    """The decision of a batch that may stop early. No other test is valid for such a batch."""
    family: Sequence[PairedComparison] = field(default=(), repr=False, compare=False)

    numbers: PairNumbers | None = field(default=None, repr=False, compare=False)
    """The inputs of the tests, if the pairs themselves were dropped to save memory."""

    @cached_property
    def _numbers(self) -> PairNumbers:
        return self.numbers or _numbers_of(self.pairs)

    @property
    def without_pairs(self) -> PairedComparison:
        """The same comparison with the numbers that the tests need (a few bytes for each pair), without the cells."""
        return replace(self, pairs=(), numbers=self._numbers)

    @cached_property
    def _contrasts(self) -> Mapping[str, Contrast]:
        return {measure.name: self._contrast(measure) for measure in PAIRED_MEASURES}

    def _contrast(self, measure: Measure) -> Contrast:
        assert measure.test == "McNemar" or measure.test == "permutation"
        comparisons = sum(other.is_tested(measure) for other in self.family)
        statistics = None
        if self.watched is None:
            statistics = _STATISTICS[measure.test]
        return Contrast(measure, self._numbers.differences[measure.name], comparisons, statistics)

    def by(self, measure: Measure) -> Contrast:
        """Return the comparison of B with A by one of the measures that are tested in pairs."""
        return self._contrasts[measure.name]

    def is_tested(self, measure: Measure) -> bool:
        """Return whether a measure can be tested: some pair has both values, and the batch could not stop early."""
        return self.watched is None and bool(self._numbers.differences[measure.name].values)

    @property
    def _statuses(self) -> Differences:
        """The difference of statuses for each pair: 1 if only B is good, -1 if only A is good, otherwise 0."""
        return self._numbers.differences[PASS_RATE.name]

    @property
    def count(self) -> int:
        return len(self._statuses.values)

    @cached_property
    def better(self) -> int:
        """The number of cases that are good (passed or warned) only with B."""
        return self._statuses.better

    @cached_property
    def worse(self) -> int:
        """The number of cases that are good only with A."""
        return self._statuses.worse

    @property
    def both_good(self) -> int:
        return self._numbers.both_good

    @property
    def both_bad(self) -> int:
        return self.count - self.better - self.worse - self.both_good

    @property
    def discordant(self) -> list[CellPair]:
        """The cases that are good with only one model, the largest difference in score first."""
        return list(self.pairs[: self.better + self.worse])

    @property
    def primary(self) -> ComparedBy:
        """The measure that decides: pass and fail, unless the suites of all cases ask for the score."""
        return self._numbers.primary

    @property
    def clusters(self) -> int | None:
        """The number of clusters of dependent cases, or `None` if no case has a cluster."""
        if self._statuses.clusters is None:
            return None
        return self._statuses.units

    @property
    def is_worse(self) -> bool:
        """Whether B has significantly fewer good runs than A."""
        found = self.by(GOOD_RUNS)
        return found.is_real and found.measure.is_worse(found.difference or 0.0)

    def shares_sentence(self) -> str | None:
        """Return the result of the test on good runs in one plain sentence, or `None` without a test."""
        found = self.by(GOOD_RUNS)
        if found.p is None:
            return None
        return f"all {_cases(found.count)}: {found.measure.title} {found.size}, {found.result(decides=True)}"

    def arguments_sentence(self, name_a: str, name_b: str) -> str | None:
        """Return the result of the test on valid arguments in one plain sentence.

        Return `None` if A and B do not differ."""
        found = self.by(VALID_ARGUMENTS)
        if found.difference is None or found.p is None or not found.differs:
            return None
        apart, result = found.measure.difference_text(found.difference), found.result(decides=False)
        whose = f"{found.measure.title} of {name_b} against {name_a}"
        return f"{whose}: {apart} on the mean of {_cases(found.count)}, {result}"

    @cached_property
    def more_cases(self) -> int | None:
        """The approximate number of further cases that would make the difference significant.

        With m further cases and unchanged shares, n pairs become n + m, and `better` and `worse` grow by (n + m) / n,
        rounded to whole cases. The result is the smallest m for which McNemar's test then gives a p of at most `level`.
        It is 0 if the present cases suffice. It is `None` if `better` equals `worse`, if m is above `MAX_MORE_CASES`,
        if cases have clusters, or if the batch may stop early."""
        if self.better == self.worse or self.clusters is not None or self.watched is not None:
            return None
        pairs, of_status = self.count, self.by(PASS_RATE)
        # The exact test is slow for thousands of counts. The normal approximation with continuity correction first
        # rules out most counts. With a slack of 3%, it never rules out a count that the exact test accepts.
        limit = 0.97 * normal_quantile(of_status.level) ** 2
        for more in range(MAX_MORE_CASES + 1):
            better = _rounded(self.better * (pairs + more), pairs)
            worse = _rounded(self.worse * (pairs + more), pairs)
            discordant = better + worse
            if discordant >= _MIN_APPROXIMATED and (abs(better - worse) - 1) ** 2 < limit * discordant:
                continue
            if _is_real(bonferroni(mcnemar(better, worse), of_status.comparisons)):
                return more
        return None

    @property
    def other_scores(self) -> int:
        """The number of cases with equal verdicts (good or not) but visibly different scores of the two models."""
        return self._numbers.other_scores

    def sentences(self, name_a: str, name_b: str) -> tuple[str, ...]:
        """Return the results of the tests as sentences, the deciding test first. Without pairs, return one sentence."""
        sentence = self.sentence(name_a, name_b)
        if not self.count:
            return (sentence,)
        results = [sentence, self.score_sentence(name_a, name_b)]
        if DECIDING_MEASURES[self.primary] is SCORE and self.watched is None:
            results.reverse()
        return (*results, *filter(None, [self.arguments_sentence(name_a, name_b)]))

    def difference_sentences(self) -> Iterator[str]:
        """Yield the size of each difference in words: `pass rate +4.0 points (95%: -2.1 to +10.3)`."""
        for measure in DECIDING_MEASURES.values():
            found = self.by(measure)
            if found.interval is not None:
                yield f"{measure.pooled[0].title} {found.size}"

    def sentence(self, name_a: str, name_b: str) -> str:
        """Return the result on pass and fail in one plain sentence.

        The sentence has the difference, its interval, the number of cases, the result of the test, and the number of
        left-out cases."""
        if self.watched is not None and self.count:
            return self.watched.sentence(name_a, name_b)
        found = self.by(PASS_RATE)
        if found.p is None:
            return f"nothing to compare: no case was graded with both {name_a} and {name_b}"
        left_out = ""
        if self.left_out:
            left_out = f" ({_cases(self.left_out)} not graded with both left out)"
        if not found.differs:
            agree = f"{name_a} and {name_b} agree on {_cases(self.count)}"
            return f"{agree}, {found.size}: nothing tells them apart{left_out}"
        counts = f"better on {count_text(self.better)}, worse on {of_text(self.worse, self.count)}"
        if self.clusters is not None:
            counts += f" in {counted(self.clusters, 'cluster')}"
        decides = DECIDING_MEASURES[self.primary] is PASS_RATE
        result = found.result(decides=decides)
        if decides and not found.is_real:
            result += self._needed_status()
        return f"{name_b} {found.size}, {counts}, {result}{left_out}"

    def score_sentence(self, name_a: str, name_b: str) -> str:
        if self.watched is not None:
            return self.watched.note
        found = self.by(SCORE)
        if found.difference is None or found.p is None:
            return f"no case has a score from both {name_a} and {name_b}"
        over = _cases(found.count)
        if not found.differs:
            return f"{name_a} and {name_b} score the same on {over}{found.bounds}"
        decides, seen = DECIDING_MEASURES[self.primary] is SCORE, found.detectable
        needed = ""
        if decides and not found.is_real and seen is not None and seen > abs(found.difference):
            needed = f"; this many cases can show about {decimals(seen, 3)}"
        apart = found.measure.signed_text(found.difference)
        size = apart if float(apart) else "about the same"
        return f"{name_b} scores {size}{found.bounds} on the mean of {over}, {found.result(decides=decides)}{needed}"

    def _needed_status(self) -> str:
        if self.clusters is None and self.better != self.worse:
            more = self.more_cases
            if more is None:
                return f"; even {count_text(MAX_MORE_CASES)} more cases like these would not be enough"
            if more == 1:
                return "; needs about one more case like these"
            return f"; needs about {count_text(more)} more cases like these"
        seen, apart = self.by(PASS_RATE).detectable, self.by(PASS_RATE).difference
        if seen is None or seen <= abs(apart or 0.0):
            return ""
        return f"; this many cases can show about {decimals(100 * seen, 0)} points"


def _numbers_of(pairs: Sequence[CellPair]) -> PairNumbers:
    both_good = other_scores = 0
    questions: set[ComparedBy] = set()
    for a, b in pairs:
        questions.add(b.runs[-1].grading.compare_by)
        if a.is_good == b.is_good:
            both_good += a.is_good
            other_scores += a.score is not None and b.score is not None and scores_differ(a.score, b.score)
    # Every case has a status to compare. The score decides only if every suite asks for it.
    primary: ComparedBy = "score" if questions == {"score"} else "status"
    differences = {measure.name: _differences(measure, pairs) for measure in PAIRED_MEASURES}
    return PairNumbers(differences, both_good, other_scores, primary)


def _differences(measure: Measure, pairs: Iterable[CellPair]) -> Differences:
    values = array("d")
    counted_pairs: list[CellPair] = []
    for pair in pairs:
        if measure.only_deciding and pair[1].is_quarantined:
            continue
        if (apart := _difference(measure, pair)) is not None:
            values.append(apart)
            counted_pairs.append(pair)
    return Differences(values, _clusters(counted_pairs))


def compare_pairs(
    first: Iterable[Cell], second: Iterable[Cell], early_stop: PairEarlyStop | None = None
) -> PairedComparison:
    """Compare the cells of a model A with those of a model B. A pair has the same suite and case id.

    `early_stop` is the decision about the two models in a batch that may stop early."""
    of_a, of_b = _by_case(first), _by_case(second)
    pairs: list[CellPair] = []
    for key, a in of_a.items():
        b = of_b.get(key)
        if b is not None and a.is_graded and b.is_graded:
            pairs.append((a, b))
    # `PairedComparison.discordant` relies on this order.
    pairs.sort(key=lambda pair: (pair[0].is_good == pair[1].is_good, -abs(_difference(SCORE, pair) or 0.0)))
    return PairedComparison(tuple(pairs), len(of_a.keys() | of_b.keys()) - len(pairs), early_stop)


def _by_case(cells: Iterable[Cell]) -> dict[tuple[str, str], Cell]:
    return {cell.case_key: cell for cell in cells}


def compare_with_first(first: Iterable[Cell], others: Mapping[str, Iterable[Cell]]) -> dict[str, PairedComparison]:
    """Compare the cells of one model with every other model's cells.

    Returns the comparisons by model, each corrected for the number of comparisons."""
    first = tuple(first)
    found = corrected_for_count([compare_pairs(first, cells) for cells in others.values()])
    return dict(zip(others, found, strict=True))


def corrected_for_count(comparisons: Iterable[PairedComparison]) -> list[PairedComparison]:
    """Return the same comparisons, each corrected for the number of comparisons."""
    # Each comparison holds the list of all comparisons, itself included. The number of tests differs by measure because
    # a model may have no scores. Therefore, each comparison counts the members of the list with a test.
    among: list[PairedComparison] = []
    among += (replace(comparison, family=among) for comparison in comparisons)
    return among


def _is_real(adjusted: float | None) -> bool:
    return adjusted is not None and adjusted <= SIGNIFICANCE_LEVEL


def _cases(count: int) -> str:
    return "one case" if count == 1 else counted(count, "case")


def _difference(measure: Measure, pair: CellPair) -> float | None:
    assert measure.of_case is not None
    of_a, of_b = map(measure.of_case, pair)
    if of_a is None or of_b is None or not math.isfinite(of_b - of_a):
        return None
    return of_b - of_a


def _clusters(pairs: Iterable[CellPair]) -> Clusters:
    found: list[Hashable] = []
    any_written = False
    for a, b in pairs:
        # If two batches are compared, B is the later batch. The clusters of its suite are used.
        cluster = b.cluster
        if cluster[1] is None:
            cluster = a.cluster
        any_written = any_written or cluster[1] is not None
        found.append(cluster)
    return found if any_written else None


def _rounded(numerator: int, denominator: int) -> int:
    """Return `numerator` / `denominator` as the nearest whole number. Halves are rounded up."""
    return (2 * numerator + denominator) // (2 * denominator)
