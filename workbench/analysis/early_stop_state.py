"""The state of a batch that may stop early: its comparisons of models, and its required pass rates."""

from __future__ import annotations

from itertools import repeat

from workbench.analysis.statistics import SIGNIFICANCE_LEVEL, GateDecision, Interval, fewest_units_to_reach
from workbench.dataclasses import dataclass
from workbench.history.records import StopRule
from workbench.numerals import count_text, counted, counted_of, decimals, p_text, setting_text


@dataclass(frozen=True, slots=True)
class PairEarlyStop:
    """The state of the comparison of model `second` with model `first`, in a batch that may stop early.

    So far, `cases` of `of` planned cases were compared. `better` counts the cases that were good only with `second`,
    and `worse` counts the cases that were good only with `first`. `p` is adjusted for all `comparisons` of the batch.
    The comparison is decided if `p` is at most `level`. If there is an `e_value`, `p` follows from it and is valid
    however often it is read. Otherwise, the results are tested at `looks` fixed times, and `look` of them have passed.
    `saved` counts the skipped runs with `second`, and in a single comparison also the skipped runs with `first`."""

    first: str
    second: str
    rule: StopRule
    decided: bool
    cases: int
    of: int
    better: int
    worse: int
    e_value: float | None
    p: float
    level: float
    look: int
    looks: int | None
    comparisons: int
    saved: int

    def sentence(self, name_a: str, name_b: str) -> str:
        seen = counted_of(self.cases, self.of, "case")
        counts = f"{name_b} better on {count_text(self.better)}, worse on {count_text(self.worse)}"
        among = ""
        if self.comparisons > 1:
            among = f" for {self.comparisons} comparisons"
        if self.e_value is not None:
            found = f"e-value {_e_text(self.e_value)}, anytime {p_text(self.p, SIGNIFICANCE_LEVEL)}{among}"
        elif self.look:
            at = "at the only look"
            if self.looks and self.looks > 1:
                at = f"at look {self.look} of {self.looks}"
            asked = decimals(self.level, 5).rstrip("0")
            found = f"{p_text(self.p, SIGNIFICANCE_LEVEL)}{among} {at}, which asks for {asked}"
        else:
            found = f"no look yet of {self.looks} planned looks"
        if self.decided:
            return f"decided after {seen}: {counts}, a real difference at the 5% level ({found})"
        return f"not decided after {seen}: {counts}, not enough to tell ({found})"

    @property
    def note(self) -> str:
        """The number of saved runs in words, with a warning about figures that the early stop makes invalid."""
        if not self.decided:
            return "scores are not tested: this batch was watched for pass and fail"
        return (
            f"{counted(self.saved, 'run')} saved; the pass rates of cases that were stopped at a "
            f"difference overstate it, so usual intervals, p values and tests of scores are invalid for them"
        )


def _e_text(value: float) -> str:
    # An e-value of 20 decides. The digits of a far larger e-value have no meaning.
    if value >= 1e6:
        return "beyond a million"
    if value >= 100:
        return count_text(int(value))
    return decimals(value)


@dataclass(frozen=True, slots=True)
class GateEarlyStop:
    """The state of a required pass rate (`gate`) in a batch that may stop early.

    `worse` is the rate that counts as clearly too low. So far, `runs` of `of` planned runs were graded: `good` and
    `bad` ones, in `cases` of `of_cases` planned cases. `saved` counts the skipped runs. `clusters` counts the clusters
    so far, if the suite has any. `verdict` is `None` while the rate is undecided. `rate` is the mean share of good runs
    over these cases. `interval` is the 95% interval of the rate, if the batch did not stop early."""

    suite: str | None
    model: str | None
    gate: float
    worse: float
    verdict: GateDecision | None
    good: int
    bad: int
    of: int
    saved: int
    cases: int
    of_cases: int
    clusters: int | None
    rate: float | None
    interval: Interval | None

    @property
    def runs(self) -> int:
        return self.good + self.bad


@dataclass(frozen=True, slots=True)
class TooFewUnits:
    """A gate with too few cases or clusters (`units`) for an early decision.

    Even if all runs in these cases or clusters were good, they would not be enough for a decision."""

    suite: str | None
    gate: float
    worse: float
    units: int
    are_clusters: bool

    @property
    def sentence(self) -> str:
        """A sentence on the consequence for the batch and on the remedies."""
        unit = "cluster" if self.are_clusters else "case"
        # With enough units whose runs are all good, every gate is reached.
        fewest = fewest_units_to_reach(self.gate, self.worse, repeat(1.0))
        assert fewest is not None
        return (
            f"{counted(self.units, unit)} cannot reach a gate of {setting_text(self.gate)} against "
            f"{setting_text(self.worse)} early: that takes at least {count_text(fewest)} {unit}s, all of them good. "
            "Unless the gate is missed early, all runs are made and their rate decides, without a bound on errors: "
            "add cases, or give --until a lower worse=X"
        )
