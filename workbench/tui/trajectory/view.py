"""One run as lines that grow: followed at its end until the user looks elsewhere, and searched."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from workbench.tui.kit.actions import bindings_for
from workbench.tui.kit.line_view import LineView
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.marks import with_breakpoint
from workbench.tui.lines.prose import Message as Text
from workbench.tui.lines.prose import message_lines
from workbench.tui.lines.spans import EMPTY, Line
from workbench.tui.run_book.shown.items import CallItem, Item
from workbench.tui.run_book.shown.places import RunPlace
from workbench.tui.run_book.shown.view import RunView
from workbench.tui.stepping.actions import WHILE_HELD
from workbench.tui.terminal.theming import Ground
from workbench.tui.trajectory.actions import FEATURE
from workbench.tui.trajectory.mark_lines import held_action
from workbench.tui.trajectory.run_lines import Place, RunLines

_AROUND_HELD = 5
"""Rows that are seen below the place where a run is held, where there are so many."""


class RunList(LineView):
    """The lines of a run. Posts `News` when there is something else to say about what is out of sight, or found."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_for((*FEATURE.at("run"), *WHILE_HELD))
    RESTING_GROUND: ClassVar[Ground] = "background"

    class News(Message):
        """The number of steps below, unseen, or of what is found has changed."""

    class Wanted(Message):
        """What the line that says where the run is held offers was clicked: an action, by its id."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.lines: RunLines | None = None
        self.following = True
        self.unseen = 0
        """Steps that were added since the end was left."""
        self.looked_for = ""
        """What is searched for in every run that is shown."""
        self._began: Place | None = None
        """Where the search began, until one goes on from there."""
        self._known = 0
        self._held: Item | None = None
        """The item at which the run was held when that was gone to."""
        self._was_over = False
        """Whether the run had its end already when it was shown last."""
        self._text: Text = ()
        self.breakpoints: frozenset[str] = frozenset()
        """The tools at whose calls or results runs are held."""

    @property
    def has_cursor(self) -> bool:
        return self.lines is not None

    @property
    def item(self) -> Item | None:
        """The item under the cursor."""
        place = self.lines.place_of(self.cursor) if self.lines is not None else None
        return place.item if place is not None else None

    @property
    def at_cursor(self) -> tuple[Item | None, RunPlace | None, Line]:
        """The item under the cursor, what it stands for, and the line that the cursor is on."""
        return self.item, self.place, self.line_at(self.cursor)

    @property
    def item_and_before(self) -> tuple[Item | None, Item | None]:
        """The item under the cursor, and the one before it."""
        place = self.lines.place_of(self.cursor) if self.lines is not None else None
        if place is None or self.lines is None:
            return None, None
        return place.item, self.lines.view.items[place.number - 1] if place.number else None

    @property
    def place(self) -> RunPlace | None:
        """What the item under the cursor stands for; `None` where there is none, and at the end of the run."""
        at = self.lines.place_of(self.cursor) if self.lines is not None else None
        return self.lines.view.place(at.number) if at is not None and self.lines is not None else None

    def show(self, view: RunView | None, message: Text = ()) -> None:
        """Show a run, or a message where there is none or nothing has happened in it. A run that is over is shown from
        its beginning."""
        said, self._text = self._text, message
        if view is not None and self.lines is not None and self.lines.view is view:
            self.flush()
            if message != said:
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
        """Take over what happened in the run since."""
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
        # What is put in between, above, does not move what is being read.
        self.top = self.lines.index_of(shown, self.top)
        self.cursor = self.lines.index_of(cursor, self.cursor)
        if self.following:
            if self._sees(self.lines.held):
                self.repaint()
            else:
                self._follow()  # as where a longer result was put in its place
            return
        fresh = self.lines.heights_from(self._known)
        if fresh != self.unseen and not was_over:  # to what is over nothing is added, it is only graded anew
            self.unseen = fresh
            self.post_message(self.News())
        self.repaint()

    def toggle(self) -> None:
        """Expand the item under the cursor, or fold it; the cursor stays on it."""
        if self.lines is None or (index := self.lines.item_at(self.cursor)) is None:
            return
        offset = self.cursor - self.top
        self.lines.toggle(index)
        start = self.lines.start_of(index)
        self._put_cursor(min(self.cursor, max(start, self.lines.start_of(index + 1) - 1)), offset)

    def go_to_held(self) -> bool:
        """Go to where the run is held, and follow it from there; whether it is held."""
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
        """Go to the heading of a step of a chain, counted from 1; the one that is under way is followed. Whether it has
        begun."""
        line = self.lines.step_start(step) if self.lines is not None else None
        if line is None or self.lines is None:
            return False
        if self.lines.view.graded or self.lines.step_start(step + 1) is not None:
            self._put_cursor(line, 1)
        else:
            self.follow()
        return True

    # Searching

    def look_for(self, text: str) -> None:
        """Search for a text and go to where it is found first from where the search began; a blank one ends that."""
        self.looked_for = text
        if self.lines is not None:
            self.lines.search(text)
            began = self._began or self.lines.place_of(self.cursor)
            if text and began is not None:
                self._go(self.lines.go_to_match(1, self.lines.index_of(began, self.cursor)))
            self._began = began if text else None
        self.repaint()

    def go_to_match(self, step: int) -> None:
        """Go to the next match, or with -1 to the one before."""
        self._began = None
        if self.lines is not None:
            self._go(self.lines.go_to_match(step, self.cursor))

    def _go(self, line: int | None) -> None:
        if line is not None:
            self._put_cursor(line, self.size.height // 3)

    @property
    def found(self) -> tuple[int | None, int]:
        """Which match was gone to, from 0, and how many there are."""
        return (self.lines.match, self.lines.matches) if self.lines is not None else (None, 0)

    # Lines

    def line_count(self) -> int:
        return (self.lines.count if self.lines is not None else 0) or len(self._message_lines())

    def line_at(self, index: int) -> Line:
        if self.lines is not None and self.lines.count:
            line = self.lines.line(index)
            return with_breakpoint(line) if self.breakpoints and self._is_head_of_broken(index, line) else line
        rows = self._message_lines()
        return rows[index] if index < len(rows) else EMPTY

    def _is_head_of_broken(self, index: int, line: Line) -> bool:
        """Whether a line names the tool of a call at which a breakpoint holds runs."""
        place = self.lines.place_of(index) if self.lines is not None else None
        item = place.item if place is not None else None
        is_head = len(line) > 1 and line[1].text.startswith(GLYPHS.call)
        return is_head and isinstance(item, CallItem) and item.tool in self.breakpoints

    def move_cursor(self, index: int) -> None:
        if self.lines is not None:
            end = index >= self.lines.count - 1
            index = self.lines.settle(min(max(index, 0), self.lines.count - 1), self._reach)
            index = self.lines.count - 1 if end else index
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
            event.prevent_default()  # else the line would be chosen, too
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
        """So far around what is shown lines are laid out before they are needed: a page, whichever way one goes."""
        return 2 * max(self.size.height, 1)

    def _follow(self) -> None:
        """Put the cursor where the run is held, or else on its last line."""
        held, self._held = self.lines.held if self.lines is not None else None, self._held_item
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
        view = self.lines.view if self.lines is not None else None
        return view.items[view.held] if view is not None and view.held is not None else None

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
