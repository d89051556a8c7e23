"""The reports of the published systems on a batch: each suite in the words of the system that decides it."""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal, NamedTuple

from workbench.analysis.gates import median, mode, spread
from workbench.checks.check import Checks, describe_whole
from workbench.dataclasses import dataclass
from workbench.grading.accuracy import EXACT, EXTRA, NAME_ONLY
from workbench.grading.grade import Grade, Issue, RunResult
from workbench.grading.repeats import joined, runs_by_case
from workbench.grading.scoring import mean, verdict_of
from workbench.grading.status import Status
from workbench.grading.traits import TRAITS
from workbench.limits import MAX_DOCUMENT_RUNS
from workbench.numerals import counted, decimals
from workbench.suite.model import Case, ExpectedCall
from workbench.suite.settings import Grading
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord


@dataclass(frozen=True)
class Summary:
    """`headline` is one line without the system's name; `details` are further lines; `numbers` is a JSON object."""

    headline: str
    details: tuple[str, ...]
    numbers: Mapping[str, JsonValue]


@dataclass(frozen=True)
class System:
    """A published system.

    Its functions get graded runs of one suite to which its grader applies, at least one, each with the grader's own
    verdict as its status.

    `summary` gets the runs with one model; `with_cases`, where the system has one, replaces it and also gets the cases
    by run, as far as they are known; `comparison`, where the system has one, gets the runs with all of several models.
    """

    summary: Callable[[Sequence[RunResult]], Summary]
    comparison: Callable[[Sequence[RunResult]], Summary] | None = None
    with_cases: Callable[[Sequence[RunResult], Mapping[str, Case]], Summary] | None = None


def share(part: int, whole: int, digits: int) -> float:
    """Return a rounded percentage; 0 of nothing."""
    return round(100 * part / whole, digits) if whole else 0.0


def score_metadata(grade: Grade) -> dict[str, JsonValue]:
    """Return the counts that the scorer reports with its score, under its own names.

    Where nothing was expected or nothing called there is only the number of the other side."""
    counts = {name: int(amount) for name, amount in grade.numbers.items()}
    expected, made = counts["expected"], counts["made"]
    if not expected:
        return {"outputCount": made} if made else {}
    if not made:
        return {"referenceCount": expected}
    matched: dict[str, JsonValue] = {"exactMatches": counts["exact"], "nameOnlyMatches": counts["name_only"]}
    totals: dict[str, JsonValue] = {"reference": expected, "output": made}
    if "wrong" in counts:
        return {"mode": "exact", **matched, "wrongOrMissing": counts["wrong"], "totals": totals}
    return {"mode": "flexible", **matched, "extras": counts["extra"], "missing": counts["missing"], "totals": totals}


def flexible_details(
    grade: Grade, calls: Sequence[CallRecord], expected: Sequence[ExpectedCall]
) -> dict[str, JsonValue]:
    """Return the calls behind the counts of flexible mode, under the scorer's names.

    `missingToolCalls` has every expected call without an exact match, including those that found their name, unlike the
    count; equal ones are grouped, in the order of their first. An expected value is plain, or a check in words.
    """

    def made(outcome: str) -> list[JsonValue]:
        lines = sorted(line.call for line in grade.pairings if line.outcome == outcome and line.call is not None)
        return [_call(calls[index].tool, _input(calls[index])) for index in lines]

    missing: dict[str, list[JsonValue]] = {}
    for line in grade.pairings:
        if line.expected_call is not None and line.outcome != EXACT:
            wanted = expected[line.expected_call]
            call = _call(wanted.tool, None if wanted.args is None else _expected_input(wanted.args))
            missing.setdefault(json.dumps(call, sort_keys=True), []).append(call)
    return {
        "matches": made(EXACT),
        "nameOnlyMatches": made(NAME_ONLY),
        "extras": made(EXTRA),
        "missingToolCalls": [call for equal in missing.values() for call in equal],
    }


def _call(tool: str, given: Mapping[str, JsonValue] | None) -> JsonValue:
    if given is None:
        return {"toolName": tool}
    return {"toolName": tool, "input": dict(given)}


