"""The rows of the suite tree.

The rows of a suite are rebuilt only where it changed."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal, NamedTuple

from workbench.authoring.document import HEAD, CaseOutline
from workbench.authoring.open_suite import OpenSuite
from workbench.suite.problems import Problem, at_line
from workbench.suite.suite_file import SuiteFile
from workbench.trajectory.recording import SUFFIX

RowKind = Literal["folder", "suite", "case", "step", "problem", "hint"]


class RowKey(NamedTuple):
    """Identifies a row, also after a reload."""

    kind: RowKind
    path: Path
    part: str = ""


class Row(NamedTuple):
    """One row.

    `depth` counts from 0, `open` is its suite. A step's row has the case of its chain."""

    key: RowKey
    depth: int
    label: str
    open: OpenSuite | None = None
    case: CaseOutline | None = None
    problem: Problem | None = None

    @property
    def step(self) -> int | None:
        """The number of the row's step, from 1."""
        return int(self.key.part.rpartition("#")[2]) if self.key.kind == "step" else None

    @property
    def file(self) -> SuiteFile | None:
        """The current state of the row's suite."""
        return self.open.file if self.open is not None else None

    @property
    def is_broken(self) -> bool:
        """Whether the row's case has errors."""
        return self.open is not None and self.case is not None and self.case.index in self.open.broken_cases

    @property
    def is_changed(self) -> bool:
        """Whether the row's case has unsaved changes."""
        return self.open is not None and self.case is not None and self.open.is_changed(self.case.index)


class SuiteRows:
    """All possible rows of a suite, regardless of folds and filters."""

    def __init__(self, suite: OpenSuite, depth: int) -> None:
        self.suite = suite
        self.depth = depth
        self.problems: list[Row] = []
        self.cases: list[Row] = []
        self.rows_made = 0
        """The number of rows built so far, which is the cost of changes."""
        self._shown: object = None
        self._steps: dict[str, list[Row]] = {}
        self.follow()

    def follow(self) -> bool:
        """Take over edits.

        Returns whether any row changed."""
        suite = self.suite
        shown = (suite.cases, _shown_problems(suite), has_cases(suite))
        if shown == self._shown:
            return False
        self._shown = shown
        label = suite.path.name
        if has_cases(suite):
            label = _short_name(suite.path)
        self.head = Row(RowKey("suite", suite.path), self.depth, label, suite)
        self.problems = _problem_rows(suite, shown[1], self.depth + 1)
        # Unchanged outlines are the same objects, and so stay their rows: views compare rows by identity.
        known = self.cases
        self.cases = []
        for at, case in enumerate(suite.cases):
            unchanged = at < len(known) and known[at].case is case
            self.cases.append(known[at] if unchanged else self._case(case))
        self._steps = {}
        return True

    def with_steps(self, cases: list[Row], unfolded: Collection[str]) -> list[Row]:
        """Return rows of cases, with the rows of steps below the chains that have these keys."""
        if not unfolded:
            return cases
        rows: list[Row] = []
        for row in cases:
            rows.append(row)
            if row.case is not None and row.case.steps and row.case.key in unfolded:
                rows += self._steps_of(row, row.case)
        return rows

    @property
    def chains(self) -> tuple[str, ...]:
        """The keys of the cases that are chains."""
        return tuple(row.case.key for row in self.cases if row.case is not None and row.case.steps)

    def _case(self, case: CaseOutline) -> Row:
        self.rows_made += 1
        return Row(RowKey("case", self.suite.path, case.key), self.depth + 1, case.name, self.suite, case)

    def _steps_of(self, row: Row, case: CaseOutline) -> list[Row]:
        if case.key not in self._steps:
            self.rows_made += len(case.steps)
            self._steps[case.key] = [
                Row(
                    RowKey("step", self.suite.path, f"{case.key}#{number}"),
                    row.depth + 1,
                    f"{number} {tool or 'no call'}",
                    self.suite,
                    case,
                )
                for number, tool in enumerate(case.steps, 1)
            ]
        return self._steps[case.key]


def has_cases(suite: OpenSuite) -> bool:
    """Return whether a suite shows its cases.

    Otherwise it shows its problems, because the file is not TOML or not a suite."""
    return bool(suite.cases) or suite.file.suite is not None


def _short_name(path: Path) -> str:
    """Return a file's name without its suffix; that of a recording has two parts."""
    if path.name.endswith(SUFFIX):
        return path.name.removesuffix(SUFFIX)
    return path.stem


def _shown_problems(suite: OpenSuite) -> tuple[Problem, ...]:
    """Return the problems outside of the cases of a suite that cannot run.

    The others are shown with their cases."""
    if suite.file.suite is not None:
        return ()
    if suite.cases:
        return suite.problems_of(HEAD)
    return suite.file.problems


def _problem_rows(suite: OpenSuite, problems: Collection[Problem], depth: int) -> list[Row]:
    rows: list[Row] = []
    for number, problem in enumerate(problems):
        text = at_line(problem, "line")
        rows.append(Row(RowKey("problem", suite.path, str(number)), depth, text, suite, None, problem))
        if problem.hint:
            rows.append(Row(RowKey("hint", suite.path, str(number)), depth + 1, problem.hint, suite, None, problem))
    return rows
