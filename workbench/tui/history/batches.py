"""The batches of a history as the screen lists them: a filter, forks shown or not, marks, a cursor, trends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from rich.cells import cell_len

from workbench.analysis.trends import TREND_MAX, trends_of
from workbench.grading.run_summary import RunSummary
from workbench.history.records import COUNTED, BatchPart, BatchRow, Regrade, RunRow, SuiteRef
from workbench.reports.history_list import called
from workbench.reports.when import local_time
from workbench.tui.kit.rows import MarkedState
from workbench.tui.run_book.kept import ReadBatches

_READING = ("open", "mark", "name", "go_on", "regrade", "grading", "export")
"""Actions that need a batch that can be read."""

_OF_BATCH = (*_READING, "delete", "copy", "other", "forks")
"""Actions that need a batch."""


class HistoryList(MarkedState[BatchRow]):
    """All batches as rows, the newest first."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read = False
        self.problem: str | None = None
        """Why the history could not be read, if it could not."""
        self.batches: tuple[BatchRow, ...] = ()
        self.going: frozenset[int] = frozenset()
        """The numbers of those of which runs are made now, here or in another program."""
        self.name_cells = 0
        """How wide the longest number with its name is."""
        self.shows_forks = False
        self.regraded: Mapping[int, int] = {}
        """How often batches were graded again, by their numbers."""
        self._gradings: dict[int, tuple[tuple[Regrade, tuple[BatchPart, ...]], ...]] = {}
        self._chosen: dict[int, int] = {}
        self._trends: dict[tuple[str, str], list[tuple[int, float]]] | None = None

    # What is there

    @property
    def forks(self) -> int:
        """How many of all batches are forks."""
        return sum(batch.kind == "fork" for batch in self.batches)

    def is_going(self, batch: BatchRow) -> bool:
        """Whether runs of it are made now."""
        return batch.number in self.going

    def at(self, number: int) -> BatchRow | None:
        """A batch by its number."""
        return next((batch for batch in self.batches if batch.number == number), None)

    def take(self, read: ReadBatches) -> None:
        """Show what was read; the cursor stays on its batch, unless it is on the newest one."""
        newest = not self.cursor
        changed = {number for number, times in read.regraded.items() if times != self.regraded.get(number)}
        self.is_read, self.problem = True, None
        self.batches, self.regraded, self.going = read.batches, read.regraded, read.going
        self._gradings = {
            number: known
            for number, known in self._gradings.items()
            if number not in changed and number in self.regraded
        }
        self.name_cells = max((cell_len(called(batch)) for batch in self.batches), default=0)
        self._texts.clear()
        self._trends = None
        there = {batch.number for batch in self.batches}
        self.marked = tuple(number for number in self.marked if number in there)
        self._rebuild()
        if newest:
            self.move_to(0)

    def renew(self, batches: Sequence[BatchRow], going: frozenset[int]) -> None:
        """Show those batches that go on as they are now."""
        fresh = {batch.number: batch for batch in batches}
        self.going = going
        self.batches = tuple(fresh.get(batch.number, batch) for batch in self.batches)
        self.rows = [fresh.get(batch.number, batch) for batch in self.rows]
        if self._trends is not None:
            for key, rates in trends_of(batches).items():
                others = [each for each in self._trends.get(key, ()) if each[0] not in fresh]
                self._trends[key] = sorted([*others, *rates])

    def fail(self, problem: str) -> None:
        """The history could not be read: what was read before stays."""
        self.is_read, self.problem = True, problem

    # Moving and choosing

    def show_forks(self, shown: bool) -> None:
        """Show batches that are forks of a run, or hide them."""
        self.shows_forks = shown
        self._rebuild()

    def refusals(self) -> dict[str, str]:
        """Why what can be done to a batch cannot be done to the one under the cursor, by the ids of actions."""
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
            refused["history.go_on"] = "a fork is not made again: k forks the run anew"
            refused["history.mark"] = "a fork of one run speaks for no case: it is compared with no batch"
        elif not batch.missing:
            refused["history.go_on"] = "this batch is complete; nothing to resume"
        if not batch.graded:
            refused["history.regrade"] = "no run of it was graded"
        if not self.gradings(batch):
            refused["history.grading"] = "it was graded only when it ran; G grades it again"
        return refused

    # Gradings

    def wants_gradings(self, batch: BatchRow) -> bool:
        """Whether a batch was graded again and it is not known yet how."""
        return batch.damage is None and batch.number in self.regraded and batch.number not in self._gradings

    def take_gradings(self, number: int, read: Sequence[tuple[Regrade, Sequence[RunRow]]]) -> None:
        """How a batch was graded since it ran."""
        batch = self.at(number)
        if batch is not None:
            self._gradings[number] = tuple((grading, parts_of(batch, runs)) for grading, runs in read)

    def gradings(self, batch: BatchRow) -> tuple[tuple[Regrade, tuple[BatchPart, ...]], ...]:
        """How it was graded since it ran, as far as that was read, with the counts that it came to."""
        return self._gradings.get(batch.number, ())

    def grading(self, batch: BatchRow) -> Regrade | None:
        """The grading that is looked at, `None` for the grades that the runs were given when they ran."""
        known = self.gradings(batch)
        chosen = self._chosen.get(batch.number, 0)
        return known[chosen - 1][0] if 0 < chosen <= len(known) else None

    def other_grading(self) -> bool:
        """Look at the next grading of the batch under the cursor, after the last one at the grades it was first given;
        whether there is another one."""
        batch = self.selected
        known = self.gradings(batch) if batch is not None else ()
        if batch is None or not known:
            return False
        self._chosen[batch.number] = (self._chosen.get(batch.number, 0) + 1) % (len(known) + 1)
        return True

    def look_at_grading(self, number: int, which: int) -> None:
        """Look at a grading of a batch, counted from 1, once it is read."""
        self._chosen[number] = which

    def parts(self, batch: BatchRow) -> tuple[BatchPart, ...]:
        """The counts of a batch by the grading that is looked at."""
        wanted = self.grading(batch)
        return next((parts for grading, parts in self.gradings(batch) if grading is wanted), batch.parts)

    # Trends

    def trend(self, batch: BatchRow, part: BatchPart) -> list[float]:
        """The pass rates of a suite with a model in the latest whole batches up to this one, the oldest first, as they
        were graded when they ran."""
        if self._trends is None:
            self._trends = trends_of(reversed(self.batches))
        known = self._trends.get((part.suite.key, part.model), [])
        return [rate for number, rate in known if number <= batch.number][-TREND_MAX:]

    def _key(self, row: BatchRow) -> int:
        return row.number

    def _id(self, row: BatchRow) -> int:
        return row.number

    def _in_order(self) -> Sequence[BatchRow]:
        return self.batches[::-1]

    def _found(self) -> list[BatchRow]:
        """The filter looks for words in number, name, date, suites and models."""
        return [
            batch
            for batch in self.batches
            if (self.shows_forks or batch.kind != "fork") and self._fits(batch.number, partial(_text_of, batch))
        ]


def _text_of(batch: BatchRow) -> str:
    suites = " ".join(f"{suite.name} {suite.path}" for suite in batch.suites)
    return f"#{batch.number} {batch.name or ''} {local_time(batch.started_at)} {suites} {' '.join(batch.models)}"


def parts_of(batch: BatchRow, runs: Sequence[RunRow]) -> tuple[BatchPart, ...]:
    """The parts of a batch as its runs came out by some grading."""
    counts: dict[tuple[SuiteRef, str], dict[str, int]] = {}
    for run in runs:
        if run.figures is not None:
            counted = counts.setdefault((run.suite, run.model), dict.fromkeys(COUNTED, 0))
            counted[run.figures.status] += 1
    return tuple(
        BatchPart(
            part.suite,
            part.model,
            part.planned,
            part.cases,
            {status: counts.get((part.suite, part.model), {}).get(status, 0) for status in COUNTED},
        )
        for part in batch.parts
    )


def figures_in(runs: Sequence[RunRow]) -> list[RunSummary]:
    """The figures of those runs that are over."""
    return [run.figures for run in runs if run.figures is not None]
