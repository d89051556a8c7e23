"""Draws with few bytes: only changed visible lines, and only cells that differ on the terminal.

Replaces `Compositor.render_update` of Textual."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

from rich.color import ColorSystem
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.style import Style
from textual._compositor import Compositor, CompositorUpdate
from textual._context import visible_screen_stack
from textual.color import Color
from textual.geometry import Region
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.strip import Strip

from workbench.dataclasses import dataclass
from workbench.startup import late_pattern
from workbench.tui.terminal.cells import PLAIN, CellStyle, cell_style_of, cells_of, is_width_certain

# Composition. For each change, Textual's own compositor takes the rectangle around all changes. It asks every widget in
# the rectangle for all its lines, even covered lines, and cuts the lines at the borders of every widget. `compose`
# tracks the open parts of each row. It goes through the widgets from front to back, and asks each widget only for lines
# with an open part. A part filled by a widget is closed, and nothing behind it is drawn.


class Piece(NamedTuple):
    """New content of a row of the screen, from the column `x` on."""

    y: int
    x: int
    strip: Strip


class Update(CompositorUpdate):
    """New content of some rows of the screen."""

    def __init__(self, pieces: list[Piece], *, is_complete: bool = False) -> None:
        self.pieces = pieces
        self.is_complete = is_complete
        """Whether the rows are all rows of the screen."""

    def render_segments(self, console: Console) -> str:
        """Return the whole update as text, for drivers without an output stage."""
        return "".join(f"\x1b[{y + 1};{x + 1}H{strip.render(console)}" for y, x, strip in self.pieces)


def compose(compositor: Compositor, regions: Iterable[Region]) -> list[Piece]:
    """Return the drawn content of some regions of the screen."""
    screen = compositor.size.region
    opened: dict[int, list[tuple[int, int]]] = {}
    """The spans of columns not yet filled by a widget, by row."""
    for y, start, end in compositor._regions_to_spans(region.intersection(screen) for region in regions):
        opened.setdefault(y, []).append((start, end))
    pieces: list[Piece] = []
    # `visible_widgets` is ordered from front to back.
    for widget, (region, clip) in compositor.visible_widgets.items():
        if not opened:
            break
        x, top, width, height = region.intersection(clip)
        right = x + width
        rows = [y for y in range(top, top + height) if _is_open(opened.get(y, ()), x, right)]
        for first, count in _consecutive_rows(rows):
            lines = widget.render_lines(Region(x - region.x, first - region.y, width, count))
            for y, strip in enumerate(lines, first):
                left = []
                for start, end in opened.pop(y):
                    if start >= right or end <= x:
                        left.append((start, end))
                        continue
                    pieces.append(Piece(y, max(start, x), strip.crop(max(start - x, 0), min(end, right) - x)))
                    # The widget may fill only the middle of the span, which leaves a part on each side.
                    if start < x:
                        left.append((start, x))
                    if right < end:
                        left.append((right, end))
                if left:
                    opened[y] = left
    return pieces


def _is_open(spans: Sequence[tuple[int, int]], x: int, right: int) -> bool:
    return any(start < right and x < end for start, end in spans)


def _consecutive_rows(rows: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first row and the length of each unbroken series in ascending rows."""
    # In an unbroken series, the difference of row and index is constant.
    for _, series in groupby(enumerate(rows), lambda numbered: numbered[1] - numbered[0]):
        members = [y for _, y in series]
        yield members[0], len(members)


_render_update = Compositor.render_update


def _update(
    self: Compositor, full: bool = False, screen_stack: list[Screen[Any]] | None = None, simplify: bool = False
) -> RenderableType | Update | None:
    """Return the next update of the screen, `None` if nothing changed. Replaces `Compositor.render_update`."""
    # Screenshots ask for simplified updates.
    if simplify:
        return _render_update(self, full, screen_stack, simplify)
    # As in the original method, set the stack of screens that widgets read while drawing, and clear the changed
    # regions.
    visible_screen_stack.set(screen_stack or [])
    screen = self.size.region
    regions = {screen} if full else self._dirty_regions.copy()
    self._dirty_regions.clear()
    if regions:
        return Update(compose(self, regions), is_complete=screen in regions)
    return None


Compositor.render_update = _update  # type: ignore[assignment]


# A dialog tints the screen below it. Textual sends that whole screen through Rich, and computes two colours for each
# segment. Here only the visible lines are requested, and each style is tinted once.


