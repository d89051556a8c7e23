"""Which graders decided: in one batch, and in another that it is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from workbench.analysis.comparison import Cell, CellKey
from workbench.grading.grade import GRADED
from workbench.grading.run_summary import RunSummary
from workbench.suite.model import GraderName

Deciders = tuple[GraderName, ...]
"""Graders in the order of their names: several where the runs of one case were graded at different times."""


@dataclass(frozen=True, slots=True)
class DecidedBy:
    """The cases, by suite and id, that these graders decided in the earlier batch, and those in the later one."""

    before: Deciders
    after: Deciders
    cases: tuple[tuple[str, str], ...]


def decider_of(run: RunSummary) -> GraderName | None:
    """The grader that decided a run; `None` where it was not graded."""
    return run.grading.by if run.status in GRADED else None


def deciders_of(runs: Iterable[RunSummary]) -> Deciders:
    """All that decided some of these runs."""
    return tuple(sorted({by for run in runs if (by := decider_of(run)) is not None}))


def cases_by_deciders(pairs: Mapping[CellKey, tuple[Cell, Cell]]) -> tuple[DecidedBy, ...]:
    """By what the cases were decided that were graded both times."""
    cases: dict[tuple[Deciders, Deciders], dict[tuple[str, str], None]] = {}
    for (suite, case_id, _), (before, after) in pairs.items():
        deciders = deciders_of(before.runs), deciders_of(after.runs)
        cases.setdefault(deciders, {})[suite, case_id] = None
    return tuple(DecidedBy(*deciders, tuple(found)) for deciders, found in cases.items())
