"""The reports of published evaluation systems. Each suite is reported as in the system of its deciding grader.

The names, the rounding and the order of the figures are those of the published systems, including their oddities."""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Literal, NamedTuple

from workbench.analysis.gates import median, mode, spread
from workbench.checks.check import Checks, describe_whole
from workbench.dataclasses import cached_by_identity, dataclass
from workbench.grading.accuracy import EXACT, EXTRA, NAME_ONLY
from workbench.grading.grade import Grade, RunResult
from workbench.grading.repeats import join_runs, runs_by_case
from workbench.grading.scoring import mean, verdict_of
from workbench.grading.status import Status
from workbench.grading.traits import TRAITS
from workbench.limits import MAX_DOCUMENT_RUNS
from workbench.numerals import counted, decimals
from workbench.suite.expected_calls import ExpectedCall
from workbench.suite.model import Case
from workbench.suite.settings import Grading
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord


@dataclass(frozen=True)
class Summary:
    """The text and the numbers of a report.

    `headline` is one line without the system's name. `details` are further lines. `numbers` is a JSON object."""

    headline: str
    details: tuple[str, ...]
    numbers: Mapping[str, JsonValue]


@dataclass(frozen=True)
class PublishedSystem:
    """The functions that make the reports of a published system.

    Each function receives one or more graded runs of one suite. The system's grader applies to all these runs, and the
    status of each run is the grader's verdict. `summary` receives the runs with one model. If `with_cases` is set, it
    replaces `summary` and also receives the known cases by run id. `comparison` receives the runs with several
    models."""

    summary: Callable[[Sequence[RunResult]], Summary]
    comparison: Callable[[Sequence[RunResult]], Summary] | None = None
    with_cases: Callable[[Sequence[RunResult], Mapping[str, Case]], Summary] | None = None

    def report(self, runs: Sequence[RunResult], cases: Mapping[str, Case]) -> Summary:
        """Return the report on the runs with one model. `cases` holds the known cases by run id."""
        if self.with_cases is not None:
            return self.with_cases(runs, cases)
        return self.summary(runs)


def percentage(part: int, whole: int, digits: int) -> float:
    """Return `part` of `whole` as a percentage, rounded to `digits` decimals, or 0 if `whole` is 0."""
    return round(100 * part / whole, digits) if whole else 0.0


def score_metadata(grade: Grade) -> dict[str, JsonValue]:
    """Return the metadata that the published `accuracy` scorer adds to its score.

    If there are either only expected calls or only made calls, the metadata is a warning with the number of these
    calls. If there are no calls at all, the metadata is a note."""
    counts = {name: int(amount) for name, amount in grade.numbers.items()}
    expected, made = counts["expected"], counts["made"]
    if not expected and not made:
        return {"note": "Both empty - perfect match"}
    if not expected:
        return {"warning": "Reference tool calls are empty but predictions exist", "outputCount": made}
    if not made:
        return {"warning": "No tool calls found in output", "referenceCount": expected}
    matched: dict[str, JsonValue] = {"exactMatches": counts["exact"], "nameOnlyMatches": counts["name_only"]}
    totals: dict[str, JsonValue] = {"reference": expected, "output": made}
    if "wrong" in counts:
        return {"mode": "exact", **matched, "wrongOrMissing": counts["wrong"], "totals": totals}
    return {"mode": "flexible", **matched, "extras": counts["extra"], "missing": counts["missing"], "totals": totals}


def flexible_details(
    grade: Grade, calls: Sequence[CallRecord], expected: Sequence[ExpectedCall]
) -> dict[str, JsonValue]:
    """Return the calls that the scorer's flexible mode counts, under its own names.

    Unlike the count of missing calls, `missingToolCalls` also has the expected calls matched only by name. Equal calls
    are grouped in the order of their first occurrence. An expected value is a plain value or a check in words."""

    def made(outcome: str) -> list[JsonValue]:
        indices = []
        for line in grade.pairings:
            if line.outcome == outcome and line.call is not None:
                indices.append(line.call)
        found = []
        for index in sorted(indices):
            found.append(_call(calls[index].tool, _input(calls[index])))
        return found

    missing: dict[str, list[JsonValue]] = {}
    for line in grade.pairings:
        if line.expected_call is not None and line.outcome != EXACT:
            wanted = expected[line.expected_call].alternatives[0]
            call = _call(wanted.tool, None if wanted.args is None else _expected_input(wanted.args))
            missing.setdefault(json.dumps(call, sort_keys=True), []).append(call)
    return {
        "matches": made(EXACT),
        "nameOnlyMatches": made(NAME_ONLY),
        "extras": made(EXTRA),
        "missingToolCalls": list(chain.from_iterable(missing.values())),
    }