class DialogScreen(ModalScreen[ScreenResultType]):
    """A dialog that is drawn over another screen, whose lines are tinted."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the lines of the screen below, tinted."""
        tint = self.styles.background
        stack = visible_screen_stack.get([])
        if not stack or tint.a == 1:
            return super().render_lines(crop)
        rows: list[list[Piece]] = [[] for _ in range(crop.height)]
        # The screen below must be drawn as if there was no screen behind it.
        before = visible_screen_stack.set([])
        try:
            for piece in compose(stack[-1]._compositor, [crop]):
                rows[piece.y - crop.y].append(piece)
        finally:
            visible_screen_stack.reset(before)
        background = self.background_colors[1]
        strips = []
        for row in rows:
            row.sort(key=_column_of)
            segments = [segment for piece in row for segment in piece.strip]
            strip = Strip([Segment(text, _tinted(style or _NO_STYLE, tint)) for text, style, _ in segments])
            for line_filter in self.get_line_filters():
                strip = strip.apply_filter(line_filter, background)
            strips.append(strip)
        return strips


def _column_of(piece: Piece) -> int:
    return piece.x


_NO_STYLE = Style()


@lru_cache(maxsize=4_096)
def _tinted(style: Style, tint: Color) -> Style:
    bare = style.clear_meta_and_links()
    colours = []
    for colour in (bare.color, bare.bgcolor):
        colours.append(None if colour is None else (Color.from_rich_color(colour) + tint).rich_color)
    return bare + Style.from_color(*colours)


# The output stage keeps a model of the terminal: the character and the style of each cell. A frame is written as the
# difference to the model, as curses does in `doupdate`. Over a slow line, the number of bytes decides how fast the app
# feels. A frame takes four steps:
#
# 1. `_put` writes the frame's pieces into copies of the changed rows, cell by cell, like a terminal.
# 2. `_differing` compares these rows with the model, and yields the ranges that differ visibly. Of a blank, only the
#    background is visible. A gap of equal cells is written again if the sequence of a move would be longer.
# 3. `FrameWriter` cuts the ranges into runs of one style. It erases blanks if erasing is shorter than writing and if,
#    according to terminfo, erased cells get the right background.
# 4. `FrameWriter.written` makes the text twice, in order of rows and in order of styles, and returns the shorter text.
#    If colours have many digits, a move costs less than a change of colour.
#
# The model must never differ from the terminal, or wrong cells stay on the screen. Terminals disagree on the width of
# some characters. A row with such a character is written whole, with a move after each such character. All other
# output, by Textual or by a program in the foreground, is reported to `OutputStage.register_output`. Unless the output
# is known to leave the cells alone (`HARMLESS`), the model is discarded, and the next frame clears the screen. A resize
# and a frame that failed halfway have the same effect.

HARMLESS = late_pattern(
    r"(?:\x07|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # bell; title, clipboard
    r"|\x1b\[\?(?:25|1000|1002|1003|1004|1006|1015|1016|2004|2026|2048)[hl]"
    r"|\x1b\[\?\d+\$p|\x1b\[[<>=]\d*u|\x1b\[\d* q)*"
)
"""Matches output that leaves cells, attributes and the cursor's place unchanged."""

MOVE_BYTES = 5
"""The number of bytes of a move within a row, such as `ESC [ 12 C`. A shorter gap of equal cells is written again."""

ERASE_BYTES = 9
"""The length in bytes of the sequences that erase blanks and move past them, such as `ESC [ 12 X` and `ESC [ 12 C`."""

MIN_ERASED_BLANKS = 4
"""The minimum number of blanks for which erasing the rest of a row is no longer than writing them."""


@dataclass(frozen=True)
class EraseCapabilities:
    """A terminal's capabilities to erase cells."""

    keeps_colour: bool = False
    """Whether erased cells get the current background (terminfo's `bce`) instead of the default one."""
    within_row: bool = False
    """Whether the terminal can erase a number of cells within a row (terminfo's `ech`)."""


def erasing(term: str, descriptor: int) -> EraseCapabilities:
    """Return the capabilities in terminfo for the terminal type `term`, none for an unknown type."""
    try:
        import curses

        curses.setupterm(term, descriptor)
    except (ImportError, curses.error):
        return EraseCapabilities()
    return EraseCapabilities(keeps_colour=curses.tigetflag("bce") > 0, within_row=bool(curses.tigetstr("ech")))


