"""The data of the HTML report: cases with their cells, facts of each run, and whole runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from workbench.analysis.comparison import Cell
from workbench.analysis.side_by_side import Comparison, Row
from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.grading.run_summary import RunSummary
from workbench.grading.status import Status, StatusRole
from workbench.numerals import NOTHING
from workbench.show.signs import FORK
from workbench.show.views.comparison import CellWords, cell_words
from workbench.show.visible import one_line
from workbench.suite.files import from_here


@dataclass(frozen=True, slots=True)
class PageHead:
    """The facts about all cases that the script needs."""

    models: tuple[str, ...]
    """The columns."""
    only_differences: bool
    """Whether the matrix begins with the cases that differ."""


@dataclass(frozen=True, slots=True)
class PageCell:
    """A case with a model, in words."""

    status: Status | None
    """`None` where it did not run, and where it has only forks."""
    role: StatusRole
    sign: str
    share: str
    score: str
    label: str
    reason: str
    statuses: tuple[Status, ...]
    """Of its runs, if there is more than one."""
    disagree: bool
    """Whether one grader would let a run pass and another would not."""


@dataclass(frozen=True, slots=True)
class PageCase:
    """A row of the matrix."""

    suite: str
    suite_name: str
    case_id: str
    case_name: str
    differs: bool
    tags: tuple[str, ...]
    cells: tuple[PageCell, ...]
    """One for each model."""


@dataclass(frozen=True, slots=True)
class PageFacts:
    """The facts of a run that the page has before it is unfolded.

    `case` and `model` are indices.
    """

    case: int | None
    """`None` for a fork of a case that has no other run."""
    model: int
    status: Status
    name: str
    """Its name among the runs of its cell."""
    reason: str
    disagree: bool
    causes: tuple[str, ...]
    """Of a failed run, the main one first."""


def cases_of(
    comparison: Comparison, results: Sequence[RunResult], tags: Mapping[tuple[str, str], Sequence[str]]
) -> Iterator[PageCase]:
    """Yield the rows of the matrix.

    `tags` are by suite and case."""
    ran = {(run.suite, run.case_id, run.model) for run in results}
    apart = set()
    for run in results:
        if run.graders_disagree:
            apart.add((run.suite, run.case_id, run.model))
    for row in comparison.rows:
        yield PageCase(
            suite=from_here(row.suite),
            suite_name=row.suite_name,
            case_id=row.case_id,
            case_name=row.case_name,
            differs=row.differs,
            tags=tuple(tags.get((row.suite, row.case_id), ())),
            cells=tuple(_cells(row, comparison, ran, apart)),
        )


def _cells(
    row: Row, comparison: Comparison, ran: set[tuple[str, str, str]], apart: set[tuple[str, str, str]]
) -> Iterator[PageCell]:
    with_repeats = comparison.with_repeats
    for model, cell in zip(comparison.models, row.cells, strict=True):
        key = row.suite, row.case_id, model
        if cell is not None:
            yield _cell(cell, cell_words(cell, with_repeats=with_repeats), disagree=key in apart)
        elif key in ran:
            yield _empty_cell(FORK, "a fork", disagree=key in apart)
        else:
            yield _empty_cell(NOTHING, "not run", disagree=False)


def _cell(cell: Cell, words: CellWords, *, disagree: bool) -> PageCell:
    reason, statuses = None, tuple[Status, ...]()
    if cell.status != Status.PASSED:
        reason = cell.reason
    if len(cell.runs) > 1:
        statuses = tuple(dict.fromkeys(run.status for run in cell.runs))
    return PageCell(
        status=cell.status,
        role=cell.status.role,
        sign=cell.status.sign,
        share=words.share + words.broke_off,
        score=words.score,
        label=_label(cell, words) + _DISAGREE * disagree,
        reason=one_line(reason or ""),
        statuses=statuses,
        disagree=disagree,
    )


_DISAGREE = ", the graders disagree"


def _empty_cell(score: str, label: str, *, disagree: bool) -> PageCell:
    return PageCell(
        status=None,
        role="muted",
        sign="",
        share="",
        score=score,
        label=label + _DISAGREE * disagree,
        reason="",
        statuses=(),
        disagree=disagree,
    )


def _label(cell: Cell, words: CellWords) -> str:
    """Return the label of a cell, which begins with its visible text: voice control presses a button by that."""
    seen = " ".join(filter(None, (words.share + words.broke_off, words.score)))
    label = f"{seen}, {cell.model}: {cell.status.word}"
    if words.share:
        label += f", {cell.good} of {cell.graded} runs"
    if cell.is_graded and cell.score is not None:
        label += f", score {words.score}"
    return label


def facts_of(
    runs: Sequence[RunSummary],
    results: Sequence[RunResult],
    cases: Mapping[tuple[str, str], int],
    models: Sequence[str],
    causes: Mapping[int, Sequence[str]],
) -> Iterator[PageFacts]:
    """Yield the facts about each run.

    `causes` are by the number of the run, from 0."""
    columns = {model: place for place, model in enumerate(models)}
    repeats = Counter((run.suite, run.case_id, run.model) for run in runs)
    for number, (run, result) in enumerate(zip(runs, results, strict=True)):
        is_alone = repeats[run.suite, run.case_id, run.model] == 1
        name = run.status.word if is_alone else f"#{run.repeat + 1}"
        yield PageFacts(
            case=cases.get((run.suite, run.case_id)),
            model=columns[run.model],
            status=run.status,
            name=FORK if run.is_fork else name,
            reason=one_line(run.reason or ""),
            disagree=result.graders_disagree,
            causes=tuple(causes.get(number, ())),
        )
