"""The parts of dialogs: a frame with a title, text, choices, and keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import ClassVar, TypeVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import NULL_REGION, Offset, Region, Size
from textual.layout import WidgetPlacement
from textual.message import Message
from textual.strip import Strip
from textual.widgets import Input

from workbench.dataclasses import dataclass
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Role, Span, cells, cut_line
from workbench.show.visible import one_line
from workbench.tui.kit.bars import MAX_NOTICE_ROWS, notice_rows
from workbench.tui.kit.fields import PasteChanged
from workbench.tui.kit.line_view import LineView
from workbench.tui.kit.stage import DismissOnce
from workbench.tui.kit.strips import Bar, LineBuilder, palette_of, strip_of
from workbench.tui.terminal.output_stage import DialogScreen
from workbench.tui.terminal.theme import Ground

_Answer = TypeVar("_Answer")

_MARGIN_ROWS = 2
_FRAME_ROWS = 4 + _MARGIN_ROWS
"""The rows of border, title and keys, and one line of the screen above and below."""

_ROOMY = 6
"""With fewer rows of text, a dialog also covers the lines of the screen above and below it."""

BuildLines = Callable[[int], Sequence[Line]]
"""Returns the lines of a text for a width in cells."""


class TextView(LineView):
    """A scrolling text. A function builds its lines for the width of the view."""

    GROUND: ClassVar[Ground] = "panel"

    class Ended(Message):
        """Posted once, when the last line becomes visible."""

    def __init__(self, build: BuildLines, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self._build = build
        self._lines: Sequence[Line] = ()
        self._built_at = -1
        self.was_at_end = False

    def render_line(self, y: int) -> Strip:
        # The end counts as seen only when its line is drawn. The view may scroll to the end and back without drawing
        # it.
        if not self.was_at_end and self.top + y >= self.line_count() - 1:
            self.was_at_end = True
            self.post_message(self.Ended())
        return super().render_line(y)

    @property
    def has_cursor(self) -> bool:
        return False

    def line_count(self) -> int:
        if self._built_at != self.text_width:
            self._built_at = self.text_width
            self._lines = self._build(self.text_width)
        return len(self._lines)

    def line_at(self, index: int) -> Line:
        if index < self.line_count():
            return self._lines[index]
        return EMPTY

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return len(self._build(max(width - 1, 1)))

    def rebuild_lines(self, *, from_top: bool) -> None:
        """Rebuild the lines. With `from_top`, show the first lines, otherwise keep the position."""
        self._built_at = -1
        if from_top:
            self.top = 0
        self.repaint()


MAX_LABEL_CELLS = 24
"""The maximum width of the column of labels."""


@dataclass(frozen=True)
class Option:
    """A row of a list of choices: a label, a detail, and the name of its key.

    `short` replaces a `detail` that does not fit. `checked` is `None` in a list where only one row can be chosen."""

    label: str
    detail: str = ""
    short: str = ""
    checked: bool | None = None
    key: str = ""


class ChoiceList(LineView):
    """A list of options to choose from, one per row."""

    GROUND: ClassVar[Ground] = "panel"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose", "Choose", show=False)]

    class Chosen(Message):
        """Posted when a choice is made."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, options: Sequence[Option], cursor: int = 0, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.options = list(options)
        self.cursor = cursor

    def line_count(self) -> int:
        return len(self.options)

    def line_at(self, index: int) -> Line:
        option = self.options[index]
        mark: Line = EMPTY
        if option.checked:
            mark = (Span(f"[{GLYPHS.passed}] ", "passed"),)
        elif option.checked is not None:
            mark = (Span("[ ] ", "muted"),)
        key = f"{option.key}  " if option.key else ""
        gap = " " * (self._label_cells - cell_len(option.label)) if option.detail else ""
        head: Line = (Span(" "), *mark, Span(key, "accent"), Span(f"{option.label}{gap}"))
        line = (*head, Span(f"  {option.detail}", "muted"))
        if option.short and cells(line) > self.text_width:
            line = (*head, Span(f"  {option.short}", "muted"))
        return cut_line(line, self.text_width)

    @property
    def _label_cells(self) -> int:
        widest = 0
        for option in self.options:
            needed = cell_len(option.label)
            if option.detail and needed <= MAX_LABEL_CELLS:
                widest = max(widest, needed)
        return widest

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return len(self.options)

    def action_choose(self) -> None:
        self.post_message(self.Chosen(self.cursor))

    def chosen(self, index: int) -> None:
        self.action_choose()


