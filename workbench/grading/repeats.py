"""Results of cases: the runs of a case with one model, combined by the rule `every`, `last`, `mean` or `majority`."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from operator import attrgetter, itemgetter
from typing import Protocol, TypeVar

from workbench.dataclasses import dataclass
from workbench.grading.grade import ArgumentVerdict, Grade, RunResult
from workbench.grading.lazy_sequences import CodedColumn, LazySequence
from workbench.grading.scoring import ROUNDING_SLACK, known_values, mean, verdict_of
from workbench.grading.status import PASS_SCORE, Status, passed_or_failed
from workbench.numerals import counted
from workbench.suite.grading_model import RepeatRule
from workbench.suite.settings import Grading


class GradedRun(Protocol):
    """A run with the fields that the rules for repeats read, such as a `RunResult` or a `RunSummary`."""

    @property
    def repeat(self) -> int: ...
    @property
    def status(self) -> Status: ...
    @property
    def score(self) -> float | None: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def is_broken(self) -> bool: ...
    @property
    def grading(self) -> Grading: ...


@dataclass(frozen=True, slots=True)
class JoinedResult:
    """The combined result of a case with one model, without the runs. `CaseResult` explains the fields."""

    rule: RepeatRule
    status: Status
    score: float | None
    deviation: float | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class ArgumentStatistics:
    """Statistics of the credit that one argument earned in each graded run, over all pairs of calls.

    `scores` has each run's mean over its pairs, or 0 for a run without a pair. `normalised` has the scores divided by
    the weight, or 0 for a weight of 0. Deviations are population standard deviations. `weight` is the mean of the runs'
    weights other than 0. These are the statistics of Arcade evals over several runs."""

    argument: str
    scores: tuple[float, ...]
    mean_score: float
    deviation: float
    normalised: tuple[float, ...]
    mean_normalised: float
    normalised_deviation: float
    weight: float


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a case with one model.

    `runs` are all runs in the order of the repeats. `rule` combines the graded runs. `score` is the mean of their
    scores, and `deviation` is the population standard deviation. Both are `None` if no run has a score.

    `reason` says why the case did not pass. With a single graded run, or under `last`, it is the reason of the last
    graded run. Otherwise, only a failed case can have a reason. It is the number of good runs under `every` if the runs
    differ, or else the reason that all runs have in common."""

    runs: tuple[RunResult, ...]
    rule: RepeatRule
    status: Status
    score: float | None
    deviation: float | None
    reason: str | None

    def __repr__(self) -> str:
        first = self.runs[0]
        result = f"status={self.status.value!r}, score={self.score}, reason={self.reason!r}"
        return f"CaseResult({first.case_id!r}, model={first.model!r}, {counted(len(self.runs), 'run')}, {result})"

    @property
    def arguments(self) -> tuple[ArgumentStatistics, ...]:
        """The credit statistics of each argument. Empty if fewer than two runs were graded."""
        if len(self.runs) < 2:
            return ()
        # This is a property and not a field, because it unpacks the grades of every run.
        graded = [run for run in self.graded if run.grader is not None]
        if len(graded) < 2:
            return ()
        return tuple(_argument_statistics([run.grade for run in graded if run.grade is not None]))

    @property
    def passed(self) -> bool:
        """Whether the case passed, with or without a warning."""
        return self.status.good

    @property
    def graded(self) -> tuple[RunResult, ...]:
        """The runs that have a verdict."""
        return tuple(graded_runs(self.runs))

    @property
    def decisive_run(self) -> RunResult:
        """The first run with the status of the case, or the first run if no run has this status."""
        for run in self.runs:
            if run.status == self.status:
                return run
        return self.runs[0]

    @property
    def grader(self) -> str | None:
        """The deciding grader of the first graded run, or `None` if no run was graded."""
        for run in self.runs:
            if run.grader is not None:
                return run.grader
        return None

    @property
    def good(self) -> int:
        """The number of runs that passed or were warned."""
        return sum(run.passed for run in self.runs)

    @property
    def is_flaky(self) -> bool:
        """Whether some of the graded runs passed or were warned, and others failed."""
        return 0 < self.good < len(self.graded)


