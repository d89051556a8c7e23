"""The sources of the comparison: live runs of this program, or a batch of the history."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from workbench.analysis.comparison import Cell, CellKey, cell_of, cells_of
from workbench.analysis.early_stop import stored_early_stopping
from workbench.analysis.early_stop_state import PairEarlyStop
from workbench.authoring.case_list import CaseKey
from workbench.authoring.open_suite import OpenSuite
from workbench.dataclasses import dataclass
from workbench.engine.plan import model_and_variant_names
from workbench.grading.run_summary import RunSummary, finished_summaries
from workbench.grading.status import Status
from workbench.history.records import RunRow
from workbench.suite.grading_model import Gate
from workbench.suite.settings import models_of
from workbench.suite.suite_file import SuiteFile
from workbench.suite.variants import NO_VARIANTS, Variants, model_of, variant_name_of
from workbench.tui.kit.actions import unless_read_only
from workbench.tui.run_book.book import RunBook
from workbench.tui.run_book.record import RunRecord
from workbench.tui.run_book.stored_batches import LoadedBatch
from workbench.tui.run_book.stored_runs import read_recording, record_of

if TYPE_CHECKING:
    from workbench.tui.comparison.watched_batch import WatchedBatch


Stage = Literal["not run", "to come", "waiting", "running", "done"]
"""The stage of a cell. In a stored batch, every unfinished run is `to come`, because the history stores only finished
runs."""

UNFINISHED: frozenset[Stage] = frozenset({"to come", "waiting", "running"})
"""The stages of unfinished cells."""


@dataclass(frozen=True, slots=True)
class ComparedCase:
    """A case as a row of the comparison. `suite` is the suite's key, as in `RunSummary`."""

    suite: str
    suite_name: str
    case_id: str
    name: str
    tags: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """The suite and id of the case."""
        return self.suite, self.case_id

    def on(self, model: str) -> CellKey:
        """Return the key of this case's cell in the column of a model."""
        return self.suite, self.case_id, model


@dataclass(frozen=True, slots=True)
class CellState:
    """The state of one cell: the runs of a case with a model.

    `planned` is the number of runs, and `cell` has those that have finished. If `before` is set, no run has finished,
    and `cell` has the runs of the previous batch instead. `wait_kind` is set if a run waits for the user. `wait_reason`
    says why a run delays its next request."""

    stage: Stage
    cell: Cell | None = None
    planned: int = 0
    wait_kind: Literal["asks", "held"] | None = None
    before: bool = False
    wait_reason: str | None = None

    @property
    def done(self) -> int:
        """The number of finished runs."""
        if self.cell is None or self.before:
            return 0
        return len(self.cell.runs)

    @property
    def is_in_error(self) -> bool:
        """Whether all runs ended, and at least one ended in an error."""
        return self.stage == "done" and self._any_run(Status.ERROR)

    @property
    def is_missing(self) -> bool:
        """Whether any run never began or was stopped."""
        return self.stage == "not run" or (self.stage == "done" and self._any_run(Status.STOPPED))

    def _any_run(self, status: Status) -> bool:
        return self.cell is not None and any(run.status == status for run in self.cell.runs)


NOT_RUN = CellState("not run")


class Source(Protocol):
    """The data of a comparison: its rows, its columns and the states of its cells."""

    live: bool
    """Whether cells are live runs. Live runs can be started and watched."""

    def suites(self) -> Sequence[object]:
        """Return objects that show whether the rows changed: changed rows come with at least one new object."""

    def begun(self) -> Sequence[CaseKey]:
        """Return the cases whose runs were started, read or regraded since the last call."""

    def cases(self) -> Sequence[ComparedCase]:
        """Return the rows, grouped by suite."""

    def models(self) -> Sequence[str]:
        """Return the models, one for each column."""

    def planned(self, case: ComparedCase) -> Sequence[str]:
        """Return the models that a case should run on."""

    def cell_states(self, case: ComparedCase) -> Mapping[str, CellState]:
        """Return the state of a case on each model with existing or planned runs."""

    def gates(self) -> Mapping[str, Gate]:
        """Return the gate of each suite."""

    def watched(self) -> Sequence[PairEarlyStop]:
        """Return the pairs of models that a batch with early stopping compares.

        Other pairs of the batch cannot be tested."""

    def why_nothing_runs(self) -> str | None:
        """Return why no case can run and what to do, `None` if cases can run."""

    def active(self, key: CellKey) -> Sequence[int]:
        """Return the repeats of a cell whose runs are active and can be displayed."""

    async def open_run(self, key: CellKey, repeat: int | None = None) -> RunRecord:
        """Return a run of a cell. Without `repeat`, return the run that decides the status.

        Raises LookupError if there is no run, HistoryError or RecordingError if the run cannot be read."""


