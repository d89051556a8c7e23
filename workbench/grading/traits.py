"""How screens and reports show each grader: one object with the grader's traits. `grading.run` has the graders."""

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
    """The properties of a grader that decide how its grades are shown."""

    system: str
    """The name of the published system that the grader follows."""
    parts: Callable[[Grade], list[str]]
    """Returns the parts of a score in words. The result is empty if a rule decided before scoring."""
    thresholds: Callable[[Grading], tuple[float, float]] = _of_grading
    """Returns the lowest scores for warned and for passed."""
    scores_arguments: bool = False
    """Whether each argument earns a part of the score. Otherwise, a call is right or wrong as a whole."""
    arguments_weigh_alike: bool = False
    """Whether the credit of an argument is shown as a fraction of one, regardless of its weight."""
    shows_order: bool = False
    """Whether the position of an expected call is shown, and the nearest call to an unmet expectation."""
    counts_silent_steps: bool = False
    """Whether a step of a chain without an expected call has a share of the score."""
    counts_other_arguments: bool = False
    """Whether an argument without a check counts as wrong."""
    frees_other_arguments: bool = False
    """Whether an argument without a check costs nothing. Such an argument is never the reason of a failure."""
    number_if_decided_before: float | None = None
    """The number to show for each quantity if a rule decided before scoring."""


def _numbers(**words: str) -> Callable[[Grade], list[str]]:
    def parts(grade: Grade) -> list[str]:
        return [f"{words[name]} {figure(grade.numbers[name])}" for name in words if name in grade.numbers]

    return parts


def _parts_of_critics(grade: Grade) -> list[str]:
    if not grade.numbers:
        return []
    tools = tools_possible = arguments = arguments_possible = 0.0
    for line in grade.pairings:
        if line.expected_call is None:
            continue
        tools += line.tool_score
        tools_possible += line.tool_weight
        for verdict in line.arguments:
            if verdict.counted:
                arguments += verdict.score
                arguments_possible += verdict.weight
    return [
        f"tools {figure(tools)} of {figure(tools_possible)}",
        f"arguments {figure(arguments)} of {figure(arguments_possible)}",
        f"earned {figure(grade.numbers['earned'])} of {figure(grade.numbers['possible'])}",
    ]


def _parts_of_trajectory(grade: Grade) -> list[str]:
    numbers = grade.numbers
    met = f"met {figure(numbers['matched'])} of {figure(numbers['total'])}"
    return [met, f"unexpected {figure(numbers['unexpected'])}"]


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
        _numbers(
            calls="calls", exact="matches", name_only="name only", wrong="wrong", extra="extras", missing="missing"
        ),
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
"""The traits of every grader, in the order in which graders are shown."""
