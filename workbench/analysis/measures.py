"""Measures of runs: pass rate, score, cost, latency, tokens, and the measures of single graders.

Each measure has a name and a unit. It computes the values of runs, cases and models, knows whether more is better, and
names the test that compares two values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal, Protocol

from workbench.analysis.totals import PERCENTILES
from workbench.dataclasses import dataclass
from workbench.grading.argument_counts import valid_arguments_of
from workbench.grading.grade import RunResult
from workbench.grading.scoring import counted_score, mean
from workbench.grading.status import NOT_APPLICABLE, Status
from workbench.grading.traits import TRAITS
from workbench.numerals import (
    NOTHING,
    cost_text,
    count_text,
    difference_text,
    duration_text,
    mean_text,
    points_text,
    rate_text,
)
from workbench.suite.rules import NAMED_MEASURE, PERCENTAGE, is_score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workbench.analysis.totals import Latency
    from workbench.grading.argument_counts import ValidArguments
    from workbench.suite.grading_model import ComparedBy, Gate

Unit = Literal["share", "ms", "tokens", "usd", "number"]
"""A share lies in 0..1. The other units have no upper bound."""

Direction = Literal["more", "less", "neither"]

PairTest = Literal["McNemar", "permutation"]
"""The kinds of tests for values that are paired by case (`analysis.paired`)."""

_TEXTS: Final[Mapping[Unit, Callable[[float | None], str]]] = {
    "share": mean_text,
    "ms": duration_text,
    "tokens": lambda count: NOTHING if count is None else count_text(count),
    "usd": cost_text,
    "number": mean_text,
}


class ModelFigures(Protocol):
    """The figures of a model's runs, in its `Totals` or `ModelTotals`."""

    @property
    def runs(self) -> int: ...
    @property
    def pass_rate(self) -> float | None: ...
    @property
    def mean_score(self) -> float | None: ...
    @property
    def latency(self) -> Latency | None: ...
    @property
    def tokens(self) -> int | None: ...
    @property
    def valid_arguments(self) -> ValidArguments: ...
    @property
    def cost_usd(self) -> float | None: ...
    @property
    def runs_of_unknown_cost(self) -> int: ...


class CaseFigures(Protocol):
    """The figures of a case's runs with a model, in its `Cell`."""

    @property
    def is_good(self) -> bool: ...
    @property
    def score(self) -> float | None: ...
    @property
    def valid_arguments(self) -> float | None: ...
    @property
    def good(self) -> int: ...
    @property
    def graded(self) -> int: ...


@dataclass(frozen=True)
class Growth:
    """A test for growth: a value is worse if it is at least `times` as large and at least `by` larger.

    The factor `times` ignores the noise of large values, and the amount `by` ignores the noise of small values."""

    times: float
    by: float

    def is_worse(self, before: float | None, after: float | None) -> bool:
        """Return whether a value grew beyond both thresholds. An unknown value (`None`) never counts as grown."""
        if before is None or after is None:
            return False
        return after >= before * self.times and after - before >= self.by


@dataclass(frozen=True)
class PooledNumber:
    """A number computed from all runs of a model. `title` is its name in tables, and `how` is the method in words."""

    title: str
    how: str
    of: Callable[[ModelFigures], float | None]


