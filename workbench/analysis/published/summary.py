"""What the published systems report of a batch: of every suite in the words of the system that decides it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from workbench.analysis.published.accuracy import ACCURACY
from workbench.analysis.published.critics import CRITICS
from workbench.analysis.published.decision import DECISION
from workbench.analysis.published.dimensions import DIMENSIONS
from workbench.analysis.published.system import Summary, System
from workbench.analysis.published.trajectory import TRAJECTORY
from workbench.grading.explaining import SYSTEMS as NAMES
from workbench.grading.grade import RunResult

SYSTEMS: dict[str, System] = {
    "critics": CRITICS,
    "decision": DECISION,
    "accuracy": ACCURACY,
    "trajectory": TRAJECTORY,
    "dimensions": DIMENSIONS,
}
"""The published systems by the graders that follow them."""


@dataclass(frozen=True)
class PublishedReport:
    """What a system reports of the runs of one suite with one model; a comparison of its models where `model` is
    `None`. `suite` is the suite's path."""

    suite: str
    model: str | None
    grader: str
    system: str
    summary: Summary


def published_reports(results: Iterable[RunResult]) -> Iterator[PublishedReport]:
    """The reports on a batch, suite by suite in the order of the runs.

    Runs count by the verdict of the grader that decides them, as the published systems know nothing of requirements
    beside it. Runs that were not graded, or to which it does not apply, are left out.
    """
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for run in results:
        grade = run.grade
        if grade is not None and grade.verdict in ("passed", "warned", "failed"):
            groups.setdefault((run.suite, grade.grader), []).append(replace(run, status=grade.verdict))
    for (suite, grader), runs in groups.items():
        system = SYSTEMS[grader]
        models = dict.fromkeys(run.model for run in runs)
        for model in models:
            summary = system.summary([run for run in runs if run.model == model])
            yield PublishedReport(suite, model, grader, NAMES[grader], summary)
        if len(models) > 1 and system.comparison is not None:
            yield PublishedReport(suite, None, grader, NAMES[grader], system.comparison(runs))
