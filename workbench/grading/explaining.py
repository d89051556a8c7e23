"""Explains a grade: the formula of the published system with the run's numbers in it, and the result.

Scores are the graders' own; nothing is computed again here. Tests check that the filled formula yields the score.
"""

from __future__ import annotations

from collections.abc import Iterable

from workbench.dataclasses import dataclass
from workbench.grading.formulas import Term, in_words
from workbench.grading.grade import Grade, Issue, Status, disagree
from workbench.grading.readings import READINGS, Account
from workbench.grading.traits import TRAITS
from workbench.suite.settings import Grading


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explains a grade. `rule` is the system's formula in words. `formula` has the run's numbers; it is `None` where
    there is no score or a rule decided before scoring, which `shortcut` describes.

    `verdict` compares the score with its thresholds, `beside` holds the issues that fail the run whatever the score is,
    `more` describes the system point by point. `accounts` has one entry for each of the grade's pairings, or `None`
    where a line does not contribute to the score.
    """

    system: str
    rule: str
    formula: Term | None
    shortcut: str
    verdict: str
    beside: tuple[Issue, ...]
    more: tuple[str, ...]
    accounts: tuple[Account | None, ...]


def explain(grade: Grade, grading: Grading) -> Explanation:
    """Returns the explanation of a grade that was made under `grading`, with or without a score."""
    reading = READINGS[grade.grader](grade, grading)
    scored = grade.score is not None
    more = reading.more
    if grade.published is not None:
        more = (*more, "Surplus calls that extra_calls frees are left out before anything is compared.")
    formula = reading.formula if scored and not reading.shortcut else None
    return Explanation(
        TRAITS[grade.grader].system,
        reading.rule or in_words(reading.formula),
        formula,
        reading.shortcut if scored else "",
        reading.verdict if scored else "",
        tuple(issue for issue in grade.issues if issue.decides),
        more,
        reading.accounts if formula is not None else (None,) * len(grade.pairings),
    )


def disagreement(grades: Iterable[Grade]) -> tuple[tuple[Status, tuple[Grade, ...]], ...]:
    """Returns the graders by the status that each gives the run, the worst first; empty when they agree."""
    grades = tuple(grades)
    if not disagree(grades):
        return ()
    ruling = [grade for grade in grades if grade.verdict not in ("not applicable", "error")]
    statuses: tuple[Status, ...] = ("failed", "warned", "passed")
    sides = ((status, tuple(grade for grade in ruling if grade.status == status)) for status in statuses)
    return tuple((status, side) for status, side in sides if side)
