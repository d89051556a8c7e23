"""How the verdicts of the system that made imported runs agree with those of their cases."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

from workbench.dataclasses import dataclass
from workbench.grading.argument_counts import NOTHING_CHECKED, ArgumentsFold, ValidArguments
from workbench.grading.grade import NOBODY_ASKED, JudgeUse, RunResult
from workbench.grading.lazy import Chosen
from workbench.grading.run_summary import is_cost_limited, is_endpoint_fault
from workbench.grading.scoring import mean
from workbench.grading.status import Status, StatusCounts, counts_of
from workbench.trajectory.events import Usage


@dataclass(frozen=True)
class Difference:
    """Something of which the source's verdict is another one: its value there, 0..1, and whether it passed here."""

    about: str
    value: float
    passed_here: bool


@dataclass(frozen=True)
class Agreement:
    """The verdicts of a source by one of its scores, beside those of the cases.

    Counts how many of the verdicts that both have agree, and which do not. `ungraded` are those without one here."""

    name: str
    agree: int
    of: int
    ungraded: int
    differ: tuple[Difference, ...]


@dataclass
class _Scored:
    """The unit that a source scored: one run or several, such as the turns of a conversation."""

    value: float
    passed: bool
    statuses: list[bool] = field(default_factory=list)


class AgreementFold:
    """The agreement for each score of a source, to which runs are added one by one.

    What consists of several runs passes here when all of those do that are graded."""

    def __init__(self) -> None:
        self._scored: dict[str, dict[tuple[str, str], _Scored]] = {}

    def add(self, run: RunResult) -> None:
        """Add a run."""
        for metric in run.metrics:
            if metric.about is not None:
                of_name = self._scored.setdefault(metric.name, {})
                each = of_name.setdefault((metric.about, run.model), _Scored(metric.value, metric.holds))
                if run.status.graded:
                    each.statuses.append(run.passed)

    def agreements(self) -> tuple[Agreement, ...]:
        """Return what they come to, in the order of the scores."""
        return tuple(_agreement(name, found) for name, found in self._scored.items())


def agreements(results: Iterable[RunResult]) -> tuple[Agreement, ...]:
    """Return the agreement for each score of a source over some runs."""
    fold = AgreementFold()
    for run in results:
        fold.add(run)
    return fold.agreements()


def _agreement(name: str, scored: dict[tuple[str, str], _Scored]) -> Agreement:
    graded = {}
    for (about, _), each in scored.items():
        if each.statuses:
            graded[about] = each
    differ = tuple(
        Difference(about, each.value, all(each.statuses))
        for about, each in graded.items()
        if all(each.statuses) != each.passed
    )
    return Agreement(name, len(graded) - len(differ), len(graded), len(scored) - len(graded), differ)


PERCENTILES: Final = {"p50": "median", "p95": "95th percentile", "max": "maximum"}
"""The percentiles shown of times: their names in tables, and in words."""


@dataclass(frozen=True)
class Latency:
    """Model latency of runs, in milliseconds.

    Percentiles are by nearest rank."""

    mean_ms: float
    p50_ms: float
    p95_ms: float
    max_ms: float

    @property
    def percentiles(self) -> Mapping[str, float]:
        """The shown values in milliseconds, by the names in `PERCENTILES`."""
        return {"p50": self.p50_ms, "p95": self.p95_ms, "max": self.max_ms}


@dataclass(frozen=True)
class Totals(StatusCounts):
    """The totals of runs.

    Errors, skipped, stopped and not graded runs are counted, but are part of no mean and no rate."""

    runs: int
    counts: Mapping[Status, int]
    mean_score: float | None
    """Over the graded runs to which the deciding grader applies, 0..1."""
    pass_rate: float | None
    """Passed and warned over graded runs, 0..1."""
    latency: Latency | None
    """Of the graded runs; each counts with the sum of its model answers."""
    usage: Usage | None
    retries: int = 0
    """Retried model requests in all runs."""
    executions: int = 0
    """Calls that were really executed on a server, in all runs."""
    cost_usd: float | None = None
    """US dollars, of the runs whose cost is known; `None` where all runs that cost anything are of unknown cost."""
    runs_of_unknown_cost: int = 0
    """Runs that are not in the cost."""
    endpoint_faults: int = 0
    """Failed runs that a fault of the endpoint failed."""
    cost_limited: int = 0
    """Stopped runs that a limit on cost kept from being made."""
    judging: JudgeUse = NOBODY_ASKED
    """The cost of asking judges, which is in none of the above."""
    valid_arguments: ValidArguments = NOTHING_CHECKED
    """Calls of the graded runs, by their tools' own schemas."""
    agreement: tuple[Agreement, ...] = ()
    """Of imported runs, how the verdicts of the system that made them agree with those here."""

    @property
    def tokens(self) -> int | None:
        """Tokens in and out, of all runs."""
        if self.usage is None:
            return None
        return self.usage.input_tokens + self.usage.output_tokens