def _call(tool: str, given: Mapping[str, JsonValue] | None) -> JsonValue:
    if given is None:
        return {"toolName": tool}
    return {"toolName": tool, "input": dict(given)}


def _input(record: CallRecord) -> Mapping[str, JsonValue] | None:
    return None if record.call.raw == "" else record.arguments


def _expected_input(checks: Checks) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for name, check in checks.items():
        found[name] = check.samples()[0] if check.is_exact else describe_whole(check)
    return found


def _metadata(run: RunResult, grade: Grade, cases: Mapping[str, Case]) -> dict[str, JsonValue]:
    metadata = score_metadata(grade)
    case = cases.get(run.run_id)
    if metadata.get("mode") == "flexible" and case is not None:
        metadata["details"] = flexible_details(grade, run.trajectory.calls, case.expected_calls())
    return metadata


def _accuracy_summary(runs: Sequence[RunResult], cases: Mapping[str, Case]) -> Summary:
    every: list[float] = []
    details: list[str] = []
    evals: list[JsonValue] = []
    for run in runs:
        scores = _eval_scores(run)
        every += scores.values()
        of_eval = statistics.fmean(scores.values())
        details.append(f"{run.case_name}: {_percent(of_eval)}%")
        found: dict[str, JsonValue] = {"name": run.case_name, "score": of_eval}
        if len(scores) > 1:
            found["scores"] = dict(scores)
        if run.grade is not None and "expected" in run.grade.numbers:
            found["metadata"] = _metadata(run, run.grade, cases)
        evals.append(found)
    # The average is over all scores, so an eval with more scorers weighs more.
    average = statistics.fmean(every)
    headline = f"score {_percent(average)}%, {counted(len(runs), 'eval')}"
    return Summary(headline, tuple(details), {"average": average, "evals": evals})


_CALLS_SCORER = "Tool Call Accuracy"


def _eval_scores(run: RunResult) -> dict[str, float]:
    scores: dict[str, float] = {}
    grade = run.grade
    if grade is None or "expected" in grade.numbers:
        own = run.score if grade is None else grade.numbers.get("calls", grade.score)
        scores[_CALLS_SCORER] = own or 0.0
    for metric in run.metrics:
        # Metrics about other subjects are scores of the system that made the run.
        if metric.about is None:
            scores[metric.name] = metric.value
    return scores


def _scores(runs: Iterable[RunResult]) -> list[float]:
    return [run.score or 0.0 for run in runs]


def _percent(score: float | None) -> int:
    # The scorer rounds as JavaScript does: halves go up. Python's `round` would round 0.5 to 0.
    return math.floor(100 * (score or 0.0) + 0.5)


_ACCURACY = PublishedSystem(lambda runs: _accuracy_summary(runs, {}), with_cases=_accuracy_summary)


TIE = "Tie"
"""The value of "best model" for a case with several models at the highest score."""


def _critics_summary(runs: Sequence[RunResult]) -> Summary:
    cases = _cases(runs)
    statuses = Counter(case.status for case in cases)
    rate = pass_rate(cases)
    headline = [counted(len(cases), "case")]
    totals: dict[str, JsonValue] = {}
    for status in Status:
        if status.graded:
            totals[status.total] = statuses[status]
            if statuses[status] or status != Status.WARNED:
                headline.append(f"{statuses[status]} {status}")
    headline.append(f"pass rate {rate:.2f}%")
    if statuses[Status.WARNED]:
        headline.append(f"{Status.WARNED.counted} not counted")
    details = []
    scores: list[JsonValue] = []
    for case in cases:
        score = score_percent(case)
        details.append(f"{case.case_id}: {score:.2f}%, {case.status}")
        scores.append({"case": case.case_id, "status": case.status, "score": score})
    numbers = {"total": len(cases), **totals, "pass_rate": rate, "cases": scores}
    return Summary(", ".join(headline), tuple(details), numbers)


