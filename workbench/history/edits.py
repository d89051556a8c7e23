"""Changes an existing history: names batches, adds regrades and removes batches.

Every function raises HistoryError."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from workbench.grading.grade import RunResult
from workbench.grading.run_summary import RunSummary
from workbench.history.claims import claim
from workbench.history.columns import stored
from workbench.history.database import (
    ReportProblem,
    as_history_errors,
    open_for_writing,
    transaction,
    yielding_step,
)
from workbench.history.packing import arguments_text, case_texts_json, grading_text, metrics_text, packed_outcome
from workbench.history.records import NAMED_AFTER, CaseTexts, HistoryError
from workbench.history.rows import values_in

# Other programs cannot write during a step, so steps must be short.
MAX_RUNS_PER_STEP = 500
"""The number of runs or grades that one step writes or removes."""
MAX_PAGES_PER_STEP = 1_000
"""The number of free pages that one step returns to the disk."""

REWRITTEN_FILE_BYTES = 128 << 20
"""The size up to which VACUUM rewrites a file after batches were removed from it."""
MAX_TEXTS_PER_STEP = 100
"""The number of shared texts, such as blocks, that one step removes."""

_WITHOUT_BATCH = f"{values_in('runs', 'batch')} AND batch NOT IN (SELECT id FROM batches)"
_SHARED_WITHOUT_BATCH = f"{values_in('shared', 'batch')} AND batch NOT IN (SELECT id FROM batches)"


def check_name(name: str) -> None:
    """Raise HistoryError unless the name is one line of text without blanks at its ends, and not a number.

    A number would be ambiguous, because `7` and `#7` already mean batch 7."""
    if not name.strip() or name != name.strip() or name.removeprefix("#").isdecimal():
        raise HistoryError(f"a batch cannot be called {name!r}: a name cannot be a number or begin with a space")
    if not name.isprintable():
        raise HistoryError(f"a batch cannot be called {name!r}: a name is one line of text")


def name_batch(file: Path, number: int, name: str | None, report: ReportProblem) -> None:
    """Name a batch, or remove its name with `None`. Another batch with that name loses the name.

    The settings of the named batch store the number of the batch that lost the name."""
    if name is not None:
        check_name(name)
    with _changing(file, report) as connection:
        had_it = connection.execute("SELECT id FROM batches WHERE name = ?", (stored(name),)).fetchone()
        connection.execute(_NAMED_AFTER, (*(had_it or (None,)), number, stored(name)))
        connection.execute("UPDATE batches SET name = NULL WHERE name = ?", (stored(name),))
        if not connection.execute("UPDATE batches SET name = ? WHERE id = ?", (stored(name), number)).rowcount:
            raise HistoryError(f"there is no batch {number} in {file}")


# In a damaged batch, `settings` may be any text. This statement then changes nothing, and the batch is named without
# it.
_NAMED_AFTER = f"""UPDATE batches
    SET settings = json_patch(settings, json_object('{NAMED_AFTER}', ?))
    WHERE id = ? AND name IS NOT ? AND CASE WHEN json_valid(settings) THEN json_type(settings) = 'object' END"""


def add_grading(
    file: Path,
    batch: int,
    graded_at: str,
    program: str,
    regraded: Iterable[tuple[int, RunSummary, RunResult]],
    report: ReportProblem,
    texts: CaseTexts = MappingProxyType({}),
) -> None:
    """Store a regrade: new grades of a batch's runs, in addition to the old grades.

    `regraded` yields the row id of each run with its new figures and result. Runs are consumed one at a time and
    written in small steps. Readers see the regrade only when it is complete. `texts` are the texts of the cases that
    have changed since the runs. Raises HistoryError, also if the batch is running."""
    with ExitStack() as claims, as_history_errors(file), closing(open_for_writing(file, report)) as connection:
        claims.callback(claim(file, batch).release)
        # The row of the regrade is written last, so that readers do not see its grades before they are complete.
        # Foreign keys would require the row first, so they are off.
        connection.execute("PRAGMA foreign_keys = OFF")
        _clear_unfinished(connection, batch)
        grading: int | None = None
        try:
            rows = iter(regraded)
            while some := list(islice(rows, MAX_RUNS_PER_STEP)):
                # Compress texts before the transaction, which must be short.
                packed = [_regrade_row(*each) for each in some]
                with transaction(connection):
                    if grading is None:
                        grading = _number(connection, _NEXT_GRADING)
                    connection.executemany(
                        "INSERT INTO regrades (grading, run, status, score, reason, broken, options, outcome, metrics,"
                        " arguments, user_outcome) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        [(grading, *row) for row in packed],
                    )
            with transaction(connection):
                if not connection.execute("SELECT 1 FROM batches WHERE id = ?", (batch,)).fetchone():
                    raise HistoryError(f"batch {batch} is no longer in {file}")
                connection.execute(
                    "INSERT INTO gradings (id, batch, graded_at, program, hashes) VALUES (?, ?, ?, ?, ?)",
                    (grading or _number(connection, _NEXT_GRADING), batch, graded_at, program, case_texts_json(texts)),
                )
        except BaseException:
            # Grades that cannot be deleted now are deleted by the batch's next regrade.
            if grading is not None:
                with suppress(sqlite3.Error):
                    _clear_grading(connection, grading)
            raise


def _regrade_row(run: int, figures: RunSummary, result: RunResult) -> tuple[object, ...]:
    verdict = figures.status, figures.score, stored(figures.reason), figures.is_broken
    outcome = packed_outcome(result)
    of_answers = metrics_text(figures), arguments_text(figures), figures.user_outcome
    return run, *verdict, grading_text(figures.grading), outcome, *of_answers


# The id must also differ from the id of a regrade that was never completed because its program was killed.
_NEXT_GRADING = (
    "SELECT max(coalesce((SELECT max(id) FROM gradings), 0), coalesce((SELECT max(grading) FROM regrades), 0)) + 1"
)
_UNFINISHED = f"""{values_in("regrades", "grading")} AND grading NOT IN (SELECT id FROM gradings)
    AND (SELECT batch FROM runs WHERE id = (SELECT min(run) FROM regrades WHERE regrades.grading = each.grading)) = ?"""
"""SQL for the incomplete regrades of a batch. Their program was killed while writing them."""


def _clear_unfinished(connection: sqlite3.Connection, batch: int) -> None:
    for (grading,) in connection.execute(_UNFINISHED, (batch,)).fetchall():
        _clear_grading(connection, grading)


def _clear_grading(connection: sqlite3.Connection, grading: int) -> None:
    removed = MAX_RUNS_PER_STEP
    while removed == MAX_RUNS_PER_STEP:
        with yielding_step(), transaction(connection):
            removed = connection.execute(
                "DELETE FROM regrades WHERE grading = ? AND run IN "
                "(SELECT run FROM regrades WHERE grading = ? ORDER BY run LIMIT ?)",
                (grading, grading, MAX_RUNS_PER_STEP),
            ).rowcount


def remove_batches(file: Path, numbers: Sequence[int], report: ReportProblem) -> int:
    """Remove batches with their runs and with suites that no other batch uses.

    Returns the number of unused bytes in the file. If one of the batches is running, none is removed. All batches
    disappear from lists at once. Their runs are deleted in small steps, between which other programs can write. The
    file then shrinks, unless it is a large file of an earlier version. If shrinking fails, `report` is called with the
    reason."""
    with ExitStack() as claims, as_history_errors(file), closing(open_for_writing(file, report)) as connection:
        for number in numbers:
            claims.callback(claim(file, number).release)
        _remove_batch_rows(connection, numbers)
        _delete_orphans(connection)
        try:
            _shrink(connection, file)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError as error:
            report(f"the batches are removed, but the history {file} could not be shrunk: {error}")
        return _number(connection, "PRAGMA freelist_count") * _number(connection, "PRAGMA page_size")


def _remove_batch_rows(connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Remove the rows of batches, but not yet their runs, in one transaction.

    If the program is killed afterwards, runs without a batch remain. No list shows them, and the next removal deletes
    them."""
    # With foreign keys, SQLite would delete all runs within this transaction, which takes seconds for a large batch.
    connection.execute("PRAGMA foreign_keys = OFF")
    with transaction(connection):
        for table, column in (("batches", "id"), ("parts", "batch"), ("gradings", "batch"), ("plans", "batch")):
            connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(number,) for number in numbers])
    connection.execute("PRAGMA foreign_keys = ON")


