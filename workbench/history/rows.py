"""Writes and reads the rows of a history.

Call the writing functions within a transaction."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from workbench.config.folders import folder_of_stored, path_in, stored_folder
from workbench.dataclasses import compact_json
from workbench.grading.grade import UserOutcome
from workbench.grading.result_json import Outcome, outcome_from_json
from workbench.grading.run_summary import RunSummary
from workbench.grading.status import Status
from workbench.history import columns
from workbench.history.columns import stored
from workbench.history.database import ReportProblem, as_history_errors, open_for_reading
from workbench.history.packing import (
    PackedRun,
    SharedText,
    compress_text,
    decompress_bytes,
    decompress_text,
    grading_from,
    outcome_in,
    packed_blocks,
    texts_in_block,
    texts_of_run,
    unpacked_blocks,
)
from workbench.history.records import CaseTexts, DamagedError, NewBatch, Regrade, RunRow, SuiteRef
from workbench.suite.excerpts import Blocks, SplitSuiteText, case_blocks
from workbench.suite.suite_file import SuiteFile
from workbench.trajectory.fold import TrajectoryError

if TYPE_CHECKING:
    from workbench.history.records import Outline


class NewSuite:
    """A suite of a new batch. `folder` is the folder of its project, in the form that the history stores."""

    def __init__(self, history: Path, file: SuiteFile, project: Path) -> None:
        self.folder = stored_folder(history, project)
        self.path = stored(path_in(project, file.path))
        self._file = file

    @cached_property
    def row(self) -> tuple[Any, ...]:
        """The values of the suite's row, from the column `path` on.

        They are computed once, because the computation takes seconds for a large suite."""
        file = self._file
        assert file.suite is not None
        positions = None
        if (blocks := case_blocks(file)) is not None:
            positions = packed_blocks(blocks)
        text = compress_text(file.text)
        return self.path, file.hash, stored(file.suite.name), len(file.suite.cases), text, positions

    def known(self, connection: sqlite3.Connection) -> int | None:
        """Return the id of the suite's row; `None` if the history lacks the suite."""
        return _known_suite(connection, self.folder, self.path, self._file.hash)

    def id(self, connection: sqlite3.Connection) -> int:
        """Return the id of the suite's row, after writing a missing row."""
        known = self.known(connection)
        if known is not None:
            return known
        return insert_suite(connection, self.folder, self.row)


class NewPlan:
    """The plan of a new batch, ready to be written: its suites, and the numbers of runs of each suite and model.

    Create this object before the transaction, because its creation takes seconds for a large plan."""

    def __init__(self, connection: sqlite3.Connection, history: Path, batch: NewBatch) -> None:
        self.batch = batch
        files: dict[Path, SuiteFile] = {}
        planned: Counter[tuple[Path, str]] = Counter()
        cases: dict[tuple[Path, str], set[str]] = {}
        for run in batch.runs:
            part = run.file.path, run.model
            files[run.file.path] = run.file
            planned[part] += 1
            cases.setdefault(part, set()).add(run.case_id)
        if batch.shard is not None:
            for file in batch.shard.files:
                files[file.path] = file
            # A shard stores each pair of suite and model in the plan, even pairs without a run of its own. Otherwise
            # removing another batch would also remove a suite that the plan still names.
            for of_plan, model in batch.shard.outline.parts:
                planned.setdefault((batch.shard.files[of_plan].path, model), 0)
        self.parts: list[tuple[Path, str | bytes | None, int, int]] = []
        """Suite, model, and the numbers of planned runs and cases."""
        for (path, model), runs in planned.items():
            self.parts.append((path, stored(model), runs, len(cases.get((path, model), ()))))
        self.suites: dict[Path, NewSuite] = {}
        for path, file in files.items():
            suite = self.suites[path] = NewSuite(history, file, batch.projects[path])
            if suite.known(connection) is None:
                assert suite.row  # computes the row, which is cached

    def ids(self, connection: sqlite3.Connection) -> dict[Path, int]:
        """Return the row ids of the suites, after writing missing suites."""
        return {path: suite.id(connection) for path, suite in self.suites.items()}


