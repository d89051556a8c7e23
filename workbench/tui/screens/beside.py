"""What the screens beside the main one have in common: a bar of keys, actions, two columns, and a filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, TypeVar

from textual import events, on
from textual.screen import Screen
from textual.widgets import Input

from workbench.reports.visible import one_line
from workbench.tui.actions import BY_ID, ScreenName, Situation, shown_keys
from workbench.tui.glyphs import GLYPHS
from workbench.tui.screens.help import HelpScreen
from workbench.tui.state.spans import Role, Span
from workbench.tui.widgets.bars import KeyBar

if TYPE_CHECKING:
    from workbench.tui.workbench import Workbench

Answer = TypeVar("Answer")
Column = Literal["list", "detail"]


class BesideScreen(Screen[Answer]):
    """A screen with keys of its own. Composes `Bar("NAME-title")`, what it shows, and `KeyBar("NAME-keys")`."""

    DEFAULT_CSS = "BesideScreen { layout: vertical; background: $background; }"
    NAME: ClassVar[ScreenName]

    def __init__(self, app: Workbench) -> None:
        super().__init__()
        self._workbench = app

    @property
    def situation(self) -> Situation:
        """What decides which actions can be taken."""
        return Situation(screen=self.NAME, has_text=True)

    @property
    def _keys(self) -> KeyBar:
        return self.query_one(f"#{self.NAME}-keys", KeyBar)

    def _show_bars(self) -> None:
        """Name the keys; below another screen none does anything. A screen adds its title to this."""
        self._keys.offer(shown_keys(self.situation) if self.app.screen is self else ())

    def on_screen_suspend(self) -> None:
        self._keys.offer(())

    def on_screen_resume(self) -> None:
        self._show_bars()

    def announce(self, text: str, role: Role = "text", sign: str = "") -> None:
        """Say something at the bottom, until the next key."""
        said = f" {sign} {one_line(text)}" if sign else f" {one_line(text)}"
        self._keys.announce((Span(said, role),))

    def action_do(self, action_id: str) -> None:
        """Take an action of the registry, or say why it cannot be taken."""
        self._keys.clear_notice()
        why = BY_ID[action_id].why_not(self.situation)
        if why is not None:
            self.announce(why[:1].upper() + why[1:], "warned", GLYPHS.warned)
        else:
            self._workbench.main.commands.perform(action_id, self._workbench.main)

    def help(self) -> None:
        """Show the keys."""
        self.app.push_screen(HelpScreen(self.situation))


class ColumnsScreen(BesideScreen[Answer]):
    """A list, and beside it everything about its row; where there is little room, one of the two.

    Composes `#columns` of `#list-column` with `#NAME-list`, and `#detail-column` with `#NAME-detail`.
    """

    DEFAULT_CSS = """
    ColumnsScreen #columns { height: 1fr; }
    ColumnsScreen #list-column { max-width: 60; height: 100%; }
    ColumnsScreen #detail-column { width: 1fr; height: 100%; border-left: solid $border; }
    ColumnsScreen.one #list-column { width: 1fr; max-width: 100%; }
    ColumnsScreen.one #detail-column { border-left: none; }
    """
    TWO_COLUMNS_CELLS: ClassVar[int]
    """From this width on both stand side by side."""

    column: Column = "list"

    def on_mount(self) -> None:
        self._place_columns()

    def on_resize(self, event: events.Resize) -> None:
        self._place_columns()

    @property
    def _one_column(self) -> bool:
        return self.app.size.width < self.TWO_COLUMNS_CELLS

    def _place_columns(self) -> None:
        one = self._one_column
        self.set_class(one, "one")
        self.query_one("#list-column").display = not one or self.column == "list"
        self.query_one("#detail-column").display = not one or self.column == "detail"

    def _go_to(self, column: Column) -> None:
        self.column = column
        self._place_columns()
        self.set_focus(self.query_one(f"#{self.NAME}-{column}"))

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if event.widget.id in (f"{self.NAME}-list", f"{self.NAME}-detail"):
            self.column = "list" if event.widget.id == f"{self.NAME}-list" else "detail"

    def other_column(self) -> None:
        """Go to the other column."""
        self._go_to("detail" if self.column == "list" else "list")

    def back(self) -> None:
        """Leave the detail, then the screen."""
        if self.column == "detail":
            self._go_to("list")
        else:
            self.dismiss()


class Filtered(Protocol):
    """What the list shows."""

    filter: str

    def set_filter(self, text: str) -> None:
        """Show only what has every word of `text`."""


class ListScreen(ColumnsScreen[Answer]):
    """Two columns whose list can be filtered. Composes the field `#NAME-filter` below the list."""

    DEFAULT_CSS = "ListScreen SafeInput { height: 1; border: none; padding: 0 1; background: $panel; }"

    state: Filtered

    @property
    def situation(self) -> Situation:
        return Situation(screen=self.NAME, has_text=True, typing="a filter" if self._filtering else None)

    def _show_state(self, *, moved: bool = True) -> None:
        """Show the list and its row as they are now; `moved`: the row is another one."""
        raise NotImplementedError

    def on_mount(self) -> None:
        super().on_mount()
        self._filter.display = False

    def back(self) -> None:
        """Leave the filter, then the detail, then the screen."""
        if self._filtering or self.state.filter:
            self._close_filter(keep=False)
        else:
            super().back()

    @property
    def _filter(self) -> Input:
        return self.query_one(f"#{self.NAME}-filter", Input)

    @property
    def _filtering(self) -> bool:
        return self.focused is self._filter

    def open_filter(self) -> None:
        """Type to filter the list."""
        self._go_to("list")
        box = self._filter
        box.value, box.display = self.state.filter, True
        self.set_focus(box)
        self._show_bars()

    @on(Input.Changed)
    def _filter_changed(self, event: Input.Changed) -> None:
        if self._filtering:
            self.state.set_filter(event.value)
            self._show_state()

    @on(Input.Submitted)
    def _filter_submitted(self) -> None:
        self._close_filter(keep=True)

    def _close_filter(self, *, keep: bool) -> None:
        self._filter.display = False
        if not keep:
            self.state.set_filter("")
        self._go_to("list")
        self._show_state()
