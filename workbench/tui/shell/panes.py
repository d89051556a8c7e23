"""The three panes of the main screen: which of them are visible, how wide they are, and which has the focus."""

from __future__ import annotations

from itertools import pairwise

from textual import events, on
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget

from workbench.tui.case.pane import CasePane
from workbench.tui.kit.actions import PANES, Pane
from workbench.tui.kit.bars import PaneTitle
from workbench.tui.kit.memory import Layout
from workbench.tui.shell.borders import STEP, Splitter, borders_at, layout_of, move_border
from workbench.tui.shell.messages import panes_shown
from workbench.tui.trajectory.pane import RunPane
from workbench.tui.tree.selection import Selection
from workbench.tui.tree.view import FilterBox, SuiteTree


class PanesScreen(Screen[None]):
    """Places the panes. Subclasses supply their content and the bars around them."""

    DEFAULT_CSS = """
    PanesScreen { layout: vertical; background: $background; }
    #panes { height: 1fr; }
    #panes > Vertical { width: 1fr; height: 100%; }
    """
    # Textual would redraw the whole screen on every change of focus.
    focused: reactive[Widget | None] = reactive(None, repaint=False)

    def __init__(
        self,
        selection: Selection,
        suite_tree: SuiteTree,
        filter_box: FilterBox,
        case_pane: CasePane,
        run_pane: RunPane,
        editor: str | None,
    ) -> None:
        super().__init__()
        self.selection = selection
        self.book = selection.book
        self.suite_tree = suite_tree
        self.filter_box = filter_box
        """The input of the tree's filter."""
        self.case_pane = case_pane
        self.run_pane = run_pane
        self.editor = editor
        """The user's editor, as a command."""
        self.pane: Pane = "suites"
        self.right: Pane = "case"
        self.zoomed = False
        self.moved_borders: dict[Layout, tuple[float, ...]] = {}
        """By layout, the borders that the user moved, as shares of the width."""
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
        """Whether a different screen covers this one completely. A dialog does not."""
        return any(not screen.is_modal for screen in self.app.screen_stack[1:])

    @property
    def panes_in_sight(self) -> tuple[Pane, ...]:
        """The visible panes."""
        return self._shown

    def go_to(self, pane: Pane) -> None:
        """Focus a pane, showing it if it is hidden."""
        self.pane = pane
        if pane != "suites":
            self.right = pane
        self.place_panes()
        # At once, so that text typed next, and a field that opens in the pane, come after it.
        targets = {"case": self.case_pane.target, "run": self.run_pane.target}
        self.set_focus(targets.get(pane) or self.query_one(f"#{pane}"))
        self.refresh_bars()

    def bring(self, pane: Pane) -> None:
        """Show a pane without moving the focus, if there is room for both."""
        if not {pane, self.pane} <= {*panes_shown(self.app.size.width, self.pane, pane, self.zoomed)}:
            self.go_to(pane)
        else:
            self.right = pane
            self.place_panes()
            self.refresh_bars()

    def place_panes(self) -> None:
        """Show the panes that fit, with the widths that the user gave them."""
        self._shown = shown = panes_shown(self.app.size.width, self.pane, self.right, self.zoomed)
        starts = (-1, *self.borders)
        widths = {pane: end - start - 1 for pane, (start, end) in zip(shown, pairwise(starts), strict=False)}
        for pane in PANES:
            widget = self.query_one(f"#{pane}-pane")
            widget.display = pane in shown
            # The last one takes the rest. Textual lays out anew only for what differs.
            widget.styles.width = widths.get(pane, "1fr")
        for index in range(len(PANES) - 1):
            self.query_one(f"#splitter-{index}").display = index < len(shown) - 1

    @property
    def borders(self) -> tuple[int, ...]:
        """The columns of the borders between the visible panes."""
        layout = layout_of(self._shown)
        shares = self.moved_borders.get(layout, ()) if layout is not None else ()
        return borders_at(shares, self._shown, self.app.size.width)

    @property
    def are_borders_moved(self) -> bool:
        """Whether the user moved borders of the visible panes."""
        return layout_of(self._shown) in self.moved_borders

    def widen(self, sign: int) -> bool:
        """Make the pane that has the focus wider (1) or narrower (-1): its right border moves, of the last pane the
        left one. Returns whether there was room."""
        at = self._shown.index(self.pane)
        last = at == len(self._shown) - 1
        index = at - 1 if last else at
        return self._move_border(index, self.borders[index] + STEP * (-sign if last else sign))

    def reset_borders(self) -> None:
        """Move the borders of the visible panes back to where they were at first."""
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
        for pane in PANES:  # the event may come after the focus has moved on
            if pane != self.pane and self.query_one(f"#{pane}-pane") in self.focused.ancestors:
                self.pane = pane
                if pane != "suites":
                    self.right = pane
                self.place_panes()
                self.refresh_bars()

    @on(PaneTitle.Chosen)
    def _title_chosen(self, event: PaneTitle.Chosen) -> None:
        self.go_to(event.pane)
