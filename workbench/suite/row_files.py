"""Reads the rows of a case: a file of CSV or JSON Lines in the suite's folder, or tables in the suite itself."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping
from io import StringIO
from itertools import islice
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Final

from pydantic import JsonValue

from workbench.dataclasses import dataclass
from workbench.encoding import BYTE_ORDER_MARK, SAVE_AS_UTF_8, csv_limit, utf_8_problem
from workbench.limits import MAX_ROWS, MAX_ROWS_BYTES
from workbench.suite.problems import kind_of_value, quoted
from workbench.suite.suite_folder import FolderFileError, open_in_folder, read_error_text

Row = Mapping[str, JsonValue]
"""The values of a row by the names of their columns."""

JSON_COLUMN_SUFFIX: Final = ":json"
"""Suffix of a column's name if the column's texts are JSON, in CSV or in a table of the suite."""

_DEEPEST = 64
"""Maximum depth of lists and objects in a value. The limit for a suite is the same."""


class RowsError(Exception):
    """Rows cannot be read. The message has the place, and `hint` is advice.

    `index` is the index of the faulty row among the suite's tables. It is `None` if a file or all rows are faulty."""

    def __init__(self, message: str, hint: str = "", index: int | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        self.index = index


@dataclass(frozen=True)
class Rows:
    """The rows of a case, at least one.

    `lines` are the lines of the rows in their file. There are none if the rows are tables in the suite."""

    rows: tuple[Row, ...]
    lines: tuple[int, ...] = ()
    file: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        names: dict[str, None] = {}
        for row in self.rows:
            names.update(dict.fromkeys(row))
        return tuple(names)

    def place(self, index: int) -> str:
        """Return the place of a row by its index, in words: `refunds.csv:3`, or `row 2` of the suite."""
        if self.lines:
            return f"{self.file}:{self.lines[index]}"
        return f"row {index + 1}"


def rows_of(each: object, folder: Path) -> Rows:
    """Read the rows of a case. `each` is the path of a file in the suite's folder, or a list of tables.

    Raises RowsError."""
    if isinstance(each, str):
        return _rows_in(each, folder)
    if not isinstance(each, list):
        raise RowsError(f"must be the path of a file, or a list of tables, not {kind_of_value(each)}", _FORMS)
    if not each:
        raise RowsError("must not be empty", "write at least one row, or remove the case")
    if len(each) > MAX_ROWS:
        raise RowsError(MAX_ROWS.exceeded(), MAX_ROWS.way_out)
    rows = []
    for index, element in enumerate(each):
        if not isinstance(element, dict):
            raise RowsError(f"a row must be a table, not {kind_of_value(element)}", "write { city = …, … }", index)
        try:
            rows.append(_row_of(element.items()))
        except ValueError as error:
            raise RowsError(str(error), index=index) from error
    return Rows(tuple(rows))


_FORMS: Final = 'write "rows.csv", "rows.jsonl", or [{ city = "Oslo" }, { city = "Bergen" }]'


def _rows_in(name: str, folder: Path) -> Rows:
    path = PurePosixPath(name)
    if not name or path.is_absolute() or PureWindowsPath(name).drive or "\\" in name:
        raise RowsError("must be a path from the folder of the suite", 'write "rows.csv", or "data/rows.csv"')
    if ".." in path.parts:
        raise RowsError("leads out of the folder of the suite", "copy the file into that folder")
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise RowsError(f"{name} is not a file of rows", "its name must end in .csv or .jsonl")
    text = _text_of(name, folder)
    if not text.strip():
        raise RowsError(f"{name} is empty", "write a line with the names of the columns, and one for each row")
    rows, lines = [], []
    for line, row in islice(read(name, text), MAX_ROWS + 1):
        rows.append(row)
        lines.append(line)
    if len(rows) > MAX_ROWS:
        raise RowsError(f"{name} {MAX_ROWS.exceeded()}", MAX_ROWS.way_out)
    if not rows:
        raise RowsError(f"{name} has no rows below the names of its columns", "write a line for each row")
    return Rows(tuple(rows), tuple(lines), name)


def _text_of(name: str, folder: Path) -> str:
    try:
        with open_in_folder(folder, name, MAX_ROWS_BYTES) as file:
            content = file.read(MAX_ROWS_BYTES + 1)
    except FolderFileError as error:
        raise RowsError(f"{name} {error}", error.hint) from error
    except OSError as error:
        raise RowsError(f"{name} {read_error_text(error)}", "check the path, from the suite's folder") from error
    if len(content) > MAX_ROWS_BYTES:
        raise RowsError(f"{name} {MAX_ROWS_BYTES.exceeded()}", MAX_ROWS_BYTES.way_out)
    try:
        return content.decode("utf-8").removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        line, message = utf_8_problem(content, error)
        raise RowsError(f"{name}:{line} {message}", SAVE_AS_UTF_8) from error


def _csv_rows(name: str, text: str) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a CSV text (RFC 4180), each with its first line. Blank lines are skipped."""
    lines = csv.reader(StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    begins = 1
    try:
        for cells in lines:
            line, begins = begins, lines.line_num + 1
            if not cells:
                continue
            if header is None:
                header = _header(name, line, cells)
                continue
            if len(cells) != len(header):
                advice = "put a cell that holds a comma or a quotation mark in quotes"
                raise RowsError(
                    f"{name}:{line} has {_cells(len(cells))}, and the first line names {len(header)} columns", advice
                )
            try:
                yield line, _row_of(zip(header, cells, strict=True))
            except ValueError as error:
                raise RowsError(f"{name}:{line}: {error}") from error
    except csv.Error as error:
        if (limit := csv_limit(error)) is not None:
            raise RowsError(f"{name}:{begins} {limit.exceeded()}", limit.way_out) from error
        hint = "close every quotation mark, and write one inside a cell twice"
        raise RowsError(f"{name}:{lines.line_num} is not CSV: {error}", hint) from error


def _cells(count: int) -> str:
    if count == 1:
        return "1 cell"
    return f"{count} cells"


def _header(name: str, line: int, cells: list[str]) -> list[str]:
    header = [cell.strip() for cell in cells]
    names = [cell.removesuffix(JSON_COLUMN_SUFFIX) for cell in header]
    for at, column in enumerate(names):
        if not column:
            raise RowsError(f"{name}:{line}: column {at + 1} has no name", "the first line names the columns")
        if column in names[:at]:
            raise RowsError(f"{name}:{line}: two columns have the name `{column}`", "rename one of them")
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise RowsError(f"{name}:{line} holds one column, {quoted(header[0])}", "separate cells by commas")
    return header


def _json_lines(name: str, text: str) -> Iterator[tuple[int, Row]]:
    # `splitlines` also ends a line at characters that JSON allows inside a text.
    for line, written in enumerate(text.split("\n"), 1):
        if not written.strip():
            continue
        try:
            row = _parsed(written)
            if not isinstance(row, dict):
                raise ValueError(f"a row must be an object, not {kind_of_value(row)}")
            if not row:
                raise ValueError("the row has no column")
        except ValueError as error:
            raise RowsError(f"{name}:{line}: {error}", 'write one object on each line: {"city": "Oslo"}') from error
        yield line, row


_READERS = {".csv": _csv_rows, ".jsonl": _json_lines}


def _row_of(cells: Any) -> Row:
    row = {}
    for name, value in cells:
        if not isinstance(name, str):
            raise ValueError(f"the name of a column must be text, not {kind_of_value(name)}")
        if name.endswith(JSON_COLUMN_SUFFIX):
            name = name.removesuffix(JSON_COLUMN_SUFFIX)
            if not isinstance(value, str):
                raise ValueError(f"`{name}{JSON_COLUMN_SUFFIX}` must be JSON as text, not {kind_of_value(value)}")
            try:
                value = _parsed(value)
            except ValueError as error:
                raise ValueError(f"`{name}{JSON_COLUMN_SUFFIX}` {error}") from error
        if name in row:
            raise ValueError(f"two columns have the name `{name}`")
        row[name] = value
    if not row:
        raise ValueError("the row has no column")
    return row


def _parsed(text: str) -> JsonValue:
    """Return the value of a JSON text. Raise ValueError if it is not JSON or has a value that a suite cannot hold."""
    try:
        value: JsonValue = json.loads(text, parse_constant=_no_such_number, object_pairs_hook=_object)
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg} (column {error.colno})") from error
    level: list[JsonValue] = [value]
    for _ in range(_DEEPEST):
        inner: list[JsonValue] = []
        for outer in level:
            if isinstance(outer, dict):
                inner += outer.values()
                inner += outer
            elif isinstance(outer, list):
                inner += outer
            elif isinstance(outer, float) and not math.isfinite(outer):
                raise ValueError("holds a number that is too large")
            elif isinstance(outer, str) and not outer.isascii() and any("\ud800" <= char <= "\udfff" for char in outer):
                raise ValueError("holds half of a character (a lone surrogate)")
        if not inner:
            return value
        level = inner
    raise ValueError("is nested too deeply")


def _object(pairs: list[tuple[str, JsonValue]]) -> JsonValue:
    """Return a JSON object. Raise ValueError for a duplicate key, of which Python would keep only the last value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"has {quoted(twice)} twice in one object")
    return found


def _no_such_number(name: str) -> None:
    raise ValueError(f"is not JSON: JSON has no {name}")
