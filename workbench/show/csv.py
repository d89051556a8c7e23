"""Tables and records as CSV (RFC 4180).

A spreadsheet reads a cell that begins with `=`, `+`, `-`, `@`, a tab or a line break as a formula, even if it is
quoted. An apostrophe before the text prevents this."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from typing import Any

from workbench.show.doc import Column, Row, Table
from workbench.show.visible import visible

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""First characters of a text that a spreadsheet reads as a formula."""
_MAX_CELL_CHARS = 32_767
"""Maximum number of characters in a cell: the limit of Excel."""
CUT = " … (cut)"


def table_rows(shown: Table[Row]) -> Iterator[str]:
    """Yield a table as lines of CSV, with the raw values of its cells. The first line has the names of the columns."""
    columns = shown.lasting_columns
    return csv_rows(_record(columns, row) for row in shown.rows)


def _record(columns: Iterable[Column[Row]], row: Row) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for column in columns:
        raw = column.cell(row).raw
        # A cell may hold several named values, such as a count for each status.
        if isinstance(raw, Mapping):
            record.update(raw)
        else:
            record[column.name.replace(" ", "_")] = raw
    return record


def csv_rows(records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield records as lines of CSV, after a line with the names of the columns.

    If there are no records, yield nothing."""
    text = StringIO()
    writer = csv.writer(text)
    for number, record in enumerate(records):
        if number == 0:
            writer.writerow(record)
        writer.writerow(map(_cell, record.values()))
        # The writer of `csv` needs a file, so one buffer is written and emptied for each row.
        yield text.getvalue()
        text.seek(0)
        text.truncate()


def _cell(value: Any) -> str | int | float | None:
    # `bool` comes first because it is a subclass of `int`, and `true` must not become `1`.
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, list | tuple):
        value = "\n".join(map(str, value))
    shown = visible(str(value))
    if shown.startswith(_FORMULA):
        # An apostrophe in front makes a spreadsheet show the text as it is.
        shown = f"'{shown}"
    if len(shown) > _MAX_CELL_CHARS:
        shown = shown[: _MAX_CELL_CHARS - len(CUT)] + CUT
    return shown
