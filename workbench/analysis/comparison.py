"""Models compared: the result of each case with each model, and the totals of a model's cases."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from workbench.analysis.gates import GateResult, gates_of
from workbench.analysis.statistics import Interval, Passing, bounded_interval, passing
from workbench.analysis.totals import Latency, cost_of_runs, latency_of
from workbench.dataclasses import dataclass
from workbench.grading.argument_counts import NOTHING_CHECKED, ValidArguments, valid_arguments_in
from workbench.grading.repeats import Joined, joined
from workbench.grading.run_summary import RunSummary, is_endpoint_fault, is_not_needed
from workbench.grading.scoring import ROUNDING_SLACK, counted_score, mean
from workbench.grading.status import Status, StatusCounts, counts_of, worst_of
from workbench.suite.model import Gate, RepeatRule

CellKey = tuple[str, str, str]
"""Suite, id of the case, model."""

SAME_SCORE = 0.005
"""Scores that differ by no more look the same to a person, who sees two digits."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One case with one model: its finished runs and their joined result by the case's rule for repeats.

    There is at least one run; runs are in the order of the repeats."""

    suite: str
    case_id: str
    case_name: str
    model: str
    runs: tuple[RunSummary, ...]
    come_to: Joined

    @property
    def status(self) -> Status:
        """The status by the case's rule for repeats; without a graded run the worst one that ended them."""
        return self.come_to.status

    @property
    def repeat_rule(self) -> RepeatRule:
        """The rule by which the runs are joined to one status."""
        return self.come_to.rule

    @property
    def cluster(self) -> tuple[str, str | None, str]:
        """The unit of independence of the case: the cluster that its suite writes, else the case alone."""
        cluster = self.runs[-1].grading.cluster
        return self.suite, cluster, "" if cluster is not None else self.case_id

    @property
    def score(self) -> float | None:
        """Mean over the graded runs, 0..1."""
        return self.come_to.score

    @property
    def counted_score(self) -> float | None:
        """Mean of the scores that count in gates and baselines."""
        counted = []
        for run in self.runs:
            if run.status.graded:
                counted.append(counted_score(run))
        scores = [score for score in counted if score is not None]
        return mean(scores) if scores else None

    @property
    def spread(self) -> float | None:
        """Population standard deviation of the scores."""
        return self.come_to.deviation

    @property
    def reason(self) -> str | None:
        """Why the case did not pass, in one line, where its runs have one reason in common."""
        return self.come_to.reason

    @property
    def is_graded(self) -> bool:
        """Whether the model was graded at all."""
        return self.status.graded

    @property
    def is_good(self) -> bool:
        """Whether the case passed or was warned."""
        return self.status.good

    @property
    def is_quarantined(self) -> bool:
        """Whether it counts in no exit code."""
        return self.runs[-1].grading.quarantined

    @property
    def good(self) -> int:
        """How many of the graded runs passed or were warned."""
        return sum(run.status.good for run in self.runs)

    @property
    def graded(self) -> int:
        """How many runs were graded."""
        return sum(run.status.graded for run in self.runs)

    @property
    def broke_off(self) -> Status | None:
        """For a graded cell, the worst status of its runs that were not graded."""
        return worst_of(run.status for run in self.runs if self.is_graded and not run.status.graded)

    @property
    def valid_arguments(self) -> float | None:
        """The share of the checked calls of the graded runs whose arguments are valid, 0..1."""
        return valid_arguments_in(run.tool_arguments for run in self.runs if run.status.graded).rate

    @property
    def latency_ms(self) -> float | None:
        """Mean milliseconds of the model's answers over the graded runs whose time is known, without waits."""
        known = []
        for run in self.runs:
            if run.status.graded and run.latency_ms:
                known.append(run.latency_ms)
        return mean(known) if known else None