def that_count(results: Iterable[RunResult]) -> Sequence[RunResult]:
    """Return the runs that count.

    A fork is an experiment: it counts for its case only where all runs are forks."""
    results = results if isinstance(results, Sequence) else tuple(results)
    counting = array("L", (index for index, result in enumerate(results) if not result.is_fork))
    if 0 < len(counting) < len(results):
        return Chosen(results, counting)
    return results


def totals_of(results: Iterable[RunResult]) -> Totals:
    """Return the totals of runs."""
    fold = TotalsFold()
    for result in results:
        fold.add(result)
    return fold.totals()


def totals_by_model(results: Iterable[RunResult]) -> tuple[Totals, dict[str, Totals]]:
    """Return the totals of all runs, and those of each model, in the order of the models."""
    whole, models = TotalsFold(), dict[str, TotalsFold]()
    for result in results:
        whole.add(result)
        models.setdefault(result.model, TotalsFold()).add(result)
    return whole.totals(), {model: fold.totals() for model, fold in models.items()}


class TotalsFold:
    """The totals of runs that are added one by one; some numbers are kept of each."""

    def __init__(self) -> None:
        self._counts: Counter[Status] = Counter()
        self._scores, self._latencies, self._costs = array("d"), array("d"), array("d")
        self._usage: Usage | None = None
        self._retries = self._executions = self._endpoint_faults = self._cost_limited = 0
        self._judging = NOBODY_ASKED
        self._arguments = ArgumentsFold()
        self._agreement = AgreementFold()

    def add(self, result: RunResult) -> None:
        """Add a run."""
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
        self._retries += result.retries
        self._executions += result.executions
        self._endpoint_faults += result.status == Status.FAILED and is_endpoint_fault(result)
        self._cost_limited += result.status == Status.STOPPED and is_cost_limited(result)
        if result.judging is not NOBODY_ASKED:
            self._judging += result.judging

    def totals(self) -> Totals:
        """Return the totals so far."""
        counts, runs, graded = self._counts, self._counts.total(), len(self._latencies)
        cost = _cost(self._costs, runs - len(self._costs))
        return Totals(
            runs=runs,
            counts=counts_of(counts),
            mean_score=mean(self._scores) if self._scores else None,
            pass_rate=sum(counts[status] for status in Status if status.good) / graded if graded else None,
            latency=latency_of(self._latencies),
            usage=self._usage,
            retries=self._retries,
            executions=self._executions,
            cost_usd=cost.dollars,
            runs_of_unknown_cost=cost.unknown,
            endpoint_faults=self._endpoint_faults,
            cost_limited=self._cost_limited,
            judging=self._judging,
            valid_arguments=self._arguments.counts(),
            agreement=self._agreement.agreements(),
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """The joint cost of runs: the known US dollars, and how many runs are not included.

    Where some are not and the others cost nothing, `dollars` are `None`, as they are without runs."""

    dollars: float | None
    unknown: int


def cost_of_runs(costs: Sequence[float | None]) -> Cost:
    """Add up the costs of runs, each `None` where it is not known."""
    known = [cost for cost in costs if cost is not None]
    return _cost(known, len(costs) - len(known))


def _cost(known: Sequence[float], unknown: int) -> Cost:
    dollars = math.fsum(known)
    nothing_known = not known or (unknown and not dollars)
    return Cost(None if nothing_known else dollars, unknown)


def nearest_rank(ascending: Sequence[float], percent: float) -> float:
    """Return the percentile by nearest rank: the smallest value that at least `percent` % of the values do not exceed.

    Raises ValueError without values."""
    if not ascending:
        raise ValueError("no values")
    rank = math.ceil(percent / 100 * len(ascending))
    return ascending[max(rank, 1) - 1]


def latency_of(values: Sequence[float]) -> Latency | None:
    """Return mean, percentiles and maximum of milliseconds; `None` without any.

    Runs made elsewhere may have 0: their time is not known."""
    ascending = sorted(value for value in values if value)
    if not ascending:
        return None
    return Latency(
        mean_ms=math.fsum(ascending) / len(ascending),
        p50_ms=nearest_rank(ascending, 50),
        p95_ms=nearest_rank(ascending, 95),
        max_ms=ascending[-1],
    )
