"""Gates, which decide whether a batch is good enough.

A requirement on the command line (`--min-score`, `--until`) decides. Without such a requirement, the gate of each suite
decides. For suites without a gate, the statuses of their cases decide."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from workbench.analysis.measures import GATE_MEASURES, SCORE, GateMeasureName, Unit, measure_of
from workbench.analysis.totals import nearest_rank
from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.grading.repeats import LazyCaseResults, case_results, path_of_suite
from workbench.grading.scoring import Scored, counted_score, counts_zero, mean
from workbench.grading.status import Status
from workbench.numerals import count_text, counted_of, demanded_text
from workbench.suite.grading_model import Aggregate, Gate, Statistic
from workbench.suite.model import Suite
from workbench.suite.rules import is_score
from workbench.suite.settings import Grading

if TYPE_CHECKING:
    from workbench.analysis.early_stop_state import GateEarlyStop

# Aggregates of a suite's runs: statistics of the graders' results, and gates on them.

TOLERANCE = 1e-9
"""The amount by which a statistic may miss its gate. Sums of shares such as 0.1 are inexact in binary."""


@dataclass(frozen=True)
class AggregateGate:
    """A threshold for one statistic of an aggregate: the lowest allowed value or, with `at_most`, the highest.

    `reached` is the value of the statistic, or `None` if no run had a value. The gate is then not met."""

    statistic: Statistic
    threshold: float
    strictly: bool
    """Whether the statistic must exceed the threshold instead of only reaching it."""
    reached: float | None
    at_most: bool = False
    """Whether the threshold is an upper bound."""

    @property
    def met(self) -> bool:
        return gate_holds(self.reached, self.threshold, strictly=self.strictly, at_most=self.at_most)

    @property
    def demand(self) -> str:
        """The comparison with the threshold in words: `at least`, `above` or `at most`."""
        if self.at_most:
            return "at most"
        return "above" if self.strictly else "at least"


@dataclass(frozen=True)
class AggregateResult:
    """The result of one aggregate of a suite over the runs of a model.

    `suite` is the suite's path. `model` is `None` if the runs of all models are taken together. `count` is the number
    of runs that had a value. `counted_zero` is the number of failed runs that count 0 instead of their score."""

    suite: str
    name: str
    of: str
    tags: tuple[str, ...]
    count: int
    statistics: Mapping[Statistic, float | None]
    gates: tuple[AggregateGate, ...]
    model: str | None = None
    counted_zero: int = 0

    @property
    def met(self) -> bool:
        return all(gate.met for gate in self.gates)

    @property
    def unit(self) -> Unit:
        return measure_of(self.of).unit

    @property
    def replaces_statuses(self) -> bool:
        """Whether the aggregate's gates replace the statuses of cases, as requirements on scores do."""
        return is_score(self.of) and any(not gate.at_most for gate in self.gates)

    @property
    def has_other_measure(self) -> bool:
        """Whether the aggregate's measure is not `score`, as in the metrics of published systems.

        A metric of a published system ignores every reason for failure except the score."""
        return self.of != SCORE.name


def aggregates_of(results: Iterable[RunResult], suites: Mapping[str, Suite]) -> tuple[AggregateResult, ...]:
    """Return the aggregates of every suite that ran, with one result per model or one for all models together.

    `suites` holds the suites by path. Runs in quarantine do not count."""
    folds: dict[str, list[_AggregateFold]] = {}
    for result in results:
        if result.grading.quarantined:
            continue
        suite = suites.get(path := result.suite)
        if suite is None:
            continue
        if path not in folds:
            folds[path] = [_AggregateFold(path, suite, each) for each in suite.aggregates]
        for fold in folds[path]:
            fold.add(result)
    found: list[AggregateResult] = []
    for path in suites:
        for fold in folds.get(path, ()):
            found += fold.results()
    return tuple(found)


def gate_holds(value: float | None, threshold: float, *, strictly: bool, at_most: bool = False) -> bool:
    """Return whether a statistic meets its threshold: at least, strictly above, or at most the threshold."""
    if value is None:
        return False
    if at_most:
        return value <= threshold + TOLERANCE
    if strictly:
        return value > threshold + TOLERANCE
    return value >= threshold - TOLERANCE


def statistic(name: Statistic, values: Sequence[float]) -> float | None:
    """Return a statistic by name.

    Return `None` without values, and for the spread or variance of a single value."""
    return _STATISTICS[name](values) if values else None


@dataclass
class _Values:
    """The values of an aggregate over the runs of a model, or of all models.

    `counts` is true if at least one run could be graded."""

    found: array[float] = field(default_factory=lambda: array("d"))
    zeros: int = 0
    counts: bool = False


