"""The screen of two runs side by side. Opens at the first difference."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.strip import Strip
from textual.widget import Widget

from workbench.authoring.case_list import CaseKey
from workbench.dataclasses import dataclass
from workbench.numerals import counted, counted_of
from workbench.show.spans import EMPTY, Line, Role, Span, title_line, wrap_line
from workbench.show.views.run_pair import TWO_COLUMNS_CELLS
from workbench.show.visible import one_line
from workbench.tui.kit.actions import Situation, action
from workbench.tui.kit.bars import KeyBar
from workbench.tui.kit.line_search import SearchedScreen
from workbench.tui.kit.line_view import LineView
from workbench.tui.kit.stage import in_background
from workbench.tui.kit.strips import Bar, palette_of, strip_of
from workbench.tui.run_book.record import RunRecord
from workbench.tui.run_pair.state import PairLines, PairState, Snapshot, active_count, copied_pair, header_lines
from workbench.tui.trajectory.headline import start_time
from workbench.tui.trajectory.screen import TrajectoryScreen

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


@dataclass(frozen=True)
class PairSituation(Situation):
    """The facts that decide which actions of the screen are available.

    `differ` is set if the runs have a difference."""

    differ: bool = False


def _differ(situation: PairSituation) -> str | None:
    if situation.differ:
        return None
    return "both runs say and do the same"


class PairHead(Widget):
    """The rows above the comparison: the first difference, and the names and results of the runs."""

    ALLOW_SELECT = False

    def __init__(self, widget_id: str) -> None:
        super().__init__(id=widget_id)
        self._rows: list[Line] = []

    def show(self, rows: list[Line]) -> None:
        if rows != self._rows:
            self._rows = rows
            self.styles.height = len(rows)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        line = self._rows[y] if y < len(self._rows) else EMPTY
        return strip_of(line, self.size.width, "panel", palette_of(self))


class PairList(LineView):
    """The view with the lines of two runs, in columns or stacked."""

    # Lines up to `_reach` rows beyond the window are laid out, and the number of other lines is estimated. When
    # `settle` lays out more lines, the indices of later lines change. It returns the new index of a given line.

    def __init__(self, state: PairState, widget_id: str) -> None:
        super().__init__(widget_id)
        self.stacking_choice: bool | None = None
        """The user's choice: stacked (`True`) or in columns (`False`). With `None`, the width decides."""
        self._lines = PairLines(state, self.text_width, stacked=False)
        self._begun = False
        """Whether the view has received its first size."""

    @property
    def stacked(self) -> bool:
        if self.stacking_choice is None:
            return self.size.width < TWO_COLUMNS_CELLS
        return self.stacking_choice

    def show(self, state: PairState) -> None:
        """Show a comparison from its first difference on."""
        self._lines = PairLines(state, self.text_width, stacked=self.stacked)
        self._begin()

    def _begin(self) -> None:
        first = self._lines.state.first
        self._go_to(self._lines.state.entry_of(first) if first is not None else 0)

    def to_difference(self, step: int) -> int | None:
        """Go to the next (1) or previous (-1) difference. Return its index, or `None` if the runs do not differ."""
        found = self._lines.state.difference_from(self._entry, step)
        if found is None:
            return None
        self._go_to(found[0])
        return found[1]

    def fold(self, folded: bool | None) -> None:
        """Fold (`True`), unfold (`False`) or toggle (`None`) the entry at the cursor.

        On an entry inside an unfolded group, fold the group."""
        entry = self._entry
        if not self._lines.turn(entry, folded) and folded:
            around = self._lines.state.fold_at(entry)
            if around is None or not self._lines.turn(around, True):
                return
            entry = around
        offset = self._lines.start_of(entry) - self.top
        self._go_to(entry, max(offset, 0))

    def place(self) -> None:
        """Lay out again after a change of width or arrangement. The cursor stays on its entry."""
        entry, offset = self._entry, self.cursor - self.top
        self._lines.arrange(self.text_width, stacked=self.stacked)
        if self._begun:
            self._go_to(entry, offset)
        else:
            self._begin()
        self._begun = True

    @property
    def _entry(self) -> int:
        return self._lines.item_at(min(self.cursor, max(self._lines.count - 1, 0))) or 0

    def _go_to(self, entry: int, offset: int | None = None) -> None:
        """Move the cursor to the first line of an entry, `offset` rows (by default a third) below the top."""
        rows = self.size.height // 3 if offset is None else offset
        self.cursor = self._lines.settle(self._lines.start_of(entry), self._reach)
        self.top = max(self.cursor - rows, 0)
        self.move_cursor(self.cursor)

    def line_count(self) -> int:
        return self._lines.count

    def line_at(self, index: int) -> Line:
        return self._lines.line(index)

    def lay_out_all(self) -> None:
        # The layout changes the number of lines above the cursor. The cursor and the window move by this number.
        at = self._lines.settle(self.cursor, sys.maxsize)
        self.top += at - self.cursor
        self.cursor = at

    def move_cursor(self, index: int) -> None:
        # The layout changes the number of lines, so a cursor on the last line is moved to the new last line.
        end = index >= self._lines.count - 1
        index = self._lines.settle(min(max(index, 0), self._lines.count - 1), self._reach)
        super().move_cursor(self._lines.count - 1 if end else index)

    def chosen(self, index: int) -> None:
        self.fold(None)

    def on_resize(self, event: events.Resize) -> None:
        self.place()

    @property
    def _reach(self) -> int:
        return 2 * max(self.size.height, 1)


