"""The runs of a stored batch, or of a large running batch, for a report.

The figures of all runs are in memory, in columns. Everything else is read from the history when needed."""

from __future__ import annotations

import math
import re
import threading
from array import array
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

from workbench.analysis.early_stop import stored_early_stopping
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.engine.recordings import result_of_recording
from workbench.evaluation.plan import FinishedRun, LazyRuns, gates_of
from workbench.evaluation.report import Report
from workbench.grading.grade import NO_JUDGE_USAGE, Grade, RunResult
from workbench.grading.lazy_sequences import CodedColumn, MappedSequence
from workbench.grading.packed import STORED_PROPERTIES, UNPACKED_FIELDS, LazyResult
from workbench.grading.result_json import Outcome
from workbench.grading.run_facts import NO_USER, ReportFacts, RunFacts
from workbench.grading.run_summary import RunSummary, is_cost_limited
from workbench.grading.status import Status
from workbench.history.database import ReportProblem
from workbench.history.history import History
from workbench.history.packing import RUNS_IN_BLOCK
from workbench.history.records import BatchRow, DamagedError, HistoryError, Regrade, RunRow, SuiteRef
from workbench.history.writer import BatchHandle
from workbench.show.views.baseline import AgainstBaseline
from workbench.show.views.batch_list import batch_name
from workbench.show.views.runs_report import MissingRuns
from workbench.suite.grading_model import GraderName
from workbench.suite.model import Case
from workbench.suite.suite_file import SuiteFile, cases_by_id, lines_of, lines_of_blocks, parse_suite, suites_of
from workbench.trajectory.events import Usage
from workbench.trajectory.recording import Recording
from workbench.trajectory.trajectory import Trajectory

_NOTHING = float("nan")
"""Represents `None`, because a column of numbers cannot hold it."""
_NUMBERED = re.compile(r"run-(0|[1-9][0-9]{0,17})")
"""The run ids of this program."""

_NUMBERS = ("score", "cost_usd", "latency_ms", "loop_ms", "first_token_ms")
_ALONE = ("case_id", "case_name", "error", "reason", "metrics")
"""Fields with many distinct values."""
_APART = ("run_id", "usage")
_FIGURES = (*UNPACKED_FIELDS, *STORED_PROPERTIES)
_TOGETHER = tuple(name for name in _FIGURES if name not in (*_NUMBERS, *_ALONE, *_APART))
"""All other figures. They have few combinations, so each combination is stored as one code."""
_TOKENS = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens")
"""The fields of `Usage` in order."""
_MAX_TOKENS = (1 << 63) - 1


class StoredResult(LazyResult):
    """The result of a stored run. Its figures come from `Columns`, and other fields from the history."""

    __slots__ = ("_index", "_runs")

    _index: int
    _runs: Columns

    @property
    def whole(self) -> RunResult:
        """The whole result, read from the history. The last few results stay in memory."""
        return self._runs.whole(self._index)

    @property
    def facts(self) -> RunFacts | None:
        return self._runs.facts(self._index)


