"""The palette: a dialog that finds any action of a screen by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from workbench.dataclasses import dataclass
from workbench.limits import MAX_FILTER_CHARS
from workbench.numerals import of_text
from workbench.show.search import NO_QUERY, fuzzy_match, marked_spans
from workbench.show.spans import EMPTY, Line, Role, Span, cells, hanging_paragraph, spread, wrap_line
from workbench.show.visible import one_line
from workbench.tui.kit.actions import Action, Keymap, Situation, why_unavailable
from workbench.tui.kit.dialogs import Dialog, keys_line
from workbench.tui.kit.fields import SafeInput
from workbench.tui.kit.line_view import LineView, Motion
from workbench.tui.kit.memory import Memory
from workbench.tui.kit.side_screen import SideScreen
from workbench.tui.kit.strips import Bar
from workbench.tui.shell.actions import offered_actions
from workbench.tui.shell.main_screen import MainScreen
from workbench.tui.shell.situation import situation_of
from workbench.tui.terminal.theme import Ground

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench

Groups = Sequence[tuple[str, Sequence[Action]]]
"""The titled groups of actions in the palette."""

RECENT, UNAVAILABLE = "Recent", "Not now"

MAX_RECENT = 5

_INDENT, _WHY_INDENT, _GAP = 2, 4, 2

_OTHER_WORD = 250
"""The score of a match with another word for an action. It is below a match at the start of the title, and above a
match inside of the title."""

_MIN_TYPED = 2
"""The minimum number of typed letters for a search in other words."""

_MIN_TITLE_CELLS = 12
"""The minimum width of titles beside keys. With less, keys are omitted."""


@dataclass(frozen=True)
class Entry:
    """One action in the palette.

    `why` is the reason why the action is unavailable. `matched` has the positions in its title that match the search.
    """

    action: Action
    why: str | None = None
    matched: frozenset[int] = NO_QUERY.positions
    other_words: str = ""
    """Other words for the action that match the query."""


@dataclass(frozen=True)
class Section:
    """Entries of the palette below a title. The title is empty for the results of a search."""

    title: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Row:
    """One line of the palette. `entry` is the index of its entry, `None` for titles and blank lines."""

    line: Line
    entry: int | None = None


def sections_for(
    groups: Groups, recent: Sequence[str], why_not: Callable[[Action], str | None], query: str
) -> list[Section]:
    """Return the sections of the palette for a query, unavailable actions last.

    An empty query returns the `recent` actions, then all others by group. Any other query returns the best match first.
    """
    if not query.strip():
        return _by_area(groups, recent, why_not)
    words = query.casefold().split()
    found: list[tuple[int, Entry]] = []
    for action in _actions_in(groups):
        match = _match(words, action)
        if match is not None:
            score, positions, also = match
            found.append((score, Entry(action, why_not(action), positions, also)))
    # Of equal matches, the most recently chosen comes first.
    found.sort(key=lambda each: (-each[0], _age(each[1].action, recent)))
    return _with_unavailable_last([("", [entry for _, entry in found])])


def _match(words: Sequence[str], action: Action) -> tuple[int, frozenset[int], str] | None:
    """Match the words of a query. Return a score, the matching positions in the title, and the matching keywords.

    Return `None` unless each word matches the title or a keyword of the action."""
    score, positions, also = 0, set[int](), dict[str, None]()
    for word in words:
        in_title, other = fuzzy_match(word, action.title), _other_word(word, action)
        if other is not None and (in_title is None or in_title.score < _OTHER_WORD):
            score += _OTHER_WORD
            also[other] = None
        elif in_title is not None:
            score += in_title.score
            positions |= in_title.positions
        else:
            return None
    return score, frozenset(positions), " ".join(also)


def _actions_in(groups: Groups) -> list[Action]:
    return list(chain.from_iterable(actions for _, actions in groups))


def _other_word(typed: str, action: Action) -> str | None:
    if len(typed) < _MIN_TYPED:
        return None
    for word in action.words.split():
        if word.startswith(typed):
            return word
    return None


def _by_area(groups: Groups, recent: Sequence[str], why_not: Callable[[Action], str | None]) -> list[Section]:
    entries = {}
    for action in _actions_in(groups):
        entries[action.id] = Entry(action, why_not(action))
    latest: dict[str, Entry] = {}
    for action_id in recent:
        if len(latest) < MAX_RECENT and action_id in entries and entries[action_id].why is None:
            latest[action_id] = entries[action_id]
    titled = [(RECENT, list(latest.values()))]
    for title, actions in groups:
        titled.append((title, [entries[action.id] for action in actions if action.id not in latest]))
    return _with_unavailable_last(titled)


def _with_unavailable_last(titled: Iterable[tuple[str, Sequence[Entry]]]) -> list[Section]:
    sections: list[Section] = []
    unavailable: list[Entry] = []
    for title, entries in titled:
        available: list[Entry] = []
        for entry in entries:
            if entry.why is None:
                available.append(entry)
            else:
                unavailable.append(entry)
        sections.append(Section(title, tuple(available)))
    sections.append(Section(UNAVAILABLE, tuple(unavailable)))
    return [section for section in sections if section.entries]


def _age(action: Action, recent: Sequence[str]) -> int:
    if action.id in recent:
        return recent.index(action.id)
    return len(recent)


def rows_of(sections: Sequence[Section], names: Mapping[str, str], width: int) -> list[Row]:
    """Return the rows of the palette for a width: titles of actions, wrapped if necessary, and a column of keys.

    `names` are the keys of all actions by id, including actions that are not listed."""
    # The widest key of all actions decides the width, so the column does not move during a search.
    keys_width = max(map(cell_len, names.values()), default=0)
    room = width - _INDENT - _GAP - keys_width - 1
    if room < _MIN_TITLE_CELLS:
        room, names = width - _INDENT - 1, dict.fromkeys(names, "")
    rows: list[Row] = []
    at = 0
    for section in sections:
        if section.title and rows:
            rows.append(Row(EMPTY))
        if section.title:
            rows.append(Row((Span(f" {section.title}", "heading"),)))
        for entry in section.entries:
            rows += [Row(line, at) for line in _entry_lines(entry, names[entry.action.id], room, width)]
            at += 1
    return rows


def _entry_lines(entry: Entry, keys: str, max_width: int, width: int) -> list[Line]:
    plain: Role = "text"
    matched: Role = "heading"
    key: Role = "accent"
    if entry.why is not None:
        plain, matched, key = "muted", "strong", "muted"
    title = tuple(marked_spans(entry.action.title, entry.matched, plain, matched))
    if entry.other_words:
        title += (Span(f"  {entry.other_words}", "muted"),)
    first, *others = wrap_line(title, max(max_width, 1))
    lines: list[Line] = [
        (Span(" " * _INDENT), *first, Span(" " * max(max_width - cells(first) + _GAP, 0)), Span(keys, key))
    ]
    lines += [(Span(" " * _INDENT), *row) for row in others]
    if entry.why is not None:
        lines += hanging_paragraph(
            (Span(" " * _WHY_INDENT),), one_line(entry.why), "muted", max(width - _WHY_INDENT - 1, 10)
        )
    return lines


_OTHER_ROWS = 7
"""The rows of border, title, field and keys, and of the margins above and below."""

_MAX_ROWS = 20

_NOTHING = Row((Span("  No command is called that: Backspace widens the search", "muted"),))


class PaletteList(LineView, can_focus=False):
    """The list of actions in the palette. The field above keeps the focus and passes keys on."""

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
        """The entries that match the query, in displayed order."""
        return self._entries

    @property
    def chosen_action(self) -> Action | None:
        """The action at the cursor, `None` if nothing matches."""
        # This call lays out the rows if the width or the query changed.
        self.line_count()
        if self.cursor >= len(self._rows):
            return None
        at = self._rows[self.cursor].entry
        if at is not None:
            return self._entries[at].action
        return None

    def search(self, query: str) -> None:
        """Show the matches of a query. The cursor is on the first match."""
        self._sections = sections_for(self._groups, self._recent, self._why_not, query)
        self._entries = list(chain.from_iterable(section.entries for section in self._sections))
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

    def group_start(self, index: int) -> int:
        entry = self._rows[index].entry
        return index if entry is None else self._places[entry]

    def _place_cursor(self, index: int) -> None:
        """Select the action at a line, or else the next action.

        Scroll so that the action and the title above it are visible."""
        count, height = self.line_count(), max(self.size.height, 1)
        last = self._places[-1] if self._places else 0
        index = min(max(index, 0), last)
        self.cursor = last
        for place in self._places:
            if self._end(place) > index:
                self.cursor = place
                break
        # Titles and blank lines directly above the action scroll into view together with it.
        first = self.cursor
        while first > 0 and self._rows[first - 1].entry is None:
            first -= 1
        end = self._end(self.cursor)
        self.top = max(min(max(self.top, end - height), first, count - 1), 0)

    def _end(self, place: int) -> int:
        entry, end = self._rows[place].entry, place
        while end < len(self._rows) and self._rows[end].entry == entry:
            end += 1
        return end

    def action_move(self, motion: Motion) -> None:
        """Move the cursor from action to action. At either end, continue at the other end."""
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
    """Asks for an action of a screen. Closes with the action's id."""

    HAS_SUBJECT: ClassVar[bool] = False
    TITLE_LINE: ClassVar[str] = "Commands"
    # Dimming the screen below would redraw all of it.
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
        names = {}
        for action in _actions_in(groups):
            names[action.id] = keymap.names(action)
        self._list = PaletteList(groups, names, recent, why_not)
        self._all = len(self._list.entries)

    def body(self) -> ComposeResult:
        yield SafeInput("", "type to search", widget_id="query", max_length=MAX_FILTER_CHARS)
        yield self._list

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#query"))
        self._list.move_cursor(0)

    def _make_room(self, height: int) -> None:
        """Set the height of the list. The height stays fixed during a search, so nothing around the list is redrawn."""
        self._list.styles.height = max(min(height - _OTHER_ROWS, _MAX_ROWS), 1)

    @on(Input.Changed)
    def _query_changed(self, event: Input.Changed) -> None:
        self._list.search(event.value)
        count = f"{of_text(len(self._list.entries), self._all)} " if event.value.strip() else ""
        head: Line = (Span(f" {self.TITLE_LINE}", "heading"),)
        self.query_one("#title", Bar).set_line(lambda width: spread(head, (Span(count, "muted"),), width))

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.choose()

    def choose(self) -> None:
        """Close with the action at the cursor. If it is unavailable, the screen below announces why."""
        if (action := self._list.chosen_action) is not None:
            self.dismiss(action.id)

    def action_move(self, motion: Motion) -> None:
        self._list.action_move(motion)


def open_palette(app: Workbench, main: MainScreen, memory: Memory) -> None:
    """Show the palette over the main screen or a side screen. Remember the chosen action."""
    screen = app.screen
    side = screen if isinstance(screen, SideScreen) else None
    situation: Situation = side.situation if side is not None else situation_of(main)

    def why_not(action: Action) -> str | None:
        if screen is main and main.run_pane.is_for_typed_text(action.id):
            return None
        why = why_unavailable(action, situation)
        if why is None:
            return None
        return app.keymap.in_words(why)

    async def on_answer(action_id: str | None) -> None:
        if action_id is None:
            return
        memory.change(lambda known: known.with_command(action_id))
        # The screen may have been closed while the palette was open.
        if screen not in app.screen_stack:
            return
        # The action runs on its own screen, even if another screen is current now. A side screen also offers actions of
        # the program, and the app performs them.
        is_own = side is None or any(action.id == action_id for action in side.ACTIONS)
        await screen.run_action(f"{'do' if is_own else 'app.do'}('{action_id}')")

    app.push_screen(Palette(offered_actions(side), app.keymap, memory.read().commands, why_not), on_answer)