class Row:
    """One row of the terminal, as last written: the character and the style of each cell."""

    __slots__ = ("cells", "is_width_certain", "styles")

    def __init__(self, cells: list[str], styles: list[CellStyle], sure: bool) -> None:
        self.cells = cells
        self.styles = styles
        self.is_width_certain = sure
        """Whether every character of the row is one cell wide in all terminals."""


class Frame(CompositorUpdate):
    """An update that is written as the difference to the terminal's content."""

    def __init__(self, stage: OutputStage, update: Update, width: int, height: int) -> None:
        self._stage = stage
        self._update = update
        self._width = width
        self._height = height

    def render_segments(self, console: Console) -> str:
        """Return the text to write. Must be called once, because the call records the text as written."""
        colours = console._color_system or ColorSystem.TRUECOLOR
        return self._stage.frame(self._update.pieces, self._width, self._height, colours)


class OutputStage:
    """Turns frames into text that updates the terminal. Records what the terminal shows, to write only differences."""

    def __init__(self, erasing: EraseCapabilities) -> None:
        self._erasing = erasing
        self._rows: list[Row] = []
        self._size = (0, 0)
        self._is_column_certain = False

    def is_valid_for(self, width: int, height: int) -> bool:
        """Return whether the recorded content is valid for a terminal of this size.

        If not, the next frame must be complete."""
        return self._is_column_certain and self._size == (width, height)

    def forget(self) -> None:
        """Discard the recorded content, after a resize or after other output to the terminal."""
        self._is_column_certain = False

    def register_output(self, sequence: str) -> None:
        """Register output outside of frames. Unless it is `HARMLESS`, discard the recorded content."""
        if HARMLESS.fullmatch(sequence) is None:
            self.forget()

    def frame(self, pieces: Iterable[Piece], width: int, height: int, colours: ColorSystem) -> str:
        """Return the text that draws these pieces on the terminal, and record them as the terminal's content.

        Attributes are reset before and after a frame."""
        known = self.is_valid_for(width, height)
        # The drawing may fail halfway, so the model is marked as unknown until the end.
        self._is_column_certain = False
        self._size = (width, height)
        if not known:
            self._rows = [_blank(PLAIN, width) for _ in range(height)]
        changed = self._changed(pieces, colours)
        pen = FrameWriter(self._erasing, width)
        ground = None
        if not known:
            # The screen is cleared with the most frequent background, so most blanks need no writing.
            ground = _commonest_ground(changed.values()) if self._erasing.keeps_colour else PLAIN
            self._rows = [_blank(ground, width) for _ in range(height)]
        for y, row in changed.items():
            pen.draw(y, self._rows[y], row)
            self._rows[y] = row
        self._is_column_certain = True
        return pen.written(ground)

    def _changed(self, pieces: Iterable[Piece], colours: ColorSystem) -> dict[int, Row]:
        """Apply pieces to copies of the rows, and return the changed rows by number."""
        changed: dict[int, Row] = {}
        for piece in pieces:
            row = changed.get(piece.y)
            if row is None:
                if not 0 <= piece.y < len(self._rows):
                    continue
                old = self._rows[piece.y]
                row = changed[piece.y] = Row(old.cells.copy(), old.styles.copy(), old.is_width_certain)
            _put(row, piece, colours)
        return changed


def _blank(ground: CellStyle, width: int) -> Row:
    return Row([" "] * width, [ground] * width, True)


def _commonest_ground(rows: Iterable[Row]) -> CellStyle:
    blanks: Counter[str] = Counter()
    for row in rows:
        for cell, style in zip(row.cells, row.styles, strict=True):
            if cell == " " and style.ground is not None:
                blanks[style.ground] += 1
    for ground, _ in blanks.most_common(1):
        return PLAIN.on(ground)
    return PLAIN


