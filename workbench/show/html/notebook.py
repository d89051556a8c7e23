"""A report for a notebook: the verdict, the first runs in a table, and the totals."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from workbench.grading.grade import RunResult
from workbench.numerals import counted
from workbench.show.doc import Block, Column, Items, Paragraph, line_of, words
from workbench.show.html.elements import blocks, el, markup
from workbench.show.views.batch_text import runs_table
from workbench.show.views.runs_report import RunsReport
from workbench.show.views.totals import run_totals
from workbench.show.views.verdict import result_line
from workbench.show.visible import one_line

_ROWS_SHOWN = 50
"""Maximum number of runs in the table. Output longer than a screen hides its cell."""


def notebook_html(report: RunsReport) -> str:
    """Return a report as an HTML fragment. All text of models and tools is escaped."""
    runs = [run.result for run in islice(report.shown_runs(), _ROWS_SHOWN)]
    shown = runs_table(runs, report.suite_names)
    reason = Column[RunResult]("reason", lambda run: words(one_line(run.reason or "")))
    view: list[Block] = [Paragraph(result_line(report)), replace(shown, columns=[*shown.columns, reason])]
    if more := len(report.results) - len(runs):
        view.append(Paragraph(line_of(f"and {counted(more, 'other run')}, which report.rows() has", "muted")))
    view.append(Items([*run_totals(report.totals)]))
    return "".join(markup(el("div", blocks(view), class_="workbench"), report.secrets.redact))