@dataclass(frozen=True)
class Measure:
    """A number measured on a run.

    `name` is the measure's name in suites (`workbench.suite.rules.MEASURES`), and `title` is its name in reports.
    `of_run` returns the value of a run, or `None` if it has none. `better` says whether more or less is better.
    `by_grader` is true for a value that a grader computes. `pooled` holds the numbers for all runs of a model, the most
    important first. It is empty for measures of single suites. `test` is how two values are compared: in pairs of
    cases, by thresholds, or not at all.

    `of_case` returns the value of a case in paired tests. `only_deciding` leaves out the cases in quarantine. `per_run`
    is the value of a typical run, which the Pareto chart shows against the score. A rate is shown in percent."""

    name: str
    title: str
    unit: Unit
    of_run: Callable[[RunResult], float | None]
    better: Direction
    pooled: tuple[PooledNumber, ...]
    test: PairTest | Growth | None
    by_grader: bool = False
    is_rate: bool = False
    of_case: Callable[[CaseFigures], float | None] | None = None
    only_deciding: bool = False
    per_run: PooledNumber | None = None

    def values(self, runs: Iterable[RunResult]) -> list[float]:
        """Return the measured values of the graded runs. A run without a value is left out."""
        found = []
        for run in runs:
            if run.status.graded and (value := self.of_run(run)) is not None:
                found.append(value)
        return found

    def text(self, value: float | None) -> str:
        """Return a value as text with its unit: `1.2 s`, `$0.031`, or a dash for `None`."""
        if self.is_rate:
            return rate_text(value)
        return _TEXTS[self.unit](value)

    def is_worse(self, difference: float) -> bool:
        """Return whether a difference (later value minus earlier value) makes the model worse."""
        match self.better:
            case "more":
                return difference < 0
            case "less":
                return difference > 0
            case "neither":
                return False

    def signed_text(self, difference: float) -> str:
        """Return a difference with its sign but without a unit. Differences of rates are in percentage points."""
        if self.is_rate:
            return points_text(difference)
        return difference_text(difference)

    def difference_text(self, difference: float) -> str:
        if self.is_rate:
            return f"{points_text(difference)} points"
        return difference_text(difference)


def _tokens(run: RunResult) -> float | None:
    if run.usage is None:
        return None
    return run.usage.input_tokens + run.usage.output_tokens


def _mean_cost(totals: ModelFigures) -> float | None:
    # The mean of the known costs would flatter a model whose expensive runs have no known cost.
    if totals.cost_usd is None or not totals.runs or totals.runs_of_unknown_cost:
        return None
    return totals.cost_usd / totals.runs


def _of_latency(name: str) -> Callable[[ModelFigures], float | None]:
    return lambda totals: totals.latency.percentiles[name] if totals.latency is not None else None


def _good_runs(case: CaseFigures) -> float | None:
    return case.good / case.graded if case.graded else None


PASS_RATE: Final = Measure(
    "pass_rate",
    "pass rate",
    "share",
    lambda run: float(run.status.good),
    "more",
    (PooledNumber("pass rate", "share of what was graded", lambda totals: totals.pass_rate),),
    "McNemar",
    is_rate=True,
    of_case=lambda case: float(case.is_good),
)
"""The share of runs that passed or were warned, or of cases by their rule for repeats."""

GOOD_RUNS: Final = Measure(
    "good_runs",
    "good runs",
    "share",
    PASS_RATE.of_run,
    "more",
    PASS_RATE.pooled,
    "permutation",
    is_rate=True,
    of_case=_good_runs,
    only_deciding=True,
)
"""The share of a case's graded runs that passed or were warned, without the rule for repeats.

The regression gate tests this measure (`PairedComparison.is_worse`)."""

SCORE: Final = Measure(
    "score",
    "score",
    "share",
    counted_score,
    "more",
    (PooledNumber("mean score", "mean", lambda totals: totals.mean_score),),
    "permutation",
    by_grader=True,
    of_case=lambda case: case.score,
)
"""The score of the deciding grader as gates count it: 0 for a run that failed for another reason."""

COST: Final = Measure(
    "cost_usd",
    "cost",
    "usd",
    lambda run: run.cost_usd,
    "less",
    (PooledNumber("cost", "sum", lambda totals: totals.cost_usd),),
    None,
    per_run=PooledNumber("cost of a run", "mean", _mean_cost),
)
SLOWER_GROWTH: Final = Growth(times=1.5, by=200.0)
"""The growth of a case's latency, in milliseconds, that makes the case count as slower."""