@dataclass(frozen=True, slots=True)
class _Run:
    """A run reduced to its score, because the published system has no other requirements."""

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
    case_id: str
    model: str
    status: Status
    score: float | None


def _cases(runs: Sequence[RunResult]) -> list[_Case]:
    small = []
    for run in runs:
        grading = _by_own_rules(run.grading)
        small.append(_Run(run.suite, run.case_id, run.model, run.repeat, _status(run), run.score, grading))
    cases = []
    for group in runs_by_case(small, lambda run: run.suite):
        come_to = join_runs(group)
        cases.append(_Case(group[0].case_id, group[0].model, come_to.status, come_to.score))
    return cases


def _status(run: RunResult) -> Status:
    # A grade has no numbers if a rule decided before scoring. The status of the run then stands.
    if run.grade is None or run.score is None or not run.grade.numbers:
        return run.status
    return verdict_of(run.score, _by_own_rules(run.grading), slack=0.0)


def _with_own_rules(grading: Grading) -> Grading:
    # In the published system, a run passes from the fail threshold on. A run can only be warned if the warn threshold
    # is below it.
    warn_threshold = min(grading.warn_threshold, grading.fail_threshold)
    # The system has no rule `every`, which is Workbench's default. Its own default, `last`, takes this place.
    rule = "last" if grading.repeat_rule == "every" else grading.repeat_rule
    return replace(grading, repeat_rule=rule, warn_threshold=warn_threshold)


_by_own_rules: Callable[[Grading], Grading] = cached_by_identity(_with_own_rules)


def pass_rate(cases: Sequence[_Case]) -> float:
    """Return the share of passed cases in percent with two digits. Warned cases do not count as passed."""
    return percentage(sum(case.status == Status.PASSED for case in cases), len(cases), 2)


def score_percent(case: _Case) -> float:
    # JSON has no infinity: a score of minus infinity becomes the smallest number.
    return round(max(100 * (case.score or 0.0), -sys.float_info.max), 2)


def _comparison(runs: Sequence[RunResult]) -> Summary:
    by_model: dict[str, list[_Case]] = {}
    by_case: dict[str, list[_Case]] = {}
    for case in _cases(runs):
        by_model.setdefault(case.model, []).append(case)
        by_case.setdefault(case.case_id, []).append(case)
    rates = {model: pass_rate(cases) for model, cases in by_model.items()}
    best = max(rates, key=rates.__getitem__)
    headline = f"best model {best}, pass rate {rates[best]:.2f}%"
    # The headline notes the difference, because a model that did not run the hard cases looks better than it is.
    if any(len(cases) != len(by_model) for cases in by_case.values()):
        headline += ", the cases of the models differ"
    winners = {}
    details = []
    for name, cases in by_case.items():
        winners[name] = _best_of(cases)
        details.append(f"{name}: {winners[name]}")
    numbers: dict[str, JsonValue] = {"best_model": best, "pass_rates": dict(rates), "best_by_case": dict(winners)}
    return Summary(headline, tuple(details), numbers)


def _best_of(cases: Sequence[_Case]) -> str:
    highest = max(map(score_percent, cases))
    models = {case.model for case in cases if score_percent(case) == highest}
    return models.pop() if len(models) == 1 else TIE


_CRITICS = PublishedSystem(_critics_summary, _comparison)


MIN_FOR_PERCENTILES = 20
"""The fewest values for which one value lies beyond the 95th percentile."""


@dataclass(frozen=True)
class PrintedLatency:
    """The latencies of a model's single answers, in milliseconds.

    `p95` is computed as the published system does (see `printed_latency`)."""

    mean: float
    p50: float
    p95: float
    max: float
    answers: int

    @property
    def has_percentiles(self) -> bool:
        """Whether there are enough answers for percentiles.

        With only two answers, the system's p95 is below its p50."""
        return self.answers >= MIN_FOR_PERCENTILES

    def __str__(self) -> str:
        percentiles = ""
        if self.has_percentiles:
            percentiles = f", p50 {self.p50:.1f}, p95 {self.p95:.1f}"
        return f"latency mean {self.mean:.1f}{percentiles}, max {self.max:.1f} ms"


