"""Finds which graders decided in two batches that are compared."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.analysis.comparison import Cell
from workbench.dataclasses import dataclass
from workbench.grading.run_summary import RunSummary
from workbench.suite.model import GraderName

Deciders = tuple[GraderName, ...]
"""Graders in the order of their names: several where the runs of one case were graded at different times."""


@dataclass(frozen=True, slots=True)
class DecidedBy:
    """The cases, by suite and id, that these graders decided in the earlier and in the later batch."""

    before: Deciders
    after: Deciders
    cases: tuple[tuple[str, str], ...]


def decider_of(run: RunSummary) -> GraderName | None:
    """Returns the grader that decided a run; `None` where it was not graded."""
    return run.grading.by if run.status.graded else None


def deciders_of(runs: Iterable[RunSummary]) -> Deciders:
    """Returns all graders that decided some of these runs."""
    return tuple(sorted({by for run in runs if (by := decider_of(run)) is not None}))


class CasesByDeciders:
    """The cases that were graded both times, grouped by the deciding graders, as they are added."""

    def __init__(self) -> None:
        self._cases: dict[tuple[Deciders, Deciders], dict[tuple[str, str], int]] = {}

    def add(self, place: int, case: tuple[str, str], before: Cell, after: Cell) -> None:
        """Add a case, by suite and id, with one model. `place` tells where it comes in order."""
        places = self._cases.setdefault((deciders_of(before.runs), deciders_of(after.runs)), {})
        places[case] = min(place, places.get(case, place))

    def found(self) -> tuple[DecidedBy, ...]:
        """Returns the groups and the cases of each, in their order."""
        groups = sorted(self._cases.items(), key=lambda group: min(group[1].values()))
        return tuple(DecidedBy(*deciders, tuple(sorted(places, key=places.__getitem__))) for deciders, places in groups)
