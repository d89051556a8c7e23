"""Reads a history: its batches, their runs, one run with its events, one case over time."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from workbench.config.history_file import folder_of_stored, history_option
from workbench.grading.result_json import outcome_from_json
from workbench.grading.run_summary import RunSummary
from workbench.history import columns
from workbench.history.database import Say, as_history_errors, open_for_reading
from workbench.history.packing import (
    grading_from,
    unpacked,
    unpacked_blocks,
    unpacked_bytes,
    unpacked_events,
    unpacked_outcome,
)
from workbench.history.records import (
    COUNTED,
    BatchPart,
    BatchRow,
    DamagedError,
    HistoryError,
    Regrade,
    RunRow,
    SuiteRef,
    count_name,
)
from workbench.history.run_table import RunTable
from workbench.suite.excerpt import cut_out
from workbench.suite.model import Gate
from workbench.trajectory.fold import TrajectoryError, fold
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.recording import Header, RecordedSuite, Recording
from workbench.trajectory.trajectory import Trajectory
from workbench.trajectory.typed_json import compact_json

_BATCH = "SELECT id, name, kind, started_at, ended_at, program, settings, planned FROM batches"
_PART = f"SELECT batch, suite, model, planned, cases, {', '.join(map(count_name, COUNTED))} FROM parts"
_RUN = """
SELECT id, batch, place, suite, case_id, case_name, model, model_of_suite, repeat, decided_by, is_fork,
    runs.status, runs.score, runs.reason, runs.broken, runs.options, began_ms, ended_ms, latency_ms, first_token_ms,
    input_tokens, output_tokens, cost_usd, asked, loop_ms, runs.metrics
FROM runs"""
_REGRADED = _RUN.replace(
    "runs.status, runs.score, runs.reason, runs.broken, runs.options",
    """
    coalesce(regrades.status, runs.status), iif(regrades.run, regrades.score, runs.score),
    iif(regrades.run, regrades.reason, runs.reason), coalesce(regrades.broken, runs.broken),
    iif(regrades.run, regrades.options, runs.options)""",
).replace("runs.metrics", "iif(regrades.run, regrades.metrics, runs.metrics)")

_COUNTS = "status IN ('passed', 'warned', 'failed', 'error', 'not graded') AND NOT is_fork"
_LAST = f"""
WITH asked AS (SELECT key AS suite, value FROM json_each(?)),
last AS MATERIALIZED (
    SELECT max((SELECT id FROM runs INDEXED BY runs_of_cases
        WHERE case_id = cases.value AND suite = versions.value AND {_COUNTS} ORDER BY id DESC LIMIT 1)) AS run
    FROM asked, json_each(asked.value, '$[0]') AS versions, json_each(asked.value, '$[1]') AS cases
    GROUP BY asked.suite, cases.value),
batch AS MATERIALIZED (
    SELECT case_id, suite, batch,
        coalesce((SELECT id FROM runs AS first WHERE first.batch = one.batch AND place = 0), 0) AS first
    FROM last CROSS JOIN runs AS one ON one.id = last.run),
wanted AS MATERIALIZED (
    SELECT runs.id FROM batch CROSS JOIN runs INDEXED BY runs_of_cases ON runs.case_id = batch.case_id
        AND runs.suite = batch.suite AND runs.id >= first AND runs.batch = batch.batch AND {_COUNTS})
{_REGRADED} LEFT JOIN regrades ON regrades.run = runs.id
    AND grading = (SELECT max(gradings.id) FROM gradings WHERE gradings.batch = runs.batch)
WHERE runs.id IN (SELECT wanted.id FROM wanted) ORDER BY runs.id"""
"""A case has thousands of runs in the index of cases, in the order of their ids: the last one is found by one step, and
the others of its batch are behind the batch's first run."""


def _gate_in(text: str) -> Gate:
    """Returns the gate in a suite's text; none where redacting the text has changed it."""
    try:
        return Gate.model_validate(tomllib.loads(text).get("gate", {})) if "gate" in text else Gate()
    except ValueError:
        return Gate()


