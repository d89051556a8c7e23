"""Runs of the history: one run step by step, and the changes of grades by a regrade."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.grading.grade import RunResult
from workbench.history.records import RunRow
from workbench.numerals import counted, score_text
from workbench.show.forms import LINES_MAX
from workbench.show.lazy_lines import ActionNames
from workbench.show.spans import sign_paragraph
from workbench.show.text import Paint
from workbench.show.views.batch import run_title
from workbench.show.views.grade_moves import Move, MovesFold, graded_text
from workbench.show.views.grades import note_of_grade
from workbench.show.views.run_lines import lines_of
from workbench.show.views.run_view import RunView
from workbench.show.visible import one_line
from workbench.trajectory.events import Event

_IN_TERMINAL = ActionNames("--verbose", "", "")


def run_steps(events: Sequence[Event], result: RunResult, width: int, paint: Paint, *, verbose: bool) -> Iterator[str]:
    """Yield the steps of a run as the app shows them, each with its issues, then the result."""
    view = RunView()
    for event in events:
        view.add(event)
    view.grade(result)
    for item in view.items:
        yield from map(paint.line, lines_of(item, width, verbose, _IN_TERMINAL))
    if not verbose:
        return
    for grade in result.grades:
        sign, status, role = note_of_grade(grade)
        text = f"{grade.grader}: {status} {score_text(grade.score, '')}".rstrip()
        yield from map(paint.line, sign_paragraph(sign, f"{text}: {grade.reason}", role, width, 1))


class MovedRuns:
    """A list of the runs whose grade changed or that could not be regraded. Runs are added one at a time."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._moved, self._kept = _FirstLines(), _FirstLines()
        self._moves = MovesFold()

    def add(self, run: RunRow, before: RunResult, after: RunResult) -> None:
        move = Move(before, after)
        self._moves.add(move)
        if move.moved:
            new = self._paint(graded_text(after), after.status.role)
            line = f"  {run_title(run)} ({one_line(run.model)}): {graded_text(before)} → {new}"
            if after.error is not None:
                line += f": {one_line(after.error)}"
            self._moved.add(line)
        if after.not_regraded is not None:
            self._kept.add(f"  {run_title(run)} ({one_line(run.model)}) {one_line(after.not_regraded)}")

    def lines(self) -> Iterator[str]:
        """Yield a line for each run in the list, up to a limit, then how many grades changed in each way."""
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
