"""Definitions of tools that changed between two batches, as a reason beside the cases that broke."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from workbench.analysis.batch_diff import BatchDiff
from workbench.analysis.comparison import CellKey
from workbench.history.history import History
from workbench.history.records import HistoryError, RunRow, SameSuites
from workbench.history.run_table import RunTable
from workbench.suite.numerals import counted
from workbench.trajectory.messages import ToolDefinition
from workbench.trajectory.recording import RecordingError

_MAX_NAMED = 5
_MAX_LOOKED_AT = 50
"""So many of the cases that broke are looked at: each is read from the history."""

Offered = Callable[[CellKey], Sequence[ToolDefinition] | None]
"""The tools that the first run of a case was offered, by what the case is known as in the later batch; `None` where
that is not known."""


def notes_on_tools(diff: BatchDiff, before: Offered, after: Offered) -> Iterator[str]:
    """Yields which definitions changed in how many of the cases that broke; nothing where none did."""
    broke = looked_at(diff)
    found: Counter[str] = Counter()
    cases = 0
    for key in broke:
        then, now = before(key), after(key)
        changed = _changes(then, now) if then and now else []
        found.update(changed)
        cases += bool(changed)
    if found:
        named = ", ".join(what for what, _ in found.most_common(_MAX_NAMED))
        more = f", and {counted(len(found) - _MAX_NAMED, 'other')}" if len(found) > _MAX_NAMED else ""
        of = f"{cases:,} of {counted(len(broke), 'case')} that broke"
        yield f"offered other tools in {of}: {named}{more}"


def looked_at(diff: BatchDiff) -> dict[CellKey, None]:
    """Return the cases that broke whose tools are looked at."""
    return dict.fromkeys((each.suite, each.case_id, each.model) for each in diff.of("broke")[:_MAX_LOOKED_AT])


def offered_in(history: History, runs: RunTable, diff: BatchDiff, earlier: SameSuites | None = None) -> Offered:
    """Return what tells the tools of those runs of a batch that are looked at; of the earlier one, `earlier` has its
    suites in the later one."""
    wanted, first = looked_at(diff), dict[CellKey, RunRow]()
    for run in runs.of_cases({case_id for _, case_id, _ in wanted}):
        if run.figures is not None:
            across = diff.across is not None and earlier is not None and run.model == diff.across[0]
            model = diff.across[1] if across and diff.across is not None else run.model
            key = (earlier or {}).get(run.suite.key, run.suite.key), run.case_id, model
            if key in wanted:
                first.setdefault(key, run)

    def offered(key: CellKey) -> Sequence[ToolDefinition] | None:
        if key not in first:
            return None
        try:
            start = history.recording(first[key]).trajectory.start
        except (HistoryError, RecordingError):  # what is damaged is told of elsewhere
            return None
        return start.tools if start is not None else None

    return offered


def _changes(before: Sequence[ToolDefinition], after: Sequence[ToolDefinition]) -> list[str]:
    old, new = ({tool.name: tool for tool in tools} for tools in (before, after))
    changes = [f"{name} (gone)" for name in old if name not in new]
    for name, tool in new.items():
        if (then := old.get(name)) is None:
            changes.append(f"{name} (new)")
            continue
        parts = ("description", "parameters", "annotations")
        if altered := [part for part in parts if getattr(then, part) != getattr(tool, part)]:
            changes.append(f"{name} ({', '.join(altered)})")
    return changes