def begin_batch(connection: sqlite3.Connection, history: Path, batch: NewBatch) -> int:
    """Write a batch with its whole plan into the history `history`, and return the batch's number."""
    plan = NewPlan(connection, history, batch)
    number = start_batch(connection, plan)
    plan_runs(connection, number, plan, 0, len(batch.runs))
    return number


def start_batch(connection: sqlite3.Connection, plan: NewPlan) -> int:
    """Write a batch and return its number. The runs of its plan are written by `plan_runs`."""
    batch = plan.batch
    number = connection.execute(
        "INSERT INTO batches (kind, started_at, program, settings, planned, uid) VALUES (?, ?, ?, ?, ?, ?)",
        (batch.kind, batch.started_at, batch.program, compact_json(batch.settings), len(batch.runs), batch.uid),
    ).lastrowid
    assert number is not None
    ids = plan.ids(connection)
    connection.executemany(
        "INSERT INTO parts (batch, suite, model, planned, cases) VALUES (?, ?, ?, ?, ?)",
        [(number, ids[path], *part) for path, *part in plan.parts],
    )
    if batch.shard is not None:
        write_plan(connection, number, [ids[file.path] for file in batch.shard.files], batch.shard.outline)
    return number


def planned_runs(connection: sqlite3.Connection, number: int) -> int:
    return int(connection.execute("SELECT count(*) FROM runs WHERE batch = ?", (number,)).fetchone()[0])


def plan_runs(connection: sqlite3.Connection, number: int, plan: NewPlan, start: int, end: int) -> None:
    """Write the planned runs of a batch with the indices from `start` to `end` - 1."""
    connection.executemany(
        "INSERT INTO runs (batch, place, suite, case_id, case_name, model, model_of_suite, repeat, decided_by, is_fork,"
        " run_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        _planned_rows(number, plan.batch, plan.ids(connection), start, end),
    )


def _planned_rows(
    number: int, batch: NewBatch, ids: Mapping[Path, int], start: int, end: int
) -> Iterator[tuple[object, ...]]:
    for place, run in zip(batch.places[start:end], batch.runs[start:end], strict=True):
        of_case = (number, place, ids[run.file.path], stored(run.case_id), stored(run.case_name))
        yield (*of_case, stored(run.model), run.model_of_suite, run.repeat, run.by, run.is_fork, run.run_id)


def write_plan(connection: sqlite3.Connection, batch: int, suites: Sequence[int], outline: Outline) -> None:
    """Write the outline of a shard's whole plan. `suites` are the row ids of the outline's suites, in order."""
    connection.execute(
        "INSERT INTO plans (batch, suites, outline) VALUES (?, ?, ?)",
        (batch, compact_json(suites), compress_text(outline.text)),
    )


def reopen_batch(connection: sqlite3.Connection, number: int) -> str:
    """Mark a batch as running again, and return the ISO 8601 time when it first began.

    Raises LookupError if there is no such batch."""
    row = connection.execute("SELECT started_at FROM batches WHERE id = ?", (number,)).fetchone()
    if row is None:
        raise LookupError(f"batch {number} is not in the history")
    connection.execute("UPDATE batches SET ended_at = NULL WHERE id = ?", (number,))
    return str(row[0])


def is_batch(connection: sqlite3.Connection, number: int, started_at: str) -> bool:
    found = connection.execute("SELECT 1 FROM batches WHERE id = ? AND started_at = ?", (number, started_at)).fetchone()
    return found is not None


def end_batch(connection: sqlite3.Connection, number: int, ended_at: str) -> None:
    connection.execute("UPDATE batches SET ended_at = ? WHERE id = ?", (ended_at, number))


