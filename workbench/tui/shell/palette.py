"""The palette: every action of the screen below by name, found by fuzzy search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from workbench.limits import MAX_FILTER_CHARS
from workbench.show.spans import Line, Span, spread
from workbench.tui.kit.actions import Action, why_unavailable
from workbench.tui.kit.dialogs import Dialog, keys_line
from workbench.tui.kit.fields import SafeInput
from workbench.tui.kit.keymap import Keymap
from workbench.tui.kit.line_view import LineView, Motion
from workbench.tui.kit.memory import Memory
from workbench.tui.kit.painting import Bar, PaintedApp
from workbench.tui.kit.side_screen import SideScreen
from workbench.tui.shell.all_actions import offered_actions
from workbench.tui.shell.main_screen import MainScreen
from workbench.tui.shell.palette_rows import Entry, Groups, Row, rows_of, sections_for
from workbench.tui.shell.situation import situation_of
from workbench.tui.terminal.theming import Ground

_ROWS_AROUND = 7
"""The rows of border, title, field, keys, and the margins above and below."""

_MAX_ROWS = 20

_NOTHING = Row((Span("  No command is called that: Backspace widens the search", "muted"),))


class PaletteList(LineView, can_focus=False):
    """The actions. Keys come from the field, which keeps the focus."""

    GROUND: ClassVar[Ground] = "panel"
    RESTING_GROUND: ClassVar[Ground] = "cursor"

    def __init__(
        self,
        groups: Groups,
        names: Mapping[str, str],
        recent: Sequence[str],
        why_not: Callable[[Action], str | None],
    ) -> None:
        super().__init__("commands")
        self._groups = groups
        self._names = names
        self._recent = recent
        self._why_not = why_not
        self._built_at = -1
        self._rows: Sequence[Row] = ()
        self._places: Sequence[int] = ()
        """The first row of each entry."""
        self.search("")

    @property
    def entries(self) -> Sequence[Entry]:
        """All actions that are found, in their order."""
        return self._entries

    @property
    def chosen_action(self) -> Action | None:
        """The action that the cursor is on."""
        self.line_count()
        at = self._rows[self.cursor].entry if self.cursor < len(self._rows) else None
        return self._entries[at].action if at is not None else None

    def search(self, query: str) -> None:
        """Show what matches a query, with the cursor on the first of it."""
        self._sections = sections_for(self._groups, self._recent, self._why_not, query)
        self._entries = [entry for section in self._sections for entry in section.entries]
        self._built_at = -1
        self.top = 0
        if self.is_mounted:
            self.move_cursor(0)

    @property
    def has_cursor(self) -> bool:
        return bool(self._entries)

    def line_count(self) -> int:
        if self._built_at != self.text_width:
            self._built_at = self.text_width
            self._rows = rows_of(self._sections, self._names, self.text_width) or [_NOTHING]
            firsts: dict[int, int] = {}
            for index, row in enumerate(self._rows):
                if row.entry is not None:
                    firsts.setdefault(row.entry, index)
            self._places = list(firsts.values())
        return len(self._rows)

    def line_at(self, index: int) -> Line:
        return self._rows[index].line

    def first_of(self, index: int) -> int:
        entry = self._rows[index].entry
        return index if entry is None else self._places[entry]

    def _place_cursor(self, index: int) -> None:
        """Select the action at a line, or the next one. All of its lines and the title above it come into view."""
        count, height = self.line_count(), max(self.size.height, 1)
        last = self._places[-1] if self._places else 0
        index = min(max(index, 0), last)
        self.cursor = next((place for place in self._places if self._end(place) > index), last)
        first = self.cursor
        while first > 0 and self._rows[first - 1].entry is None:
            first -= 1
        end = self._end(self.cursor)
        self.top = max(min(max(self.top, end - height), first, count - 1), 0)

    def _end(self, place: int) -> int:
        """Return the line behind an action."""
        entry, end = self._rows[place].entry, place
        while end < len(self._rows) and self._rows[end].entry == entry:
            end += 1
        return end

    def action_move(self, motion: Motion) -> None:
        """Go from action to action. Up from the first one leads to the last, and the other way round."""
        self.line_count()
        if not self._places:
            return
        at = self._places.index(self.cursor) if self.cursor in self._places else 0
        if motion == "up":
            self.move_cursor(self._places[at - 1])
        elif motion == "down":
            self.move_cursor(self._places[(at + 1) % len(self._places)])
        else:
            super().action_move(motion)

    def chosen(self, index: int) -> None:
        screen = self.screen
        assert isinstance(screen, Palette)
        screen.choose()


class Palette(Dialog[str]):
    """Asks for an action of a screen. Closes with its id."""

    HAS_SUBJECT: ClassVar[bool] = False
    TITLE_LINE: ClassVar[str] = "Commands"
    # Nothing is dimmed: that would draw the whole screen anew.
    DEFAULT_CSS = """
    Palette { align: center top; background: transparent; }
    Palette > Vertical { width: 90; margin-top: 1; }
    Palette Input { height: 1; border: none; padding: 0 1; margin: 0 1 1 1; background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move('up')", show=False),
        Binding("down", "move('down')", show=False),
        Binding("pageup", "move('page_up')", show=False),
        Binding("pagedown", "move('page_down')", show=False),
        Binding("ctrl+home", "move('home')", show=False),
        Binding("ctrl+end", "move('end')", show=False),
    ]

    def __init__(
        self,
        groups: Groups,
        keymap: Keymap,
        recent: Sequence[str],
        why_not: Callable[[Action], str | None],
    ) -> None:
        super().__init__(keys_line(("↑↓", "choose"), ("Enter", "do it"), ("Esc", "close")))
        names = {action.id: keymap.names(action) for _, actions in groups for action in actions}
        self._list = PaletteList(groups, names, recent, why_not)
        self._all = len(self._list.entries)

    def body(self) -> ComposeResult:
        yield SafeInput("", "type to search", widget_id="query", max_length=MAX_FILTER_CHARS)
        yield self._list

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#query"))
        self._list.move_cursor(0)

    def _make_room(self, height: int) -> None:
        """Set the height of the list. It stays the same during a search, so that nothing around it is drawn anew."""
        self._list.styles.height = max(min(height - _ROWS_AROUND, _MAX_ROWS), 1)

    @on(Input.Changed)
    def _query_changed(self, event: Input.Changed) -> None:
        self._list.search(event.value)
        count = f"{len(self._list.entries)} of {self._all} " if event.value.strip() else ""
        head: Line = (Span(f" {self.TITLE_LINE}", "heading"),)
        self.query_one("#title", Bar).say(lambda width: spread(head, (Span(count, "muted"),), width))

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.choose()

    def choose(self) -> None:
        """Close with the action at the cursor. If it is unavailable, the screen below says why."""
        if (action := self._list.chosen_action) is not None:
            self.dismiss(action.id)

    def action_move(self, motion: Motion) -> None:
        """Move the cursor of the list."""
        self._list.action_move(motion)


def open_palette(app: PaintedApp, main: MainScreen, memory: Memory) -> None:
    """Show the palette over the main screen or a side screen, and remember what is chosen."""
    screen = app.screen
    side = screen if isinstance(screen, SideScreen) else None
    situation = side.situation if side is not None else situation_of(main)

    def why_not(action: Action) -> str | None:
        if screen is main and main.run_pane.takes(action.id):
            return None
        why = why_unavailable(action, situation)
        return app.keymap.in_words(why) if why is not None else None

    async def take(action_id: str | None) -> None:
        if action_id is None:
            return
        memory.change(lambda known: known.with_command(action_id))
        if screen in app.screen_stack:  # otherwise it was closed meanwhile
            of_screen = side is None or any(action.id == action_id for action in side.ACTIONS)
            # Not on the screen that is shown by now, but on the one that it was offered for.
            await screen.run_action(f"{'' if of_screen else 'app.'}do('{action_id}')")

    app.push_screen(Palette(offered_actions(side), app.keymap, memory.read().commands, why_not), take)