@dataclass(frozen=True)
class ModelTotals(StatusCounts):
    """The totals of one model's cases.

    Counts are of cases, by their status, except those named after runs. Cases that were not graded count in no rate, no
    mean and no latency."""

    model: str
    cases: int
    counts: Mapping[Status, int]
    runs: int
    runs_in_error: int
    interval: Interval | None
    """Of the pass rate, 95%, over cases, wider where these depend on each other; `None` where runs were stopped early,
    for which it does not hold."""
    mean_score: float | None
    """Over the cases that have a score, 0..1."""
    score_interval: Interval | None
    """Of the mean score, 95%; `None` where a score is above 1, too."""
    latency: Latency | None
    """Of the graded runs."""
    first_token: Latency | None
    """Of the graded runs that report it."""
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    """US dollars, of the runs whose cost is known, graded or not; `None` where all runs that cost anything are of
    unknown cost."""
    runs_of_unknown_cost: int
    """Runs that are not in the cost."""
    cases_a_minute: float | None
    """Graded cases divided by the time in which at least one run of the model was going on."""
    passing: tuple[Passing, ...]
    """pass@k and pass^k for k from 1 on."""
    repeat_rules: tuple[RepeatRule, ...]
    """The rules by which the cases with several runs were joined; none without repeats."""
    gates: tuple[GateResult, ...] = ()
    """The demands of each suite's gate on the model by itself, over its runs."""
    endpoint_faults: int = 0
    """Failed cases of which a fault of the endpoint failed a run."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Means of the named checks of answers over the graded runs that have them, 0..1, by their names."""
    valid_arguments: ValidArguments = NOTHING_CHECKED
    """Calls of the graded runs, by their tools' own schemas."""

    @property
    def graded(self) -> int:
        return self.passed + self.warned + self.failed

    @property
    def pass_rate(self) -> float | None:
        """Passed and warned over graded cases, 0..1."""
        if self.graded:
            return (self.passed + self.warned) / self.graded
        return None

    @property
    def tokens(self) -> int | None:
        """Tokens in and out, of all runs."""
        return _sum((self.input_tokens, self.output_tokens))

    @property
    def pass_at(self) -> Mapping[int, float]:
        """pass@k by k."""
        return {share.k: share.at_least_one for share in self.passing}

    @property
    def pass_all(self) -> Mapping[int, float]:
        """pass^k by k."""
        return {share.k: share.all_of_them for share in self.passing}


def cells_of(figures: Iterable[RunSummary]) -> dict[CellKey, Cell]:
    """Return the cells of runs, in the order of their first runs.

    Forks are left out. Of runs of the same repeat only the last one counts, because it was made again."""
    runs: dict[CellKey, dict[int, RunSummary]] = {}
    for run in figures:
        if not run.is_fork:
            runs.setdefault((run.suite, run.case_id, run.model), {})[run.repeat] = run
    return {key: cell_of(list(of_cell.values())) for key, of_cell in runs.items()}


def runs_of_models(figures: Iterable[RunSummary]) -> dict[str, Sequence[int]]:
    """Return the indices of the runs of each model, in the order of their first runs.

    Forks are left out. No cell spans two of these: the cells of one are all that need be in memory at a time."""
    found: dict[str, array[int]] = {}
    for index, run in enumerate(figures):
        if not run.is_fork:
            indices = found.get(run.model)
            if indices is None:
                indices = found[run.model] = array("L")
            indices.append(index)
    return {**found}


def placed_cells(figures: Sequence[RunSummary], indices: Iterable[int]) -> dict[CellKey, tuple[int, Cell]]:
    """Return the cells of those of the runs, as `cells_of` does, each with the index of its first run."""
    first: dict[CellKey, int] = {}

    def runs() -> Iterator[RunSummary]:
        for index in indices:
            run = figures[index]
            first.setdefault((run.suite, run.case_id, run.model), index)
            yield run

    return {key: (first[key], cell) for key, cell in cells_of(runs()).items()}


def cell_of(runs: Sequence[RunSummary]) -> Cell:
    """Return the cell of runs of one case with one model, at least one, each of a different repeat."""
    ordered = tuple(sorted(runs, key=lambda run: run.repeat))
    latest = ordered[-1]
    return Cell(latest.suite, latest.case_id, latest.case_name, latest.model, ordered, joined(ordered))


NO_GATES: Mapping[str, Gate] = MappingProxyType({})


