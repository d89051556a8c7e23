"""Finds which graders decided in two batches that are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workbench.analysis.comparison import Cell, CellKey
from workbench.dataclasses import dataclass
from workbench.grading.grade import GRADED
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
    return run.grading.by if run.status in GRADED else None


def deciders_of(runs: Iterable[RunSummary]) -> Deciders:
    """Returns all graders that decided some of these runs."""
    return tuple(sorted({by for run in runs if (by := decider_of(run)) is not None}))


def cases_by_deciders(pairs: Mapping[CellKey, tuple[Cell, Cell]]) -> tuple[DecidedBy, ...]:
    """Returns the cases that were graded both times, grouped by the deciding graders."""
    cases: dict[tuple[Deciders, Deciders], dict[tuple[str, str], None]] = {}
    for (suite, case_id, _), (before, after) in pairs.items():
        deciders = deciders_of(before.runs), deciders_of(after.runs)
        cases.setdefault(deciders, {})[suite, case_id] = None
    return tuple(DecidedBy(*deciders, tuple(found)) for deciders, found in cases.items())
