"""The screen of one case over time: its stored runs, and the trend of each model."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

from rich.cells import cell_len

from workbench.history.records import RunRow
from workbench.numerals import cost_text, count_text, counted, duration_text, moment_text, score_text, tokens_text
from workbench.show.glyphs import GLYPHS
from workbench.show.markdown import text_table
from workbench.show.signs import sparkline
from workbench.show.spans import (
    EMPTY,
    Line,
    Message,
    Role,
    Span,
    cut_line,
    cut_middle,
    padded,
    paragraph,
    spread,
)
from workbench.show.visible import model_label, one_line
from workbench.tui.kit.actions import action, unless_read_only
from workbench.tui.kit.list_screen import MarkingScreen
from workbench.tui.kit.rows import MarkedState
from workbench.tui.trajectory.headline import limited_time, model_time

MAX_TREND = 32
"""The maximum number of scores in the trend of a model. The latest scores are shown."""

MAX_MODELS = 4
"""The maximum number of models with a trend in the head. More models are only counted."""

TIMED_CELLS = 48
"""The minimum width for the model's latency in a row."""

DATED_CELLS = 60
"""The minimum width for the year in a row."""

DATE_CELLS = len("2026-11-22 14:03")

NAME_CELLS = 18
"""The maximum width of the number and name of a batch."""


