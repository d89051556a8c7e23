"""What a case is called in a table, `SUITE › CASE`, and how that is cut where it finds no room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from workbench.reports.visible import ELLIPSIS, one_line, shortened

_BETWEEN = " › "
_COLUMN_MAX = 80
"""Where titles are not cut, what stands behind them is aligned as far as this."""
_WHAT_MAX = 400
"""What is said of a case is cut there only where it is longer than anybody reads."""


@dataclass(frozen=True, slots=True)
class Title:
    """A suite and a case of it; without a `suite` the case alone. `lead` and `tail` stand around, and are never cut."""

    suite: str
    case: str
    lead: str = ""
    tail: str = ""

    @property
    def whole(self) -> str:
        """All of it on one line."""
        suite = f"{self.suite}{_BETWEEN}" if self.suite else ""
        return one_line(f"{self.lead}{suite}{self.case}{self.tail}")

    def cut(self, width: int) -> str:
        """The same in at most `width` cells. What is missing is missing of the suite first: it is the case that tells
        one line from the next."""
        if cell_len(self.whole) <= width:
            return self.whole
        case = one_line(self.case)
        room = width - cell_len(self.lead) - cell_len(self.tail)
        of_suite = room - cell_len(_BETWEEN) - cell_len(case)
        if of_suite < cell_len(ELLIPSIS):
            return shortened(f"{self.lead}{shortened(case, room)}{self.tail}", width)
        return f"{self.lead}{shortened(one_line(self.suite), of_suite)}{_BETWEEN}{case}{self.tail}"


def cut_titles(titles: Sequence[Title], width: int | None) -> Iterator[str]:
    """Titles below each other in a column of at most `width` cells; without it whole."""
    column = min(max((cell_len(title.whole) for title in titles), default=0), _COLUMN_MAX if width is None else width)
    for title in titles:
        said = title.whole if width is None else title.cut(column)
        yield said + " " * (column - cell_len(said))


def cut_what(text: str, room: int | None) -> str:
    """What is said behind a title, on one line in the room that is left; no `room` is as much as anybody reads."""
    return shortened(one_line(text), _WHAT_MAX if room is None else max(room, 0))
