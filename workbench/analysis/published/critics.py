"""The summary of Arcade evals: pass rate and scores in percent, and the best model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from workbench.analysis.published.system import Summary, System, share
from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.grading.repeats import joined, runs_by_case
from workbench.grading.scoring import verdict_of
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.suite.settings import Grading
from workbench.trajectory.events import JsonValue

TIE = "Tie"
"""Shown as the best model of a case where several reached the highest score."""


def _summary(runs: Sequence[RunResult]) -> Summary:
    cases = _cases(runs)
    counts = {status: sum(case.status == status for case in cases) for status in Status if status.graded}
    rate = pass_rate(cases)
    statuses = ", ".join(f"{count} {status}" for status, count in counts.items() if count or status != Status.WARNED)
    scores: list[JsonValue] = [{"case": case.case_id, "status": case.status, "score": percent(case)} for case in cases]
    without = " without the warned" if counts[Status.WARNED] else ""
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
    """Return the system's status of a run. What a rule decided before scoring, which has no sums, stands."""
    if run.grade is None or run.score is None or not run.grade.numbers:
        return run.status
    return verdict_of(run.score, _by_own_rules(run.grading), slack=0.0)


def _by_own_rules(grading: Grading) -> Grading:
    """Return the options with a rule for repeats that the system has, its default in place of Workbench's own, and with
    its use of the thresholds: from the fail threshold on a run has passed, and a warning needs a lower one."""
    warn_threshold = min(grading.warn_threshold, grading.fail_threshold)
    rule = "last" if grading.repeat_rule == "every" else grading.repeat_rule
    return replace(grading, repeat_rule=rule, warn_threshold=warn_threshold)


def pass_rate(cases: Sequence[_Case]) -> float:
    """Returns passed cases of all, in percent with two digits. A warned case has not passed."""
    return share(sum(case.status == Status.PASSED for case in cases), len(cases), 2)


def percent(case: _Case) -> float:
    """Returns a case's score in percent with two digits; negative infinity is shown as the smallest number."""
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


SYSTEM = System(_summary, _comparison)
