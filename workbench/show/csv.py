"""Blocks as CSV (RFC 4180).

A spreadsheet takes a cell that begins with `=`, `+`, `-`, `@`, a tab or a line break for a formula, also where it is
quoted: such a text begins with an apostrophe here.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from typing import Any

from workbench.show.doc import Column, Row, Table
from workbench.show.visible import visible

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How a text begins that a spreadsheet takes for a formula."""
_MAX_CELL_CHARS = 32_767
"""Characters of a cell that spreadsheets keep."""
CUT = " … (cut)"


def table_rows(shown: Table[Row]) -> Iterator[str]:
    """Yield the lines of a table: its numbers as they are, each under the name of its column."""
    columns = [column for column in shown.columns if not column.passing]
    return csv_rows({name: raw for column in columns for name, raw in _raws(column, row)} for row in shown.rows)


def _raws(column: Column[Row], row: Row) -> Iterable[tuple[str, Any]]:
    raw = column.cell(row).raw
    return raw.items() if isinstance(raw, Mapping) else ((column.name.replace(" ", "_"), raw),)


def csv_rows(records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table, the names of the columns first; nothing without records."""
    text = StringIO()
    writer = csv.writer(text)
    for number, record in enumerate(records):
        if number == 0:
            writer.writerow(record)
        writer.writerow(map(_cell, record.values()))
        yield text.getvalue()
        text.seek(0)
        text.truncate()


def _cell(value: Any) -> str | int | float | None:
    if value is None or isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else value
    plain = "\n".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    shown = visible(plain)
    if shown.startswith(_FORMULA):
        shown = f"'{shown}"
    return shown if len(shown) <= _MAX_CELL_CHARS else shown[: _MAX_CELL_CHARS - len(CUT)] + CUT
