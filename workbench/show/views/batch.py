"""A batch in the history as lines for a terminal: settings, totals, and runs that did not pass."""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from workbench.analysis.batch_diff import deciding_grader
from workbench.analysis.comparison import cells_of, model_totals
from workbench.analysis.early_stop import stored_early_stopping
from workbench.analysis.early_stop_state import GateEarlyStop
from workbench.analysis.gates import GateFold, GateResult, gates_of, with_early_stop
from workbench.grading.run_summary import RunSummary, finished_summaries
from workbench.grading.status import Status
from workbench.history.records import BatchRow, Regrade, RunRow, SuiteRef
from workbench.numerals import count_text, counted, counted_of, score_text
from workbench.show.doc import NONE, Column, Table, Value, words
from workbench.show.forms import LINES_MAX
from workbench.show.glyphs import GLYPHS
from workbench.show.signs import FORK
from workbench.show.text import Paint, table_lines
from workbench.show.views.agents import agents_of
from workbench.show.views.batch_list import batch_name, kind_text, missing_text, settings_lines, times_text
from workbench.show.views.cases import Title, cut_what
from workbench.show.views.totals import case_totals
from workbench.show.views.user_turns import GAVE_UP
from workbench.show.visible import one_line, shortened
from workbench.show.when import epoch_ms, local_time
from workbench.suite.grading_model import Gate

_TITLE_MIN, _TITLE_MAX = 12, 80


def head_lines(
    batch: BatchRow,
    gradings: Sequence[Regrade],
    shown: Regrade | None,
    runs: Sequence[RunRow],
    options: str,
    *,
    is_active: bool,
    width: int,
    paint: Paint,
) -> Iterator[str]:
    """Yield the name of a batch, its state and its settings.

    `shown` is the regrade whose grades `runs` have. `options` are appended to the printed `--resume` command.
    `is_active` is true while a program runs the batch."""
    yield f"{paint(batch_name(batch), 'strong')}  {times_text(batch)}"
    ways: list[str] = []
    # A batch of reruns, which confirm the result of another batch, cannot be resumed.
    if batch.kind != "reruns":
        ways.append(one_line(f"'workbench {batch.resumed_by} --resume {batch.number}{options}' runs them"))
    if missing := missing_text(batch, is_active=is_active, suggestions=ways):
        yield paint(f"  {missing}", "warned")
    if kind := kind_text(batch):
        yield f"  {kind}"
    for each in gradings:
        this = ""
        if each is shown:
            this = ", which this is"
        yield f"  regraded, grading {each.number}: {local_time(each.graded_at)}{this}"
    for line in (*_graded_by(runs), *settings_lines(batch, agents_of(finished_summaries(runs)))):
        yield paint(shortened(f"  {line}", max(width, _TITLE_MIN)), "muted")


def _graded_by(runs: Iterable[RunRow]) -> Iterator[str]:
    deciders: Counter[str] = Counter()
    for run in runs:
        if run.figures is not None and (grader := deciding_grader(run.figures)) is not None:
            deciders[grader] += 1
    names = [*deciders]
    if len(deciders) > 1:
        names = [f"{grader} ({counted(some, 'run')})" for grader, some in deciders.items()]
    if names:
        yield f"graded by {', '.join(names)}"


def later_runs(batch: BatchRow, grading: Regrade | None, runs: Sequence[RunRow], history: str) -> Iterator[str]:
    """Yield a note if some runs ended after the batch was regraded and therefore have no new grade.

    `history` is the option that selects the history in the printed command."""
    if grading is None or (at_ms := epoch_ms(grading.graded_at)) is None:
        return
    later = 0
    for run in runs:
        if run.figures is not None and run.figures.ended_ms is not None and run.figures.ended_ms > at_ms:
            later += 1
    if later:
        yield (
            f"{counted(later, 'run')} of batch {batch.number} ended after it was regraded, and have no new grade: "
            f"'workbench grade {batch.number}{history}' regrades all of them"
        )


def totals_lines(batch: BatchRow, runs: Sequence[RunRow], paint: Paint) -> Iterator[str]:
    """Yield the totals of each suite with each model."""
    # A batch may have a million runs, so an array holds only their indices. Figures are read when they are needed.
    parts: dict[tuple[SuiteRef, str], array[int]] = {}
    for index, run in enumerate(runs):
        if run.figures is not None:
            parts.setdefault((run.suite, run.model), array("L")).append(index)
    for suite in batch.suites:
        yield f"{paint(one_line(suite.name), 'strong')}  {paint(one_line(suite.path), 'muted')}"
        for part in batch.parts:
            if part.suite != suite:
                continue
            some = ""
            if not part.whole:
                some = f", the batch has only {counted_of(part.cases, suite.cases, 'case')}"
            # Memory holds only the cells of one suite with one model at a time.
            over = (runs[index].figures for index in parts.get((suite, part.model), ()))
            if cells := cells_of(figures for figures in over if figures is not None):
                yield from map(paint.line, case_totals(model_totals(part.model, cells.values()), some))
            else:
                yield f"  {one_line(part.model)}: no run is finished{some}"


