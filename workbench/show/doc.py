"""Blocks of a document: values, cells of tables, and tables.

A view (a function in `show.views`) turns a subject, such as a batch, into blocks. A renderer writes blocks in one
format: `show.text` for terminals, `show.markdown`, `show.csv`, and `show.rows` for tables in the app. A column or a
word is therefore defined once, in the view, and all formats show it.

- `workbench.numerals` formats all numbers. A `Value` has both the number (`raw`, for CSV) and its text (`spans`, for
  people).
- A role is the meaning of a text, such as "failed". `show.text` maps roles to ANSI codes, and the themes of the app map
  them to styles.
- A `Column` says how it shrinks in a narrow table.
- Views make text from models, tools and files safe to show (`show.visible`) before it becomes a value.

To add a column, add a `Column` to the view of its subject.
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
    """A text for people, in one or more colour roles, and the raw value behind it for programs.

    If `raw` is a mapping, it holds several raw values by name."""

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


def names(names: Sequence[str], role: Role = "text", max_names: int = 2) -> Value:
    """Return names as one value: the first `max_names` names and the number of others, such as `Weather, Files +3`.

    The names must already be safe to show."""
    known = list(dict.fromkeys(names))
    shown = ", ".join(known[:max_names])
    if len(known) > max_names:
        shown += f" +{len(known) - max_names}"
    # The raw value, for CSV, has all names.
    return Value((Span(shown, role),), ", ".join(known))


def share(of_all: float | None, role: Role = "text") -> Value:
    """Return a share (0..1) as a value."""
    return Value((Span(rate_text(of_all), role),), of_all)


def rate(good: int, total: int) -> Value:
    """Return the pass rate of `good` out of `total` runs as a value, in the colour of success if all runs passed."""
    if not total:
        return share(None, "muted")
    return share(good / total, "passed" if good == total else "text")


def when(time: str, role: Role = "muted") -> Value:
    """Return an ISO 8601 time as a value. People see local time, and programs get the given text."""
    return Value((Span(local_time(time), role),), time)


def short_when(time: str) -> Value:
    """Return an ISO 8601 time as a value whose text has local time without the year."""
    # The first five characters of a local time are the year and a hyphen.
    return Value((Span(local_time(time)[5:], "muted"),), time)


def age(time: str, now: datetime, role: Role = "muted") -> Value:
    """Return the age of an ISO 8601 time as a value. If `time` is not such a time, return an empty value."""
    at_ms = epoch_ms(time)
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
    """A table. `note` returns a remark on a row.

    A terminal shows the remark below the row, and a document shows it in the last column. The app omits it, because
    it shows the selected row in full beside the table."""

    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    note: Callable[[Row], Value] | None = None

    @property
    def lasting_columns(self) -> list[Column[Row]]:
        """The columns for a document, without those whose values soon become wrong, such as an age."""
        return [column for column in self.columns if not column.passing]


@dataclass(frozen=True, slots=True)
class Matrix(Generic[Row]):
    """A table with a column for each model.

    If not all columns fit, a terminal prints the rest as another table below, and the app scrolls sideways."""

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
    """A text that is wrapped at the width of the output."""

    line: Line


@dataclass(frozen=True, slots=True)
class Items:
    """A list of lines.

    A terminal shows the first `most` lines, then a line that counts the rest with `noun`, such as `… and 3 others`."""

    lines: Sequence[Line]
    noun: str = "other"
    most: int = 10


Fact = tuple[Line, Span]
"""A name with its text."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Pairs of a name and a value, in two columns."""

    facts: Sequence[Fact]


@dataclass(frozen=True, slots=True)
class Section:
    """A title and the blocks below it. The blocks stand closer together than blocks outside a section."""

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