def _shared_text(id_: int | None, packed: bytes | None) -> bytes | None:
    """Returns a text that several runs share; `id_` is how a run refers to it. Raises ValueError when it is missing."""
    if id_ is None:
        return None
    if packed is None:
        raise ValueError("what it shares with other runs is missing")
    return unpacked_bytes(packed)


_NAMED = {"id": columns.whole, "name": columns.text}
_DAMAGE = (
    *(ValueError, TypeError, AttributeError, LookupError, ArithmeticError),
    *(RecursionError, TrajectoryError),
)
"""The errors that reading damaged values raises."""


class History:
    """An existing history. Use it on one thread; every method raises HistoryError. One that was never written is
    empty."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._connection = open_for_reading(file)
        self._suites: dict[int, SuiteRef] = {}
        self._damaged_suites: dict[Any, str] = {}
        """Why some of them cannot be read, by their ids."""

    def __enter__(self) -> History:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def batches(self) -> list[BatchRow]:
        """All batches that are not damaged, the newest first."""
        return [batch for batch in self.all_batches() if batch.damage is None]

    def all_batches(self) -> list[BatchRow]:
        """All batches, damaged ones included, the newest first."""
        return self._batches("ORDER BY id DESC", "")

    def batch(self, which: str, *, damaged: bool = False) -> BatchRow:
        """Returns a batch by its name or its number, with or without a # before it; a damaged one only with
        `damaged`."""
        number = which.removeprefix("#")
        found = self._batches("WHERE name = ?", "WHERE batch = (SELECT id FROM batches WHERE name = ?)", (which,))
        if not found and number.isdecimal() and len(number) < 19:
            found = self._batches("WHERE id = ?", "WHERE batch = ?", (int(number),))
        if not found:
            names_all = f"'workbench history list{history_option(self.file)}' lists all"
            raise HistoryError(f"there is no batch {which!r} in {self.file}: {names_all}")
        batch = found[0]
        if batch.damage is not None and not damaged:
            removes_it = f"'workbench history prune --batch {batch.number}{history_option(self.file)}' removes it"
            raise DamagedError(f"batch {batch.number} in {self.file} is damaged: {batch.damage}; {removes_it}")
        return batch

    def runs(self, batch: int, grading: Regrade | None = None) -> RunTable:
        """Returns the runs of a batch in the order of its plan; with `grading`, as that regrade graded them."""
        if grading is None:
            return self._runs(f"{_RUN} WHERE batch = ? ORDER BY place", (batch,))
        joined = f"{_REGRADED} LEFT JOIN regrades ON regrades.run = runs.id AND grading = ?"
        return self._runs(f"{joined} WHERE batch = ? ORDER BY place", (grading.id, batch))

    def run_ids(self, batch: int) -> frozenset[str]:
        """Returns the ids of a batch's runs in their events: runs that are added need different ones."""
        found = {"run_id": columns.text}
        rows = self._rows(f"batch {batch}", found, "SELECT run_id FROM runs WHERE batch = ?", (batch,))
        return frozenset(run_id for (run_id,) in rows)

    def runs_of_case(self, suite: str, case_id: str, limit: int, damaged: Say) -> Sequence[RunRow]:
        """Returns the latest runs of a case, the newest first; `suite` is a `SuiteRef.key`. Damaged ones are left out
        and reported to `damaged`."""
        with self._at_one_moment():
            self._read_suites()
            ids = ", ".join(str(known.id) for known in self._suites.values() if known.key == suite)
            statement = f"{_RUN} WHERE case_id = ? AND suite IN ({ids}) ORDER BY id DESC LIMIT ?"
            return self._runs(statement, (case_id, limit), damaged)

    def last_runs(self, cases: Mapping[str, Collection[str]], damaged: Say) -> Sequence[RunRow]:
        """Returns the finished runs of each case in the last batch in which it has any, with their latest grades, the
        oldest first; `cases` are ids by `SuiteRef.key`. Forks do not count. Damaged ones are left out and reported to
        `damaged`."""
        with self._at_one_moment():
            self._read_suites()
            versions: dict[str, list[int]] = {}
            for known in self._suites.values():
                versions.setdefault(known.key, []).append(known.id)
            asked = [[versions[suite], list(ids)] for suite, ids in cases.items() if suite in versions]
            return self._runs(_LAST, (compact_json(asked),), damaged)

    def case_texts(self, suite: SuiteRef) -> Mapping[str, str]:
        """Returns the text of each case of a suite as it was, redacted, by its id; none where cases do not stand in
        blocks of their own."""
        rows = self._stored("SELECT text, blocks FROM suites WHERE id = ?", (suite.id,))
        with self._damage_of(f"the suite {suite.path}"):
            text, blocks = rows[0]
            whole = unpacked(text)
            return {case: whole[first:end] for case, first, end in unpacked_blocks(blocks)} if blocks else {}

    def recording(self, run: RunRow, grading: Regrade | None = None) -> Recording:
        """Returns a run with its events, as if it had been recorded next to its suite; with `grading`, with the result
        of that regrade. Raises for a run that never finished."""
        which = f"run {run.place + 1} of batch {run.batch}"
        with self._told_of(which), self._at_one_moment():
            rows = self._stored(
                "SELECT run_id, program, events, outcome, suites.text, blocks, details.tools, tools.text, "
                "details.sample, sample.text FROM runs JOIN batches ON batches.id = runs.batch "
                "JOIN suites ON suites.id = suite JOIN details ON details.run = runs.id "
                "LEFT JOIN shared AS tools ON tools.id = details.tools "
                "LEFT JOIN shared AS sample ON sample.id = details.sample WHERE runs.id = ?",
                (run.id,),
            )
            again = grading and self._stored(
                "SELECT outcome FROM regrades WHERE grading = ? AND run = ?", (grading.id, run.id)
            )
        if not rows and run.figures is None:
            raise HistoryError("the run never finished: none of it was stored")
        if not rows:
            raise self._damaged(which, "its events are missing")
        run_id, program, events_packed, outcome, text, blocks, *shared = rows[0]
        with self._damage_of(which):
            run_id, program = columns.text(run_id), columns.text(program)
            whole = unpacked(text)
            suite = cut_out(whole, unpacked_blocks(blocks), run.case_id) if blocks is not None else whole
            tools, sample = _shared_text(*shared[:2]), _shared_text(*shared[2:])
            events = tuple(unpacked_events(events_packed, tools.decode() if tools is not None else None, sample or b""))
            trajectory = fold(events) if events else Trajectory(run_id)
            result = unpacked_outcome(again[0][0]) if again else unpacked_outcome(outcome, sample or b"")
            outcome_from_json(result)
            began_ms = (run.figures.began_ms if run.figures is not None else None) or 0
            started_at = datetime.fromtimestamp(began_ms / 1000, UTC).isoformat(timespec="milliseconds")
        header = Header(
            program=program,
            run=run_id,
            started_at=started_at,
            suite=RecordedSuite(Path(run.suite.path).name, run.suite.hash, suite),
            case=run.case_id,
            model=run.model,
            repeat=run.repeat,
            by=run.by,
        )
        return Recording(run.suite.file, header, events, trajectory, result)

    def recordings(
        self, runs: Iterable[RunRow], grading: Regrade | None, damaged: Say
    ) -> Iterator[tuple[RunRow, Recording]]:
        """Yields the recordings of finished runs. Damaged ones are left out and reported to `damaged`."""
        for run in runs:
            try:
                recording = self.recording(run, grading)
            except DamagedError as error:
                damaged(str(error))
            else:
                yield run, recording

    def suite_text(self, suite: SuiteRef) -> str:
        """Returns the text of a suite as it was, redacted."""
        rows = self._stored("SELECT text FROM suites WHERE id = ?", (suite.id,))
        if not rows:
            raise HistoryError(f"the suite {suite.path} is no longer in {self.file}")
        with self._damage_of(f"the suite {suite.path}"):
            return unpacked(rows[0][0])

    def gates(self, batch: BatchRow, damaged: Say) -> dict[str, Gate]:
        """Returns the gate of each suite of a batch when it ran, by its key. Suites whose text cannot be read are left
        out and reported to `damaged`."""
        found: dict[str, Gate] = {}
        for suite in batch.suites:
            try:
                found[suite.key] = _gate_in(self.suite_text(suite))
            except DamagedError as error:
                damaged(str(error))
        return found

    def gradings(self, batch: int) -> list[Regrade]:
        """Returns the regrades of a batch, the oldest first."""
        rows = self._rows(
            f"batch {batch}",
            columns.GRADING,
            "SELECT id, graded_at, program FROM gradings WHERE batch = ? ORDER BY id",
            (batch,),
        )
        return [Regrade(id_, batch, number, at, program) for number, (id_, at, program) in enumerate(rows, 1)]

    def bytes_of(self, batches: Sequence[int]) -> int:
        """Returns about how many bytes batches take: the events and grades of their runs."""
        statement = """
            SELECT coalesce(sum(length(events) + length(outcome) + coalesce(
                (SELECT sum(length(regrades.outcome)) FROM regrades WHERE regrades.run = runs.id), 0)), 0)
                + (SELECT coalesce(sum(length(text)), 0) FROM shared WHERE shared.batch = ?)
            FROM runs JOIN details ON details.run = runs.id WHERE runs.batch = ?"""
        if self._connection is None:
            return 0
        return sum(self._stored(statement, (batch, batch))[0][0] for batch in batches)

    def regraded(self) -> dict[int, int]:
        """Returns how often batches were regraded, by their numbers, without those that never were."""
        return dict(self._stored("SELECT batch, count(*) FROM gradings GROUP BY batch", ()))

    def names(self) -> dict[int, str]:
        """Returns the names of batches, by their numbers, without those that have none or an unreadable one."""
        rows = self._stored("SELECT id, name FROM batches WHERE name IS NOT NULL", ())
        found = (columns.readable(_NAMED, row) for row in rows)
        return {named["id"]: named["name"] for named in found if len(named) == len(_NAMED)}

    def _batches(self, which: str, parts_of: str, values: tuple[Any, ...] = ()) -> list[BatchRow]:
        with self._at_one_moment():
            rows = self._stored(f"{_BATCH} {which}", values)
            parts: dict[Any, list[tuple[Any, ...]]] = {row[0]: [] for row in rows}
            for part in self._stored(f"{_PART} {parts_of}", values):
                parts.get(part[0], []).append(part)
            return [self._batch(row, parts[row[0]]) for row in rows]

    def _batch(self, row: Sequence[Any], part_rows: Sequence[Sequence[Any]]) -> BatchRow:
        try:
            number, name, kind, started, ended, program, settings, planned = columns.read(columns.BATCH, row)
            parts = [self._part(part) for part in part_rows]
            if sum(part.planned for part in parts) != planned:
                raise ValueError("planned does not match its suites and models")
        except _DAMAGE as error:
            return self._damaged_batch(row, error)
        # In the settings of a batch, models are in the order of its plan, and parts in the order of their names.
        in_order = _in_order(parts, settings.get("models"))
        return BatchRow(number, name, kind, started, ended, program, settings, planned, in_order)

    def _damaged_batch(self, row: Sequence[Any], error: Exception) -> BatchRow:
        """Returns a damaged batch with what can be read of its row."""
        known = columns.readable(columns.BATCH, row)
        if "id" not in known:
            raise self._damaged("the number of a batch", error) from error
        name, kind, program = known.get("name"), known.get("kind", "runs"), known.get("program", "")
        started, ended = known.get("started_at", ""), known.get("ended_at")
        return BatchRow(known["id"], name, kind, started, ended, program, {}, 0, (), str(error))

    def _part(self, row: Sequence[Any]) -> BatchPart:
        _, suite, model, planned, cases, *counts = columns.read(columns.PART, row)
        return BatchPart(self._suite(suite), model, planned, cases, dict(zip(COUNTED, counts, strict=True)))

    def _runs(self, statement: str, values: tuple[Any, ...], damaged: Say | None = None) -> RunTable:
        """Returns runs. Damaged ones are reported to `damaged`; without it, raises DamagedError."""
        runs = RunTable()
        with self._at_one_moment():
            for row in self._each(statement, values):
                try:
                    with self._damage_of(f"a run of batch {row[1]}"):
                        runs.append(self._run(columns.read(columns.RUN, row)))
                except DamagedError as error:
                    if damaged is None:
                        raise
                    damaged(str(error))
        return runs

    def _run(self, row: Sequence[Any]) -> RunRow:
        id_, batch, place, suite_id, case_id, case_name, model, of_suite, repeat, by, is_fork, status, *figures = row
        suite = self._suite(suite_id)
        run = RunRow(
            id_, batch, place, suite, case_id, case_name, model, bool(of_suite), repeat, by, bool(is_fork), None
        )
        if status is None:
            return run
        score, reason, broken, options, began, ended, latency, first, sent, got, cost, asked, loop, named = figures
        if latency is None:
            raise ValueError("latency_ms must be a number")
        return replace(
            run,
            figures=RunSummary(
                *(suite.key, case_id, case_name, model, repeat, status, score, reason),
                *(latency, first, sent, got, cost, bool(asked), bool(broken), grading_from(options)),
                *(began, ended, bool(is_fork), loop, named or ()),
            ),
        )

    def _suite(self, id_: int) -> SuiteRef:
        if id_ not in self._suites and id_ not in self._damaged_suites:
            self._read_suites()
        if id_ not in self._suites:
            raise ValueError(self._damaged_suites.get(id_, f"its suite {id_} is not there"))
        return self._suites[id_]

    def _read_suites(self) -> None:
        self._suites, self._damaged_suites = {}, {}
        for row in self._stored("SELECT id, project, path, hash, name, cases FROM suites", ()):
            try:
                id_, project, *others = columns.read(columns.SUITE, row)
            except ValueError as error:
                self._damaged_suites[row[0]] = f"its suite {row[0]}: {error}"
            else:
                self._suites[id_] = SuiteRef(id_, folder_of_stored(self.file, project), *others)

    def _rows(
        self, what: str, wanted: Mapping[str, columns.Reader], statement: str, values: tuple[Any, ...]
    ) -> list[list[Any]]:
        """Yields rows whose every column has a valid value; `what` describes them in errors."""
        found = self._stored(statement, values)
        with self._damage_of(what):
            return [columns.read(wanted, row) for row in found]

    def _stored(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return list(self._each(statement, values))

    def _each(self, statement: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Yields rows one by one."""
        if self._connection is None:
            return
        bound = [columns.stored(value) if isinstance(value, str) else value for value in values]
        with as_history_errors(self.file):
            yield from self._connection.execute(statement, bound)

    @contextmanager
    def _at_one_moment(self) -> Iterator[None]:
        """Reads within it are consistent, although another program may begin and remove batches meanwhile."""
        connection = self._connection
        if connection is None or connection.in_transaction:
            yield
            return
        # The numbers of removed rows may have been reused by now.
        self._suites, self._damaged_suites = {}, {}
        with as_history_errors(self.file):
            connection.execute("BEGIN")
        try:
            yield
        finally:
            if connection.in_transaction:  # SQLite may have ended it itself, over an error
                with as_history_errors(self.file):
                    connection.execute("ROLLBACK")  # nothing was written

    @contextmanager
    def _damage_of(self, what: str) -> Iterator[None]:
        """Returns damage that SQLite does not detect, because it does not know what its values mean."""
        try:
            yield
        except _DAMAGE as error:
            raise self._damaged(what, error) from error

    @contextmanager
    def _told_of(self, what: str) -> Iterator[None]:
        """Raises the damage that SQLite found with a description of what was being read."""
        try:
            yield
        except DamagedError as error:
            raise DamagedError(f"{what} cannot be read: {error}") from error

    def _damaged(self, what: str, why: Exception | str) -> DamagedError:
        return DamagedError(f"{what} in {self.file} is damaged: {why}")


def _in_order(parts: list[BatchPart], models: JsonValue) -> tuple[BatchPart, ...]:
    places = {name: place for place, name in enumerate(models)} if isinstance(models, dict) else {}
    return tuple(sorted(parts, key=lambda part: places.get(part.model, len(places))))
