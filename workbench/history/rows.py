"""Writes single entries of a history as rows of its tables. Each function is called within a transaction of its
caller."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.config.history_file import stored_folder
from workbench.config.project import path_in
from workbench.grading.status import Status
from workbench.history import columns
from workbench.history.columns import stored
from workbench.history.packing import packed, packed_blocks
from workbench.history.records import NewBatch
from workbench.history.run_packing import PackedRun, SharedText
from workbench.suite.excerpt import case_blocks
from workbench.suite.loading import SuiteFile
from workbench.trajectory.typed_json import compact_json

if TYPE_CHECKING:
    from workbench.history.outline import Outline


class NewSuite:
    """A suite of a new batch, in the project that is stored as `folder`."""

    def __init__(self, history: Path, file: SuiteFile, project: Path) -> None:
        self.folder = stored_folder(history, project)
        self.path = stored(path_in(project, file.path))
        self._file = file

    @cached_property
    def row(self) -> tuple[Any, ...]:
        """Its columns from the path on; of a large suite this takes seconds."""
        file = self._file
        assert file.suite is not None
        blocks = case_blocks(file)
        return (
            *(self.path, file.hash, stored(file.suite.name), len(file.suite.cases), packed(file.text)),
            packed_blocks(blocks) if blocks is not None else None,
        )

    def known(self, connection: sqlite3.Connection) -> int | None:
        """Returns its id, `None` where it is not there yet."""
        return _known_suite(connection, self.folder, self.path, self._file.hash)

    def id(self, connection: sqlite3.Connection) -> int:
        """Returns its id, after writing it where it is not there yet."""
        known = self.known(connection)
        return known if known is not None else insert_suite(connection, self.folder, self.row)


class NewPlan:
    """The plan of a new batch, to be written into the file `history`: made before the transaction, because a large one
    takes seconds."""

    def __init__(self, connection: sqlite3.Connection, history: Path, batch: NewBatch) -> None:
        self.batch = batch
        files = {run.file.path: run.file for run in batch.runs}
        planned = Counter((run.file.path, run.model) for run in batch.runs)
        cases = Counter(
            (path, model) for path, model, _ in {(run.file.path, run.model, run.case_id) for run in batch.runs}
        )
        if batch.shard is not None:
            files |= {file.path: file for file in batch.shard.files}
            for of_plan, model in batch.shard.outline.parts:
                planned.setdefault((batch.shard.files[of_plan].path, model), 0)
        self.parts = [(path, stored(model), runs, cases[path, model]) for (path, model), runs in planned.items()]
        """Of each suite with each model: how many runs and cases are planned."""
        self.suites = {path: NewSuite(history, file, batch.projects[path]) for path, file in files.items()}
        for suite in self.suites.values():
            if suite.known(connection) is None:
                assert suite.row


def begin_batch(connection: sqlite3.Connection, history: Path, batch: NewBatch) -> int:
    """Write a batch with its whole plan into the file `history`. Returns the batch's number."""
    plan = NewPlan(connection, history, batch)
    number = start_batch(connection, plan)
    plan_runs(connection, number, plan, 0, len(batch.runs))
    return number


def start_batch(connection: sqlite3.Connection, plan: NewPlan) -> int:
    """Write a batch, of whose plan `plan_runs` writes the runs. Returns the batch's number."""
    batch = plan.batch
    number = connection.execute(
        "INSERT INTO batches (kind, started_at, program, settings, planned, uid) VALUES (?, ?, ?, ?, ?, ?)",
        (batch.kind, batch.started_at, batch.program, compact_json(batch.settings), len(batch.runs), batch.uid),
    ).lastrowid
    assert number is not None
    ids = {path: suite.id(connection) for path, suite in plan.suites.items()}
    connection.executemany(
        "INSERT INTO parts (batch, suite, model, planned, cases) VALUES (?, ?, ?, ?, ?)",
        [(number, ids[path], *part) for path, *part in plan.parts],
    )
    if batch.shard is not None:
        write_plan(connection, number, [ids[file.path] for file in batch.shard.files], batch.shard.outline)
    return number


def planned_runs(connection: sqlite3.Connection, number: int) -> int:
    """Returns how many runs of the plan of a batch are written."""
    return int(connection.execute("SELECT count(*) FROM runs WHERE batch = ?", (number,)).fetchone()[0])


