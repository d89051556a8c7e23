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
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = [row for table in tables for row in connection.execute(f"SELECT * FROM {table}")]
    return [text for row in rows for value in row for text in _texts(value)]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, bytes):
        yield zlib.decompress(value).decode("utf-8", "surrogatepass")
    elif isinstance(value, str):
        yield value
