"""What the last runs of a suite or folder came to, of this session or before it, for the run pane."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING

from workbench.analysis.causes import CAUSES
from workbench.analysis.comparison import cells_of, model_totals
from workbench.dataclasses import dataclass
from workbench.grading.status import Status
from workbench.numerals import age_text, cost_text, count_text, counted, tokens_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Message, Role
from workbench.show.views.values import percentiles_text
from workbench.tui.run_book.book import RunBook
from workbench.tui.tree.remembered import is_edited_since
from workbench.tui.tree.state import Row, TreeState

if TYPE_CHECKING:
    from workbench.grading.run_summary import RunSummary
    from workbench.grading.status import Status
    from workbench.history.records import RunRow
    from workbench.tui.run_book.record import RunRecord


@dataclass
class LastRuns:
    """The last runs of the cases below a row; `statuses` counts cases as the tree shows them."""

    statuses: Counter[Status | None] = field(default_factory=Counter)
    runs: list[RunSummary] = field(default_factory=list)
    before: list[float] = field(default_factory=list)
    """When the results from the history began, in milliseconds since 1970."""
    edited: int = 0
    """How many cases were edited since their result in the history."""
    failed: list[RunRow | RunRecord] = field(default_factory=list)


def last_runs(tree: TreeState, row: Row, book: RunBook) -> LastRuns:
    """Return the last runs of the displayed cases at or below a row."""
    found = LastRuns()
    for suite, keys in tree.cases_below(row):
        outlines = {case.key: case for case in suite.cases}
        for key in keys:
            case = suite.path, key
            last = tree.remembered.shown(case, book)
            if last is None:
                found.statuses[book.summary(case).status] += 1
                records = [run for run in book.runs_that_count(case) if run.figures is not None]
                found.runs += [run.figures for run in records if run.figures is not None]
                found.failed += [run for run in records if run.status == Status.FAILED]
                continue
            found.statuses[last.status] += 1
            found.runs += [run.figures for run in last.runs if run.figures is not None]
            found.failed += [
                run for run in last.runs if run.figures is not None and run.figures.status == Status.FAILED
            ]
            found.before.append(last.began_ms)
            found.edited += is_edited_since(Row(row.key, 0, "", suite, outlines.get(key)), last)
    return found


def summary_message(tree: TreeState, found: LastRuns, book: RunBook) -> Message:
    """Return the last runs in words: how they ended, their latency, tokens and cost, and the causes of failures."""
    totals = model_totals("", cells_of(found.runs).values())
    made = [(found.statuses[status], status) for status in Status]
    counts = [f"{count_text(count)} {status.counted}" for count, status in made if count]
    never = found.statuses[None]
    lines: list[tuple[str, Role]] = [
        (", ".join((*counts, *([f"{count_text(never)} not run"] if never else ()))), "strong")
    ]
    if found.before:
        first, last = (age_text(at, book.now()) for at in (min(found.before), max(found.before)))
        old = f"{first} to {last} old" if first != last else "of just now" if first == "now" else f"{first} old"
        edited = f" {GLYPHS.dot} {counted(found.edited, 'case')} edited since" if found.edited else ""
        lines.append((f"{counted(len(found.before), 'case')} from the history, {old}{edited}", "muted"))
    lines.append(("", "text"))
    if (latency := totals.latency) is not None:
        lines.append((f"latency {percentiles_text(latency)}", "text"))
    if totals.input_tokens is not None:
        lines.append((tokens_text(totals.input_tokens, totals.output_tokens or 0), "text"))
    unknown = f"cost unknown for {counted(totals.runs_of_unknown_cost, 'run')}" if totals.runs_of_unknown_cost else ""
    known = f"cost {cost_text(totals.cost_usd)}" if totals.cost_usd is not None else ""
    lines.append((f" {GLYPHS.dot} ".join(filter(None, (known, unknown))) or "cost unknown", "text"))
    causes = tree.remembered.causes_of(found.failed)
    if causes:
        named = ", ".join(f"{cause} {count_text(causes[cause])}" for cause in CAUSES if causes[cause])
        lines.append((f"causes: {named}", "failed"))
    return tuple(lines)