class Columns:
    """The figures of finished runs, in columns.

    A run takes some hundred bytes of memory. Everything else about it is in the history `file`. Every method may be
    called from any thread."""

    def __init__(self, file: Path) -> None:
        self._file, self._opened = file, threading.local()
        self._together: CodedColumn[Hashable] = CodedColumn()
        self._alone: tuple[CodedColumn[Hashable], ...] = tuple(CodedColumn() for _ in _ALONE)
        self._numbers = tuple(array("d") for _ in _NUMBERS)
        self._tokens = tuple(array("q") for _ in _TOKENS)
        self._odd_usages: dict[int, Usage] = {}
        """Usages that columns cannot hold, because a provider reported impossible counts."""
        self._run_numbers = array("q")
        self._run_ids: dict[int, str] = {}
        """The ids that do not have this program's form, by index."""
        self._recent: deque[tuple[int, RunResult]] = deque(maxlen=4)

    def add(self, result: RunResult) -> None:
        self.add_figures({name: getattr(result, name) for name in _FIGURES})

    def add_figures(self, figures: Mapping[str, Any]) -> None:
        """Add the figures of a run. The keys are fields and properties of `RunResult`."""
        self._together.append(tuple([figures[name] for name in _TOGETHER]))
        for codes, name in zip(self._alone, _ALONE, strict=True):
            codes.append(figures[name])
        for column, name in zip(self._numbers, _NUMBERS, strict=True):
            value = figures[name]
            if value is None:
                value = _NOTHING
            column.append(value)
        # A count of -1 means that the usage is missing, or that it is in `_odd_usages`.
        counts: tuple[int, ...] = (-1,) * len(_TOKENS)
        usage, run_id = figures["usage"], figures["run_id"]
        if usage is not None:
            known = tuple(getattr(usage, name) for name in _TOKENS)
            if all(0 <= count <= _MAX_TOKENS for count in known):
                counts = known
            else:
                self._odd_usages[len(self)] = usage
        for tokens, count in zip(self._tokens, counts, strict=True):
            tokens.append(count)
        # This column is filled last, because its length is taken as the number of runs.
        if numbered := _NUMBERED.fullmatch(run_id):
            self._run_numbers.append(int(numbered[1]))
        else:
            self._run_ids[len(self)] = run_id
            self._run_numbers.append(-1)

    def __len__(self) -> int:
        return len(self._run_numbers)

    def result(self, index: int) -> RunResult:
        # `__init__` would require all fields of a result, but a stored result has only these two attributes.
        made: StoredResult = object.__new__(StoredResult)
        object.__setattr__(made, "_runs", self)
        object.__setattr__(made, "_index", index)
        return made

    @property
    def results(self) -> Sequence[RunResult]:
        return MappedSequence(range(len(self)), self.result)

    def whole(self, index: int) -> RunResult:
        """Read the whole result of a run from the history.

        Raises HistoryError or RecordingError if it cannot be read."""
        for known, result in tuple(self._recent):
            if known == index:
                return result
        result = self._read(self._history(), index)
        self._recent.append((index, result))
        return result

    def facts(self, index: int) -> RunFacts | None:
        """Return what the history stores about a run for a row of a table; `None` if it stores nothing."""
        return None

    def _history(self) -> History:
        # Each thread opens the history for itself: an SQLite connection belongs to the thread that opened it.
        history: History | None = getattr(self._opened, "history", None)
        if history is None:
            history = self._opened.history = History(self._file)
        return history

    def _read(self, history: History, index: int) -> RunResult:
        raise NotImplementedError

    # These methods return the figures of a run by its index.

    def _of_all(self, position: int, index: int) -> Any:
        values: Any = self._together[index]
        return values[position]

    def _rare(self, position: int, index: int) -> Any:
        return self._alone[position][index]

    def _number(self, position: int, index: int) -> float | None:
        value = self._numbers[position][index]
        if math.isnan(value):
            return None
        return value

    def _run_id(self, _: int, index: int) -> str:
        number = self._run_numbers[index]
        if number < 0:
            return self._run_ids[index]
        return f"run-{number}"

    def _usage(self, _: int, index: int) -> Usage | None:
        counts = [tokens[index] for tokens in self._tokens]
        if counts[0] < 0:
            return self._odd_usages.get(index)
        return Usage(*counts)


class StoredRuns(Columns, LazyRuns):
    """The finished runs of a stored batch in the order of its plan, with their cases if the suites can be read."""

    def __init__(
        self,
        history: History,
        rows: Sequence[RunRow],
        grading: Regrade | None,
        cases: Mapping[str, Mapping[str, Case]],
        damaged: ReportProblem,
    ) -> None:
        """Read the figures of each run.

        `damaged` is called with a message about each run that is left out. `cases` are the suites' cases, by path and
        id. Raises HistoryError, and RecordingError for a result that cannot be read."""
        super().__init__(history.file)
        self._rows, self._grading, self._cases = rows, grading, cases
        self._facts: tuple[int, list[RunFacts | None]] = (0, [])
        """The facts that were read last: the index of the first run in `_places`, and the facts of this run and the
        next ones."""
        self._places = array("L")
        """The indices of the rows whose figures are in the columns."""
        for place, (row, run_id, facts) in enumerate(_rows_with_facts(history, rows, grading, checks_runs=True)):
            if row.figures is None:
                continue
            if facts is not None and facts.report is not None:
                self._places.append(place)
                self.add_figures(_figures_of(row, row.figures, run_id, facts, facts.report))
                continue
            for _, result in _whole_results(history, (row,), grading, damaged):
                self._places.append(place)
                self.add(result)

    def at(self, index: int) -> FinishedRun:
        result = self.result(index)
        return FinishedRun(self._rows[self._places[index]].place, self.case_of(result), result)

    def case_of(self, result: RunResult) -> Case | None:
        return self._cases.get(result.suite, {}).get(result.case_id)

    def facts(self, index: int) -> RunFacts | None:
        if self._grading is not None:
            return None
        first, facts = self._facts
        if not first <= index < first + len(facts):
            # Reports read runs in order, so the facts of the next runs are read at the same time.
            first, places = index, self._places[index : index + RUNS_IN_BLOCK]
            rows = [self._rows[place] for place in places]
            facts = [of_run for _, of_run in self._history().facts(rows)]
            self._facts = first, facts
        return facts[index - first]

    def _read(self, history: History, index: int) -> RunResult:
        row = self._rows[self._places[index]]
        return result_of_row(row, *history.recording_and_outcome(row, self._grading))


