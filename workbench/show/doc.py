"""Blocks of a document: values, cells of tables, and tables.

A view (`show.views`) turns the facts of one subject into blocks, once. A renderer turns blocks into one surface:
`show.text` for terminals, `show.markdown`, `show.csv`, and `show.rows` for tables in the app, row by row. A column, a
word or a role is therefore written in one view, and all surfaces have it.

- Numbers become text in `workbench.numerals` alone. A `Value` keeps the number beside its text: files for programs
  (CSV) take `raw`, people see `spans`.
- A role is the meaning of a text. `show.text` has the ANSI code of a role, a theme its style in the app.
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
    """A text of one or more roles, and its value for programs.

    `raw` is the value; a mapping stands for more than one named value.
    """

    spans: Line
    raw: Raw | Mapping[str, Raw] = None

    @property
    def text(self) -> str:
        """The text without its roles."""
        return plain(self.spans)


NONE = Value(EMPTY)
"""An empty cell."""


def words(text: str, role: Role = "text") -> Value:
    """Return a text that is safe to show already."""
    return Value((Span(text, role),), text) if text else NONE


def names(each: Sequence[str], role: Role = "text", most: int = 2) -> Value:
    """Return names, safe to show, of which the first ones are shown: `Weather, Files +3`."""
    known = list(dict.fromkeys(each))
    shown = ", ".join(known[:most])
    if len(known) > most:
        shown += f" +{len(known) - most}"
    return Value((Span(shown, role),), ", ".join(known))


def share(of_all: float | None, role: Role = "text") -> Value:
    """Return a share of 0..1."""
    return Value((Span(rate_text(of_all), role),), of_all)


def rate(good: int, of: int) -> Value:
    """Return a pass rate, in the colour of success if all passed."""
    if not of:
        return share(None, "muted")
    return share(good / of, "passed" if good == of else "text")


def when(at: str, role: Role = "muted") -> Value:
    """Return an ISO 8601 time: local for a person, as it is for programs."""
    return Value((Span(local_time(at), role),), at)


def short_when(at: str, role: Role = "muted") -> Value:
    """Return an ISO 8601 time without its year."""
    return Value((Span(local_time(at)[5:], role),), at)


def age(at: str, now: datetime, role: Role = "muted") -> Value:
    """Return the age of an ISO 8601 time; nothing for any other text."""
    at_ms = epoch_ms(at)
    if at_ms is None:
        return NONE
    return words(age_text(at_ms, now), role)


def joined(values: Sequence[Value], gap: str = "  ") -> Value:
    """Return values beside each other."""
    spans: list[Span] = []
    for value in values:
        if spans:
            spans.append(Span(gap))
        spans += value.spans
    return Value(tuple(spans), plain(tuple(spans)) or None)


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column of a table: its title, its cell of a row, and how it gives way in a narrow table."""

    name: str
    cell: Callable[[Row], Value]
    right: bool = False
    """Whether its texts stand at its right edge."""
    gap: int = 2
    """The blanks between it and the column before."""
    from_cells: int = 0
    """The width of the table from which it is shown."""
    least: int = 0
    """The width to which it may be cut; 0 for a column that is never cut."""
    fit: Callable[[Row, int], Value] | None = None
    """Its cell cut to a width; without it, the end is cut."""
    short: Callable[[Row], Value] | None = None
    """Its cell in a table that is narrower than `short_below`."""
    short_below: int = 0
    passing: bool = False
    """Whether it soon holds no more, as an age: documents leave it out."""


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """Rows of one kind.

    `note` is a remark on a row: a line below it in a terminal, a last column in documents, and nothing in the app,
    which shows the selected row in full beside the table.
    """

    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    note: Callable[[Row], Value] | None = None


@dataclass(frozen=True, slots=True)
class Matrix(Generic[Row]):
    """Rows with a column for each model.

    A terminal shows the columns that do not fit below the others; the app scrolls to them.
    """

    first: Column[Row]
    heads: Sequence[str]
    rows: Sequence[Row]
    cell: Callable[[Row, int], Value]
    """The cell of a row in the column of a model."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A title: of the whole document (level 1) or of a part of it."""

    line: Line
    level: int = 1


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A text that is wrapped."""

    line: Line


@dataclass(frozen=True, slots=True)
class Items:
    """A list.

    A terminal shows the first `most`, and counts the others by their `noun`."""

    lines: Sequence[Line]
    noun: str = "other"
    most: int = 10


Fact = tuple[Line, Span]
"""A name, and the text that belongs to it."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their texts, in two columns."""

    facts: Sequence[Fact]


@dataclass(frozen=True, slots=True)
class Section:
    """A few blocks below a title that belong closer together than others."""

    title: Line
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Diff:
    """The lines of a unified diff, as they are in the files.

    Of an empty one nothing is shown."""

    lines: Sequence[str]


Block = Heading | Paragraph | Items | Facts | Section | Table[Any] | Matrix[Any] | Diff


def line_of(text: str, role: Role = "text") -> Line:
    """Return a text of one role, safe to show, as a line."""
    return (Span(text, role),)
