"""All suites that are open: those that were read, those that are edited, and those that are not on the disk yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from workbench.authoring.case_now import CaseKey, CaseNow, read_now
from workbench.authoring.open_suite import OpenSuite
from workbench.suite.loading import SuiteFile


class Desk:
    """The open suites in the order of their paths, as the workspace was last read."""

    def __init__(self, checked: Callable[[SuiteFile], SuiteFile] = lambda file: file) -> None:
        self.suites: tuple[OpenSuite, ...] = ()
        self._checked = checked

    def at(self, path: Path) -> OpenSuite | None:
        """The suite at a path, if it is open."""
        return next((suite for suite in self.suites if suite.path == path), None)

    def case_now(self, case: CaseKey) -> CaseNow | None:
        """A case as it is edited now; `None` where it is not open, or has errors."""
        suite = self.at(case[0])
        outline = next((each for each in suite.cases if each.key == case[1]), None) if suite is not None else None
        return read_now(suite, outline) if suite is not None and outline is not None else None

    @property
    def dirty(self) -> tuple[OpenSuite, ...]:
        """The suites with changes that are not saved."""
        return tuple(suite for suite in self.suites if suite.dirty)

    def take(self, files: Iterable[SuiteFile], recordings: frozenset[Path]) -> tuple[OpenSuite, ...]:
        """Take over what was read from the disk. Suites that were edited here stay as they are, also when their file is
        gone; the ones of them whose file is another one now are returned."""
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
        """Open one more suite."""
        self._open([*self.suites, suite], len(self.suites))

    def _open(self, suites: list[OpenSuite], placed: int) -> None:
        self.suites = tuple(_in_order(suites, placed))
        for suite in self.suites:
            suite.checked = self._checked

    def remove(self, suite: OpenSuite) -> None:
        """Close a suite."""
        self.suites = tuple(other for other in self.suites if other is not suite)


def _in_order(suites: list[OpenSuite], placed: int) -> list[OpenSuite]:
    """The first `placed` as they are, each other one behind the last of its folder."""
    ordered = suites[:placed]
    for suite in suites[placed:]:
        beside = [at for at, other in enumerate(ordered) if other.path.parent == suite.path.parent]
        ordered.insert(beside[-1] + 1 if beside else len(ordered), suite)
    return ordered