def _input(record: CallRecord) -> Mapping[str, JsonValue] | None:
    """Return the input of a call; `None` where no arguments were written."""
    return None if record.call.raw == "" else record.arguments


def _expected_input(checks: Checks) -> dict[str, JsonValue]:
    return {name: check.samples()[0] if check.is_exact else describe_whole(check) for name, check in checks.items()}


def _metadata(run: RunResult, grade: Grade, cases: Mapping[str, Case]) -> dict[str, JsonValue]:
    metadata = score_metadata(grade)
    case = cases.get(run.run_id)
    if metadata.get("mode") == "flexible" and case is not None:
        metadata["details"] = flexible_details(grade, run.trajectory.calls, case.expected_calls())
    return metadata


def _accuracy_summary(runs: Sequence[RunResult], cases: Mapping[str, Case]) -> Summary:
    average = statistics.fmean(run.score or 0.0 for run in runs)
    details = tuple(f"{run.case_name}: {_percent(run.score)}%" for run in runs)
    scores: list[JsonValue] = []
    for run in runs:
        if run.grade is not None:
            scores.append({"name": run.case_name, "score": run.score, "metadata": _metadata(run, run.grade, cases)})
    headline = f"score {_percent(average)}%, {counted(len(runs), 'eval')}"
    return Summary(headline, details, {"average": average, "evals": scores})


def _percent(score: float | None) -> int:
    """Round as JavaScript does, halves up."""
    return math.floor(100 * (score or 0.0) + 0.5)


_ACCURACY = System(lambda runs: _accuracy_summary(runs, {}), with_cases=_accuracy_summary)


TIE = "Tie"
"""Shown as the best model of a case where several reached the highest score."""


def _critics_summary(runs: Sequence[RunResult]) -> Summary:
    cases = _cases(runs)
    counts = {}
    for status in Status:
        if status.graded:
            counts[status] = sum(case.status == status for case in cases)
    rate = pass_rate(cases)
    statuses = ", ".join(f"{count} {status}" for status, count in counts.items() if count or status != Status.WARNED)
    scores: list[JsonValue] = []
    for case in cases:
        scores.append({"case": case.case_id, "status": case.status, "score": percent(case)})
    without = f", {Status.WARNED.counted} not counted" if counts[Status.WARNED] else ""
    return Summary(
        f"{counted(len(cases), 'case')}, {statuses}, pass rate {rate:.2f}%{without}",
        tuple(f"{case.case_id}: {percent(case):.2f}%, {case.status}" for case in cases),
        {
            "total": len(cases),
            **{status.total: count for status, count in counts.items()},
            "pass_rate": rate,
            "cases": scores,
        },
    )


@dataclass(frozen=True, slots=True)
class _Run:
    """A run by its score alone, because the system has no requirements besides it."""

    suite: str
    case_id: str
    model: str
    repeat: int
    status: Status
    score: float | None
    grading: Grading
    reason: str | None = None
    is_broken: bool = False


class _Case(NamedTuple):
    """A case with one model."""

    case_id: str
    model: str
    status: Status
    score: float | None


def _cases(runs: Sequence[RunResult]) -> list[_Case]:
    small = (
        _Run(run.suite, run.case_id, run.model, run.repeat, _status(run), run.score, _by_own_rules(run.grading))
        for run in runs
    )
    groups = ((group[0], joined(group)) for group in runs_by_case(small, lambda run: run.suite))
    return [_Case(first.case_id, first.model, come_to.status, come_to.score) for first, come_to in groups]


def _status(run: RunResult) -> Status:
    """Return the system's status of a run.

    What a rule decided before scoring, which has no sums, stands."""
    if run.grade is None or run.score is None or not run.grade.numbers:
        return run.status
    return verdict_of(run.score, _by_own_rules(run.grading), slack=0.0)


def _by_own_rules(grading: Grading) -> Grading:
    """Return the options with the system's rule for repeats and its use of the thresholds.

    The system's default replaces Workbench's own rule. A run passes from the fail threshold on; a warning needs a lower
    one."""
    warn_threshold = min(grading.warn_threshold, grading.fail_threshold)
    rule = "last" if grading.repeat_rule == "every" else grading.repeat_rule
    return replace(grading, repeat_rule=rule, warn_threshold=warn_threshold)


