"""Totals of runs: counts, rates, means, latency, cost, and agreement with the source of imported runs.

Totals are accumulated run by run because the runs of a large batch do not fit in memory together."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import field
from typing import Final

from workbench.dataclasses import dataclass
from workbench.grading.argument_counts import NOTHING_CHECKED, ArgumentsFold, ValidArguments
from workbench.grading.grade import NO_JUDGE_USAGE, JudgeUsage, RunResult
from workbench.grading.lazy_sequences import SelectedSequence
from workbench.grading.run_summary import is_cost_limited, is_endpoint_fault
from workbench.grading.scoring import known_values, mean
from workbench.grading.status import Status, StatusCounts, counts_of, good_count
from workbench.trajectory.events import Usage


@dataclass(frozen=True)
class Disagreement:
    """A run, or a group of runs, that the source of an import and Workbench judge differently.

    `about` identifies the run or the group. `value` is the source's score, 0..1, and `passed_here` is the verdict of
    the case."""

    about: str
    value: float
    passed_here: bool


@dataclass(frozen=True)
class Agreement:
    """How often one score of the source system and the verdicts of the cases agree.

    `of` counts the units (runs or groups of runs) with both verdicts. `agree` counts the units whose verdicts are
    equal, and `differ` lists the others. `ungraded` counts the units that Workbench did not grade."""

    name: str
    agree: int
    of: int
    ungraded: int
    differ: tuple[Disagreement, ...]


@dataclass
class _ScoredUnit:
    value: float
    passed: bool
    statuses: list[bool] = field(default_factory=list)


class AgreementFold:
    """The agreement of a source system's scores with the verdicts of the cases, updated run by run.

    If a score is about several runs, all of its graded runs must pass to count as passed."""

    def __init__(self) -> None:
        self._scored: dict[str, dict[tuple[str, str], _ScoredUnit]] = {}

    def add(self, run: RunResult) -> None:
        for metric in run.metrics:
            if metric.about is not None:
                of_name = self._scored.setdefault(metric.name, {})
                each = of_name.setdefault((metric.about, run.model), _ScoredUnit(metric.value, metric.holds))
                if run.status.graded:
                    each.statuses.append(run.passed)

    def agreements(self) -> tuple[Agreement, ...]:
        """Return the agreement for each score, in the order of the scores' first occurrence."""
        return tuple(_agreement(name, found) for name, found in self._scored.items())


def agreements(results: Iterable[RunResult]) -> tuple[Agreement, ...]:
    """Return the agreement of imported runs with their source, for each score of the source."""
    fold = AgreementFold()
    for run in results:
        fold.add(run)
    return fold.agreements()


def _agreement(name: str, scored: dict[tuple[str, str], _ScoredUnit]) -> Agreement:
    graded = {}
    for (about, _), each in scored.items():
        if each.statuses:
            graded[about] = each
    differ = []
    for about, each in graded.items():
        passed_here = all(each.statuses)
        if passed_here != each.passed:
            differ.append(Disagreement(about, each.value, passed_here))
    return Agreement(name, len(graded) - len(differ), len(graded), len(scored) - len(graded), tuple(differ))


PERCENTILES: Final = {"p50": "median", "p95": "95th percentile", "max": "maximum"}
"""The percentiles of latency in reports: name in tables, and name in words."""


@dataclass(frozen=True)
class Latency:
    """Model latency of runs, in milliseconds. Percentiles are by nearest rank."""

    mean_ms: float
    p50_ms: float
    p95_ms: float
    max_ms: float

    @property
    def percentiles(self) -> Mapping[str, float]:
        """The percentiles in milliseconds, by the names in `PERCENTILES`."""
        return {"p50": self.p50_ms, "p95": self.p95_ms, "max": self.max_ms}


@dataclass(frozen=True)
class Totals(StatusCounts):
    """The totals of runs.

    Means and rates are over the graded runs. Runs that are in error, skipped, stopped or not graded are only
    counted."""

    runs: int
    counts: Mapping[Status, int]
    mean_score: float | None
    """The mean score of the graded runs to which the deciding grader applies, 0..1."""
    pass_rate: float | None
    """The number of passed and warned runs divided by the number of graded runs, 0..1."""
    latency: Latency | None
    """The latency of the graded runs. The latency of a run is the sum of the times of its model answers."""
    usage: Usage | None
    retries: int = 0
    """The number of retried model requests in all runs."""
    executions: int = 0
    """The number of calls that servers executed in all runs."""
    cost_usd: float | None = None
    """The cost of the runs of known cost in US dollars.

    It is `None` if the only runs of known cost are free and there are runs of unknown cost."""
    runs_of_unknown_cost: int = 0
    """The number of runs of unknown cost. The cost excludes these runs."""
    endpoint_faults: int = 0
    """The number of runs that failed because of the endpoint."""
    cost_limited: int = 0
    """The number of stopped runs that a cost limit prevented."""
    user_cost_usd: float | None = 0.0
    """The cost of the models that played users, in US dollars, or `None` if some of it is unknown.

    `cost_usd` excludes this cost."""
    judging: JudgeUsage = NO_JUDGE_USAGE
    """The usage of judge models. Cost, tokens and latency exclude this usage."""
    valid_arguments: ValidArguments = NOTHING_CHECKED
    """The calls of the graded runs with arguments that are valid by their tools' schemas."""
    agreement: tuple[Agreement, ...] = ()
    """For imported runs, the agreement with the verdicts of the system that made the runs."""

    @property
    def tokens(self) -> int | None:
        """The input and output tokens of all runs, or `None` if the tokens are unknown."""
        if self.usage is None:
            return None
        return self.usage.input_tokens + self.usage.output_tokens