_LATENCIES: Final = tuple(PooledNumber(f"latency {name}", how, _of_latency(name)) for name, how in PERCENTILES.items())
LATENCY: Final = Measure(
    "latency_ms",
    "latency",
    "ms",
    lambda run: run.latency_ms,
    "less",
    _LATENCIES,
    SLOWER_GROWTH,
    per_run=_LATENCIES[0],
)
TOKENS: Final = Measure(
    "tokens", "tokens", "tokens", _tokens, "less", (PooledNumber("tokens", "sum", lambda totals: totals.tokens),), None
)
VALID_ARGUMENTS: Final = Measure(
    "valid_arguments",
    "valid arguments",
    "share",
    lambda run: valid_arguments_of(run).rate,
    "more",
    (PooledNumber("valid arguments", "share of the checked calls", lambda totals: totals.valid_arguments.rate),),
    "permutation",
    is_rate=True,
    of_case=lambda case: case.valid_arguments,
)

MEASURES: Final = {each.name: each for each in (SCORE, COST, LATENCY, TOKENS, VALID_ARGUMENTS)}
"""The measures that every suite can name, by name."""

PAIRED_MEASURES: Final = (PASS_RATE, SCORE, VALID_ARGUMENTS, GOOD_RUNS)
"""The measures that are tested case by case between two models or two batches."""

DECIDING_MEASURES: Final[Mapping[ComparedBy, Measure]] = {"status": PASS_RATE, "score": SCORE}
"""The measures that may decide a comparison, by the suite's setting `compare_by`."""

PARETO_MEASURES: Final = tuple(each for each in MEASURES.values() if each.per_run is not None)
"""The measures with a Pareto front against the score. Less is better for each of them."""


def measure_of(name: str) -> Measure:
    """Return a measure by its name in suites.

    The name is in `MEASURES`, or it is the name of a grader's score, of a number in its formula, or of a named check of
    answers."""
    if name in MEASURES:
        return MEASURES[name]
    unit: Unit = "share" if is_score(name) else "number"
    if name.startswith(NAMED_MEASURE):
        check = name.removeprefix(NAMED_MEASURE)
        return Measure(name, name, unit, lambda run: _of_check(run, check), "more", (), None)
    grader, _, number = name.partition(".")
    better: Direction = "more" if is_score(name) else "neither"
    return Measure(name, name, unit, lambda run: _of_grader(run, grader, number), better, (), None, by_grader=True)


def _of_check(run: RunResult, check: str) -> float | None:
    for metric in run.metrics:
        if metric.name == check:
            return metric.value
    return None


def _of_grader(run: RunResult, grader: str, number: str) -> float | None:
    for grade in run.grades:
        if grade.grader != grader:
            continue
        if not number or f"{grader}.{number}" == PERCENTAGE:
            return grade.score
        if grade.verdict in (NOT_APPLICABLE, Status.ERROR):
            return grade.numbers.get(number)
        # If a rule of `critics` failed a run before scoring, the run's numbers count as 0 instead of missing.
        return grade.numbers.get(number, TRAITS[grade.grader].number_if_decided_before)
    return None


GateMeasureName = Literal["mean score", "pass rate"]


@dataclass(frozen=True)
class GateMeasure:
    """A requirement of a suite's gate on the runs of a model.

    `option` is the command's option for the same requirement. `threshold_of` reads the threshold from a gate."""

    name: GateMeasureName
    measure: Measure
    option: str
    threshold_of: Callable[[Gate], float | None]
    reached: Callable[[Sequence[float], int, int], float | None]
    """Returns the reached value from the counted scores and the numbers of good and graded runs."""

    @property
    def is_rate(self) -> bool:
        """Whether the value is a rate. Reports show a rate with the number of graded runs."""
        return self.measure.is_rate


def _mean_score(scores: Sequence[float]) -> float | None:
    return mean(scores) if scores else None


def _pass_rate(good: int, graded: int) -> float | None:
    return good / graded if graded else None


GATE_MEASURES: Final = {
    each.name: each
    for each in (
        GateMeasure(
            "mean score",
            SCORE,
            "--min-score",
            lambda gate: gate.min_score,
            lambda scores, good, graded: _mean_score(scores),
        ),
        GateMeasure(
            "pass rate",
            PASS_RATE,
            "--until",
            lambda gate: gate.min_pass_rate,
            lambda scores, good, graded: _pass_rate(good, graded),
        ),
    )
}
