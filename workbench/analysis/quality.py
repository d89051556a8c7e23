"""Decides whether a batch is good enough: by `--min-score`, else by each suite's gate, else by the statuses of its
cases."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal, Protocol

from workbench.analysis.aggregates import SLACK, AggregateResult
from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.grading.repeats import Cases, case_results, path_of_suite
from workbench.grading.scoring import Scored, counted_score, counts_zero, mean
from workbench.grading.status import Status
from workbench.suite.model import Gate
from workbench.suite.settings import Grading

if TYPE_CHECKING:
    from workbench.analysis.watched import GateWatched


GateMeasure = Literal["mean score", "pass rate"]


@dataclass(frozen=True)
class GateResult:
    """One demand and what was reached. `suite` is the suite's path, `None` for the command line's own demand; `model`
    is `None` where the runs of all models are taken together. `counted_zero` failed runs count 0 in a mean score,
    whatever their own score."""

    suite: str | None
    measure: GateMeasure
    minimum: float
    reached: float | None
    """`None` when nothing was graded, which meets no gate."""
    model: str | None = None
    counted_zero: int = 0
    graded: int = 0
    """How many graded runs it is about."""
    watched: GateWatched | None = None
    """What was known of it while the batch went on that may stop early: that decides, if it does."""

    @property
    def met(self) -> bool:
        if self.watched is not None and self.watched.verdict is not None:
            return self.watched.verdict == "reached"
        return self.reached is not None and self.reached >= self.minimum - SLACK


@dataclass(frozen=True)
class Quality:
    """The verdict on a batch, the demands behind it, the result of each case with each model, and the suites'
    aggregates."""

    met: bool
    gates: tuple[GateResult, ...]
    cases: Cases = field(default_factory=lambda: case_results(()))
    aggregates: tuple[AggregateResult, ...] = ()
    nothing_graded: str | None = None
    """That no run that counts was graded, and why, in a sentence."""

    @property
    def demands_met(self) -> bool:
        """Whether the demands are met, whatever the statuses of cases."""
        return all(gate.met for gate in self.gates) and all(each.met for each in self.aggregates)


def quality_of(
    results: Sequence[RunResult],
    gates: Mapping[str, Gate],
    min_score: float | None = None,
    *,
    suite_of: Callable[[RunResult], str] = path_of_suite,
    aggregates: tuple[AggregateResult, ...] = (),
    watched: Iterable[GateWatched] = (),
) -> Quality:
    """Judge a batch. `gates` holds the gate of each suite by its path; cases are of the same suite where `suite_of`
    returns the same. The gates of `aggregates` count with those of their suites; those that are no demand on scores
    come on top of the statuses. Those on a published metric alone replace the statuses of the scores, and nothing else.

    `watched` are the pass rates of a batch that may stop early. `min_score` (0..1), or one of these that is of no
    suite, replaces all of these gates, so that none of them is in the result. A suite without a gate is
    good enough when no case failed, by the rule for its repeats.
    """
    cases, ungraded = case_results(results, suite_of), nothing_graded(results)
    known = {(each.suite, each.model): each for each in watched}
    rate = next((each.gate for each in known.values() if each.suite is None), None)
    if min_score is not None or rate is not None:
        demanded = Gate(min_score=min_score, min_pass_rate=rate)
        asked = tuple(as_watched(gates_of(None, demanded, results), known))
        without_gates = tuple(replace(each, gates=()) for each in aggregates)
        return Quality(bool(asked) and all(gate.met for gate in asked), asked, cases, without_gates, ungraded)
    failed = [case for case in cases.of(Status.FAILED) if not case.runs[0].grading.quarantined]
    with_failures = {case.runs[0].suite for case in failed}
    besides_scores = {case.runs[0].suite for case in failed if any(run.is_broken for run in case.runs)}
    checked: list[GateResult] = []
    met = True
    reached: dict[str, GateFold] = {}
    for result in results:
        if (fold := reached.get(suite := result.suite)) is None:
            fold = reached[suite] = GateFold(suite, gates.get(suite, Gate.model_construct()))
        fold.add(result)
    for suite, fold in reached.items():
        demands = tuple(as_watched(fold.results(), known))
        checked += demands
        own = [each for each in aggregates if each.suite == suite]
        replacing = [each for each in own if each.replaces_statuses]
        reached_all = all(each.met for each in demands) and all(each.met for each in own)
        if not demands and all(each.is_published for each in replacing):
            reached_all = reached_all and suite not in (besides_scores if replacing else with_failures)
        met = met and reached_all
    return Quality(met, tuple(checked), cases, aggregates, ungraded)


def nothing_graded(runs: Iterable[GatedRun]) -> str | None:
    """Return why no run that counts was graded, in a sentence; `None` where one was."""
    left_out: Counter[str] = Counter()
    for run in runs:
        graded = run.status.graded
        if graded and not run.grading.quarantined:
            return None
        left_out["in quarantine" if graded else run.status.counted] += 1
    why = ", ".join(f"{number:,} {words}" for words, number in left_out.items())
    return f"no run that counts was graded: {why or 'there is none'}"


def as_watched(
    gates: Iterable[GateResult], watched: Mapping[tuple[str | None, str | None], GateWatched]
) -> Iterator[GateResult]:
    """Yields gates with what is known of their pass rates, which is `watched` by suite and model."""
    for gate in gates:
        yield replace(gate, watched=watched.get((gate.suite, gate.model))) if gate.measure == "pass rate" else gate


class GatedRun(Scored, Protocol):
    """What gates need of a run: what a `RunResult` and its summary have in common."""

    @property
    def model(self) -> str: ...
    @property
    def status(self) -> Status: ...
    @property
    def grading(self) -> Grading: ...


def gates_of(suite: str | None, gate: Gate, runs: Iterable[GatedRun]) -> Iterator[GateResult]:
    """Returns what the runs of a suite reach of its gate, for each model or for all together. Those in quarantine do
    not count."""
    fold = GateFold(suite, gate)
    for run in runs:
        fold.add(run)
    return fold.results()


class _Reached:
    """What the runs of a model, or of all models, reach of a gate."""

    def __init__(self) -> None:
        self.counts = False
        self.graded = self.good = self.zeros = 0
        self.scores = array("d")

    def add(self, run: GatedRun) -> None:
        """Add a run."""
        self.counts = self.counts or run.status.owed
        if not run.status.graded:
            return
        self.graded += 1
        self.good += run.status != Status.FAILED
        self.zeros += counts_zero(run)
        if (score := counted_score(run)) is not None:
            self.scores.append(score)


class GateFold:
    """What runs reach of the gate of their suite, as `gates_of`, added one by one."""

    def __init__(self, suite: str | None, gate: Gate) -> None:
        self._suite = suite
        self._gate = gate
        self._asks = gate.min_score is not None or gate.min_pass_rate is not None
        self._reached: dict[str | None, _Reached] = {None: _Reached()} if gate.per == "batch" else {}

    def add(self, run: GatedRun) -> None:
        """Add a run."""
        if self._asks and not run.grading.quarantined:
            model = None if self._gate.per == "batch" else run.model
            (self._reached.get(model) or self._reached.setdefault(model, _Reached())).add(run)

    def results(self) -> Iterator[GateResult]:
        """Yields what was reached. A model none of whose runs could be graded is left out, unless there is no other."""
        gate = self._gate
        if not self._asks:
            return
        of_models = {model: own for model, own in self._reached.items() if own.counts} or self._reached
        for model, own in of_models.items():
            if gate.min_score is not None:
                score = mean(own.scores) if own.scores else None
                yield GateResult(self._suite, "mean score", gate.min_score, score, model, own.zeros, own.graded)
            if gate.min_pass_rate is not None:
                rate = own.good / own.graded if own.graded else None
                yield GateResult(self._suite, "pass rate", gate.min_pass_rate, rate, model, graded=own.graded)