def _put(row: Row, piece: Piece, colours: ColorSystem) -> None:
    """Replace a part of a row by a piece, as a terminal would."""
    width = len(row.cells)
    cells: list[str] = []
    styles: list[CellStyle] = []
    sure = True
    for text, style, _ in piece.strip:
        if text.isascii():
            cells += text
            styles += [cell_style_of(style, colours)] * len(text)
        else:
            of_text = cells_of(text)
            if of_text.leading and cells:
                cells[-1] += of_text.leading
            cells += of_text.cells
            styles += [cell_style_of(style, colours)] * len(of_text.cells)
            sure = sure and of_text.is_width_certain
    x, end = piece.x, min(piece.x + len(cells), width)
    # A piece may overwrite half of a wide character. Terminals then show a blank instead of the other half.
    if not row.is_width_certain:
        for at in (x, end):
            if at < width and not row.cells[at]:
                row.cells[at] = " "
                row.cells[max(at - 1, 0)] = " "
    row.cells[x:end] = cells[: end - x]
    row.styles[x:end] = styles[: end - x]
    if not (sure and row.is_width_certain):
        row.is_width_certain = all(map(is_width_certain, row.cells))


def _differing(old: Row, new: Row) -> Iterator[tuple[int, int]]:
    # A blank that is still blank on the same background need not be written. A short gap between changes is written
    # again if it has the style of the cell before, because this takes fewer bytes than a move.
    cells, styles = new.cells, new.styles
    places = []
    for x, (before, after, style_before, style_after) in enumerate(
        zip(old.cells, cells, old.styles, styles, strict=True)
    ):
        if before != after or (
            style_before is not style_after and (after != " " or not _same_ground(style_before, style_after))
        ):
            places.append(x)
    start = end = -1
    for x in places:
        if start < 0:
            start = x
        elif x > end and not (x - end < MOVE_BYTES and _suits_cells(styles[end - 1], cells, styles, end, x)):
            yield start, end
            start = x
        end = x + 1
    if start >= 0:
        yield start, end


def _suits_cells(style: CellStyle, cells: list[str], styles: list[CellStyle], start: int, end: int) -> bool:
    """Return whether the cells from `start` to `end` look right in `style`. A blank only needs the same background."""
    return all(styles[x] is style or (cells[x] == " " and _same_ground(styles[x], style)) for x in range(start, end))


def _same_ground(one: CellStyle, other: CellStyle) -> bool:
    return one.ground is not None and one.ground == other.ground


class _Run(NamedTuple):
    """Cells of a row to write together, in one style."""

    y: int
    x: int
    end: int
    """The cursor's column afterwards, -1 if terminals differ."""
    sequence: str
    style: CellStyle | None
    """The style of the cells. For blanks it is `None`, because any style with the same background draws them."""
    ground: str | None


class FrameWriter:
    """Collects the changed cells of one frame row by row, and writes them in the order that needs the fewest bytes."""

    def __init__(self, erasing: EraseCapabilities, width: int) -> None:
        self._erasing = erasing
        self._width = width
        self._in_order: list[_Run] = []
        """The runs of rows that are written whole. They keep their order, because terminals may differ about their
        columns."""
        self._runs: list[_Run] = []

    def draw(self, y: int, old: Row, new: Row) -> None:
        """Collect the cells that change the row `y` from `old` to `new`."""
        if old.cells == new.cells and old.styles == new.styles:
            return
        if not (old.is_width_certain and new.is_width_certain):
            # This row has a character whose width differs between terminals. Each of its cells is a separate run, and
            # the column after such a character is unknown, so `_written` moves the cursor.
            for x, (cell, style) in enumerate(zip(new.cells, new.styles, strict=True)):
                if cell:
                    end = self._certain_column(x + 1) if is_width_certain(cell) else -1
                    self._in_order.append(_Run(y, x, end, cell, style, None))
            return
        drawn = 0
        for start, end in _differing(old, new):
            if end > drawn:
                drawn = self._cut(y, max(start, drawn), end, new)

    def written(self, cleared: CellStyle | None) -> str:
        """Return the collected cells as text.

        With a style `cleared`, the text first clears the screen in this style."""
        by_row = _written((*self._in_order, *self._runs), cleared)
        by_style = _written((*self._in_order, *_by_style(self._runs)), cleared)
        return min(by_row, by_style, key=len)

    def _cut(self, y: int, x: int, end: int, row: Row) -> int:
        """Collect the cells from `x` to `end`, grouped by style. Return the column after the last group.

        This column is beyond `end` if the rest of the row was erased."""
        # Blanks are handled first, because erasing them may take fewer bytes than writing them. Blanks before text on
        # the same background are written together with the text. Other blanks may be written in any style with their
        # background.
        cells, styles = row.cells, row.styles
        while x < end:
            first, ground = x, styles[x].ground
            if cells[x] == " " and ground is not None:
                x = _behind_blanks(row, x, end, ground)
                if (erasing := self._erase_sequence(row, first, x, ground)) is not None:
                    sequence, x = erasing
                    self._runs.append(_Run(y, first, first, sequence, None, ground))
                    continue
                if x == end or styles[x].ground != ground:
                    self._runs.append(_Run(y, first, self._certain_column(x), " " * (x - first), None, ground))
                    continue
            # A run may contain blanks on its background, unless erasing them is shorter.
            style = styles[x]
            while x < end:
                if styles[x] is style and (cells[x] != " " or style.ground is None):
                    x += 1
                    continue
                if cells[x] != " " or style.ground is None or styles[x].ground != style.ground:
                    break
                behind = _behind_blanks(row, x, end, style.ground)
                if self._erase_sequence(row, x, behind, style.ground) is not None:
                    break
                x = behind
            self._runs.append(_Run(y, first, self._certain_column(x), "".join(cells[first:x]), style, style.ground))
        return x

    def _erase_sequence(self, row: Row, x: int, end: int, ground: str) -> tuple[str, int] | None:
        """Return a sequence that erases the cells from `x` on, and the column after the erased cells.

        Return `None` if writing blanks is shorter."""
        if end - x < MIN_ERASED_BLANKS or not (self._erasing.keeps_colour or ground == PLAIN.bg):
            return None
        if _behind_blanks(row, end, self._width, ground) == self._width:
            return "\x1b[K", self._width
        if end - x > ERASE_BYTES and self._erasing.within_row:
            return f"\x1b[{end - x}X", end
        return None

    def _certain_column(self, x: int) -> int:
        """Return the cursor's column after writing up to `x`, -1 if the column is unknown."""
        # After writing the last column, the cursor stays there in some terminals and wraps in others.
        return x if x < self._width else -1


