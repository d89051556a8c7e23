"""The help dialog: a page of keys for the current place, and a search of all keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, TypeVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from workbench.grading.status import Status
from workbench.show.glyphs import GLYPHS, Sign
from workbench.show.search import fuzzy_match, marked_spans
from workbench.show.spans import EMPTY, Line, Role, Span, cells, hanging_paragraph, without_empty, wrap_line
from workbench.tui.kit.actions import Action, Keymap, Situation, key_for, key_name, why_unavailable
from workbench.tui.kit.dialogs import Dialog, TextView, keys_line
from workbench.tui.kit.fields import FilterField
from workbench.tui.kit.stage import in_background
from workbench.tui.kit.strips import keymap_of

KEY_COLUMN = 13
"""The minimum width of the column of keys, with its margin."""

KEYS_CELLS = len("Tab Shift+Tab")
"""The maximum width of the column of keys."""

_SIGNS: tuple[Sign, ...] = tuple(sign for sign in vars(GLYPHS).values() if isinstance(sign, Sign))


Sections = Sequence[tuple[str, Sequence[Action]]]
"""Sections of the help: a title and its actions."""

COLUMN_CELLS = 34
"""The minimum width of a column. A wide screen has up to three columns."""

_SHORT_CELLS = 18
"""The maximum length of a sign's meaning that shares a line of the page."""

_SHORT_KEYS_CELLS = 8
"""The maximum width of keys on the page. The search shows all keys."""

_FRAME_ROWS = 4
"""The rows of border, title and keys."""

_PAGE_ROWS = 24 - _FRAME_ROWS - 1
"""The rows of the page at 80 by 24 cells."""

_COMMON_ACTIONS = frozenset({"copy", "other", "back", "help", "quit"})
"""The names of actions on most screens."""

_MAX_COLUMNS = 3

_NOTHING: Line = (Span(" No key and no action is called that", "muted"),)


class HelpScreen(Dialog[None]):
    """The help dialog: a page of keys for the current place, and a search in the keys of all places."""

    HAS_SUBJECT: ClassVar[bool] = False
    TITLE_LINE = "Keys"
    DEFAULT_CSS = "HelpScreen > Vertical { width: 96%; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,q,enter", "leave", "Quit the help", show=False),
        Binding("slash", "search", "Search", show=False),
    ]
    KEYS: ClassVar[Line] = keys_line(("/", "search all keys"), ("Esc", "close"), ("Ctrl+P", "commands"))
    SEARCH_KEYS: ClassVar[Line] = keys_line(("Enter", "keep"), ("Esc", "back to the page"))

    def __init__(
        self,
        sections: Sections,
        situation: Situation,
        elsewhere: Callable[[], Sections],
        *,
        reads_at_once: bool,
    ) -> None:
        super().__init__(self.KEYS)
        self._sections = sections
        self._now = situation
        self._read_elsewhere = elsewhere
        """Returns the keys of other places. Imports the screens of these places, in a thread."""
        self._elsewhere: Sections | None = elsewhere() if reads_at_once else None
        self._query: str | None = None
        """The text of the search. `None` shows the page."""
        self._built: dict[int, list[Line]] = {}
        """The lines by width. A layout asks for them several times."""

    def body(self) -> ComposeResult:
        yield TextView(self._lines, "reading")
        yield FilterField(placeholder="a key, or what it does")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#reading"))
        if self._elsewhere is None:
            self.run_worker(self._show_elsewhere(), group="help")

    def _make_room(self, height: int) -> None:
        self.query_one("#reading").styles.max_height = max(height - _FRAME_ROWS, 1)

    async def _show_elsewhere(self) -> None:
        self._elsewhere = await in_background(self._read_elsewhere)
        self._built.clear()
        reading = self.query_one("#reading", TextView)
        reading.rebuild_lines(from_top=False)
        reading.refresh(layout=True)

    def _lines(self, width: int) -> list[Line]:
        if width not in self._built:
            elsewhere = self._elsewhere or ()
            self._built[width] = help_lines(self._sections, self._now, width, keymap_of(self), elsewhere, self._query)
        return self._built[width]

    def action_search(self) -> None:
        reading, field = self.query_one("#reading", TextView), self.query_one(FilterField)
        # The height is fixed, so that the dialog does not shrink while the search removes lines.
        reading.styles.height = min(reading.size.height, self.app.size.height - _FRAME_ROWS - 1)
        field.display = True
        self._show(field.value)
        self.set_focus(field)
        self.set_keys(self.SEARCH_KEYS)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        self._show(event.value)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._end_search()

    def action_leave(self) -> None:
        if self.query_one(FilterField).display:
            self._show(None)
            self._end_search()
        else:
            self.dismiss(None)

    def _end_search(self) -> None:
        field = self.query_one(FilterField)
        field.display = False
        # If Enter accepted a search, the field keeps it for editing.
        if self._query is None:
            with field.prevent(Input.Changed):
                field.value = ""
            self.query_one("#reading").styles.height = "auto"
        self.set_focus(self.query_one("#reading"))
        self.set_keys(self.KEYS)

    def _show(self, query: str | None) -> None:
        if query != self._query:
            self._query = query
            self._built.clear()
            self.query_one("#reading", TextView).rebuild_lines(from_top=True)


