"""Cases: their titles in tables, the combined results of their repeats, and their results over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.cells import cell_len

from workbench.analysis.batch_diff import joined_result_text
from workbench.analysis.comparison import Cell, cell_of
from workbench.analysis.trends import MAX_TREND
from workbench.dataclasses import dataclass
from workbench.grading.repeats import ArgumentStatistics, CaseResult
from workbench.grading.run_summary import RunSummary
from workbench.grading.status import GOOD_WORDS, Status
from workbench.history.records import BatchRow, RunRow
from workbench.numerals import counted, of_text, score_text
from workbench.show.signs import sparkline
from workbench.show.text import Paint
from workbench.show.views.batch_list import batch_name
from workbench.show.views.user_turns import gave_up_text
from workbench.show.visible import ELLIPSIS, after, fit, one_line, shortened, widest_cells
from workbench.show.when import local_time


def repeats_lines(case: CaseResult, paint: Paint, *, with_arguments: bool) -> Iterator[str]:
    """Yield the combined result of a case's repeats: rule, status, number of good runs, mean and deviation.

    With `with_arguments`, also yield the mean and the deviation of each argument's score, as shares of the argument's
    weight."""
    graded = len(case.graded)
    parts = [f"{counted(len(case.runs), 'run')} by {case.rule}: {case.status.sign} {case.status}"]
    if graded:
        parts.append(f"{case.good}/{graded} {GOOD_WORDS}")
    if case.is_flaky:
        parts.append("flaky")
    if case.score is not None and case.deviation is not None:
        parts.append(f"mean {score_text(case.score)} ± {score_text(case.deviation)}")
    if graded < len(case.runs):
        parts.append(f"{len(case.runs) - graded} not graded")
    yield f"    {paint(' · '.join(parts), case.status.role)}"
    if with_arguments and case.arguments:
        yield paint(f"    arguments: {' · '.join(map(_argument_text, case.arguments))}", "muted")


def _argument_text(statistics: ArgumentStatistics) -> str:
    mean, deviation = score_text(statistics.mean_normalised), score_text(statistics.normalised_deviation)
    return one_line(f"{statistics.argument} {mean} ± {deviation}")


_MODEL_MAX = 24


def over_time(runs: Sequence[RunRow]) -> dict[str, dict[int, Cell]]:
    """Return the results of a case by model and batch, oldest batch first. Forks are omitted."""
    figures: dict[str, dict[int, list[RunSummary]]] = {}
    # A dictionary keeps insertion order, so each model has its oldest batch first.
    for run in sorted(runs, key=lambda run: (run.batch, run.place)):
        if run.figures is not None and not run.is_fork:
            figures.setdefault(run.model, {}).setdefault(run.batch, []).append(run.figures)
    cells: dict[str, dict[int, Cell]] = {}
    for model, batches in figures.items():
        cells[model] = {batch: cell_of(of_batch) for batch, of_batch in batches.items()}
    return cells


def titled_case_lines(
    runs: Sequence[RunRow], batches: Mapping[int, BatchRow], width: int, paint: Paint
) -> Iterator[str]:
    """Yield the title of the case that these runs belong to, then its results over time."""
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
    """Yield the results of a case over time: each model's trend, then its result in each batch, newest first.

    `cells` is the value of `over_time` for `runs`. A note marks where the suite changed."""
    hashes = {run.batch: run.suite.hash for run in runs}
    names = {number: batch_name(batches[number]) for number in hashes}
    model_width = min(widest_cells(cells), _MODEL_MAX)
    for model, of_model in cells.items():
        graded = [cell for cell in of_model.values() if cell.is_graded]
        good = f"good in {of_text(sum(cell.is_good for cell in graded), len(graded))} batches"
        # A graded cell without a score is drawn at the lowest height.
        line = sparkline([cell.score or 0.0 for cell in graded][-MAX_TREND:])
        yield f"{fit(one_line(model), model_width)}  {line}  {good}, scores by height"
    yield ""
    number = max(map(cell_len, names.values()))
    rows: list[tuple[int, Cell]] = []
    for of_model in cells.values():
        rows += of_model.items()
    rows.sort(key=_newest_first)
    for at, (batch, cell) in enumerate(rows):
        sign = paint(cell.status.sign, cell.status.role)
        when = local_time(batches[batch].started_at)
        lead = f"{fit(names[batch], number)}  {when}  {fit(one_line(cell.model), model_width)}"
        result = joined_result_text(cell)
        # The reason of a passed case only repeats that it passed.
        if cell.reason and cell.status != Status.PASSED:
            result += f": {one_line(cell.reason)}"
        elif gave_up := gave_up_text(cell.gave_up, len(cell.runs)):
            result += f": {gave_up}"
        # The rest of the line is for the result. The number, the date (16 cells), the model, two gaps of 2 cells, and
        # the sign with its gaps (4 cells) come before it.
        room = width - number - 2 - 16 - 2 - model_width - 4
        yield f"{lead}  {sign} {shortened(result, room)}"
        older = batch
        if at + 1 < len(rows):
            older = rows[at + 1][0]
        if hashes[older] != hashes[batch]:
            yield paint(f"{'':>{number}}  - the suite changed here -", "muted")


def _newest_first(row: tuple[int, Cell]) -> tuple[int, str]:
    return -row[0], row[1].model


_BETWEEN = " › "
_COLUMN_MAX = 80
"""Maximum width in cells of a column of uncut titles."""
_WHAT_MAX = 400
"""Maximum length in characters of a text about a case if no width is given."""


@dataclass(frozen=True, slots=True)
class Title:
    """The title of a case: the names of suite and case, or the name of the case alone if `suite` is empty.

    `lead` and `tail` enclose the title and are never cut."""

    suite: str
    case: str
    lead: str = ""
    tail: str = ""

    @property
    def whole(self) -> str:
        suite = after("", self.suite, _BETWEEN)
        return one_line(f"{self.lead}{suite}{self.case}{self.tail}")

    def cut(self, width: int) -> str:
        """Return the title in at most `width` cells.

        The suite's name is cut first, because the name of the case distinguishes one line from the next."""
        if cell_len(self.whole) <= width:
            return self.whole
        case = one_line(self.case)
        room = width - cell_len(self.lead) - cell_len(self.tail)
        of_suite = room - cell_len(_BETWEEN) - cell_len(case)
        if of_suite < cell_len(ELLIPSIS):
            return shortened(f"{self.lead}{shortened(case, room)}{self.tail}", width)
        return f"{self.lead}{shortened(one_line(self.suite), of_suite)}{_BETWEEN}{case}{self.tail}"


def cut_titles(titles: Sequence[Title], width: int | None) -> Iterator[str]:
    """Yield titles padded to a column of at most `width` cells. Without `width`, no title is cut."""
    widest = max((cell_len(title.whole) for title in titles), default=0)
    column = min(widest, width or _COLUMN_MAX)
    for title in titles:
        shown = title.whole
        if width is not None:
            shown = title.cut(column)
        yield shown + " " * (column - cell_len(shown))


def cut_what(text: str, max_width: int | None) -> str:
    """Return the text after a title on one line, cut to `max_width` cells.

    If `max_width` is `None`, only long texts are cut."""
    if max_width is None:
        max_width = _WHAT_MAX
    return shortened(one_line(text), max(max_width, 0))
