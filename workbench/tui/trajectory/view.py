"""The widget that shows the lines of a run, with a cursor and a search."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.binding import BindingType
from textual.message import Message

from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, message_lines
from workbench.show.spans import Message as Text
from workbench.tui.holds.actions import StepActions
from workbench.tui.kit.actions import actions_at, bindings_for
from workbench.tui.kit.edited_text import with_breakpoint
from workbench.tui.kit.line_view import LineView
from workbench.tui.kit.search_bar import SearchedPane
from workbench.tui.terminal.theme import Ground
from workbench.tui.trajectory.actions import ShownRunActions

if TYPE_CHECKING:
    from workbench.show.views.run_items import Item
    from workbench.show.views.run_view import RunPlace, RunView
    from workbench.tui.trajectory.run_lines import Annotate, Place, RunLines

_AROUND_HELD = 5
"""The minimum number of rows below the held line. With fewer rows, the view scrolls."""


class RunList(LineView):
    """The lines of a run.

    While the cursor is at the end of the run, or on the line where the run is held, the view scrolls with new lines."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_for(actions_at("run", ShownRunActions, StepActions))
    RESTING_GROUND: ClassVar[Ground] = "background"

    class Changed(Message):
        """Posted when the number of matches, or of items added out of view, has changed."""

    class ActionClicked(Message):
        """Posted when an action on the line of a held run is clicked. `action` is the id of the action."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.lines: RunLines | None = None
        self.is_following = True
        self.unseen = 0
        """The number of items added while the view did not follow the run."""
        self.looked_for = ""
        """The searched text. It stays when another run is displayed."""
        self._began: Place | None = None
        """The place where the user began to type the searched text. Cleared when the user moves to a match."""
        self._known = 0
        """The number of items seen by the user."""
        self._last_hold: Item | None = None
        """The item of the last hold that the view moved to."""
        self._was_graded = False
        """Whether the run had ended when it was last displayed."""
        self._text: Text = ()
        self._annotate: Annotate | None = None
        self.breakpoints: frozenset[str] = frozenset()
        """The tools with breakpoints on their calls or results."""

    @property
    def has_cursor(self) -> bool:
        return self.lines is not None

    @property
    def item(self) -> Item | None:
        place = self._place_of(self.cursor)
        if place is None:
            return None
        return place.item

    def _place_of(self, index: int) -> Place | None:
        if self.lines is None:
            return None
        return self.lines.place_of(index)

    @property
    def at_cursor(self) -> tuple[Item | None, RunPlace | None, Line]:
        """The item, the place in the run, and the line under the cursor."""
        return self.item, self.place, self.line_at(self.cursor)

    @property
    def item_and_before(self) -> tuple[Item | None, Item | None]:
        """The item under the cursor and the previous item."""
        place = self._place_of(self.cursor)
        if place is None or self.lines is None:
            return None, None
        if place.number == 0:
            return place.item, None
        return place.item, self.lines.view.items[place.number - 1]

    @property
    def place(self) -> RunPlace | None:
        """The place in the run under the cursor. `None` at the end of the run, or if there is no run."""
        at = self._place_of(self.cursor)
        if at is None or self.lines is None:
            return None
        return self.lines.view.place(at.number)

    def show(self, view: RunView | None, message: Text = ()) -> None:
        """Show a run, or a message if there is no run or the run is empty.

        A finished run is shown from its beginning."""
        text, self._text = self._text, message
        if view is not None and self.lines is not None and self.lines.view is view:
            self.flush()
            if message != text:
                self.repaint()
            return
        self.lines = None
        if view is not None:
            from workbench.tui.trajectory.run_lines import RunLines  # lazy import: the first screen shows no run

            self.lines = RunLines(view, self.text_width)
            self.lines.annotate(self._annotate)
        if self.lines is not None and self.looked_for:
            self.lines.search(self.looked_for)
        self._was_graded = view is not None and view.graded
        self.is_following = not self._was_graded and view is not None
        self._seen()
        self.cursor = self.top = 0
        if self.is_following:
            self._follow()
        self.repaint()

    def annotate(self, annotate: Annotate | None) -> None:
        """Set a function that renders calls in place of their own lines. `None` removes it."""
        self._annotate = annotate
        if self.lines is not None:
            self.lines.annotate(annotate)
            self.repaint()

    def go_to_call(self, call: int, line: int) -> None:
        """Scroll until a line of a call is visible. `call` is the call's index in the run."""
        start = None if self.lines is None else self.lines.call_start(call)
        if start is not None and not self._is_visible(start + line):
            self._place_below_top(start + line, self.size.height // 2)
        elif start is not None:
            self._place_below_top(start + line, start + line - self.top)

    def flush(self) -> None:
        """Show new events of the run."""
        if self.lines is None:
            return
        shown, cursor = self.lines.place_of(self.top), self.lines.place_of(self.cursor)
        if not self.lines.sync():
            return
        if self.looked_for:
            self.post_message(self.Changed())
        was_over, self._was_graded = self._was_graded, self.lines.view.graded
        if self.is_following:
            self._seen()
            if self.lines.held_line is None or self._held_item is not self._last_hold:
                self._follow()
                return
        # If lines were inserted above, the window and the cursor move with the visible lines.
        self.top = self.lines.index_of(shown, self.top)
        self.cursor = self.lines.index_of(cursor, self.cursor)
        if self.is_following:
            # The line of the hold may be out of sight if a longer result replaced the held result.
            if self._is_visible(self.lines.held_line):
                self.repaint()
            else:
                self._follow()
            return
        fresh = self.lines.item_count_from(self._known)
        # A finished run has no new steps. Items that appear after its end come from a regrade.
        if fresh != self.unseen and not was_over:
            self.unseen = fresh
            self.post_message(self.Changed())
        self.repaint()

    def update_answer_time(self, now: datetime) -> None:
        """Update the displayed time of the model's answer."""
        if self.lines is not None:
            self.lines.view.pass_time(now)
            self.flush()

    def toggle(self) -> None:
        """Expand or fold the item under the cursor. The cursor stays on the item."""
        if self.lines is None:
            return
        index = self.lines.item_at(self.cursor)
        if index is None:
            return
        offset = self.cursor - self.top
        self.lines.toggle(index)
        last = self.lines.start_of(index + 1) - 1
        self._place_below_top(min(self.cursor, max(self.lines.start_of(index), last)), offset)

    def go_to_held(self) -> bool:
        """If the run is held, move to the line of the hold and follow the run. Return whether the run is held."""
        if self.lines is None or self.lines.held_line is None:
            return False
        self.follow()
        return True

    def follow(self) -> None:
        """Move to the line at which the run is held, or to the end of the run. Follow the run from there."""
        self.is_following = True
        self._seen()
        self._follow()
        self.post_message(self.Changed())

    def go_to_step(self, step: int) -> bool:
        """Move to the heading of a step (from 1). If it is the current step of the run, follow the run instead.

        Returns whether the step has begun."""
        if self.lines is None:
            return False
        line = self.lines.step_start(step)
        if line is None:
            return False
        if self.lines.view.graded or self.lines.step_start(step + 1) is not None:
            self._place_below_top(line, 1)
        else:
            self.follow()
        return True

    def go_to_failure(self) -> None:
        """Move to the first call with an issue, if any."""
        if self.lines is not None:
            self._go(self.lines.failure_start)

    # Searching

    def search_text(self, text: str) -> None:
        """Search for a text, and move to the first match after the cursor. An empty text ends the search."""
        self.looked_for = text
        if self.lines is not None:
            self.lines.search(text)
            # Each typed letter searches again from where the search began, not from the last match.
            began = self._began or self.lines.place_of(self.cursor)
            self._began = None
            if text:
                self._began = began
            if self._began is not None:
                self._go(self.lines.go_to_match(1, self.lines.index_of(self._began, self.cursor)))
        self.repaint()

    def go_to_match(self, step: int) -> None:
        """Move to the next (1) or previous (-1) match."""
        self._began = None
        if self.lines is not None:
            self._go(self.lines.go_to_match(step, self.cursor))

    def _go(self, line: int | None) -> None:
        if line is not None:
            self._place_below_top(line, self.size.height // 3)

    @property
    def found(self) -> tuple[int | None, int]:
        """The index of the selected match, and the number of matches."""
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
        if index < len(rows):
            return rows[index]
        return EMPTY

    def _has_breakpoint(self, index: int, line: Line) -> bool:
        if not self.breakpoints or len(line) < 2 or not line[1].text.startswith(GLYPHS.call):
            return False
        from workbench.show.views.run_items import CallItem

        place = self._place_of(index)
        return place is not None and isinstance(place.item, CallItem) and place.item.tool in self.breakpoints

    def move_cursor(self, index: int) -> None:
        if self.lines is not None:
            to_end = index >= self.lines.count - 1
            index = self.lines.settle(min(max(index, 0), self.lines.count - 1), self._reach)
            # Laying out corrects estimated heights, so the last line may have another index now.
            if to_end:
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
        held = self.lines.held_line
        if held is not None:
            at_end = self._is_visible(held)
        else:
            at_end = self.cursor >= self.line_count() - 1 and self.top >= self.last_top
        if at_end != self.is_following:
            self.is_following = at_end
            self._seen()
            self.post_message(self.Changed())

    def chosen(self, index: int) -> None:
        self.toggle()

    def on_click(self, event: events.Click) -> None:
        from workbench.show.views.run_lines import held_action

        action = held_action(self.line_at(self.top + event.y), event.x)
        if action is not None:
            # Without this call, Textual would also call the handler of the base class, which selects the line.
            event.prevent_default()
            self.post_message(self.ActionClicked(action))

    def on_resize(self, event: events.Resize) -> None:
        if self.lines is not None:
            offset = self.cursor - self.top
            self.lines.resize(self.text_width)
            if self.is_following and self.lines.held_line is None:
                self.cursor = self.line_count() - 1
            else:
                self.top = max(self.lines.settle(self.cursor, self._reach) - offset, 0)
        super().on_resize(event)

    @property
    def _reach(self) -> int:
        return 2 * max(self.size.height, 1)

    def _follow(self) -> None:
        """Move the cursor to the line at which the run is held, or to the last line."""
        self._last_hold = self._held_item
        held: int | None = None
        if self.lines is not None:
            held = self.lines.held_line
        if held is None:
            self.move_cursor(self.line_count())
        elif self.top <= held < self.top + self.size.height - _AROUND_HELD:
            self.move_cursor(held)
        else:
            self._show(held, self.size.height // 2)

    def _is_visible(self, line: int | None) -> bool:
        return line is not None and self.top <= line < self.top + self.size.height

    @property
    def _held_item(self) -> Item | None:
        if self.lines is None or self.lines.view.held_index is None:
            return None
        return self.lines.view.items[self.lines.view.held_index]

    def _place_below_top(self, line: int, offset: int) -> None:
        assert self.lines is not None
        self.is_following = False
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
        self.unseen = self._known = 0
        if self.lines is not None:
            self._known = len(self.lines.view.items)


class SearchedRun(SearchedPane):
    """A run with a search bar. Subclasses compose a `RunList`."""

    @property
    def run_list(self) -> RunList:
        return self.query_one(RunList)

    def mark_found(self) -> None:
        self.run_list.search_text(self.searched)
        self.show_found()

    def _go_to_match(self, step: int) -> None:
        self.run_list.go_to_match(step)
        self.show_found()

    def _take_keyboard(self) -> None:
        self.run_list.focus()

    @on(RunList.Changed)
    def show_found(self) -> None:
        self.show_match_count(self.run_list.found)
