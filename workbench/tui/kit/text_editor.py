"""A text editor with numbered, coloured lines, a cursor and a selection.

The editor has no undo of its own. It reports each change at once, so the edited document can undo it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from textual import events
from textual.geometry import Region
from textual.message import Message

from workbench.show.glyphs import GLYPHS
from workbench.show.highlight import Colours, TomlColours, shown
from workbench.show.spans import Line, Role, Span, recoloured
from workbench.tui.kit.edited_text import EditedText, Found, Motion, Place, column_at, shift_for, window
from workbench.tui.kit.line_view import LineView

MIN_ROOM_CELLS = 10
"""The minimum width for text, even in a narrow pane."""

_MOTIONS: Mapping[str, Motion] = {
    "left": "left",
    "right": "right",
    "up": "up",
    "down": "down",
    "home": "line_start",
    "end": "line_end",
    "ctrl+left": "word_left",
    "ctrl+right": "word_right",
    "alt+b": "word_left",
    "alt+f": "word_right",
    "ctrl+home": "text_start",
    "ctrl+end": "text_end",
    "pageup": "up",
    "pagedown": "down",
}
_DELETIONS: Mapping[str, Motion] = {
    "backspace": "left",
    "delete": "right",
    "ctrl+d": "right",
    "ctrl+w": "word_left",
    "ctrl+backspace": "word_left",
    "alt+backspace": "word_left",
    "ctrl+delete": "word_right",
    "alt+d": "word_right",
    "ctrl+u": "line_start",
    "ctrl+k": "line_end",
}


class TextEditor(LineView, inherit_bindings=False):
    """A text to edit.

    For each change, `on_change` is called with the new text and the number of its undo step, before the next key is
    handled."""

    # Textual's text area parses the whole text at each key to highlight it (29 ms for 2,000 lines). This editor is a
    # line view instead, which colours and draws only changed lines.
    DEFAULT_CSS = "TextEditor { pointer: text; }"
    TAKES_LONG_PASTES = True

    class Copied(Message):
        """Posted when text is copied or cut. `noun` names the text in the notice."""

        def __init__(self, text: str, noun: str) -> None:
            super().__init__()
            self.text = text
            self.what = noun

    class Ended(Message):
        """Posted when the user ends editing."""

    def __init__(
        self, on_change: Callable[[str, int], None], colours: Callable[[], Colours], widget_id: str | None = None
    ) -> None:
        super().__init__(widget_id)
        self.typed = EditedText("")
        self.first = 1
        self.marks: Mapping[int, Role] = {}
        """The roles of lines with a problem, by line (from 0)."""
        self._found: Found = {}
        self.assist: Callable[[str], bool] = lambda key: False
        """Called first for every key. Returns whether it handled the key."""
        self._on_change = on_change
        self._new_colours = colours
        self._colours = colours()
        self._shift = 0
        self._line_before = 0
        self._dragging = False
        self._copied = ""

    def begin(self, text: str, first: int, cursor: Place, top: int) -> None:
        """Show a text for editing, scrolled to the line `top`. `first` is the number of the text's first line."""
        self.typed = EditedText(text, cursor)
        self.typed.move("line_start")
        self.first, self.top, self._shift = first, top, 0
        self._colours = self._new_colours()
        self.repaint()

    def set_text(self, text: str) -> None:
        """Replace the text, for example after undo. The cursor goes to the first difference."""
        if text != self.typed.text:
            self.typed.set_text(text)
            self._colours.changed_from(self.typed.first_changed_line)
            self._follow()

    def mark(self, marks: Mapping[int, Role], first: int) -> None:
        """Show marks at the lines with problems. Number the lines from `first` on.

        `marks` has the colour role of each such line, by the line's index from 0."""
        if (marks, first) != (self.marks, self.first):
            self.marks, self.first = marks, first
            self.repaint()

    def highlight(self, found: Found) -> None:
        if found != self._found:
            self._found = found
            self.repaint()

    def go_to(self, line: int, column: int | None = None) -> None:
        """Move the cursor to a line and a column (from 0), by default to the first word of the line."""
        self.typed.place_cursor((line, 0))
        if column is None:
            self.typed.move("line_start")
        else:
            self.typed.place_cursor((line, column))
        self._follow(margin=self.size.height // 3)

    def replace_before_cursor(self, start: int, text: str) -> None:
        """Replace the text between the column `start` of the cursor's line and the cursor."""
        line, column = self.typed.cursor
        self.typed.place_cursor((line, start))
        self.typed.place_cursor((line, column), select=True)
        self._change(lambda: self.typed.type(text))

    def cell_of(self, place: Place) -> Region:
        """Return the cell of a character in the cursor's line, relative to the editor."""
        cell = shown(self.typed.lines[place[0]]).cells[place[1]] - self._shift
        return Region(self._gutter + max(cell, 0), place[0] - self.top, 1, 1)

    @property
    def has_cursor(self) -> bool:
        # The cursor of a line view would be a whole line. This editor draws its own cursor in the text.
        return False

    def line_count(self) -> int:
        return len(self.typed.lines)

    def line_at(self, index: int) -> Line:
        line = self.typed.lines[index]
        painted = self._selected(index, (*self._colours.line(self.typed.lines, index), Span(" ")))
        here = index == self.typed.cursor[0]
        mark = self.marks.get(index)
        sign = " "
        if mark is not None:
            sign = GLYPHS.error if mark == "error" else GLYPHS.warned
        number: Role = "accent" if here else "muted"
        gutter = (Span(sign, mark or "muted"), Span(f"{index + self.first:>{self._digits}}  ", number))
        return (*gutter, *window(painted, line, self._shift if here else 0, self._room))

    def _selected(self, index: int, painted: Line) -> Line:
        # Columns count characters. `at` maps them to positions in the coloured text, where a control character takes
        # several. A blank at the end of the line is for the cursor.
        (first, start), (last, end) = self.typed.selection
        at = shown(self.typed.lines[index]).at
        for begins, ends, role in self._found.get(index, ()):
            if ends < len(at):
                painted = recoloured(painted, at[begins], at[ends], role)
        if first <= index <= last and (first, start) != (last, end):
            begin = at[start] if index == first else 0
            till = at[end] if index == last else at[-1] + 1
            painted = recoloured(painted, begin, till, "selected")
        line, column = self.typed.cursor
        if index == line and self.has_focus:
            after = at[column + 1] if column < len(at) - 1 else at[-1] + 1
            painted = recoloured(painted, at[column], after, "badge")
        return painted

    @property
    def _digits(self) -> int:
        return max(len(str(self.first + len(self.typed.lines) - 1)), 2)

    @property
    def _gutter(self) -> int:
        return self._digits + 3

    @property
    def _room(self) -> int:
        return max(self.text_width - self._gutter, MIN_ROOM_CELLS)

    def _follow(self, margin: int = 0) -> None:
        """Scroll to the cursor and draw what changed.

        If the cursor was outside of the view, `margin` lines stay between it and the edge."""
        line, column = self.typed.cursor
        if line != self._line_before:
            self._line_before, self._shift = line, 0
        self._shift = shift_for(self.typed.lines[line], column, self._room, self._shift)
        height = max(self.size.height, 1)
        if line < self.top:
            self.top = line - margin
        elif line >= self.top + height:
            self.top = line - height + 1 + margin
        self.repaint()
        if self.has_focus:
            # The terminal's own cursor is hidden, but input methods open at its position.
            self.app.cursor_position = self.content_region.offset + self.cell_of((line, column)).offset

    def on_resize(self, event: events.Resize) -> None:
        self._follow()

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        self._follow()

    async def on_key(self, event: events.Key) -> None:
        character = event.character if event.is_printable else None
        if self.assist(event.key) or self._take_key(event.key, character):
            event.stop()
            event.prevent_default()

    def check_consume_key(self, key: str, character: str | None = None) -> bool:
        return character is not None and character.isprintable()

    def _take_key(self, key: str, character: str | None) -> bool:
        """Handle a key that types, moves, deletes or performs a command. Return `False` for any other key."""
        plain_key = key.replace("shift+", "")
        if character is not None:
            self._change(lambda: self.typed.type(character))
        elif plain_key in _MOTIONS:
            page = max(self.size.height - 1, 1) if plain_key.startswith("page") else 1
            self.typed.move(_MOTIONS[plain_key], select="shift+" in key, times=page)
            self._follow()
        elif key in _DELETIONS:
            self._change(lambda: self.typed.delete(_DELETIONS[key]))
        else:
            return self._take_command(key)
        return True

    def _take_command(self, key: str) -> bool:
        match key:
            case "enter" | "ctrl+j" | "alt+enter":
                self._change(self.typed.new_line)
            case "tab":
                self._change(self.typed.indent)
            case "shift+tab":
                self._change(self.typed.outdent)
            case "escape":
                self.post_message(self.Ended())
            case "f7":
                self.typed.select_all()
                self.repaint()
            case "ctrl+c" | "super+c":
                self._copy(self.typed.selected, "the selected text")
            case "ctrl+x" | "super+x":
                self._cut()
            case "ctrl+v":
                self._change(lambda: self.typed.type(self._copied or self.app.clipboard))
            case _:
                return False
        return True

    def _cut(self) -> None:
        # The change is reported before the copy, so that the notice about the copy stays visible.
        cut: list[str] = []
        what = "the cut text" if self.typed.selected else "the cut line"
        self._change(lambda: cut.append(self.typed.cut()))
        self._copy(cut[0], what)

    def _copy(self, text: str, noun: str) -> None:
        if text:
            self._copied = text
            self.post_message(self.Copied(text, noun))

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self._change(lambda: self.typed.type(event.text))

    def _change(self, change: Callable[[], None]) -> None:
        before = self.typed.text
        change()
        text = self.typed.text
        if text != before:
            self._colours.changed_from(self.typed.first_changed_line)
            self._on_change(text, self.typed.step)
        self._follow()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if event.x < self.size.width - 1 or self.line_count() <= self.size.height:
            event.stop()
            self.assist("mouse")
            self.typed.place_cursor(self._place_at(event), select=event.shift)
            self._dragging = True
            self.capture_mouse()
            self._follow()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragging:
            self.typed.place_cursor(self._place_at(event), select=True)
            self._follow()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self._dragging:
            self._dragging = False
            self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        if event.chain == 2:
            self.typed.select_word()
            self._follow()
        elif event.x == self.size.width - 1:
            super().on_click(event)

    def _place_at(self, event: events.MouseEvent) -> Place:
        line = min(max(self.top + event.y, 0), len(self.typed.lines) - 1)
        cell = event.x - self._gutter
        if line == self.typed.cursor[0]:
            cell += self._shift  # only the cursor's line is shifted
        return line, column_at(self.typed.lines[line], max(cell, 0))


class TomlEditor(TextEditor):
    """A text editor with the colours of TOML."""

    def __init__(self, on_change: Callable[[str, int], None], widget_id: str | None = None) -> None:
        super().__init__(on_change, TomlColours, widget_id)
