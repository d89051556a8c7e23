"""The summary of the last runs of a suite or folder, from this session or the history. Shown in the run pane."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from workbench.analysis.causes import CAUSES
from workbench.analysis.comparison import ModelTotals
from workbench.authoring.document import CaseOutline
from workbench.authoring.open_suite import OpenSuite
from workbench.grading.status import Status
from workbench.numerals import age_text, cost_text, count_text, counted, tokens_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import ELLIPSIS, Message, Role
from workbench.show.views.values import percentiles_text
from workbench.tui.run_book.book import RunBook
from workbench.tui.tree.last_runs import CachedRuns, LastRuns
from workbench.tui.tree.state import Row, RowKey, TreeState
from workbench.tui.tree.stored_results import is_edited_since

if TYPE_CHECKING:
    from workbench.grading.status import Status


def last_runs(tree: TreeState, row: Row, book: RunBook) -> LastRuns:
    """Return the last runs of the displayed cases at or below a row.

    The result must not be changed, because it is cached until a case, a run or a stored result changes. Each movement
    of the cursor needs it, and a suite may have thousands of cases."""
    parts = []
    for suite, keys in tree.cases_below(row):
        key = row.key if row.case is not None else RowKey("suite", suite.path)
        parts.append(_last_runs_of(tree, suite, keys, key, book))
    if len(parts) == 1:
        return parts[0]
    known = tree.last_runs.get(row.key)
    if known is None or not known.is_current(parts, ()):
        found = _joined(parts)
        found.earlier_totals = known.found.totals if known is not None else None
        known = tree.last_runs[row.key] = CachedRuns(tuple(parts), (), found)
    return known.found


def _last_runs_of(tree: TreeState, suite: OpenSuite, keys: tuple[str, ...], key: RowKey, book: RunBook) -> LastRuns:
    same = (suite.file, suite.disk, tree.remembered.results)
    equal = (keys, book.revision(suite.path), book.by_model.change_count)
    known = tree.last_runs.get(key)
    if known is None or not known.is_current(same, equal):
        found = _computed(tree, suite, keys, key, book)
        found.earlier_totals = known.found.totals if known is not None else None
        known = tree.last_runs[key] = CachedRuns(same, equal, found)
    return known.found


def _computed(tree: TreeState, suite: OpenSuite, keys: tuple[str, ...], key: RowKey, book: RunBook) -> LastRuns:
    found = LastRuns()
    outlines: dict[str, CaseOutline] = {}
    if suite.dirty:
        outlines = {case.key: case for case in suite.run_cases}
    for case_key in keys:
        case = suite.path, case_key
        last = tree.remembered.shown(case, book)
        if last is not None:
            found.statuses[last.status] += 1
            found.add(last.runs)
            found.before.append(last.began_ms)
            # Without unsaved changes, a case was edited only if its saved text was.
            if outlines:
                found.edited += is_edited_since(Row(key, 0, "", suite, outlines.get(case_key)), last)
            else:
                found.edited += last.edited
        elif book.has_runs(case):
            found.statuses[book.summary(case).status] += 1
            found.add(book.counting_runs(case))
        else:
            found.statuses[None] += 1
    return found


def _joined(parts: Sequence[LastRuns]) -> LastRuns:
    found = LastRuns()
    for part in parts:
        found.statuses += part.statuses
        found.runs += part.runs
        found.before += part.before
        found.edited += part.edited
        found.failed += part.failed
    return found


def summary_message(tree: TreeState, found: LastRuns, book: RunBook) -> Message:
    """Describe the last runs: statuses, latency, tokens, cost, and causes of failures."""
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
    totals = found.totals
    lines += [(f"latency, tokens and cost {ELLIPSIS}", "muted")] if totals is None else _totals_lines(totals)
    causes = tree.remembered.causes_of(found.failed)
    if causes:
        named = ", ".join(f"{cause} {count_text(causes[cause])}" for cause in CAUSES if causes[cause])
        lines.append((f"causes: {named}", "failed"))
    return tuple(lines)


def _totals_lines(totals: ModelTotals) -> list[tuple[str, Role]]:
    lines: list[tuple[str, Role]] = []
    if (latency := totals.latency) is not None:
        lines.append((f"latency {percentiles_text(latency)}", "text"))
    if totals.input_tokens is not None:
        lines.append((tokens_text(totals.input_tokens, totals.output_tokens or 0), "text"))
    costs: list[str] = []
    if totals.cost_usd is not None:
        costs.append(f"cost {cost_text(totals.cost_usd)}")
    if totals.runs_of_unknown_cost:
        costs.append(f"cost unknown for {counted(totals.runs_of_unknown_cost, 'run')}")
    return [*lines, (f" {GLYPHS.dot} ".join(costs) or "cost unknown", "text")]


def _ages(began_ms: list[float], now: datetime) -> str:
    first, last = age_text(min(began_ms), now), age_text(max(began_ms), now)
    if first != last:
        return f"{first} to {last} old"
    if first == "now":
        return "of just now"
    return f"{first} old"
