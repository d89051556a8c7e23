"""Models of equal quality with random results on the same cases: every difference between them is chance."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random

from tests.analysis.cells import ran
from workbench.analysis.comparison import Cell, cell_of
from workbench.grading.status import Status

_PASSED = 0.6
_RIGHT = 0.7
_ARGUMENTS = 4


def equal_models(random: Random, models: int, cases: int) -> Sequence[Sequence[Cell]]:
    """Return the cells of each model.

    A case's status is independent of its score, as if a limit or a forbidden tool decided the status and the arguments
    decided the score. So the two tests have no reason to agree."""
    return [[_cell(case, random.random() < _PASSED, _right(random)) for case in range(cases)] for _ in range(models)]


def _right(random: Random) -> int:
    return sum(random.random() < _RIGHT for _ in range(_ARGUMENTS))


@cache
def _cell(case: int, good: bool, right: int) -> Cell:
    return cell_of([ran(Status.PASSED if good else Status.FAILED, right / _ARGUMENTS, case=str(case))])