class SharedTexts:
    """The texts that several runs of a batch share, as one transaction reads and inserts them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._rows: dict[tuple[int, str], int | None] = {}

    def row_of(self, batch: int, text: SharedText | None) -> int | None:
        """Return the row id of a text, after inserting a missing text; `None` without a text."""
        if text is None:
            return None
        key = batch, text.hash
        if key not in self._rows:
            self._rows[key] = self._find(key) or self._insert(key, text.packed)
        return self._rows[key]

    def _find(self, key: tuple[int, str]) -> int | None:
        found = self._connection.execute("SELECT id FROM shared WHERE batch = ? AND hash = ?", key).fetchone()
        return None if found is None else int(found[0])

    def _insert(self, key: tuple[int, str], packed: bytes) -> int | None:
        insertion = "INSERT INTO shared (batch, hash, text) VALUES (?, ?, ?)"
        return self._connection.execute(insertion, (*key, packed)).lastrowid


def write_run(connection: sqlite3.Connection, batch: int, place: int, run: PackedRun, shared: SharedTexts) -> None:
    """Write the result of a planned run.

    `shared` has the shared texts of the same transaction. If another program has already written a result other than
    `stopped`, the run keeps that result. Raises LookupError if the batch no longer exists."""
    row = connection.execute(
        "SELECT id, suite, model, status FROM runs WHERE batch = ? AND place = ?", (batch, place)
    ).fetchone()
    if row is None:
        raise LookupError(f"batch {batch} is no longer in the history")
    run_row, suite, model, before = row
    if before not in (None, "stopped"):
        return
    changes = ", ".join(f"{name} = ?" for name in run.values)
    connection.execute(
        f"UPDATE runs SET run_id = ?, {changes} WHERE id = ?", (run.run_id, *run.values.values(), run_row)
    )
    connection.execute(
        "INSERT OR REPLACE INTO details (run, events, outcome, tools, sample, block, facts, nth)"
        " VALUES (?, x'', x'', ?, ?, ?, ?, ?)",
        (run_row, *[shared.row_of(batch, text) for text in run.shared], run.nth),
    )
    # Each result updates the status counts in `parts`, so that a list of batches need not read the runs.
    ended = run.status.column
    counted = f"{ended} = {ended} + 1"
    if before == Status.STOPPED:
        counted += f", {before} = {before} - 1"
    if before != run.status:
        connection.execute(
            f"UPDATE parts SET {counted} WHERE batch = ? AND suite = ? AND model = ?", (batch, suite, model)
        )
    part = (batch, suite, model)
    count_calls(connection, part, run.values["arguments"])
    count_user_outcome(connection, part, run.values["user_outcome"])


def count_calls(connection: sqlite3.Connection, part: tuple[Any, ...], arguments: object) -> None:
    """Add the checked calls of a run to the counts of its suite and model in the batch.

    `part` is batch, suite and model. `arguments` is the value of the column `arguments` in the run's row."""
    if arguments is None:
        return
    counts = columns.tool_arguments(arguments)
    valid = checked = 0
    for tool in counts:
        valid += tool.valid
        checked += tool.checked
    connection.execute(
        "UPDATE parts SET valid_calls = valid_calls + ?, checked_calls = checked_calls + ?"
        " WHERE batch = ? AND suite = ? AND model = ?",
        (valid, checked, *part),
    )


COUNTED_OUTCOMES: Mapping[UserOutcome, str] = {"error": "user_errors", "gave up": "gave_up"}
"""The columns of a part that count the outcomes of users."""


def count_user_outcome(connection: sqlite3.Connection, part: tuple[Any, ...], outcome: object) -> None:
    """Add the outcome of a conversation's user to the counts of a part: batch, suite and model."""
    for counted, column in COUNTED_OUTCOMES.items():
        if counted == outcome:
            connection.execute(
                f"UPDATE parts SET {column} = {column} + 1 WHERE batch = ? AND suite = ? AND model = ?", part
            )