@dataclass(frozen=True)
class StoredRows:
    """The finished runs of a stored batch, as rows of CSV.

    For speed, suites are not parsed, and most runs are not read as a whole. `damaged` is called with a message about
    each run or suite that cannot be read."""

    history: History
    rows: Sequence[RunRow]
    grading: Regrade | None
    secrets: Secrets
    damaged: ReportProblem

    def records(self) -> Iterator[dict[str, Any]]:
        # This import is lazy, because the module loads the models of all JSON reports.
        from workbench.show.csv_rows import record_of_row, record_of_run, texts_of_record

        lines: dict[SuiteRef, Mapping[str, int]] = {}
        finder = self.secrets.finder
        for row, _, facts in _rows_with_facts(self.history, self.rows, self.grading):
            if row.figures is None:
                continue
            if row.suite not in lines:
                lines[row.suite] = self._lines(row.suite)
            line = lines[row.suite].get(row.case_id)
            if facts is not None:
                record = record_of_row(row, facts, line)
                texts = texts_of_record(record)
                # One cell has JSON with the arguments of calls, in which a secret may be escaped. Other cells are plain
                # texts.
                if not (finder.may_contain(texts) or finder.json_may_contain(texts)):
                    yield record
                    continue
            for _, result in _whole_results(self.history, (row,), self.grading, self.damaged):
                yield record_of_run(self.secrets.redacted(result), line)

    def _lines(self, suite: SuiteRef) -> Mapping[str, int]:
        try:
            text, blocks = self.history.suite_text(suite), self.history.case_blocks(suite)
        except DamagedError as error:
            self.damaged(str(error))
            return {}
        if blocks:
            starts = [first for _, first, _ in blocks]
            return dict(zip([case for case, _, _ in blocks], lines_of_blocks(text, starts), strict=True))
        file = parse_suite(text, suite.file)
        line_of, lines = lines_of((file,)), {}
        for case in file.suite.cases if file.suite is not None else ():
            if (line := line_of(str(file.path), case.id)) is not None:
                lines[case.id] = line
        return lines


def _rows_with_facts(
    history: History, rows: Sequence[RunRow], grading: Regrade | None, *, checks_runs: bool = False
) -> Iterator[tuple[RunRow, str, RunFacts | None]]:
    """Yield each run's row, its id, and the facts that the history stores for a row of a table.

    The facts are `None` if they must be read from the whole run. If `grading` is given, the facts of all runs are
    `None`, because the stored facts belong to the first grading."""
    facts: Iterable[tuple[str, RunFacts | None]] = repeat(("", None))
    if grading is None:
        facts = history.facts(rows, checks_runs=checks_runs)
    for row, (run_id, of_row) in zip(rows, facts, strict=False):
        yield row, run_id, of_row


