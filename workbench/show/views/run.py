"""One run of a history, step by step, and one case of it over time."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

from rich.cells import cell_len

from workbench.analysis.batch_diff import came_to
from workbench.analysis.comparison import Cell, cell_of
from workbench.analysis.over_time import MAX_TREND
from workbench.grading.grade import RunResult
from workbench.grading.run_summary import RunSummary
from workbench.grading.status import Status
from workbench.history.records import BatchRow, RunRow
from workbench.numerals import counted, score_text
from workbench.show.forms import LINES_MAX
from workbench.show.signs import sparkline
from workbench.show.text import Paint
from workbench.show.views.batch import run_title
from workbench.show.views.batch_list import called
from workbench.show.views.grade_move_kinds import Move, MovesFold, graded_text
from workbench.show.views.grades import issue_text, result_text, step_lines, why_passed
from workbench.show.views.trajectory import StepLines
from workbench.show.visible import fit, one_line, shortened
from workbench.show.when import local_time
from workbench.trajectory.events import Event

_MODEL_MAX = 24


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


def over_time(runs: Sequence[RunRow]) -> dict[str, dict[int, Cell]]:
    """Returns the result of a case with each model in each batch, the oldest batch first. Forks do not count."""
    figures: dict[str, dict[int, list[RunSummary]]] = {}
    for run in sorted(runs, key=lambda run: (run.batch, run.place)):
        if run.figures is not None and not run.is_fork:
            figures.setdefault(run.model, {}).setdefault(run.batch, []).append(run.figures)
    return {
        model: {batch: cell_of(of_batch) for batch, of_batch in batches.items()} for model, batches in figures.items()
    }


def titled_case_lines(
    runs: Sequence[RunRow], batches: Mapping[int, BatchRow], width: int, paint: Paint
) -> Iterator[str]:
    """Yields the title of the case of these runs, and its results over time."""
    title = paint(f"{one_line(runs[0].suite.name)} › {one_line(runs[0].case_name)}", "strong")
    yield f"{title}  {paint(one_line(runs[0].suite.path), 'muted')}"
    if cells := over_time(runs):
        yield from case_lines(cells, runs, batches, width, paint)
    else:
        yield "  none of its runs finished"


def case_lines(
    cells: Mapping[str, Mapping[int, Cell]],
    runs: Sequence[RunRow],
    batches: Mapping[int, BatchRow],
    width: int,
    paint: Paint,
) -> Iterator[str]:
    """Yields a case over time, with `cells` as from `over_time` of its `runs`: for each model its trend, then batch by
    batch, the newest first, with a note where the suite changed."""
    hashes = {run.batch: run.suite.hash for run in runs}
    names = {number: called(batches[number]) for number in hashes}
    model_width = min(max(cell_len(one_line(model)) for model in cells), _MODEL_MAX)
    for model, of_model in cells.items():
        graded = [cell for cell in of_model.values() if cell.is_graded]
        good = f"good in {sum(cell.is_good for cell in graded):,} of {len(graded):,} batches"
        line = sparkline([cell.score or 0.0 for cell in graded][-MAX_TREND:])
        yield f"{fit(one_line(model), model_width)}  {line}  {good}, scores by height"
    yield ""
    number = max(map(cell_len, names.values()))
    rows = sorted(((batch, cell) for of_model in cells.values() for batch, cell in of_model.items()), key=_newest_first)
    for at, (batch, cell) in enumerate(rows):
        sign = paint(cell.status.sign, cell.status.role)
        when = local_time(batches[batch].started_at)
        lead = f"{fit(names[batch], number)}  {when}  {fit(one_line(cell.model), model_width)}"
        why = f": {one_line(cell.reason)}" if cell.reason and cell.status != Status.PASSED else ""
        room = width - number - 2 - 16 - 2 - model_width - 4
        yield f"{lead}  {sign} {shortened(f'{came_to(cell)}{why}', room)}"
        older = rows[at + 1][0] if at + 1 < len(rows) else batch
        if hashes[older] != hashes[batch]:
            yield paint(f"{'':>{number}}  - the suite changed here -", "muted")


def _newest_first(row: tuple[int, Cell]) -> tuple[int, str]:
    return -row[0], row[1].model


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
