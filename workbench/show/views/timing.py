"""The duration and the pace of a batch."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.analysis.comparison import busy_ms, runs_of_models
from workbench.dataclasses import dataclass
from workbench.grading.run_summary import RunSummary, TimedRun
from workbench.numerals import duration_text


@dataclass(frozen=True, slots=True)
class Timing:
    """The duration of a batch in milliseconds, and its pace.

    `start_up_ms` is the time during which servers or models were starting."""

    took_ms: float
    start_up_ms: float
    cases_a_minute: float | None
    """Graded cases per minute, counting only time with a run in progress. It is `None` if no case was graded."""
    runs_a_minute: float | None
    """Graded runs per minute of the same time. It exceeds the rate of cases if cases have repeats."""


def timing_of(took_ms: float, start_up_ms: float, runs: Sequence[RunSummary | TimedRun]) -> Timing:
    """Compute the timing of a batch from its duration, the time of starts, and its runs."""
    runs_of_cases: list[int] = []
    # Models are read in turn, so memory holds the cases of one model only.
    for indices in runs_of_models(runs).values():
        # If a resumed batch repeated a run, the later run counts.
        are_graded: dict[tuple[str, str], dict[int, bool]] = {}
        for index in indices:
            run = runs[index]
            are_graded.setdefault((run.suite, run.case_id), {})[run.repeat] = run.status.graded
        runs_of_cases += [len(repeats) for repeats in are_graded.values() if any(repeats.values())]
    cases_a_minute = runs_a_minute = None
    minutes = busy_ms(runs) / 60_000
    if runs_of_cases and minutes:
        cases_a_minute, runs_a_minute = len(runs_of_cases) / minutes, sum(runs_of_cases) / minutes
    return Timing(round(took_ms, 3), round(start_up_ms, 3), cases_a_minute, runs_a_minute)


def timing_line(timing: Timing) -> str:
    """Return the duration and the pace of a batch on one line."""
    line = f"took {duration_text(timing.took_ms)}"
    if timing.start_up_ms:
        line += f", {duration_text(timing.start_up_ms)} of it start-up"
    return line