def _figures_of(
    row: RunRow, figures: RunSummary, run_id: str, facts: RunFacts, report: ReportFacts
) -> Mapping[str, object]:
    """Return the figures of a run from its row and facts, without reading the run.

    The figures equal the fields of the result from `result_of_row`."""
    user = report.user or NO_USER
    return {
        "run_id": run_id,
        "suite": str(row.suite.file),
        "case_id": row.case_id,
        "case_name": report.case_name,
        "model": row.model,
        "repeat": row.repeat,
        "status": figures.status,
        "error": report.error,
        "cost_usd": figures.cost_usd,
        "grading": figures.grading,
        "judging": NO_JUDGE_USAGE,
        "not_regraded": None,
        "metrics": report.metrics,
        "valid_arguments": report.valid_arguments,
        "user_cost_usd": user.cost_usd,
        "user_usage": user.usage,
        "user_outcome": figures.user_outcome,
        "score": figures.score,
        "reason": figures.reason,
        "is_broken": figures.is_broken,
        "grader": facts.grader,
        "verdict": report.verdict,
        "graders_disagree": report.graders_disagree,
        "has_free_calls": report.has_free_calls,
        "called": tuple([call.tool for call in facts.calls]),
        "executions": report.executions,
        "retries": report.retries,
        "is_fork": figures.is_fork,
        "has_notices": report.has_notices,
        "repaired": figures.repaired,
        "agent": report.agent,
        "was_asked": figures.asked,
        "usage": report.usage,
        "latency_ms": figures.latency_ms,
        "loop_ms": figures.loop_ms,
        "first_token_ms": figures.first_token_ms,
    }


def _whole_results(
    history: History, rows: Sequence[RunRow], grading: Regrade | None, damaged: ReportProblem
) -> Iterator[tuple[int, RunResult]]:
    for place, row in enumerate(rows):
        if row.figures is not None:
            try:
                result = result_of_row(row, *history.recording_and_outcome(row, grading))
            except DamagedError as error:
                damaged(str(error))
            else:
                yield place, result


class LiveColumns(Columns):
    """The runs of a running batch. Once the history has stored a run, only its figures stay in memory."""

    def __init__(self, file: Path, handle: BatchHandle) -> None:
        super().__init__(file)
        self._handle = handle
        self._here: dict[int, RunResult] = {}
        self._unwritten: deque[int] = deque()
        """The indices of runs that may not be written yet."""

    def add_finished(self, result: RunResult) -> None:
        """Add a finished run, and drop up to two runs from memory that the history has stored by now."""
        index = len(self)
        self.add(result)
        self._here[index] = result
        self._unwritten.append(index)
        # While the disk is slow, unwritten runs pile up. Checking two of them for each new run lets their number fall
        # again.
        for _ in range(min(2, len(self._unwritten))):
            first = self._unwritten.popleft()
            if self._handle.is_written(self._here[first].run_id):
                del self._here[first]
            else:
                self._unwritten.append(first)

    @property
    def count_in_memory(self) -> int:
        return len(self._here)

    def whole(self, index: int) -> RunResult:
        result = self._here.get(index)
        if result is None:
            return super().whole(index)
        if isinstance(result, LazyResult):
            return result.whole
        return result

    def _read(self, history: History, index: int) -> RunResult:
        number, place = self._handle.number, self._handle.places[self._run_id(0, index)]
        row = None
        if number is not None:
            row = history.run_at(number, place)
        if row is None or row.figures is None:
            raise HistoryError(f"the history {self._file} no longer has run {place + 1} of this batch")
        # The stored values of these fields are redacted. They are compared with the plan, which is not redacted, so the
        # original values are kept.
        kept = {name: getattr(self.result(index), name) for name in UNPACKED_FIELDS}
        return replace(result_of_row(row, *history.recording_and_outcome(row)), **kept)


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


def result_of_row(run: RunRow, recording: Recording, outcome: Outcome | None = None) -> RunResult:
    """Return the result of a finished run of the history.

    Raises RecordingError if it cannot be read."""
    assert run.figures is not None
    result = result_of_recording(recording, outcome)
    return replace(
        result, suite=str(run.suite.file), cost_usd=run.figures.cost_usd, grading=run.figures.grading, repeat=run.repeat
    )


