"""The runs of a stored batch for a report, and those of a large one that goes on: their figures in columns, all else
read from the history when it is asked for."""

from __future__ import annotations

import re
import threading
from array import array
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.analysis.early_stop import stored_watch
from workbench.config.secrets import Secrets
from workbench.engine.recordings import result_of_recording
from workbench.evaluation.plan import FinishedRun, LazyRuns
from workbench.evaluation.report import Report
from workbench.grading.grade import RunResult
from workbench.grading.lazy import Codes, Mapped
from workbench.grading.packed import FACTS, KEPT, LazyResult
from workbench.grading.run_summary import is_cost_limited
from workbench.grading.status import Status
from workbench.history.database import Say
from workbench.history.history import History
from workbench.history.records import BatchRow, DamagedError, HistoryError, Regrade, RunRow
from workbench.history.writer import BatchHandle
from workbench.show.views.baseline import AgainstBaseline
from workbench.show.views.batch_list import called
from workbench.show.views.runs_report import MissingRuns
from workbench.suite.model import Case, GraderName
from workbench.suite.suite_file import SuiteFile, lines_of, parse_suite
from workbench.trajectory.events import Usage
from workbench.trajectory.recording import Recording

_NOTHING = float("nan")
"""What stands for `None` among numbers."""
_NUMBERED = re.compile(r"run-(0|[1-9][0-9]{0,17})")
"""The ids that this program gives runs."""

_NUMBERS = ("score", "cost_usd", "latency_ms", "loop_ms", "first_token_ms")
_ALONE = ("case_id", "case_name", "error", "reason", "metrics")
"""Of these there may be many different ones."""
_APART = ("run_id", "usage")
_TOGETHER = tuple(name for name in (*KEPT, *FACTS) if name not in (*_NUMBERS, *_ALONE, *_APART))
"""All other figures: there are few combinations of them."""
_TOKENS = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens")
"""The fields of `Usage`, in their order."""
_MAX_TOKENS = (1 << 63) - 1


class StoredResult(LazyResult):
    """A result in `Columns`."""

    __slots__ = ("_index", "_runs")

    _index: int
    _runs: Columns

    @property
    def whole(self) -> RunResult:
        """The result as it is stored.

        The last few stay in memory for a while."""
        return self._runs.whole(self._index)


class Columns:
    """The figures of finished runs, some hundred bytes for each; `file` is the history that has all else.

    To be used on any thread."""

    def __init__(self, file: Path) -> None:
        self._file, self._opened = file, threading.local()
        self._together: Codes[Hashable] = Codes()
        self._alone: tuple[Codes[Hashable], ...] = tuple(Codes() for _ in _ALONE)
        self._numbers = tuple(array("d") for _ in _NUMBERS)
        self._tokens = tuple(array("q") for _ in _TOKENS)
        self._odd_usages: dict[int, Usage] = {}
        """Those that columns cannot hold: a provider's counts may be nonsense."""
        self._run_numbers = array("q")
        self._run_ids: dict[int, str] = {}
        """Those that are no numbers."""
        self._looked_at: deque[tuple[int, RunResult]] = deque(maxlen=4)

    def add(self, result: RunResult) -> None:
        """Add the figures of a run."""
        self._together.append(tuple([getattr(result, name) for name in _TOGETHER]))
        for codes, name in zip(self._alone, _ALONE, strict=True):
            codes.append(getattr(result, name))
        for column, name in zip(self._numbers, _NUMBERS, strict=True):
            value = getattr(result, name)
            column.append(_NOTHING if value is None else value)
        usage = result.usage
        counts = (-1,) * len(_TOKENS) if usage is None else tuple(getattr(usage, name) for name in _TOKENS)
        if usage is not None and not all(0 <= count <= _MAX_TOKENS for count in counts):
            self._odd_usages[len(self)] = usage
            counts = (-1,) * len(_TOKENS)
        for tokens, count in zip(self._tokens, counts, strict=True):
            tokens.append(count)
        numbered = _NUMBERED.fullmatch(result.run_id)
        if numbered is None:
            self._run_ids[len(self)] = result.run_id
        self._run_numbers.append(-1 if numbered is None else int(numbered[1]))

    def __len__(self) -> int:
        return len(self._run_numbers)

    def result(self, index: int) -> RunResult:
        """Return the result of a run, by its index."""
        made: StoredResult = object.__new__(StoredResult)
        object.__setattr__(made, "_runs", self)
        object.__setattr__(made, "_index", index)
        return made

    @property
    def results(self) -> Sequence[RunResult]:
        """The results of all runs."""
        return Mapped(range(len(self)), self.result)

    def whole(self, index: int) -> RunResult:
        """Return the result of a run with all that is stored.

        Raises HistoryError, and RecordingError."""
        for known, result in tuple(self._looked_at):
            if known == index:
                return result
        history: History | None = getattr(self._opened, "history", None)
        if history is None:
            history = self._opened.history = History(self._file)
        result = self._read(history, index)
        self._looked_at.append((index, result))
        return result

    def _read(self, history: History, index: int) -> RunResult:
        raise NotImplementedError

    # The figures of a run, by its index.

    def _of_all(self, position: int, index: int) -> Any:
        values: Any = self._together[index]
        return values[position]

    def _rare(self, position: int, index: int) -> Any:
        return self._alone[position][index]

    def _number(self, position: int, index: int) -> float | None:
        value = self._numbers[position][index]
        return None if value != value else value

    def _run_id(self, _: int, index: int) -> str:
        number = self._run_numbers[index]
        return self._run_ids[index] if number < 0 else f"run-{number}"

    def _usage(self, _: int, index: int) -> Usage | None:
        counts = [tokens[index] for tokens in self._tokens]
        return self._odd_usages.get(index) if counts[0] < 0 else Usage(*counts)