def pass_rate(cases: Sequence[_Case]) -> float:
    """Return passed cases of all, in percent with two digits.

    A warned case has not passed."""
    return share(sum(case.status == Status.PASSED for case in cases), len(cases), 2)


def percent(case: _Case) -> float:
    """Return a case's score in percent with two digits; negative infinity is shown as the smallest number."""
    return round(max(100 * (case.score or 0.0), -sys.float_info.max), 2)


def _comparison(runs: Sequence[RunResult]) -> Summary:
    by_model: dict[str, list[_Case]] = {}
    by_case: dict[str, list[_Case]] = {}
    for case in _cases(runs):
        by_model.setdefault(case.model, []).append(case)
        by_case.setdefault(case.case_id, []).append(case)
    rates = {model: pass_rate(cases) for model, cases in by_model.items()}
    best = max(rates, key=lambda model: rates[model])
    winners = {name: _best_of(cases) for name, cases in by_case.items()}
    alike = len({frozenset(case.case_id for case in cases) for cases in by_model.values()}) == 1
    return Summary(
        f"best model {best}, pass rate {rates[best]:.2f}%{'' if alike else ', the cases of the models differ'}",
        tuple(f"{name}: {winner}" for name, winner in winners.items()),
        {"best_model": best, "pass_rates": dict(rates), "best_by_case": dict(winners)},
    )


def _best_of(cases: Sequence[_Case]) -> str:
    highest = max(percent(case) for case in cases)
    models = dict.fromkeys(case.model for case in cases if percent(case) == highest)
    return next(iter(models)) if len(models) == 1 else TIE


_CRITICS = System(_critics_summary, _comparison)


MIN_FOR_PERCENTILES = 20
"""With fewer values none lies beyond the 95th percentile."""


@dataclass(frozen=True)
class PrintedLatency:
    """Milliseconds of single answers of the model.

    `p95` is the published system's own: see `printed_latency`."""

    mean: float
    p50: float
    p95: float
    max: float
    answers: int

    @property
    def has_percentiles(self) -> bool:
        """Whether there are enough answers for percentiles: of two, this p95 is the smaller one, and below p50."""
        return self.answers >= MIN_FOR_PERCENTILES

    def __str__(self) -> str:
        percentiles = f", p50 {self.p50:.1f}, p95 {self.p95:.1f}" if self.has_percentiles else ""
        return f"latency mean {self.mean:.1f}{percentiles}, max {self.max:.1f} ms"


def printed_latency(latencies_ms: Sequence[float]) -> PrintedLatency:
    """Return the latency statistics of some answers.

    Raises ValueError without any.

    The 95th percentile is the value before the one at 95% of the sorted list: of two values the smaller one, of twenty
    the 19th. That is how the published system counts; the totals of a batch use the nearest rank.
    """
    if not latencies_ms:
        raise ValueError("no latencies")
    ascending = sorted(latencies_ms)
    number = len(ascending)
    return PrintedLatency(
        statistics.fmean(ascending),
        statistics.median(ascending),
        ascending[int(0.95 * number) - 1] if number > 1 else ascending[0],
        ascending[-1],
        number,
    )


def overall_score(scores: Sequence[float]) -> float:
    """Return the mean of the scores of all examples, or of all chains however many steps they have; 0 without any."""
    return statistics.fmean(scores) if scores else 0.0


def _decision_summary(runs: Sequence[RunResult]) -> Summary:
    score = overall_score([run.score or 0.0 for run in runs])
    answers = (round_ for run in runs for round_ in run.trajectory.rounds)
    latencies = []
    for round_ in answers:
        if round_.latency_ms is not None:
            latencies.append(round_.latency_ms)
    headline = f"overall score {score:.3f} of {counted(len(runs), 'example')}"
    if not latencies:
        return Summary(headline, (), {"score": score, "examples": len(runs), "latency": None})
    latency = printed_latency(latencies)
    percentiles = (latency.p50, latency.p95) if latency.has_percentiles else (None, None)
    printed = {"mean": latency.mean, "p50": percentiles[0], "p95": percentiles[1], "max": latency.max}
    return Summary(f"{headline}, {latency}", (), {"score": score, "examples": len(runs), "latency": {**printed}})


