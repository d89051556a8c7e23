"""Which runs that are over are to be graded anew since their cases expect something else now, and what that moves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal

from workbench.authoring.case_now import CaseKey, graded_alike, read_now
from workbench.authoring.document import CaseOutline
from workbench.authoring.open_suite import OpenSuite
from workbench.batches.plan import PlannedRun
from workbench.grading.grade import RunResult
from workbench.grading.run_summary import RunSummary
from workbench.reports.move_kinds import Move, moves_said
from workbench.suite.checks import Judged, Pattern, PythonCheck, Similar
from workbench.suite.loading import SuiteFile
from workbench.suite.model import Case, Suite
from workbench.trajectory.trajectory import Trajectory
from workbench.tui.run_book.book import RunBook
from workbench.tui.run_book.record import RunRecord

AT_ONCE_RUNS = 8
"""So many are graded before the next key is read; each takes about a millisecond."""

AT_ONCE_CALLS = 10
"""A run with more of them takes longer."""

Pace = Literal["at once", "beside", "with Python"]
"""How a run can be graded: while the next key waits; beside what else is done; calling the suite's Python."""


@dataclass(frozen=True, slots=True)
class Due:
    """A run that is over, and how it would be planned now: to be graded by the case in there. `figures` are those of
    `result`; `known` is what it comes to, where it was graded by the same before."""

    run: RunRecord
    figures: RunSummary
    result: RunResult
    now: PlannedRun
    known: RunResult | None

    @property
    def pace(self) -> Pace:
        """How it can be graded."""
        if self.known is not None:
            return "at once"
        return _pace(self.now.case, self.result.trajectory)


@dataclass(frozen=True, slots=True)
class DueCase:
    """The runs of one case that are to be graded anew, perhaps none; `stands_for` tells it from what is due later."""

    key: CaseKey
    runs: tuple[Due, ...]
    stands_for: tuple[SuiteFile, Case]


class Rescoring:
    """Follows the suites as they are edited, and knows the cases whose runs may be graded by something else by now.

    What a change costs follows what it changes, and not how many cases there are.
    """

    def __init__(self, book: RunBook) -> None:
        self._book = book
        self._followed: dict[Path, Suite] = {}
        """By what all runs are graded, but for those of the cases that are due."""
        self._due: dict[CaseKey, tuple[SuiteFile, Case]] = {}
        self._moved: dict[int, tuple[RunRecord, RunSummary]] = {}
        """What runs came to before they were graded anew, by identity, until it is told."""

    @property
    def waiting(self) -> int:
        """How many cases are due."""
        return len(self._due)

    def follow(self, suite: OpenSuite, selected: CaseOutline | None = None) -> None:
        """Take over what a suite says now. While it has errors in some cases, only the `selected` one of it, which may
        have none, is looked at."""
        file, before = suite.file, self._followed.get(suite.path)
        if file.suite is None:
            if selected is not None and (now := read_now(suite, selected)) is not None:
                self._look_at(now.file, now.case)
        elif file.suite is not before:
            self._followed[suite.path] = file.suite
            for case in _changed(before, file.suite):
                self._look_at(file, case)

    def forget_others(self, suites: Collection[OpenSuite]) -> None:
        """Forget what suites said that are not open any more."""
        if len(self._followed) > len(suites):
            paths = {suite.path for suite in suites}
            self._followed = {path: said for path, said in self._followed.items() if path in paths}

    def finish(self, suite: OpenSuite, case: CaseKey) -> None:
        """Take over that runs of a case are over: they were made of what the suite said then."""
        if all(run.planned.file is suite.file for run in self._book.finished(case)):
            return
        now = suite.file.suite
        if now is None:
            self._followed.pop(suite.path, None)  # all is looked at, once the suite has no errors
            return
        written = next((written for written in now.cases if written.id == case[1]), None)
        if written is not None:
            self._look_at(suite.file, written)

    def due(self, most: int) -> list[DueCase]:
        """The first cases that are due, with those of their runs that are graded by something else: until there are
        `most` such runs, or that many cases."""
        found: list[DueCase] = []
        runs = 0
        for key, now in islice(self._due.items(), most):
            found.append(DueCase(key, tuple(self._of_case(key, *now)), now))
            runs += len(found[-1].runs)
            if runs >= most:
                break
        return found

    def done(self, cases: Iterable[DueCase], results: Mapping[int, RunResult]) -> None:
        """Take over what runs come to, by the identity of their records. The others keep the grades that they have."""
        for case in cases:
            current = self._book.finished(case.key)
            for due in case.runs:
                result = results.get(id(due.run))
                # Somebody may have run the case again, or gone back to what it said, in the meantime.
                # The figures tell that: a result is another object each time that a run is unpacked.
                if result is not None and due.run.figures is due.figures and any(run is due.run for run in current):
                    self._moved.setdefault(id(due.run), (due.run, due.figures))
                    self._book.grade_anew(due.run, due.now, result)
            if self._due.get(case.key) is case.stands_for:
                del self._due[case.key]

    def told(self) -> str:
        """What moved since this was last asked, in words; empty when nothing did."""
        moves = [Move(before, run.figures) for run, before in self._moved.values() if run.figures is not None]
        self._moved.clear()
        said = moves_said(moves)
        return f"{said}, no model call" if said else ""

    def _look_at(self, file: SuiteFile, case: Case) -> None:
        key = (file.path, case.id)
        if any(run.planned.file is not file for run in self._book.finished(key)):
            self._due[key] = (file, case)

    def _of_case(self, key: CaseKey, file: SuiteFile, case: Case) -> Iterator[Due]:
        for run in self._book.finished(key):
            if file.suite is None or graded_alike(run.planned, file.suite, case):
                continue
            figures, result = run.figures, run.result
            assert figures is not None and result is not None
            if run.original is not None and graded_alike(run.original[0], file.suite, case):
                yield Due(run, figures, result, *run.original)
            else:
                yield Due(run, figures, result, replace(run.planned, file=file, case=case), None)


def _changed(before: Suite | None, now: Suite) -> Iterable[Case]:
    """The cases of a suite whose grades may be others; a case that was not touched is the same object."""
    if before is None or (before.grading, before.limits) != (now.grading, now.limits):
        return now.cases
    known = set(map(id, before.cases))
    return [case for case in now.cases if id(case) not in known]


def _pace(case: Case, trajectory: Trajectory) -> Pace:
    checks = list(case.written_checks())
    if any(isinstance(check, PythonCheck) for check in checks):
        return "with Python"
    slow = any(isinstance(check, Judged | Pattern | Similar) for check in checks)
    return "beside" if slow or len(trajectory.calls) > AT_ONCE_CALLS else "at once"
