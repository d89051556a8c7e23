"""Forks as branches of the runs from which they were forked: their order and their numbers."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.tui.state.run_record import RunRecord
from workbench.tui.state.words import model_label


def root_of(run: RunRecord) -> RunRecord:
    """The run at which a row of forks begins; itself, if it is no fork."""
    while run.origin is not None:
        run = run.origin
    return run


def with_branches(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """Runs, each followed by its forks with theirs."""
    forks = [run for run in runs if run.is_fork]
    if not forks:
        return list(runs)
    ordered: list[RunRecord] = []

    def add(run: RunRecord) -> None:
        ordered.append(run)
        for fork in forks:
            if fork.origin is run:
                add(fork)

    for run in runs:
        if run.origin is None:
            add(run)
    return ordered


def origin_said(run: RunRecord, *, of_several: bool) -> str:
    """A run as that from which another one is forked; with its number where it is one of several repeats."""
    kind = "fork" if run.is_fork else "run"
    return f"{f'{kind} #{run.repeat + 1}' if of_several else f'the {kind}'} on {model_label(run.model)}"


def branch_number(fork: RunRecord, runs: Sequence[RunRecord]) -> str:
    """Which fork of its run it is, counted from 1: `2`, or `2.1` for the first fork of that one."""
    forks = [run for run in runs if run.is_fork and run.origin is fork.origin]
    number = str(next(index for index, run in enumerate(forks, start=1) if run is fork))
    origin = fork.origin
    return f"{branch_number(origin, runs)}.{number}" if origin is not None and origin.is_fork else number
