"""The report of Evalite: the metadata of one score, and the average of a run."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence

from workbench.analysis.published.system import Summary, System
from workbench.checks.check import Checks, describe_whole
from workbench.grading.accuracy import EXACT, EXTRA, NAME_ONLY
from workbench.grading.grade import Grade, RunResult
from workbench.numerals import counted
from workbench.suite.model import Case, ExpectedCall
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord


def score_metadata(grade: Grade) -> dict[str, JsonValue]:
    """Returns the counts that the scorer reports with its score, under its own names. Where nothing was expected or
    nothing called there is only the number of the other side."""
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
    """Returns the calls behind the counts of flexible mode, under the scorer's names.

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
    return {"toolName": tool} if given is None else {"toolName": tool, "input": dict(given)}


def _input(record: CallRecord) -> Mapping[str, JsonValue] | None:
    """Returns the input of a call; `None` where no arguments were written."""
    return None if record.call.raw == "" else record.arguments


def _expected_input(checks: Checks) -> dict[str, JsonValue]:
    return {name: check.samples()[0] if check.is_exact else describe_whole(check) for name, check in checks.items()}


def _metadata(run: RunResult, grade: Grade, cases: Mapping[str, Case]) -> dict[str, JsonValue]:
    metadata = score_metadata(grade)
    case = cases.get(run.run_id)
    if metadata.get("mode") == "flexible" and case is not None:
        metadata["details"] = flexible_details(grade, run.trajectory.calls, case.expected_calls())
    return metadata


def _summary(runs: Sequence[RunResult], cases: Mapping[str, Case]) -> Summary:
    average = statistics.fmean(run.score or 0.0 for run in runs)
    details = tuple(f"{run.case_name}: {_percent(run.score)}%" for run in runs)
    scores: list[JsonValue] = [
        {"name": run.case_name, "score": run.score, "metadata": _metadata(run, run.grade, cases)}
        for run in runs
        if run.grade is not None
    ]
    headline = f"score {_percent(average)}%, {counted(len(runs), 'eval')}"
    return Summary(headline, details, {"average": average, "evals": scores})


def _percent(score: float | None) -> int:
    """Rounds as JavaScript does, halves up."""
    return math.floor(100 * (score or 0.0) + 0.5)


SYSTEM = System(lambda runs: _summary(runs, {}), with_cases=_summary)