def help_lines(
    sections: Sections,
    situation: Situation,
    width: int,
    keymap: Keymap,
    elsewhere: Sections,
    query: str | None,
) -> list[Line]:
    """Return the lines of the help for `width` cells: all actions that match `query`.

    If `query` is `None`, return the page for the current place, which is the first of `sections`."""
    if query is None:
        return _page(sections, situation, width, keymap) if sections else []
    lines: list[Line] = []
    for title, listed in sections:
        lines += _section(title, _found(listed, keymap, query), situation, width, keymap)
    for title, listed in elsewhere:
        lines += _section(title, _found(listed, keymap, query), None, width, keymap)
    # Signs come after keys, because most searches are for keys.
    if query:
        lines += _matching_signs(query, width, keymap)
    return lines or [EMPTY, _NOTHING]


_Block = Callable[[int], list[Line]]
"""Returns lines for the width of a column. The lines stay together."""


def _lines_of(block: _Block, column: int) -> list[Line]:
    return block(column)


def _page(sections: Sections, situation: Situation, width: int, keymap: Keymap) -> list[Line]:
    """Return the page of the help for a place. It should fit a terminal of 80 by 24 cells.

    The page lists the keys of the place, the keys of the other sections by their labels, and the signs. If that is too
    long, it leaves out why keys are unavailable, and shortens the keys of every screen to their labels. The signs stay
    in one column if there is room."""
    rows: list[Line] = []
    for brief in (False, True):
        keys, signs = _page_blocks(sections, situation, keymap, brief=brief)
        for blocks in ([*keys, _stacked(signs)], [*keys, *signs]):
            rows = _in_columns(blocks, _lines_of, width)
            if len(rows) <= _PAGE_ROWS:
                return rows
    return rows


def _stacked(blocks: Sequence[_Block]) -> _Block:
    def lines(column: int) -> list[Line]:
        rows: list[Line] = []
        for block in blocks:
            rows += block(column)
        return rows

    return lines


def _page_blocks(
    sections: Sections, situation: Situation, keymap: Keymap, *, brief: bool
) -> tuple[list[_Block], list[_Block]]:
    (title, own), *others = sections
    able: list[Action] = []
    known: list[Line] = []
    unable: dict[str, list[Action]] = {}
    for action in own:
        why = why_unavailable(action, situation)
        if not keymap.names(action):
            continue
        if why is not None and not brief:
            unable.setdefault(f": {keymap.in_words(why)}", []).append(action)
        elif why is not None:
            # Unavailable actions share a line here. Titles are too long for that, so actions without a label are left
            # out.
            unable.setdefault("", []).extend([action] if action.label else [])
        elif brief and action.id.rpartition(".")[2] in _COMMON_ACTIONS:
            known.append(_labelled_key(action, keymap, "text"))
        else:
            able.append(action)
    names = {action.id: _short_names(action, keymap) for action in able}
    key_cells = max(map(cell_len, names.values()), default=0) + 2

    def row_of(action: Action) -> _Block:
        def lines(column: int) -> list[Line]:
            keys = names[action.id]
            head = Span(f"  {keys}{' ' * max(key_cells - cell_len(keys), 1)}", "accent")
            return hanging_paragraph((head,), action.title, "text", max(column - cell_len(head.text) - 1, 10))

        return lines

    def refused(why: str, actions: Sequence[Action]) -> _Block:
        def lines(column: int) -> list[Line]:
            reason = hanging_paragraph((Span("  "),), f"not now{why}", "muted", column - 3)
            return [*reason, *_flow([_labelled_key(action, keymap, "muted") for action in actions], column)]

        return lines

    blocks = [_titled(title, row_of(able[0]) if able else None)]
    blocks += [row_of(action) for action in able[1:]]
    if known:
        blocks.append(lambda column: _flow(known, column))
    blocks += [refused(why, actions) for why, actions in unable.items()]
    labelled: list[Line] = []
    for action in (action for _, listed in others for action in listed):
        if action.label and keymap.keys(action) and why_unavailable(action, situation) is None:
            labelled.append(_labelled_key(action, keymap, "text"))
    if labelled:
        blocks.append(_titled(others[0][0], lambda column: _flow(labelled, column)))
    short: list[Line] = [(Span(*status.mark), Span(f" {status}")) for status in Status]
    alone: list[_Block] = []
    for sign in _SIGNS:
        if not brief and (sign.action or len(sign.meaning) > _SHORT_CELLS):
            alone.append(partial(_sign_lines, sign.action, (sign, sign.role), sign.meaning, keymap))
        else:
            more = keymap.in_words(f": {key_for(sign.action)}") if sign.action else ""
            short.append((Span(sign, sign.role), Span(f" {sign.meaning}{more}")))
    return blocks, [_titled("Signs", lambda column: _flow(short, column)), *alone]


