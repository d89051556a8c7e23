"""The cells of a comparison, and the totals of a model's cells. A cell is one case with one model."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from workbench.analysis.gates import GateResult, gates_of
from workbench.analysis.statistics import Interval, PassAtK, bounded_interval, pass_at_k
from workbench.analysis.totals import Latency, cost_of_runs, latency_of
from workbench.dataclasses import dataclass
from workbench.grading.argument_counts import NOTHING_CHECKED, ValidArguments, valid_arguments_in
from workbench.grading.repeats import JoinedResult, graded_runs, join_runs
from workbench.grading.run_summary import RunSummary, TimedRun, UserFigures, is_endpoint_fault, is_not_needed
from workbench.grading.scoring import ROUNDING_SLACK, counted_score, known_values, mean
from workbench.grading.status import Status, StatusCounts, counts_of, worst_of
from workbench.suite.grading_model import Gate, RepeatRule

CellKey = tuple[str, str, str]
"""The suite, the case's id, and the model of a cell."""

SAME_SCORE = 0.005
"""The largest difference of scores that counts as equal. Reports show two digits."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One case with one model: its finished runs, and the result that the case's rule for repeats gives them.

    There is at least one run. Runs are in the order of the repeats."""

    suite: str
    case_id: str
    case_name: str
    model: str
    runs: tuple[RunSummary, ...]
    joined_result: JoinedResult

    @property
    def status(self) -> Status:
        """The status by the case's rule for repeats, or the worst status of the runs if no run was graded."""
        return self.joined_result.status

    @property
    def repeat_rule(self) -> RepeatRule:
        return self.joined_result.rule

    @property
    def cluster(self) -> tuple[str, str | None, str]:
        """The key of the independent observation that the case belongs to: suite, cluster and case id.

        Cases of one cluster in a suite have the same key, with an empty case id. Any other case has its own key, with
        `None` as the cluster."""
        cluster = self.runs[-1].grading.cluster
        if cluster is not None:
            return self.suite, cluster, ""
        return self.suite, None, self.case_id

    @property
    def case_key(self) -> tuple[str, str]:
        """The suite and the id of the case. The cells of a case with different models have the same key."""
        return self.suite, self.case_id

    @property
    def score(self) -> float | None:
        """The mean score of the graded runs, 0..1, or `None` if no run has a score."""
        return self.joined_result.score

    @property
    def counted_score(self) -> float | None:
        """The mean of the scores that count in gates and baselines, over the graded runs.

        It is `None` without such scores."""
        scores = []
        for run in self.runs:
            if run.status.graded and (score := counted_score(run)) is not None:
                scores.append(score)
        return mean(scores) if scores else None

    @property
    def spread(self) -> float | None:
        """The population standard deviation of the scores, or `None` if no run has a score."""
        return self.joined_result.deviation

    @property
    def reason(self) -> str | None:
        """The reason why the case did not pass, in one line, or `None` if its runs have different reasons."""
        return self.joined_result.reason

    @property
    def is_graded(self) -> bool:
        return self.status.graded

    @property
    def is_good(self) -> bool:
        """Whether the case passed or was warned."""
        return self.status.good

    @property
    def is_quarantined(self) -> bool:
        """Whether the case is in quarantine. Such a case counts in no exit code."""
        return self.runs[-1].grading.quarantined

    @property
    def graded_runs(self) -> list[RunSummary]:
        return graded_runs(self.runs)

    @property
    def good(self) -> int:
        """The number of graded runs that passed or were warned."""
        return sum(run.status.good for run in self.runs)

    @property
    def graded(self) -> int:
        return sum(run.status.graded for run in self.runs)

    @property
    def gave_up(self) -> int:
        """The number of runs whose user gave up."""
        return sum(run.user_outcome == "gave up" for run in self.runs)

    @property
    def user_errors(self) -> int:
        """The number of runs that became unusable through an error of the simulated user."""
        return sum(run.user_outcome == "error" for run in self.runs)

    @property
    def ungraded_status(self) -> Status | None:
        """The worst status among the ungraded runs of a graded cell, or `None` if all runs were graded."""
        if not self.is_graded:
            return None
        return worst_of(run.status for run in self.runs if not run.status.graded)

    @property
    def valid_arguments(self) -> float | None:
        """The share of valid calls among the checked calls of the graded runs, 0..1.

        It is `None` without checked calls."""
        return _valid_arguments(self.graded_runs).rate

    @property
    def latency_ms(self) -> float | None:
        """The mean model latency in milliseconds, without waits, over the graded runs with a known latency.

        It is `None` if no latency is known."""
        known = [run.latency_ms for run in self.graded_runs if run.latency_ms]
        return mean(known) if known else None


