"""Base classes of the screens that cover the main screen: with a key bar, with two columns, with a filter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from textual import events, on
from textual.screen import Screen
from textual.widgets import Input

from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Role, Span
from workbench.show.visible import one_line
from workbench.tui.kit.actions import (
    FILTERING,
    MOVE_ACTIONS,
    Action,
    Situation,
    action,
    actions_of,
    bindings_for,
    is_offered,
    keys_of,
    why_unavailable,
)
from workbench.tui.kit.bars import KeyBar
from workbench.tui.kit.fields import FilterField
from workbench.tui.kit.stage import Answer, DismissOnce

if TYPE_CHECKING:
    from workbench.authoring.case_list import CaseKey
    from workbench.tui.shell.workbench import Workbench


Column = Literal["list", "detail"]


_LAST_ACTIONS = ("filter", "find", "find_next", "copy", "other", "back", "help", "quit")
"""The names of actions at the end of key bar and help, in this order."""


class ActionOverride(NamedTuple):
    """The keys and texts with which one screen replaces those of an inherited action.

    `name` is the action's id without the name of the screen. Empty fields keep the inherited value."""

    name: str
    keys: str = ""
    title: str = ""
    label: str = ""


class SideScreen(DismissOnce[Answer], Screen[Answer]):
    """A screen that covers the main screen, with a title, actions and a key bar.

    A subclass composes `Bar("NAME-title")`, its content, and `KeyBar("NAME-keys")`. Its actions are the methods
    declared with `@action`: `do_sort` performs `NAME.sort`."""

    # Textual calls the handlers of all base classes, such as every `on_mount`. Handlers here therefore never call
    # `super()`.
    DEFAULT_CSS = "SideScreen { layout: vertical; background: $background; }"
    NAME: ClassVar[str]
    """The name of the screen, and the first part of its actions' ids."""
    TITLE_IN_TEXT: ClassVar[str]
    """The title of the screen within a sentence."""
    ACTION_OVERRIDES: ClassVar[tuple[ActionOverride, ...]] = ()
    """Inherited actions with other keys or texts on this screen."""
    FIRST_ACTIONS: ClassVar[tuple[str, ...]] = ()
    """The names of actions at the start of key bar and help, in this order."""
    ACTIONS: ClassVar[tuple[Action, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        if hasattr(cls, "NAME"):
            cls.ACTIONS = tuple(map(cls._with_override, sorted(actions_of(cls), key=cls._rank)))
            cls.BINDINGS = bindings_for(cls.ACTIONS)
        super().__init_subclass__(**options)

    @classmethod
    def _rank(cls, action: Action) -> int:
        name = action.method.removeprefix("do_")
        if name in cls.FIRST_ACTIONS:
            return cls.FIRST_ACTIONS.index(name)
        if name in _LAST_ACTIONS:
            return len(cls.FIRST_ACTIONS) + _LAST_ACTIONS.index(name) + 1
        return len(cls.FIRST_ACTIONS)

    @classmethod
    def _with_override(cls, action: Action) -> Action:
        name = action.method.removeprefix("do_")
        own = replace(action, id=f"{cls.NAME}.{name}", scope=cls.NAME)
        for varied in cls.ACTION_OVERRIDES:
            if varied.name == name:
                own = replace(
                    own,
                    keys=keys_of(varied.keys) or own.keys,
                    title=varied.title or own.title,
                    label=varied.label or own.label,
                )
        return own

    def __init__(self, app: Workbench) -> None:
        super().__init__()
        self.workbench = app

    @property
    def exit_actions(self) -> tuple[tuple[str, str], ...]:
        """The actions that are listed in the notice after Ctrl+C, each with its effect."""
        return ("back", "goes back"), ("quit", "quits"), ("help", "shows all keys")

    @property
    def situation(self) -> Situation:
        """The facts that decide which actions of the screen are available."""
        return Situation(has_text=True)

    @property
    def _keys(self) -> KeyBar:
        return self.query_one(f"#{self.NAME}-keys", KeyBar)

    @property
    def is_covered(self) -> bool:
        """Whether another screen covers this screen completely, or this screen is closed."""
        # If a covered screen drew, Textual would redraw the screen that covers it.
        stack = self.app.screen_stack
        return self not in stack or any(not screen.is_modal for screen in stack[stack.index(self) + 1 :])

    def _show_bars(self) -> None:
        """Show the keys, or no keys while a dialog covers the screen. A subclass also shows its title."""
        if self.app.screen is self:
            self._keys.offer(self._key_bar_actions())
        else:
            self._keys.offer(())

    def _key_bar_actions(self) -> list[tuple[Action, bool]]:
        now = self.situation
        if now.typing == "a filter":
            return [(action, True) for action in FILTERING]
        offered = []
        for one in self.ACTIONS:
            if one.label and is_offered(one):
                offered.append((one, why_unavailable(one, now) is None))
        # Available keys come before unavailable ones, which may not fit. The keys of going back and of help stay at the
        # end.
        return sorted(offered, key=lambda each: (each[0].id.endswith((".back", ".help")), not each[1]))

    def on_screen_suspend(self) -> None:
        self._keys.offer(())

    def on_screen_resume(self) -> None:
        self._show_bars()

    def announce(self, text: str, role: Role = "text", sign: str = "") -> None:
        """Show a notice at the bottom until the next key. If this screen is closed, the current screen shows it."""
        if self not in self.app.screen_stack:
            self.workbench.announce(text, role, sign)
            return
        message = f" {one_line(text)}"
        if sign:
            message = f" {sign}{message}"
        # When the app ends, the key bar may already be gone.
        for keys in self.query(KeyBar):
            keys.announce((Span(message, role),))

    def action_do(self, action_id: str) -> None:
        """Perform an action of the screen, or announce why it is unavailable."""
        # A key may arrive before the screen is built.
        if not self.is_mounted:
            return
        self._keys.clear_notice()
        action = next(action for action in self.ACTIONS if action.id == action_id)
        why = why_unavailable(action, self.situation)
        if why is not None:
            self.announce(why[:1].upper() + why[1:], "warned", GLYPHS.warned)
            return
        if action.method != "do_quit":
            self.workbench.record_action()
        do: Callable[[], object] = getattr(self, action.method)
        do()

    @action("esc", "Leave the screen", label="back")
    def do_back(self) -> None:
        self.dismiss()

    @action("?", "Keys and help", label="keys")
    def do_help(self) -> None:
        sections = ((f"Here, in {self.TITLE_IN_TEXT}", self.ACTIONS), ("Moving", MOVE_ACTIONS))
        self.workbench.show_keys(sections, self.situation, self.NAME)

    @action("q", "Quit")
    def do_quit(self) -> None:
        """Quit the app. The main screen may first ask about unsaved changes or active runs."""
        self.workbench.quit()

    def update_runs(self, cases: set[CaseKey], batches: bool) -> None:
        """Update the screen after the runs of `cases` had events or were regraded. Does nothing unless overridden.

        `batches` is whether batches began or ended. A screen that is covered (`is_covered`) is updated too, but must
        not draw."""

    def update_grades(self) -> None:
        """Update the screen after a regrade, even if another screen covers it. Does nothing unless overridden."""

    def update_times(self) -> None:
        """Update the times of active runs. Called once a second, only on the top screen."""


class Filtered(Protocol):
    """The state of a list with a filter."""

    filter: str

    def set_filter(self, text: str) -> None:
        """Show only rows with every word of `text`."""


class FilterScreen(SideScreen[Answer]):
    """A screen with a filtered list. A subclass composes the `FilterField` below the list."""

    state: Filtered

    @property
    def situation(self) -> Situation:
        return Situation(has_text=True, typing="a filter" if self._filtering else None)

    def _show_state(self) -> None:
        """Redraw the screen after the filter changed."""
        raise NotImplementedError

    def _focus_list(self) -> None:
        raise NotImplementedError

    @property
    def _filter(self) -> FilterField:
        return self.query_one(FilterField)

    @property
    def _filtering(self) -> bool:
        return isinstance(self.focused, FilterField)

    @property
    def _filter_text(self) -> str:
        if self.state.filter and not self._filtering:
            return f"  /{one_line(self.state.filter)}"
        return ""

    @action("/", "Filter as you type", label="filter")
    def do_filter(self) -> None:
        self._focus_list()
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
        self._focus_list()
        self._show_state()


class ColumnsScreen(SideScreen[Answer]):
    """A screen with a list and, beside it, the details of the selected row.

    A narrow screen shows either the list or the details. A subclass composes `#columns`, which contains `#list-column`
    with `#NAME-list`, and `#detail-column` with `#NAME-detail`."""

    DEFAULT_CSS = """
    ColumnsScreen #columns { height: 1fr; }
    ColumnsScreen #list-column { max-width: 60; height: 100%; }
    ColumnsScreen #detail-column { width: 1fr; height: 100%; border-left: solid $border; }
    ColumnsScreen.one #list-column { width: 1fr; max-width: 100%; }
    ColumnsScreen.one #detail-column { border-left: none; }
    """
    TWO_COLUMNS_CELLS: ClassVar[int]
    """The minimum screen width for both columns."""

    column: Column = "list"

    def on_mount(self) -> None:
        self._place_columns()

    def on_resize(self, event: events.Resize) -> None:
        self._place_columns()

    @property
    def _is_one_column(self) -> bool:
        return self.app.size.width < self.TWO_COLUMNS_CELLS

    def _place_columns(self) -> None:
        one = self._is_one_column
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

    @action("tab shift+tab", "Next column")
    def do_other(self) -> None:
        self._go_to("detail" if self.column == "list" else "list")

    @action("esc", "Leave the details or the screen", label="back")
    def do_back(self) -> None:
        if self.column == "detail":
            self._go_to("list")
        else:
            super().do_back()