class LiveRuns:
    """A source of the latest runs of this program and of opened recordings.

    `suites` returns the suites to compare, `chosen` the selected models, `variants` the variants to run. `includes`
    returns whether a case becomes a row."""

    live = True

    def __init__(
        self,
        book: RunBook,
        suites: Callable[[], Sequence[OpenSuite]],
        chosen: Callable[[], Sequence[str]],
        includes: Callable[[ComparedCase], bool] = lambda _: True,
        variants: Callable[[], Variants] = lambda: NO_VARIANTS,
    ) -> None:
        self._book = book
        self._variants = variants
        self._suites = suites
        self._chosen = chosen
        self._includes = includes
        self._named: dict[tuple[str, str], Sequence[str]] = {}
        """The models named by the suite of each case, by suite and case id."""
        self._named_in: Sequence[SuiteFile] = ()
        self._files: dict[str, SuiteFile] = {}
        self._columns: tuple[str, ...] = ()
        self._seen_begun = 0

    def suites(self) -> Sequence[SuiteFile]:
        return [suite.file for suite in self._suites()]

    def begun(self) -> Sequence[CaseKey]:
        found, self._seen_begun = self._book.by_model.changed_since(self._seen_begun)
        return found

    def cases(self) -> Sequence[ComparedCase]:
        found: list[ComparedCase] = []
        for suite in self._suites():
            name = suite.file.path.name
            tags: tuple[str, ...] = ()
            if suite.file.suite is not None:
                name, tags = suite.file.suite.name, suite.file.suite.tags
            # While the user types an id, two cases may have the same id. The last case becomes the row.
            for outline in {outline.id: outline for outline in suite.run_cases}.values():
                case = ComparedCase(str(suite.path), name, outline.id, outline.name, (*tags, *outline.tags))
                if self._includes(case):
                    found.append(case)
        return found

    def models(self) -> Sequence[str]:
        files = self.suites()
        if not same_objects(files, self._named_in):
            self._read_named(files)
        chosen = self._chosen()
        names: list[str] = []
        for model in chosen or self._columns:
            for file in files:
                names += self._as_variants(file, [model])
        for file in files:
            for model in self._book.by_model.models(file.path):
                # If models are selected, unselected models are shown only if they are variants of a selected model.
                if not chosen or (variant_name_of(model) is not None and model_of(model) in chosen):
                    names.append(model)
        return tuple(dict.fromkeys(names))

    def _read_named(self, files: Sequence[SuiteFile]) -> None:
        self._named_in = files
        self._files = {str(file.path): file for file in files}
        self._named = {}
        for path, file in self._files.items():
            if file.suite is not None:
                for case in file.suite.cases:
                    self._named[path, case.id] = models_of(file.suite, case)
        self._columns = tuple(dict.fromkeys(chain.from_iterable(self._named.values())))

    def _as_variants(self, file: SuiteFile, models: Sequence[str]) -> Sequence[str]:
        variants = self._variants()
        if variants == NO_VARIANTS or file.suite is None:
            return models
        return model_and_variant_names(file.suite, models, variants)

    def planned(self, case: ComparedCase) -> Sequence[str]:
        models = self._chosen() or self._named.get((case.suite, case.case_id), ())
        file = self._files.get(case.suite)
        if file is None:
            return models
        return self._as_variants(file, models)

    def gates(self) -> Mapping[str, Gate]:
        return {str(file.path): file.suite.gate for file in self.suites() if file.suite is not None}

    def watched(self) -> Sequence[PairEarlyStop]:
        return ()

    def cell_states(self, case: ComparedCase) -> Mapping[str, CellState]:
        key = Path(case.suite), case.case_id
        runs, before = self._book.by_model.of(key), self._book.by_model.before(key)
        return {model: _cell_state(of_model, before.get(model, ())) for model, of_model in runs.items()}

    def why_nothing_runs(self) -> str | None:
        # Suites without cases only matter if no suite has cases.
        suites = [suite for suite in self._suites() if suite.cases] or self._suites()
        if suites and all(suite.file.suite is None for suite in suites):
            text, edit = "the suites cannot run yet: they have errors", "; Esc, then e edits them"
            if len(suites) == 1:
                text, edit = "the suite cannot run yet: it has errors", "; Esc, then e edits it"
            if all(suite.why_not_editable is not None for suite in suites):
                return text
            return text + unless_read_only(edit)
        if not any(suite.cases for suite in suites):
            return f"there is no case here yet{unless_read_only('; Esc, then n makes one')}"
        return None

    def records(self, key: CellKey) -> Sequence[RunRecord]:
        """Return the runs of a cell, by repeat."""
        suite, case_id, model = key
        return self._book.by_model.of((Path(suite), case_id)).get(model, ())

    def active(self, key: CellKey) -> Sequence[int]:
        return [run.repeat for run in self.records(key) if run.stage == "running"]

    async def open_run(self, key: CellKey, repeat: int | None = None) -> RunRecord:
        runs = self.records(key)
        over = list(finished_summaries(runs))
        if repeat is None and over and len(over) == len(runs):
            repeat = deciding_repeat(over)
        for run in runs:
            if run.repeat == repeat:
                return run
        unfinished = [run for run in runs if run.figures is None]
        if not unfinished:
            raise LookupError("this case has not run on this model")
        # An active run has more to show than a run that waits to begin.
        return min(unfinished, key=lambda run: run.stage == "waiting")


