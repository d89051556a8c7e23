"""The encoding of files that users write: UTF-8, with or without the byte order mark that editors on Windows add."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from workbench.limits import MAX_CELL_CHARS, Limit

if TYPE_CHECKING:
    import csv

BYTE_ORDER_MARK = "\ufeff"
"""The byte order mark. A text keeps it, so that it is saved again, but it does not belong to the content."""

_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")

SAVE_AS_UTF_8 = "save the file as UTF-8, in PowerShell with `-Encoding utf8`"
"""The advice for a file in another encoding."""


def is_utf_16(content: bytes) -> bool:
    """Return whether a file begins with the byte order mark of UTF-16, as older versions of PowerShell write it."""
    return content.startswith(_UTF_16_MARKS)


def utf_8_problem(content: bytes, error: UnicodeDecodeError) -> tuple[int, str]:
    """Return the line of the first byte that is not UTF-8, and the part of a message that describes the mistake.

    Lines are counted from 1."""
    if is_utf_16(content):
        return 1, "is UTF-16, not UTF-8"
    line = content.count(b"\n", 0, error.start) + 1
    return line, f"is not UTF-8: the byte 0x{content[error.start]:02x} cannot be read"


def csv_limit(error: csv.Error) -> Limit | None:
    """Return the limit that a CSV text exceeds; `None` if the error has another reason, such as invalid CSV."""
    # Python raises `csv.Error` for a cell that is too long and for invalid CSV. Only the messages differ.
    return MAX_CELL_CHARS if str(error).startswith("field larger than field limit") else None


def toml_of(text: str) -> dict[str, Any]:
    """Return the content of a TOML text, which may begin with a byte order mark.

    Raises ValueError for a text that is not TOML, and RecursionError for tables nested too deeply."""
    return tomllib.loads(text.removeprefix(BYTE_ORDER_MARK))
