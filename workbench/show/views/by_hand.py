"""A person's changes to a run, and where it was held for them, in numbers and words."""

from __future__ import annotations

from workbench.trajectory.events import Forked, Paused
from workbench.trajectory.trajectory import Trajectory


def changes_by_hand(trajectory: Trajectory) -> int:
    """Returns how many things a person changed in a run: calls, results, answers given or withheld in place of a tool,
    messages added and answers regenerated."""
    calls = [
        (call.edited is not None)
        + (call.unedited is not None)
        + (call.result is not None and call.result.source in ("edited", "skipped"))
        for call in trajectory.calls
    ]
    return sum(calls) + sum(len(round_.added) + len(round_.superseded) for round_ in trajectory.rounds)


def unread_text(trajectory: Trajectory) -> str:
    """Returns a note that the last messages to the model were never read; empty where all of them were, or the run is
    not over."""
    if trajectory.finish is None or not trajectory.added:
        return ""
    return "the last message of a person was never read: no request followed it"


def hold_text(paused: Paused, tool: str | None) -> str:
    """Returns where a run is held, as the end of a sentence; empty where it only asks for permission. `tool` is that of
    the call there."""
    if paused.at == "request":
        return f"before the request of round {paused.round}" if paused.round is not None else "before a request"
    place = {"call": "before", "result": "after the result of"}.get(paused.at)
    return f"{place} {tool or 'a call'}" if place is not None else ""


def fork_text(fork: Forked, origin: str = "") -> str:
    """Returns from which run, and where, a run was forked. `origin` describes that run more precisely than its
    model."""
    if fork.answered is None:
        where = f"before round {fork.round}"
    elif fork.answered:
        where = f"after result {fork.answered} of round {fork.round}"
    else:
        where = f"after the answer of round {fork.round}"
    return f"forked from {origin or f'the run on {fork.model}'} {where}; live from here on"