def path_of_suite(run: RunResult) -> str:
    """Return the key that identifies the suite of a run within a batch."""
    return run.suite


def case_results(results: Sequence[RunResult], suite_of: Callable[[RunResult], str] = path_of_suite) -> LazyCaseResults:
    """Return the result of each case with each model, in the order of the first runs.

    `suite_of` returns the key of a run's suite. `results` may come from several batches: if a case has two runs with
    the same repeat number, they belong to different batches and get different results."""
    return LazyCaseResults(results, suite_of)


class LazyCaseResults(LazySequence[CaseResult]):
    """The results of cases, each computed on access. Until then, a result takes only a few bytes per run."""

    def __init__(self, results: Sequence[RunResult], suite_of: Callable[[RunResult], str]) -> None:
        self._results = results
        self._runs, self._ends = _grouped(results, suite_of)
        self._statuses: array[int] | None = None

    def __len__(self) -> int:
        return len(self._ends)

    def at(self, index: int) -> CaseResult:
        first = self._ends[index - 1] if index else 0
        return case_result([self._results[run] for run in self._runs[first : self._ends[index]]])

    def number(self, *statuses: Status) -> int:
        return sum(self._codes.count(status.urgency) for status in statuses)

    def of(self, *statuses: Status) -> Iterator[CaseResult]:
        """Yield the cases that have one of the given statuses, in the order of the statuses."""
        for status in statuses:
            for index, code in enumerate(self._codes):
                if code == status.urgency:
                    yield self.at(index)

    @property
    def repeated(self) -> Iterator[CaseResult]:
        if len(self._ends) == len(self._runs):
            return
        for index, (first, end) in enumerate(pairwise((0, *self._ends))):
            if end - first > 1:
                yield self.at(index)

    @property
    def passes(self) -> Iterator[tuple[int, int]]:
        """Yield the number of good runs (passed or warned) and the number of graded runs of each case.

        Yield nothing if no case has repeats."""
        if len(self._ends) < len(self._runs):
            for case in self:
                yield case.good, len(case.graded)

    @property
    def _codes(self) -> array[int]:
        if self._statuses is None:
            self._statuses = array("b", map(self._urgency, range(len(self))))
        return self._statuses

    def _urgency(self, index: int) -> int:
        first = self._ends[index - 1] if index else 0
        run = self._results[self._runs[first]]
        # Of all rules, only `mean` may change the status of a single run.
        if self._ends[index] - first == 1 and run.grading.repeat_rule != "mean":
            return run.status.urgency
        return self.at(index).status.urgency


# A batch may have a million runs. Groups are therefore not lists of runs but three arrays of numbers. Each pair of a
# case and a model is a cell of a table. `newest` holds the last run of each cell so far, and `starts` holds the first
# run. `following` chains every run to the next run of the same cell. Walking the chains yields the runs grouped by
# case.
def _grouped(results: Sequence[RunResult], suite_of: Callable[[RunResult], str]) -> tuple[Sequence[int], Sequence[int]]:
    """Group runs by case and model, in the order of the first runs.

    Returns the indices of the runs, grouped by case, and the end position of each group."""
    columns: CodedColumn[tuple[str, str]] = CodedColumn()
    rows: CodedColumn[str] = CodedColumn()
    for run in results:
        columns.append((suite_of(run), run.model))
        rows.append(run.case_id)
    width, size = columns.kinds, columns.kinds * rows.kinds
    # A dictionary takes more memory per cell, but none for the empty cells of a sparse table.
    newest: array[int] | dict[int, int] = defaultdict(lambda: -1)
    if size <= _SPARSE * len(results):
        newest = array("q", [-1]) * size
    following, starts = array("q", [-1]) * len(results), array("q")
    for index, (column, row) in enumerate(zip(columns.codes, rows.codes, strict=True)):
        key = row * width + column
        if (before := newest[key]) < 0:
            starts.append(index)
        else:
            following[before] = index
        newest[key] = index
    del columns, rows, newest
    groups, ends = array("q"), array("q")
    again: list[list[int]] = []
    for start in starts:
        members, index = [start], start
        while (index := following[index]) >= 0:
            members.append(index)
        first, *others = _batches(members, results)
        groups.extend(first)
        ends.append(len(groups))
        again += others
    if not again:
        return groups, ends
    # Few cases have runs from several batches. The further groups of these cases are inserted into the arrays in order.
    whole = [groups[before:end].tolist() for before, end in pairwise((0, *ends))] + again
    whole.sort(key=itemgetter(0))
    return array("q", chain.from_iterable(whole)), array("q", accumulate(map(len, whole)))


