"""The lines of a run as a view with a cursor, and the search in them."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from textual import events, on
from textual.binding import BindingType
from textual.message import Message

from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, message_lines
from workbench.show.spans import Message as Text
from workbench.show.views.run_items import CallItem, Item
from workbench.show.views.run_lines import held_action
from workbench.show.views.run_view import RunPlace, RunView
from workbench.tui.holds.actions import StepActions
from workbench.tui.kit.actions import actions_at, bindings_for
from workbench.tui.kit.line_view import LineView
from workbench.tui.kit.search_bar import SearchedPane
from workbench.tui.kit.typed_text import with_breakpoint
from workbench.tui.terminal.theme import Ground
from workbench.tui.trajectory.actions import ShownRunActions
from workbench.tui.trajectory.run_lines import Place, RunLines

_AROUND_HELD = 5
"""Rows to show below the place where a run is held."""


class RunList(LineView):
    """The lines of a run.

    Posts `News` when the number of unseen steps or of matches changes."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_for(actions_at("run", ShownRunActions, StepActions))
    RESTING_GROUND: ClassVar[Ground] = "background"

    class News(Message):
        """Posted when the number of unseen steps or of matches has changed."""

    class Wanted(Message):
        """Posted when an action in the held line is clicked, with its id."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.lines: RunLines | None = None
        self.following = True
        self.unseen = 0
        """Steps that were added while the view was elsewhere."""
        self.looked_for = ""
        """The searched text, applied to every run that is displayed."""
        self._began: Place | None = None
        """Where the search began, until the user moves to a match."""
        self._known = 0
        self._held: Item | None = None
        """The item with the last hold that the view jumped to."""
        self._was_over = False
        """Whether the run had already ended when it was last displayed."""
        self._text: Text = ()
        self.breakpoints: frozenset[str] = frozenset()
        """The tools with breakpoints on their calls or results."""

    @property
    def has_cursor(self) -> bool:
        return self.lines is not None

    @property
    def item(self) -> Item | None:
        """The item under the cursor."""
        place = self._place_of(self.cursor)
        return place.item if place is not None else None

    def _place_of(self, index: int) -> Place | None:
        """Return a stable reference to a line, `None` without a run."""
        if self.lines is None:
            return None
        return self.lines.place_of(index)

    @property
    def at_cursor(self) -> tuple[Item | None, RunPlace | None, Line]:
        """The item under the cursor, its place in the run, and the line at the cursor."""
        return self.item, self.place, self.line_at(self.cursor)

    @property
    def item_and_before(self) -> tuple[Item | None, Item | None]:
        """The item under the cursor and the one before it."""
        place = self._place_of(self.cursor)
        if place is None or self.lines is None:
            return None, None
        if place.number == 0:
            return place.item, None
        return place.item, self.lines.view.items[place.number - 1]

    @property
    def place(self) -> RunPlace | None:
        """The place in the run under the cursor, `None` if there is none, and at the end of the run."""
        at = self._place_of(self.cursor)
        if at is None or self.lines is None:
            return None
        return self.lines.view.place(at.number)

    def show(self, view: RunView | None, message: Text = ()) -> None:
        """Show a run, or a message if there is none or it is empty.

        A finished run begins at the top."""
        text, self._text = self._text, message
        if view is not None and self.lines is not None and self.lines.view is view:
            self.flush()
            if message != text:
                self.repaint()
            return
        self.lines = RunLines(view, self.text_width) if view is not None else None
        if self.lines is not None and self.looked_for:
            self.lines.search(self.looked_for)
        self._was_over = view is not None and view.graded
        self.following = not self._was_over and view is not None
        self._seen()
        self.cursor = self.top = 0
        if self.following:
            self._follow()
        self.repaint()

    def flush(self) -> None:
        """Take over new events of the run."""
        if self.lines is None:
            return
        shown, cursor = self.lines.place_of(self.top), self.lines.place_of(self.cursor)
        if not self.lines.sync():
            return
        if self.looked_for:
            self.post_message(self.News())
        was_over, self._was_over = self._was_over, self.lines.view.graded
        if self.following:
            self._seen()
            if self.lines.held is None or self._held_item is not self._held:
                self._follow()
                return
        # Lines inserted above do not move what is on screen.
        self.top = self.lines.index_of(shown, self.top)
        self.cursor = self.lines.index_of(cursor, self.cursor)
        if self.following:
            if self._sees(self.lines.held):
                self.repaint()
            else:
                self._follow()  # such as after a result was replaced by a longer one
            return
        fresh = self.lines.heights_from(self._known)
        if fresh != self.unseen and not was_over:  # a finished run does not grow, it is only regraded
            self.unseen = fresh
            self.post_message(self.News())
        self.repaint()

    def pass_time(self, now: datetime) -> None:
        """Update the time that the model has taken so far."""
        if self.lines is not None:
            self.lines.view.pass_time(now)
            self.flush()

    def toggle(self) -> None:
        """Expand or fold the item under the cursor.

        The cursor stays on it."""
        if self.lines is None:
            return
        index = self.lines.item_at(self.cursor)
        if index is None:
            return
        offset = self.cursor - self.top
        self.lines.toggle(index)
        last = self.lines.start_of(index + 1) - 1
        self._put_cursor(min(self.cursor, max(self.lines.start_of(index), last)), offset)

    def go_to_held(self) -> bool:
        """Go to where the run is held and follow it from there.

        Returns whether it is held."""
        if self.lines is None or self.lines.held is None:
            return False
        self.follow()
        return True

    def follow(self) -> None:
        """Go to where the run is held, or to its end, and follow it from there."""
        self.following = True
        self._seen()
        self._follow()
        self.post_message(self.News())

    def go_to_step(self, step: int) -> bool:
        """Go to the heading of a step, counted from 1, or follow the step if it is active.

        Returns whether it has begun."""
        if self.lines is None:
            return False
        line = self.lines.step_start(step)
        if line is None:
            return False
        if self.lines.view.graded or self.lines.step_start(step + 1) is not None:
            self._put_cursor(line, 1)
        else:
            self.follow()
        return True

    # Searching

    def look_for(self, text: str) -> None:
        """Search for a text and go to the first match after the place where the search began.

        A blank text ends the search."""
        self.looked_for = text
        if self.lines is not None:
            self.lines.search(text)
            began = self._began or self.lines.place_of(self.cursor)
            if text and began is not None:
                self._go(self.lines.go_to_match(1, self.lines.index_of(began, self.cursor)))
            self._began = began if text else None
        self.repaint()

    def go_to_match(self, step: int) -> None:
        """Go to the next (1) or previous (-1) match."""
        self._began = None
        if self.lines is not None:
            self._go(self.lines.go_to_match(step, self.cursor))

    def _go(self, line: int | None) -> None:
        if line is not None:
            self._put_cursor(line, self.size.height // 3)

    @property
    def found(self) -> tuple[int | None, int]:
        """The index of the current match, and the number of matches."""
        if self.lines is None:
            return None, 0
        return self.lines.match, self.lines.matches

    # Lines

    def line_count(self) -> int:
        if self.lines is not None and self.lines.count:
            return self.lines.count
        return len(self._message_lines())

    def line_at(self, index: int) -> Line:
        if self.lines is not None and self.lines.count:
            line = self.lines.line(index)
            if self._has_breakpoint(index, line):
                return with_breakpoint(line)
            return line
        rows = self._message_lines()
        return rows[index] if index < len(rows) else EMPTY

    def _has_breakpoint(self, index: int, line: Line) -> bool:
        """Return whether a line names the tool of a call with a breakpoint."""
        if not self.breakpoints or len(line) < 2 or not line[1].text.startswith(GLYPHS.call):
            return False
        place = self._place_of(index)
        return place is not None and isinstance(place.item, CallItem) and place.item.tool in self.breakpoints

    def move_cursor(self, index: int) -> None:
        if self.lines is not None:
            to_end = index >= self.lines.count - 1
            index = self.lines.settle(min(max(index, 0), self.lines.count - 1), self._reach)
            if to_end:  # laying out may have added lines
                index = self.lines.count - 1
        super().move_cursor(index)

    def repaint(self) -> None:
        if self.lines is not None:
            cursor = self.lines.place_of(self.cursor)
            self.top = self.lines.settle(max(min(self.top, self.last_top), 0), self._reach)
            self.cursor = self.lines.index_of(cursor, 0)
        super().repaint()

    def moved(self) -> None:
        if self.lines is None:
            return
        held = self.lines.held
        if held is not None:
            at_end = self._sees(held)
        else:
            at_end = self.cursor >= self.line_count() - 1 and self.top >= self.last_top
        if at_end != self.following:
            self.following = at_end
            self._seen()
            self.post_message(self.News())

    def chosen(self, index: int) -> None:
        self.toggle()

    def on_click(self, event: events.Click) -> None:
        action = held_action(self.line_at(self.top + event.y), event.x)
        if action is not None:
            event.prevent_default()  # otherwise the click would also select the line
            self.post_message(self.Wanted(action))

    def on_resize(self, event: events.Resize) -> None:
        if self.lines is not None:
            offset = self.cursor - self.top
            self.lines.resize(self.text_width)
            if self.following and self.lines.held is None:
                self.cursor = self.line_count() - 1
            else:
                self.top = max(self.lines.settle(self.cursor, self._reach) - offset, 0)
        super().on_resize(event)

    @property
    def _reach(self) -> int:
        """Lines are laid out this far beyond the visible ones: a page in each direction."""
        return 2 * max(self.size.height, 1)

    def _follow(self) -> None:
        """Put the cursor where the run is held, or on its last line."""
        self._held = self._held_item
        held: int | None = None
        if self.lines is not None:
            held = self.lines.held
        if held is None:
            self.move_cursor(self.line_count())
        elif self.top <= held < self.top + self.size.height - _AROUND_HELD:
            self.move_cursor(held)
        else:
            self._show(held, self.size.height // 2)

    def _sees(self, line: int | None) -> bool:
        return line is not None and self.top <= line < self.top + self.size.height

    @property
    def _held_item(self) -> Item | None:
        if self.lines is None or self.lines.view.held is None:
            return None
        return self.lines.view.items[self.lines.view.held]

    def _put_cursor(self, line: int, offset: int) -> None:
        """Put the cursor on a line, about `offset` rows below the top, and stop following."""
        assert self.lines is not None
        self.following = False
        self._known = len(self.lines.view.items)
        self._show(line, offset)

    def _show(self, line: int, offset: int) -> None:
        assert self.lines is not None
        self.cursor = self.lines.settle(line, self._reach)
        self.top = max(self.cursor - max(offset, 0), 0)
        self.move_cursor(self.cursor)

    def _message_lines(self) -> tuple[Line, ...]:
        return message_lines(self._text, self.text_width)

    def _seen(self) -> None:
        self.unseen = 0
        self._known = len(self.lines.view.items) if self.lines is not None else 0


class SearchedRun(SearchedPane):
    """Shows a run.

    Composes a `RunList`."""

    @property
    def run_list(self) -> RunList:
        """The lines of the run."""
        return self.query_one(RunList)

    def mark_found(self) -> None:
        self.run_list.look_for(self.searched)
        self.show_found()

    def _go_to_match(self, step: int) -> None:
        self.run_list.go_to_match(step)
        self.show_found()

    def _take_keyboard(self) -> None:
        self.run_list.focus()

    @on(RunList.News)
    def show_found(self) -> None:
        """Update the matches in the search bar."""
        self.say_found(self.run_list.found)
