"""What the latest runs of a case, and of a step of a chain, come to together, which of them speak for it, and how many
runs ended how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from workbench.grading.grade import Status, StepGrade
from workbench.grading.repeats import WORST_FIRST, joined
from workbench.grading.run_summary import RunSummary
from workbench.tui.run_book.record import RunKind, RunRecord, Stage

_WORST_STEP_FIRST: tuple[Status | None, ...] = ("error", "failed", None, *WORST_FIRST[2:])
"""`None`: never reached."""

StepStage = Literal["waiting", "running", "made", "over"]
"""How far a step of a chain is: `made` while the run goes on behind it, `over` when nothing of the case runs."""


@dataclass(frozen=True)
class CaseSummary:
    """A case at a glance: the worst status and the lowest score among its models, and how far its runs are.

    A model counts with what its repeats come to by the case's rule.
    """

    status: Status | None = None
    score: float | None = None
    stage: Stage | None = None
    asks: bool = False
    """Whether a run asks if a call may be executed."""
    held: bool = False
    """Whether a run is held until a person lets it go on."""
    disagree: bool = False
    """Whether one of those runs would fail under one grader, and not under another."""


NEVER_RUN = CaseSummary()


@dataclass(frozen=True)
class StepSummary:
    """A step of a chain at a glance: the worst status and the lowest score among its case's models, each of which
    counts with the repeat to look at first. Once it is `over`, a step without a status was never reached."""

    stage: StepStage
    status: Status | None = None
    score: float | None = None
    asks: bool = False
    held: bool = False


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
    asking: int = 0
    held: int = 0
    """Of those that run, those that ask something, and those that are held until a person lets them go on."""


def deciding_run(runs: Sequence[RunRecord]) -> int:
    """Which of a case's runs to look at first: of the first model the last repeat that ended as the case did by its
    rule; the last repeat while there is none."""
    return next(_deciding_runs(runs), 0)


def _deciding_runs(runs: Sequence[RunRecord]) -> Iterator[int]:
    """The same of every model."""
    of_models: dict[tuple[str, bool, str | None], list[int]] = {}
    for index, run in enumerate(runs):
        of_models.setdefault((run.model, run.recorded, run.kind.fork), []).append(index)
    for of_model in of_models.values():
        ended = [(index, figures) for index in of_model if (figures := runs[index].figures) is not None]
        status = joined([figures for _, figures in ended]).status if len(ended) == len(of_model) else None
        yield max((index for index, figures in ended if figures.status == status), default=of_model[-1])


def counting(runs: Mapping[RunKind, RunRecord]) -> list[RunRecord]:
    """The runs that speak for a case: recorded ones only where there are no others, and never a fork, which is an
    experiment."""
    own = [run for run in runs.values() if not run.is_fork]
    return [run for run in own if not run.recorded] or own


def summarised(runs: Sequence[RunRecord], forks: Sequence[RunRecord] = ()) -> CaseSummary:
    """What these runs of one case come to together. Of `forks` it only counts how far they are."""
    going = (*runs, *forks)
    stages = {run.standing for run in going}
    stage: Stage = "running" if "running" in stages else "waiting" if "waiting" in stages else "done"
    of_models: dict[str, list[RunSummary]] = {}
    for run in runs:
        if run.figures is not None:
            of_models.setdefault(run.model, []).append(run.figures)
    models = [joined(figures) for figures in of_models.values()]
    statuses = {model.status for model in models}
    worst = next((status for status in WORST_FIRST if status in statuses), None)
    scores = [model.score for model in models if model.score is not None]
    at_odds = any(run.at_odds for run in runs)
    asks, held = any(run.asks for run in going), any(run.held for run in going)
    return CaseSummary(worst, min(scores, default=None), stage, asks, held, at_odds)


def step_under_way(runs: Sequence[RunRecord], number: int) -> StepSummary:
    """How far a step, counted from 1, is in the runs of a case that wait or run."""
    here = [run for run in runs if run.step == number]
    if here:
        return StepSummary("running", asks=any(run.asks for run in here), held=any(run.held for run in here))
    return StepSummary("waiting" if any(run.step < number for run in runs) else "made")


def summarised_steps(runs: Sequence[RunRecord]) -> tuple[StepSummary, ...]:
    """What the steps of these runs of one chain, all over, come to; none where no run was graded."""
    results = [runs[index].result for index in _deciding_runs(runs)]
    of_models = [result.steps for result in results if result is not None and result.steps]
    return tuple(map(_worst_step, zip_longest(*of_models)))


def _worst_step(grades: Sequence[StepGrade | None]) -> StepSummary:
    """A step as the models made it; one that was not reached is worse than one that warns."""
    known = [grade for grade in grades if grade is not None]
    statuses = [grade.status for grade in known]
    worst = min(statuses, key=_WORST_STEP_FIRST.index, default=None)
    return StepSummary("over", worst, min((grade.score for grade in known if grade.score is not None), default=None))
