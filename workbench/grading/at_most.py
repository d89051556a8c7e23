"""Limits of a run: calls, rounds, tokens, cost and latency."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from workbench.grading.grade import GradingError, Issue
from workbench.numerals import cost_text, count_text, duration_text
from workbench.suite.model import Case
from workbench.trajectory.trajectory import Trajectory


class _Figure(NamedTuple):
    of: Callable[[Trajectory, float | None], float | None]
    text: Callable[[float], str]
    unknown: str = ""


def _tokens(trajectory: Trajectory) -> int | None:
    # The sum would be too small if an answer without a token count were left out.
    if any(answer.usage is None and answer.stop_reason is not None for answer in trajectory.requested_rounds):
        return None
    usage = trajectory.usage
    return None if usage is None else usage.input_tokens + usage.output_tokens


_FIGURES: Mapping[str, _Figure] = {
    "calls": _Figure(lambda run, _: len(run.calls), count_text),
    "rounds": _Figure(lambda run, _: len(run.rounds), count_text),
    "tokens": _Figure(lambda run, _: _tokens(run), count_text, "the endpoint did not report the tokens of each answer"),
    "cost_usd": _Figure(
        lambda _, cost: cost, cost_text, "set the `price` of the model, whose endpoint must also report tokens"
    ),
    "latency_ms": _Figure(
        lambda run, _: run.model_latency_ms or None, duration_text, "the run has no latency of its model"
    ),
}


def budget_issues(case: Case, trajectory: Trajectory, cost_usd: float | None) -> Iterator[Issue]:
    """Yield an issue that fails the run, for each figure of the run that exceeds a limit in the case's `at_most`.

    `cost_usd` is the cost of the run, or `None` if it is unknown. Raises GradingError if a limited figure is
    unknown."""
    if case.at_most is None:
        return
    for name, most in case.at_most:
        if most is None:
            continue
        figure = _FIGURES[name]
        found = figure.of(trajectory, cost_usd)
        if found is None:
            raise GradingError(f"at_most.{name} cannot be checked, because the figure is unknown: {figure.unknown}")
        if found > most:
            yield Issue(
                "over budget",
                f"at_most.{name} is {figure.text(most)}",
                expected=f"at most {figure.text(most)}",
                got=figure.text(found),
                decides=True,
            )