def model_totals(model: str, cells: Iterable[Cell], gates: Mapping[str, Gate] = NO_GATES) -> ModelTotals:
    """Return the totals of a model's cells.

    `gates` are those of the suites, by the keys of suites in the cells."""
    cells = tuple(cells)
    runs = [run for cell in cells for run in cell.runs]
    counts = Counter(cell.status for cell in cells)
    graded = sum(count for status, count in counts.items() if status.graded)
    scores = []
    for cell in cells:
        if cell.score is not None:
            scores.append(cell.score)
    cost = cost_of_runs([run.cost_usd for run in runs])
    judged = [run for run in runs if run.status.graded]
    minutes = busy_ms(runs) / 60_000
    return ModelTotals(
        model=model,
        cases=len(cells),
        counts=counts_of(counts),
        runs=len(runs),
        runs_in_error=sum(run.status == Status.ERROR for run in runs),
        interval=None if any(map(is_not_needed, runs)) else _rate_interval([cell for cell in cells if cell.is_graded]),
        mean_score=mean(scores) if scores else None,
        score_interval=None if any(map(is_not_needed, runs)) else _score_interval(cells),
        latency=latency_of([run.latency_ms for run in judged]),
        first_token=latency_of([run.first_token_ms for run in judged if run.first_token_ms is not None]),
        input_tokens=_sum(run.input_tokens for run in runs),
        output_tokens=_sum(run.output_tokens for run in runs),
        cost_usd=cost.dollars,
        runs_of_unknown_cost=cost.unknown,
        cases_a_minute=graded / minutes if graded and minutes else None,
        passing=passing((cell.good, cell.graded) for cell in cells),
        repeat_rules=repeat_rules_of(cells),
        gates=tuple(
            result
            for suite, gate in gates.items()
            if gate.per == "model" and (of_suite := [run for run in runs if run.suite == suite])
            for result in gates_of(suite, gate, of_suite)
        ),
        endpoint_faults=sum(cell.status == Status.FAILED and any(map(_is_endpoints, cell.runs)) for cell in cells),
        metrics=_metrics(judged),
        valid_arguments=valid_arguments_in(run.tool_arguments for run in judged),
    )


def _is_endpoints(run: RunSummary) -> bool:
    return run.status == Status.FAILED and is_endpoint_fault(run)


def clusters_of(cells: Iterable[Cell]) -> list[tuple[str, str | None, str]] | None:
    """Return the cluster of each cell; `None` where each is one by itself."""
    clusters = [cell.cluster for cell in cells]
    if any(written is not None for _, written, _ in clusters):
        return clusters
    return None


def _rate_interval(graded: Sequence[Cell]) -> Interval | None:
    return bounded_interval([float(cell.is_good) for cell in graded], clusters_of(graded))


def _score_interval(cells: Iterable[Cell]) -> Interval | None:
    scored = []
    for cell in cells:
        if cell.score is not None:
            scored.append((cell, cell.score))
    return bounded_interval([score for _, score in scored], clusters_of(cell for cell, _ in scored))


def _metrics(runs: Iterable[RunSummary]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for run in runs:
        for name, value in run.metrics:
            values.setdefault(name, []).append(value)
    return {name: mean(found) for name, found in values.items()}


def scores_differ(one: float, other: float) -> bool:
    """Return whether two scores look different to a person."""
    # Infinite ones are compared directly: their difference is not a number.
    return one != other and not abs(one - other) <= SAME_SCORE + ROUNDING_SLACK


def repeat_rules_of(cells: Iterable[Cell]) -> tuple[RepeatRule, ...]:
    """Return the rules by which cells with several runs were joined, each once."""
    return tuple(dict.fromkeys(cell.repeat_rule for cell in cells if len(cell.runs) > 1))


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def busy_ms(runs: Iterable[RunSummary]) -> float:
    """Return how long at least one of the runs was going on, in milliseconds.

    Time between batches does not count, nor does a run that ended before it began, because the clock was set back and
    its duration is unknown."""
    times = ((run.began_ms, run.ended_ms) for run in runs)
    busy, until = 0.0, -math.inf
    for began, ended in sorted((began, ended) for began, ended in times if began is not None and ended is not None):
        if ended > max(began, until):
            busy += ended - max(began, until)
            until = ended
    return busy
