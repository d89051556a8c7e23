"""All texts of a history, including packed ones, in which a search for a word would find nothing."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from workbench.history.packing import texts_in_block, texts_of_run


def texts_in(history: Path) -> list[str]:
    """Return every text in every column of every table."""
    with closing(sqlite3.connect(history)) as connection:
        connection.row_factory = sqlite3.Row
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = [dict(row) for table in tables for row in connection.execute(f"SELECT * FROM {table}")]
        samples = {
            blob: zlib.decompress(sample)
            for sample, *blobs in connection.execute(
                "SELECT sampled.text, blocked.text, events, outcome FROM details JOIN shared AS sampled"
                " ON sampled.id = sample LEFT JOIN shared AS blocked ON blocked.id = block"
            )
            for blob in blobs
        }
    return [text for row in rows for value in row.values() for text in _texts(value, samples)]


def _texts(value: object, samples: dict[bytes | None, bytes]) -> Iterator[str]:
    if isinstance(value, bytes):
        if value:
            # The beginning of a text may end within a character.
            unpacked = zlib.decompressobj(zdict=samples.get(value, b"")).decompress(value)
            yield unpacked.decode("utf-8", "replace")
    elif isinstance(value, str):
        yield value


def store_alone(history: Path) -> None:
    """Store the texts of each run as earlier versions did: compressed individually, with their sample."""
    with closing(sqlite3.connect(history)) as connection, connection:
        for run, block, nth, sample in connection.execute(
            "SELECT run, blocked.text, nth, sampled.text FROM details JOIN shared AS blocked ON blocked.id = block"
            " LEFT JOIN shared AS sampled ON sampled.id = sample"
        ).fetchall():
            dictionary = zlib.decompress(sample) if sample else b""
            packed = []
            for text in texts_of_run(texts_in_block(block, dictionary)[nth]):
                packing = zlib.compressobj(zdict=dictionary)
                packed.append(packing.compress(text.encode("utf-8", "surrogatepass")) + packing.flush())
            connection.execute(
                "UPDATE details SET events = ?, outcome = ?, block = NULL, nth = NULL, facts = NULL WHERE run = ?",
                (*packed, run),
            )
        connection.execute(
            "DELETE FROM shared WHERE id NOT IN (SELECT tools FROM details WHERE tools IS NOT NULL)"
            " AND id NOT IN (SELECT sample FROM details WHERE sample IS NOT NULL)"
        )