class StoredRuns(Columns, LazyRuns):
    """The finished runs of a batch in the order of its plan, each with the case that graded it, where its suite can
    still be read."""

    def __init__(
        self,
        history: History,
        rows: Sequence[RunRow],
        grading: Regrade | None,
        cases: Mapping[str, Mapping[str, Case]],
        damaged: Say,
    ) -> None:
        """Read each run once.

        What is damaged is left out, and `damaged` is told. `cases` are those of suites, by their paths and ids. Raises
        HistoryError, and RecordingError for a result that cannot be read."""
        super().__init__(history.file)
        self._rows, self._grading, self._cases = rows, grading, cases
        self._places = array("L")
        for place, row in enumerate(rows):
            if row.figures is not None:
                try:
                    result = result_of_row(row, history.recording(row, grading))
                except DamagedError as error:
                    damaged(str(error))
                else:
                    self._places.append(place)
                    self.add(result)

    def at(self, index: int) -> FinishedRun:
        result = self.result(index)
        return FinishedRun(self._rows[self._places[index]].place, self.case_of(result), result)

    def case_of(self, result: RunResult) -> Case | None:
        return self._cases.get(result.suite, {}).get(result.case_id)

    def _read(self, history: History, index: int) -> RunResult:
        row = self._rows[self._places[index]]
        return result_of_row(row, history.recording(row, self._grading))


class LetGo(Columns):
    """Runs of a batch that goes on, of which the history that is written has all but the figures: of a run that it has
    not, everything is here."""

    def __init__(self, file: Path, handle: BatchHandle) -> None:
        super().__init__(file)
        self._handle = handle
        self._here: dict[int, RunResult] = {}
        self._unwritten: deque[int] = deque()
        """Their indices."""

    def take(self, result: RunResult) -> None:
        """Add a run that is over.

        Of two others it is found out whether they are written."""
        index = len(self)
        self.add(result)
        self._here[index] = result
        self._unwritten.append(index)
        for _ in range(min(2, len(self._unwritten))):
            first = self._unwritten.popleft()
            if self._handle.has(self._here[first].run_id):
                del self._here[first]
            else:
                self._unwritten.append(first)

    @property
    def here(self) -> int:
        """How many runs are here with everything."""
        return len(self._here)

    def whole(self, index: int) -> RunResult:
        result = self._here.get(index)
        return super().whole(index) if result is None else result.whole if isinstance(result, LazyResult) else result

    def _read(self, history: History, index: int) -> RunResult:
        number, place = self._handle.number, self._handle.places[self._run_id(0, index)]
        row = history.run_at(number, place) if number is not None else None
        if row is None or row.figures is None:
            raise HistoryError(f"the history {self._file} no longer has run {place + 1} of the batch that was recorded")
        # What was planned is compared with the plan, in which nothing is redacted.
        kept = {name: getattr(self.result(index), name) for name in KEPT}
        return replace(result_of_row(row, history.recording(row)), **kept)


def _known(find: Any, position: int) -> property:
    return property(lambda self: find(self._runs, position, self._index))


