"""The dimensions of the `dimensions` grader one by one, each as a fraction."""

from __future__ import annotations

from typing import NamedTuple

from workbench.grading.formulas import Amount, Quotient, Sum, Term
from workbench.grading.grade import Grade

_MAX_TERMS = 12
"""With more terms than this, only their sum is written."""


class Facet(NamedTuple):
    """One dimension: its name, how its amount was computed, and what is counted, in words."""

    name: str
    formula: Term
    counted: str


def facets(grade: Grade, keywords: int) -> tuple[Facet, ...]:
    """Returns the dimensions that contribute to the score; `keywords` is how many the case asks for. Empty for other
    graders, and for a run that called where nothing may be called."""
    numbers = grade.numbers
    if grade.grader != "dimensions" or "content" not in numbers:
        return ()
    content = Facet("content", Amount(numbers["content"]), "no keywords expected")
    if keywords:
        found = Amount(round(numbers["content"] * keywords))
        content = Facet("content", Quotient(found, Amount(keywords)), "keywords found")
    wanted = [line for line in grade.pairings if line.expected_call is not None]
    if not wanted:
        return () if numbers["precision"] == 0 else (content,)
    made = len({line.call for line in grade.pairings if line.call is not None})
    precision = Facet("precision", Amount(numbers["precision"]), "no call was made")
    if made:
        known = Amount(round(numbers["precision"] * made))
        precision = Facet("precision", Quotient(known, Amount(made)), "calls of an expected tool")
    called = Amount(round(numbers["recall"] * len(wanted)))
    earned = Sum(tuple(Amount(line.credit) for line in wanted))
    if len(wanted) > _MAX_TERMS:
        earned = Sum((Amount(numbers["parameters"] * len(wanted)),))
    return (
        precision,
        Facet("recall", Quotient(called, Amount(len(wanted))), "expected calls made"),
        Facet("parameters", Quotient(earned, Amount(len(wanted))), "of calls below"),
        content,
    )