class _AggregateFold:
    def __init__(self, path: str, suite: Suite, aggregate: Aggregate) -> None:
        self._path = path
        self._aggregate = aggregate
        self._measure = measure_of(aggregate.of)
        self._cases: frozenset[str] | None = None
        if aggregate.tags:
            self._cases = frozenset(_tagged(suite, aggregate.tags))
        self._values: dict[str | None, _Values] = {}
        # A requirement on the whole batch is missed if nothing was graded, so it has a result even without a run.
        if aggregate.per == "batch":
            self._values[None] = _Values()

    def add(self, run: RunResult) -> None:
        if self._cases is not None and run.case_id not in self._cases:
            return
        values = self._values.setdefault(_key_of(run, self._aggregate), _Values())
        values.counts = values.counts or run.status.owed
        if run.status.graded:
            if (value := self._measure.of_run(run)) is not None:
                values.found.append(value)
            values.zeros += self._measure is SCORE and counts_zero(run)

    def results(self) -> Iterator[AggregateResult]:
        """Yield the result for each model, or for all models together.

        A model is included if it has a run that could be graded. If no model has such a run, all models are
        included."""
        aggregate = self._aggregate
        for model, own in (_gradable(self._values) or {None: _Values()}).items():
            values = own.found
            statistics = {name: statistic(name, values) for name in aggregate.statistics}
            gates = tuple(_gates(aggregate, values))
            yield AggregateResult(
                *(self._path, aggregate.name, aggregate.of, aggregate.tags, len(values), statistics, gates),
                model,
                own.zeros,
            )


def _tagged(suite: Suite, tags: Iterable[str]) -> Iterator[str]:
    wanted = set(tags)
    for case in suite.cases:
        if wanted.intersection((*suite.tags, *case.tags)):
            yield case.id


def _key_of(run: GatedRun, demand: Aggregate | Gate) -> str | None:
    return None if demand.per == "batch" else run.model


class _Counting(Protocol):
    """The figures of a model's runs. `counts` is true if at least one run could be graded."""

    counts: bool


_CountingT = TypeVar("_CountingT", bound=_Counting)


def _gradable(of_models: Mapping[str | None, _CountingT]) -> Mapping[str | None, _CountingT]:
    """Return the models with at least one run that could be graded, or all models if no model has such a run."""
    gradable = {}
    for model, own in of_models.items():
        if own.counts:
            gradable[model] = own
    return gradable or of_models


def _gates(aggregate: Aggregate, values: Sequence[float]) -> Iterator[AggregateGate]:
    for key in ("at_least", "above", "at_most"):
        thresholds = getattr(aggregate, key)
        for name in _STATISTICS:
            threshold = getattr(thresholds, name)
            if threshold is not None:
                yield AggregateGate(name, threshold, key == "above", statistic(name, values), key == "at_most")


def median(values: Sequence[float]) -> float:
    """Return the middle value, or the mean of the two middle values.

    Like the other statistics, it raises an error without values."""
    ascending = sorted(values)
    middle = len(ascending) // 2
    if len(ascending) % 2:
        return ascending[middle]
    return mean(ascending[middle - 1 : middle + 1])


def mode(values: Sequence[float]) -> float:
    """Return the most frequent value. Of equally frequent values, return the smallest."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value))


def variance(values: Sequence[float]) -> float | None:
    """Return the sample variance (divided by n - 1), or `None` for a single value or if a value is infinite."""
    centre = mean(values)
    if len(values) < 2 or not math.isfinite(centre):
        return None
    # Differences are squared by multiplication because `**` raises OverflowError where a product becomes infinite.
    try:
        return math.fsum((value - centre) * (value - centre) for value in values) / (len(values) - 1)
    except OverflowError:
        return math.inf


def spread(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation, or `None` for a single value or if a value is infinite."""
    squared = variance(values)
    return None if squared is None else math.sqrt(squared)


_STATISTICS: dict[Statistic, Callable[[Sequence[float]], float | None]] = {
    "mean": mean,
    "median": median,
    "mode": mode,
    "minimum": min,
    "maximum": max,
    "spread": spread,
    "variance": variance,
    "p95": lambda values: nearest_rank(sorted(values), 95),
}