def printed_latency(latencies_ms: Sequence[float]) -> PrintedLatency:
    """Return the latency statistics of answers as the published system computes them.

    The system's 95th percentile is the value at position `int(0.95 * n)`, counted from 1. For two values, it is the
    first value, and for twenty the 19th. The totals of a batch use the nearest rank instead. Raises ValueError without
    values."""
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
    """Return the mean score of examples, or 0 without examples. A chain counts as one example."""
    return statistics.fmean(scores) if scores else 0.0


def _decision_summary(runs: Sequence[RunResult]) -> Summary:
    score = overall_score(_scores(runs))
    latencies = []
    for run in runs:
        for round_ in run.trajectory.rounds:
            if round_.latency_ms is not None:
                latencies.append(round_.latency_ms)
    chains = [len(run.steps) for run in runs if run.steps]
    counts = []
    if len(chains) < len(runs):
        counts.append(counted(len(runs) - len(chains), "example"))
    if chains:
        counts.append(f"{counted(len(chains), 'chain')} of {counted(sum(chains), 'step')}")
    numbers: dict[str, JsonValue] = {"score": score, "examples": len(runs), "latency": None}
    if chains:
        numbers |= {"chains": len(chains), "steps": sum(chains)}
    headline = f"overall score {score:.3f} of {' and '.join(counts)}"
    if not latencies:
        return Summary(headline, (), numbers)
    latency = printed_latency(latencies)
    printed: dict[str, JsonValue] = {"mean": latency.mean, "p50": None, "p95": None, "max": latency.max}
    if latency.has_percentiles:
        printed.update(p50=latency.p50, p95=latency.p95)
    return Summary(f"{headline}, {latency}", (), numbers | {"latency": printed})


_DECISION = PublishedSystem(_decision_summary)


FailureGroup = Literal["param_errors", "wrong_tool", "missing_tool", "over_calling"]