def gates_reached(batch: BatchRow, gates: Mapping[str, Gate], runs: Sequence[RunRow]) -> Iterator[GateResult]:
    """Yield the gates of a batch with the values that its runs reached.

    `gates` maps keys of suites to gates. A gate from the command line replaces them. Forks do not count. Nothing is
    yielded for a shard, because it has only some of the runs."""
    if batch.shard is not None:
        return
    if batch.min_score is not None:
        yield from gates_of(None, Gate(min_score=batch.min_score), _that_count(runs))
        return
    of_files = {str(suite.file): gates.get(suite.key, Gate()) for suite in batch.suites}
    watch = stored_early_stopping(batch, runs, of_files)
    watched: dict[tuple[str | None, str | None], GateEarlyStop] = {}
    of_batch: GateEarlyStop | None = None
    if watch is not None:
        for each in watch.gates:
            watched[each.suite, each.model] = each
            if each.suite is None and of_batch is None:
                of_batch = each
    if of_batch is not None:
        yield from with_early_stop(gates_of(None, Gate(min_pass_rate=of_batch.gate), _that_count(runs)), watched)
        return
    # A `GateFold` takes one run at a time, so memory never holds all runs.
    reached: dict[SuiteRef, GateFold] = {}
    for run in runs:
        if run.figures is not None and not run.is_fork:
            if (fold := reached.get(run.suite)) is None:
                gate = gates.get(run.suite.key, Gate())
                fold = reached[run.suite] = GateFold(str(run.suite.file), gate)
            fold.add(run.figures)
    for fold in reached.values():
        yield from with_early_stop(fold.results(), watched)


def _that_count(runs: Iterable[RunRow]) -> Iterator[RunSummary]:
    for run in runs:
        if run.figures is not None and not run.is_fork:
            yield run.figures


def runs_lines(runs: Sequence[RunRow], width: int | None, paint: Paint, *, every: bool) -> Iterator[str]:
    """Yield a line for each run that did not pass or, with `every`, for each run.

    Without `width`, no line is cut. At most `LINES_MAX` runs have a line."""
    # A generator, because runs beyond the limit are only counted below.
    listed = (run for run in runs if every or _needs_a_look(run))
    shown = list(islice(listed, LINES_MAX))
    if not shown:
        yield "every run passed" if runs else "no run"
    yield from table_lines(runs_table(shown), width or sys.maxsize, paint)
    if more := sum(1 for _ in listed):
        yield f"and {counted(more, 'other run')}: --format records has a line for each"


def _needs_a_look(run: RunRow) -> bool:
    figures = run.figures
    if figures is None or figures.user_outcome is not None:
        return True
    return figures.status not in (Status.PASSED, Status.SKIPPED)


def runs_table(runs: Sequence[RunRow]) -> Table[RunRow]:
    """Return runs as rows of a table, with their numbers in the batch and the reasons why they did not pass."""
    columns: list[Column[RunRow]] = [
        Column("run", lambda run: words(count_text(run.place + 1)), right=True),
        Column("status", _sign),
        Column(
            "case",
            lambda run: words(_title(run).cut(_TITLE_MAX)),
            least=_TITLE_MIN,
            fit=lambda run, width: words(_title(run).cut(width)),
            gap=1,
        ),
        Column("model", lambda run: words(one_line(run.model)), least=_TITLE_MIN),
        Column("score", _score),
        Column("why", _why, least=_TITLE_MIN),
    ]
    return Table(columns, runs)


def _score(run: RunRow) -> Value:
    if run.figures is None:
        return NONE
    return words(score_text(run.figures.score, ""))


def _sign(run: RunRow) -> Value:
    if run.figures is None:
        return words(GLYPHS.missing, "muted")
    return words(run.figures.status.sign, run.figures.status.role)


def _why(run: RunRow) -> Value:
    if run.figures is None:
        return words("never finished")
    why = run.figures.reason
    if why is None and run.figures.user_outcome == "gave up":
        why = GAVE_UP
    return words(cut_what(why or "", None))


def run_title(run: RunRow) -> str:
    """Return the suite and the case of a run on one line. Repeats after the first also have their number."""
    return _title(run).whole


def _title(run: RunRow) -> Title:
    lead = tail = ""
    if run.is_fork:
        lead = f"{FORK} "
    if run.repeat:
        tail = f" #{run.repeat + 1}"
    return Title(run.suite.name, run.case_name, lead=lead, tail=tail)
