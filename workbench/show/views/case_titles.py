"""Titles of cases in a table, `SUITE › CASE`, and how they are cut to fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from workbench.dataclasses import dataclass
from workbench.show.visible import ELLIPSIS, one_line, shortened

_BETWEEN = " › "
_COLUMN_MAX = 80
"""The largest column for titles where they are not cut."""
_WHAT_MAX = 400
"""The largest text about a case where nothing is cut."""


@dataclass(frozen=True, slots=True)
class Title:
    """A suite and a case of it; without a `suite` the case alone. `lead` and `tail` surround them, and are never
    cut."""

    suite: str
    case: str
    lead: str = ""
    tail: str = ""

    @property
    def whole(self) -> str:
        """The whole title on one line."""
        suite = f"{self.suite}{_BETWEEN}" if self.suite else ""
        return one_line(f"{self.lead}{suite}{self.case}{self.tail}")

    def cut(self, width: int) -> str:
        """Returns the title in at most `width` cells. The suite is cut first, because the case distinguishes one line
        from the next."""
        if cell_len(self.whole) <= width:
            return self.whole
        case = one_line(self.case)
        room = width - cell_len(self.lead) - cell_len(self.tail)
        of_suite = room - cell_len(_BETWEEN) - cell_len(case)
        if of_suite < cell_len(ELLIPSIS):
            return shortened(f"{self.lead}{shortened(case, room)}{self.tail}", width)
        return f"{self.lead}{shortened(one_line(self.suite), of_suite)}{_BETWEEN}{case}{self.tail}"


def cut_titles(titles: Sequence[Title], width: int | None) -> Iterator[str]:
    """Returns titles in a column of at most `width` cells; without it uncut."""
    column = min(max((cell_len(title.whole) for title in titles), default=0), _COLUMN_MAX if width is None else width)
    for title in titles:
        shown = title.whole if width is None else title.cut(column)
        yield shown + " " * (column - cell_len(shown))


def cut_what(text: str, room: int | None) -> str:
    """Returns the text behind a title, on one line cut to `room`, or to a generous limit without it."""
    return shortened(one_line(text), _WHAT_MAX if room is None else max(room, 0))