def _delete_orphans(connection: sqlite3.Connection) -> None:
    for (batch,) in connection.execute(_WITHOUT_BATCH).fetchall():
        removed = MAX_RUNS_PER_STEP
        while removed == MAX_RUNS_PER_STEP:
            with yielding_step(), transaction(connection):
                removed = connection.execute(
                    "DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE batch = ? ORDER BY place LIMIT ?)",
                    (batch, MAX_RUNS_PER_STEP),
                ).rowcount
    for (batch,) in connection.execute(_SHARED_WITHOUT_BATCH).fetchall():
        removed = MAX_TEXTS_PER_STEP
        while removed == MAX_TEXTS_PER_STEP:
            with yielding_step(), transaction(connection):
                removed = connection.execute(
                    "DELETE FROM shared WHERE id IN (SELECT id FROM shared WHERE batch = ? LIMIT ?)",
                    (batch, MAX_TEXTS_PER_STEP),
                ).rowcount
    with transaction(connection):
        connection.execute("DELETE FROM suites WHERE id NOT IN (SELECT suite FROM parts)")


def _shrink(connection: sqlite3.Connection, file: Path) -> None:
    # VACUUM rewrites the whole file while other programs wait. A large file returns its free pages in steps instead, if
    # it was created with auto_vacuum.
    if file.stat().st_size <= REWRITTEN_FILE_BYTES:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("VACUUM")
    elif _number(connection, "PRAGMA auto_vacuum"):
        while _number(connection, "PRAGMA freelist_count"):
            with yielding_step():
                connection.execute(f"PRAGMA incremental_vacuum({MAX_PAGES_PER_STEP})").fetchall()


def _number(connection: sqlite3.Connection, statement: str) -> int:
    return int(connection.execute(statement).fetchone()[0])


@contextmanager
def _changing(file: Path, report: ReportProblem) -> Iterator[sqlite3.Connection]:
    with as_history_errors(file), closing(open_for_writing(file, report)) as connection, transaction(connection):
        yield connection
