"""All open suites, the single entry point for changing them, and undo.

Anything that needs to know about changes follows them, in a fixed order: see `OpenSuites.follow`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from workbench.authoring.case_list import CaseKey, CaseNow, read_now
from workbench.authoring.document import Document
from workbench.authoring.open_suite import Change, OpenSuite
from workbench.authoring.workspace import Workspace
from workbench.config.read_only import refuse_if_read_only
from workbench.dataclasses import dataclass
from workbench.suite.loading import SuiteFile


@dataclass(frozen=True)
class SuitesChanged:
    """A change of open suites, as every follower receives it.

    - `read`: the workspace was read, for the `first` time or again. Any suite may have changed, come or gone.
    - `added`: a suite was opened that is not part of the workspace.
    - `edited`: the document of a suite changed. `index` is the case that was edited in place, if any (`HEAD`: the
      suite's settings).
    - `undone`: the same, by undo or redo. `case` is the key of the case that the step was about.
    """

    how: Literal["read", "added", "edited", "undone"]
    suites: tuple[OpenSuite, ...]
    """The suites that may have changed."""
    open: tuple[OpenSuite, ...]
    """All open suites."""
    workspace: Workspace
    first: bool = False
    index: int | None = None
    case: str | None = None


Follower: TypeAlias = Callable[[SuitesChanged], object]


class NotEditableError(ValueError):
    """A suite cannot be changed now; the message says why."""


class OpenSuites:
    """The open suites, in the order of the workspace."""

    def __init__(self, checked: Callable[[SuiteFile], SuiteFile] = lambda file: file) -> None:
        self.suites: tuple[OpenSuite, ...] = ()
        self.workspace = Workspace((), ())
        self.moved = ""
        """A description of the grades that the last change moved, set by the follower that regrades runs."""
        self.on_error: Callable[[Exception], object] = _raise
        """Called with what a follower raises, before the next one is called."""
        self._checked = checked
        self._followers: tuple[Follower, ...] = ()

    def follow(self, *followers: Follower) -> None:
        """Call these functions on every change, in this order, after those already registered.

        The order is guaranteed. The journal comes first: edits are on disk before they are visible. Then come the runs
        of recordings, the tree and the grades, each of which relies on those before it. The screen is last.
        """
        self._followers += followers

    def at(self, path: Path) -> OpenSuite | None:
        """Return the suite at a path, if it is open."""
        return next((suite for suite in self.suites if suite.path == path), None)

    def editable(self, path: Path) -> OpenSuite:
        """Return the suite at a path, to be changed. Raises NotEditableError."""
        suite = self.at(path)
        if suite is None:
            raise NotEditableError(f"{path.name} is no longer open")
        if suite.why_not_editable is not None:
            raise NotEditableError(suite.why_not_editable)
        return suite

    def case_now(self, case: CaseKey) -> CaseNow | None:
        """Return the current state of a case, `None` if it is not open or has errors."""
        suite = self.at(case[0])
        outline = next((each for each in suite.cases if each.key == case[1]), None) if suite is not None else None
        return read_now(suite, outline) if suite is not None and outline is not None else None

    @property
    def dirty(self) -> tuple[OpenSuite, ...]:
        """The suites with unsaved changes."""
        return tuple(suite for suite in self.suites if suite.dirty)

    @property
    def and_moved(self) -> str:
        """The grades that the last change moved, as the end of a notice."""
        return f"; {self.moved}" if self.moved else ""

    # Reading

    def read(self, workspace: Workspace) -> tuple[OpenSuite, ...]:
        """Take over a workspace.

        Suites with unsaved changes stay as they are, even if their file is gone. Returns those whose file changed or
        disappeared.
        """
        first, self.workspace = not self.workspace.roots, workspace
        recordings = frozenset(run.planned.file.path for run in workspace.recorded)
        conflicts = self._take(workspace.files, recordings)
        self._notify("read", self.suites, first=first)
        return conflicts

    def read_one(self, file: SuiteFile) -> None:
        """Take over the file of one suite, which may be new to the workspace."""
        files = (*(other for other in self.workspace.files if other.path != file.path), file)
        self.read(replace(self.workspace, files=files, roots=self._roots_with(file.path)))

    def _take(self, files: Iterable[SuiteFile], recordings: frozenset[Path]) -> tuple[OpenSuite, ...]:
        known = {suite.path: suite for suite in self.suites}
        suites: list[OpenSuite] = []
        conflicts: list[OpenSuite] = []
        for file in files:
            suite = known.pop(file.path, None)
            if suite is None:
                suite = OpenSuite(file, is_recording=file.path in recordings)
            elif file.hash != suite.disk.hash or file.problems != suite.disk.problems:
                if suite.dirty:
                    conflicts += [suite] if file.hash or not suite.is_new else []
                else:
                    suite.reloaded(file, None)
            suites.append(suite)
        left = [suite for suite in known.values() if suite.dirty]
        conflicts += [suite for suite in left if not suite.is_new]
        self._open([*suites, *left], len(suites))
        return tuple(conflicts)

    def add(self, suite: OpenSuite) -> None:
        """Open a suite, which need not be on disk."""
        self.workspace = replace(self.workspace, roots=self._roots_with(suite.path))
        self._open([*self.suites, suite], len(self.suites))
        self._notify("added", (suite,))

    def close(self, suite: OpenSuite) -> None:
        """Close a suite whose file is no longer in the workspace."""
        self.suites = tuple(other for other in self.suites if other is not suite)
        files = tuple(file for file in self.workspace.files if file.path != suite.path)
        self.read(replace(self.workspace, files=files))

    def _roots_with(self, path: Path) -> tuple[Path, ...]:
        roots = self.workspace.roots
        return roots if any(path.is_relative_to(root) for root in roots) else (*roots, path)

    def _open(self, suites: list[OpenSuite], placed: int) -> None:
        self.suites = tuple(_in_order(suites, placed))
        for suite in self.suites:
            suite.checked = self._checked

    # Changing

    def change(
        self,
        suite: OpenSuite,
        document: Document,
        summary: str,
        *,
        group: Hashable | None = None,
        case: str | None = None,
        index: int | None = None,
    ) -> bool:
        """Change the document of a suite. All edits go through here. Returns whether it changed.

        `summary` describes the change. Consecutive changes of one `group` are one undo step. `case` is the key of the
        case for the cursor after an undo. `index` is the case that is edited in place (`HEAD`: the suite's settings);
        it stays in the tree whatever the filter.
        """
        refuse_if_read_only(f"{suite.path.name} was to be changed")
        if not suite.change(document, summary, group, case):
            return False
        self._notify("edited", (suite,), index=index)
        return True

    def went(self, suite: OpenSuite, change: Change) -> None:
        """Notify followers that a suite went back or forward by a change."""
        self._notify("undone", (suite,), case=change.case)

    def disk_changed(self, suite: OpenSuite) -> None:
        """Notify followers that the file of a suite was saved or taken over."""
        files = self.workspace.files
        known = any(file.path == suite.path for file in files)
        files = tuple(suite.disk if file.path == suite.path else file for file in files)
        self.workspace = replace(self.workspace, files=files if known else (*files, suite.disk))
        self._notify("edited", (suite,))

    def _notify(
        self,
        how: Literal["read", "added", "edited", "undone"],
        suites: Sequence[OpenSuite],
        *,
        first: bool = False,
        index: int | None = None,
        case: str | None = None,
    ) -> None:
        self.moved = ""
        change = SuitesChanged(how, tuple(suites), self.suites, self.workspace, first, index, case)
        for follower in self._followers:
            try:
                follower(change)
            except Exception as error:  # noqa: BLE001 (whatever it is, the others follow)
                self.on_error(error)


def _raise(error: Exception) -> None:
    raise error


def _in_order(suites: list[OpenSuite], placed: int) -> list[OpenSuite]:
    """Insert all suites after the first `placed` behind the last suite in the same folder."""
    ordered = suites[:placed]
    for suite in suites[placed:]:
        beside = [at for at, other in enumerate(ordered) if other.path.parent == suite.path.parent]
        ordered.insert(beside[-1] + 1 if beside else len(ordered), suite)
    return ordered


@dataclass(frozen=True, eq=False)
class Move:
    """Links the last changes of two suites."""

    source: OpenSuite
    target: OpenSuite


def tie(source: OpenSuite, target: OpenSuite) -> None:
    """Link the last changes of two suites as one move of a case."""
    move = Move(source, target)
    source.make_part(move)
    target.make_part(move)


SuiteChange = tuple[OpenSuite, Change]
"""A suite and the change that was undone or redone in it."""


def undo(suite: OpenSuite, open_suites: OpenSuites) -> list[SuiteChange] | str:
    """Undo the last step of a suite. A move is undone in both suites; the suite that then has the case comes last.

    Returns what was undone, or why nothing was: a case must not vanish from both suites.
    """
    move = suite.last.part_of if suite.last is not None else None
    if isinstance(move, Move) and open_suites.at(move.source.path) is move.source:
        if (
            _is(move, move.source.last)
            and _is(move, move.target.last)
            and open_suites.at(move.target.path) is move.target
        ):
            return _reported([*_undone(move.target), *_undone(move.source)], open_suites)
        if suite is move.target and move.source.stands(move):
            return f"{move.source.path.name}, which the case came from, has changed since: undo there first (Ctrl+Z)"
    return _reported(_undone(suite), open_suites)


def redo(suite: OpenSuite, open_suites: OpenSuites) -> list[SuiteChange] | str:
    """Redo the next step of a suite, the counterpart of `undo`."""
    move = suite.next.part_of if suite.next is not None else None
    if isinstance(move, Move):
        is_open = open_suites.at(move.source.path) is move.source and open_suites.at(move.target.path) is move.target
        if is_open and _is(move, move.source.next) and _is(move, move.target.next):
            return _reported([*_redone(move.source), *_redone(move.target)], open_suites)
        if suite is move.source and not move.target.stands(move):
            return f"{move.target.path.name}, which the case went to, has changed since: M moves it again"
    return _reported(_redone(suite), open_suites)


def _is(move: Move, change: Change | None) -> bool:
    return change is not None and change.part_of is move


def _reported(went: list[SuiteChange], open_suites: OpenSuites) -> list[SuiteChange]:
    for suite, change in went:
        open_suites.went(suite, change)
    return went


def _undone(suite: OpenSuite) -> list[SuiteChange]:
    change = suite.undo()
    return [(suite, change)] if change is not None else []


def _redone(suite: OpenSuite) -> list[SuiteChange]:
    change = suite.redo()
    return [(suite, change)] if change is not None else []