def insert_suite(connection: sqlite3.Connection, folder: str, row: Sequence[Any]) -> int:
    """Return the id of a suite in the history, after writing a missing suite.

    `folder` is the folder of its project, in stored form. `row` is path, hash, name, number of cases, text, and the
    positions of the cases in the text."""
    if (known := _known_suite(connection, folder, *row[:2])) is not None:
        return known
    added = connection.execute(
        "INSERT INTO suites (project, path, hash, name, cases, text, blocks) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (stored(folder), *row),
    ).lastrowid
    assert added is not None
    return added


def _known_suite(connection: sqlite3.Connection, folder: str, path: Any, hash_: str) -> int | None:
    known = connection.execute(
        "SELECT id FROM suites WHERE project = ? AND path = ? AND hash = ?", (stored(folder), path, hash_)
    ).fetchone()
    return int(known[0]) if known is not None else None


# SQLite stores any type in any column, and a history may come from another machine. So every value is validated when it
# is read. Every error in reading a value is reported as damage of its row.
DAMAGE = (
    *(ValueError, TypeError, AttributeError, LookupError, ArithmeticError),
    *(RecursionError, TrajectoryError),
)
"""The errors that reading damaged values raises."""

_MAX_CACHED_TEXTS = 16
"""The size of each of two caches: decompressed suites, and texts that runs share."""

_MAX_CACHED_BLOCKS = 4
"""The number of decompressed blocks of runs in the cache."""

TEXTS = "events, outcome, details.sample, block, nth"
"""The columns that hold the texts of a run."""

_SUITE = "SELECT id, project, path, hash, name, cases FROM suites"

_Text = TypeVar("_Text")


def values_in(table: str, column: str) -> str:
    """Return SQL that selects the distinct values of a column, without NULL, faster than `SELECT DISTINCT`.

    The column must be the first column of an index. For each value, the SQL takes one step in the index, even if many
    rows have the value. SQLite's `SELECT DISTINCT` would read all rows."""
    return f"""
    WITH RECURSIVE each({column}) AS (
        SELECT min({column}) FROM {table}
        UNION ALL SELECT (SELECT min({column}) FROM {table} WHERE {column} > each.{column})
        FROM each WHERE {column} IS NOT NULL)
    SELECT {column} FROM each WHERE {column} IS NOT NULL"""