for _find, _names in (
    (Columns._of_all, _TOGETHER),
    (Columns._rare, _ALONE),
    (Columns._number, _NUMBERS),
    (Columns._run_id, ("run_id",)),
    (Columns._usage, ("usage",)),
):
    for _position, _name in enumerate(_names):
        setattr(StoredResult, _name, _known(_find, _position))


def result_of_row(run: RunRow, recording: Recording) -> RunResult:
    """Return what a finished run of the history came to.

    Raises RecordingError."""
    assert run.figures is not None
    result = result_of_recording(recording)
    return replace(
        result, suite=str(run.suite.file), cost_usd=run.figures.cost_usd, grading=run.figures.grading, repeat=run.repeat
    )


# The report on a batch of the history, as `workbench run` would have made it.


def stored_report(
    history: History,
    batch: BatchRow,
    runs: Sequence[RunRow],
    grading: Regrade | None,
    secrets: Secrets,
    damaged: Say,
) -> Report:
    """Return the report on those of all `runs` of a batch that are finished, by one of its gradings.

    Each is read once for its figures, and again when more of it is wanted. Lines are those of the suites as they were.
    What is damaged is left out, and `damaged` is told."""
    files = _suites(history, batch, damaged)
    suites = {path: file.suite for path, file in files.items() if file.suite is not None}
    cases = {path: {case.id: case for case in suite.cases} for path, suite in suites.items()}
    return Report(
        runs=StoredRuns(history, runs, grading, cases, damaged),
        suites=suites,
        started_at=batch.started_at,
        min_score=batch.min_score,
        shard=batch.shard,
        interrupted=batch.missing > sum(run.figures is not None and is_cost_limited(run.figures) for run in runs),
        missing=missing_of(runs),
        batch=batch.number,
        watch=stored_watch(batch, runs, {path: suite.gate for path, suite in suites.items()}),
        program_version=batch.program,
        line_of=lines_of(files.values()),
        secrets=secrets,
    )


def missing_of(runs: Sequence[RunRow]) -> tuple[MissingRuns, ...]:
    """Return the cases of which runs were never finished."""
    cases: dict[tuple[str, str, str, str], list[int]] = {}
    for run in runs:
        if not run.is_fork:
            counts = cases.setdefault((str(run.suite.file), run.case_id, run.case_name, run.model), [0, 0])
            counts[0] += run.figures is None
            counts[1] += 1
    return tuple(MissingRuns(*case, *counts) for case, counts in cases.items() if counts[0])


def as_graded_by(result: RunResult, by: GraderName) -> RunResult:
    """Return a stored run as if another grader had decided it, by the grade that is stored with it.

    Without one that applies, a run that was graded is not. The options of grading stay."""
    if not result.status.graded or result.grading.by == by:
        return result
    named = next((grade for grade in result.grades if grade.grader == by), None)
    grading = replace(result.grading, by=by)
    if named is None or named.status is None or not named.status.graded:
        why = named.reason if named is not None else f"no grade of {by} is stored"
        return replace(result, status=Status.NOT_GRADED, grades=(), steps=(), error=why, grading=grading)
    others = [grade for grade in result.grades if grade.grader != by]
    return replace(result, status=named.status, grades=(named, *others), grading=grading)


def report_beside(earlier: Report, later: Report, against: AgainstBaseline, same: Mapping[str, str]) -> Report:
    """Return the report on a batch together with the runs of an earlier one, under models named after it.

    `same` has the path of each suite in the later batch by its path in the earlier one."""
    name = called(against.batch)
    before = tuple(
        replace(
            run,
            result=replace(
                run.result,
                run_id=f"{name} {run.result.run_id}",
                suite=same.get(run.result.suite, run.result.suite),
                model=f"{run.result.model} ({name})",
            ),
        )
        for run in earlier.runs
    )
    suites = {same.get(path, path): suite for path, suite in earlier.suites.items()}
    return replace(later, runs=(*before, *later.runs), suites={**suites, **later.suites}, against=against)


def _suites(history: History, batch: BatchRow, damaged: Say) -> Mapping[str, SuiteFile]:
    """Return the suites of a batch as they were, by their paths; without those that can no longer be read, for a secret
    that was taken out of them, or for damage, which `damaged` is told."""
    files = []
    for suite in batch.suites:
        try:
            files.append(parse_suite(history.suite_text(suite), suite.file))
        except DamagedError as error:
            damaged(str(error))
    return {str(file.path): file for file in files}
