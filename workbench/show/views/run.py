"""One run of a history, step by step, and one case of it over time."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from workbench.grading.grade import RunResult
from workbench.history.records import RunRow
from workbench.numerals import counted, score_text
from workbench.show.forms import LINES_MAX
from workbench.show.text import Paint
from workbench.show.views.batch import run_title
from workbench.show.views.grade_moves import Move, MovesFold, graded_text
from workbench.show.views.grades import issue_text, result_text, step_lines, why_passed
from workbench.show.views.trajectory import StepLines
from workbench.show.visible import one_line
from workbench.trajectory.events import Event


def told_lines(events: Sequence[Event], result: RunResult, width: int, paint: Paint, *, verbose: bool) -> Iterator[str]:
    """Yields the result of a run, its steps as they were shown when it ran, and the result with all that is wrong."""
    head = result_text(result) if result.reason is None or result.error else f"{result_text(result)}: {result.reason}"
    yield paint(one_line(head), result.status.role)
    steps = StepLines(paint, verbose=verbose, width=width)
    for event in events:
        yield from steps.lines(event)
    yield from step_lines(result.steps, paint, sys.maxsize if verbose else width)
    yield paint(result_text(result), result.status.role)
    for grade in result.grades[: None if verbose else 1]:
        if verbose:
            yield f"  by {one_line(grade.grader)}: {score_text(grade.score)} {grade.verdict}: {one_line(grade.reason)}"
        for issue in grade.issues:
            yield f"    {issue_text(issue)}"
    if why := why_passed(result):
        yield f"    {why}"


class MovedRuns:
    """The regraded runs whose result changed, and those that could not be regraded, added one by one."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._moved, self._kept = _FirstLines(), _FirstLines()
        self._moves = MovesFold()

    def add(self, run: RunRow, before: RunResult, after: RunResult) -> None:
        """Add a run with its results before and after."""
        move = Move(before, after)
        self._moves.add(move)
        if move.moved:
            why = f": {one_line(after.error)}" if after.error is not None else ""
            new = self._paint(graded_text(after), after.status.role)
            self._moved.add(f"  {run_title(run)} ({one_line(run.model)}): {graded_text(before)} → {new}{why}")
        if after.not_regraded is not None:
            self._kept.add(f"  {run_title(run)} ({one_line(run.model)}) {one_line(after.not_regraded)}")

    def lines(self) -> Iterator[str]:
        """Yields a line for each of them, and how many changed."""
        yield from self._moved.lines()
        yield from self._kept.lines()
        yield f"  {self._moves.text or 'no grade changed'}"


class _FirstLines:
    def __init__(self) -> None:
        self._lines: list[str] = []
        self._more = 0

    def add(self, line: str) -> None:
        if len(self._lines) < LINES_MAX:
            self._lines.append(line)
        else:
            self._more += 1

    def lines(self) -> Iterator[str]:
        yield from self._lines
        if self._more:
            yield f"  and {counted(self._more, 'other run')}"
