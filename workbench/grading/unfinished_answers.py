"""Names how a run's last answer ended early: cut off at the token limit, or refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from workbench.checks.values import describe_value
from workbench.grading.grade import Issue
from workbench.suite.numerals import counted
from workbench.trajectory.trajectory import Round, Trajectory


def end_issues(trajectory: Trajectory) -> Iterator[Issue]:
    """Yield that the last answer was cut off or refused. That decides nothing by itself."""
    how = _how_it_ended(trajectory)
    if how == "truncated":
        yield Issue("cut off", cut_off_where(trajectory.rounds[-1]))
    elif how == "refused":
        yield Issue("refused", "the model, or a content filter of its endpoint, refused to answer")


def unfinished(trajectory: Trajectory) -> str | None:
    """Return the text of a last answer that was cut off or refused, in words; `None` where there is no such answer."""
    how = _how_it_ended(trajectory)
    if how is None:
        return None
    what = "an answer that was cut off" if how == "truncated" else "a refusal"
    text = trajectory.rounds[-1].text
    return f"{what}: {describe_value(text)}" if text else what


def _how_it_ended(trajectory: Trajectory) -> Literal["truncated", "refused"] | None:
    if not trajectory.rounds:
        return None
    reasons = (trajectory.rounds[-1].stop_reason, trajectory.finish.reason if trajectory.finish is not None else None)
    if "truncated" in reasons:
        return "truncated"
    return "refused" if "refused" in reasons else None


def cut_off_where(answer: Round) -> str:
    """Return where an answer was cut off, and what to do: `after 16 tokens: raise max_tokens`."""
    tokens = answer.usage.output_tokens if answer.usage is not None else 0
    where = f"after {counted(tokens, 'token')}" if tokens else "at the token limit"
    return f"{where}: raise `max_tokens`"
