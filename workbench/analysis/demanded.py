"""Selects the runs for a gate or an aggregate: those of each model, or those of the whole batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from workbench.grading.grade import Status
from workbench.suite.model import GatePer


class RunOfModel(Protocol):
    """A run with its status and model."""

    @property
    def status(self) -> Status: ...
    @property
    def model(self) -> str: ...


_Run = TypeVar("_Run", bound=RunOfModel)


def runs_per(per: GatePer, runs: Iterable[_Run]) -> dict[str | None, list[_Run]]:
    """Returns the runs by model, or all of them under `None`. A model none of whose runs could be graded,
    because they were skipped or their cases expect nothing yet, is left out, unless there is no other."""
    if per == "batch":
        return {None: list(runs)}
    found: dict[str | None, list[_Run]] = {}
    for run in runs:
        found.setdefault(run.model, []).append(run)
    return {
        model: own for model, own in found.items() if any(run.status not in ("skipped", "not graded") for run in own)
    } or found
