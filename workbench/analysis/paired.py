"""Compares two models case by case: on which cases they differ, and whether that is more than chance."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from workbench.analysis.comparison import Cell, scores_differ
from workbench.analysis.statistics import (
    LEVEL,
    MIN_CLUSTERS,
    Interval,
    agreeing,
    bonferroni,
    design_effect,
    detectable_mean,
    detectable_share,
    mcnemar,
    mean_difference_interval,
    paired_shares_interval,
    permutation,
    standard_error,
    student,
    z_of,
)
from workbench.dataclasses import dataclass
from workbench.grading.scoring import mean
from workbench.numerals import count_text, counted, decimals, difference_text, of_text, p_text, points_text
from workbench.suite.model import ComparedBy

if TYPE_CHECKING:
    from workbench.analysis.watched import PairWatched


Pair = tuple[Cell, Cell]
"""One case with A and with B."""

MAX_MORE_CASES = 10_000
"""More further cases than this are unrealistic: models that need more are as good as equal."""

_ALWAYS_ASKED = 50
"""Fewer discordant pairs are too few for an approximation."""


@dataclass(frozen=True)
class PairNumbers:
    """What the tests need of pairs, in their order. `apart` says of each whether it is good with B alone (1), with A
    alone (-1), or with both or neither (0). `differences` are those of the scores, where there are two, `clusters`
    those of all pairs, of the ones with two scores, and of the ones with calls of both. `other_scores` are as in
    `Paired`."""

    apart: array[int]
    differences: array[float]
    clusters: Sequence[Hashable] | None
    clusters_scored: Sequence[Hashable] | None
    both_good: int
    other_scores: int
    primary: ComparedBy
    argument_differences: array[float] = field(default_factory=lambda: array("d"))
    """Those of the shares of calls with valid arguments, of the pairs where both made calls that were checked."""
    clusters_called: Sequence[Hashable] | None = None
    share_differences: array[float] = field(default_factory=lambda: array("d"))
    """Those of the shares of graded runs that are good, of the pairs that are not in quarantine."""
    clusters_shared: Sequence[Hashable] | None = None

    @cached_property
    def better(self) -> int:
        return self.apart.count(1)

    @cached_property
    def worse(self) -> int:
        return self.apart.count(-1)


@dataclass(frozen=True)
class Paired:
    """B against A on the cases that were graded with both, each of which counts once, by the joined result of its
    repeats.

    `pairs` has the discordant ones first, those with the largest difference in score before the others. `left_out`
    counts the cases that ran with A or with B but were not graded with both: in error, skipped, stopped, or run with
    one alone. Cases that ran with neither are not counted. `among` are all comparisons that are shown together, this
    one included.
    """

    pairs: tuple[Pair, ...]
    left_out: int
    watched: PairWatched | None = None
    """What was known of them while the batch went on that stopped early: then no other test holds."""
    among: Sequence[Paired] = field(default=(), repr=False, compare=False)

    numbers: PairNumbers | None = field(default=None, repr=False, compare=False)
    """What the tests need of the pairs, where these are no longer there."""

    @cached_property
    def _numbers(self) -> PairNumbers:
        return self.numbers if self.numbers is not None else _numbers_of(self.pairs)

    @property
    def in_numbers(self) -> Paired:
        """The same without its pairs: some bytes for each of them."""
        return replace(self, pairs=(), numbers=self._numbers)

    @property
    def count(self) -> int:
        """How many pairs there are."""
        return len(self._numbers.apart)

    @property
    def better(self) -> int:
        """Cases that are good (passed or warned) with B alone."""
        return self._numbers.better

    @property
    def worse(self) -> int:
        """Cases that are good with A alone."""
        return self._numbers.worse

    @property
    def both_good(self) -> int:
        return self._numbers.both_good

    @property
    def both_bad(self) -> int:
        return self.count - self.better - self.worse - self.both_good

    @property
    def discordant(self) -> list[Pair]:
        """The cases that are good with one of the two alone, the largest difference in score first."""
        return list(self.pairs[: self.better + self.worse])

    @property
    def differences(self) -> Sequence[float]:
        """B's score minus A's, for the cases that have one with both."""
        return self._numbers.differences

    @property
    def primary(self) -> ComparedBy:
        """The question that decides: pass and fail, unless all cases say that it is the score."""
        return self._numbers.primary

    @property
    def _clusters(self) -> Sequence[Hashable] | None:
        """The cluster of each pair; `None` where each is one by itself."""
        return self._numbers.clusters

    @property
    def _clusters_scored(self) -> Sequence[Hashable] | None:
        return self._numbers.clusters_scored

    @property
    def clusters(self) -> int | None:
        """How many groups of cases that depend on each other there are; `None` where no case has a cluster."""
        return len(set(self._clusters)) if self._clusters is not None else None

    @cached_property
    def _effect(self) -> float:
        return design_effect(list(map(float, self._numbers.apart)), self._clusters)

    @property
    def rate_difference(self) -> float | None:
        """B's pass rate on the pairs minus A's."""
        return (self.better - self.worse) / self.count if self.count else None

    @property
    def rate_interval(self) -> Interval | None:
        """The interval of `rate_difference` at 95% for all comparisons `among` which this is one, which agrees with
        the test about 0; `None` without pairs, with a single cluster, or where runs may have stopped early, for which
        it does not hold. So for the others."""
        if self.rate_difference is None or self.clusters == 1 or self.watched is not None:
            return None
        level = _level(self._all_status)
        z = z_of(level) if self.clusters is None else student(self.clusters - 1, level)
        found = paired_shares_interval(self.better, self.worse, self.count, self._effect, z)
        return agreeing(found, is_real=_is_real(self.adjusted_status), apart=self.rate_difference)

    @property
    def score_interval(self) -> Interval | None:
        """The interval of `mean_difference`, likewise."""
        if self.mean_difference is None or self.watched is not None:
            return None
        found = mean_difference_interval(self.differences, self._clusters_scored, _level(self._all_score))
        if found is None:
            return None
        return agreeing(found, is_real=_is_real(self.adjusted_score), apart=self.mean_difference)

    @property
    def detectable_rate(self) -> float | None:
        """About the smallest difference in pass rates that as many cases show four times in five."""
        if self.watched is not None or (self.clusters or self.count) < MIN_CLUSTERS:
            return None
        return detectable_share(self.better, self.worse, self.count, _level(self._all_status), self._effect)

    @property
    def detectable_score(self) -> float | None:
        """About the smallest difference in mean scores that as many cases show four times in five."""
        if self.watched is not None:
            return None
        clusters = self._clusters_scored
        count = len(self.differences if clusters is None else set(clusters))
        return detectable_mean(standard_error(self.differences, clusters), count, _level(self._all_score))

    @property
    def mean_difference(self) -> float | None:
        return mean(self.differences) if self.differences else None

    @cached_property
    def p_status(self) -> float | None:
        """The p of the exact McNemar test, or of its analogue for clusters; `None` without pairs."""
        if self.watched is not None:
            return None
        if self._clusters is not None:
            return permutation(self._numbers.apart, clusters=self._clusters)
        return mcnemar(self.better, self.worse) if self.count else None

    @property
    def adjusted_status(self) -> float | None:
        """`p_status` adjusted for all comparisons `among` which this is one."""
        return bonferroni(self.p_status, len(self._all_status)) if self.p_status is not None else None

    @cached_property
    def p_score(self) -> float | None:
        """The p of the paired permutation test on `differences`; `None` without any."""
        if not self.differences or self.watched is not None:
            return None
        return permutation(self.differences, clusters=self._clusters_scored)

    @property
    def adjusted_score(self) -> float | None:
        """`p_score` adjusted for all comparisons `among` which this is one."""
        return bonferroni(self.p_score, len(self._all_score)) if self.p_score is not None else None

    @property
    def arguments_difference(self) -> float | None:
        """B's share of calls with valid arguments minus A's, the mean over the cases with checked calls of both."""
        differences = self._numbers.argument_differences
        return mean(differences) if differences else None

    @cached_property
    def p_arguments(self) -> float | None:
        """The p of the paired permutation test on these shares; `None` without any."""
        if not self._numbers.argument_differences or self.watched is not None:
            return None
        return permutation(self._numbers.argument_differences, clusters=self._numbers.clusters_called)

    @property
    def adjusted_arguments(self) -> float | None:
        """`p_arguments` adjusted for all comparisons `among` which this is one."""
        return bonferroni(self.p_arguments, len(self._all_arguments)) if self.p_arguments is not None else None

    @property
    def _all_arguments(self) -> list[float]:
        return [other.p_arguments for other in self.among if other.p_arguments is not None]

    @property
    def _all_status(self) -> list[float]:
        return [other.p_status for other in self.among if other.p_status is not None]

    @property
    def _all_score(self) -> list[float]:
        return [other.p_score for other in self.among if other.p_score is not None]

    @property
    def share_count(self) -> int:
        """How many cases the test of good runs rests on: those that are not in quarantine."""
        return len(self._numbers.share_differences)

    @property
    def share_difference(self) -> float | None:
        """B's share of good runs minus A's, the mean over the cases."""
        differences = self._numbers.share_differences
        return mean(differences) if differences else None

    @cached_property
    def p_shares(self) -> float | None:
        """The p of the paired permutation test on these shares; `None` without pairs."""
        if not self._numbers.share_differences or self.watched is not None:
            return None
        return permutation(self._numbers.share_differences, clusters=self._numbers.clusters_shared)

    @property
    def adjusted_shares(self) -> float | None:
        """`p_shares` adjusted for all comparisons `among` which this is one."""
        return bonferroni(self.p_shares, len(self._all_shares)) if self.p_shares is not None else None

    @property
    def _all_shares(self) -> list[float]:
        return [other.p_shares for other in self.among if other.p_shares is not None]

    @property
    def is_worse(self) -> bool:
        """Whether B has fewer good runs than A, by more than chance."""
        return _is_real(self.adjusted_shares) and (self.share_difference or 0.0) < 0

    @property
    def shares_interval(self) -> Interval | None:
        """The interval of `share_difference`, as `rate_interval` is one."""
        if self.share_difference is None or self.watched is not None:
            return None
        numbers, level = self._numbers, _level(self._all_shares)
        found = mean_difference_interval(numbers.share_differences, numbers.clusters_shared, level)
        if found is None:
            return None
        return agreeing(found, is_real=_is_real(self.adjusted_shares), apart=self.share_difference)

    def shares_sentence(self) -> str | None:
        """The result of the test on good runs in one plain sentence; `None` where there is none."""
        if self.share_difference is None or self.p_shares is None:
            return None
        bounds = _bounds(self.shares_interval, points_text, self.adjusted_shares, len(self._all_shares))
        told = _told(self.p_shares, len(self._all_shares), decides=True)
        return f"all {_cases(self.share_count)}: good runs {points_text(self.share_difference)} points{bounds}, {told}"

    def arguments_sentence(self, name_a: str, name_b: str) -> str | None:
        """The result of the test on valid arguments in one plain sentence; `None` where the two do not differ."""
        differences, apart = self._numbers.argument_differences, self.arguments_difference
        if apart is None or self.p_arguments is None or not any(differences):
            return None
        told = _told(self.p_arguments, len(self._all_arguments), decides=False)
        over = _cases(len(differences))
        return (
            f"valid arguments of {name_b} against {name_a}: {points_text(apart)} points on the mean of {over}, {told}"
        )

    @cached_property
    def more_cases(self) -> int | None:
        """About how many more cases would show a difference if the shares stayed as they are; 0 where there are enough.

        With n pairs, it is the smallest m for which McNemar's test on `better` and `worse`, each times (n + m) / n and
        rounded to whole cases, gives a p of at most 0.05, divided by the number of comparisons where there are several.
        `None` where both are equal, where m is beyond `MAX_MORE_CASES`, or where cases depend on each other.
        """
        if self.better == self.worse or self.clusters is not None or self.watched is not None:
            return None
        pairs, comparisons = self.count, len(self._all_status)
        least = 0.97 * z_of(_level(self._all_status)) ** 2
        for more in range(MAX_MORE_CASES + 1):
            better, worse = (_rounded(count * (pairs + more), pairs) for count in (self.better, self.worse))
            # The normal approximation saves most of the work by excluding values that are far from the limit.
            near = better + worse < _ALWAYS_ASKED or (abs(better - worse) - 1) ** 2 >= least * (better + worse)
            if near and _is_real(bonferroni(mcnemar(better, worse), comparisons)):
                return more
        return None

    @property
    def other_scores(self) -> int:
        """Cases that are good with both, or with neither, and whose scores look different to a person."""
        return self._numbers.other_scores

    def sentences(self, name_a: str, name_b: str) -> tuple[str, ...]:
        """The results of both tests, that of the question that decides first; where there is nothing to compare, one
        sentence."""
        sentence = self.sentence(name_a, name_b)
        if not self.count:
            return (sentence,)
        both = sentence, self.score_sentence(name_a, name_b)
        results = reversed(both) if self.primary == "score" and self.watched is None else both
        return (*results, *filter(None, [self.arguments_sentence(name_a, name_b)]))

    def sizes(self) -> Iterator[str]:
        """Yields how large the differences are, in a sentence each."""
        if self.rate_difference is not None and self.rate_interval is not None:
            yield f"pass rate {points_text(self.rate_difference)} points{self._rate_bounds}"
        if self.mean_difference is not None and self.score_interval is not None:
            yield f"mean score {difference_text(self.mean_difference)}{self._score_bounds}"

    @property
    def _rate_bounds(self) -> str:
        return _bounds(self.rate_interval, points_text, self.adjusted_status, len(self._all_status))

    @property
    def _score_bounds(self) -> str:
        return _bounds(self.score_interval, difference_text, self.adjusted_score, len(self._all_score))

    def sentence(self, name_a: str, name_b: str) -> str:
        """What is known of pass and fail, in one plain sentence: the difference with its interval, the cases it rests
        on, the result of the test, and how many cases the test does not use."""
        if self.watched is not None and self.count:
            return self.watched.sentence(name_a, name_b)
        if self.p_status is None or self.rate_difference is None:
            return f"nothing to compare: no case was graded with both {name_a} and {name_b}"
        left_out = f" ({_cases(self.left_out)} without a verdict from both left out)" if self.left_out else ""
        if not self.better + self.worse:
            alike = _cases(self.count)
            apart = f"+0.0 points{self._rate_bounds}"
            return f"{name_a} and {name_b} agree on {alike}, {apart}: nothing tells them apart{left_out}"
        clusters = f" in {counted(self.clusters, 'cluster')}" if self.clusters is not None else ""
        counts = f"better on {count_text(self.better)}, worse on {of_text(self.worse, self.count)}{clusters}"
        decides = self.primary == "status"
        told = _told(self.p_status, len(self._all_status), decides=decides)
        needed = self._needed_status() if decides and not _is_real(self.adjusted_status) else ""
        apart = f"{points_text(self.rate_difference)} points{self._rate_bounds}"
        return f"{name_b} {apart}, {counts}, {told}{needed}{left_out}"

    def score_sentence(self, name_a: str, name_b: str) -> str:
        """What is known of scores, in one plain sentence."""
        if self.watched is not None:
            return self.watched.note
        if self.mean_difference is None or self.p_score is None:
            return f"no case has a score from both {name_a} and {name_b}"
        over = _cases(len(self.differences))
        if not any(self.differences):
            return f"{name_a} and {name_b} score the same on {over}{self._score_bounds}"
        decides = self.primary == "score"
        told = _told(self.p_score, len(self._all_score), decides=decides)
        seen = self.detectable_score
        needed = ""
        if decides and not _is_real(self.adjusted_score) and seen is not None and seen > abs(self.mean_difference):
            needed = f"; so many cases can show about {decimals(seen, 3)}"
        apart = difference_text(self.mean_difference)
        size = apart if float(apart) else "about the same"
        return f"{name_b} scores {size}{self._score_bounds} on the mean of {over}, {told}{needed}"

    def _needed_status(self) -> str:
        """How many more cases it would take, or what so many can show, where these are not enough to tell."""
        if self.clusters is None and self.better != self.worse:
            more = self.more_cases
            if more is None:
                return f"; {count_text(MAX_MORE_CASES)} more cases like these would not be enough either"
            return f"; needs about {'one more case' if more == 1 else f'{count_text(more)} more cases'} like these"
        seen = self.detectable_rate
        if seen is None or seen <= abs(self.rate_difference or 0.0):
            return ""
        return f"; so many cases can show about {decimals(100 * seen, 0)} points"


def _numbers_of(pairs: Sequence[Pair]) -> PairNumbers:
    scored = [(pair, difference) for pair in pairs if (difference := _difference(pair)) is not None]
    apart = array("b", (b.is_good - a.is_good for a, b in pairs))
    alike = ((a.score, b.score) for (a, b), differ in zip(pairs, apart, strict=True) if not differ)
    asked = {cell.runs[-1].grading.compare_by for _, cell in pairs}
    shares = [(pair, pair[0].valid_arguments, pair[1].valid_arguments) for pair in pairs]
    counting = [(a, b) for a, b in pairs if not b.is_quarantined]
    called = [(pair, of_b - of_a) for pair, of_a, of_b in shares if of_a is not None and of_b is not None]
    return PairNumbers(
        apart,
        array("d", (difference for _, difference in scored)),
        _clusters(pairs),
        _clusters([pair for pair, _ in scored]),
        sum(a.is_good and b.is_good for a, b in pairs),
        sum(a is not None and b is not None and scores_differ(a, b) for a, b in alike),
        "score" if asked == {"score"} else "status",
        array("d", (difference for _, difference in called)),
        _clusters([pair for pair, _ in called]),
        array("d", (b.good / b.graded - a.good / a.graded for a, b in counting)),
        _clusters(counting),
    )


def paired(first: Iterable[Cell], second: Iterable[Cell], watched: PairWatched | None = None) -> Paired:
    """Compare the cells of one model, A, with those of another, B, by suite and case. `watched` is what is known of
    them in a batch that stopped early."""
    of_a, of_b = ({(cell.suite, cell.case_id): cell for cell in cells} for cells in (first, second))
    pairs = [(a, of_b[key]) for key, a in of_a.items() if key in of_b and a.is_graded and of_b[key].is_graded]
    pairs.sort(key=lambda pair: (pair[0].is_good == pair[1].is_good, -abs(_difference(pair) or 0.0)))
    return Paired(tuple(pairs), len(of_a.keys() | of_b.keys()) - len(pairs), watched)


def all_paired(first: Iterable[Cell], others: Mapping[str, Iterable[Cell]]) -> dict[str, Paired]:
    """Compare the cells of one model with those of each of the others. Returns the comparisons by model, each corrected
    for their number."""
    first = tuple(first)
    found = together([paired(first, cells) for cells in others.values()])
    return dict(zip(others, found, strict=True))


def together(comparisons: Iterable[Paired]) -> list[Paired]:
    """Returns the same comparisons, each corrected for being one of several that are shown together."""
    among: list[Paired] = []
    among += (replace(comparison, among=among) for comparison in comparisons)
    return among


def _level(among: Sequence[float]) -> float:
    """Returns the level of each of several comparisons, at which 5% hold for all of them (Bonferroni)."""
    return LEVEL / max(1, len(among))


def _is_real(adjusted: float | None) -> bool:
    return adjusted is not None and adjusted <= LEVEL


def _told(p: float, comparisons: int, *, decides: bool) -> str:
    shown, adjusted = p_text(p, LEVEL), bonferroni(p, comparisons)
    if p_text(adjusted, LEVEL) != shown:
        shown += f" ({p_text(adjusted, LEVEL)} for {comparisons} comparisons)"
    if _is_real(adjusted):
        return f"{shown}: {'a real difference at the 5% level' if decides else 'a hint, which does not decide'}"
    return f"{shown}: not enough to tell" + (" among this many comparisons" if p <= LEVEL else "")


def _bounds(found: Interval | None, text: Callable[[float], str], adjusted: float | None, comparisons: int) -> str:
    """Returns an interval in words, for those of all comparisons; empty where there is none. A bound of a real
    difference that looks like 0 is outside."""
    if found is None:
        return ""
    low, high = map(text, found)
    if _is_real(adjusted):
        low = "above 0" if found.low >= 0 and not float(low) else low
        high = "below 0" if found.high <= 0 and not float(high) else high
    return f" (95%{f' for all {comparisons}' if comparisons > 1 else ''}: {low} to {high})"


def _cases(count: int) -> str:
    return "one case" if count == 1 else counted(count, "case")


def _difference(pair: Pair) -> float | None:
    """Returns how much better B scores; `None` where one of the two has no score, or an infinite one."""
    of_a, of_b = (cell.score for cell in pair)
    if of_a is None or of_b is None or not math.isfinite(of_b - of_a):
        return None
    return of_b - of_a


def _clusters(pairs: Iterable[Pair]) -> list[Hashable] | None:
    """Returns the cluster of each pair, as the later of the two says, else the earlier; `None` where each is one."""
    found = [b.cluster if b.cluster[1] is not None else a.cluster for a, b in pairs]
    return [*found] if any(written is not None for _, written, _ in found) else None


def _rounded(some: int, of: int) -> int:
    """Returns the nearest whole number, halves rounded up."""
    return (2 * some + of) // (2 * of)