@dataclass(frozen=True)
class ModelTotals(StatusCounts):
    """The totals of one model's cases.

    A figure counts cases, unless it is named after runs. Rates, means and latency are over the graded cases."""

    model: str
    cases: int
    counts: Mapping[Status, int]
    runs: int
    runs_in_error: int
    interval: Interval | None
    """The 95% interval of the pass rate over cases, wider with clusters. It is `None` after an early stop."""
    mean_score: float | None
    """The mean score of the cases with a score, 0..1."""
    score_interval: Interval | None
    """The 95% interval of the mean score. It is `None` after an early stop or if a score is above 1."""
    latency: Latency | None
    """The model latency of the graded runs."""
    first_token: Latency | None
    """The time to the first token of the graded runs that report it."""
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    """The cost of the runs of known cost, graded or not, in US dollars.

    It is `None` if the only runs of known cost are free and there are runs of unknown cost."""
    runs_of_unknown_cost: int
    """The number of runs of unknown cost. The cost excludes these runs."""
    users: UserFigures | None
    """The tokens and cost of the models that played users in all runs, or `None` if no model played a user. No other
    figure includes them."""
    cases_a_minute: float | None
    """Graded cases divided by the time with at least one run of the model in progress."""
    passing: tuple[PassAtK, ...]
    """pass@k and pass^k for k = 1, 2, …"""
    repeat_rules: tuple[RepeatRule, ...]
    """The rules that joined cases with several runs. There are none without repeats."""
    gates: tuple[GateResult, ...] = ()
    """The results of the suites' gates that judge each model separately."""
    endpoint_faults: int = 0
    """The number of failed cases with a run that failed because of the endpoint."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The means of the named checks of answers, 0..1, by name, over the graded runs with a value."""
    valid_arguments: ValidArguments = NOTHING_CHECKED
    """The calls of the graded runs with arguments that are valid by their tools' schemas."""

    @property
    def graded(self) -> int:
        return self.passed + self.warned + self.failed

    @property
    def pass_rate(self) -> float | None:
        """The number of passed and warned cases divided by the number of graded cases, 0..1.

        It is `None` without graded cases."""
        if self.graded:
            return (self.passed + self.warned) / self.graded
        return None

    @property
    def tokens(self) -> int | None:
        return _sum((self.input_tokens, self.output_tokens))

    @property
    def pass_at(self) -> Mapping[int, float]:
        """The mean pass@k of the cases, by k."""
        return {share.k: share.at_least_one for share in self.passing}

    @property
    def pass_all(self) -> Mapping[int, float]:
        """The mean pass^k of the cases, by k."""
        return {share.k: share.all_of_them for share in self.passing}


def cells_of(figures: Iterable[RunSummary]) -> dict[CellKey, Cell]:
    """Return the cells of runs, in the order of their first runs, without forks.

    If a resumed batch repeated a run, the later run counts."""
    # A later run of the same repeat replaces the earlier one.
    runs: dict[CellKey, dict[int, RunSummary]] = {}
    for run in figures:
        if not run.is_fork:
            runs.setdefault((run.suite, run.case_id, run.model), {})[run.repeat] = run
    return {key: cell_of(list(of_cell.values())) for key, of_cell in runs.items()}


def runs_of_models(figures: Iterable[RunSummary | TimedRun]) -> dict[str, Sequence[int]]:
    """Return the indices of the runs of each model, in the order of their first runs.

    Forks are left out. A cell has runs of only one model, so large batches can be read model by model."""
    found: dict[str, array[int]] = {}
    for index, run in enumerate(figures):
        if not run.is_fork:
            indices = found.get(run.model)
            if indices is None:
                indices = found[run.model] = array("L")
            indices.append(index)
    return {**found}


def cells_with_positions(figures: Sequence[RunSummary], indices: Iterable[int]) -> dict[CellKey, tuple[int, Cell]]:
    """Return the cells of the runs with these indices, each with the index of its first run."""
    first: dict[CellKey, int] = {}

    def runs() -> Iterator[RunSummary]:
        for index in indices:
            run = figures[index]
            first.setdefault((run.suite, run.case_id, run.model), index)
            yield run

    return {key: (first[key], cell) for key, cell in cells_of(runs()).items()}


def cell_of(runs: Sequence[RunSummary]) -> Cell:
    """Return the cell of one case with one model. `runs` must not be empty, and no two may have the same repeat."""
    ordered = tuple(sorted(runs, key=lambda run: run.repeat))
    latest = ordered[-1]
    return Cell(latest.suite, latest.case_id, latest.case_name, latest.model, ordered, join_runs(ordered))


NO_GATES: Mapping[str, Gate] = MappingProxyType({})


