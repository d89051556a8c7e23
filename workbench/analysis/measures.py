"""What is measured of runs: each number, its unit, its value for a run and for a model, and which way is better."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Literal, Protocol

from workbench.dataclasses import dataclass
from workbench.grading.argument_counts import valid_arguments_of
from workbench.grading.grade import RunResult
from workbench.grading.scoring import counted_score, mean
from workbench.grading.status import NOT_APPLICABLE, Status
from workbench.grading.traits import TRAITS
from workbench.suite.rules import NAMED_MEASURE, is_score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workbench.analysis.totals import Latency
    from workbench.suite.model import Gate

Unit = Literal["share", "ms", "tokens", "usd", "number"]
"""A share is at most 1; any other unit has no upper bound."""


class OfModel(Protocol):
    """What the runs of a model come to: its `ModelTotals`."""

    @property
    def runs(self) -> int: ...
    @property
    def latency(self) -> Latency | None: ...
    @property
    def cost_usd(self) -> float | None: ...
    @property
    def runs_of_unknown_cost(self) -> int: ...


@dataclass(frozen=True)
class Measure:
    """A number measured of a run.

    `name` is what suites call it (`workbench.suite.rules.MEASURES`), `title` what people do. `of_run` gives its value,
    `None` where a run has none. `of_model` pools the values of a model's runs as `pooled` says, for measures of which
    less is better: those are held against the score.
    """

    name: str
    title: str
    unit: Unit
    of_run: Callable[[RunResult], float | None]
    by_grader: bool = False
    of_model: Callable[[OfModel], float | None] | None = None
    pooled: str = ""

    def values(self, runs: Iterable[RunResult]) -> list[float]:
        """Return the values of the graded runs that have one."""
        return [value for run in runs if run.status.graded and (value := self.of_run(run)) is not None]


def _tokens(run: RunResult) -> float | None:
    return None if run.usage is None else run.usage.input_tokens + run.usage.output_tokens


def _mean_cost(totals: OfModel) -> float | None:
    """Return the mean cost of a run. A mean over the known ones would flatter a model with runs of unknown cost."""
    known = totals.cost_usd is not None and totals.runs and not totals.runs_of_unknown_cost
    return totals.cost_usd / totals.runs if known and totals.cost_usd is not None else None


def _median_latency(totals: OfModel) -> float | None:
    return totals.latency.p50_ms if totals.latency is not None else None


SCORE: Final = Measure("score", "score", "share", counted_score, by_grader=True)
"""The deciding score, as it counts in gates."""
COST: Final = Measure("cost_usd", "cost", "usd", lambda run: run.cost_usd, of_model=_mean_cost, pooled="mean")
LATENCY: Final = Measure(
    "latency_ms", "latency", "ms", lambda run: run.latency_ms, of_model=_median_latency, pooled="median"
)
TOKENS: Final = Measure("tokens", "tokens", "tokens", _tokens)
VALID_ARGUMENTS: Final = Measure(
    "valid_arguments", "valid arguments", "share", lambda run: valid_arguments_of(run).rate
)

MEASURES: Final = {each.name: each for each in (SCORE, COST, LATENCY, TOKENS, VALID_ARGUMENTS)}
"""Those of every run, by their names."""

AGAINST_SCORE: Final = tuple(each for each in MEASURES.values() if each.of_model is not None)
"""Measures of which less is better, each held against the score in a Pareto front."""


def measure_of(name: str) -> Measure:
    """Return a measure by its name in suites: one of `MEASURES`, a grader's score or a number of its formula, or a
    named check of answers."""
    if name in MEASURES:
        return MEASURES[name]
    unit: Unit = "share" if is_score(name) else "number"
    if name.startswith(NAMED_MEASURE):
        check = name.removeprefix(NAMED_MEASURE)
        return Measure(name, name, unit, lambda run: _of_check(run, check))
    grader, _, number = name.partition(".")
    return Measure(name, name, unit, lambda run: _of_grader(run, grader, number), by_grader=True)


def _of_check(run: RunResult, check: str) -> float | None:
    return next((metric.value for metric in run.metrics if metric.name == check), None)


def _of_grader(run: RunResult, grader: str, number: str) -> float | None:
    """Return the published score of a grader, or a quantity of its formula. A run that a rule of `critics` decided
    before scoring earned nothing, so that its quantities are 0."""
    grade = next((each for each in run.grades if each.grader == grader), None)
    if grade is None or not number:
        return grade.score if grade is not None else None
    was_graded = grade.verdict not in (NOT_APPLICABLE, Status.ERROR)
    decided_before = TRAITS[grade.grader].number_if_decided_before if was_graded else None
    return grade.numbers.get(number, decided_before)


GateMeasureName = Literal["mean score", "pass rate"]


@dataclass(frozen=True)
class GateMeasure:
    """What a suite's gate can demand of the runs of a model. `option` is what demands it on the command line; a
    rate is shown in percent, with the number of graded runs that it is a share of."""

    name: GateMeasureName
    option: str
    demanded: Callable[[Gate], float | None]
    reached: Callable[[Sequence[float], int, int], float | None]
    """From the scores that count, the number of good runs and that of graded ones."""
    is_rate: bool = False


GATE_MEASURES: Final = {
    each.name: each
    for each in (
        GateMeasure(
            "mean score",
            "--min-score",
            lambda gate: gate.min_score,
            lambda scores, good, graded: mean(scores) if scores else None,
        ),
        GateMeasure(
            "pass rate",
            "--gate",
            lambda gate: gate.min_pass_rate,
            lambda scores, good, graded: good / graded if graded else None,
            is_rate=True,
        ),
    )
}
