"""The state of comparing two runs: aligned rows, folds and differences, and which lines they take at a width."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from workbench.analysis.alignment import Difference, Kind, What, aligned, first_difference
from workbench.dataclasses import dataclass
from workbench.numerals import counted
from workbench.show.lazy_lines import JoinedLines, LaidOut
from workbench.show.spans import Line, Span, cut_line, plain
from workbench.show.views.run_pair import GUTTER, NARROWEST, Above, Beside, beside, both_heads, fold_line, row_sides
from workbench.trajectory.trajectory import Trajectory
from workbench.tui.run_book.record import RunRecord
from workbench.tui.trajectory.headline import headline, run_name


@dataclass(frozen=True, slots=True)
class Fold:
    """Equal rows from `first` up to `end`: whole rounds, or everything before the first one."""

    first: int
    end: int
    rounds: tuple[int, int] | None
    """The first and last round on the left, `None` for the beginning."""

    @property
    def summary(self) -> str:
        """The description of the equal parts."""
        if self.rounds is None:
            return "the same beginning"
        first, last = self.rounds
        if last > first:
            return f"{counted(last - first + 1, 'round')} alike"
        return f"round {first} alike"


_KINDS: dict[What, Kind] = {
    "message": "said",
    "tool": "call",
    "argument": "call",
    "text": "text",
    "result": "result",
    "end": "end",
}
"""The kind of row for each kind of difference."""

Entry = Fold | int
"""A displayed entry: a fold, or the index of a row."""


def under_way(left: RunRecord, right: RunRecord) -> int:
    """Return how many of two runs are active."""
    return sum(run.stage != "done" for run in (left, right))


class Snapshot(NamedTuple):
    """The state of two runs at the time of comparing."""

    trajectories: tuple[Trajectory, Trajectory]
    going: int
    """How many of them were active then."""

    @classmethod
    def of(cls, left: RunRecord, right: RunRecord) -> Snapshot:
        """Capture the current state of two runs."""
        return cls((left.shown_trajectory, right.shown_trajectory), under_way(left, right))


class PairState:
    """The comparison of two runs.

    Equal rounds are folded at first."""

    def __init__(self, left: RunRecord, right: RunRecord, *, snapshot: Snapshot | None = None) -> None:
        """Compare two runs.

        With `taken`, the runs themselves are not read, so this can happen on any thread; long runs take a while."""
        self.runs = (left, right)
        self.batches: tuple[str, ...] = ()
        """The name of each batch, for runs from a history."""
        trajectories, self.going = snapshot or Snapshot.of(left, right)
        self.rows = aligned(*trajectories)
        found = first_difference(*trajectories)
        self.differences = [index for index in range(len(self.rows)) if self._is_difference(index)]
        """The rows that differ, except headings of rounds and results of unmatched calls."""
        self.sentence = f"In 2, {found.sentence}" if found is not None else self._other_difference()
        """The first difference, from the side of the second run."""
        self.first = self._row_of(found)
        """The row of that difference, `None` if there is none."""
        self.entries: list[Entry] = self._folded()
        self.unfolded: set[Fold] = set()
        self.expanded: set[int] = set()
        """Rows that are shown in full."""

    def _is_difference(self, index: int) -> bool:
        row = self.rows[index]
        if row.how == "same" or row.part.kind == "round":
            return False
        return row.part.kind != "result" or row.how == "differs" or self.rows[index - 1].how != row.how

    def _row_of(self, found: Difference | None) -> int | None:
        for index in self.differences if found is not None else ():
            row = self.rows[index]
            rounds = []
            for part in (row.left, row.right):
                if part is not None:
                    rounds.append(part.round)
            if found is not None and found.round in rounds and row.part.kind == _KINDS[found.what]:
                return index
        if self.differences:
            return self.differences[0]
        return None

    def _other_difference(self) -> str:
        if not self.differences:
            return "both runs say and do the same"
        kind = self.rows[self.differences[0]].part.kind
        return f"both do the same after a different {'system prompt' if kind == 'system' else 'message'}"

    def _folded(self) -> list[Entry]:
        """Return the rows, with those of equal rounds folded."""
        starts = []
        for index, row in enumerate(self.rows):
            if row.part.kind in ("round", "end"):
                starts.append(index)
        entries: list[Entry] = []
        for first, end in zip([0, *starts], [*starts, len(self.rows)], strict=True):
            rows, last = self.rows[first:end], entries[-1] if entries else None
            if any(row.how != "same" for row in rows) or not rows or rows[0].part.kind == "end":
                entries += range(first, end)
            elif rows[0].part.kind != "round":
                entries.append(Fold(first, end, None))
            elif isinstance(last, Fold) and last.rounds is not None:
                entries[-1] = Fold(last.first, end, (last.rounds[0], rows[0].part.round))
            else:
                entries.append(Fold(first, end, (rows[0].part.round, rows[0].part.round)))
        return entries

    # Folding

    def fold_at(self, entry: int) -> int | None:
        """Return the entry of the fold that an entry is or belongs to, even if unfolded."""
        shown = self.entries[entry]
        if isinstance(shown, Fold):
            return entry
        for at in range(entry - 1, -1, -1):
            before = self.entries[at]
            if isinstance(before, Fold):
                return at if before.end > shown else None
        return None

    def turn(self, entry: int, folded: bool | None) -> tuple[int, int] | None:
        """Fold (`True`), unfold (`False`) or toggle (`None`) the fold at an entry.

        Returns the entry after which entries were added or removed, and their number, negative if removed. Returns
        `None` if nothing changed."""
        fold = self.entries[entry]
        assert isinstance(fold, Fold)
        is_folded = fold not in self.unfolded
        if folded is is_folded:
            return None
        if is_folded:
            self.unfolded.add(fold)
            self.entries[entry + 1 : entry + 1] = range(fold.first, fold.end)
        else:
            self.unfolded.remove(fold)
            del self.entries[entry + 1 : entry + 1 + fold.end - fold.first]
        return entry + 1, (fold.end - fold.first) * (1 if is_folded else -1)

    # Differences

    def difference_from(self, entry: int, step: int) -> tuple[int, int] | None:
        """Return the entry of the next (1) or previous (-1) difference, wrapping around, and its index.

        Returns `None` if there is none."""
        if not self.differences:
            return None
        row = self._first_row(self.entries[entry])
        if step > 0:
            number = bisect_right(self.differences, row) % len(self.differences)
        else:
            number = bisect_left(self.differences, row) - 1
        number %= len(self.differences)
        return self.entry_of(self.differences[number]), number

    def entry_of(self, row: int) -> int:
        """Return the entry that shows a differing row."""
        return bisect_left(self.entries, row, key=self._first_row)

    @staticmethod
    def _first_row(entry: Entry) -> int:
        if isinstance(entry, Fold):
            return entry.first
        return entry


_COPIED_CELLS = 160


class PairLines(LaidOut):
    """The lines of two runs at one width."""

    def __init__(self, state: PairState, width: int, *, stacked: bool, whole: bool = False) -> None:
        super().__init__(width)
        self.state = state
        self.stacked = stacked
        self._whole = whole
        self._begin(map(self._rough_height, state.entries))

    def lay_out(self, item: int) -> JoinedLines:
        entry = self.state.entries[item]
        if isinstance(entry, Fold):
            line = fold_line(entry.summary, self.width, is_open=entry in self.state.unfolded)
            return JoinedLines([[line]])
        row = self.state.rows[entry]
        if self.stacked and row.part.kind == "round" and row.left is not None and row.right is not None:
            return JoinedLines([[both_heads(row.left, row.right, self.width)]])
        width, whole = self._side_width, self._whole or entry in self.state.expanded
        lines = Above if self.stacked else Beside
        return JoinedLines([lines(sides, width) for sides in row_sides(row, width, whole=whole)])

    def arrange(self, width: int, *, stacked: bool) -> None:
        """Set the width and the arrangement."""
        self.stacked, before = stacked, self.stacked
        if stacked is not before:
            self.width = 0
        self.resize(width)

    def turn(self, item: int, folded: bool | None) -> bool:
        """Fold or unfold an entry; `None` toggles.

        Returns whether that changed anything."""
        entry = self.state.entries[item]
        if isinstance(entry, Fold):
            heights = [self._heights[at] for at in range(len(self._heights))]
            found = self.state.turn(item, folded)
            if found is None:
                return False
            at, count = found
            heights[at : at + max(-count, 0)] = map(self._rough_height, self.state.entries[at : at + max(count, 0)])
            self._begin(heights)
            return True
        if folded is (entry not in self.state.expanded):
            return False
        self.state.expanded ^= {entry}
        self._measure(item)
        return True

    @property
    def _side_width(self) -> int:
        return max(self.width - GUTTER if self.stacked else (self.width - GUTTER) // 2, NARROWEST)

    def _rough_height(self, entry: Entry) -> int:
        if isinstance(entry, Fold):
            return 1
        row = self.state.rows[entry]
        if row.how == "same" or row.part.kind == "round":
            return 1
        if row.part.kind != "call" or row.part.call is None:
            return 1
        return 1 + len(row.part.call.arguments)


def header_lines(state: PairState, width: int, *, stacked: bool) -> list[Line]:
    """Return the names and results of the runs, on one line or two."""
    others = state.runs if len(set(state.batches)) < len(state.runs) else ()  # otherwise the batches tell them apart
    batches = [f"{batch} " for batch in state.batches] or ["", ""]
    names = []
    for number, run in enumerate(state.runs, 1):
        names.append(f"{number} {batches[number - 1]}{run_name(run, others)}")
    if stacked:
        return [(Span(" "), *headline(name, run, width - 1)) for name, run in zip(names, state.runs, strict=True)]
    side = max((width - GUTTER) // 2, NARROWEST)
    left, right = (headline(name, run, side) for name, run in zip(names, state.runs, strict=True))
    return [cut_line(beside(left, Span(" │ ", "border"), right, side), width)]


def copied_pair(state: PairState) -> str:
    """Return the comparison as text without cuts.

    Folds stay folded."""
    lines = PairLines(state, _COPIED_CELLS, stacked=True, whole=True)
    head = []
    for line in header_lines(state, _COPIED_CELLS, stacked=True):
        head.append(plain(line).strip())
    body = (plain(line).rstrip() for entry in range(len(state.entries)) for line in lines.lay_out(entry))
    return "\n".join([*head, state.sentence, "", *body, ""])
