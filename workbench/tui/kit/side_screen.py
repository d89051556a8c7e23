"""The common parts of the screens above the main one: a key bar, actions, two columns, and a filter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from textual import events, on
from textual.screen import Screen
from textual.widgets import Input

from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Role, Span
from workbench.show.visible import one_line
from workbench.tui.kit.actions import (
    FILTERING,
    MOVING,
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
from workbench.tui.kit.help import HelpScreen
from workbench.tui.kit.stage import Answer, ClosesOnce

if TYPE_CHECKING:
    from workbench.authoring.case_list import CaseKey
    from workbench.tui.shell.workbench import Workbench


Column = Literal["list", "detail"]


_LAST = ("filter", "find", "find_next", "copy", "other", "back", "help", "quit")
"""The last actions in key bar and help."""


class Varied(NamedTuple):
    """A screen's difference in an action of its base: `name` is the part of its id after the screen's name."""

    name: str
    keys: str = ""
    title: str = ""
    label: str = ""


class SideScreen(ClosesOnce[Answer], Screen[Answer]):
    """A screen with its own keys.

    Composes `Bar("NAME-title")`, its content, and `KeyBar("NAME-keys")`.

    Its actions are the methods with `action`: `do_sort` performs `NAME.sort`. Textual calls the handlers of all bases,
    such as `on_mount`, so none calls that of its base.
    """

    DEFAULT_CSS = "SideScreen { layout: vertical; background: $background; }"
    NAME: ClassVar[str]
    """The name of the screen, with which the ids of its actions begin."""
    TITLE_IN_TEXT: ClassVar[str]
    """Its title in a sentence."""
    VARIED: ClassVar[tuple[Varied, ...]] = ()
    """This screen's differences in actions of its base."""
    FIRST: ClassVar[tuple[str, ...]] = ()
    """The first actions in key bar and help."""
    ACTIONS: ClassVar[tuple[Action, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        if hasattr(cls, "NAME"):
            cls.ACTIONS = tuple(map(cls._own, sorted(actions_of(cls), key=cls._rank)))
            cls.BINDINGS = bindings_for(cls.ACTIONS)
        super().__init_subclass__(**options)

    @classmethod
    def _rank(cls, action: Action) -> int:
        """Return the place of an action in key bar and help: its own ones come in the order of the class."""
        name = action.method.removeprefix("do_")
        if name in cls.FIRST:
            return cls.FIRST.index(name)
        return len(cls.FIRST) + (_LAST.index(name) + 1 if name in _LAST else 0)

    @classmethod
    def _own(cls, action: Action) -> Action:
        name = action.method.removeprefix("do_")
        own = replace(action, id=f"{cls.NAME}.{name}", where=cls.NAME)
        for varied in (varied for varied in cls.VARIED if varied.name == name):
            own = replace(
                own,
                keys=keys_of(varied.keys) or own.keys,
                title=varied.title or own.title,
                label=varied.label or own.label,
            )
        return own

    def __init__(self, stage: Workbench) -> None:
        super().__init__()
        self.stage = stage

    @property
    def ways_out(self) -> tuple[tuple[str, str], ...]:
        """The answer to Ctrl+C: actions, each by the part of its id after the screen's name, with their effects."""
        return ("back", "goes back"), ("quit", "quits"), ("help", "shows all keys")

    @property
    def situation(self) -> Situation:
        """The facts that decide which actions are available."""
        return Situation(has_text=True)

    @property
    def _keys(self) -> KeyBar:
        return self.query_one(f"#{self.NAME}-keys", KeyBar)

    @property
    def is_covered(self) -> bool:
        """Whether a different screen covers this one completely, or this one was closed.

        Drawing here would make Textual redraw the covering screen."""
        stack = self.app.screen_stack
        return self not in stack or any(not screen.is_modal for screen in stack[stack.index(self) + 1 :])

    def _show_bars(self) -> None:
        """Show the keys, none if a screen is above.

        Subclasses add their title."""
        self._keys.offer(self._offered() if self.app.screen is self else ())

    def _offered(self) -> list[tuple[Action, bool]]:
        """Return the keys to show, the most important first, each with whether it is available."""
        now = self.situation
        if now.typing == "a filter":
            return [(action, True) for action in FILTERING]
        return [
            (action, why_unavailable(action, now) is None)
            for action in self.ACTIONS
            if action.label and is_offered(action)
        ]

    def on_screen_suspend(self) -> None:
        self._keys.offer(())

    def on_screen_resume(self) -> None:
        self._show_bars()

    def announce(self, text: str, role: Role = "text", sign: str = "") -> None:
        """Show a notice at the bottom until the next key.

        If this screen has been closed, it is shown elsewhere."""
        if self not in self.app.screen_stack:
            self.stage.announce(text, role, sign)
            return
        message = f" {sign} {one_line(text)}" if sign else f" {one_line(text)}"
        for keys in self.query(KeyBar):  # none is left while the app ends
            keys.announce((Span(message, role),))

    def action_do(self, action_id: str) -> None:
        """Perform an action of this screen, or announce why it is unavailable."""
        if not self.is_mounted:  # the key was faster than the first drawing
            return
        self._keys.clear_notice()
        action = next(action for action in self.ACTIONS if action.id == action_id)
        why = why_unavailable(action, self.situation)
        if why is not None:
            self.announce(why[:1].upper() + why[1:], "warned", GLYPHS.warned)
            return
        if action.method != "do_quit":
            self.stage.acted()
        do: Callable[[], object] = getattr(self, action.method)
        do()

    @action("esc", "Leave the screen", label="back")
    def do_back(self) -> None:
        """Close the screen."""
        self.dismiss()

    @action("?", "Keys and help", label="keys")
    def do_help(self) -> None:
        """Show the keys."""
        sections = ((f"Here, in {self.TITLE_IN_TEXT}", self.ACTIONS), ("Moving", MOVING))
        self.stage.show(HelpScreen(sections, self.situation, partial(self.stage.keys_elsewhere, self.NAME)))

    @action("q", "Quit")
    def do_quit(self) -> None:
        """Quit by way of the main screen, which may ask something."""
        self.stage.quit()

    def delivered(self, cases: set[CaseKey], batches: bool) -> None:
        """Handle events or new grades of runs of these cases.

        `batches` is whether some began or ended. Also called below a different screen, where nothing may be drawn; see
        `is_covered`."""

    def follow_grades(self) -> None:
        """Handle the end of regrading.

        Also called below a different screen."""

    def second_passed(self) -> None:
        """Handle a second of active runs.

        Called only on the top screen."""


class Filtered(Protocol):
    """The state of a list with a filter."""

    filter: str

    def set_filter(self, text: str) -> None:
        """Show only rows with every word of `text`."""


class FilterScreen(SideScreen[Answer]):
    """A screen with a list that can be filtered.

    Composes a `FilterField` below it."""

    state: Filtered

    @property
    def situation(self) -> Situation:
        return Situation(has_text=True, typing="a filter" if self._filtering else None)

    def _show_state(self) -> None:
        """Show the present state of the list."""
        raise NotImplementedError

    def _to_list(self) -> None:
        """Focus the list."""
        raise NotImplementedError

    @property
    def _filter(self) -> FilterField:
        return self.query_one(FilterField)

    @property
    def _filtering(self) -> bool:
        return isinstance(self.focused, FilterField)

    @property
    def _filter_text(self) -> str:
        """The filter for the title, empty while it is being typed."""
        if self.state.filter and not self._filtering:
            return f"  /{one_line(self.state.filter)}"
        return ""

    @action("/", "Filter as you type", label="filter")
    def do_filter(self) -> None:
        """Type to filter the list."""
        self._to_list()
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
        self._to_list()
        self._show_state()


class ColumnsScreen(SideScreen[Answer]):
    """A list with the details of its selected row next to it.

    With little room, only one of them is visible.

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
    """From this width on, both are visible."""

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

    @action("tab shift+tab", "Next column")
    def do_other(self) -> None:
        """Go to the other column."""
        self._go_to("detail" if self.column == "list" else "list")

    @action("esc", "Leave the details or the screen", label="back")
    def do_back(self) -> None:
        """Leave the details, then the screen."""
        if self.column == "detail":
            self._go_to("list")
        else:
            super().do_back()
