"""The title rows above the panes, and the status and key rows below them."""

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

MAX_NOTICE_ROWS = 3
"""The maximum number of rows of a notice. On a low screen, the maximum is a third of the height."""


class PaneTitle(Bar):
    """The title row of a pane. It also names the hidden panes that can be shown at the same place."""

    class Chosen(Message):
        """Posted when the title of a pane is clicked."""

        def __init__(self, pane: Pane) -> None:
            super().__init__()
            self.pane = pane

    class RightEndClicked(Message):
        """Posted when the right end of the title, such as a status, is clicked."""

        def __init__(self, pane: Pane) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self._name_ends: list[tuple[int, Pane]] = []
        self._right = 0
        self._current: Pane = "suites"

    def show(self, panes: Sequence[Pane], current: Pane, focused: bool, content_name: str, right: Line = EMPTY) -> None:
        """Show the names of `panes`, with `current` highlighted.

        `content_name` is the name of what the pane shows. `right` is the right end of the row."""
        names: list[Span] = []
        self._name_ends = []
        for pane in panes:
            of_pane: Role = "muted"
            if pane == current and focused:
                of_pane = "badge"
            elif pane == current:
                of_pane = "strong"
            names.append(Span(f" {PANES.index(pane) + 1} {PANE_TITLES[pane]} ", of_pane))
            self._name_ends.append((cells(tuple(names)), pane))
        role: Role = "text" if focused else "muted"
        end = (*right, Span(" ")) if right else EMPTY
        self._right, self._current = cells(end), current

        def line(width: int) -> Line:
            title = cut_middle(one_line(content_name), width - cells((*names, *end)) - 2)
            return spread((*names, Span(f" {title}", role)), end, width)

        self.set_line(line)

    def on_click(self, event: events.Click) -> None:
        for end, pane in self._name_ends:
            if event.x < end:
                self.post_message(self.Chosen(pane))
                return
        if event.x >= self.size.width - self._right:
            self.post_message(self.RightEndClicked(self._current))