class RowReader:
    """The methods of `History` that read and validate rows."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._connection = open_for_reading(file)
        self._as_of: int | None = None
        """The `data_version` of the file at which the following caches were filled."""
        self._suites: dict[int, SuiteRef] = {}
        self._damaged_suites: dict[Any, str] = {}
        """The reasons why suites cannot be read, by the ids of the suites."""
        self._cut_texts: dict[int, SplitSuiteText] = {}
        self._regraded_texts: dict[int, CaseTexts] = {}
        """The texts of the regrade that was read last, by its id."""
        self._shared_texts: dict[int, bytes] = {}
        self._blocks: dict[int, list[str]] = {}
        """The texts of the runs in the blocks that were read last, by the ids of their rows."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _runs(self, statement: str, values: Sequence[Any], damaged: ReportProblem | None = None) -> list[RunRow]:
        return list(self._each_run(statement, values, damaged))

    def _each_run(
        self, statement: str, values: Sequence[Any], damaged: ReportProblem | None = None
    ) -> Iterator[RunRow]:
        """Yield the runs that a statement selects, all from one state of the history."""
        with self._at_one_moment(), as_history_errors(self.file):
            for row in self._cursor(statement, values):
                try:
                    # `_damage_of` is not used here, because entering a context manager for each run takes too long for
                    # large batches.
                    try:
                        run = self._run(columns.read(columns.RUN, row))
                    except DAMAGE as error:
                        raise self._damaged(f"a run of batch {row[1]}", error) from error
                except DamagedError as error:
                    if damaged is None:
                        raise
                    damaged(str(error))
                else:
                    yield run

    def _run(self, row: Sequence[Any]) -> RunRow:
        id_, batch, place, suite_id, case_id, case_name, model, of_suite, repeat, by, is_fork, status, *figures = row
        suite = self._suite(suite_id)
        summary = None
        if status is not None:
            score, reason, broken, options, began, ended, latency, first, sent, got, cost, asked, *later = figures
            loop, named, arguments, repaired, agent, user, outcome = later
            if latency is None:
                raise ValueError("latency_ms must be a number")
            summary = RunSummary(
                *(suite.key, case_id, case_name, model, repeat, status, score, reason),
                *(latency, first, sent, got, cost, bool(asked), bool(broken), grading_from(options)),
                *(began, ended, bool(is_fork), loop, named or (), arguments or (), repaired or ()),
                *(agent, user, outcome),
            )
        return RunRow(
            *(id_, batch, place, suite, case_id, case_name, model, bool(of_suite), repeat, by, bool(is_fork), summary)
        )

    def _suite(self, id_: int) -> SuiteRef:
        if id_ not in self._suites and id_ not in self._damaged_suites:
            self._cache_suites(self._stored(f"{_SUITE} WHERE id = ?", (id_,)))
        if id_ not in self._suites:
            raise ValueError(self._damaged_suites.get(id_, f"its suite {id_} is missing"))
        return self._suites[id_]

    def _versions(self, key: str) -> list[int]:
        """Return the row ids of all stored versions of a suite. `key` is a `SuiteRef.key`."""
        found: list[tuple[Any, ...]] = []
        # Projects are stored relative to the history if possible, but `key` is absolute. There are few projects, so
        # each is resolved and its suites are searched.
        for (written,) in self._stored(values_in("suites", "project"), ()):
            try:
                project = folder_of_stored(self.file, columns.path(written))
            except ValueError:  # a damaged project: its suites are left out
                continue
            paths = (key, key.removeprefix(project).removeprefix("/"))
            found += self._stored(f"{_SUITE} WHERE project = ? AND path IN (?, ?)", (written, *paths))
        self._cache_suites(found)
        ids = []
        for id_, *_ in found:
            # Damaged suites are not in the cache, and are left out.
            if id_ in self._suites and self._suites[id_].key == key:
                ids.append(id_)
        return ids

    def _cache_suites(self, rows: Sequence[tuple[Any, ...]]) -> None:
        for row in rows:
            try:
                id_, project, *others = columns.read(columns.SUITE, row)
            except ValueError as error:
                self._damaged_suites[row[0]] = f"its suite {row[0]}: {error}"
            else:
                self._suites[id_] = SuiteRef(id_, folder_of_stored(self.file, project), *others)

    def _cut_text(self, suite: int) -> SplitSuiteText:
        if suite not in self._cut_texts:
            text, packed_positions = self._stored("SELECT text, blocks FROM suites WHERE id = ?", (suite,))[0]
            blocks: Blocks = ()
            if packed_positions is not None:
                blocks = unpacked_blocks(packed_positions)
            _keep(self._cut_texts, suite, SplitSuiteText(decompress_text(text), blocks))
        return self._cut_texts[suite]

    def _shared_text(self, id_: int | None) -> bytes | None:
        """Return a text that several runs share, given its row id; `None` without an id.

        Raises ValueError if the text is missing or cannot be read."""
        if id_ is None:
            return None
        if id_ not in self._shared_texts:
            _keep(self._shared_texts, id_, decompress_bytes(self._packed_text(id_)))
        return self._shared_texts[id_]

    def _texts_of(self, row: Sequence[Any]) -> tuple[str, str]:
        """Return the texts of a run's events and of its outcome. `row` has the values of the columns in `TEXTS`.

        Raises ValueError if a text is missing or cannot be read."""
        events, outcome, sample_id, block, nth = row
        sample = self._shared_text(sample_id) or b""
        if block is None:
            return decompress_text(events, sample), decompress_text(outcome, sample)
        if block not in self._blocks:
            _keep(self._blocks, block, texts_in_block(self._packed_text(block), sample), _MAX_CACHED_BLOCKS)
        return texts_of_run(self._blocks[block][columns.count(nth)])

    def outcome(self, run: RunRow, grading: Regrade | None = None) -> Outcome:
        """Return the outcome of a finished run, without reading its events.

        With `grading`, it is the outcome of that regrade if the run was regraded. Raises DamagedError."""
        which = f"run {run.place + 1} of batch {run.batch}"
        again: list[tuple[Any, ...]] = []
        with self._at_one_moment():
            with self._reading(which):
                if grading is not None:
                    regraded = "SELECT outcome FROM regrades WHERE grading = ? AND run = ?"
                    again = self._stored(regraded, (grading.id, run.id))
                texts = f"SELECT {TEXTS} FROM runs JOIN details ON details.run = runs.id WHERE runs.id = ?"
                rows = self._stored(texts, (run.id,))
            if not rows:
                raise self._damaged(which, "its events are missing")
            with self._damage_of(which):
                text = decompress_text(again[0][0]) if again else self._texts_of(rows[0])[1]
                return outcome_from_json(outcome_in(text))

    def _packed_text(self, id_: int) -> bytes:
        found = self._stored("SELECT text FROM shared WHERE id = ?", (id_,))
        if not found:
            raise ValueError("a text that the run shares with other runs is missing from the history")
        packed_text: bytes = found[0][0]
        return packed_text

    def _rows(
        self, name: str, readers: Mapping[str, columns.Reader], statement: str, values: Sequence[Any]
    ) -> list[list[Any]]:
        """Return the validated rows that a statement selects. Messages of errors call the rows `name`."""
        found = self._stored(statement, values)
        with self._damage_of(name):
            return [columns.read(readers, row) for row in found]

    def _stored(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with as_history_errors(self.file):
            return list(self._cursor(statement, values))

    def _cursor(self, statement: str, values: Sequence[Any]) -> sqlite3.Cursor | tuple[()]:
        if self._connection is None:
            return ()
        bound = list(values)
        for index, value in enumerate(values):
            if isinstance(value, str):
                bound[index] = columns.stored(value)
        return self._connection.execute(statement, bound)

    @contextmanager
    def _at_one_moment(self) -> Iterator[None]:
        """Read a single state of the history within the context, even if other programs change it in the meantime."""
        connection = self._connection
        if connection is None or connection.in_transaction:
            yield
            return
        with as_history_errors(self.file):
            connection.execute("BEGIN")
        try:
            with as_history_errors(self.file):
                self._clear_caches_if_changed(connection)
            yield
        finally:
            # SQLite itself ends a transaction after some errors. Nothing was written, so a rollback loses nothing.
            if connection.in_transaction:
                with as_history_errors(self.file):
                    connection.execute("ROLLBACK")

    def _clear_caches_if_changed(self, connection: sqlite3.Connection) -> None:
        """Clear the caches if another program has written, because new rows may reuse the ids of removed rows."""
        (state,) = connection.execute("PRAGMA data_version").fetchone()
        if state != self._as_of:
            self._as_of = state
            for known in (self._suites, self._damaged_suites, self._cut_texts, self._shared_texts):
                known.clear()
            self._blocks.clear()

    @contextmanager
    def _damage_of(self, name: str) -> Iterator[None]:
        """Convert errors in reading a damaged value to DamagedError. The message calls the row `name`."""
        try:
            yield
        except DAMAGE as error:
            raise self._damaged(name, error) from error

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        try:
            yield
        except DamagedError as error:
            raise DamagedError(f"{name} cannot be read: {error}") from error

    def _damaged(self, name: str, reason: Exception | str) -> DamagedError:
        return DamagedError(f"{name} in {self.file} is damaged: {reason}")


def _keep(texts: dict[int, _Text], id_: int, text: _Text, maximum: int = _MAX_CACHED_TEXTS) -> None:
    # Drop the oldest entry. Dictionaries keep the order of insertion.
    if len(texts) >= maximum:
        del texts[next(iter(texts))]
    texts[id_] = text