@dataclass(frozen=True)
class GateResult:
    """One requirement of a gate, and the value that was reached.

    `suite` is the suite's path, or `None` for a requirement of the command line. `model` is `None` if the runs of all
    models are taken together. `counted_zero` is the number of failed runs that count 0 in a mean score."""

    suite: str | None
    measure: GateMeasureName
    minimum: float
    reached: float | None
    """The value, or `None` if nothing was graded. `None` meets no gate."""
    model: str | None = None
    counted_zero: int = 0
    graded: int = 0
    """The number of graded runs behind the value."""
    watched: GateEarlyStop | None = None
    """The early stopping of this pass rate, in a batch that may stop early. Its verdict, if any, decides."""

    @property
    def met(self) -> bool:
        if self.watched is not None and self.watched.verdict is not None:
            return self.watched.verdict == "reached"
        return self.reached is not None and self.reached >= self.minimum - TOLERANCE


@dataclass(frozen=True, slots=True)
class UserErrors:
    """How many of a suite's `runs` became unusable through simulated users (`spoilt`), and their allowed share."""

    suite: str
    spoilt: int
    runs: int
    limit: float

    @property
    def met(self) -> bool:
        """Whether the share of unusable runs is within the limit."""
        return self.spoilt <= self.limit * self.runs + TOLERANCE

    @property
    def text(self) -> str:
        """The missed limit in words."""
        runs = counted_of(self.spoilt, self.runs, "run")
        most = demanded_text(self.limit, is_rate=True)
        return f"{runs} ended in an error of the simulated user, more than {most}"


@dataclass(frozen=True)
class Quality:
    """The verdict on a batch, with its gates, cases and aggregates."""

    met: bool
    gates: tuple[GateResult, ...]
    cases: LazyCaseResults = field(default_factory=lambda: case_results(()))
    aggregates: tuple[AggregateResult, ...] = ()
    nothing_graded: str | None = None
    """The reason why no run that counts was graded, in a sentence, or `None` if at least one was."""
    user_errors: tuple[UserErrors, ...] = ()
    """For each suite that limits their share, the runs that simulated users invalidated."""

    @property
    def gates_met(self) -> bool:
        """Whether all gates are met, regardless of the statuses of cases."""
        return _all_met(self.gates) and _all_met(self.aggregates) and all(each.met for each in self.user_errors)


def user_errors_of(results: Sequence[RunResult], gates: Mapping[str, Gate]) -> tuple[UserErrors, ...]:
    """Count the runs that became unusable through simulated users, for each suite with `gate.max_user_errors`."""
    limits = {path: gate.max_user_errors for path, gate in gates.items() if gate.max_user_errors is not None}
    spoilt, runs = Counter[str](), Counter[str]()
    for result in results if limits else ():
        runs[result.suite] += 1
        spoilt[result.suite] += result.is_user_error
    return tuple([UserErrors(path, spoilt[path], runs[path], limit) for path, limit in limits.items()])


def quality_of(
    results: Sequence[RunResult],
    gates: Mapping[str, Gate],
    min_score: float | None = None,
    *,
    suite_of: Callable[[RunResult], str] = path_of_suite,
    aggregates: tuple[AggregateResult, ...] = (),
    early_stops: Iterable[GateEarlyStop] = (),
) -> Quality:
    """Decide whether a batch is good enough.

    `gates` holds the gate of each suite by path. `suite_of` returns the same key for cases of the same suite. A suite
    without a gate is good enough if no case failed, by the rule for its repeats. The gates of `aggregates` count
    together with the suites' gates. A requirement on scores replaces the statuses of cases, and any other requirement
    applies in addition to them. If only published metrics are required, they replace only failures by score.

    `early_stops` are the pass rates of a batch that may stop early. `min_score` (0..1), or a watched rate over all
    suites, replaces all gates of suites. The result then contains no suite gates."""
    cases, ungraded = case_results(results, suite_of), nothing_graded_reason(results)
    known = {(each.suite, each.model): each for each in early_stops}
    rate: float | None = None
    for each in known.values():
        if each.suite is None:
            rate = each.gate
            break
    if min_score is not None or rate is not None:
        demanded = Gate(min_score=min_score, min_pass_rate=rate)
        asked = tuple(with_early_stop(gates_of(None, demanded, results), known))
        without_gates = tuple(replace(each, gates=()) for each in aggregates)
        # Without any run, `asked` is empty, and the requirement is missed.
        met = bool(asked) and _all_met(asked)
        return Quality(met, asked, cases, without_gates, ungraded)
    with_failures = set()
    besides_scores = set()
    for case in cases.of(Status.FAILED):
        if case.runs[0].grading.quarantined:
            continue
        with_failures.add(case.runs[0].suite)
        if any(run.is_broken for run in case.runs):
            besides_scores.add(case.runs[0].suite)
    checked: list[GateResult] = []
    met = True
    reached: dict[str, GateFold] = {}
    for result in results:
        if (fold := reached.get(suite := result.suite)) is None:
            fold = reached[suite] = GateFold(suite, gates.get(suite, Gate.model_construct()))
        fold.add(result)
    for suite, fold in reached.items():
        demands = tuple(with_early_stop(fold.results(), known))
        checked += demands
        own: list[AggregateResult] = []
        replacing: list[AggregateResult] = []
        for aggregate in aggregates:
            if aggregate.suite == suite:
                own.append(aggregate)
                if aggregate.replaces_statuses:
                    replacing.append(aggregate)
        met = met and _all_met(demands) and _all_met(own)
        if demands or not all(each.has_other_measure for each in replacing):
            continue
        # Published metrics replace only the statuses of cases that fail by their score. Other requirements replace all
        # statuses.
        statuses_that_count = besides_scores if replacing else with_failures
        met = met and suite not in statuses_that_count
    return Quality(met, tuple(checked), cases, aggregates, ungraded)