class KeyBar(Bar):
    """The bottom row of the screen. It shows as many keys as fit, the most important first.

    A notice of up to `MAX_NOTICE_ROWS` rows may replace the keys until the next key press."""

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self._keys: Sequence[tuple[Action, bool]] = ()
        self._keep_visible = False
        self._prefix: Line = EMPTY
        self._notice: Line = EMPTY
        self._rows: list[Line] = [EMPTY]

    def offer(self, keys: Sequence[tuple[Action, bool]], *, keep_visible: bool = False, prefix: Line = EMPTY) -> None:
        """Set the actions of the bar, most important first, each with whether it is available.

        `keep_visible` keeps the keys visible below a notice. `prefix` is shown before the keys."""
        self._keys, self._keep_visible = keys, keep_visible
        in_words = keymap_of(self).in_words
        self._prefix = tuple(Span(in_words(text), role) for text, role in prefix)
        self._say()

    def announce(self, notice: Line) -> None:
        """Show a notice. Placeholders are replaced by the names of keys."""
        in_words = keymap_of(self).in_words
        self._notice = tuple(Span(in_words(text), role) for text, role in notice)
        self._say()

    def clear_notice(self) -> None:
        """Remove the notice, so that the keys are visible again."""
        if self._notice:
            self._notice = EMPTY
            self._say()

    def on_resize(self, event: events.Resize) -> None:
        self._say()

    def on_click(self, event: events.Click) -> None:
        """Press the clicked key."""
        if self._notice:
            return
        keymap = keymap_of(self)
        start = cells(self._lead_line())
        action = key_at(self._keys, self.size.width - start, keymap, event.x - start)
        if action is not None:
            self.app.simulate_key(keymap.keys(action)[0])

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return super().render_line(y)
        # Before the layout is done, Textual may still ask for rows of the previous height.
        row = self._rows[y] if y < len(self._rows) else EMPTY
        return strip_of(row, self.size.width, self.GROUND, palette_of(self))

    def _lead_line(self) -> Line:
        return (Span(" "), *self._prefix, Span(_GAP[1:])) if self._prefix else EMPTY

    def _say(self) -> None:
        most = min(max(self.app.size.height // 3, 1), MAX_NOTICE_ROWS)
        before = len(self._rows)
        keys, keymap, lead = self._keys, keymap_of(self), self._lead_line()
        self._rows = [EMPTY]
        if self._notice:
            # If the keys stay visible, they take one of the rows that a notice may have.
            self._rows = notice_rows(self._notice, self.size.width, max(most - self._keep_visible, 1))
            if self._keep_visible:
                self._rows.append((*lead, *key_line(keys, self.size.width - cells(lead), keymap)))
        notice = self._rows[0]
        self.set_line(lambda width: notice or (*lead, *key_line(keys, width - cells(lead), keymap)))
        if len(self._rows) != before:
            self.styles.height = len(self._rows)
        if max(before, len(self._rows)) > 1:
            self.refresh()  # `set_line` compares only the first row


def notice_rows(notice: Line, width: int, max_rows: int) -> list[Line]:
    """Return a notice as at most `max_rows` rows of `width` cells. If it is longer, its middle is left out."""
    rows = wrap_line(notice, width, hang=1)
    text, role = plain(notice), notice[0].role
    # A notice begins and ends with what happened. Its middle is usually a path, so the middle is cut.
    half = min(len(text), width * max_rows) // 2
    while len(rows) > max_rows and half > 0:
        rows = wrap_line((Span(f"{text[:half]}{ELLIPSIS}{text[-half:]}", role),), width, hang=1)
        half -= 1
    return rows[:max_rows]


def key_line(keys: Sequence[tuple[Action, bool]], width: int, keymap: Keymap) -> Line:
    """Return as many keys as fit into `width` cells. The keys of help and of going back are always included."""
    spans: list[Span] = [Span(" ")]
    for action, able, key in _fitting(keys, width, keymap):
        roles: tuple[Role, Role] = ("accent", "text") if able else ("muted", "muted")
        spans += [Span(_GAP if len(spans) > 1 else ""), Span(key, roles[0]), Span(f" {action.label}", roles[1])]
    return tuple(spans)


def key_at(keys: Sequence[tuple[Action, bool]], width: int, keymap: Keymap, x: int) -> Action | None:
    """Return the action whose key is at the cell `x` of the bar, `None` if there is none."""
    end = 1
    for action, _, key in _fitting(keys, width, keymap):
        start, end = end, end + _cells_of(action, key)
        if start <= x < end - len(_GAP):
            return action
    return None


_KEYS_AT_80 = 6
"""The most keys in a bar of 80 cells that users can read at a glance. A wider bar has one more key per ten cells."""

_GAP = "   "


def _cells_of(action: Action, key: str) -> int:
    return cell_len(f"{key} {action.label}{_GAP}")


def _fitting(keys: Sequence[tuple[Action, bool]], width: int, keymap: Keymap) -> list[tuple[Action, bool, str]]:
    bound = []
    for action, able in keys:
        if keymap.keys(action):
            bound.append((action, able, key_name(keymap.keys(action)[0])))
    # The keys of help and of going back are always shown. The other keys follow in their order as long as they fit.
    widths = {action.id: _cells_of(action, key) for action, _, key in bound}
    chosen = set()
    for action_id in widths:
        if action_id.rpartition(".")[2] in ("help", "back", "end"):
            chosen.add(action_id)
    # The gap after the last key needs no room.
    room = width - 1 + len(_GAP) - sum(widths[action_id] for action_id in chosen)
    for action_id, needed in widths.items():
        if len(chosen) == _KEYS_AT_80 + max(width - 80, 0) // 10:
            break
        if action_id not in chosen and needed <= room:
            chosen.add(action_id)
            room -= needed
    return [each for each in bound if each[0].id in chosen]
