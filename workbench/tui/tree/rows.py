"""The rows of the suite tree. After an edit, only the changed rows of a suite are rebuilt."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from workbench.authoring.case_list import row_file, row_note
from workbench.authoring.document import HEAD, CaseOutline
from workbench.authoring.open_suite import OpenSuite
from workbench.show.visible import one_line
from workbench.suite.problems import Problem, message_with_line
from workbench.suite.suite_file import SuiteFile
from workbench.trajectory.recording import SUFFIX
from workbench.tui.kit.actions import key_for

RowKind = Literal["folder", "suite", "case", "step", "problem", "hint"]


class RowKey(NamedTuple):
    """The identity of a row, unchanged when the suite is reloaded.

    `part` is the key of a case, the key and number of a step (`key#2`), or the number of a problem. It is empty for
    suites and folders."""

    kind: RowKind
    path: Path
    part: str = ""


class Row(NamedTuple):
    """A row of the tree.

    `open` is the suite of the row, and `depth` its level from 0. For a step, `case` is the case to which the step
    belongs."""

    key: RowKey
    depth: int
    label: str
    open: OpenSuite | None = None
    case: CaseOutline | None = None
    problem: Problem | None = None

    @property
    def step(self) -> int | None:
        """The number of the row's step (from 1), `None` if the row is not a step."""
        if self.key.kind != "step":
            return None
        return int(self.key.part.rpartition("#")[2])

    @property
    def case_key(self) -> str | None:
        """The key of the row's case in its suite, `None` if the row has no case."""
        if self.case is None:
            return None
        return self.case.key

    @property
    def file(self) -> SuiteFile | None:
        """The file of the row's suite in its current state, with unsaved changes."""
        if self.open is None:
            return None
        return self.open.file

    @property
    def has_rows(self) -> bool:
        """Whether the row's case has an `each` table, so that it runs once for each row of data."""
        case = self.case
        return (
            self.key.kind == "case"
            and case is not None
            and not case.is_row
            and self.open is not None
            and (case.index in self.open.rows)
        )

    @property
    def why_not_editable(self) -> str | None:
        """Why the suite or case of the row cannot be edited, `None` if it can."""
        if self.open is None:
            return None
        if self.case is None or not self.case.is_row or self.open.why_not_editable is not None:
            return self.open.why_not_editable
        note = row_note(self.open, self.case)
        if file := row_file(self.open, self.case):
            return f"{note}; {key_for('toml.outside')} opens {one_line(file)}"
        return note

    @property
    def is_broken(self) -> bool:
        return self.open is not None and self.case is not None and self.case.index in self.open.broken_cases

    @property
    def is_changed(self) -> bool:
        return self.open is not None and self.case is not None and self.open.is_changed(self.case.index)