_SPARSE = 8
"""The most cells per run for which a table of cases and models is an array."""


def _batches(members: list[int], results: Sequence[RunResult]) -> list[list[int]]:
    """Divide the runs of one case into batches. No batch has two runs with the same repeat number."""
    if len(members) == 1:
        return [members]
    seen: Counter[int] = Counter()
    found: list[list[int]] = []
    for index in members:
        repeat = results[index].repeat
        if seen[repeat] == len(found):
            found.append([])
        found[seen[repeat]].append(index)
        seen[repeat] += 1
    return found


class RunOfCase(Protocol):
    """A run with the fields that identify its case."""

    @property
    def case_id(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def repeat(self) -> int: ...


_Run = TypeVar("_Run", bound=RunOfCase)
_Graded = TypeVar("_Graded", bound=GradedRun)


def runs_by_case(runs: Iterable[_Run], suite_of: Callable[[_Run], str]) -> Iterable[list[_Run]]:
    """Return the runs of each case, grouped as in `case_results`."""
    batches: Counter[tuple[str, str, str, int]] = Counter()
    groups: dict[tuple[str, str, str, int], list[_Run]] = {}
    for run in runs:
        case = (suite_of(run), run.case_id, run.model)
        groups.setdefault((*case, batches[*case, run.repeat]), []).append(run)
        batches[*case, run.repeat] += 1
    return groups.values()


def case_result(runs: Sequence[RunResult]) -> CaseResult:
    """Combine the runs of a case with one model by the rule of the last repeat. There must be at least one run.

    Without a graded run, the status is the most urgent status of the runs."""
    runs = tuple(sorted(runs, key=_by_repeat))
    result = _joined(runs)
    return CaseResult(runs, result.rule, result.status, result.score, result.deviation, result.reason)


def graded_runs(runs: Iterable[_Graded]) -> list[_Graded]:
    return [run for run in runs if run.status.graded]


def join_runs(runs: Sequence[GradedRun]) -> JoinedResult:
    """Combine runs as `case_result` does, without keeping the runs."""
    return _joined(sorted(runs, key=_by_repeat))


_by_repeat = attrgetter("repeat")


def _joined(runs: Sequence[GradedRun]) -> JoinedResult:
    """Combine runs in the order of their repeats."""
    rule = runs[-1].grading.repeat_rule
    graded = graded_runs(runs)
    if not graded:
        broken = min(runs, key=lambda run: run.status.urgency)
        return JoinedResult(rule, broken.status, None, None, broken.reason)
    scores = known_values([run.score for run in graded])
    score = deviation = None
    if scores:
        score, deviation = mean(scores), _deviation(scores)
    status = _RULES[rule](graded, score)
    return JoinedResult(rule, status, score, deviation, _reason(rule, status, graded))


def _by_every(runs: Sequence[GradedRun], score: float | None) -> Status:
    return min(runs, key=lambda run: run.status.urgency).status


def _by_last(runs: Sequence[GradedRun], score: float | None) -> Status:
    return runs[-1].status


def _by_mean(runs: Sequence[GradedRun], score: float | None) -> Status:
    """Return the status for a mean score, by the grader's own rule if it has one, otherwise by the thresholds."""
    # A run that failed for a reason other than its score fails the case. A mean would offset the failure.
    if any(run.is_broken for run in runs):
        return Status.FAILED
    if score is None:
        return Status.PASSED
    grading = runs[-1].grading
    if grading.by == "trajectory":
        return passed_or_failed(score >= 1 - ROUNDING_SLACK)
    if grading.by == "dimensions":
        return passed_or_failed(score >= PASS_SCORE - ROUNDING_SLACK)
    if grading.by == "critics" and grading.critics.arcade_compatible:
        return verdict_of(score, grading, 0.0)
    return verdict_of(score, grading)


def _by_majority(runs: Sequence[GradedRun], score: float | None) -> Status:
    # As in Arcade evals: passed if most runs passed, otherwise warned if most runs passed or warned.
    need = len(runs) // 2 + 1
    counts = Counter(run.status for run in runs)
    if counts[Status.PASSED] >= need:
        return Status.PASSED
    if counts[Status.PASSED] + counts[Status.WARNED] >= need:
        return Status.WARNED
    return Status.FAILED


_RULES: dict[RepeatRule, Callable[[Sequence[GradedRun], float | None], Status]] = {
    "every": _by_every,
    "last": _by_last,
    "mean": _by_mean,
    "majority": _by_majority,
}


def _reason(rule: RepeatRule, status: Status, graded: Sequence[GradedRun]) -> str | None:
    reasons = [run.reason for run in graded]
    if rule == "last" or len(graded) == 1:
        return reasons[-1]
    good = sum(run.status != Status.FAILED for run in graded)
    if rule == "every" and status == Status.FAILED and (good or len(set(reasons)) > 1):
        return f"{good} of {len(graded)} runs passed"
    if status == Status.FAILED and len(set(reasons)) == 1:
        return reasons[0]
    return None


def _argument_statistics(grades: Sequence[Grade]) -> Iterable[ArgumentStatistics]:
    by_run = list(map(_earned, grades))
    # A dictionary instead of a set keeps the arguments in the order of the calls.
    for argument in dict.fromkeys(chain.from_iterable(by_run)):
        scores, weights, shares = [], [], []
        for earned in by_run:
            pairs = earned.get(argument, [(0.0, 0.0)])
            score, weight = map(mean, zip(*pairs, strict=True))
            scores.append(score)
            weights.append(weight)
            shares.append(score / weight if weight else 0.0)
        yield ArgumentStatistics(
            argument,
            tuple(scores),
            mean(scores),
            _deviation(scores),
            tuple(shares),
            mean(shares),
            _deviation(shares),
            mean([weight for weight in weights if weight] or [0.0]),
        )


def _earned(grade: Grade) -> dict[str, list[tuple[float, float]]]:
    earned: dict[str, list[tuple[float, float]]] = {}
    # A grade has no numbers if a rule decided before scoring.
    if not grade.numbers:
        return earned
    for pairing in grade.pairings:
        if pairing.call is not None:
            for verdict in pairing.arguments:
                if verdict.listed:
                    earned.setdefault(verdict.argument, []).append(_share(verdict))
    return earned


def _share(verdict: ArgumentVerdict) -> tuple[float, float]:
    # Under a grader without weights of arguments, a check that holds earns 1 of 1.
    if not verdict.weight and verdict.holds is not None:
        return float(verdict.holds), 1.0
    return verdict.score, verdict.weight


def _deviation(values: Sequence[float]) -> float:
    """Return the population standard deviation, or infinity if a value is infinite."""
    centre = mean(values)
    if not math.isfinite(centre):
        return math.inf
    return math.hypot(*[value - centre for value in values]) / math.sqrt(len(values))
