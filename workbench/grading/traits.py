"""Traits of the graders for reports and other rooms: one object per grader, cheap to import.

How a grader grades is `grading.run`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from workbench.dataclasses import dataclass
from workbench.grading.status import PASS_SCORE
from workbench.numerals import figure

if TYPE_CHECKING:
    from workbench.grading.grade import Grade
    from workbench.suite.settings import Grading


def _of_grading(grading: Grading) -> tuple[float, float]:
    low, high = sorted((grading.fail_threshold, grading.warn_threshold))
    return low, high


@dataclass(frozen=True, slots=True)
class GraderTraits:
    """One grader as it is shown."""

    system: str
    """The published system that it follows."""
    parts: Callable[[Grade], list[str]]
    """Return the parts of a score in words; none where a rule decided before scoring."""
    thresholds: Callable[[Grading], tuple[float, float]] = _of_grading
    """The scores from which a run is warned and passed."""
    scores_arguments: bool = False
    """Whether each argument earns a part of the score. Otherwise a call is right or wrong as a whole."""
    arguments_weigh_alike: bool = False
    """Whether the credit of an argument is shown as a fraction of one, whatever its weight."""
    shows_order: bool = False
    """Whether the place of an expected call is shown, and the nearest call to one that was not met."""
    counts_silent_steps: bool = False
    """Whether a step of a chain without a call has a share of the score."""
    counts_other_arguments: bool = False
    """Whether an argument without a check is a wrong one."""
    frees_other_arguments: bool = False
    """Whether an argument without a check costs nothing, so that it is no reason why a run failed."""
    number_if_decided_before: float | None = None
    """The quantities of a run that a rule decided before scoring."""


def _numbers(**words: str) -> Callable[[Grade], list[str]]:
    """Return the quantities of a formula as parts, each under its words."""

    def parts(grade: Grade) -> list[str]:
        return [f"{words[name]} {figure(grade.numbers[name])}" for name in words if name in grade.numbers]

    return parts


def _parts_of_critics(grade: Grade) -> list[str]:
    """Return the credit of the tools and of the arguments; nothing if a rule decided before scoring."""
    if not grade.numbers:
        return []
    lines = [line for line in grade.pairings if line.expected_call is not None]
    verdicts = []
    for line in lines:
        for verdict in line.arguments:
            if verdict.counted:
                verdicts.append(verdict)
    sums = {
        "tools": (sum(line.tool_score for line in lines), sum(line.tool_weight for line in lines)),
        "arguments": (sum(verdict.score for verdict in verdicts), sum(verdict.weight for verdict in verdicts)),
        "earned": (grade.numbers["earned"], grade.numbers["possible"]),
    }
    return [f"{name} {figure(earned)} of {figure(possible)}" for name, (earned, possible) in sums.items()]


def _parts_of_trajectory(grade: Grade) -> list[str]:
    matched, total, unexpected = (figure(grade.numbers[name]) for name in ("matched", "total", "unexpected"))
    return [f"met {matched} of {total}", f"unexpected {unexpected}"]


TRAITS: Mapping[str, GraderTraits] = {
    "critics": GraderTraits(
        "Arcade evals",
        _parts_of_critics,
        scores_arguments=True,
        frees_other_arguments=True,
        number_if_decided_before=0.0,
    ),
    "decision": GraderTraits(
        "Toolvaluator",
        _numbers(should_call="should call", tool_name="tool", arguments="arguments"),
        scores_arguments=True,
        counts_silent_steps=True,
        counts_other_arguments=True,
    ),
    "accuracy": GraderTraits(
        "Evalite toolCallAccuracy",
        _numbers(exact="matches", name_only="name only", wrong="wrong", extra="extras", missing="missing"),
        counts_other_arguments=True,
    ),
    "trajectory": GraderTraits(
        "Apple Evaluations",
        _parts_of_trajectory,
        shows_order=True,
    ),
    "dimensions": GraderTraits(
        "the five-dimension evaluator",
        _numbers(precision="precision", recall="recall", parameters="parameters", content="content"),
        thresholds=lambda _: (PASS_SCORE, PASS_SCORE),
        scores_arguments=True,
        arguments_weigh_alike=True,
    ),
}
"""Every grader, in the order in which they are shown."""