class SuiteRows:
    """All possible rows of a suite, regardless of folds and filters."""

    def __init__(self, suite: OpenSuite, depth: int) -> None:
        self.suite = suite
        self.depth = depth
        self.problems: list[Row] = []
        self.cases: list[Row] = []
        self.rows_made = 0
        """The number of case and step rows built so far. Tests compare it with the number of changed cases."""
        self._shown: object = None
        self._steps: dict[str, list[Row]] = {}
        self.follow()

    def follow(self) -> bool:
        """Rebuild the rows of edited cases. Return whether any row changed."""
        suite = self.suite
        shown = (suite.cases, _shown_problems(suite), has_cases(suite), suite.rows)
        if shown == self._shown:
            return False
        self._shown = shown
        label = suite.path.name
        if has_cases(suite):
            label = _short_name(suite.path)
        self.head = Row(RowKey("suite", suite.path), self.depth, label, suite)
        self.problems = _problem_rows(suite, shown[1], self.depth + 1)
        # Views compare rows by identity, so the row of an unchanged case must stay the same object.
        known = self.cases
        self.cases = []
        for at, case in enumerate(suite.cases):
            if at < len(known) and known[at].case is case:
                self.cases.append(known[at])
            else:
                self.cases.append(self._case(case))
        self._steps = {}
        return True

    def with_steps(self, cases: list[Row], unfolded: Collection[str]) -> list[Row]:
        """Add the rows below the unfolded cases. `unfolded` has the keys of these cases.

        The added rows are the steps of a chain, or one row for each data row of a case."""
        if not unfolded:
            return cases
        rows: list[Row] = []
        for row in cases:
            rows.append(row)
            if row.case is None or row.case.key not in unfolded:
                continue
            if row.case.index in self.suite.rows:
                rows += self._rows_of(row, row.case)
            elif row.case.steps:
                rows += self._steps_of(row, row.case)
        return rows

    @property
    def chains(self) -> tuple[str, ...]:
        """The keys of the cases that can be unfolded: chains, and cases with data rows."""
        foldable = []
        for row in self.cases:
            if row.case is not None and (row.case.steps or row.case.index in self.suite.rows):
                foldable.append(row.case.key)
        return tuple(foldable)

    def keys(self, row: Row) -> tuple[str, ...]:
        """Return the keys of the cases to run for a row: the case itself, or one case for each of its data rows."""
        assert row.case is not None
        return keys_of(self.suite, row.case)

    def keys_of_all(self, rows: Collection[Row]) -> tuple[str, ...]:
        """Return the keys of the cases to run for some rows of cases."""
        # In most suites, no case has data rows. The loop over the cases, of which there may be thousands, is then
        # avoided.
        if not self.suite.rows:
            return tuple([row.key.part for row in rows])
        return tuple(chain.from_iterable(map(self.keys, rows)))

    def _case(self, case: CaseOutline) -> Row:
        self.rows_made += 1
        return Row(RowKey("case", self.suite.path, case.key), self.depth + 1, case.name, self.suite, case)

    def _rows_of(self, row: Row, case: CaseOutline) -> list[Row]:
        if case.key not in self._steps:
            outlines = self.suite.rows[case.index]
            self.rows_made += len(outlines)
            rows: list[Row] = []
            for outline in outlines:
                key = RowKey("case", self.suite.path, outline.key)
                rows.append(Row(key, row.depth + 1, outline.name, self.suite, outline))
            self._steps[case.key] = rows
        return self._steps[case.key]

    def _steps_of(self, row: Row, case: CaseOutline) -> list[Row]:
        if case.key not in self._steps:
            self.rows_made += len(case.steps)
            rows: list[Row] = []
            for number, tool in enumerate(case.steps, 1):
                key = RowKey("step", self.suite.path, f"{case.key}#{number}")
                rows.append(Row(key, row.depth + 1, f"{number} {tool or 'no call'}", self.suite, case))
            self._steps[case.key] = rows
        return self._steps[case.key]


def keys_of(suite: OpenSuite, case: CaseOutline) -> tuple[str, ...]:
    """Return the keys of the cases to run for a case: the case itself, or one case for each of its data rows."""
    if case.is_row:
        return (case.key,)
    return tuple(row.key for row in suite.rows.get(case.index, (case,)))


def has_cases(suite: OpenSuite) -> bool:
    """Return whether the tree shows the cases of a suite.

    If the file is not a valid suite, the tree shows its problems instead."""
    return bool(suite.cases) or suite.file.suite is not None


def _short_name(path: Path) -> str:
    # The suffix of a recording has two parts, and `Path.stem` removes only the last part.
    if path.name.endswith(SUFFIX):
        return path.name.removesuffix(SUFFIX)
    return path.stem


def _shown_problems(suite: OpenSuite) -> tuple[Problem, ...]:
    """Return the problems that get a row of their own in the tree. A suite without errors has none."""
    if suite.file.suite is not None:
        return ()
    # The problem of a case is shown at the case.
    if suite.cases:
        return suite.problems_of(HEAD)
    return suite.file.problems


def _problem_rows(suite: OpenSuite, problems: Collection[Problem], depth: int) -> list[Row]:
    rows: list[Row] = []
    for number, problem in enumerate(problems):
        text = message_with_line(problem, "line")
        rows.append(Row(RowKey("problem", suite.path, str(number)), depth, text, suite, None, problem))
        if problem.hint:
            rows.append(Row(RowKey("hint", suite.path, str(number)), depth + 1, problem.hint, suite, None, problem))
    return rows
