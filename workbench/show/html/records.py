"""The data of the HTML report: cases with their cells, and the facts of each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from workbench.analysis.comparison import Cell
from workbench.analysis.side_by_side import CaseRow, Comparison
from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.grading.run_summary import RunSummary
from workbench.grading.status import Status, StatusRole
from workbench.numerals import NOTHING
from workbench.show.signs import FORK
from workbench.show.views.comparison import CellWords, cell_words
from workbench.show.views.user_turns import gave_up_text
from workbench.show.visible import one_line
from workbench.suite.files import relative_to_cwd


@dataclass(frozen=True, slots=True)
class PageHead:
    """The facts that the page's script needs before all other data."""

    models: tuple[str, ...]
    """The models, one column each."""
    only_differences: bool
    """Whether the matrix initially shows only cases that differ."""


@dataclass(frozen=True, slots=True)
class PageCell:
    """The texts of one cell: a case with a model."""

    status: Status | None
    """The status of the case, or `None` if it did not run with the model or has only forks."""
    role: StatusRole
    sign: str
    share: str
    score: str
    label: str
    reason: str
    statuses: tuple[Status, ...]
    """The distinct statuses of the runs. The tuple is empty if all runs have the same status."""
    disagree: bool
    """Whether the graders of a run disagree."""


@dataclass(frozen=True, slots=True)
class PageCase:
    """A row of the matrix: a case with its cells."""

    suite: str
    suite_name: str
    case_id: str
    case_name: str
    differs: bool
    tags: tuple[str, ...]
    cells: tuple[PageCell, ...]
    """The cells in the order of the models."""


@dataclass(frozen=True, slots=True)
class PageFacts:
    """The facts of a run that are visible before the user unfolds the run.

    `case` and `model` are the indices of the run's row and column."""

    case: int | None
    """Index of the row, or `None` for a fork of a case without other runs."""
    model: int
    status: Status
    name: str
    """The name of the run among the runs of its cell."""
    reason: str
    disagree: bool
    causes: tuple[str, ...]
    """The causes of a failed run, the main cause first."""


def cases_of(
    comparison: Comparison, results: Sequence[RunResult], tags: Mapping[tuple[str, str], Sequence[str]]
) -> Iterator[PageCase]:
    """Yield the rows of the matrix of cases and models.

    `tags` maps a suite and a case to the tags of the case."""
    # A cell with runs gets a mark even if all of them are forks, which do not count. A cell without runs gets no mark.
    ran = {(run.suite, run.case_id, run.model) for run in results}
    apart = set()
    for run in results:
        if run.graders_disagree:
            apart.add((run.suite, run.case_id, run.model))
    # This looks at all cells, so it is computed once for all rows.
    with_repeats = comparison.with_repeats
    for row in comparison.rows:
        yield PageCase(
            suite=relative_to_cwd(row.suite),
            suite_name=row.suite_name,
            case_id=row.case_id,
            case_name=row.case_name,
            differs=row.differs,
            tags=tuple(tags.get((row.suite, row.case_id), ())),
            cells=tuple(_cells(row, comparison.models, ran, apart, with_repeats=with_repeats)),
        )


def _cells(
    row: CaseRow,
    models: Sequence[str],
    ran: set[tuple[str, str, str]],
    disagreeing: set[tuple[str, str, str]],
    *,
    with_repeats: bool,
) -> Iterator[PageCell]:
    for model, cell in zip(models, row.cells, strict=True):
        key = row.suite, row.case_id, model
        if cell is not None:
            yield _cell(cell, cell_words(cell, with_repeats=with_repeats), disagree=key in disagreeing)
        elif key in ran:
            yield _empty_cell(FORK, "a fork", disagree=key in disagreeing)
        else:
            yield _empty_cell(NOTHING, "not run", disagree=False)


def _cell(cell: Cell, words: CellWords, *, disagree: bool) -> PageCell:
    # A passed case needs no reason, and a single run needs no list of statuses.
    reason, statuses = gave_up_text(cell.gave_up, len(cell.runs)), tuple[Status, ...]()
    if cell.status != Status.PASSED:
        reason = cell.reason or reason
    if len(cell.runs) > 1:
        statuses = tuple(dict.fromkeys(run.status for run in cell.runs))
    return PageCell(
        status=cell.status,
        role=cell.status.role,
        sign=cell.status.sign,
        share=words.share + words.ungraded_status,
        score=words.score,
        label=_label(cell, words) + _DISAGREE * disagree,
        reason=one_line(reason),
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
    """Return the label of a cell for screen readers.

    The label begins with the visible text, because voice control finds a button by that text (WCAG 2.5.3)."""
    seen = " ".join(filter(None, (words.share + words.ungraded_status, words.score)))
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
    """Yield the facts about each run that the page shows before the run is unfolded.

    `causes` maps the index of a run to the causes of its failure."""
    columns = {model: place for place, model in enumerate(models)}
    # A run is numbered only if its cell has several runs. A single run is named after its status.
    repeats = Counter((run.suite, run.case_id, run.model) for run in runs)
    for number, (run, result) in enumerate(zip(runs, results, strict=True)):
        name = f"#{run.repeat + 1}"
        if run.is_fork:
            name = FORK
        elif repeats[run.suite, run.case_id, run.model] == 1:
            name = run.status.word
        yield PageFacts(
            case=cases.get((run.suite, run.case_id)),
            model=columns[run.model],
            status=run.status,
            name=name,
            reason=one_line(run.reason or ""),
            disagree=result.graders_disagree,
            causes=tuple(causes.get(number, ())),
        )