class StoredRuns:
    """A source of the runs of one batch of the history.

    `read_run` reads a run of the batch and must be called in a thread. `under_way` returns the record of a run that
    another process executes, `None` for any other run."""

    live = False

    def __init__(
        self,
        read: LoadedBatch,
        read_run: Callable[[RunRow], RunRecord],
        under_way: Callable[[RunRow], RunRecord | None] = lambda _row: None,
    ) -> None:
        self.batch = read.batch
        self.read = read
        self._gates = read.gates
        self.is_active = read.is_active
        """Whether runs of the batch were active, in this program or another."""
        self._read_run = read_run
        self._under_way = under_way
        self._runs = read.runs
        self._rows: dict[CellKey, dict[int, RunRow]] = {}
        self._cases: dict[tuple[str, str], ComparedCase] = {}
        for run in read.runs:
            # A fork does not count for the result of its case.
            if run.is_fork:
                continue
            case = run.suite.key, run.case_id
            self._rows.setdefault((*case, run.model), {})[run.repeat] = run
            if case not in self._cases:
                self._cases[case] = ComparedCase(case[0], run.suite.name, run.case_id, run.case_name)
        self._models = tuple(dict.fromkeys(model for _, _, model in self._rows))
        self._cells = cells_of(finished_summaries(read.runs))

    def report_stored(self, watched: WatchedBatch) -> None:
        """Report the stored runs to `watched`, which then drops its own records of them."""
        watched.stored(self._runs)

    def suites(self) -> Sequence[object]:
        return ()

    def begun(self) -> Sequence[CaseKey]:
        return ()

    def cases(self) -> Sequence[ComparedCase]:
        order = list(dict.fromkeys(case.suite for case in self._cases.values()))
        return sorted(self._cases.values(), key=lambda case: order.index(case.suite))

    def models(self) -> Sequence[str]:
        return self._models

    def planned(self, case: ComparedCase) -> Sequence[str]:
        return ()

    def gates(self) -> Mapping[str, Gate]:
        return self._gates

    def watched(self) -> Sequence[PairEarlyStop]:
        # Early stopping decides by all runs of the batch, so its decisions cannot be reproduced from a part of them.
        if not self.read.is_whole:
            return ()
        watch = stored_early_stopping(self.batch, self._runs, {})
        if watch is None:
            return ()
        return watch.pairs

    def why_nothing_runs(self) -> str | None:
        return None

    def cell_states(self, case: ComparedCase) -> Mapping[str, CellState]:
        cell_states: dict[str, CellState] = {}
        for model in self._models:
            if (key := case.on(model)) in self._rows:
                cell_states[model] = self._cell_state(key)
        return cell_states

    def _cell_state(self, key: CellKey) -> CellState:
        rows, cell = self._rows[key], self._cells.get(key)
        stage: Stage = "not run"
        if cell is not None:
            stage = "done"
        if not self.is_active or all(run.figures is not None for run in rows.values()):
            return CellState(stage, cell, len(rows))
        records = self._observed(key).values()
        stage = "to come"
        if records:
            stage = "running"
        return CellState(stage, cell, len(rows), wait_reason=_soonest_wait(records))

    def _observed(self, key: CellKey) -> dict[int, RunRecord]:
        records: dict[int, RunRecord] = {}
        for repeat, row in self._rows.get(key, {}).items():
            if (record := self._under_way(row)) is not None:
                records[repeat] = record
        return records

    def active(self, key: CellKey) -> Sequence[int]:
        return [repeat for repeat, record in self._observed(key).items() if record.stage == "running"]

    async def open_run(self, key: CellKey, repeat: int | None = None) -> RunRecord:
        cell, rows, observed = self._cells.get(key), self._rows.get(key, {}), self._observed(key)
        if repeat is None and cell is not None:
            repeat = deciding_repeat(cell.runs)
        if repeat is None and observed:
            repeat = next(iter(observed))
        if repeat in observed:
            return observed[repeat]
        if repeat is None or repeat not in rows or rows[repeat].figures is None:
            raise LookupError("this run never finished, so nothing of it was stored")
        return await asyncio.to_thread(self._read_run, rows[repeat])


