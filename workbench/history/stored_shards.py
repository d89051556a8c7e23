"""The shards in histories: batches that have some runs of a plan, which `merging` puts together."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from workbench.dataclasses import dataclass
from workbench.history import columns
from workbench.history.claims import claimed
from workbench.history.database import as_history_errors, open_for_reading
from workbench.history.outline import Outline
from workbench.history.packing import unpacked
from workbench.history.reading import DAMAGE
from workbench.history.records import HistoryError, MergedShards, ShardRef, what_is_asked
from workbench.trajectory.messages import JsonValue

PLANNED = "FROM batches JOIN plans ON batch = id WHERE uid IS NOT NULL"
"""The batches that have some runs of a plan, in SQL."""

_SHARDS = f"SELECT id, uid, settings, ended_at {PLANNED} AND (? IS NULL OR id = ?) ORDER BY id"


@dataclass(frozen=True)
class StoredShard:
    """A batch of a history that has some runs of a plan: one shard, or several that were merged, where `ref` is `None`.
    `shards` says which: each which one of how many."""

    file: Path
    number: int
    uid: str
    ref: ShardRef | None
    plan_id: str | None
    shards: tuple[tuple[int, int], ...]
    goes_on: bool

    def __str__(self) -> str:
        which = f"{self.ref}, " if self.ref is not None else ""
        return f"{which}batch {self.number} of {self.file}"


def shards_in(file: Path, only: int | None = None) -> list[StoredShard]:
    """Return the batches of a history that have runs of a plan, the oldest first, or the `only` one of a number. Raises
    HistoryError."""
    with as_history_errors(file):
        if not file.exists():
            raise HistoryError(f"there is no history {file}")
        connection = open_for_reading(file)
        if connection is None:
            raise HistoryError(f"{file} has no batch: was {file.name}-wal, which belongs to it, left behind?")
        with closing(connection):
            rows = connection.execute(_SHARDS, (only, only)).fetchall()
    found = []
    for number, uid, settings, ended_at in rows:
        try:
            read = columns.json_object(settings)
            ref, merged = ShardRef.of_batch(read), MergedShards.of_batch(read)
            if ref is not None:
                merged = MergedShards(ref.plan_id, ((ref.index, ref.of),))
            if merged is None:
                raise ValueError("which shard it is cannot be read")
            goes_on = ended_at is None and claimed(file, number)
            found.append(StoredShard(file, number, columns.text(uid), ref, merged.plan_id, merged.shards, goes_on))
        except DAMAGE as error:
            raise HistoryError(f"batch {number} of {file} is damaged: {error}") from error
    return found


def what_differs(one: StoredShard, other: StoredShard) -> list[str]:
    """Return what makes two shards those of different plans. Raises HistoryError."""
    (settings, outline), (others, another) = _plan_of(one), _plan_of(other)
    found = [f"ids {one.plan_id} and {other.plan_id}"] if one.plan_id != other.plan_id else []
    paths = sorted({path for path, _ in {*outline.suites} ^ {*another.suites}})
    found += [f"suite {path}" for path in paths]
    for kind in ("models", "judges"):
        here, there = settings.get(kind), others.get(kind)
        if isinstance(here, dict) and isinstance(there, dict):
            found += [f"{kind[:-1]} {name}" for name in {**here, **there} if here.get(name) != there.get(name)]
    if not paths and (outline.shapes, outline.blocks) != (another.shapes, another.blocks):
        found.append("cases, repeats, variants or graders")
    if any(settings.get(key) != others.get(key) for key in ("execute", "execute_all")):
        found.append("what is executed")
    return found


def _plan_of(shard: StoredShard) -> tuple[dict[str, JsonValue], Outline]:
    with reading(shard.file) as source:
        try:
            row = source.execute(f"SELECT settings, outline {PLANNED} AND id = ?", (shard.number,)).fetchone()
            return what_is_asked(columns.json_object(row[0])), Outline.read(unpacked(row[1]))
        except DAMAGE as error:
            raise HistoryError(f"{shard} is damaged: {error}") from error


@contextmanager
def reading(file: Path) -> Iterator[sqlite3.Connection]:
    """A history as it is at one moment."""
    with as_history_errors(file):
        connection = open_for_reading(file)
    if connection is None:
        raise HistoryError(f"{file} has no batch any more")
    with closing(connection):
        connection.execute("BEGIN")
        yield connection
