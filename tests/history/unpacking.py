"""Everything that a history holds, as text: what is packed in it too, in which no word would ever be found as it is."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path


def texts_in(history: Path) -> list[str]:
    """Every text in every column of every table."""
    with closing(sqlite3.connect(history)) as connection:
        connection.row_factory = sqlite3.Row
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = [dict(row) for table in tables for row in connection.execute(f"SELECT * FROM {table}")]
        shared = {row["id"]: zlib.decompress(row["text"]) for row in connection.execute("SELECT * FROM shared")}
    return [
        text for row in rows for value in row.values() for text in _texts(value, shared.get(row.get("sample"), b""))
    ]


def _texts(value: object, sample: bytes) -> Iterator[str]:
    if isinstance(value, bytes):
        # The beginning of a text may end within a character.
        yield zlib.decompressobj(zdict=sample).decompress(value).decode("utf-8", "replace")
    elif isinstance(value, str):
        yield value
