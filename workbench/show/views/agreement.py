"""The verdicts of the system that made imported runs beside those of their cases, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from workbench.analysis.totals import Agreement
from workbench.show.visible import one_line

_ROWS_MAX = 50


def agreement_lines(agreements: Iterable[Agreement]) -> Iterator[str]:
    """Yield a line for each score of a source, and one for each verdict that differs."""
    for each in agreements:
        name = one_line(each.name)
        ungraded = f", {each.ungraded:,} not graded here" if each.ungraded else ""
        yield f"{name}: {each.agree:,} of {each.of:,} verdicts agree{ungraded}"
        for differing in each.differ[:_ROWS_MAX]:
            here = "passed" if differing.passed_here else "failed"
            there = "failed" if differing.passed_here else "passed"
            yield f"  {one_line(differing.about)}: {name} {differing.value:g}, {there} there, {here} here"
        if len(each.differ) > _ROWS_MAX:
            yield f"  … and {len(each.differ) - _ROWS_MAX:,} more"
