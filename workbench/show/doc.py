"""Blocks of a document: values, cells of tables, and tables.

A view (`show.views`) turns the facts of one subject into blocks, once. A renderer turns blocks into one surface:
`show.text` for terminals, `show.markdown`, `show.csv`, and `show.rows` for tables in the app, row by row. So a column,
a word or a role is defined in one view, and appears on all surfaces.

- Numbers become text in `workbench.numerals` alone. A `Value` keeps the number beside its text: files for programs
  (CSV) take `raw`, people see `spans`.
- A role is the meaning of a text. `show.text` has its ANSI code, and a theme of the app has its style.
- A `Column` declares where it gives way: `from_cells` is the width of the table from which it is shown, `least` the
  width to which its texts may be cut, `short` its cell in a narrow table.
- Text of models, tools and files passes `show.visible` in the view, before it becomes a value.

To add a column of a subject, add one `Column` to its view. To show a subject on another surface, call its view there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from workbench.dataclasses import dataclass
from workbench.numerals import age_text, rate_text
from workbench.show.spans import EMPTY, Line, Role, Span, plain
from workbench.show.when import epoch_ms, local_time

Raw = str | int | float | bool | None
Row = TypeVar("Row")


class Value(NamedTuple):
    """A text in one or more roles, with its raw value for programs.

    If `raw` is a mapping, it holds several values by name."""

    spans: Line
    raw: Raw | Mapping[str, Raw] = None

    @property
    def text(self) -> str:
        """The text without its roles."""
        return plain(self.spans)


NONE = Value(EMPTY)
"""An empty cell."""


def words(text: str, role: Role = "text") -> Value:
    """Return a text as a value. The text must already be safe to show."""
    return Value((Span(text, role),), text) if text else NONE


def names(each: Sequence[str], role: Role = "text", most: int = 2) -> Value:
    """Return names as one value. The value shows the first `most` names and counts the others: `Weather, Files +3`.

    The names must already be safe to show."""
    known = list(dict.fromkeys(each))
    shown = ", ".join(known[:most])
    if len(known) > most:
        shown += f" +{len(known) - most}"
    # Files for programs have all names.
    return Value((Span(shown, role),), ", ".join(known))


def share(of_all: float | None, role: Role = "text") -> Value:
    """Return a share (0..1) as a value."""
    return Value((Span(rate_text(of_all), role),), of_all)


def rate(good: int, of: int) -> Value:
    """Return a pass rate as a value. Its colour is that of success if all runs passed."""
    if not of:
        return share(None, "muted")
    return share(good / of, "passed" if good == of else "text")


def when(at: str, role: Role = "muted") -> Value:
    """Return an ISO 8601 time as a value. People see local time, and programs get the given text."""
    return Value((Span(local_time(at), role),), at)


def short_when(at: str, role: Role = "muted") -> Value:
    """Return an ISO 8601 time as a value that people see without the year."""
    # A local time begins with the year and a hyphen, five characters.
    return Value((Span(local_time(at)[5:], role),), at)


def age(at: str, now: datetime, role: Role = "muted") -> Value:
    """Return the age of an ISO 8601 time as a value. Any other text gives an empty value."""
    at_ms = epoch_ms(at)
    if at_ms is None:
        return NONE
    return words(age_text(at_ms, now), role)


def joined(values: Sequence[Value], gap: str = "  ") -> Value:
    """Join values side by side into one value."""
    spans: list[Span] = []
    for value in values:
        if spans:
            spans.append(Span(gap))
        spans += value.spans
    return Value(tuple(spans), plain(tuple(spans)) or None)


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column of a table: its title, its cells, and how it shrinks in a narrow table."""

    name: str
    cell: Callable[[Row], Value]
    right: bool = False
    """Whether the column is aligned right."""
    gap: int = 2
    """Number of blanks before the column."""
    from_cells: int = 0
    """Width of the table from which the column is shown."""
    least: int = 0
    """Width to which the column may be cut, or 0 if it is never cut."""
    fit: Callable[[Row, int], Value] | None = None
    """Returns the cell of a row, fitted to a width. Without this function, the end of the cell is cut."""
    short: Callable[[Row], Value] | None = None
    """The cell of a row in a table that is narrower than `short_below`."""
    short_below: int = 0
    passing: bool = False
    """Whether the column's values are valid only for a moment, such as an age. Documents omit such a column."""


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """A table with rows of one kind.

    `note` is a remark on a row. A terminal shows it below the row, and a document in the last column. The app omits it,
    because it shows the selected row in full beside the table."""

    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    note: Callable[[Row], Value] | None = None

    @property
    def lasting_columns(self) -> list[Column[Row]]:
        """The columns for a document. It omits columns whose values are valid only for a moment."""
        return [column for column in self.columns if not column.passing]


@dataclass(frozen=True, slots=True)
class Matrix(Generic[Row]):
    """A table with a column for each model.

    A terminal prints columns that do not fit below the others. The app scrolls sideways."""

    first: Column[Row]
    heads: Sequence[str]
    rows: Sequence[Row]
    cell: Callable[[Row, int], Value]
    """The cell of a row in the column of a model."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of the whole document (level 1) or of a part of it."""

    line: Line
    level: int = 1


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A text wrapped at the width of its surface."""

    line: Line


@dataclass(frozen=True, slots=True)
class Items:
    """A list of lines.

    A terminal shows the first `most` lines. It counts the others and calls them by `noun`."""

    lines: Sequence[Line]
    noun: str = "other"
    most: int = 10


Fact = tuple[Line, Span]
"""A name with its text."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their texts, in two columns."""

    facts: Sequence[Fact]


@dataclass(frozen=True, slots=True)
class Section:
    """A title with some blocks below it. Less space separates these blocks than other blocks."""

    title: Line
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Diff:
    """The lines of a unified diff, as in `diff -u`. If there are none, nothing is shown."""

    lines: Sequence[str]


Block = Heading | Paragraph | Items | Facts | Section | Table[Any] | Matrix[Any] | Diff


def line_of(text: str, role: Role = "text") -> Line:
    """Return a line of one text in one colour role. The text must already be safe to show."""
    return (Span(text, role),)