class Timeline(MarkedState[RunRow]):
    """The stored runs of one case, newest first, with their original grades.

    `names` are the names of batches by number. `regraded` are the numbers of the batches that have regrades.
    `damage_messages` are the reasons why runs could not be read, one per run."""

    def __init__(
        self,
        case_name: str,
        runs: Sequence[RunRow],
        names: Mapping[int, str],
        regraded: Container[int] = (),
        damage_messages: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.case_name = case_name
        self.runs = tuple(runs)
        self.damaged = len(damage_messages)
        """The number of damaged runs. They are not in the list."""
        self.regraded = len({run.batch for run in runs if run.batch in regraded})
        """The number of regraded batches."""
        self._names = names
        self.name_cells = min(max((cell_len(self.batch_label(run)) for run in runs), default=0), NAME_CELLS)
        self._repeated = {run.batch for run in runs if run.repeat}
        self._changed = set()
        # The list begins with the newest run, so `pairwise` yields each run with the one before it in time.
        for run, before in pairwise(self.runs):
            if run.batch != before.batch and run.suite.hash != before.suite.hash:
                self._changed.add(run.id)
        self._rebuild()

    def batch_label(self, run: RunRow) -> str:
        """Return the number of the batch that a run belongs to, and the batch's name if it has one."""
        name = self._names.get(run.batch)
        if name:
            return f"#{run.batch} {one_line(name)}"
        return f"#{run.batch}"

    def model_label(self, run: RunRow) -> str:
        """Return the model of a run. If the batch repeated the case, add the number of the repeat (from 1)."""
        label = model_label(run.model)
        if run.batch in self._repeated:
            return f"{label} #{run.repeat + 1}"
        return label

    def changed(self, run: RunRow) -> bool:
        """Return whether the suite was changed between a run and the run before it."""
        return run.id in self._changed

    def trends(self) -> dict[str, list[float]]:
        """Return the scores (0 to 1) of each model's graded runs, oldest first."""
        found: dict[str, list[float]] = {}
        for run in reversed(self.runs):
            figures = run.figures
            # Forks do not count for the results of their case.
            if figures is not None and not run.is_fork and figures.status.graded:
                value = figures.score if figures.score is not None else float(figures.status.good)
                # A stored score may be NaN, and a bar needs a height.
                if math.isnan(value):
                    value = 0.0
                found.setdefault(run.model, []).append(min(max(value, 0.0), 1.0))
        return {model: scores[-MAX_TREND:] for model, scores in found.items()}

    def _id(self, row: RunRow) -> int:
        return row.id

    def _key(self, row: RunRow) -> int:
        return row.id

    def _in_order(self) -> Sequence[RunRow]:
        return self.runs[::-1]

    def _shown_rows(self) -> list[RunRow]:
        # The filter searches batch, date, model and status.
        return [run for run in self.runs if self._fits(run.id, partial(self._text_of, run))]

    def _text_of(self, run: RunRow) -> str:
        status = run.figures.status if run.figures is not None else "missing"
        return f"{self.batch_label(run)} {_when(run)} {run.model} {model_label(run.model)} {status}"


def row_line(state: Timeline, run: RunRow, width: int) -> Line:
    role: Role = "muted" if run.is_fork else "text"
    mark = GLYPHS.marked if run.id in state.marked else " "
    at = f"{_when(run):<{DATE_CELLS}} "
    if width < DATED_CELLS:
        at = at[len("2026-") :]
    left: Line = (
        Span(mark, "accent"),
        Span(at, "muted"),
        Span(f"{padded(state.batch_label(run), state.name_cells)}  ", role),
        Span(state.model_label(run), role),
    )
    if run.is_fork:
        left = (*left, Span(f"  {GLYPHS.fork} fork", "muted"))
    if state.changed(run):
        left = (*left, Span("  suite changed", "accent"))
    return spread(left, _result_line(run, timed=width >= TIMED_CELLS), width)


def _result_line(run: RunRow, *, timed: bool) -> Line:
    figures = run.figures
    if figures is None:
        return (Span(f"{GLYPHS.missing} missing ", "warned"),)
    sign, role = figures.status.mark
    took = f"{limited_time(figures):>9} " if timed else ""
    return (Span(f"{sign} ", role), Span(f"{score_text(figures.score, ''):>4}"), Span(f" {took}", "muted"))


def _when(run: RunRow) -> str:
    if run.figures is not None and run.figures.began_ms is not None:
        return moment_text(run.figures.began_ms)
    return ""


def list_message(state: Timeline) -> Message:
    """Return the message in place of an empty list."""
    if state.filter:
        return (("No run fits the filter.", "strong"), ("", "text"), ("Esc shows all again.", "muted"))
    message: Message = (("The history has no run of this case.", "strong"),)
    first = unless_read_only("r runs it: every run is stored from then on.")
    if first:
        message = (*message, ("", "text"), (first, "text"))
    return message


def head_lines(state: Timeline, width: int) -> list[Line]:
    """Return the lines above the list: the trend and the mean score of each model."""
    trends = state.trends()
    shown = list(trends)[:MAX_MODELS]
    label_cells = max((cell_len(model_label(model)) for model in shown), default=0)
    label_cells = min(label_cells, max(width // 3, 8))
    lines: list[Line] = []
    for model in shown:
        scores = trends[model]
        line: Line = (
            Span(f" {padded(cut_middle(model_label(model), label_cells), label_cells)}  "),
            # The text after the bars takes at most 30 cells, including blanks.
            Span(sparkline(scores[-max(width - label_cells - 30, 4) :]), "accent"),
            Span(f"  mean {score_text(sum(scores) / len(scores))} of {counted(len(scores), 'run')}", "muted"),
        )
        lines.append(cut_line(line, width))
    if len(trends) > len(shown):
        lines.append((Span(f" and {counted(len(trends) - len(shown), 'other model')}", "muted"),))
    if state.regraded:
        batches = "1 batch was" if state.regraded == 1 else f"{count_text(state.regraded)} batches were"
        lines += paragraph(f"Grades are those of when they ran; {batches} regraded since.", width, "muted")
    return lines


def detail_lines(state: Timeline, run: RunRow, width: int) -> list[Line]:
    """Return the details of one run: its batch, grade, figures and suite."""
    return list(_detail(state, run, width))


def _detail(state: Timeline, run: RunRow, width: int) -> Iterator[Line]:
    right: Line = (Span(f"{_when(run)} ", "muted"),)
    yield spread((Span(f" {state.batch_label(run)}", "strong"), Span(f"  {state.model_label(run)}")), right, width)
    figures = run.figures
    if figures is None:
        resumes = unless_read_only(", and c there resumes it")
        yield from paragraph(f"It never finished; h shows the batch{resumes}.", width, "warned")
        return
    sign, role = figures.status.mark
    verdict: Line = (Span(f" {sign} {figures.status}", role),)
    if figures.score is not None:
        verdict = (*verdict, Span(f" {score_text(figures.score)}", "strong"))
    yield verdict
    if figures.reason:
        yield from paragraph(figures.reason, width, "muted")
    facts = []
    if took := model_time(figures):
        facts.append(f"model {took}")
    if figures.first_token_ms is not None:
        facts.append(f"first token {duration_text(figures.first_token_ms)}")
    if figures.input_tokens is not None or figures.output_tokens is not None:
        facts.append(tokens_text(figures.input_tokens or 0, figures.output_tokens or 0))
    if figures.cost_usd:
        facts.append(cost_text(figures.cost_usd))
    if facts:
        yield from paragraph(f" {GLYPHS.dot} ".join(facts), width, "text")
    if run.is_fork:
        yield from paragraph("A fork: an experiment that counts for no case.", width, "muted")
    yield EMPTY
    yield from paragraph(f"{run.suite.name}  {run.suite.path}", width, "muted")
    if state.changed(run):
        yield from paragraph("Its suite changed since the batch before.", width, "accent")


def timeline_text(state: Timeline) -> str:
    # This import is lazy, because it loads the graders, which the screen itself does not need.
    from workbench.analysis.measures import LATENCY, SCORE

    titles = ("began", "batch", "model", "status", SCORE.title, LATENCY.title)
    return text_table(titles, (_cells(state, run) for run in state.rows))


def _cells(state: Timeline, run: RunRow) -> list[str]:
    which = state.model_label(run)
    if run.is_fork:
        which += " (fork)"
    named = [_when(run), state.batch_label(run), which]
    if run.figures is None:
        return [*named, "missing", "", ""]
    return [*named, run.figures.status, score_text(run.figures.score, ""), limited_time(run.figures)]


class TimelineScreen(MarkingScreen[Timeline, RunRow]):
    """Lists the stored runs of one case, newest first."""

    NAME = "timeline"
    FIRST_ACTIONS = ("open", "mark")
    TITLE_IN_TEXT = "a case over time"
    AUTO_FOCUS = "#timeline-list"
    MARK_NOTICE = "space on another run puts both side by side"
    FILTER_PLACEHOLDER = "words of batch, date, model or status"

    def _row_line(self, index: int, width: int) -> Line:
        return row_line(self.state, self.state.rows[index], width)

    def _message(self) -> Message:
        return list_message(self.state)

    def _head_lines(self, width: int) -> Sequence[Line]:
        return head_lines(self.state, width)

    def _detail_lines(self, width: int) -> Sequence[Line]:
        run = self.state.selected
        if run is not None:
            return detail_lines(self.state, run, width)
        return ()

    def _title(self) -> tuple[Line, Sequence[Line]]:
        state = self.state
        left: Line = (Span(" Over time ", "badge"), Span(f" {one_line(state.case_name)}{self._filter_text}"))
        batches = len({run.batch for run in state.runs})
        right: Line = (Span(f"{counted(len(state.runs), 'run')} in {counted(batches, 'batch')} ", "muted"),)
        if state.damaged:
            right = (Span(f" {counted(state.damaged, 'damaged run')} left out · ", "warned"), *right)
        return left, [right, EMPTY]

    @action("enter", "Show the run", label="open")
    def do_open(self) -> None:
        if self.state.selected is not None:
            self._show_runs([self.state.selected])

    def _open_pair(self, earlier: RunRow, later: RunRow) -> None:
        self._show_runs([earlier, later])

    def _show_runs(self, runs: Sequence[RunRow]) -> None:
        wanted = [(f"batch {self.state.batch_label(run)}", run, None) for run in runs]
        self.workbench.screens.show_runs(self, wanted)

    @action("y", "Copy it as Markdown", label="copy")
    def do_copy(self) -> None:
        self.workbench.copy(timeline_text(self.state), "the runs shown", self.announce)

    def _refusals(self) -> dict[str, str]:
        run = self.state.selected
        if run is None:
            return dict.fromkeys(("timeline.open", "timeline.mark", "timeline.copy"), "there is no run here")
        if run.figures is None:
            return dict.fromkeys(("timeline.open", "timeline.mark"), "this run never finished, so no result was stored")
        return {}
