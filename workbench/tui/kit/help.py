"""The help dialog: all keys, those of the current place first, with a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from workbench.grading.status import Status
from workbench.show.glyphs import GLYPHS
from workbench.show.search import fuzzy_match, marked_spans
from workbench.show.spans import EMPTY, Line, Role, Span, behind, cells, without_empty, wrap_line
from workbench.tui.kit.actions import Action, Keymap, Situation, key_for, why_unavailable
from workbench.tui.kit.dialogs import Dialog, ReadLines, keys_line
from workbench.tui.kit.fields import FilterField
from workbench.tui.kit.stage import in_background
from workbench.tui.kit.strips import keymap_of

KEY_COLUMN = 13
"""The least width of the column of keys, with its margin."""

KEYS_CELLS = len("Tab Shift+Tab")
"""The greatest width of keys for which the column of a section becomes wider."""

_SIGNS: tuple[tuple[str, Role, str], ...] = (
    *((*status.mark, f"{status}: {status.meaning}") for status in Status),
    (GLYPHS.running, "running", "waiting or running"),
    (
        GLYPHS.held,
        "warned",
        f"held: {key_for('step')} steps to the next stop, {key_for('step.continue')} continues, "
        f"{key_for('step.held')} goes there",
    ),
    (GLYPHS.breakpoint, "failed", f"a breakpoint holds runs here, {key_for('break.list')} lists them all"),
    (GLYPHS.missing, "failed", "an expected call that was never made"),
    (GLYPHS.disagree, "warned", f"graders disagree on whether the run fails; {key_for('grades')} shows why"),
    (
        GLYPHS.audit,
        "warned",
        f"the audit found something: the case checks too little, or can never be met; {key_for('audit')} shows it",
    ),
)


Sections = Sequence[tuple[str, Sequence[Action]]]
"""Sections of the help: a title and its actions."""

COLUMN_CELLS = 48
"""The least width of a column; a screen with room for several has up to three."""

_MAX_COLUMNS = 3

_NOTHING: Line = (Span(" No key and no action is called that", "muted"),)


class HelpScreen(Dialog[None]):
    """The help dialog: the keys of the current place, then those of others."""

    HAS_SUBJECT: ClassVar[bool] = False
    TITLE_LINE = "Keys"
    DEFAULT_CSS = "HelpScreen > Vertical { width: 96%; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,q,enter", "leave", "Quit the help", show=False),
        Binding("slash", "search", "Search", show=False),
    ]
    KEYS: ClassVar[Line] = keys_line(("↑↓", "scroll"), ("/", "search"), ("Esc", "close"), ("Ctrl+P", "all commands"))
    SEARCH_KEYS: ClassVar[Line] = keys_line(("Enter", "keep"), ("Esc", "show all again"))

    def __init__(self, sections: Sections, now: Situation, elsewhere: Callable[[], Sections]) -> None:
        super().__init__(self.KEYS)
        self._sections = sections
        self._now = now
        self._read_elsewhere = elsewhere
        """Returns the keys of other places. It imports their screens, so it runs in a thread."""
        self._elsewhere: Sections = ()
        self._query = ""

    def body(self) -> ComposeResult:
        yield ReadLines(self._lines, "reading")
        yield FilterField(placeholder="a key, or what it does")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#reading"))
        self.run_worker(self._show_elsewhere(), group="help")

    async def _show_elsewhere(self) -> None:
        self._elsewhere = await in_background(self._read_elsewhere)
        reading = self.query_one("#reading", ReadLines)
        reading.show_anew(from_top=False)
        reading.refresh(layout=True)

    def _lines(self, width: int) -> list[Line]:
        return help_lines(self._sections, self._now, width, keymap_of(self), self._elsewhere, self._query)

    def action_search(self) -> None:
        """Open the field that searches the keys."""
        reading, field = self.query_one("#reading", ReadLines), self.query_one(FilterField)
        # A fixed height keeps the frame in place while the search removes lines.
        reading.styles.height = reading.size.height
        field.display = True
        self.set_focus(field)
        self.say_keys(self.SEARCH_KEYS)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        self._show(event.value)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._end_search()

    def action_leave(self) -> None:
        if self.query_one(FilterField).display:
            self._show("")
            self._end_search()
        else:
            self.dismiss(None)

    def _end_search(self) -> None:
        field = self.query_one(FilterField)
        # A search that Enter keeps stays in the field, to be continued.
        if not self._query:
            field.value = ""
        field.display = False
        self.set_focus(self.query_one("#reading"))
        self.say_keys(self.KEYS)

    def _show(self, query: str) -> None:
        if query != self._query:
            self._query = query
            self.query_one("#reading", ReadLines).show_anew(from_top=True)


def help_lines(
    sections: Sections,
    now: Situation,
    width: int,
    keymap: Keymap,
    elsewhere: Sections = (),
    query: str = "",
) -> list[Line]:
    """Return the lines of the help for `width` cells, only with entries that match a query.

    `sections` come first, with the reasons why actions are unavailable, then `elsewhere` and the meaning of signs."""
    lines: list[Line] = []
    for title, listed in sections:
        lines += _section(title, _found(listed, keymap, query), now, width, keymap)
    # Signs come before the keys of other places, but a search is first of all for keys.
    signs = _signs(width, query, keymap)
    if signs and not query:
        lines += signs
    for title, listed in elsewhere:
        lines += _section(title, _found(listed, keymap, query), None, width, keymap)
    if signs and query:
        lines += signs
    return lines or [EMPTY, _NOTHING]


_Found = tuple[Action, frozenset[int]]
"""An action, and the positions in its title that the query matched."""


def _found(actions: Sequence[Action], keymap: Keymap, query: str) -> list[_Found]:
    found: list[_Found] = []
    for action in actions:
        keys = keymap.names(action)
        match = fuzzy_match(query, action.title)
        if keys and match is not None:
            found.append((action, match.positions))
        elif any(_is_key(query, key) for key in keys.split()):
            found.append((action, frozenset()))
    return found


def _is_key(query: str, key: str) -> bool:
    # `r` and `R` are different keys; the spelling of `Ctrl+R` and `Enter` is up to the user.
    return query == key or (len(key) > 1 and query.lower() == key.lower())


def _section(title: str, found: Sequence[_Found], now: Situation | None, width: int, keymap: Keymap) -> list[Line]:
    """Return a section in columns, with the actions that are unavailable `now` at the end.

    For the keys of another place, `now` is `None`: all count as available."""
    if not found:
        return []
    reasons: dict[str, str | None] = {}
    for action, _ in found:
        reasons[action.id] = why_unavailable(action, now) if now is not None else None
    longest = max(cell_len(keymap.names(action)) for action, _ in found)
    key_cells = min(max(KEY_COLUMN - 2, longest + 1), KEYS_CELLS + 1)

    def entry(found: _Found, column: int) -> list[Line]:
        action, matched = found
        why, keys = reasons[action.id], keymap.names(action)
        of_key: Role = "accent" if why is None else "muted"
        of_title: Role = "text" if why is None else "muted"
        head = Span(f"   {keys}{' ' * max(key_cells - cell_len(keys), 1)}", of_key)
        room = max(column - cell_len(head.text) - 1, 10)
        first, *others = wrap_line(tuple(marked_spans(action.title, matched, 0, of_title, "heading")), room)
        blank = Span(" " * cell_len(head.text))
        rows: list[Line] = [(head, *first), *((blank, *row) for row in others)]
        if why is not None:
            rows += behind((blank,), f"not now: {keymap.in_words(why)}", "muted", room)
        return rows

    ordered = sorted(found, key=lambda each: reasons[each[0].id] is not None)
    head: list[Line] = [EMPTY, (Span(f" {title}", "heading"),)]
    return head + _in_columns(ordered, entry, width)


def _signs(width: int, query: str, keymap: Keymap) -> list[Line]:
    found: list[tuple[str, Role, str]] = []
    for sign, role, meaning in _SIGNS:
        in_words = keymap.in_words(meaning)
        if fuzzy_match(query, in_words) is not None:
            found.append((sign, role, in_words))

    def entry(sign: tuple[str, Role, str], column: int) -> list[Line]:
        head = Span(f"   {sign[0]}".ljust(KEY_COLUMN + 1), sign[1])
        return behind((head,), sign[2], "text", max(column - cell_len(head.text) - 1, 10))

    if found:
        return [EMPTY, (Span(" Signs", "heading"),), *_in_columns(found, entry, width)]
    return []


_Entry = TypeVar("_Entry")


def _in_columns(entries: Sequence[_Entry], lines_of: Callable[[_Entry, int], list[Line]], width: int) -> list[Line]:
    """Return entries in as many columns as have room, read from top to bottom; no entry continues in the next."""
    count = min(max(width // COLUMN_CELLS, 1), _MAX_COLUMNS, max(len(entries), 1))
    column = width // count
    blocks = [lines_of(entry, column) for entry in entries]
    # The rows of a column if all were equally high, rounded up.
    height = -(-sum(map(len, blocks)) // count)
    columns: list[list[Line]] = [[]]
    for block in blocks:
        # A block goes where most of it fits, which keeps the columns about equally high.
        if len(columns) < count and columns[-1] and len(columns[-1]) + len(block) / 2 > height:
            columns.append([])
        columns[-1] += block
    rows: list[Line] = []
    for at in range(max(map(len, columns))):
        row: list[Span] = []
        for index, lines in enumerate(columns):
            row.append(Span(" " * (index * column - cells(tuple(row)))))
            row += lines[at] if at < len(lines) else EMPTY
        rows.append(without_empty(row))
    return rows