def model_totals(model: str, cells: Iterable[Cell], gates: Mapping[str, Gate] = NO_GATES) -> ModelTotals:
    """Return the totals of a model's cells.

    `gates` holds the gate of each suite, by the suite's key in the cells."""
    cells = tuple(cells)
    runs: list[RunSummary] = []
    for cell in cells:
        runs += cell.runs
    judged = graded_runs(runs)
    graded = graded_cells(cells)
    scored = [cell for cell in cells if cell.score is not None]
    scores = scores_of(scored)
    rate_interval = score_interval = None
    # A batch that stops early at a difference overstates the difference. Intervals for a fixed number of cases are then
    # invalid.
    if not any(map(is_not_needed, runs)):
        rate_interval = bounded_interval([float(cell.is_good) for cell in graded], clusters_of(graded))
        score_interval = bounded_interval(scores, clusters_of(scored))
    mean_score = mean(scores) if scores else None
    cost = cost_of_runs([run.cost_usd for run in runs])
    first_tokens, latencies = _times(judged)
    tokens = _tokens(runs)
    statuses = Counter(cell.status for cell in cells)
    shares = [(cell.good, cell.graded) for cell in cells]
    in_error = sum(run.status == Status.ERROR for run in runs)
    minutes = busy_ms(runs) / 60_000
    cases_a_minute = None
    if graded and minutes:
        cases_a_minute = len(graded) / minutes
    return ModelTotals(
        model=model,
        cases=len(cells),
        counts=counts_of(statuses),
        runs=len(runs),
        runs_in_error=in_error,
        interval=rate_interval,
        mean_score=mean_score,
        score_interval=score_interval,
        latency=latency_of(latencies),
        first_token=latency_of(first_tokens),
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        cost_usd=cost.dollars,
        runs_of_unknown_cost=cost.unknown,
        users=_users(runs),
        cases_a_minute=cases_a_minute,
        passing=pass_at_k(shares),
        repeat_rules=repeat_rules_of(cells),
        gates=tuple(_gates_on_model(runs, gates)),
        endpoint_faults=sum(map(_failed_by_endpoint, cells)),
        metrics=_metrics(judged),
        valid_arguments=_valid_arguments(judged),
    )


def _times(runs: Iterable[RunSummary]) -> tuple[list[float], list[float]]:
    first_tokens, latencies = [], []
    for run in runs:
        latencies.append(run.latency_ms)
        if run.first_token_ms is not None:
            first_tokens.append(run.first_token_ms)
    return first_tokens, latencies


def _tokens(runs: Iterable[RunSummary]) -> tuple[int | None, int | None]:
    given, made = [], []
    for run in runs:
        given.append(run.input_tokens)
        made.append(run.output_tokens)
    return _sum(given), _sum(made)


def _users(runs: Iterable[RunSummary]) -> UserFigures | None:
    users = [run.user for run in runs if run.user is not None]
    if not users:
        return None
    costs = [user.cost_usd for user in users]
    known = [usd for usd in costs if usd is not None]
    cost_usd = None
    if len(known) == len(costs):
        cost_usd = sum(known)
    return UserFigures(_sum(user.tokens for user in users), cost_usd)


def _valid_arguments(runs: Iterable[RunSummary]) -> ValidArguments:
    return valid_arguments_in(run.tool_arguments for run in runs)


def _gates_on_model(runs: Sequence[RunSummary], gates: Mapping[str, Gate]) -> Iterator[GateResult]:
    for suite, gate in gates.items():
        of_suite = [run for run in runs if run.suite == suite]
        # `gates_of` reports a gate without any run as missed. A model that did not run the suite must not miss its
        # gate.
        if gate.per == "model" and of_suite:
            yield from gates_of(suite, gate, of_suite)


def _failed_by_endpoint(cell: Cell) -> bool:
    if cell.status != Status.FAILED:
        return False
    return any(run.status == Status.FAILED and is_endpoint_fault(run) for run in cell.runs)


def graded_cells(cells: Iterable[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell.is_graded]


def scores_of(cells: Iterable[Cell]) -> list[float]:
    return known_values(cell.score for cell in cells)


def clusters_of(cells: Iterable[Cell]) -> list[tuple[str, str | None, str]] | None:
    """Return `Cell.cluster` of each cell, or `None` if no case has a cluster, so that all cells are independent."""
    clusters = [cell.cluster for cell in cells]
    if any(written is not None for _, written, _ in clusters):
        return clusters
    return None


def _metrics(runs: Iterable[RunSummary]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for run in runs:
        for name, value in run.metrics:
            values.setdefault(name, []).append(value)
    return {name: mean(found) for name, found in values.items()}


def scores_differ(one: float, other: float) -> bool:
    # Equal infinite scores are compared directly because their difference is not a number.
    return one != other and not abs(one - other) <= SAME_SCORE + ROUNDING_SLACK


def repeat_rules_of(cells: Iterable[Cell]) -> tuple[RepeatRule, ...]:
    return tuple(dict.fromkeys(cell.repeat_rule for cell in cells if len(cell.runs) > 1))


def _sum(values: Iterable[int | None]) -> int | None:
    found = known_values(values)
    return sum(found) if found else None


def busy_ms(runs: Iterable[RunSummary | TimedRun]) -> float:
    """Return how long at least one of the runs was in progress, in milliseconds.

    Pauses between batches do not count."""
    times = []
    for run in runs:
        if run.began_ms is not None and run.ended_ms is not None:
            times.append((run.began_ms, run.ended_ms))
    # This is the length of the union of intervals. In the order of starts, each interval adds its part after the latest
    # end so far.
    busy, until = 0.0, -math.inf
    for began, ended in sorted(times):
        # If the clock was set back, a run may end before it began. Its duration is unknown and adds nothing.
        if ended > max(began, until):
            busy += ended - max(began, until)
            until = ended
    return busy