def stored_report(
    history: History,
    batch: BatchRow,
    runs: Sequence[RunRow],
    grading: Regrade | None,
    secrets: Secrets,
    damaged: ReportProblem,
) -> Report:
    """Return the report on the finished runs among `runs`, with the batch's first grades or the grades of `grading`.

    Each run is read once for its figures, and again when more of it is needed. Line numbers refer to the suites as they
    were when the batch ran. `damaged` is called with a message about each run that is left out."""
    files = _suites(history, batch, damaged)
    suites = suites_of(files)
    cases = {path: cases_by_id(suite) for path, suite in suites.items()}
    # Runs that the cost limit skipped are missing too, but not because the batch was interrupted.
    cost_limited = sum(run.figures is not None and is_cost_limited(run.figures) for run in runs)
    return Report(
        runs=StoredRuns(history, runs, grading, cases, damaged),
        suites=suites,
        started_at=batch.started_at,
        min_score=batch.min_score,
        shard=batch.shard,
        interrupted=batch.missing > cost_limited,
        missing=missing_of(runs),
        batch=batch.number,
        watch=stored_early_stopping(batch, runs, gates_of(files)),
        program_version=batch.program,
        line_of=lines_of(files),
        secrets=secrets,
    )


def missing_of(runs: Sequence[RunRow]) -> tuple[MissingRuns, ...]:
    """Return the cases of which some runs never finished."""
    cases: dict[tuple[str, str, str, str], list[int]] = {}
    for run in runs:
        if not run.is_fork:
            counts = cases.setdefault((str(run.suite.file), run.case_id, run.case_name, run.model), [0, 0])
            counts[0] += run.figures is None
            counts[1] += 1
    lacking = []
    for case, (missing, planned) in cases.items():
        if missing:
            lacking.append(MissingRuns(*case, missing, planned))
    return tuple(lacking)


def as_graded_by(result: RunResult, grader: GraderName) -> RunResult:
    """Return a stored run as if `grader` had decided its status.

    A graded run becomes "not graded" if this grader stored no grade for it, or found that it does not apply."""
    if not result.status.graded or result.grading.by == grader:
        return result
    grading, others, named = replace(result.grading, by=grader), list[Grade](), None
    for grade in result.grades:
        if grade.grader != grader:
            others.append(grade)
        elif named is None:
            named = grade
    if named is not None and named.status is not None and named.status.graded:
        return replace(result, status=named.status, grades=(named, *others), grading=grading)
    why = f"no grade of {grader} is stored"
    if named is not None:
        why = named.reason
    return replace(result, status=Status.NOT_GRADED, grades=(), steps=(), error=why, grading=grading)


def figures_by(run: RunRow, outcome: Outcome, by: GraderName) -> RunSummary:
    """Return the figures of a finished run as if the grader `by` had decided its status. Only its outcome is needed."""
    assert run.figures is not None
    decided = as_graded_by(
        RunResult(
            run_id="",
            suite=run.suite.key,
            case_id=run.case_id,
            case_name=run.case_name,
            model=run.model,
            repeat=run.repeat,
            status=outcome.status,
            trajectory=Trajectory(""),
            grades=outcome.grades,
            error=outcome.error,
            steps=outcome.steps,
            grading=run.figures.grading,
        ),
        by,
    )
    figures = replace(run.figures, status=decided.status, score=decided.score, reason=decided.reason)
    return replace(figures, is_broken=decided.is_broken, grading=decided.grading)


def combined_report(
    earlier_report: Report, later_report: Report, against: AgainstBaseline, same_suites: Mapping[str, str]
) -> Report:
    """Join the reports on two batches.

    The names of the earlier batch's models get the batch's name as a suffix. `same_suites` maps the paths of suites in
    the earlier batch to paths in the later batch."""
    name = batch_name(against.batch)
    before = []
    for run in earlier_report.runs:
        result = replace(
            run.result,
            run_id=f"{name} {run.result.run_id}",
            suite=same_suites.get(run.result.suite, run.result.suite),
            model=f"{run.result.model} ({name})",
        )
        before.append(replace(run, result=result))
    suites = {same_suites.get(path, path): suite for path, suite in earlier_report.suites.items()}
    return replace(
        later_report, runs=(*before, *later_report.runs), suites={**suites, **later_report.suites}, against=against
    )


def _suites(history: History, batch: BatchRow, damaged: ReportProblem) -> list[SuiteFile]:
    """Return the readable suites of a batch, as they were when it ran.

    A suite cannot be read if it is damaged, or if a secret in it was redacted. `damaged` is called with a message about
    each damaged suite."""
    files = []
    for suite in batch.suites:
        try:
            files.append(parse_suite(history.suite_text(suite), suite.file))
        except DamagedError as error:
            damaged(str(error))
    return files
