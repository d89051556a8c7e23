"""Reads the rows of a history: each as what it says or as damage, several as of one moment."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from workbench.config.history_file import folder_of_stored
from workbench.grading.run_summary import RunSummary
from workbench.history import columns
from workbench.history.database import Say, as_history_errors, open_for_reading
from workbench.history.packing import grading_from, unpacked, unpacked_blocks, unpacked_bytes
from workbench.history.records import DamagedError, RunRow, SuiteRef
from workbench.suite.excerpt import CutText
from workbench.trajectory.fold import TrajectoryError

DAMAGE = (
    *(ValueError, TypeError, AttributeError, LookupError, ArithmeticError),
    *(RecursionError, TrajectoryError),
)
"""The errors that reading damaged values raises."""

_TEXTS_AT_HAND = 16
"""So many unpacked texts of suites, and of what runs share, are kept for the next run."""

_SUITE = "SELECT id, project, path, hash, name, cases FROM suites"

_Text = TypeVar("_Text")


def values_in(table: str, column: str) -> str:
    """Returns a statement that finds the values of a column that begins an index: by one step of the index for each,
    however many rows there are."""
    return f"""
    WITH RECURSIVE each({column}) AS (
        SELECT min({column}) FROM {table}
        UNION ALL SELECT (SELECT min({column}) FROM {table} WHERE {column} > each.{column})
        FROM each WHERE {column} IS NOT NULL)
    SELECT {column} FROM each WHERE {column} IS NOT NULL"""


class StoredRows:
    """The rows of a `History`."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._connection = open_for_reading(file)
        self._as_of: int | None = None
        """The state of the file in which the following was read."""
        self._suites: dict[int, SuiteRef] = {}
        self._damaged_suites: dict[Any, str] = {}
        """Why some of them cannot be read, by their ids."""
        self._cut_texts: dict[int, CutText] = {}
        self._shared_texts: dict[int, bytes] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # Runs

    def _runs(self, statement: str, values: Sequence[Any], damaged: Say | None = None) -> list[RunRow]:
        """Returns runs. Damaged ones are reported to `damaged`; without it, raises DamagedError."""
        return list(self._each_run(statement, values, damaged))

    def _each_run(self, statement: str, values: Sequence[Any], damaged: Say | None = None) -> Iterator[RunRow]:
        """Yields runs, as of one moment."""
        with self._at_one_moment(), as_history_errors(self.file):
            for row in self._cursor(statement, values):
                try:
                    try:  # without a context manager, which takes its time for each run
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
            loop, named, arguments, repaired = later
            if latency is None:
                raise ValueError("latency_ms must be a number")
            summary = RunSummary(
                *(suite.key, case_id, case_name, model, repeat, status, score, reason),
                *(latency, first, sent, got, cost, bool(asked), bool(broken), grading_from(options)),
                *(began, ended, bool(is_fork), loop, named or (), arguments or (), repaired or ()),
            )
        return RunRow(
            *(id_, batch, place, suite, case_id, case_name, model, bool(of_suite), repeat, by, bool(is_fork), summary)
        )

    # Suites, and what runs share

    def _suite(self, id_: int) -> SuiteRef:
        if id_ not in self._suites and id_ not in self._damaged_suites:
            self._take_suites(self._stored(f"{_SUITE} WHERE id = ?", (id_,)))
        if id_ not in self._suites:
            raise ValueError(self._damaged_suites.get(id_, f"its suite {id_} is not there"))
        return self._suites[id_]

    def _versions(self, key: str) -> list[int]:
        """Returns the ids of a suite as it was at any time; `key` is a `SuiteRef.key`."""
        found: list[tuple[Any, ...]] = []
        for (stored,) in self._stored(values_in("suites", "project"), ()):
            try:
                project = folder_of_stored(self.file, columns.path(stored))
            except ValueError:  # its suites are damaged
                continue
            paths = (key, key.removeprefix(project).removeprefix("/"))
            found += self._stored(f"{_SUITE} WHERE project = ? AND path IN (?, ?)", (stored, *paths))
        self._take_suites(found)
        return [row[0] for row in found if row[0] in self._suites and self._suites[row[0]].key == key]

    def _take_suites(self, rows: Sequence[tuple[Any, ...]]) -> None:
        for row in rows:
            try:
                id_, project, *others = columns.read(columns.SUITE, row)
            except ValueError as error:
                self._damaged_suites[row[0]] = f"its suite {row[0]}: {error}"
            else:
                self._suites[id_] = SuiteRef(id_, folder_of_stored(self.file, project), *others)

    def _cut_text(self, suite: int) -> CutText:
        """Returns the text of a suite, to cut cases out of it. Raises ValueError when it cannot be read."""
        if suite not in self._cut_texts:
            text, blocks = self._stored("SELECT text, blocks FROM suites WHERE id = ?", (suite,))[0]
            cut = CutText(unpacked(text), unpacked_blocks(blocks) if blocks is not None else ())
            _keep(self._cut_texts, suite, cut)
        return self._cut_texts[suite]

    def _shared_text(self, id_: int | None) -> bytes | None:
        """Returns a text that several runs share; `id_` is how a run refers to it. Raises ValueError when it is missing
        or cannot be read."""
        if id_ is None:
            return None
        if id_ not in self._shared_texts:
            found = self._stored("SELECT text FROM shared WHERE id = ?", (id_,))
            if not found:
                raise ValueError("what it shares with other runs is missing")
            _keep(self._shared_texts, id_, unpacked_bytes(found[0][0]))
        return self._shared_texts[id_]

    # Rows

    def _rows(
        self, what: str, wanted: Mapping[str, columns.Reader], statement: str, values: Sequence[Any]
    ) -> list[list[Any]]:
        """Returns rows whose every column has a valid value; `what` describes them in errors."""
        found = self._stored(statement, values)
        with self._damage_of(what):
            return [columns.read(wanted, row) for row in found]

    def _stored(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with as_history_errors(self.file):
            return list(self._cursor(statement, values))

    def _cursor(self, statement: str, values: Sequence[Any]) -> sqlite3.Cursor | tuple[()]:
        if self._connection is None:
            return ()
        bound = [columns.stored(value) if isinstance(value, str) else value for value in values]
        return self._connection.execute(statement, bound)

    @contextmanager
    def _at_one_moment(self) -> Iterator[None]:
        """Reads within it are consistent, although another program may begin and remove batches meanwhile."""
        connection = self._connection
        if connection is None or connection.in_transaction:
            yield
            return
        with as_history_errors(self.file):
            connection.execute("BEGIN")
        try:
            with as_history_errors(self.file):
                self._forget_what_changed(connection)
            yield
        finally:
            if connection.in_transaction:  # SQLite may have ended it itself, over an error
                with as_history_errors(self.file):
                    connection.execute("ROLLBACK")  # nothing was written

    def _forget_what_changed(self, connection: sqlite3.Connection) -> None:
        """The numbers of removed rows may have been reused by now, if another program has written."""
        (state,) = connection.execute("PRAGMA data_version").fetchone()
        if state != self._as_of:
            self._as_of = state
            for known in (self._suites, self._damaged_suites, self._cut_texts, self._shared_texts):
                known.clear()

    @contextmanager
    def _damage_of(self, what: str) -> Iterator[None]:
        """Raises DamagedError for what SQLite does not detect, because it does not know what its values mean."""
        try:
            yield
        except DAMAGE as error:
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


def _keep(texts: dict[int, _Text], id_: int, text: _Text) -> None:
    if len(texts) >= _TEXTS_AT_HAND:
        del texts[next(iter(texts))]
    texts[id_] = text
