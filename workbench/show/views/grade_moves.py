"""The changes between the recorded grades and new ones, for reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.show.signs import FORK
from workbench.show.text import Paint
from workbench.show.views.grade_move_kinds import Move, graded_text, moves_text
from workbench.show.visible import one_line


@dataclass(frozen=True, slots=True)
class Regraded:
    """A recording's file with its recorded result, if any, and the new one."""

    recording: str
    before: RunResult | None
    after: RunResult

    @property
    def not_regraded(self) -> str | None:
        """Why the run keeps the recorded verdict, if it does."""
        return self.after.not_regraded

    @property
    def move(self) -> Move:
        """The change from the recorded grade to the new one."""
        return Move(self.before, self.after)

    @property
    def moved(self) -> bool:
        """Whether status or score differ."""
        return self.move.moved


def move_lines(regraded: Iterable[Regraded], paint: Paint) -> Iterator[str]:
    """Yields a line for each recording whose status or score changed, and how many moved from where to where; or one
    line that none did. Nothing where nothing was graded before."""
    regraded = list(regraded)
    for each in regraded:
        if each.not_regraded is not None:
            yield f"{one_line(each.recording)} {one_line(each.not_regraded)}"
    moved = [each for each in regraded if each.moved]
    for each in moved:
        after = paint(graded_text(each.after), each.after.status.role)
        fork = f" ({FORK})" if each.after.trajectory.fork is not None else ""
        yield f"{one_line(each.recording)}{fork}: {graded_text(each.before)} → {after}"
    if regraded:
        yield moves_text(each.move for each in moved) or "no grade differs from the recorded one"
