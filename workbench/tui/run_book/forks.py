"""Forks, which are runs that replay the start of another run (the origin). Orders, numbers and describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.show.glyphs import GLYPHS
from workbench.show.visible import model_label
from workbench.tui.run_book.record import RunIdentity, RunRecord

if TYPE_CHECKING:
    from workbench.engine.fork import Fork


def root_of(run: RunRecord) -> RunRecord:
    """Return the first run in a fork's chain of origins. Return a run that is not a fork unchanged."""
    while run.origin is not None:
        run = run.origin
    return run


def with_branches(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """Return runs in order, each followed by its forks at any depth."""
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


def with_replaced(
    run: RunRecord, fork: RunRecord, runs: Mapping[RunIdentity, RunRecord]
) -> dict[RunIdentity, RunRecord]:
    """Return the runs of a case with `fork` in place of `run`. Forks of `run` become forks of the run's origin."""
    for other in runs.values():
        if other.origin is run:
            other.origin = run.origin
    # A new dictionary gives the fork the position of the run instead of the last position.
    replaced: dict[RunIdentity, RunRecord] = {}
    for kind, other in runs.items():
        if other is run:
            replaced[fork.identity] = fork
        else:
            replaced[kind] = other
    return replaced


def origin_name(run: RunRecord, *, of_several: bool) -> str:
    """Return a short name for the origin of a fork.

    With `of_several`, the name includes the number of the repeat."""
    kind = "run"
    if run.is_fork:
        kind = "fork"
    name = f"the {kind}"
    if of_several:
        name = f"{kind} #{run.repeat + 1}"
    return f"{name} on {model_label(run.model)}"


def branch_number(fork: RunRecord, runs: Sequence[RunRecord]) -> str:
    """Return the number of a fork among the forks of its origin: `2`, or `2.1` for the first fork of that fork."""
    origin = fork.origin
    number = 0
    for run in runs:
        if run.is_fork and run.origin is origin:
            number += 1
        if run is fork:
            break
    if origin is None or not origin.is_fork:
        return str(number)
    return f"{branch_number(origin, runs)}.{number}"


def place_text(fork: Fork) -> str:
    """Describe the point where a fork leaves its origin, for a sentence with "from": `the call to add (round 2)`."""
    at = fork.at
    if at.answered is None:
        return f"round {at.round}"
    calls = fork.origin.rounds[at.round - 1].calls
    if at.answered == 0 and not calls:
        return f"the answer of round {at.round}"
    if at.answered == 0:
        return f"the call to {calls[0].tool} (round {at.round})"
    text = f"the result of {calls[at.answered - 1].tool}"
    if len(fork.origin.calls) > 1:
        text += f" (call {at.answered} of round {at.round})"
    return text


def branch_text(run: RunRecord) -> str:
    """Describe a fork: its model, its first difference from the origin, and where it begins.

    The difference is known once the fork has ended."""
    fork = run.planned.fork
    if fork is None:
        return ""
    parts = []
    if run.result is not None and run.origin is not None:
        difference = "no difference"
        if run.difference is not None:
            difference = run.difference.sentence
        parts.append(difference)
    parts.append(f"from {place_text(fork)}")
    model = model_label(run.model)
    # Narrow panes cut the end of the line, so an unchanged model comes last.
    if run.origin is not None and run.origin.model == run.model:
        parts.append(model)
    else:
        parts.insert(0, model)
    return f" {GLYPHS.dot} ".join(parts)
