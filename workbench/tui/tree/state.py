"""The suite tree as a list of rows: folders, suites, cases, steps of chains, and problems of invalid suites.

A change rebuilds only the affected rows. All other rows stay the same objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.case_list import CaseKey
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import SuitesChanged
from workbench.dataclasses import dataclass
from workbench.suite.files import folder_name
from workbench.tui.run_book.book import RunBook
from workbench.tui.tree.audit_marks import AuditMarks
from workbench.tui.tree.filter import Search, with_status
from workbench.tui.tree.rows import Row, RowKey, RowKind, SuiteRows, has_cases, keys_of
from workbench.tui.tree.stored_results import StoredResults

if TYPE_CHECKING:
    from workbench.tui.tree.last_runs import CachedRuns

__all__ = ["Row", "RowKey", "RowKind", "TreeState", "has_cases"]

OPEN_AT_START_CASES = 300
"""The maximum number of cases for unfolded suites at the start."""

STEPS_OPEN_AT_START_CASES = 40
"""The maximum number of cases for unfolded chains at the start."""


@dataclass
class _Folder:
    path: Path
    folders: dict[Path, _Folder] = field(default_factory=dict)
    suites: list[SuiteRows] = field(default_factory=list)
    depth: int = 0

    @cached_property
    def head(self) -> Row:
        return Row(RowKey("folder", self.path), self.depth, folder_name(self.path))

    def all_suites(self) -> Iterator[SuiteRows]:
        for folder in self.folders.values():
            yield from folder.all_suites()
        yield from self.suites


@dataclass(frozen=True)
class _Shown:
    """The displayed cases of a suite: their rows, which include the rows of steps, and their keys."""

    rows: list[Row]
    keys: tuple[str, ...]


_NONE_SHOWN = _Shown([], ())


class TreeState:
    """The rows, the cursor, the folds, and the filter."""

    def __init__(self, roots: Sequence[Path] = (), suites: Sequence[OpenSuite] = ()) -> None:
        self.rows: list[Row] = []
        self.cursor = 0
        self.filter = ""
        self.other_rows = False
        """Whether the last change of the suites changed rows, not only their marks."""
        self.audits = AuditMarks()
        self.remembered = StoredResults()
        self.last_runs: dict[RowKey, CachedRuns] = {}
        """The last runs of suites and folders, cached by `tree.suite_summary`."""
        self._roots: tuple[Path, ...] = ()
        self._folded: set[RowKey] = set()
        self._tops: list[_Folder | SuiteRows] = []
        self._of_suites: dict[Path, SuiteRows] = {}
        self._unfolded: dict[Path, set[str]] = {}
        """The keys of unfolded chains, by suite."""
        self._shown: dict[Path, _Shown] = {}
        self._starts: dict[RowKey, int] = {}
        """The indices of folders and suites."""
        self._search = Search()
        self._cases_with_status: frozenset[CaseKey] | None = None
        self._unfiltered: RowKey | None = None
        """The row that was selected before the filter was set."""
        self._kept_row: RowKey | None = None
        """The last edited case or suite. It stays visible with any filter."""
        self.suites: tuple[OpenSuite, ...] = ()
        self._begin(roots, suites)

    def _begin(self, roots: Sequence[Path], suites: Sequence[OpenSuite]) -> None:
        self._roots = tuple(roots)
        self._place(suites)
        if self.case_count > OPEN_AT_START_CASES:
            self._folded = {RowKey("suite", suite.path) for suite in suites if has_cases(suite)}
        if self.case_count <= STEPS_OPEN_AT_START_CASES:
            self._unfolded = {rows.suite.path: set(rows.chains) for rows in self._of_suites.values()}
        self._rebuild()
        self.cursor = self._first_case()

    @property
    def case_count(self) -> int:
        return sum(len(suite.run_cases) for suite in self.suites)

    @property
    def selected(self) -> Row | None:
        if not self.rows:
            return None
        return self.rows[self.cursor]

    @property
    def suite_or_folder(self) -> Row | None:
        """The selected suite or folder, or the suite of the selected row."""
        if not self.rows:
            return None
        at = self.cursor
        while self.rows[at].case is not None:
            at = self.parent(at)
        return self.rows[at]

    def move_to(self, index: int) -> None:
        """Move the cursor to the row at an index, or to the nearest row."""
        self.cursor = min(max(index, 0), max(len(self.rows) - 1, 0))

    def neighbour(self, step: int) -> int | None:
        """Return the index of the displayed case above (-1) or below (1) the selected case, `None` if there is none.

        The index is the position among all cases of the suite."""
        row = self.selected
        if row is None or row.case is None or row.open is None:
            return None
        at = self.cursor + step
        while 0 <= at < len(self.rows) and self.rows[at].open is row.open:
            case = self.rows[at].case
            if case is None:
                return None
            if case.index != row.case.index:
                return case.index
            at += step
        return None

    # Folding

    def is_foldable(self, row: Row) -> bool:
        if row.key.kind == "case":
            return row.has_rows or (row.case is not None and bool(row.case.steps) and not row.case.is_row)
        return row.key.kind in ("folder", "suite")

    def is_folded(self, row: Row) -> bool:
        """Return whether a row is folded. While a filter is active, no folder or suite is folded."""
        if row.key.kind == "case":
            return row.key.part not in self._unfolded.get(row.key.path, ())
        return row.key in self._folded and not self.filter

    def fold(self, row: Row, folded: bool) -> None:
        if not self.is_foldable(row):
            return
        if row.key.kind == "case":
            keys = self._unfolded.setdefault(row.key.path, set())
            if folded:
                keys.discard(row.key.part)
            else:
                keys.add(row.key.part)
            self._forget_shown(row.key.path)
            self._rebuild()
        elif not self.filter:
            # A filter unfolds all suites, so folding is not possible while a filter is active.
            if folded:
                self._folded.add(row.key)
            else:
                self._folded.discard(row.key)
            self._rebuild()

    @property
    def folded(self) -> frozenset[RowKey]:
        """The folded folders and suites, including those below a folded folder."""
        return frozenset(self._folded)

    def fold_only(self, keys: Iterable[RowKey]) -> None:
        """Fold exactly these folders and suites."""
        self._folded = set(keys)
        self._rebuild()

    def parent(self, index: int) -> int:
        """Return the index of a row's parent, or of the row itself if it has no parent."""
        key, depth = self.rows[index].key, self.rows[index].depth
        case = self.rows[index].case
        if key.kind in ("case", "problem") and (case is None or not case.is_row):
            return self._starts[RowKey("suite", key.path)]
        return next((above for above in range(index, -1, -1) if self.rows[above].depth < depth), index)

    # Filtering

    def set_filter(self, text: str, book: RunBook | None = None) -> None:
        """Show only the cases that match a filter, as described in `workbench.tui.tree.filter`.

        With a `book`, words such as `status:failed` filter by the current status."""
        if text == self.filter:
            return
        before = self.selected
        if before is not None and not self.filter:
            self._unfiltered = before.key
        self.filter = text
        self._cases_with_status = None
        if book is not None:
            self._cases_with_status = self._with_status(text, book)
        self._kept_row = None
        self._shown = {}
        self._rebuild()
        row = self.selected
        if text and (row is None or row.case is None):
            self.cursor = self._first_case()
        elif not text and before is None and self._unfiltered is not None:
            # If nothing matched the removed filter, the row that was selected before the filter is selected again.
            at = self._index_of(self._unfiltered)
            if at is not None:
                self.cursor = at

    def _with_status(self, text: str, book: RunBook) -> frozenset[CaseKey] | None:
        suites = list(self._of_suites.values())
        return with_status(suites, text, lambda case: self.remembered.summary(case, book))

    def follow_status(self, book: RunBook) -> bool:
        """Update a filter by status after runs changed. Return whether its matches changed."""
        if self._cases_with_status is None:
            return False
        row = self.selected
        wanted = self._with_status(self.filter, book) or frozenset()
        # The selected case stays visible, so its row does not vanish when its run ends.
        if row is not None and row.case is not None and row.open is not None:
            wanted |= {(row.key.path, row.open.cases[row.case.index].key)}
        if wanted == self._cases_with_status:
            return False
        self._cases_with_status = wanted
        self._shown = {}
        self._rebuild()
        return True

    def select(self, path: Path, case: str | None = None) -> bool:
        """Select a case (by key) or a suite. Return whether it exists.

        If it is hidden, the filter is cleared, and the rows above it are unfolded."""
        wanted = RowKey("suite", path)
        if case is not None:
            wanted = RowKey("case", path, case)
        at = self._index_of(wanted)
        if at is None:
            self.set_filter("")
            self._unfold_above(path, case)
            self._folded = {key for key in self._folded if not path.is_relative_to(key.path) or key == wanted}
            self._rebuild()
            at = self._index_of(wanted)
        if at is not None:
            self.cursor = at
        return at is not None

    def _unfold_above(self, path: Path, case: str | None) -> None:
        rows = self._of_suites.get(path)
        if rows is None:
            return
        for index, outlines in rows.suite.rows.items():
            if any(outline.key == case for outline in outlines):
                self._unfolded.setdefault(path, set()).add(rows.suite.cases[index].key)
                self._forget_shown(path)

    def cases_below(self, row: Row) -> list[tuple[OpenSuite, tuple[str, ...]]]:
        """Return the keys of the displayed cases at or below a row, by suite."""
        if row.open is not None and row.case is not None:
            return [(row.open, keys_of(row.open, row.case))]
        suites = self._suites_in(row.key.path)
        if row.open is not None:
            suites = [row.open]
        below: list[tuple[OpenSuite, tuple[str, ...]]] = []
        for suite in suites:
            if keys := self._cases(suite.path).keys:
                below.append((suite, keys))
        return below

    # Following changes

    def follow(self, change: SuitesChanged) -> None:
        """Update the rows after a change of the open suites. Undo and redo also select the changed case."""
        if change.first:
            self._begin(change.workspace.roots, change.open)
        elif change.how in ("read", "added"):
            self.reload(change.open, change.workspace.roots)
        self.other_rows = change.how in ("read", "added")
        if change.how == "read":
            return
        for suite in change.suites:
            self.other_rows |= self.changed(suite, change.index)
            if change.how == "undone":
                self._select_changed(suite, change.case)

    def _select_changed(self, suite: OpenSuite, case: str | None) -> None:
        if case is None or any(outline.key == case for outline in suite.cases):
            self.select(suite.path, case)
        elif self.selected is None or self.selected.open is not suite:
            self.select(suite.path)

    def reload(self, suites: Sequence[OpenSuite], roots: Sequence[Path] | None = None) -> None:
        """Show other or reloaded suites, with new `roots` if given.

        The cursor stays on its row if the row still exists."""
        if roots is not None:
            self._roots = tuple(roots)
        self._place(suites)
        self._rebuild()

    def changed(self, suite: OpenSuite, index: int | None = None) -> bool:
        """Update the rows of an edited suite. Return whether the tree has other rows than before.

        `index` is the index of the edited case, or `HEAD` for the suite itself. The edited case stays selected and
        visible, even if it no longer matches the filter."""
        rows = self._of_suites.get(suite.path)
        if rows is None:
            return False
        if index is not None:
            self._keep_row(suite, index)
        selected = self.selected
        # An edit may change the key of the case, so the cursor looks for the new key.
        stays = selected is not None and selected.open is suite and selected.case and selected.case.index == index
        if not rows.follow():
            return False
        self._forget_shown(suite.path)
        self._rebuild(self._kept_row if stays else None)
        return True

    def _keep_row(self, suite: OpenSuite, index: int) -> None:
        if not 0 <= index < len(suite.cases):
            self._kept_row = RowKey("suite", suite.path)
            return
        self._kept_row = RowKey("case", suite.path, suite.cases[index].key)
        if self._cases_with_status is not None:
            self._cases_with_status |= {(suite.path, suite.cases[index].key)}

    def _place(self, suites: Sequence[OpenSuite]) -> None:
        self.suites = tuple(suites)
        self._tops = []
        self._shown = {}
        self._search.forget()
        known, self._of_suites = self._of_suites, {}
        left = {suite.path: suite for suite in suites}

        def rows_of(path: Path, depth: int) -> SuiteRows:
            suite, rows = left.pop(path), known.get(path)
            if rows is None or rows.suite is not suite or rows.depth != depth:
                rows = SuiteRows(suite, depth)
            rows.follow()
            self._of_suites[path] = rows
            return rows

        for root in self._roots:
            if root in left:
                self._tops.append(rows_of(root, 0))
                continue
            top = _Folder(root)
            # A suite below two roots is shown only below the first. `rows_of` removes it from `left`, so the loop needs
            # a copy.
            for path in list(left):
                if not path.is_relative_to(root):
                    continue
                folder = top
                above = tuple(reversed(path.relative_to(root).parents[:-1]))
                for depth, part in enumerate(above, 1):
                    folder = folder.folders.setdefault(root / part, _Folder(root / part, depth=depth))
                folder.suites.append(rows_of(path, len(above) + 1))
            if top.suites or top.folders:
                self._tops.append(top)

    # Rows

    def _rebuild(self, case: RowKey | None = None) -> None:
        """Rebuild the list of rows.

        `case` is the selected case's new key if an edit may have changed the key."""
        row = self.selected
        if self.filter and not self._shown:
            self._filter()
        self.rows = []
        self._starts = {}
        for top in self._tops:
            self._add(top)
        self.move_to(self.cursor)
        if row is None:
            return
        at = self._index_of(case if case is not None and row.key.kind == "case" else row.key)
        # If the row of the selected step is gone, because its chain was folded, shortened or renamed, select the chain.
        if at is None and row.key.kind == "step" and row.case is not None:
            at = self._index_of(case or RowKey("case", row.key.path, row.case.key))
        if at is not None:
            self.cursor = at

    def _add(self, node: _Folder | SuiteRows) -> None:
        at = len(self.rows)
        head = node.head
        self.rows.append(head)
        self._starts[head.key] = at
        if self.is_folded(head):
            return
        if isinstance(node, _Folder):
            children: tuple[_Folder | SuiteRows, ...] = (*node.folders.values(), *node.suites)
            for child in children:
                self._add(child)
        else:
            # Problems belong to no case, so the filter is applied to the name of their file.
            if all(word in node.suite.path.name.casefold() for word in self.filter.casefold().split()):
                self.rows += node.problems
            self.rows += self._cases(node.suite.path).rows
        if self.filter and len(self.rows) == at + 1 and head.key != self._kept_row:
            self.rows.pop()
            del self._starts[head.key]

    def _forget_shown(self, path: Path) -> None:
        # Whether a filter matches similar words depends on the texts of all suites.
        if self.filter:
            self._shown = {}
        else:
            self._shown.pop(path, None)

    def _cases(self, path: Path) -> _Shown:
        shown = self._shown.get(path)
        if shown is None and not self.filter and path in self._of_suites:
            shown = self._shown[path] = self._shown_of(path, self._of_suites[path].cases)
        return shown or _NONE_SHOWN

    def _filter(self) -> None:
        found = self._search.found(list(self._of_suites.values()), self.filter)
        wanted = self._cases_with_status
        for path, rows in found.items():
            if wanted is not None:
                rows = [row for row in rows if (path, row.key.part) in wanted]
            if self._kept_row is not None and self._kept_row.path == path:
                # The edited case stays visible at its place, even if it no longer matches the filter.
                keys = {row.key for row in rows} | {self._kept_row}
                rows = [row for row in self._of_suites[path].cases if row.key in keys]
            self._shown[path] = self._shown_of(path, rows)

    def _shown_of(self, path: Path, rows: list[Row]) -> _Shown:
        with_steps = self._of_suites[path].with_steps(rows, self._unfolded.get(path, ()))
        return _Shown(with_steps, self._of_suites[path].keys_of_all(rows))

    def _index_of(self, key: RowKey) -> int | None:
        """Return the index of a row, `None` if the row is hidden. Searches only the rows of its suite."""
        if key.kind in ("folder", "suite"):
            return self._starts.get(key)
        start = self._starts.get(RowKey("suite", key.path))
        if start is None:
            return None
        kind, part, suite = key.kind, key.part, self.rows[start].open
        for at in range(start + 1, len(self.rows)):
            row = self.rows[at]
            if row.open is not suite:
                return None
            if row.key.part == part and row.key.kind == kind:
                return at
        return None

    def _first_case(self) -> int:
        for index, row in enumerate(self.rows):
            if row.case is not None:
                return index
        return next((index for index, row in enumerate(self.rows) if row.open is not None), 0)

    def _suites_in(self, path: Path) -> list[OpenSuite]:
        waiting = [top for top in self._tops if isinstance(top, _Folder)]
        while waiting:
            folder = waiting.pop()
            if folder.path == path:
                return [rows.suite for rows in folder.all_suites()]
            waiting.extend(folder.folders.values())
        return []
