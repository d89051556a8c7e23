"""Finished runs to regrade after edits of their cases, and the resulting changes of grades."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Literal

from workbench.authoring.case_list import CaseKey, current_case, has_same_grading
from workbench.authoring.document import CaseOutline
from workbench.authoring.open_suite import OpenSuite
from workbench.dataclasses import dataclass
from workbench.engine.plan import PlannedRun
from workbench.grading.grade import RunResult
from workbench.grading.run_summary import RunSummary
from workbench.show.views.grade_moves import Move, moves_text
from workbench.suite.model import Case, Suite
from workbench.suite.suite_file import SuiteFile
from workbench.suite.variants import has_variant_of
from workbench.trajectory.trajectory import Trajectory
from workbench.tui.run_book.book import RunBook
from workbench.tui.run_book.record import RunRecord

MAX_IMMEDIATE_RUNS = 8
"""The maximum number of runs to grade before the next key is handled. A run takes about a millisecond."""

MAX_IMMEDIATE_CALLS = 10
"""The maximum number of calls of a run that is graded at once."""

GradingMode = Literal["at once", "in background", "with Python"]
"""How to grade a run: before the next key is handled, in the background, or by the suite's Python code."""


@dataclass(frozen=True, slots=True)
class DueRun:
    """A finished run whose case was edited, so that it may need new grades.

    `now` is its plan with the edited case. `figures` and `result` belong to its current grade. `known` is its original
    result if the edited case equals the case that graded the run originally."""

    run: RunRecord
    figures: RunSummary
    result: RunResult
    now: PlannedRun
    known: RunResult | None

    @property
    def mode(self) -> GradingMode:
        """How to grade the run: at once, in the background, or with the suite's Python code."""
        if self.known is not None:
            return "at once"
        return _grading_mode(self.now.case, self.result.trajectory)


@dataclass(frozen=True, slots=True)
class DueCase:
    """An edited case with its finished runs, of which there may be none.

    `case_version` is the edited suite and case."""

    key: CaseKey
    runs: tuple[DueRun, ...]
    case_version: tuple[SuiteFile, Case]


class Regrading:
    """Follows the edits of suites, and finds the cases whose runs may need regrading.

    An edit takes time in proportion to the edited cases, whatever the size of the suite."""

    def __init__(self, book: RunBook) -> None:
        self._book = book
        self._suites: dict[Path, Suite] = {}
        """The current suites of the runs' grades, except for due cases."""
        self._due: dict[CaseKey, tuple[SuiteFile, Case]] = {}
        self._moved: dict[int, tuple[RunRecord, RunSummary]] = {}
        """Regraded but unreported runs, with their earlier figures, by the identity of the run."""

    @property
    def waiting(self) -> int:
        """The number of cases whose runs may need regrading."""
        return len(self._due)

    def follow(self, suite: OpenSuite, selected: CaseOutline | None = None) -> None:
        """Find the cases of an edited suite whose runs may need regrading.

        While the suite has errors, check only the `selected` case."""
        file, before = suite.file, self._suites.get(suite.path)
        if file.suite is None:
            if selected is not None and (now := current_case(suite, selected)) is not None:
                self._check_case(now.file, now.case)
        elif file.suite is not before:
            self._suites[suite.path] = file.suite
            # Without runs, there is nothing to regrade, and the suite may have thousands of cases.
            if self._book.revision(suite.path):
                for case in _regradable_cases(before, file.suite):
                    self._check_case(file, case)

    def forget_others(self, suites: Collection[OpenSuite]) -> None:
        """Forget suites that are no longer open."""
        if len(self._suites) > len(suites):
            for path in self._suites.keys() - {suite.path for suite in suites}:
                del self._suites[path]

    def finish(self, suite: OpenSuite, case: CaseKey) -> None:
        """Check whether a case changed while its runs were active, now that the runs have ended."""
        if self._is_graded_by(suite.file, case):
            return
        now = suite.file.suite
        if now is None:
            # All cases are checked once the suite has no errors any more.
            self._suites.pop(suite.path, None)
            return
        for written in now.cases:
            if written.id == case[1]:
                self._check_case(suite.file, written)
                break

    def due(self, limit: int) -> list[DueCase]:
        """Return the next cases to regrade with their runs.

        Returns at most `limit` cases, and stops after the case that brings the number of runs to `limit`."""
        found: list[DueCase] = []
        runs = 0
        for key, now in islice(self._due.items(), limit):
            found.append(DueCase(key, tuple(self._of_case(key, *now)), now))
            runs += len(found[-1].runs)
            if runs >= limit:
                break
        return found

    def done(self, cases: Iterable[DueCase], results: Mapping[int, RunResult]) -> None:
        """Apply new results, whose keys are the `id()` of the run records.

        A run without a new result keeps its grade."""
        for case in cases:
            current = self._book.finished(case.key)
            for due in case.runs:
                result = results.get(id(due.run))
                # If the case was rerun or changed back meanwhile, the run has other figures. Results are not compared,
                # because each decompression creates a new object.
                if result is not None and due.run.figures is due.figures and any(run is due.run for run in current):
                    self._moved.setdefault(id(due.run), (due.run, due.figures))
                    self._book.regrade(due.run, due.now, result)
            if self._due.get(case.key) is case.case_version:
                del self._due[case.key]

    def take_summary(self) -> str:
        """Describe how grades changed since the last call. Return "" if no grade changed."""
        moves = []
        for run, before in self._moved.values():
            if run.figures is not None:
                moves.append(Move(before, run.figures))
        self._moved.clear()
        text = moves_text(moves)
        if not text:
            return ""
        return f"{text}, no model call"

    def _check_case(self, file: SuiteFile, case: Case) -> None:
        key = (file.path, case.id)
        if not self._is_graded_by(file, key):
            self._due[key] = (file, case)

    def _is_graded_by(self, file: SuiteFile, case: CaseKey) -> bool:
        return all((run.planned.file.written or run.planned.file) is file for run in self._book.finished(case))

    def _of_case(self, key: CaseKey, file: SuiteFile, case: Case) -> Iterator[DueRun]:
        for run in self._book.finished(key):
            if file.suite is None or has_same_grading(run.planned, file.suite, case):
                continue
            if not has_variant_of(file.suite, run.model):
                # A run of a removed variant cannot be graded.
                continue
            figures, result = run.figures, run.result
            assert figures is not None and result is not None
            if run.original is not None and has_same_grading(run.original[0], file.suite, case):
                yield DueRun(run, figures, result, *run.original)
            else:
                yield DueRun(run, figures, result, replace(run.planned, file=file, written=case), None)


def _regradable_cases(before: Suite | None, now: Suite) -> Iterable[Case]:
    """Return the cases of a suite whose grades may have changed.

    A case that was not edited is the same object in both versions."""
    if before is None or _grading_settings(before) != _grading_settings(now):
        return now.cases
    # Reading an edited suite keeps the objects of its unchanged cases.
    known = set(map(id, before.cases))
    return [case for case in now.cases if id(case) not in known]


def _grading_settings(suite: Suite) -> tuple[object, ...]:
    return suite.grading, suite.limits, suite.variants, suite.gate.endpoint_faults


def _grading_mode(case: Case, trajectory: Trajectory) -> GradingMode:
    mode: GradingMode = "at once"
    if len(trajectory.calls) > MAX_IMMEDIATE_CALLS:
        mode = "in background"
    for check in case.written_checks():
        if check.outside == "python":
            return "with Python"
        if check.cost == "unbounded":
            mode = "in background"
    return mode