def _all_met(demands: Iterable[GateResult | AggregateResult]) -> bool:
    return all(demand.met for demand in demands)


def nothing_graded_reason(runs: Iterable[GatedRun]) -> str | None:
    """Return a sentence on why no run was graded, or `None` if at least one was.

    Runs that do not count, such as runs in quarantine, are ignored."""
    left_out: Counter[str] = Counter()
    for run in runs:
        graded = run.status.graded
        if graded and not run.grading.quarantined:
            return None
        left_out["in quarantine" if graded else run.status.counted] += 1
    why = ", ".join(f"{count_text(number)} {words}" for words, number in left_out.items())
    return f"no run that counts was graded: {why or 'there is none'}"


def with_early_stop(
    gates: Iterable[GateResult], early_stops: Mapping[tuple[str | None, str | None], GateEarlyStop]
) -> Iterator[GateResult]:
    """Yield the gates of a batch that may stop early.

    Each gate on a pass rate gets the early-stopping state of that rate. `early_stops` has the states by suite and
    model."""
    for gate in gates:
        if gate.measure == "pass rate":
            gate = replace(gate, watched=early_stops.get((gate.suite, gate.model)))
        yield gate


class GatedRun(Scored, Protocol):
    """The fields of a run that gates read. `RunResult` and its summary both have them."""

    @property
    def model(self) -> str: ...
    @property
    def status(self) -> Status: ...
    @property
    def grading(self) -> Grading: ...


def gates_of(suite: str | None, gate: Gate, runs: Iterable[GatedRun]) -> Iterator[GateResult]:
    """Return the results of a suite's gate on its runs, for each model or for all models together.

    Runs in quarantine do not count."""
    fold = GateFold(suite, gate)
    for run in runs:
        fold.add(run)
    return fold.results()


class _Reached:
    def __init__(self) -> None:
        self.counts = False
        self.graded = self.good = self.zeros = 0
        self.scores = array("d")

    def add(self, run: GatedRun) -> None:
        self.counts = self.counts or run.status.owed
        if not run.status.graded:
            return
        self.graded += 1
        # Of the graded statuses, passed and warned are good.
        self.good += run.status != Status.FAILED
        self.zeros += counts_zero(run)
        if (score := counted_score(run)) is not None:
            self.scores.append(score)


class GateFold:
    """The counts that decide a suite's gate, updated run by run."""

    def __init__(self, suite: str | None, gate: Gate) -> None:
        self._suite = suite
        self._gate = gate
        self._asks = any(measure.threshold_of(gate) is not None for measure in GATE_MEASURES.values())
        self._reached: dict[str | None, _Reached] = {}
        if gate.per == "batch":
            self._reached[None] = _Reached()

    def add(self, run: GatedRun) -> None:
        if self._asks and not run.grading.quarantined:
            model = _key_of(run, self._gate)
            (self._reached.get(model) or self._reached.setdefault(model, _Reached())).add(run)

    def results(self) -> Iterator[GateResult]:
        """Return the result of each requirement of the gate, for each model or for all models together.

        A model is included if it has a run that could be graded. If no model has such a run, all models are
        included."""
        gate = self._gate
        if not self._asks:
            return
        for model, own in _gradable(self._reached).items():
            for measure in GATE_MEASURES.values():
                if (minimum := measure.threshold_of(gate)) is not None:
                    reached = measure.reached(own.scores, own.good, own.graded)
                    zeros = 0 if measure.is_rate else own.zeros
                    yield GateResult(self._suite, measure.name, minimum, reached, model, zeros, own.graded)
