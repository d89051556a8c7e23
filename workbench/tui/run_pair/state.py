"""The comparison of two runs: aligned rows, folds and differences, and their lines at a width."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from workbench.analysis.alignment import Difference, DifferenceKind, PartKind, align, first_difference
from workbench.dataclasses import dataclass
from workbench.numerals import counted
from workbench.show.lazy_lines import JoinedLines, LazyLayout
from workbench.show.spans import Line, Span, cut_line, plain
from workbench.show.views.run_pair import (
    GUTTER,
    NARROWEST,
    SideBySideColumns,
    StackedColumns,
    both_heads,
    fold_line,
    row_sides,
    two_columns,
)
from workbench.trajectory.trajectory import Trajectory
from workbench.tui.run_book.record import RunRecord
from workbench.tui.trajectory.headline import headline, run_name


@dataclass(frozen=True, slots=True)
class Fold:
    """Rows from `first` to `end` (exclusive) that are equal in both runs.

    They are whole rounds, or all rows before the first round."""

    first: int
    end: int
    rounds: tuple[int, int] | None
    """The numbers of the first and last round in the left run. `None` for rows before the first round."""

    @property
    def summary(self) -> str:
        """The text of the folded line, such as `3 rounds alike`."""
        if self.rounds is None:
            return "the same beginning"
        first, last = self.rounds
        if last > first:
            return f"{counted(last - first + 1, 'round')} alike"
        return f"round {first} alike"


_KINDS: dict[DifferenceKind, PartKind] = {
    "message": "said",
    "tool": "call",
    "argument": "call",
    "text": "text",
    "result": "result",
    "end": "end",
}
"""The kind of row for each kind of difference."""

Entry = Fold | int
"""An entry of the view: a fold, or the index of a row."""


def active_count(left: RunRecord, right: RunRecord) -> int:
    """Return how many of two runs are active."""
    return sum(run.stage != "done" for run in (left, right))


class Snapshot(NamedTuple):
    """The trajectories of two runs at one moment. Active runs keep changing."""

    trajectories: tuple[Trajectory, Trajectory]
    active: int
    """The number of active runs at the time of the snapshot."""

    @classmethod
    def of(cls, left: RunRecord, right: RunRecord) -> Snapshot:
        return cls((left.shown_trajectory, right.shown_trajectory), active_count(left, right))


class PairState:
    """The comparison of two runs. Equal rounds are folded at first."""

    def __init__(self, left: RunRecord, right: RunRecord, *, snapshot: Snapshot | None = None) -> None:
        """Compare two runs. This is slow for long runs.

        With a `snapshot` of both trajectories, the comparison may run in any thread."""
        self.runs = (left, right)
        self.batches: tuple[str, ...] = ()
        """The name of each batch, for runs from a history."""
        trajectories, self.active = snapshot or Snapshot.of(left, right)
        self.rows = align(*trajectories)
        found = first_difference(*trajectories)
        self.differences = [index for index in range(len(self.rows)) if self._is_difference(index)]
        """The indices of differing rows, without headings of rounds and results of unmatched calls."""
        self.sentence = self._other_difference()
        """A sentence on the first difference between the runs."""
        if found is not None:
            self.sentence = f"In 2, {found.sentence}"
        self.first = self._row_of(found)
        """The index of the row with the first difference, `None` if there is none."""
        self.entries: list[Entry] = self._folded()
        self.unfolded: set[Fold] = set()
        self.expanded: set[int] = set()
        """The indices of fully displayed rows."""

    def _is_difference(self, index: int) -> bool:
        row = self.rows[index]
        if row.state == "same" or row.part.kind == "round":
            return False
        # A call without a counterpart is one difference. Its result is not counted as a second difference.
        return row.part.kind != "result" or row.state == "differs" or self.rows[index - 1].state != row.state

    def _row_of(self, found: Difference | None) -> int | None:
        if not self.differences:
            return None
        if found is not None:
            for index in self.differences:
                row = self.rows[index]
                rounds = [part.round for part in (row.left, row.right) if part is not None]
                if found.round in rounds and row.part.kind == _KINDS[found.kind]:
                    return index
        return self.differences[0]

    def _other_difference(self) -> str:
        if not self.differences:
            return "both runs say and do the same"
        if self.rows[self.differences[0]].part.kind == "system":
            return "both do the same after a different system prompt"
        return "both do the same after a different message"

    def _folded(self) -> list[Entry]:
        starts = [index for index, row in enumerate(self.rows) if row.part.kind in ("round", "end")]
        entries: list[Entry] = []
        for first, end in zip([0, *starts], [*starts, len(self.rows)], strict=True):
            rows, last = self.rows[first:end], entries[-1] if entries else None
            if any(row.state != "same" for row in rows) or not rows or rows[0].part.kind == "end":
                entries += range(first, end)
            elif rows[0].part.kind != "round":
                entries.append(Fold(first, end, None))
            elif isinstance(last, Fold) and last.rounds is not None:
                entries[-1] = Fold(last.first, end, (last.rounds[0], rows[0].part.round))
            else:
                entries.append(Fold(first, end, (rows[0].part.round, rows[0].part.round)))
        return entries

    def fold_at(self, entry: int) -> int | None:
        """Return the index of the fold at an entry, or of the unfolded fold that contains the entry.

        `None` if there is no fold."""
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

        Returns the index after the fold and the number of entries added there, negative for removed entries. Returns
        `None` if nothing changed."""
        fold = self.entries[entry]
        assert isinstance(fold, Fold)
        is_folded = fold not in self.unfolded
        if folded is is_folded:
            return None
        count = fold.end - fold.first
        if is_folded:
            self.unfolded.add(fold)
            self.entries[entry + 1 : entry + 1] = range(fold.first, fold.end)
            return entry + 1, count
        self.unfolded.remove(fold)
        del self.entries[entry + 1 : entry + 1 + count]
        return entry + 1, -count

    def difference_from(self, entry: int, step: int) -> tuple[int, int] | None:
        """Return the entry and the index of the next (1) or previous (-1) difference, `None` if there are none.

        The search wraps around at both ends."""
        if not self.differences:
            return None
        # The rows of a fold are equal. A search from a fold begins at the first row of the fold.
        row = self._first_row(self.entries[entry])
        if step > 0:
            number = bisect_right(self.differences, row) % len(self.differences)
        else:
            number = bisect_left(self.differences, row) - 1
        number %= len(self.differences)
        return self.entry_of(self.differences[number]), number

    def entry_of(self, row: int) -> int:
        """Return the index of the entry that shows a row in which the runs differ."""
        # Entries are in the order of their first rows, and differing rows are never folded.
        return bisect_left(self.entries, row, key=self._first_row)

    @staticmethod
    def _first_row(entry: Entry) -> int:
        if isinstance(entry, Fold):
            return entry.first
        return entry