_SAID_ROWS = 2
"""The maximum number of rows of the sentence on the first difference. The lines show the difference too."""


async def compare_runs(left: RunRecord, right: RunRecord) -> PairState:
    """Compare the current states of two runs in a thread."""
    now = Snapshot.of(left, right)
    return await in_background(lambda: PairState(left, right, snapshot=now))


class PairScreen(SearchedScreen[None]):
    """The screen of two runs. Compares the runs when it opens, and again when either run ends."""

    NAME = "pair"
    FIRST_ACTIONS = ("next", "previous", "expand", "copy", "first", "second")
    TITLE_IN_TEXT = "two runs side by side"
    AUTO_FOCUS = "#pair-list"

    def __init__(self, app: Workbench, state: PairState) -> None:
        super().__init__(app)
        self.state = state
        self._active_runs = state.active

    def compose(self) -> ComposeResult:
        yield Bar("pair-title")
        yield PairHead("pair-head")
        yield PairList(self.state, "pair-list")
        yield KeyBar("pair-keys")

    def on_mount(self) -> None:
        self._show_bars()

    def on_resize(self, event: events.Resize) -> None:
        self._show_bars()

    def update_runs(self, cases: set[CaseKey], batches: bool) -> None:
        if self.is_covered:
            return
        self._follow()
        if any((run.path, run.case_id) in cases for run in self.state.runs):
            self._show_bars()

    def on_screen_resume(self) -> None:
        self._follow()

    def _follow(self) -> None:
        if active_count(*self.state.runs) != self._active_runs:
            self._active_runs = active_count(*self.state.runs)
            self.run_worker(self._compare_again(), group="pair", exclusive=True)

    async def _compare_again(self) -> None:
        self.state = await compare_runs(*self.state.runs)
        self._active_runs = self.state.active
        self._list.show(self.state)
        self._show_bars()

    @property
    def _list(self) -> PairList:
        return self.query_one("#pair-list", PairList)

    def _show_bars(self) -> None:
        state, width = self.state, self.app.size.width
        names = dict.fromkeys(one_line(run.case_name) for run in state.runs)
        left: Line = (Span(" Side by side ", "badge"), Span(f" {' and '.join(names)}"))
        right: Line = (Span("no difference ", "passed"),)
        role: Role = "muted"
        if state.differences:
            right, role = (Span(f"{counted(len(state.differences), 'difference')} ", "warned"),), "warned"
        self.query_one("#pair-title", Bar).set_line(lambda width: title_line(left, (right,), width))
        sentence = wrap_line((Span(f" {one_line(state.sentence)}", role),), width, 1)
        self.query_one(PairHead).show([*sentence[:_SAID_ROWS], *header_lines(state, width, stacked=self._list.stacked)])
        super()._show_bars()

    @property
    def situation(self) -> PairSituation:
        return PairSituation(has_text=True, differ=bool(self.state.differences))

    @action("]", "Next difference", label="next", needs=_differ)
    def do_next(self) -> None:
        self._to_difference(1)

    @action("[", "Previous difference", label="previous", needs=_differ)
    def do_previous(self) -> None:
        self._to_difference(-1)

    def _to_difference(self, step: int) -> None:
        number = self._list.to_difference(step)
        if number is not None:
            self.announce(counted_of(number + 1, len(self.state.differences), "difference"))

    @action("enter", "Show all of it, or fold it", label="expand")
    def do_expand(self) -> None:
        self._list.fold(None)

    @action("left", "Fold")
    def do_fold(self) -> None:
        self._list.fold(True)

    @action("right", "Unfold")
    def do_unfold(self) -> None:
        self._list.fold(False)

    @action("tab", "Side by side, or one above the other")
    def do_layout(self) -> None:
        self._list.stacking_choice = not self._list.stacked
        self._list.place()
        self._show_bars()

    @action("1", "Open the first run", label="first run")
    def do_first(self) -> None:
        self._show_alone(self.state.runs[0])

    @action("2", "Open the second run", label="second run")
    def do_second(self) -> None:
        self._show_alone(self.state.runs[1])

    def _show_alone(self, run: RunRecord) -> None:
        self.workbench.show(TrajectoryScreen(self.workbench, run, start_time(run)))

    @action("y", "Copy the comparison as text", label="copy")
    def do_copy(self) -> None:
        self.workbench.copy(copied_pair(self.state), "the comparison", self.announce)


async def pair_screen(
    app: Workbench, left: RunRecord, right: RunRecord, batches: tuple[str, ...] | None = None
) -> PairScreen:
    """Compare two runs in a thread, and return their screen.

    `batches` are the names of the runs' batches, if stored."""
    state = await compare_runs(left, right)
    if batches is not None:
        state.batches = batches
    return PairScreen(app, state)


def open_pair(app: Workbench) -> None:
    """Compare the displayed run with its origin. Without an origin, compare it with the next run of the case."""
    runs, shown = app.selection.runs, app.selection.run
    if shown is None or len(runs) < 2:
        return
    next_one = runs[(app.selection.chosen_run + 1) % len(runs)]
    other = next((run for run in runs if run is shown.origin), next_one)
    left, right = sorted((shown, other), key=runs.index)

    async def show() -> None:
        screen = await pair_screen(app, left, right)
        # The user may have opened another screen meanwhile.
        if app.shows_main:
            app.show(screen)

    app.work(show(), "pair", exclusive=True)