ADVICE: dict[FailureGroup, tuple[str, str]] = {
    "param_errors": (
        "improve_param_descriptions",
        "parameters were wrong: describe them better, with examples",
    ),
    "wrong_tool": (
        "disambiguate_tool_descriptions",
        "tools were confused: say in their descriptions how similar tools differ",
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
"""The groups of failures in the order of the report, each with the code and the text of its advice."""

_GROUP_OF: dict[str, FailureGroup] = {
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
    """One test of the published system.

    Scores have three digits because the system rounds before it averages. `groups` are the groups of the test's
    failures."""

    test_id: str
    passed: bool
    score: float
    precision: float
    recall: float
    parameters: float
    latency_ms: float
    groups: frozenset[FailureGroup] = frozenset()


def graded_test(run: RunResult) -> GradedTest:
    """Return the test that corresponds to a run graded by `dimensions`."""
    grade = run.grade
    assert grade is not None and grade.score is not None
    return GradedTest(
        run.case_id,
        grade.verdict == Status.PASSED,
        round(grade.score, 3),
        round(grade.numbers["precision"], 3),
        round(grade.numbers["recall"], 3),
        round(grade.numbers["parameters"], 3),
        grade.numbers["latency_ms"],
        frozenset(_groups(grade)),
    )


def _groups(grade: Grade) -> Iterator[FailureGroup]:
    expects_calls = bool(grade.expected_pairings)
    for issue in grade.issues:
        # The published system counts an extra call as a wrong tool, unless no call is expected.
        if issue.kind == "extra call" and not expects_calls:
            yield "over_calling"
        elif issue.kind in _GROUP_OF:
            yield _GROUP_OF[issue.kind]


def suite_report(tests: Sequence[GradedTest]) -> dict[str, JsonValue]:
    """Return the counts and means of tests under the system's names. All are 0 without tests."""
    passed = sum(test.passed for test in tests)
    number = len(tests) or 1
    averages: dict[str, JsonValue] = {}
    for name, value in _AVERAGED.items():
        averages[name] = round(sum(map(value, tests)) / number, 3)
    failures = dict.fromkeys(test.test_id for test in tests if not test.passed)
    return {
        "total": len(tests),
        "passed": passed,
        "failed": len(tests) - passed,
        "pass_rate": percentage(passed, len(tests), 1),
        **averages,
        "avg_latency_ms": round(sum(test.latency_ms for test in tests) / number),
        "failures": list(failures),
    }


_AVERAGED: Mapping[str, Callable[[GradedTest], float]] = {
    "avg_score": lambda test: test.score,
    "avg_precision": lambda test: test.precision,
    "avg_recall": lambda test: test.recall,
    "avg_param_accuracy": lambda test: test.parameters,
}
"""The averages in the report of a suite, by the system's names."""


def failure_analysis(tests: Sequence[GradedTest]) -> dict[str, JsonValue]:
    """Return the ids of the failed tests by group, and the codes of the advice.

    If no test failed, return a message instead."""
    failed = [test for test in tests if not test.passed]
    if not failed:
        return {"message": "no_failures"}
    analysis: dict[str, JsonValue] = {}
    recommendations: list[JsonValue] = []
    for group, (code, _) in ADVICE.items():
        ids: dict[str, None] = {}
        for test in failed:
            if group in test.groups:
                ids[test.test_id] = None
        analysis[group] = list(ids)
        if ids:
            recommendations.append(code)
    return {**analysis, "recommendations": recommendations}


def _dimensions_summary(runs: Sequence[RunResult]) -> Summary:
    tests = [graded_test(run) for run in runs]
    report, analysis = suite_report(tests), failure_analysis(tests)
    headline = (
        f"{report['passed']} of {report['total']} passed ({report['pass_rate']}%), score {report['avg_score']},"
        f" precision {report['avg_precision']}, recall {report['avg_recall']},"
        f" parameters {report['avg_param_accuracy']}, {report['avg_latency_ms']} ms"
    )
    titled = {"failed": report["failures"]}
    for group, (_, advice) in ADVICE.items():
        titled[advice] = analysis.get(group)
    details = []
    for title, ids in titled.items():
        if isinstance(ids, list) and ids:
            details.append(f"{title}: {', '.join(map(str, ids))}")
    return Summary(headline, tuple(details), {**report, "analysis": analysis})


_DIMENSIONS = PublishedSystem(_dimensions_summary)


def _trajectory_summary(runs: Sequence[RunResult]) -> Summary:
    all_pass = [float(run.status == Status.PASSED) for run in runs]
    percentages = _scores(runs)
    passed = all_pass.count(1.0)
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


_TRAJECTORY = PublishedSystem(_trajectory_summary)


_NO_CASES: Mapping[str, Case] = MappingProxyType({})


@dataclass(frozen=True)
class PublishedReport:
    """A system's report on the runs of one suite with one model. `model` is `None` for all models.

    `suite` is the path of the suite."""

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
    """Return the run with the grade of the published system, which penalises every extra call."""
    if not run.has_free_calls:
        return run
    grade = run.grade
    assert grade is not None and grade.published is not None
    return replace(run, grades=(Grade(*grade.published), *run.grades[1:]))


def published_reports(results: Sequence[RunResult], cases: Mapping[str, Case] = _NO_CASES) -> Iterator[PublishedReport]:
    """Yield the published systems' reports on a batch, suite by suite in the order of the runs.

    `cases` holds the cases by run id. A run counts with the verdict of its deciding grader because the published
    systems have no other requirements. Runs that were not graded, or to which the grader does not apply, are left out.
    A batch of more than `MAX_DOCUMENT_RUNS` runs has no reports."""
    if len(results) > MAX_DOCUMENT_RUNS:
        return
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for run in map(_as_published, results):
        grader, verdict = run.grader, run.verdict
        if grader is not None and isinstance(verdict, Status) and verdict.graded:
            groups.setdefault((run.suite, grader), []).append(_by_its_grader(run, verdict))
    for (suite, grader), runs in groups.items():
        system = system_of(grader)
        models: dict[str, list[RunResult]] = {}
        for run in runs:
            models.setdefault(run.model, []).append(run)
        for model, of_model in models.items():
            yield PublishedReport(suite, model, grader, TRAITS[grader].system, system.report(of_model, cases))
        if len(models) > 1 and system.comparison is not None:
            yield PublishedReport(suite, None, grader, TRAITS[grader].system, system.comparison(runs))


_SYSTEMS: Mapping[str, PublishedSystem] = {
    "critics": _CRITICS,
    "decision": _DECISION,
    "accuracy": _ACCURACY,
    "trajectory": _TRAJECTORY,
    "dimensions": _DIMENSIONS,
}


def system_of(grader: str) -> PublishedSystem:
    """Return the published system that a grader follows.

    Raises ValueError for an unknown grader."""
    if grader not in _SYSTEMS:
        raise ValueError(f"no published system has a grader {grader!r}")
    return _SYSTEMS[grader]
