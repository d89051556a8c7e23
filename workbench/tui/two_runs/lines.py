"""Two runs as one list of lines: in two columns, or stacked if there is little room."""

from __future__ import annotations

from workbench.analysis.alignment import How, Row
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.json_lines import JoinedLines, LazyLines
from workbench.tui.lines.laid_out import LaidOut
from workbench.tui.lines.spans import EMPTY, Line, Role, Span, cells, cut_line, plain
from workbench.tui.trajectory.headline import headline, run_name
from workbench.tui.two_runs.rows import Block, blocks_of, round_facts
from workbench.tui.two_runs.state import Entry, Fold, PairState

GUTTER = 3
"""The width between two columns, for the sign; when stacked, before each line."""

TWO_COLUMNS_CELLS = 72
"""From this width on, the runs are in two columns."""

NARROWEST = 12

_COPIED_CELLS = 160

_SIGNS: dict[How, tuple[str, Role]] = {
    "same": ("│", "border"),
    "differs": (GLYPHS.disagree, "warned"),
    "left": ("<", "warned"),
    "right": (">", "warned"),
}


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
            return JoinedLines([[self._fold_line(entry)]])
        row = self.state.rows[entry]
        if self.stacked and row.how in ("same", "differs") and row.part.kind == "round":
            return JoinedLines([[self._both_heads(row)]])
        width, whole = self._side_width, self._whole or entry in self.state.expanded
        lines = _Above if self.stacked else _Beside
        return JoinedLines([lines(block, width) for block in blocks_of(row, width, whole=whole)])

    def arrange(self, width: int, *, stacked: bool) -> None:
        """Set the width and the arrangement."""
        self.stacked, before = stacked, self.stacked
        if stacked is not before:
            self.width = 0
        self.resize(width)

    def turn(self, item: int, folded: bool | None) -> bool:
        """Fold or unfold an entry; `None` toggles. Returns whether that changed anything."""
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
        return 1 + (len(row.part.call.arguments) if row.part.kind == "call" and row.part.call is not None else 0)

    def _fold_line(self, fold: Fold) -> Line:
        sign = GLYPHS.open if fold in self.state.unfolded else GLYPHS.folded
        return cut_line((Span(f"{sign} {fold.said}", "comment"),), self.width)

    def _both_heads(self, row: Row) -> Line:
        assert row.left is not None and row.right is not None
        numbers = dict.fromkeys(part.round for part in (row.left, row.right))
        facts = [round_facts(part.of) for part in (row.left, row.right) if part.of is not None]
        name = Span(f"round {' beside round '.join(map(str, numbers))}", "heading")
        said = tuple(Span(f"  {number} {fact}", "muted") for number, fact in enumerate(facts, 1) if fact)
        return cut_line((name, *said), self.width)


class _Beside(LazyLines):
    """A block in two columns."""

    def __init__(self, block: Block, width: int) -> None:
        self._block = block
        self._width = width

    def __len__(self) -> int:
        return max(len(self._block.left), len(self._block.right))

    def line(self, index: int) -> Line:
        left, right, how = self._block
        sign, role = _SIGNS[how if not index else "same"]
        return beside(
            left[index] if index < len(left) else EMPTY,
            Span(f" {sign} ", role),
            right[index] if index < len(right) else EMPTY,
            self._width,
        )


class _Above(LazyLines):
    """A block with the left side above the right one. Equal content appears once."""

    def __init__(self, block: Block, width: int) -> None:
        self._left, self._right, self._how = block

    def __len__(self) -> int:
        return len(self._left) + (0 if self._how == "same" else len(self._right))

    def line(self, index: int) -> Line:
        if self._how == "same":
            return (Span(" " * GUTTER), *self._left[index])
        is_left = index < len(self._left)
        at = index if is_left else index - len(self._left)
        sign = _SIGNS[self._how][0] if not index else " "
        lead = f"{sign}{1 if is_left else 2} " if not at else " " * GUTTER
        return (Span(lead, "warned"), *(self._left if is_left else self._right)[at])


def beside(left: Line, between: Span, right: Line, width: int) -> Line:
    """Join two lines as columns of `width` cells."""
    return (*left, Span(" " * max(width - cells(left), 0)), between, *right)


def header_lines(state: PairState, width: int, *, stacked: bool) -> list[Line]:
    """Return the names and results of the runs, on one line or two."""
    others = state.runs if len(set(state.batches)) < len(state.runs) else ()  # otherwise the batches tell them apart
    batches = [f"{batch} " for batch in state.batches] or ["", ""]
    names = [f"{number} {batches[number - 1]}{run_name(run, others)}" for number, run in enumerate(state.runs, 1)]
    if stacked:
        return [(Span(" "), *headline(name, run, width - 1)) for name, run in zip(names, state.runs, strict=True)]
    side = max((width - GUTTER) // 2, NARROWEST)
    left, right = (headline(name, run, side) for name, run in zip(names, state.runs, strict=True))
    return [cut_line(beside(left, Span(" │ ", "border"), right, side), width)]


def copied_pair(state: PairState) -> str:
    """Return the comparison as text without cuts. Folds stay folded."""
    lines = PairLines(state, _COPIED_CELLS, stacked=True, whole=True)
    head = [plain(line).strip() for line in header_lines(state, _COPIED_CELLS, stacked=True)]
    body = (plain(line).rstrip() for entry in range(len(state.entries)) for line in lines.lay_out(entry))
    return "\n".join([*head, state.sentence, "", *body, ""])
