"""The summary of the last runs of a suite or folder, for the run pane. Runs come from this session or the history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from datetime import datetime
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
from workbench.tui.tree.state import Row, TreeState
from workbench.tui.tree.stored_results import is_edited_since

if TYPE_CHECKING:
    from workbench.grading.run_summary import RunSummary
    from workbench.grading.status import Status
    from workbench.history.records import RunRow
    from workbench.tui.run_book.record import RunRecord


@dataclass
class LastRuns:
    """The last runs of the cases below a row. `statuses` counts the cases by their status in the tree."""

    statuses: Counter[Status | None] = field(default_factory=Counter)
    runs: list[RunSummary] = field(default_factory=list)
    before: list[float] = field(default_factory=list)
    """The start times of results from the history, in milliseconds since 1970."""
    edited: int = 0
    """The number of cases edited since their result in the history."""
    failed: list[RunRow | RunRecord] = field(default_factory=list)

    def add(self, runs: Iterable[RunRow | RunRecord]) -> None:
        for run in runs:
            # Only an ended run has figures.
            if run.figures is None:
                continue
            self.runs.append(run.figures)
            if run.figures.status == Status.FAILED:
                self.failed.append(run)


def last_runs(tree: TreeState, row: Row, book: RunBook) -> LastRuns:
    """Return the last runs of the displayed cases at or below a row."""
    found = LastRuns()
    for suite, keys in tree.cases_below(row):
        outlines = {case.key: case for case in suite.run_cases}
        for key in keys:
            case = suite.path, key
            last = tree.remembered.shown(case, book)
            if last is None:
                found.statuses[book.summary(case).status] += 1
                found.add(book.counting_runs(case))
                continue
            found.statuses[last.status] += 1
            found.add(last.runs)
            found.before.append(last.began_ms)
            found.edited += is_edited_since(Row(row.key, 0, "", suite, outlines.get(key)), last)
    return found


def summary_message(tree: TreeState, found: LastRuns, book: RunBook) -> Message:
    """Describe the last runs: statuses, latency, tokens, cost, and causes of failures."""
    totals = model_totals("", cells_of(found.runs).values())
    counts = []
    for status in Status:
        if found.statuses[status]:
            counts.append(f"{count_text(found.statuses[status])} {status.counted}")
    if never := found.statuses[None]:
        counts.append(f"{count_text(never)} not run")
    lines: list[tuple[str, Role]] = [(", ".join(counts), "strong")]
    if found.before:
        text = f"{counted(len(found.before), 'case')} from the history, {_ages(found.before, book.now())}"
        if found.edited:
            text += f" {GLYPHS.dot} {counted(found.edited, 'case')} edited since"
        lines.append((text, "muted"))
    lines.append(("", "text"))
    if (latency := totals.latency) is not None:
        lines.append((f"latency {percentiles_text(latency)}", "text"))
    if totals.input_tokens is not None:
        lines.append((tokens_text(totals.input_tokens, totals.output_tokens or 0), "text"))
    costs: list[str] = []
    if totals.cost_usd is not None:
        costs.append(f"cost {cost_text(totals.cost_usd)}")
    if totals.runs_of_unknown_cost:
        costs.append(f"cost unknown for {counted(totals.runs_of_unknown_cost, 'run')}")
    lines.append((f" {GLYPHS.dot} ".join(costs) or "cost unknown", "text"))
    causes = tree.remembered.causes_of(found.failed)
    if causes:
        named = ", ".join(f"{cause} {count_text(causes[cause])}" for cause in CAUSES if causes[cause])
        lines.append((f"causes: {named}", "failed"))
    return tuple(lines)


def _ages(began_ms: list[float], now: datetime) -> str:
    first, last = age_text(min(began_ms), now), age_text(max(began_ms), now)
    if first != last:
        return f"{first} to {last} old"
    if first == "now":
        return "of just now"
    return f"{first} old"