def counted_runs(results: Iterable[RunResult]) -> Sequence[RunResult]:
    """Return the runs that count in totals: all except forks, or all if every run is a fork.

    A fork is an experiment: a run that a person changed."""
    if not isinstance(results, Sequence):
        results = tuple(results)
    # The indices of the runs are kept, not the runs, because a stored batch reads a run from the history on every
    # access.
    counting = array("L", (index for index, result in enumerate(results) if not result.is_fork))
    if 0 < len(counting) < len(results):
        return SelectedSequence(results, counting)
    return results


def totals_of(results: Iterable[RunResult]) -> Totals:
    fold = TotalsFold()
    for result in results:
        fold.add(result)
    return fold.totals()


def totals_by_model(results: Iterable[RunResult]) -> tuple[Totals, dict[str, Totals]]:
    """Return the totals of all runs, and the totals of each model in the order of the models' first runs."""
    whole, models = TotalsFold(), dict[str, TotalsFold]()
    for result in results:
        if not models:
            models[result.model] = whole
        elif result.model not in models:
            if len(models) == 1:
                # All runs so far had the same model, so its totals equal those of all runs.
                models = dict.fromkeys(models, deepcopy(whole))
            models[result.model] = TotalsFold()
        whole.add(result)
        if (of_model := models[result.model]) is not whole:
            of_model.add(result)
    return whole.totals(), {model: fold.totals() for model, fold in models.items()}


class TotalsFold:
    """The totals of runs, accumulated run by run."""

    def __init__(self) -> None:
        self._counts: Counter[Status] = Counter()
        # Arrays take 8 bytes per run, lists of floats 32.
        self._scores, self._latencies, self._costs = array("d"), array("d"), array("d")
        self._usage: Usage | None = None
        self._retries = self._executions = self._endpoint_faults = self._cost_limited = 0
        self._judging = NO_JUDGE_USAGE
        self._user_cost: float | None = 0.0
        self._arguments = ArgumentsFold()
        self._agreement = AgreementFold()

    def add(self, result: RunResult) -> None:
        self._counts[result.status] += 1
        if result.status.graded:
            self._latencies.append(result.latency_ms)
            if (score := result.score) is not None:
                self._scores.append(score)
            if result.valid_arguments:
                self._arguments.add(result)
        if result.metrics:
            self._agreement.add(result)
        if (usage := result.usage) is not None:
            self._usage = usage if self._usage is None else self._usage + usage
        if (cost := result.cost_usd) is not None:
            self._costs.append(cost)
        if (user_cost := result.user_cost_usd) is None or self._user_cost is None:
            self._user_cost = None
        else:
            self._user_cost += user_cost
        self._retries += result.retries
        self._executions += result.executions
        self._endpoint_faults += result.status == Status.FAILED and is_endpoint_fault(result)
        self._cost_limited += result.status == Status.STOPPED and is_cost_limited(result)
        if result.judging is not NO_JUDGE_USAGE:
            self._judging += result.judging

    def totals(self) -> Totals:
        counts, runs, graded = self._counts, self._counts.total(), len(self._latencies)
        cost = _cost(self._costs, runs - len(self._costs))
        pass_rate = None
        if graded:
            pass_rate = good_count(counts) / graded
        return Totals(
            runs=runs,
            counts=counts_of(counts),
            mean_score=mean(self._scores) if self._scores else None,
            pass_rate=pass_rate,
            latency=latency_of(self._latencies),
            usage=self._usage,
            retries=self._retries,
            executions=self._executions,
            cost_usd=cost.dollars,
            runs_of_unknown_cost=cost.unknown,
            endpoint_faults=self._endpoint_faults,
            cost_limited=self._cost_limited,
            user_cost_usd=self._user_cost,
            judging=self._judging,
            valid_arguments=self._arguments.counts(),
            agreement=self._agreement.agreements(),
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of several runs: the known US dollars, and the number of runs of `unknown` cost.

    `dollars` is `None` without runs, or if some costs are unknown and all known costs are 0."""

    dollars: float | None
    unknown: int


def cost_of_runs(costs: Sequence[float | None]) -> Cost:
    """Return the cost of several runs together.

    `costs` has the US dollars of each run, or `None` for an unknown cost."""
    found = known_values(costs)
    return _cost(found, len(costs) - len(found))


def _cost(known: Sequence[float], unknown: int) -> Cost:
    dollars = math.fsum(known)
    # 0 dollars would look like the cost of all runs, including those of unknown cost.
    if not known or (unknown and not dollars):
        return Cost(None, unknown)
    return Cost(dollars, unknown)


def nearest_rank(ascending: Sequence[float], percent: float) -> float:
    """Return a percentile by nearest rank: the smallest value that is at least as large as `percent` % of the values.

    For example, the 95th percentile of twenty values is the 19th value. Raises ValueError without values."""
    if not ascending:
        raise ValueError("no values")
    rank = math.ceil(percent / 100 * len(ascending))
    return ascending[max(rank, 1) - 1]


def latency_of(values: Sequence[float]) -> Latency | None:
    """Return mean, percentiles and maximum of latencies in milliseconds, or `None` if no latency is known."""
    # In imported runs, a latency of 0 means that the latency is unknown.
    ascending = sorted(value for value in values if value)
    if not ascending:
        return None
    return Latency(
        mean_ms=math.fsum(ascending) / len(ascending),
        p50_ms=nearest_rank(ascending, 50),
        p95_ms=nearest_rank(ascending, 95),
        max_ms=ascending[-1],
    )