_DECISION = System(_decision_summary)


Group = Literal["param_errors", "wrong_tool", "missing_tool", "over_calling"]

ADVICE: dict[Group, tuple[str, str]] = {
    "param_errors": (
        "improve_param_descriptions",
        "parameters went wrong: describe them better, with examples",
    ),
    "wrong_tool": (
        "disambiguate_tool_descriptions",
        "tools were confused: say in their descriptions what tells similar ones apart",
    ),
    "missing_tool": (
        "add_trigger_phrases",
        "tools were not called: say in their descriptions when to use them",
    ),
    "over_calling": (
        "curb_unnecessary_calls",
        "tools were called needlessly: say when not to call them",
    ),
}
"""The groups of failures in the order of the report, each with the code of its advice and its text."""

_GROUP_OF: dict[str, Group] = {
    "missing argument": "param_errors",
    "wrong argument": "param_errors",
    "forbidden argument": "param_errors",
    "invalid argument": "param_errors",
    "extra call": "wrong_tool",
    "missing call": "missing_tool",
    "over calling": "over_calling",
}


@dataclass(frozen=True)
class GradedTest:
    """One test, its numbers already rounded to three digits as the published system does."""

    test_id: str
    passed: bool
    score: float
    precision: float
    recall: float
    parameters: float
    latency_ms: float
    groups: frozenset[Group] = frozenset()


def graded_test(run: RunResult) -> GradedTest:
    """Return a run that `dimensions` graded as a test of the published system."""
    grade = run.grade
    assert grade is not None and grade.score is not None
    numbers = {}
    for name, amount in grade.numbers.items():
        numbers[name] = round(amount, 3)
    return GradedTest(
        run.case_id,
        grade.verdict == Status.PASSED,
        round(grade.score, 3),
        numbers["precision"],
        numbers["recall"],
        numbers["parameters"],
        grade.numbers["latency_ms"],
        frozenset(group for issue in grade.issues if (group := _group(grade, issue)) is not None),
    )


def _group(grade: Grade, issue: Issue) -> Group | None:
    # A call where none is expected is a call too many; any other unaccounted call is one of a wrong tool.
    if issue.kind == "extra call" and all(line.expected_call is None for line in grade.pairings):
        return "over_calling"
    return _GROUP_OF.get(issue.kind)


def suite_report(tests: Sequence[GradedTest]) -> dict[str, JsonValue]:
    """Return counts and means; everything is 0 without tests."""
    passed = sum(test.passed for test in tests)
    number = len(tests) or 1
    return {
        "total": len(tests),
        "passed": passed,
        "failed": len(tests) - passed,
        "pass_rate": share(passed, len(tests), 1),
        "avg_score": round(sum(test.score for test in tests) / number, 3),
        "avg_precision": round(sum(test.precision for test in tests) / number, 3),
        "avg_recall": round(sum(test.recall for test in tests) / number, 3),
        "avg_param_accuracy": round(sum(test.parameters for test in tests) / number, 3),
        "avg_latency_ms": round(sum(test.latency_ms for test in tests) / number),
        "failures": list(dict.fromkeys(test.test_id for test in tests if not test.passed)),
    }


def failure_analysis(tests: Sequence[GradedTest]) -> dict[str, JsonValue]:
    """Return the ids of the failed tests by group, and the codes of the advice; a message when nothing failed."""
    failed = [test for test in tests if not test.passed]
    if not failed:
        return {"message": "no_failures"}
    groups = {}
    for group in ADVICE:
        groups[group] = dict.fromkeys(test.test_id for test in failed if group in test.groups)
    return {
        **{group: list(ids) for group, ids in groups.items()},
        "recommendations": [code for group, (code, _) in ADVICE.items() if groups[group]],
    }


def _dimensions_summary(runs: Sequence[RunResult]) -> Summary:
    tests = [graded_test(run) for run in runs]
    report, analysis = suite_report(tests), failure_analysis(tests)
    headline = (
        f"{report['passed']} of {report['total']} passed ({report['pass_rate']}%), score {report['avg_score']},"
        f" precision {report['avg_precision']}, recall {report['avg_recall']},"
        f" parameters {report['avg_param_accuracy']}, {report['avg_latency_ms']} ms"
    )
    of_groups = [("failed", report["failures"]), *((advice, analysis.get(key)) for key, (_, advice) in ADVICE.items())]
    details = (f"{what}: {', '.join(map(str, ids))}" for what, ids in of_groups if isinstance(ids, list) and ids)
    return Summary(headline, tuple(details), {**report, "analysis": analysis})


