"""The rows around the panes: titles, status, and keys."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual import events
from textual.message import Message
from textual.strip import Strip

from workbench.show.spans import ELLIPSIS, EMPTY, Line, Role, Span, cells, cut_middle, plain, spread, wrap_line
from workbench.show.visible import one_line
from workbench.tui.kit.actions import PANE_TITLES, PANES, Action, Keymap, Pane, key_name
from workbench.tui.kit.strips import Bar, keymap_of, palette_of, strip_of

NOTICE_ROWS = 3
"""The maximum rows of a notice. On a low screen it is a third of the height."""


class PaneTitle(Bar):
    """The title of a pane.

    Panes that share a place have all titles side by side."""

    class Chosen(Message):
        """Posted when a title is clicked."""

        def __init__(self, pane: Pane) -> None:
            super().__init__()
            self.pane = pane

    class RightChosen(Message):
        """Posted when the right end is clicked."""

        def __init__(self, pane: Pane) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self._ends: list[tuple[int, Pane]] = []
        self._right = 0
        self._current: Pane = "suites"

    def show(self, panes: Sequence[Pane], current: Pane, focused: bool, about: str, right: Line = EMPTY) -> None:
        """Show the names of the panes, with a mark and the content's name at the current one."""
        names: list[Span] = []
        self._ends = []
        for pane in panes:
            of_pane: Role = "badge" if pane == current and focused else "strong" if pane == current else "muted"
            names.append(Span(f" {PANES.index(pane) + 1} {PANE_TITLES[pane]} ", of_pane))
            self._ends.append((cells(tuple(names)), pane))
        role: Role = "text" if focused else "muted"
        end = (*right, Span(" ")) if right else EMPTY
        self._right, self._current = cells(end), current

        def line(width: int) -> Line:
            title = cut_middle(one_line(about), width - cells((*names, *end)) - 2)
            return spread((*names, Span(f" {title}", role)), end, width)

        self.say(line)

    def on_click(self, event: events.Click) -> None:
        pane = next((pane for end, pane in self._ends if event.x < end), None)
        if pane is not None:
            self.post_message(self.Chosen(pane))
        elif event.x >= self.size.width - self._right:
            self.post_message(self.RightChosen(self._current))


class KeyBar(Bar):
    """The keys that fit.

    A notice replaces them until the next key, with up to a few rows; keys that stay are below."""

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self._keys: Sequence[tuple[Action, bool]] = ()
        self._stay = False
        self._notice: Line = EMPTY
        self._rows: list[Line] = [EMPTY]

    def offer(self, keys: Sequence[tuple[Action, bool]], *, stay: bool = False) -> None:
        """Set the keys, most important first, and whether they `stay` below a notice."""
        self._keys, self._stay = keys, stay
        self._say()

    def announce(self, notice: Line) -> None:
        """Show a notice.

        The keys of actions that it names are put in."""
        in_words = keymap_of(self).in_words
        self._notice = tuple(Span(in_words(text), role) for text, role in notice)
        self._say()

    def clear_notice(self) -> None:
        """Return to the keys."""
        if self._notice:
            self._notice = EMPTY
            self._say()

    def on_resize(self, event: events.Resize) -> None:
        self._say()

    def on_click(self, event: events.Click) -> None:
        """Press the key whose name is clicked."""
        keymap = keymap_of(self)
        action = key_at(self._keys, self.size.width, keymap, event.x) if not self._notice else None
        if action is not None:
            self.app.simulate_key(keymap.keys(action)[0])

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return super().render_line(y)
        width, rows = self.size.width, self._rows
        return strip_of(rows[y] if y < len(rows) else EMPTY, width, self.GROUND, palette_of(self))

    def _say(self) -> None:
        most = min(max(self.app.size.height // 3, 1), NOTICE_ROWS)
        before = len(self._rows)
        keys, keymap = self._keys, keymap_of(self)
        self._rows = [EMPTY]
        if self._notice:
            self._rows = notice_rows(self._notice, self.size.width, max(most - self._stay, 1))
            if self._stay:
                self._rows.append(key_line(keys, self.size.width, keymap))
        notice = self._rows[0]
        self.say(lambda width: notice or key_line(keys, width, keymap))
        if len(self._rows) != before:
            self.styles.height = len(self._rows)
        if max(before, len(self._rows)) > 1:
            self.refresh()


def notice_rows(notice: Line, width: int, most: int) -> list[Line]:
    """Return a notice in at most `most` rows of `width` cells.

    A notice that is too long loses its middle, where paths are: its end says what happened."""
    rows = wrap_line(notice, width, hang=1)
    text, role = plain(notice), notice[0].role
    half = min(len(text), width * most) // 2
    while len(rows) > most and half > 0:
        rows = wrap_line((Span(f"{text[:half]}{ELLIPSIS}{text[-half:]}", role),), width, hang=1)
        half -= 1
    return rows[:most]


def key_line(keys: Sequence[tuple[Action, bool]], width: int, keymap: Keymap) -> Line:
    """Return as many keys as fit into `width` cells.

    Those for help and going back are always included."""
    spans: list[Span] = [Span(" ")]
    for action, able, key in _fitting(keys, width, keymap):
        role: Role = "accent" if able else "muted"
        spans += [Span(key, role), Span(f" {action.label}{_GAP}", "text" if able else "muted")]
    return tuple(spans)


def key_at(keys: Sequence[tuple[Action, bool]], width: int, keymap: Keymap, x: int) -> Action | None:
    """Return the action at a cell of the bar."""
    end = 1
    for action, _, key in _fitting(keys, width, keymap):
        start, end = end, end + _cells_of(action, key)
        if start <= x < end - len(_GAP):
            return action
    return None


_GAP = "   "


def _cells_of(action: Action, key: str) -> int:
    return cell_len(f"{key} {action.label}{_GAP}")


def _fitting(keys: Sequence[tuple[Action, bool]], width: int, keymap: Keymap) -> list[tuple[Action, bool, str]]:
    """Return the keys that fit, each with its name."""
    bound = []
    for action, able in keys:
        if keymap.keys(action):
            bound.append((action, able, key_name(keymap.keys(action)[0])))
    widths = {action.id: _cells_of(action, key) for action, _, key in bound}
    always = set()
    for action, _, _ in bound:
        if action.id.rpartition(".")[2] in ("help", "back", "end"):
            always.add(action.id)
    room = width - 1 - sum(widths[action_id] for action_id in always)
    for action, _, _ in bound:
        if action.id not in always and widths[action.id] <= room:
            always.add(action.id)
            room -= widths[action.id]
    return [each for each in bound if each[0].id in always]