def batch_source(file: Path, read: LoadedBatch, watched: WatchedBatch | None = None) -> StoredRuns:
    """Return a source of the runs of a batch of the history in `file`.

    `watched` observes a batch of another process."""

    def read_run(run: RunRow) -> RunRecord:
        return record_of(read_recording(file, run, read.grading))

    if watched is None:
        return StoredRuns(read, read_run)
    return StoredRuns(read, read_run, watched.active_record)


def changed_cases(before: StoredRuns, after: StoredRuns) -> list[tuple[str, str]] | None:
    """Return the cases (suite and id) whose cells differ between two readings of a batch.

    Returns `None` if rows or columns differ."""
    cases = before.cases()
    if cases != after.cases() or before.models() != after.models():
        return None
    return [case.key for case in cases if before.cell_states(case) != after.cell_states(case)]


def same_objects(some: Sequence[object], others: Sequence[object]) -> bool:
    """Return whether two sequences contain the identical objects in the same order."""
    return len(some) == len(others) and all(one is other for one, other in zip(some, others, strict=True))


def _cell_state(runs: Sequence[RunRecord], before: Sequence[RunRecord]) -> CellState:
    over = list(finished_summaries(runs))
    cell: Cell | None = None
    if over:
        cell = cell_of(over)
    if len(over) == len(runs):
        return CellState("done", cell, len(runs))
    waits: Literal["asks", "held"] | None = None
    stage: Stage = "waiting"
    if over:
        stage = "running"
    for run in runs:
        # A question to the user is more urgent than a held run.
        if run.is_asking:
            waits = "asks"
        elif run.paused is not None and waits is None:
            waits = "held"
        if run.displayed_stage == "running":
            stage = "running"
    later = _soonest_wait(runs)
    # The cell keeps its last result until a run ends with a new result.
    last = list(finished_summaries(before))
    if last and all(run.status == Status.STOPPED for run in over):
        return CellState(stage, cell_of(last), len(runs), waits, before=True, wait_reason=later)
    return CellState(stage, cell, len(runs), waits, wait_reason=later)


def _soonest_wait(runs: Iterable[RunRecord]) -> str | None:
    """Return the reason of the shortest delay among runs that delay their next request, `None` if no run does."""
    waits = [run.wait for run in runs if run.wait is not None]
    if not waits:
        return None
    return min(waits)[1]


def deciding_repeat(runs: Sequence[RunSummary]) -> int:
    """Return the repeat shown for a cell: the last repeat whose status is the status of the cell."""
    status = cell_of(runs).status
    deciding = [run for run in runs if run.status == status]
    return max(run.repeat for run in deciding or runs)