def plan_runs(connection: sqlite3.Connection, number: int, plan: NewPlan, start: int, end: int) -> None:
    """Write runs of the plan of a batch, from one up to another one, counted from 0."""
    ids = {path: suite.id(connection) for path, suite in plan.suites.items()}
    batch = plan.batch
    connection.executemany(
        "INSERT INTO runs (batch, place, suite, case_id, case_name, model, model_of_suite, repeat, decided_by, is_fork,"
        " run_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                *(number, place, ids[run.file.path], stored(run.case_id), stored(run.case_name)),
                *(stored(run.model), run.model_of_suite, run.repeat, run.by, run.is_fork, run.run_id),
            )
            for place, run in zip(batch.places[start:end], batch.runs[start:end], strict=True)
        ),
    )


def write_plan(connection: sqlite3.Connection, batch: int, suites: Sequence[int], outline: Outline) -> None:
    """Write the whole plan of a shard; `suites` are the ids of those of the outline."""
    connection.execute(
        "INSERT INTO plans (batch, suites, outline) VALUES (?, ?, ?)",
        (batch, compact_json(suites), packed(outline.text)),
    )


def reopen_batch(connection: sqlite3.Connection, number: int) -> str:
    """Mark a batch as going on again. Returns when it began. Raises LookupError when there is none."""
    row = connection.execute("SELECT started_at FROM batches WHERE id = ?", (number,)).fetchone()
    if row is None:
        raise LookupError(f"batch {number} is not in it")
    connection.execute("UPDATE batches SET ended_at = NULL WHERE id = ?", (number,))
    return str(row[0])


def is_batch(connection: sqlite3.Connection, number: int, started_at: str) -> bool:
    """Returns whether there is a batch of that number that began at that time."""
    found = connection.execute("SELECT 1 FROM batches WHERE id = ? AND started_at = ?", (number, started_at)).fetchone()
    return found is not None


def end_batch(connection: sqlite3.Connection, number: int, ended_at: str) -> None:
    """Mark a batch as ended."""
    connection.execute("UPDATE batches SET ended_at = ? WHERE id = ?", (ended_at, number))


def write_run(connection: sqlite3.Connection, batch: int, place: int, run: PackedRun) -> None:
    """Write the outcome of a planned run. A row that has one already is left unchanged, because another program was
    first. Raises LookupError when its batch no longer exists."""
    row = connection.execute(
        "SELECT id, suite, model, status FROM runs WHERE batch = ? AND place = ?", (batch, place)
    ).fetchone()
    if row is None:
        raise LookupError(f"batch {batch} is no longer in it")
    run_row, suite, model, before = row
    if before not in (None, "stopped"):
        return
    changes = ", ".join(f"{name} = ?" for name in run.values)
    connection.execute(
        f"UPDATE runs SET run_id = ?, {changes} WHERE id = ?", (run.run_id, *run.values.values(), run_row)
    )
    connection.execute(
        "INSERT OR REPLACE INTO details (run, events, outcome, tools, sample) VALUES (?, ?, ?, ?, ?)",
        (
            run_row,
            run.events,
            run.outcome,
            _shared(connection, batch, run.tools),
            _shared(connection, batch, run.sample),
        ),
    )
    ended = run.status.column
    made_again = f", {before} = {before} - 1" if before == Status.STOPPED else ""
    counted = f"{ended} = {ended} + 1{made_again}"
    if before != run.status:
        connection.execute(
            f"UPDATE parts SET {counted} WHERE batch = ? AND suite = ? AND model = ?", (batch, suite, model)
        )
    count_calls(connection, (batch, suite, model), run.values["arguments"])


def count_calls(connection: sqlite3.Connection, part: tuple[Any, ...], arguments: object) -> None:
    """Add the checked calls of a run to those of its part: batch, suite and model. `arguments` is the column of its
    row."""
    if arguments is None:
        return
    counts = columns.tool_arguments(arguments)
    numbers = sum(tool.valid for tool in counts), sum(tool.checked for tool in counts)
    connection.execute(
        "UPDATE parts SET valid_calls = valid_calls + ?, checked_calls = checked_calls + ?"
        " WHERE batch = ? AND suite = ? AND model = ?",
        (*numbers, *part),
    )


def _shared(connection: sqlite3.Connection, batch: int, text: SharedText | None) -> int | None:
    """Returns the id of a text that runs of a batch have in common; it is written with the first of them."""
    if text is None:
        return None
    known = connection.execute("SELECT id FROM shared WHERE batch = ? AND hash = ?", (batch, text.hash)).fetchone()
    if known is not None:
        return int(known[0])
    return connection.execute(
        "INSERT INTO shared (batch, hash, text) VALUES (?, ?, ?)", (batch, text.hash, text.packed)
    ).lastrowid


def insert_suite(connection: sqlite3.Connection, folder: str, row: Sequence[Any]) -> int:
    """Write a suite of the project that is stored as `folder`, unless it is there; `row` are path, hash, name, number
    of cases, text and blocks. Returns its id."""
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
