"""The state and the lines of the list of stored batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from rich.cells import cell_len

from workbench.analysis.trends import MAX_TREND, TrendKey, good_and_graded, trends_of
from workbench.grading.status import Status
from workbench.history.records import BatchPart, BatchRow, Regrade, SuiteRef
from workbench.numerals import count_text, counted, counted_of
from workbench.show.doc import Table
from workbench.show.glyphs import GLYPHS
from workbench.show.rows import MEASURED_ROWS, TableLayout
from workbench.show.signs import sparkline
from workbench.show.spans import (
    ELLIPSIS,
    EMPTY,
    Line,
    Message,
    Role,
    Span,
    cells,
    cut_line,
    cut_middle,
    heading,
    padded,
    paragraph,
    spread,
    wrap_line,
)
from workbench.show.views.batch_list import (
    BatchFacts,
    batch_name,
    batch_table,
    kind_text,
    missing_text,
    pass_rate_text,
    settings_lines,
    times_text,
)
from workbench.show.visible import model_label, one_line
from workbench.show.when import local_time
from workbench.tui.kit.actions import key_for, unless_read_only
from workbench.tui.kit.rows import MarkedState

if TYPE_CHECKING:
    from workbench.tui.run_book.stored_batches import LoadedBatches

OLDER_ROWS = 100
"""Older batches are read when the cursor is at most this many rows above the last row."""

_READING = ("open", "mark", "name", "resume", "regrade", "grading", "export", "export_as")
"""Names of actions that need an undamaged batch."""

_BATCH_ACTIONS = (*_READING, "delete", "copy", "other", "forks")
"""Names of actions that need a batch."""


class HistoryList(MarkedState[BatchRow]):
    """The list of stored batches, newest first."""

    # Of a long history, only the newest batches are read at first. Trends come from all batches once all are read.
    # Until then, each selected batch has its own query for trends.

    def __init__(self) -> None:
        super().__init__()
        self.is_read = False
        self.problem: str | None = None
        """Why reading the history failed, `None` if it did not."""
        self.batches: tuple[BatchRow, ...] = ()
        self.older = 0
        """The number of unread older batches."""
        self._older_forks = 0
        self.active: frozenset[int] = frozenset()
        """The numbers of batches with active runs, here or in another process."""
        self._layout: tuple[object, list[BatchRow], TableLayout[BatchFacts]] | None = None
        """The measured columns, with the state and rows used to measure them."""
        self.shows_forks = False
        self.regraded: Mapping[int, int] = {}
        """The number of regrades by batch number."""
        self._gradings: dict[int, tuple[tuple[Regrade, tuple[BatchPart, ...]], ...]] = {}
        self.agents: dict[int, Mapping[str, Sequence[str]]] = {}
        """The names and versions of agents by batch number and model, of the batches selected so far."""
        self._chosen: dict[int, int] = {}
        self._trends: dict[TrendKey, list[tuple[int, float]]] | None = None
        self._trends_of: dict[int, Mapping[TrendKey, Sequence[tuple[int, float]]]] = {}
        """The trends of the batches selected so far. Used until all batches are read."""

    @property
    def forks(self) -> int:
        """The number of batches that are forks or reruns of other batches."""
        return sum(batch.kind != "runs" for batch in self.batches) + self._older_forks

    @property
    def layout(self) -> TableLayout[BatchFacts]:
        """The table of the rows. The widths of its columns are measured again when the rows change."""
        # The key holds the `id` of the rows. Keeping the rows alive ensures that no new list has the same `id`.
        shown = id(self.rows), self.active, tuple(self._chosen.items()), tuple(self._gradings)
        if self._layout is None or self._layout[0] != shown:
            measured = list(map(self.facts, self.rows[:MEASURED_ROWS]))
            self._layout = shown, self.rows, TableLayout(batch_table(measured, marks=True))
        return self._layout[2]

    @property
    def table(self) -> Table[BatchFacts]:
        return batch_table(list(map(self.facts, self.rows)), marks=True)

    def facts(self, batch: BatchRow) -> BatchFacts:
        marked, regraded = batch.number in self.marked, self.regraded.get(batch.number, 0)
        return BatchFacts(batch, self.parts(batch), self.is_active(batch), regraded, self.grading(batch), marked)

    def is_active(self, batch: BatchRow) -> bool:
        return batch.number in self.active

    def at(self, number: int) -> BatchRow | None:
        """Return the batch with a number, `None` if it has not been read."""
        return next((batch for batch in self.batches if batch.number == number), None)

    def replace_all(self, read: LoadedBatches) -> None:
        """Replace the batches by those just read. If the selected batch is gone, select the newest."""
        # At the top of the list, the cursor follows new batches.
        newest = not self.cursor
        unchanged = set()
        for number, times in read.regraded.items():
            if times == self.regraded.get(number):
                unchanged.add(number)
        self.is_read, self.problem = True, None
        self.batches, self.regraded, self.active = read.batches, read.regraded, read.active
        self.older, self._older_forks = read.older, read.older_forks
        self._trends_of.clear()
        self.agents.clear()
        # If a batch was regraded since, its grades are read again.
        self._gradings = {number: known for number, known in self._gradings.items() if number in unchanged}
        self._texts.clear()
        self._trends = None
        there = {batch.number for batch in self.batches}
        self.marked = tuple(number for number in self.marked if number in there)
        self._rebuild()
        if newest:
            self.move_to(0)

    def renew(self, batches: Sequence[BatchRow], active_batches: frozenset[int]) -> None:
        """Replace some batches by newer versions. `active_batches` are the numbers of all batches with active runs."""
        # `rows` may be filtered, so both lists are renewed. The next complete reading adds new batches.
        fresh = {batch.number: batch for batch in batches}
        self.active = active_batches
        self.batches = tuple(fresh.get(batch.number, batch) for batch in self.batches)
        self.rows = [fresh.get(batch.number, batch) for batch in self.rows]
        if self._trends is not None:
            for key, rates in trends_of(batches).items():
                others = [each for each in self._trends.get(key, ()) if each[0] not in fresh]
                self._trends[key] = sorted([*others, *rates])

    def fail(self, problem: str) -> None:
        """Store why the history could not be read. Batches read before stay in the list."""
        self.is_read, self.problem = True, problem

    @property
    def needs_older(self) -> bool:
        """Whether older batches must be read: the cursor is near the end of the list, or a filter must search them."""
        return self.older > 0 and bool(self.filter or self.cursor + OLDER_ROWS >= len(self.rows))

    def show_forks(self, shown: bool) -> None:
        self.shows_forks = shown
        self._rebuild()

    def refusals(self) -> dict[str, str]:
        """Return why actions are unavailable for the selected batch, by action id. Available actions are left out."""
        batch = self.selected
        if batch is None:
            return _refused(_BATCH_ACTIONS, "there is no batch here")
        refused: dict[str, str] = {}
        if not self.forks:
            refused["history.forks"] = "there are no forks here"
        if batch.damage is not None:
            return refused | _refused(_READING, f"the batch is damaged: {batch.damage}")
        if self.is_active(batch):
            busy = "its runs are under way: wait for them, or stop them where they were started"
            refused |= _refused(("resume", "regrade", "delete"), busy)
        elif batch.kind == "fork":
            refused["history.resume"] = f"a fork cannot be resumed: {key_for('run.fork')} forks the run again"
            refused["history.mark"] = "a fork of one run cannot be compared with a batch"
        elif batch.kind == "reruns":
            refused["history.resume"] = "reruns cannot be resumed"
            refused["history.mark"] = "reruns of some cases cannot be compared with a batch"
        elif not batch.missing:
            refused["history.resume"] = "this batch is complete; nothing to resume"
        if not batch.graded:
            refused["history.regrade"] = "no run of it was graded"
        if not self.gradings(batch):
            anew = unless_read_only(f"; {key_for('history.regrade')} regrades it")
            refused["history.grading"] = f"it was graded only when it ran{anew}"
        return refused

    def needs_agents(self, batch: BatchRow) -> bool:
        """Return whether a batch ran subjects (agents of the user) whose names and versions have not been read."""
        models = batch.settings.get("models")
        if batch.damage is not None or batch.number in self.agents or not isinstance(models, dict):
            return False
        return any(isinstance(model, dict) and model.get("provider") == "subject" for model in models.values())

    def needs_gradings(self, batch: BatchRow) -> bool:
        return batch.damage is None and batch.number in self.regraded and batch.number not in self._gradings

    def set_gradings(self, number: int, read: Sequence[tuple[Regrade, tuple[BatchPart, ...]]]) -> None:
        """Set the regrades of a batch. Each comes with its counts by suite and model."""
        if self.at(number) is not None:
            self._gradings[number] = tuple(read)

    def gradings(self, batch: BatchRow) -> tuple[tuple[Regrade, tuple[BatchPart, ...]], ...]:
        """Return the regrades of a batch that have been read. Each comes with its counts by suite and model."""
        return self._gradings.get(batch.number, ())

    def grading(self, batch: BatchRow) -> Regrade | None:
        """Return the selected regrade of a batch, `None` for the original grades."""
        known = self.gradings(batch)
        # 0 means the original grades.
        chosen = self._chosen.get(batch.number, 0)
        if 0 < chosen <= len(known):
            return known[chosen - 1][0]
        return None

    def other_grading(self) -> bool:
        """Select the next regrade of the selected batch. After the last, select the original grades.

        Returns whether the batch has regrades."""
        batch = self.selected
        if batch is None:
            return False
        known = self.gradings(batch)
        if not known:
            return False
        self._chosen[batch.number] = (self._chosen.get(batch.number, 0) + 1) % (len(known) + 1)
        return True

    def select_grading(self, number: int, regrade_number: int) -> None:
        """Select the regrade `regrade_number` (from 1) of batch `number`. The regrade may be read later."""
        self._chosen[number] = regrade_number

    def parts(self, batch: BatchRow) -> tuple[BatchPart, ...]:
        """Return the counts of a batch by suite and model, for the selected grades."""
        wanted = self.grading(batch)
        for grading, parts in self.gradings(batch):
            if grading is wanted:
                return parts
        return batch.parts

    def trend(self, batch: BatchRow, part: BatchPart) -> list[float]:
        """Return the last pass rates (0 to 1) of a suite with a model, oldest first.

        The rates use the original grades of complete batches up to and including `batch`."""
        known: Sequence[tuple[int, float]]
        if self.older:
            known = self._trends_of.get(batch.number, {}).get((part.suite.key, part.model), ())
        else:
            if self._trends is None:
                self._trends = trends_of(reversed(self.batches))
            known = self._trends.get((part.suite.key, part.model), ())
        return [rate for number, rate in known if number <= batch.number][-MAX_TREND:]

    def needs_trends(self, batch: BatchRow) -> bool:
        """Return whether the pass rates for the trends of a batch must still be read."""
        return self.older > 0 and batch.damage is None and batch.number not in self._trends_of

    def set_trends(self, number: int, trends: Mapping[TrendKey, Sequence[tuple[int, float]]]) -> None:
        self._trends_of[number] = trends

    def _key(self, row: BatchRow) -> int:
        return row.number

    def _id(self, row: BatchRow) -> int:
        return row.number

    def _in_order(self) -> Sequence[BatchRow]:
        return self.batches[::-1]

    def _shown_rows(self) -> list[BatchRow]:
        # The filter searches number, name, date, suites and models.
        found = []
        for batch in self.batches:
            is_shown = self.shows_forks or batch.kind == "runs"
            if is_shown and self._fits(batch.number, partial(_text_of, batch)):
                found.append(batch)
        return found


def _refused(names: Iterable[str], why: str) -> dict[str, str]:
    return {f"history.{name}": why for name in names}


def _text_of(batch: BatchRow) -> str:
    suites = " ".join(f"{suite.name} {suite.path}" for suite in batch.suites)
    return f"#{batch.number} {batch.name or ''} {local_time(batch.started_at)} {suites} {' '.join(batch.models)}"


def list_message(state: HistoryList, file: str | None) -> Message:
    """Return the message in place of an empty list. `file` is the history, `None` if the session keeps no history."""
    if file is None:
        return (
            ("This session keeps no history.", "strong"),
            ("", "text"),
            ("It was started with --no-history: without it, every batch is stored as it runs.", "text"),
        )
    if state.problem is not None:
        problem = one_line(state.problem)
        return ((problem[:1].upper() + problem[1:], "error"), ("", "text"), ("F5 reloads it.", "muted"))
    if not state.is_read:
        return ((f"Reading the history {ELLIPSIS}", "muted"),)
    if state.filter:
        return (("No batch fits the filter.", "strong"), ("", "text"), ("Esc shows all again.", "muted"))
    if state.batches:
        return (("There are only forks of single runs here.", "strong"), ("", "text"), (". shows them.", "muted"))
    ways = unless_read_only("r runs a case, R a suite or folder, 'workbench run' as well")
    if not ways:
        ways = "'workbench run' makes one"
    return (
        ("There is no batch yet.", "strong"),
        ("", "text"),
        (f"Every batch is stored as it runs: {ways}.", "text"),
        ("", "text"),
        (f"The history is {one_line(file)}; a folder .workbench in a project keeps the project's own.", "muted"),
    )


def detail_lines(state: HistoryList, batch: BatchRow, width: int) -> list[Line]:
    """Return the details of a batch: counts, suites, models, regrades, environment."""
    return list(chain.from_iterable(_detail(state, batch, width)))


def _detail(state: HistoryList, batch: BatchRow, width: int) -> Iterator[list[Line]]:
    yield _head(state, batch, width)
    if batch.damage is not None:
        return
    yield _suites_and_models(state, batch, width)
    yield _gradings(state, batch, width)
    yield _environment_lines(state, batch, width)


def _head(state: HistoryList, batch: BatchRow, width: int) -> list[Line]:
    if batch.damage is not None:
        text = f"This batch is damaged: {batch.damage}.{unless_read_only(' Delete removes it.')}"
        return [(Span(f" {batch_name(batch)}", "strong"),), *paragraph(text, width, "error")]
    parts = state.parts(batch)
    good, graded = good_and_graded(parts)
    if graded:
        passed = f"{pass_rate_text(parts)} passed: {counted_of(good, graded, 'graded run')}"
    else:
        passed = "No run was graded"
    by: list[Span] = []
    for text, role in _grading_notes(state, batch):
        by += [Span(", "), Span(text, role)]
    lines: list[Line] = [
        spread((Span(f" {batch_name(batch)}", "strong"),), (Span(f"{times_text(batch)} ", "muted"),), width),
        *wrap_line((Span(f" {passed}"), *by), width, hang=1),
    ]
    apart = []
    for status in Status:
        count = sum(part.counts[status] for part in parts)
        if status.final and not status.graded and count:
            apart.append(f"{count_text(count)} {status.counted}")
    if apart:
        lines += paragraph(f"Also {', '.join(apart)}.", width, "muted")
    resume = unless_read_only("c runs exactly these") if batch.kind == "runs" else ""
    is_active = state.is_active(batch)
    if missing := missing_text(batch, is_active=is_active, suggestions=[resume]):
        lines += paragraph(_sentence(missing), width, "running" if is_active else "warned")
    if kind := kind_text(batch):
        lines += paragraph(_sentence(kind), width, "muted")
    return lines


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _grading_notes(state: HistoryList, batch: BatchRow) -> Iterator[tuple[str, Role]]:
    shown = state.grading(batch)
    if shown is not None:
        yield f"as regraded {local_time(shown.graded_at)} (grading {shown.number})", "accent"
    elif batch.number in state.regraded:
        yield "as graded when it ran; there are later grades", "muted"


def _suites_and_models(state: HistoryList, batch: BatchRow, width: int) -> list[Line]:
    by_suite: dict[SuiteRef, list[BatchPart]] = {}
    for part in state.parts(batch):
        by_suite.setdefault(part.suite, []).append(part)
    label_cells = max((cell_len(model_label(model)) for model in batch.models), default=0)
    lines: list[Line] = []
    trends = False
    for suite, parts in by_suite.items():
        lines += [EMPTY, _suite_head(suite, width)]
        for part in parts:
            trend = state.trend(batch, part)
            trends = trends or len(trend) > 1
            lines.append(_part_line(part, trend, label_cells, width))
    if trends:
        then = ", as they were graded when they ran" if state.regraded else ""
        lines += paragraph(
            f"Bars are pass rates of complete batches up to this one, oldest first{then}. Batches of a subset, with "
            "missing runs or with errors are left out.",
            width,
            "muted",
        )
    return lines


def _suite_head(suite: SuiteRef, width: int) -> Line:
    return cut_line((Span(f" {one_line(suite.name)}", "heading"), Span(f"  {one_line(suite.path)}", "muted")), width)


def _part_line(part: BatchPart, trend: Sequence[float], label_cells: int, width: int) -> Line:
    signs: list[Span] = []
    for status in Status:
        if part.counts[status]:
            signs.append(Span(f" {status.sign}{count_text(part.counts[status])}", status.role))
    figures: Line = (Span(f"  {pass_rate_text((part,)):>6}", "strong"), *signs)
    if not part.whole:
        some = f"  {counted(part.cases, 'case')} of {count_text(part.suite.cases)}"
        figures = (*figures, Span(some, "muted"))
    line: Line = (Span(f" {sparkline(trend)} ", "accent"),) if len(trend) > 1 else EMPTY
    label_cells = min(label_cells, max(width - cells(figures) - cells(line) - 3, 8))
    label = padded(cut_middle(model_label(part.model), label_cells), label_cells)
    return spread((Span(f"   {label}"), *figures), line, width)


def _gradings(state: HistoryList, batch: BatchRow, width: int) -> list[Line]:
    if batch.number not in state.regraded:
        return []
    lines: list[Line] = [EMPTY, (Span(" Regraded", "heading"),)]
    shown = state.grading(batch)
    known = state.gradings(batch)
    if not known:
        return [*lines, (Span(f"   {counted(state.regraded[batch.number], 'time')}, being read {ELLIPSIS}", "muted"),)]
    rows = [("when it ran", local_time(batch.started_at), batch.parts, shown is None)]
    for grading, parts in known:
        rows.append((f"grading {grading.number}", local_time(grading.graded_at), parts, grading is shown))
    for name, at, parts, chosen in rows:
        good, graded = good_and_graded(parts)
        mark = f" {GLYPHS.folded} " if chosen else "   "
        text = f"{name:<12} {at}  {pass_rate_text(parts):>6}  {count_text(good)}/{count_text(graded)}"
        lines.append(cut_line((Span(mark, "accent"), Span(text, "strong" if chosen else "text")), width))
    return [*lines, *paragraph("o shows the other grades, above and on the screen that Enter opens.", width, "muted")]


def _environment_lines(state: HistoryList, batch: BatchRow, width: int) -> list[Line]:
    lines: list[Line] = [EMPTY, heading("Run with")]
    for text in settings_lines(batch, state.agents.get(batch.number, {})):
        lines += wrap_line((Span(f"   {text}"),), width, hang=5)
    return lines
