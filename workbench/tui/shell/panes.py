"""The three panes of the main screen: visibility, widths, focus, and the borders between panes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from textual import events, on
from textual.message import Message as TextualMessage
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget

from workbench.authoring.document import CaseOutline
from workbench.config.read_only import is_read_only
from workbench.numerals import counted
from workbench.show.spans import Message
from workbench.show.visible import one_line
from workbench.suite.files import resolved
from workbench.suite.settings import models_of
from workbench.tui.case.pane import CasePane
from workbench.tui.kit.actions import PANES, Pane, unless_read_only
from workbench.tui.kit.bars import PaneTitle
from workbench.tui.kit.memory import Layout
from workbench.tui.quick_add.line import RequestLine
from workbench.tui.run_book.book import RunBook
from workbench.tui.runs.status_line import models_label
from workbench.tui.trajectory.pane import RunPane
from workbench.tui.tree.rows import Row
from workbench.tui.tree.selection import Selection, can_run
from workbench.tui.tree.state import TreeState
from workbench.tui.tree.stored_results import last_result_message
from workbench.tui.tree.view import FilterBox, SuiteTree

if TYPE_CHECKING:
    from workbench.tui.quick_add.adder import QuickAdder

MIN_PANE_CELLS: Mapping[Pane, int] = {"suites": 20, "case": 30, "run": 30}
"""The minimum width of each pane. The sum, with the borders, fits into the narrowest width with all three panes."""

STEP = 2
"""The number of cells that a key moves a border."""

_LAYOUTS: Mapping[int, Layout] = {2: "narrow", 3: "wide"}


def layout_of(panes: Sequence[Pane]) -> Layout | None:
    """Return the layout for these visible panes. `None` for a single pane, which has no borders."""
    return _LAYOUTS.get(len(panes))


def first_borders(panes: Sequence[Pane], width: int) -> tuple[int, ...]:
    """Return the default columns of the borders between panes on a screen of `width` cells."""
    # The tree takes about a quarter of the width. On a screen of more than 120 cells, it takes a larger share, so that
    # names fit beside results.
    tree = max(28, width * 26 // 100)
    if width > 120:
        tree = min(31 + (width - 120) * 45 // 100, 60)
    return (tree, tree + (width - tree) * 5 // 11)[: len(panes) - 1]


def move_border(borders: Sequence[int], index: int, column: int, panes: Sequence[Pane], width: int) -> tuple[int, ...]:
    """Move a border towards a column, within the minimum widths. Return all borders.

    The moved border pushes other borders."""
    found = list(borders)
    found[index] = column
    for left in range(index - 1, -1, -1):
        found[left] = min(found[left], found[left + 1] - 1 - MIN_PANE_CELLS[panes[left + 1]])
    for right in range(index + 1, len(found)):
        found[right] = max(found[right], found[right - 1] + 1 + MIN_PANE_CELLS[panes[right]])
    return _within_limits(found, panes, width)


def borders_at(shares: Sequence[float], panes: Sequence[Pane], width: int) -> tuple[int, ...]:
    """Return the columns of borders from shares of the width. If there are no shares, return the default columns."""
    if not shares or len(shares) != len(panes) - 1:
        return first_borders(panes, width)
    found = [round(share * width) for share in shares]
    # A damaged file may have borders too close together, so the borders are moved apart.
    return move_border(found, 0, found[0], panes, width)


def _within_limits(borders: Sequence[int], panes: Sequence[Pane], width: int) -> tuple[int, ...]:
    least = [MIN_PANE_CELLS[pane] for pane in panes]
    fitted: list[int] = []
    for at, column in enumerate(borders):
        first = sum(least[: at + 1]) + at
        last = width - sum(least[at + 1 :]) - (len(borders) - at)
        fitted.append(min(max(column, first), last))
    return tuple(fitted)


class Splitter(Widget):
    """A border between two panes that the mouse can drag."""

    DEFAULT_CSS = """
    Splitter { width: 1; height: 100%; border-left: solid $border; }
    Splitter.dragged { border-left: solid $accent; }
    """

    class Dragged(TextualMessage):
        """Posted while the mouse drags the border. Replaces an earlier message that was not yet handled."""

        def __init__(self, index: int, column: int) -> None:
            super().__init__()
            self.index = index
            self.column = column

        def can_replace(self, message: TextualMessage) -> bool:
            return isinstance(message, Splitter.Dragged)

    def __init__(self, index: int) -> None:
        super().__init__(id=f"splitter-{index}")
        self._index = index

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if event.button == 1:
            event.stop()
            self.capture_mouse()
            self.add_class("dragged")

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if not self.has_class("dragged"):
            return
        if event.button == 1:
            self.post_message(self.Dragged(self._index, event.screen_x))
        else:
            # The button was released outside of the terminal, where the mouse is not reported.
            self._end_drag()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self.has_class("dragged"):
            event.stop()
            self._end_drag()
            self.post_message(self.Dragged(self._index, event.screen_x))

    def on_hide(self) -> None:
        self._end_drag()

    def _end_drag(self) -> None:
        self.release_mouse()
        self.remove_class("dragged")


WIDE_CELLS = 120
NARROW_CELLS = 80


def panes_that_fit(width: int, focused: Pane, right: Pane, zoomed: bool) -> tuple[Pane, ...]:
    """Return the panes that fit into a width. The focused pane is always included.

    From 120 cells, all three panes fit. From 80 cells, the tree and one other pane fit: the focused pane or, if the
    tree has the focus, `right`."""
    if zoomed or width < NARROW_CELLS:
        return (focused,)
    if width < WIDE_CELLS:
        return ("suites", right if focused == "suites" else focused)
    return ("suites", "case", "run")


def _edits() -> Message:
    if is_read_only():
        return ()
    return (("", "text"), ("e  edits it", "text"))


def run_message(tree: TreeState, models: tuple[str, ...], book: RunBook) -> Message:
    """Return the message of the run pane if the selected row has no runs in this session."""
    row = tree.selected
    if row is None:
        return ()
    if row.case is not None and not row.has_rows:
        if row.case.skip is not None:
            return (("The suite skips this case:", "muted"), (one_line(row.case.skip), "text"))
        if row.open is not None and not can_run(row.open, row.case.key):
            return (("This case cannot run yet: it, or its suite, has errors.", "error"), *_edits())
        message: Message = (("Not run yet.", "strong"),)
        last = tree.remembered.shown((row.key.path, row.case.key), book)
        if last is not None:
            message = last_result_message(row, last, book.now())
        return (*message, *_runs_case(row, row.case, models))
    if row.open is not None and row.open.file.suite is None:
        cannot = f"{one_line(row.open.path.name)} cannot run: {counted(len(row.open.file.errors), 'error')}."
        if row.open.why_not_editable is not None:
            return ((cannot, "error"),)
        return ((cannot, "error"), *_edits())
    cases = sum(len(case_ids) for _, case_ids in tree.cases_below(row))
    if not cases:
        empty: Message = ((f"There is no case here yet.{unless_read_only(' n makes one.')}", "muted"),)
        if row.open is None or not row.open.is_new:
            return empty
        return (*empty, ("", "text"), (f"Ctrl+S  saves this suite as {one_line(str(resolved(row.open.path)))}", "text"))
    from workbench.tui.tree.suite_summary import last_runs, summary_message

    message = ((f"{counted(cases, 'case')}, not run yet.", "strong"),)
    found = last_runs(tree, row, book)
    if found.runs:
        message = summary_message(tree, found, book)
    hint: Message = (("Put the cursor on a case to see its run.", "muted"),)
    if not is_read_only():
        key = "r" if row.has_rows else "R"
        hint = ((f"{key}  runs all of them", "text"), *hint)
    return (*message, ("", "text"), *hint)


def _runs_case(row: Row, case: CaseOutline, models: tuple[str, ...]) -> Message:
    if is_read_only():
        return ()
    if not models and row.file is not None and row.file.suite is not None:
        models = models_of(row.file.suite, row.file.case_of(case.index, case.id))
    return (
        ("", "text"),
        (f"r  runs this case with {models_label(models)}", "text"),
        ("R  runs the whole suite", "text"),
        ("m  chooses models", "text"),
    )


class PanesScreen(Screen[None]):
    """The part of the main screen that arranges the panes and moves the focus. A subclass supplies content and bars."""

    DEFAULT_CSS = """
    PanesScreen { layout: vertical; background: $background; }
    #panes { height: 1fr; }
    #panes > Vertical { width: 1fr; height: 100%; }
    """
    # Without `repaint=False`, Textual would redraw the whole screen at every change of the focus.
    focused: reactive[Widget | None] = reactive(None, repaint=False)

    def __init__(
        self,
        selection: Selection,
        suite_tree: SuiteTree,
        filter_box: FilterBox,
        case_pane: CasePane,
        run_pane: RunPane,
        request_line: RequestLine,
        editor: str | None,
    ) -> None:
        super().__init__()
        self.selection = selection
        self.book = selection.book
        self.suite_tree = suite_tree
        self.filter_box = filter_box
        """The field of the tree's filter."""
        self.case_pane = case_pane
        self.run_pane = run_pane
        self.request_line = request_line
        """The line for new cases."""
        self.adder: QuickAdder | None = None
        """The controller of the line, `None` until the line is opened."""
        self.editor = editor
        """The command of the user's editor."""
        self.pane: Pane = "suites"
        self.right: Pane = "case"
        self.zoomed = False
        self.moved_borders: dict[Layout, tuple[float, ...]] = {}
        """The borders moved by the user, by layout, as shares of the width."""
        self._shown: tuple[Pane, ...] = PANES

    def on_mount(self) -> None:
        self.place_panes()

    def refresh_bars(self) -> None:
        """Update titles, status and keys."""
        raise NotImplementedError

    def show_titles(self) -> None:
        """Update the titles of the panes."""
        raise NotImplementedError

    @property
    def is_covered(self) -> bool:
        """Whether a screen other than a dialog covers the main screen."""
        return any(not screen.is_modal for screen in self.app.screen_stack[1:])

    @property
    def visible_panes(self) -> tuple[Pane, ...]:
        return self._shown

    def go_to(self, pane: Pane) -> None:
        """Focus a pane. Show the pane if it is hidden."""
        self.pane = pane
        if pane != "suites":
            self.right = pane
        self.place_panes()
        # The focus must move now, because the user may type at once, and a field that opens in the pane needs the
        # focus.
        targets = {"case": self.case_pane.target, "run": self.run_pane.target}
        self.set_focus(targets.get(pane) or self.query_one(f"#{pane}"))
        self.refresh_bars()

    def show_run_pane(self) -> None:
        """Show the run pane. Move the focus to it only if it does not fit beside the focused pane."""
        if "run" not in panes_that_fit(self.app.size.width, self.pane, "run", self.zoomed):
            self.go_to("run")
        else:
            self.right = "run"
            self.place_panes()
            self.refresh_bars()

    def show_run_beside_tree(self) -> None:
        """Show the tree and the run. If both do not fit, show only the run. The focus stays."""
        self.zoomed, self.right, self.pane = False, "run", "suites"
        if self.app.size.width < NARROW_CELLS:
            self.pane = "run"
        self.place_panes()

    def place_panes(self) -> None:
        """Show the panes that fit, with the widths set by the user."""
        self._shown = shown = panes_that_fit(self.app.size.width, self.pane, self.right, self.zoomed)
        starts = (-1, *self.borders)
        widths = {}
        for pane, (start, end) in zip(shown, pairwise(starts), strict=False):
            widths[pane] = end - start - 1
        for pane in PANES:
            widget = self.query_one(f"#{pane}-pane")
            widget.display = pane in shown
            # The last pane gets the remaining width. Textual repeats the layout only if a width changed.
            widget.styles.width = widths.get(pane, "1fr")
        for index in range(len(PANES) - 1):
            self.query_one(f"#splitter-{index}").display = index < len(shown) - 1

    @property
    def borders(self) -> tuple[int, ...]:
        """The columns of the borders between the visible panes."""
        shares: tuple[float, ...] = ()
        layout = layout_of(self._shown)
        if layout is not None:
            shares = self.moved_borders.get(layout, ())
        return borders_at(shares, self._shown, self.app.size.width)

    @property
    def are_borders_moved(self) -> bool:
        """Whether the user moved borders of the visible panes."""
        return layout_of(self._shown) in self.moved_borders

    def widen(self, sign: int) -> bool:
        """Make the focused pane wider (1) or narrower (-1). Return whether there was room."""
        # The right border moves. The last pane has only a left border.
        index, step = self._shown.index(self.pane), STEP * sign
        if index == len(self._shown) - 1:
            index, step = index - 1, -step
        return self._move_border(index, self.borders[index] + step)

    def reset_borders(self) -> None:
        """Move the borders of the visible panes to their default columns."""
        layout = layout_of(self._shown)
        if layout is not None:
            self.moved_borders.pop(layout, None)
            self.place_panes()

    def _move_border(self, index: int, column: int) -> bool:
        layout, before, width = layout_of(self._shown), self.borders, self.app.size.width
        if layout is None or index >= len(before):
            return False
        after = move_border(before, index, column, self._shown, width)
        if after == before:
            return False
        self.moved_borders[layout] = tuple(border / width for border in after)
        self.place_panes()
        return True

    @on(Splitter.Dragged)
    def _border_dragged(self, event: Splitter.Dragged) -> None:
        self._move_border(event.index, event.column)

    def on_resize(self, event: events.Resize) -> None:
        self.place_panes()
        self.show_titles()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if self.focused is None or self.filter_box.typing:
            return
        for pane in PANES:  # `event.widget` may be outdated, because the focus may have moved again
            if pane != self.pane and self.query_one(f"#{pane}-pane") in self.focused.ancestors:
                self.pane = pane
                if pane != "suites":
                    self.right = pane
                self.place_panes()
                self.refresh_bars()

    @on(PaneTitle.Chosen)
    def _title_chosen(self, event: PaneTitle.Chosen) -> None:
        self.go_to(event.pane)