def place_for(frame: Size, screen: Size, subject: Region) -> Offset:
    """Return the position of a dialog's frame at which the region `subject` stays visible.

    This is the middle of the screen if it does not cover the subject, otherwise directly above or below the subject."""
    # If the frame fits neither above nor below the subject, try to leave at least the subject's first row visible.
    middle = Offset(max(screen.width - frame.width, 0) // 2, max(screen.height - frame.height, 0) // 2)
    for wanted in (subject, Region(subject.x, subject.y, subject.width, min(subject.height, 1))):
        if not Region.from_offset(middle, frame).overlaps(wanted):
            return middle
        beside = [y for y in (wanted.y - frame.height, wanted.bottom) if 0 <= y <= screen.height - frame.height]
        if beside:
            return Offset(middle.x, min(beside, key=lambda y: abs(y - middle.y)))
    return middle


class _KeysBar(Bar):
    """The row of a dialog's keys. A notice may replace the keys and need several rows."""

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self._notice: Line = EMPTY
        self._rows: list[Line] = []

    def set_line(self, line_for: LineBuilder) -> None:
        if self._notice:
            self._notice = EMPTY
            self.styles.height = 1
            self.refresh()
        super().set_line(line_for)

    def set_notice(self, notice: Line) -> None:
        self._notice = notice
        self._fit(self.size.width)

    def on_resize(self, event: events.Resize) -> None:
        if self._notice:
            self._fit(event.size.width)

    def _fit(self, width: int) -> None:
        self._rows = notice_rows(self._notice, width, MAX_NOTICE_ROWS)
        self.styles.height = len(self._rows)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if not self._notice:
            return super().render_line(y)
        width = self.size.width
        if y >= len(self._rows):
            return Strip.blank(width)
        return strip_of(self._rows[y], width, self.GROUND, palette_of(self))


class Dialog(DismissOnce[_Answer], DialogScreen[_Answer]):
    """A framed dialog over the screen. Esc closes it without an answer."""

    DEFAULT_CSS = """
    Dialog { align: center middle; background: $background 60%; }
    Dialog > Vertical {
        width: 84; max-width: 96%; height: auto; max-height: 100%;
        border: round $accent; background: $panel; padding: 0 1;
    }
    Dialog Bar { background: $panel; }
    Dialog LineView { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Close", show=False)]
    TITLE_LINE: ClassVar[str] = ""
    HAS_SUBJECT: ClassVar[bool] = True
    """Whether the dialog is about the focused pane below. The pane then stays visible."""

    def __init__(self, keys: Line) -> None:
        super().__init__()
        self._keys = keys
        self._shown_keys: Line = EMPTY
        """The last displayed keys. They return when a notice in their place ends."""
        self._has_notice = False
        if self.HAS_SUBJECT:
            # `process_layout` moves the frame from this corner to its place.
            self.styles.align = ("left", "top")

    @property
    def subject(self) -> Region:
        """The region of the screen below that the dialog leaves visible: the selected lines, or the focused field."""
        # A closing dialog may have left the stack. There is then no screen below it.
        screens = self.app.screen_stack
        at = screens.index(self) if self in screens else 0
        if not at:
            return NULL_REGION
        below = screens[at - 1].focused
        if below is None:
            return NULL_REGION
        if isinstance(below, LineView):
            return below.cursor_region
        return below.region

    @property
    def heading(self) -> str:
        """The title when the dialog opens. Override it if the title depends on the content."""
        return self.TITLE_LINE

    def body(self) -> ComposeResult:
        """Yield the widgets between title and keys."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Bar("title")
            yield from self.body()
            yield _KeysBar("keys")

    def on_mount(self) -> None:
        self._make_room(self.app.size.height)
        self.set_title(self.heading)
        self.set_keys(self._keys)

    def set_title(self, title: str) -> None:
        self.query_one("#title", Bar).set_line(lambda _: (Span(f" {title}", "heading"),))

    def set_keys(self, keys: Line) -> None:
        """Replace the line of keys at the bottom of the dialog."""
        self._shown_keys, self._has_notice = keys, False
        self.query_one(_KeysBar).set_line(lambda width: fitting_keys(keys, width))

    def show_notice(self, text: str, role: Role = "warned", sign: str = GLYPHS.warned) -> None:
        """Show a text in place of the keys, until `set_keys` restores them."""
        self.query_one(_KeysBar).set_notice((Span(f" {sign} {one_line(text)}", role),))

    @on(PasteChanged)
    def _paste_changed(self, event: PasteChanged) -> None:
        event.stop()
        self.show_notice(event.notice)
        self._has_notice = True

    @on(Input.Changed)
    def _end_notice(self) -> None:
        if self._has_notice:
            self.set_keys(self._shown_keys)

    def on_resize(self, event: events.Resize) -> None:
        self._make_room(event.size.height)

    def process_layout(self, placements: list[WidgetPlacement]) -> list[WidgetPlacement]:
        if not self.HAS_SUBJECT or not placements:
            return placements
        frame = placements[0].region
        place = place_for(frame.size, self.app.size, self.subject)
        return WidgetPlacement.translate(placements, place - frame.offset)

    def _make_room(self, height: int) -> None:
        room = height - _FRAME_ROWS - sum(choices.line_count() for choices in self.query(ChoiceList))
        if room < _ROOMY:
            room = max(room + _MARGIN_ROWS, 1)
        for reading in self.query(TextView):
            reading.styles.max_height = room

    def action_leave(self) -> None:
        self.dismiss(None)


def keys_line(*pairs: tuple[str, str]) -> Line:
    """Return a line that shows keys. Each pair is the name of a key and its effect."""
    spans: list[Span] = []
    for key, label in pairs:
        spans += [Span("   " if spans else " "), Span(key, "accent"), Span(f" {label}")]
    return tuple(spans)


def fitting_keys(keys: Line, width: int) -> Line:
    """Return as many of a dialog's keys as fit, with narrower gaps if necessary. The first key and Esc always stay."""
    if cells(keys) <= width:
        return keys
    pairs: list[Line] = []
    for at in range(0, len(keys), 3):
        pair = keys[at : at + 3]
        # `keys_line` makes three spans per key. Any other line is a notice and is not shortened.
        if len(pair) != 3 or pair[1].role != "accent":
            return keys
        pairs.append((Span("  " if at else " "), *pair[1:]))
    # Keys are listed by importance, so the last keys are dropped first.
    for pair in reversed(pairs[1:]):
        if sum(map(cells, pairs)) > width and pair[1].text != "Esc":
            pairs.remove(pair)
    return tuple(chain.from_iterable(pairs))


class PreviewScreen(Dialog[bool]):
    """A dialog with a text to read. Enter confirms the text, Esc leaves the dialog.

    `verb` names the effect of Enter. If it is `None`, there is nothing to confirm."""

    HAS_SUBJECT: ClassVar[bool] = False
    DEFAULT_CSS = "PreviewScreen > Vertical { width: 120; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "take", "Take it", show=False)]

    def __init__(self, title: str, build: BuildLines, verb: str | None) -> None:
        keys = [("↑↓ PgDn", "read"), ("Esc", "close")]
        if verb is not None:
            keys = [("Enter", verb), ("↑↓ PgDn", "read"), ("Esc", "leave it")]
        super().__init__(keys_line(*keys))
        self.TITLE_LINE = title  # type: ignore[misc]
        self._build = build
        self._verb = verb

    def body(self) -> ComposeResult:
        yield TextView(self._build, "reading")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#reading"))

    def action_take(self) -> None:
        self.dismiss(self._verb is not None)