_DIMENSIONS = System(_dimensions_summary)


def _trajectory_summary(runs: Sequence[RunResult]) -> Summary:
    all_pass = [float(run.status == Status.PASSED) for run in runs]
    percentages = [run.score or 0.0 for run in runs]
    passed = sum(run.status == Status.PASSED for run in runs)
    headline = f"{passed} of {len(runs)} all pass, percentage mean {decimals(mean(percentages))}"
    statistics = ", ".join(f"{name} {_figure(value)}" for name, value in _statistics(percentages).items())
    numbers: dict[str, JsonValue] = {
        "samples": len(runs),
        "all_pass": {**_statistics(all_pass)},
        "percentage": {**_statistics(percentages)},
    }
    return Summary(headline, (f"percentage: {statistics}",), numbers)


def _statistics(values: Sequence[float]) -> dict[str, float | None]:
    return {
        "mean": mean(values),
        "median": median(values),
        "mode": mode(values),
        "minimum": min(values),
        "maximum": max(values),
        "spread": spread(values),
    }


def _figure(value: float | None) -> str:
    return "–" if value is None else decimals(value)


_TRAJECTORY = System(_trajectory_summary)


_NO_CASES: Mapping[str, Case] = MappingProxyType({})


@dataclass(frozen=True)
class PublishedReport:
    """A system's report of the runs of one suite with one model, or a comparison of its models if `model` is `None`.

    `suite` is the suite's path."""

    suite: str
    model: str | None
    grader: str
    system: str
    summary: Summary


def _by_its_grader(run: RunResult, verdict: Status) -> RunResult:
    if run.status == verdict:
        return run
    return run.with_status(verdict)


def _as_published(run: RunResult) -> RunResult:
    """Return the run with the grade that the system gives where the suite frees surplus calls."""
    if not run.has_free_calls:
        return run
    grade = run.grade
    assert grade is not None and grade.published is not None
    return replace(run, grades=(Grade(*grade.published), *run.grades[1:]))


def published_reports(results: Sequence[RunResult], cases: Mapping[str, Case] = _NO_CASES) -> Iterator[PublishedReport]:
    """Return the reports on a batch, suite by suite in the order of the runs.

    `cases` are those of the runs, by run.

    Runs count by the verdict of the deciding grader, because the published systems have no requirements besides it.
    Runs that were not graded, or to which it does not apply, are left out. Of more than `MAX_DOCUMENT_RUNS` runs
    there are none.
    """
    if len(results) > MAX_DOCUMENT_RUNS:
        return
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for run in map(_as_published, results):
        grader, verdict = run.grader, run.verdict
        if grader is not None and isinstance(verdict, Status) and verdict.graded:
            groups.setdefault((run.suite, grader), []).append(_by_its_grader(run, verdict))
    for (suite, grader), runs in groups.items():
        system = system_of(grader)
        models = dict.fromkeys(run.model for run in runs)
        for model in models:
            mine = [run for run in runs if run.model == model]
            summary = system.summary(mine) if system.with_cases is None else system.with_cases(mine, cases)
            yield PublishedReport(suite, model, grader, TRAITS[grader].system, summary)
        if len(models) > 1 and system.comparison is not None:
            yield PublishedReport(suite, None, grader, TRAITS[grader].system, system.comparison(runs))


_SYSTEMS: Mapping[str, System] = {
    "critics": _CRITICS,
    "decision": _DECISION,
    "accuracy": _ACCURACY,
    "trajectory": _TRAJECTORY,
    "dimensions": _DIMENSIONS,
}


def system_of(grader: str) -> System:
    """Return the report of the published system that a grader follows.

    Raises ValueError for an unknown grader."""
    if grader not in _SYSTEMS:
        raise ValueError(f"no published system has a grader {grader!r}")
    return _SYSTEMS[grader]
