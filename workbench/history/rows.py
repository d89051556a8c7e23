"""Writes single entries of a history as rows of its tables. Each function is called within a transaction of its
caller."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from workbench.config.history_file import folder_as_kept
from workbench.config.project import path_in
from workbench.dataclasses import dataclass
from workbench.grading.grade import Status
from workbench.grading.run_summary import RunSummary, summary_of
from workbench.history.packing import grading_text, packed, packed_blocks, packed_events, packed_outcome
from workbench.history.records import DoneRun, NewBatch
from workbench.suite.excerpt import case_blocks
from workbench.suite.loading import SuiteFile
from workbench.trajectory.typed_json import compact_json

_LARGEST = (1 << 63) - 1


def begin_batch(connection: sqlite3.Connection, history: Path, batch: NewBatch) -> int:
    """Write the plan of a batch into the file `history`. Returns the batch's number."""
    number = connection.execute(
        "INSERT INTO batches (kind, started_at, program, settings, planned) VALUES (?, ?, ?, ?, ?)",
        (batch.kind, batch.started_at, batch.program, compact_json(batch.settings), len(batch.runs)),
    ).lastrowid
    assert number is not None
    files = {run.file.path: run.file for run in batch.runs}
    suites = {path: _suite(connection, history, file, batch.projects[path]) for path, file in files.items()}
    planned = Counter((run.file.path, run.model) for run in batch.runs)
    cases = Counter((path, model) for path, model, _ in {(run.file.path, run.model, run.case_id) for run in batch.runs})
    connection.executemany(
        "INSERT INTO parts (batch, suite, model, planned, cases) VALUES (?, ?, ?, ?, ?)",
        [(number, suites[path], stored(model), runs, cases[path, model]) for (path, model), runs in planned.items()],
    )
    connection.executemany(
        "INSERT INTO runs (batch, place, suite, case_id, case_name, model, model_of_suite, repeat, decided_by, is_fork,"
        " run_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                *(number, place, suites[run.file.path], stored(run.case_id), stored(run.case_name)),
                *(stored(run.model), run.model_of_suite, run.repeat, run.by, run.is_fork, run.run_id),
            )
            for place, run in enumerate(batch.runs)
        ],
    )
    return number


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


@dataclass(frozen=True, slots=True)
class PackedRun:
    """A finished run, compressed as it will be in the file. `values` are its figures by the names of their columns."""

    run_id: str
    status: Status
    values: Mapping[str, object]
    events: bytes
    outcome: bytes


def pack_run(run: DoneRun) -> PackedRun | None:
    """Compress a run. Returns `None` for one that was stopped before its first event, which counts as never begun.

    Raises TypeError, ValueError or RecursionError when it holds what cannot be written.
    """
    result = run.result
    if result.status == "stopped" and not run.events:
        return None
    values = figure_values(summary_of(result, began_ms=run.began_ms, ended_ms=run.ended_ms))
    return PackedRun(run.run_id, result.status, values, packed_events(run.events), packed_outcome(result))


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
    columns = ", ".join(f"{name} = ?" for name in run.values)
    connection.execute(
        f"UPDATE runs SET run_id = ?, {columns} WHERE id = ?", (run.run_id, *run.values.values(), run_row)
    )
    connection.execute(
        "INSERT OR REPLACE INTO details (run, events, outcome) VALUES (?, ?, ?)", (run_row, run.events, run.outcome)
    )
    counted = f"{run.status} = {run.status} + 1" + (", stopped = stopped - 1" if before == "stopped" else "")
    if before != run.status:
        connection.execute(
            f"UPDATE parts SET {counted} WHERE batch = ? AND suite = ? AND model = ?", (batch, suite, model)
        )


def figure_values(figures: RunSummary) -> Mapping[str, object]:
    """Returns the figures of a run by the names of their columns."""
    return {
        "status": figures.status,
        "score": figures.score,
        "reason": stored(figures.reason),
        "broken": figures.is_broken,
        "options": grading_text(figures.grading),
        "began_ms": figures.began_ms,
        "ended_ms": figures.ended_ms,
        "latency_ms": figures.latency_ms,
        "loop_ms": figures.loop_ms,
        "first_token_ms": figures.first_token_ms,
        "input_tokens": _whole(figures.input_tokens),
        "output_tokens": _whole(figures.output_tokens),
        "cost_usd": figures.cost_usd,
        "asked": figures.asked,
    }


def stored(text: str | None) -> str | bytes | None:
    """Returns a text as SQLite can hold it: one with lone surrogates, which UTF-8 lacks, as its bytes."""
    if text is None or text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def _whole(number: int | None) -> int | None:
    """Returns a count that SQLite can hold; a provider's counts may be nonsense."""
    return None if number is None else max(min(number, _LARGEST), -_LARGEST)


def _suite(connection: sqlite3.Connection, history: Path, file: SuiteFile, project: Path) -> int:
    key = (stored(folder_as_kept(history, project)), stored(path_in(project, file.path)), file.hash)
    known = connection.execute("SELECT id FROM suites WHERE project = ? AND path = ? AND hash = ?", key).fetchone()
    if known is not None:
        return int(known[0])
    assert file.suite is not None
    blocks = case_blocks(file)
    added = connection.execute(
        "INSERT INTO suites (project, path, hash, name, cases, text, blocks) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            *key,
            *(stored(file.suite.name), len(file.suite.cases), packed(file.text)),
            packed_blocks(blocks) if blocks is not None else None,
        ),
    ).lastrowid
    assert added is not None
    return added
