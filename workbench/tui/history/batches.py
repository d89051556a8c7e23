"""The state of the screen of batches: a filter, whether forks are shown, marks, a cursor, trends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from workbench.analysis.over_time import MAX_TREND, TrendKey, trends_of
from workbench.grading.run_summary import RunSummary
from workbench.history.records import BatchPart, BatchRow, Regrade, RunRow, RunTable
from workbench.show.doc import Table
from workbench.show.rows import MEASURED_ROWS, Laid
from workbench.show.views.batch_list import BatchFacts, batch_table
from workbench.show.when import local_time
from workbench.tui.kit.actions import key_for, unless_read_only
from workbench.tui.kit.rows import MarkedState
from workbench.tui.run_book.stored import ReadBatches

OLDER_ROWS = 100
"""Older batches are read when the cursor is so many rows from the last one."""

_READING = ("open", "mark", "name", "go_on", "regrade", "grading", "export", "export_as")
"""Actions that need a readable batch."""

_OF_BATCH = (*_READING, "delete", "copy", "other", "forks")
"""Actions that need a batch."""


class HistoryList(MarkedState[BatchRow]):
    """All batches as rows, the newest first."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read = False
        self.problem: str | None = None
        """Why the history could not be read, if so."""
        self.batches: tuple[BatchRow, ...] = ()
        self.older = 0
        """How many batches are not read yet, all of them older."""
        self._older_forks = 0
        self.going: frozenset[int] = frozenset()
        """The numbers of batches with runs under way, here or in a different program."""
        self._laid: tuple[object, list[BatchRow], Laid[BatchFacts]] | None = None
        """What was measured, for which rows, and how."""
        self.shows_forks = False
        self.regraded: Mapping[int, int] = {}
        """The number of regrades by batch number."""
        self._gradings: dict[int, tuple[tuple[Regrade, tuple[BatchPart, ...]], ...]] = {}
        self._chosen: dict[int, int] = {}
        self._trends: dict[TrendKey, list[tuple[int, float]]] | None = None
        self._trends_of: dict[int, Mapping[TrendKey, Sequence[tuple[int, float]]]] = {}
        """The trends of the batches that were looked at, where not all batches are read."""

    # Content

    @property
    def forks(self) -> int:
        """The number of batches that are forks, or reruns."""
        return sum(batch.kind != "runs" for batch in self.batches) + self._older_forks

    @property
    def laid(self) -> Laid[BatchFacts]:
        """The rows in columns. They are measured again when what they show changes, but for marks."""
        shown = id(self.rows), self.going, tuple(self._chosen.items()), tuple(self._gradings)
        if self._laid is None or self._laid[0] != shown:
            measured = list(map(self.facts, self.rows[:MEASURED_ROWS]))
            self._laid = shown, self.rows, Laid(batch_table(measured, marks=True))
        return self._laid[2]

    @property
    def table(self) -> Table[BatchFacts]:
        """The rows as the list of batches."""
        return batch_table(list(map(self.facts, self.rows)), marks=True)

    def facts(self, batch: BatchRow) -> BatchFacts:
        """Return what a row shows."""
        marked, regraded = batch.number in self.marked, self.regraded.get(batch.number, 0)
        return BatchFacts(batch, self.parts(batch), self.is_going(batch), regraded, self.grading(batch), marked)

    def is_going(self, batch: BatchRow) -> bool:
        """Return whether runs of a batch are under way."""
        return batch.number in self.going

    def at(self, number: int) -> BatchRow | None:
        """Return a batch by its number."""
        return next((batch for batch in self.batches if batch.number == number), None)

    def take(self, read: ReadBatches) -> None:
        """Show the batches that were read. The cursor stays on its batch, unless it is on the newest one."""
        newest = not self.cursor
        changed = {number for number, times in read.regraded.items() if times != self.regraded.get(number)}
        self.is_read, self.problem = True, None
        self.batches, self.regraded, self.going = read.batches, read.regraded, read.going
        self.older, self._older_forks = read.older, read.older_forks
        self._trends_of.clear()
        self._gradings = {
            number: known
            for number, known in self._gradings.items()
            if number not in changed and number in self.regraded
        }
        self._texts.clear()
        self._trends = None
        there = {batch.number for batch in self.batches}
        self.marked = tuple(number for number in self.marked if number in there)
        self._rebuild()
        if newest:
            self.move_to(0)

    def renew(self, batches: Sequence[BatchRow], going: frozenset[int]) -> None:
        """Update batches that are under way."""
        fresh = {batch.number: batch for batch in batches}
        self.going = going
        self.batches = tuple(fresh.get(batch.number, batch) for batch in self.batches)
        self.rows = [fresh.get(batch.number, batch) for batch in self.rows]
        if self._trends is not None:
            for key, rates in trends_of(batches).items():
                others = [each for each in self._trends.get(key, ()) if each[0] not in fresh]
                self._trends[key] = sorted([*others, *rates])

    def fail(self, problem: str) -> None:
        """Note that the history could not be read. Earlier content stays."""
        self.is_read, self.problem = True, problem

    @property
    def wants_older(self) -> bool:
        """Whether older batches are to be read: the cursor comes near them, or a filter is looking for some."""
        return self.older > 0 and bool(self.filter or self.cursor + OLDER_ROWS >= len(self.rows))

    # Moving and selecting

    def show_forks(self, shown: bool) -> None:
        """Show or hide batches that are forks."""
        self.shows_forks = shown
        self._rebuild()

    def refusals(self) -> dict[str, str]:
        """Return why actions are unavailable for the selected batch, by action id."""
        batch = self.selected
        if batch is None:
            return dict.fromkeys((f"history.{name}" for name in _OF_BATCH), "there is no batch here")
        refused: dict[str, str] = {}
        if not self.forks:
            refused["history.forks"] = "there are no forks here"
        if batch.damage is not None:
            return refused | dict.fromkeys((f"history.{name}" for name in _READING), f"it is damaged: {batch.damage}")
        if self.is_going(batch):
            busy = "its runs are under way: wait for them, or stop them where they were started"
            refused |= dict.fromkeys(("history.go_on", "history.regrade", "history.delete"), busy)
        elif batch.kind == "fork":
            refused["history.go_on"] = f"a fork cannot be resumed: {key_for('run.fork')} forks the run again"
            refused["history.mark"] = "a fork of one run cannot be compared with a batch"
        elif batch.kind == "reruns":
            refused["history.go_on"] = "reruns cannot be resumed"
            refused["history.mark"] = "reruns of some cases cannot be compared with a batch"
        elif not batch.missing:
            refused["history.go_on"] = "this batch is complete; nothing to resume"
        if not batch.graded:
            refused["history.regrade"] = "no run of it was graded"
        if not self.gradings(batch):
            anew = unless_read_only(f"; {key_for('history.regrade')} grades it anew")
            refused["history.grading"] = f"it was graded only when it ran{anew}"
        return refused

    # Gradings

    def wants_gradings(self, batch: BatchRow) -> bool:
        """Return whether a batch was regraded and its gradings have not been read yet."""
        return batch.damage is None and batch.number in self.regraded and batch.number not in self._gradings

    def take_gradings(self, number: int, read: Sequence[tuple[Regrade, tuple[BatchPart, ...]]]) -> None:
        """Set the gradings of a batch, each with its counts."""
        if self.at(number) is not None:
            self._gradings[number] = tuple(read)

    def gradings(self, batch: BatchRow) -> tuple[tuple[Regrade, tuple[BatchPart, ...]], ...]:
        """Return the gradings of a batch that have been read, with their counts."""
        return self._gradings.get(batch.number, ())

    def grading(self, batch: BatchRow) -> Regrade | None:
        """Return the selected grading, `None` for the original grades."""
        known = self.gradings(batch)
        chosen = self._chosen.get(batch.number, 0)
        return known[chosen - 1][0] if 0 < chosen <= len(known) else None

    def other_grading(self) -> bool:
        """Select the next grading of the selected batch; after the last one come the original grades. Returns whether
        there is a different one."""
        batch = self.selected
        known = self.gradings(batch) if batch is not None else ()
        if batch is None or not known:
            return False
        self._chosen[batch.number] = (self._chosen.get(batch.number, 0) + 1) % (len(known) + 1)
        return True

    def look_at_grading(self, number: int, which: int) -> None:
        """Select a grading of a batch, counted from 1, as soon as it has been read."""
        self._chosen[number] = which

    def parts(self, batch: BatchRow) -> tuple[BatchPart, ...]:
        """Return the counts of a batch by the selected grading."""
        wanted = self.grading(batch)
        return next((parts for grading, parts in self.gradings(batch) if grading is wanted), batch.parts)

    # Trends

    def trend(self, batch: BatchRow, part: BatchPart) -> list[float]:
        """Return the pass rates of a suite with a model in the latest complete batches up to this one, the oldest
        first, by the original grades."""
        known: Sequence[tuple[int, float]]
        if self.older:
            known = self._trends_of.get(batch.number, {}).get((part.suite.key, part.model), ())
        else:
            if self._trends is None:
                self._trends = trends_of(reversed(self.batches))
            known = self._trends.get((part.suite.key, part.model), ())
        return [rate for number, rate in known if number <= batch.number][-MAX_TREND:]

    def wants_trends(self, batch: BatchRow) -> bool:
        """Return whether the trends of a batch have to be read by themselves, and have not been."""
        return self.older > 0 and batch.damage is None and batch.number not in self._trends_of

    def take_trends(self, number: int, trends: Mapping[TrendKey, Sequence[tuple[int, float]]]) -> None:
        """Set the trends of a batch."""
        self._trends_of[number] = trends

    def _key(self, row: BatchRow) -> int:
        return row.number

    def _id(self, row: BatchRow) -> int:
        return row.number

    def _in_order(self) -> Sequence[BatchRow]:
        return self.batches[::-1]

    def _found(self) -> list[BatchRow]:
        """Return the rows that match the filter, which searches number, name, date, suites and models."""
        return [
            batch
            for batch in self.batches
            if (self.shows_forks or batch.kind == "runs") and self._fits(batch.number, partial(_text_of, batch))
        ]


def _text_of(batch: BatchRow) -> str:
    suites = " ".join(f"{suite.name} {suite.path}" for suite in batch.suites)
    return f"#{batch.number} {batch.name or ''} {local_time(batch.started_at)} {suites} {' '.join(batch.models)}"


def figures_in(runs: Sequence[RunRow]) -> Sequence[RunSummary]:
    """Return the summaries of finished runs."""
    if isinstance(runs, RunTable):
        return runs.figures
    return [run.figures for run in runs if run.figures is not None]
