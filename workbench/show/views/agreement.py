"""Comparison of Workbench's verdicts on imported runs with the verdicts of their source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from workbench.analysis.totals import Agreement, Disagreement
from workbench.grading.status import passed_or_failed
from workbench.numerals import count_text, figure, of_text
from workbench.show.doc import line_of
from workbench.show.spans import Line, Span
from workbench.show.visible import one_line

_ROWS_MAX = 50


def agreement_lines(agreements: Iterable[Agreement]) -> Iterator[Line]:
    """Yield the lines of each score: the number of agreeing verdicts, then a line for each verdict that differs."""
    for each in agreements:
        ungraded = ""
        if each.ungraded:
            ungraded = f", {count_text(each.ungraded)} not graded here"
        yield line_of(f"{one_line(each.name)}: {of_text(each.agree, each.of)} verdicts agree{ungraded}")
        for differing in each.differ[:_ROWS_MAX]:
            yield _differing_line(each.name, differing)
        if (more := len(each.differ) - _ROWS_MAX) > 0:
            yield line_of(f"  … and {count_text(more)} more")


def _differing_line(name: str, differing: Disagreement) -> Line:
    # The verdicts here and in the source differ, so the source's verdict is the opposite of this one.
    here, there = passed_or_failed(differing.passed_here), passed_or_failed(not differing.passed_here)
    head = f"  {one_line(differing.about)}: {one_line(name)} {figure(differing.value)}, "
    return (Span(head), Span(there.word, there.role), Span(" there, "), Span(here.word, here.role), Span(" here"))
