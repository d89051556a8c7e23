"""The suite tree as a list of rows: folders, suites, cases and the problems of suites that do not parse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from workbench.suite.loading import SuiteFile
from workbench.suite.model import Case
from workbench.suite.problems import Problem
from workbench.trajectory.recording import SUFFIX

RowKind = Literal["folder", "suite", "case", "problem", "hint"]

OPEN_AT_START_CASES = 300
"""With more cases than this, suites start folded."""


class RowKey(NamedTuple):
    """What a row stands for, the same after a reload."""

    kind: RowKind
    path: Path
    part: str = ""


class Row(NamedTuple):
    """One row. `depth` counts from 0; `file` is the suite it belongs to."""

    key: RowKey
    depth: int
    label: str
    file: SuiteFile | None = None
    case: Case | None = None
    problem: Problem | None = None


@dataclass
class _Folder:
    path: Path
    folders: dict[Path, _Folder] = field(default_factory=dict)
    files: list[SuiteFile] = field(default_factory=list)

    def all_files(self) -> Iterator[SuiteFile]:
        for folder in self.folders.values():
            yield from folder.all_files()
        yield from self.files


class TreeState:
    """Rows, the cursor among them, what is folded, and the filter."""

    def __init__(self, roots: Sequence[Path], files: Sequence[SuiteFile]) -> None:
        self.rows: list[Row] = []
        self.cursor = 0
        self.filter = ""
        self._roots = tuple(roots)
        self._folded: set[RowKey] = set()
        self._tops: list[_Folder | SuiteFile] = []
        self._case_rows: dict[Path, list[Row]] = {}
        self.files: tuple[SuiteFile, ...] = ()
        self._place(files)
        if self.case_count > OPEN_AT_START_CASES:
            self._folded = {RowKey("suite", file.path) for file in files if file.suite is not None}
        self._rebuild()
        self.cursor = next((index for index, row in enumerate(self.rows) if row.case is not None), 0)

    @property
    def case_count(self) -> int:
        return sum(len(file.suite.cases) for file in self.files if file.suite is not None)

    @property
    def selected(self) -> Row | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.rows else None

    def move_to(self, index: int) -> None:
        """Put the cursor on a row, the nearest one there is."""
        self.cursor = min(max(index, 0), max(len(self.rows) - 1, 0))

    def is_foldable(self, row: Row) -> bool:
        return row.key.kind in ("folder", "suite")

    def is_folded(self, row: Row) -> bool:
        """Whether what is below a row is hidden; a filter opens everything it finds."""
        return row.key in self._folded and not self.filter

    def fold(self, row: Row, folded: bool) -> None:
        """Hide or show what is below a row."""
        if self.is_foldable(row) and not self.filter:
            (self._folded.add if folded else self._folded.discard)(row.key)
            self._rebuild()

    def parent(self, index: int) -> int:
        """The row above that holds this one; the row itself when nothing does."""
        depth = self.rows[index].depth
        return next((above for above in range(index, -1, -1) if self.rows[above].depth < depth), index)

    def set_filter(self, text: str) -> None:
        """Show only cases that have every word of `text` in their name, id, tags or suite."""
        if text == self.filter:
            return
        self.filter = text
        self._rebuild()
        row = self.selected
        if text and (row is None or row.case is None):
            self.cursor = next((index for index, row in enumerate(self.rows) if row.case is not None), 0)

    def reload(self, files: Sequence[SuiteFile]) -> None:
        """Take over suites read again; the cursor stays on what it was on, or near it."""
        self._place(files)
        self._rebuild()

    def cases_below(self, row: Row) -> list[tuple[SuiteFile, tuple[str, ...]]]:
        """The ids of the shown cases at or below a row, by suite. Suites that cannot run are left out."""
        if row.case is not None and row.file is not None:
            return [(row.file, (row.case.id,))]
        if row.key.kind == "folder":
            folder = next((found for found in self._all_folders() if found.path == row.key.path), None)
            files = list(folder.all_files()) if folder is not None else []
        else:
            files = [row.file] if row.file is not None else []
        found = [(file, tuple(r.case.id for r in self._shown_cases(file) if r.case is not None)) for file in files]
        return [(file, ids) for file, ids in found if ids]

    def _place(self, files: Sequence[SuiteFile]) -> None:
        self.files = tuple(files)
        self._case_rows = {}
        self._tops = []
        left = {file.path: file for file in files}
        for root in self._roots:
            if root in left:
                self._tops.append(left.pop(root))
                continue
            top = _Folder(root)
            for path in [path for path in left if path.is_relative_to(root)]:
                folder = top
                for above in reversed(path.relative_to(root).parents[:-1]):
                    folder = folder.folders.setdefault(root / above, _Folder(root / above))
                folder.files.append(left.pop(path))
            if top.files or top.folders:
                self._tops.append(top)

    def _rebuild(self) -> None:
        key = self.selected.key if self.selected is not None else None
        self.rows = [row for top in self._tops for row in self._rows(top, 0)]
        self.move_to(self.cursor)
        if key is not None:
            self.cursor = next((index for index, row in enumerate(self.rows) if row.key == key), self.cursor)

    def _rows(self, node: _Folder | SuiteFile, depth: int) -> list[Row]:
        if isinstance(node, _Folder):
            head = Row(RowKey("folder", node.path), depth, node.path.resolve().name or str(node.path))
            children: Iterable[_Folder | SuiteFile] = (*node.folders.values(), *node.files)
            below = [row for child in children for row in self._rows(child, depth + 1)]
        else:
            label = _short_name(node.path) if node.suite is not None else node.path.name
            head = Row(RowKey("suite", node.path), depth, label, node)
            below = self._cases(node, depth + 1) if node.suite is not None else self._problems(node, depth + 1)
        if self.filter and not below:
            return []
        return [head] if self.is_folded(head) else [head, *below]

    def _cases(self, file: SuiteFile, depth: int) -> list[Row]:
        if file.suite is not None and file.path not in self._case_rows:
            self._case_rows[file.path] = [
                Row(RowKey("case", file.path, case.id), depth, case.name, file, case) for case in file.suite.cases
            ]
        return self._shown_cases(file)

    def _problems(self, file: SuiteFile, depth: int) -> list[Row]:
        named = all(word in file.path.name.casefold() for word in self.filter.casefold().split())
        return _problem_rows(file, depth) if named else []

    def _shown_cases(self, file: SuiteFile) -> list[Row]:
        rows = self._case_rows.get(file.path, [])
        if not self.filter or file.suite is None:
            return rows
        words = self.filter.casefold().split()
        suite = f"{file.path.stem} {file.suite.name} {' '.join(file.suite.tags)}".casefold()
        return [row for row in rows if row.case is not None and _fits(row.case, suite, words)]

    def _all_folders(self) -> Iterator[_Folder]:
        waiting = [top for top in self._tops if isinstance(top, _Folder)]
        while waiting:
            folder = waiting.pop()
            yield folder
            waiting.extend(folder.folders.values())


def _short_name(path: Path) -> str:
    return path.name.removesuffix(SUFFIX) if path.name.endswith(SUFFIX) else path.stem


def _fits(case: Case, suite: str, words: Sequence[str]) -> bool:
    text = f"{suite} {case.name} {case.id} {' '.join(case.tags)}".casefold()
    return all(word in text for word in words)


def _problem_rows(file: SuiteFile, depth: int) -> list[Row]:
    rows: list[Row] = []
    for number, problem in enumerate(file.problems):
        place = f"line {problem.line}: " if problem.line else ""
        rows.append(Row(RowKey("problem", file.path, str(number)), depth, place + problem.message, file, None, problem))
        if problem.hint:
            rows.append(Row(RowKey("hint", file.path, str(number)), depth + 1, problem.hint, file, None, problem))
    return rows
