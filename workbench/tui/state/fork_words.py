"""What is said of a fork: where it begins, on which model it goes on, and how it differs from its origin."""

from __future__ import annotations

from workbench.engine.fork import Fork
from workbench.tui.glyphs import GLYPHS
from workbench.tui.state.run_record import RunRecord
from workbench.tui.state.words import model_label


def place_said(fork: Fork) -> str:
    """Where a run is forked, in words."""
    at = fork.at
    if at.answered is None:
        return f"before round {at.round}"
    calls = fork.origin.rounds[at.round - 1].calls
    if at.answered == 0:
        return (
            f"before the call of {calls[0].tool} in round {at.round}"
            if calls
            else f"after the answer of round {at.round}"
        )
    call = calls[at.answered - 1]
    which = f" (call {at.answered} of round {at.round})" if len(fork.origin.calls) > 1 else ""
    return f"after the result of {call.tool}{which}"


def branch_said(run: RunRecord) -> str:
    """On which model a fork goes on, how it differs first from its origin, once it is over, and where it begins: what
    matters most goes first, as the line is cut where it is narrow."""
    fork = run.planned.fork
    if fork is None:
        return ""
    parts = [model_label(run.model)]
    if run.result is not None and run.origin is not None:
        parts.append(run.difference.sentence if run.difference is not None else "no difference")
    parts.append(place_said(fork))
    return f" {GLYPHS.dot} ".join(parts)
