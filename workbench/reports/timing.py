"""The duration and the pace of a batch."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.analysis.comparison import busy_ms, cells_of, runs_of_models
from workbench.dataclasses import dataclass
from workbench.grading.grade import GRADED
from workbench.grading.run_summary import RunSummary
from workbench.reports.values import pace_text, seconds


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a batch took. `start_up_ms` is the part of it in which servers or models were starting."""

    took_ms: float
    start_up_ms: float
    cases_a_minute: float | None
    """Graded cases divided by the time in which at least one run was going on; `None` without any."""


def timing_of(took_ms: float, start_up_ms: float, runs: Sequence[RunSummary]) -> Timing:
    """Returns the timing of a batch with these runs."""
    graded = sum(
        cell.status in GRADED
        for indices in runs_of_models(runs, by_suite=True).values()
        for cell in cells_of(runs[index] for index in indices).values()
    )
    minutes = busy_ms(runs) / 60_000
    return Timing(round(took_ms, 3), round(start_up_ms, 3), graded / minutes if graded and minutes else None)


def timing_line(timing: Timing) -> str:
    """Returns the time and the pace in one line."""
    start_up = f", {seconds(timing.start_up_ms)} of it start-up" if timing.start_up_ms else ""
    pace = f"; {pace_text(timing.cases_a_minute)} cases a minute" if timing.cases_a_minute is not None else ""
    return f"took {seconds(timing.took_ms)}{start_up}{pace}"