_COPIED_CELLS = 160
"""The width of a copied comparison."""


class PairLines(LazyLayout):
    """The lines of a comparison at one width, laid out on demand."""

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
        lines = StackedColumns if self.stacked else SideBySideColumns
        return JoinedLines([lines(sides, width) for sides in row_sides(row, width, whole=whole)])

    def arrange(self, width: int, *, stacked: bool) -> None:
        """Set the width and the arrangement of the runs."""
        if stacked is not self.stacked:
            self.stacked = stacked
            self.width = 0  # `resize` lays out again only at a new width
        self.resize(width)

    def turn(self, item: int, folded: bool | None) -> bool:
        """Fold, unfold or toggle (`None`) an entry. Return whether anything changed."""
        entry = self.state.entries[item]
        if isinstance(entry, Fold):
            # The known heights of other entries are kept. These entries are not laid out again.
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
        room = self.width - GUTTER
        return max(room if self.stacked else room // 2, NARROWEST)

    def _rough_height(self, entry: Entry) -> int:
        if isinstance(entry, Fold):
            return 1
        # This is an estimate until the row is laid out. Long texts take more lines.
        row = self.state.rows[entry]
        if row.state == "same" or row.part.kind == "round":
            return 1
        if row.part.kind != "call" or row.part.call is None:
            return 1
        return 1 + len(row.part.call.arguments)


def header_lines(state: PairState, width: int, *, stacked: bool) -> list[Line]:
    """Return the names and results of the runs: on two lines if `stacked`, otherwise side by side on one line."""
    side = width - 1 if stacked else max((width - GUTTER) // 2, NARROWEST)
    # Runs of two batches are distinguished by the names of the batches. Other runs need distinct run names.
    others = state.runs if len(set(state.batches)) < len(state.runs) else ()
    batches = [f"{batch} " for batch in state.batches] or ["", ""]
    heads = []
    for number, (run, batch) in enumerate(zip(state.runs, batches, strict=True), 1):
        heads.append(headline(f"{number} {batch}{run_name(run, others)}", run, side))
    if stacked:
        return [(Span(" "), *head) for head in heads]
    left, right = heads
    return [cut_line(two_columns(left, Span(" │ ", "border"), right, side), width)]


def copied_pair(state: PairState) -> str:
    """Return the comparison as text, with every row in full. Folds stay folded."""
    lines = PairLines(state, _COPIED_CELLS, stacked=True, whole=True)
    text = [plain(line).strip() for line in header_lines(state, _COPIED_CELLS, stacked=True)]
    text += [state.sentence, ""]
    for entry in range(len(state.entries)):
        text += [plain(line).rstrip() for line in lines.lay_out(entry)]
    return "\n".join([*text, ""])
