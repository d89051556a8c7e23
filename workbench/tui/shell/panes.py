"""The three panes of the main screen: which of them are visible, and which has the focus."""

from __future__ import annotations

from textual import events, on
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget

from workbench.tui.case.pane import CasePane
from workbench.tui.kit.actions import PANES, Pane
from workbench.tui.kit.bars import PaneTitle
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
    #panes > #suites-pane { width: 26%; min-width: 28; max-width: 46; }
    #panes > #run-pane { width: 1.2fr; }
    #panes > .beside { border-left: solid $border; }
    #panes > #suites-pane.alone { width: 1fr; max-width: 100%; }
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
        if panes_shown(self.app.size.width, self.pane, pane, self.zoomed) == (self.pane,):
            self.go_to(pane)
        else:
            self.right = pane
            self.place_panes()
            self.refresh_bars()

    def place_panes(self) -> None:
        """Show the panes that fit."""
        shown = panes_shown(self.app.size.width, self.pane, self.right, self.zoomed)
        if shown == self._shown:
            return
        self._shown = shown
        for pane in (*shown, *(pane for pane in PANES if pane not in shown)):
            widget = self.query_one(f"#{pane}-pane")
            widget.display = pane in shown
            widget.set_class(len(shown) == 1, "alone")
            widget.set_class(pane != shown[0], "beside")

    def on_resize(self, event: events.Resize) -> None:
        self.place_panes()
        self.show_titles()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        for pane in () if self.filter_box.typing else PANES:
            if pane != self.pane and self.query_one(f"#{pane}-pane") in event.widget.ancestors:
                self.pane = pane
                if pane != "suites":
                    self.right = pane
                self.refresh_bars()

    @on(PaneTitle.Chosen)
    def _title_chosen(self, event: PaneTitle.Chosen) -> None:
        self.go_to(event.pane)