def _short_names(action: Action, keymap: Keymap) -> str:
    names = keymap.names(action)
    if cell_len(names) <= _SHORT_KEYS_CELLS:
        return names
    return key_name(keymap.keys(action)[0])


def _titled(title: str, block: _Block | None) -> _Block:
    return lambda column: [(Span(f" {title}", "heading"),), *(block(column) if block is not None else ())]


def _labelled_key(action: Action, keymap: Keymap, role: Role) -> Line:
    of_key: Role = "accent" if role == "text" else role
    return (Span(key_name(keymap.keys(action)[0]), of_key), Span(f" {action.label or action.title}", role))


def _flow(entries: Sequence[Line], width: int) -> list[Line]:
    lines: list[Line] = []
    for entry in entries:
        if lines and cells(lines[-1]) + 2 + cells(entry) < width:
            lines[-1] = (*lines[-1], Span("  "), *entry)
        else:
            lines.append((Span("  "), *entry))
    return lines


_Found = tuple[Action, frozenset[int]]
"""An action, and the positions of the query's matches in its title."""


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
    # `r` and `R` are different keys, but `Ctrl+R` and `Enter` match in any letter case.
    return query == key or (len(key) > 1 and query.lower() == key.lower())


def _section(
    title: str, found: Sequence[_Found], situation: Situation | None, width: int, keymap: Keymap
) -> list[Line]:
    """Return the lines of a section, in columns. Actions that are unavailable come last.

    `situation` decides which actions are unavailable. For the section of another place, `situation` is `None`, and all
    actions count as available."""
    if not found:
        return []
    reasons: dict[str, str | None] = {}
    for action, _ in found:
        reasons[action.id] = why_unavailable(action, situation) if situation is not None else None
    longest = max(cell_len(keymap.names(action)) for action, _ in found)
    key_cells = min(max(KEY_COLUMN - 2, longest + 1), KEYS_CELLS + 1)

    def entry(found: _Found, column: int) -> list[Line]:
        action, matched = found
        why, keys = reasons[action.id], keymap.names(action)
        of_key: Role = "accent" if why is None else "muted"
        of_title: Role = "text" if why is None else "muted"
        head = Span(f"   {keys}{' ' * max(key_cells - cell_len(keys), 1)}", of_key)
        room = max(column - cell_len(head.text) - 1, 10)
        first, *others = wrap_line(tuple(marked_spans(action.title, matched, of_title, "heading")), room)
        blank = Span(" " * cell_len(head.text))
        rows: list[Line] = [(head, *first), *((blank, *row) for row in others)]
        if why is not None:
            rows += hanging_paragraph((blank,), f"not now: {keymap.in_words(why)}", "muted", room)
        return rows

    ordered = sorted(found, key=lambda each: reasons[each[0].id] is not None)
    head: list[Line] = [EMPTY, (Span(f" {title}", "heading"),)]
    return head + _in_columns(ordered, entry, width)


def _sign_lines(action: str, mark: tuple[str, Role], meaning: str, keymap: Keymap, column: int) -> list[Line]:
    """Return the lines that explain a sign. They also name the key of the action that shows more details."""
    more = keymap.in_words(f": {key_for(action)}") if action else ""
    return hanging_paragraph((Span(f"  {mark[0]} ", mark[1]),), f"{meaning}{more}", "text", max(column - 5, 10))


def _matching_signs(query: str, width: int, keymap: Keymap) -> list[Line]:
    of_statuses = [("", status.mark, f"{status}: {status.meaning}") for status in Status]
    others = [(sign.action, (str(sign), sign.role), sign.meaning) for sign in _SIGNS]
    found: list[_Block] = []
    for action, mark, meaning in (*of_statuses, *others):
        if fuzzy_match(query, meaning) is not None:
            found.append(partial(_sign_lines, action, mark, meaning, keymap))
    if found:
        return [EMPTY, (Span(" Signs", "heading"),), *_in_columns(found, _lines_of, width)]
    return []


_Entry = TypeVar("_Entry")


def _in_columns(entries: Sequence[_Entry], lines_of: Callable[[_Entry, int], list[Line]], width: int) -> list[Line]:
    """Lay out entries in as many columns as fit, to be read from top to bottom. No entry is split between columns."""
    count = min(max(width // COLUMN_CELLS, 1), _MAX_COLUMNS, max(len(entries), 1))
    column = width // count
    blocks = [lines_of(entry, column) for entry in entries]
    # The number of rows if all columns had the same height, rounded up.
    height = -(-sum(map(len, blocks)) // count)
    columns: list[list[Line]] = [[]]
    for block in blocks:
        # A block goes to the column that has room for most of it. The columns are then about equally high.
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