def _behind_blanks(row: Row, x: int, end: int, ground: str) -> int:
    cells, styles = row.cells, row.styles
    while x < end and cells[x] == " " and styles[x].ground == ground:
        x += 1
    return x


def _by_style(runs: Sequence[_Run]) -> list[_Run]:
    # Blanks get the most frequent style with their background, so that they need no change of style.
    times = Counter(run.style for run in runs if run.style is not None)
    by_ground = {}
    for style, _ in reversed(times.most_common()):
        by_ground[style.ground] = style
    with_styles = []
    for run in runs:
        if run.style is None:
            run = run._replace(style=by_ground.get(run.ground) or PLAIN.on(run.ground or PLAIN.bg))
        with_styles.append(run)
    return sorted(with_styles, key=_style_of_run)


def _style_of_run(run: _Run) -> tuple[str, tuple[str, ...], str, str]:
    style = run.style or PLAIN
    return style.bg, style.attributes, style.fg, style.link


def _written(runs: Iterable[_Run], cleared: CellStyle | None) -> str:
    out: list[str] = []
    style = PLAIN
    if cleared is not None:
        out += (style.to(cleared), "\x1b[2J")
        style = cleared
    at_y = at_x = -1
    for y, x, end, sequence, needed, ground in runs:
        if y != at_y or x != at_x:
            out.append(_move(at_y, at_x, y, x))
        needed = needed or style.on(ground or "")
        if needed is not style:
            out.append(style.to(needed))
            style = needed
        out.append(sequence)
        at_y, at_x = y, end
    out.append(style.to(PLAIN))
    return "".join(out)


def _move(from_y: int, from_x: int, y: int, x: int) -> str:
    """Return the shortest sequence that moves the cursor to a cell. `from_x` is -1 for an unknown column."""
    moves = [f"\x1b[{y + 1};{x + 1}H" if x else f"\x1b[{y + 1}H"]
    if from_x >= 0:
        across = "\b" * (from_x - x) if x < from_x else _steps(x - from_x, "C", "D")
        moves.append(_steps(y - from_y, "B", "A") + across)
    if 0 < y == from_y + 1:
        moves.append("\r\n" + _steps(x, "C", "D"))
    return min(moves, key=len)


def _steps(distance: int, ahead: str, back: str) -> str:
    if not distance:
        return ""
    count = str(abs(distance)) if abs(distance) > 1 else ""
    direction = ahead if distance > 0 else back
    return f"\x1b[{count}{direction}"
