"""What the latest runs of a case come to together, which of them speak for it, and how many runs ended how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.grading.grade import Status, disagree
from workbench.grading.repeats import case_result, case_results
from workbench.tui.state.run_record import RunKind, RunRecord, Stage

_WORST_FIRST: tuple[Status, ...] = ("error", "failed", "warned", "stopped", "skipped", "passed")


@dataclass(frozen=True)
class CaseSummary:
    """A case at a glance: the worst status and the lowest score among its models, and how far its runs are.

    A model counts with what its repeats come to by the case's rule.
    """

    status: Status | None = None
    score: float | None = None
    stage: Stage | None = None
    held: bool = False
    disagree: bool = False
    """Whether one of those runs would fail under one grader, and not under another."""


NEVER_RUN = CaseSummary()


@dataclass(frozen=True)
class Counts:
    """The latest runs by status, and those under way."""

    passed: int = 0
    warned: int = 0
    failed: int = 0
    error: int = 0
    skipped: int = 0
    stopped: int = 0
    running: int = 0
    waiting: int = 0
    held: int = 0
    """Of those that run, those that wait for a person."""


def deciding_run(runs: Sequence[RunRecord]) -> int:
    """Which of a case's runs to look at first: of the first model the last repeat that ended as the case did by its
    rule; the last repeat while there is none."""
    of_model = [index for index, run in enumerate(runs) if _is_like(run, runs[0])]
    ended = [(index, result) for index in of_model if (result := runs[index].result) is not None]
    status = case_result([result for _, result in ended]).status if len(ended) == len(of_model) > 0 else None
    return max((index for index, result in ended if result.status == status), default=max(of_model, default=0))


def _is_like(run: RunRecord, other: RunRecord) -> bool:
    return (run.model, run.recorded) == (other.model, other.recorded)


def counting(runs: Mapping[RunKind, RunRecord]) -> list[RunRecord]:
    """The runs that speak for a case: recorded ones only where there are no others."""
    made = [run for run in runs.values() if not run.recorded]
    return made or list(runs.values())


def summarised(runs: Sequence[RunRecord]) -> CaseSummary:
    """What these runs of one case come to together."""
    stages = {run.stage for run in runs}
    stage: Stage = "running" if "running" in stages else "waiting" if "waiting" in stages else "done"
    results = [run.result for run in runs if run.result is not None]
    models = case_results(results)
    statuses = {model.status for model in models}
    worst = next((status for status in _WORST_FIRST if status in statuses), None)
    scores = [model.score for model in models if model.score is not None]
    at_odds = any(disagree(result.grades) for result in results)
    return CaseSummary(worst, min(scores, default=None), stage, any(run.held for run in runs), at_odds)
