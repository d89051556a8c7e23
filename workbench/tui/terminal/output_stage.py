"""Composes the parts of the screen that changed, asking each widget only for lines that changed and are seen.

Textual's own compositor asks every widget in the rectangle around all changes for all of its lines, also those that
lie completely below others, and cuts them at the borders of every widget."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from rich.color import ColorSystem
from rich.console import Console, RenderableType
from textual._compositor import Compositor, CompositorUpdate
from textual._context import visible_screen_stack
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

from workbench.dataclasses import dataclass
from workbench.tui.terminal.cells import PLAIN, Look, cells_of, is_sure, look_of


class Piece(NamedTuple):
    """New content of a row, from a column on."""

    y: int
    x: int
    strip: Strip


class Update(CompositorUpdate):
    """New content of some rows."""

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces

    def render_segments(self, console: Console) -> str:
        """Return everything as text, for drivers without an output stage."""
        return "".join(f"\x1b[{y + 1};{x + 1}H{strip.render(console)}" for y, x, strip in self.pieces)


def compose(compositor: Compositor, regions: Iterable[Region]) -> list[Piece]:
    """Return the lines of the screen in some regions."""
    screen = compositor.size.region
    unseen: dict[int, list[tuple[int, int]]] = {}
    """The parts of the regions still to be composed, by row."""
    for y, start, end in compositor._regions_to_spans(region.intersection(screen) for region in regions):
        unseen.setdefault(y, []).append((start, end))
    pieces: list[Piece] = []
    for widget, (region, clip) in compositor.visible_widgets.items():  # from front to back
        if not unseen:
            break
        x, top, width, height = region.intersection(clip)
        right = x + width
        rows = [
            y
            for y in range(top, top + height)
            if y in unseen and any(start < right and x < end for start, end in unseen[y])
        ]
        for first, count in _together(rows):
            lines = widget.render_lines(Region(x - region.x, first - region.y, width, count))
            for y, strip in enumerate(lines, first):
                left = []
                for start, end in unseen.pop(y):
                    if start >= right or end <= x:
                        left.append((start, end))
                        continue
                    pieces.append(Piece(y, max(start, x), strip.crop(max(start - x, 0), min(end, right) - x)))
                    left += [span for span in ((start, x), (right, end)) if span[0] < span[1]]
                if left:
                    unseen[y] = left
    return pieces


def _together(rows: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first row of each unbroken series, and its length."""
    for _, series in groupby(enumerate(rows), lambda numbered: numbered[1] - numbered[0]):
        members = [y for _, y in series]
        yield members[0], len(members)


_render_update = Compositor.render_update


def _update(
    self: Compositor, full: bool = False, screen_stack: list[Screen[Any]] | None = None, simplify: bool = False
) -> RenderableType | Update | None:
    """Return the update to draw, `None` if there is none.

    Simplified updates, for screenshots, are Textual's own."""
    if simplify:
        return _render_update(self, full, screen_stack, simplify)
    visible_screen_stack.set(screen_stack or [])
    regions = {self.size.region} if full else self._dirty_regions.copy()
    self._dirty_regions.clear()
    if regions:
        return Update(compose(self, regions))
    return None


Compositor.render_update = _update  # type: ignore[assignment]


# The output stage. It keeps a model of the terminal, the character and look of each cell, and writes a frame as the
# difference to it, as curses does (`doupdate`): over a slow line what counts is bytes. A frame is
#
# 1. put into copies of the rows that it changes (`_put`), cell by cell, as a terminal would;
# 2. compared with the model, row by row, for ranges that look different (`_differing`). Blanks have no letter, so that
#    only their ground counts. A gap shorter than the escape sequence of a move is written again;
# 3. cut into runs of one look (`Pen`). Blanks are erased where that is shorter and where terminfo says that erased
#    cells get the colour;
# 4. written twice, from top to bottom and sorted by look, and the shorter text is taken: where colours have many
#    digits, a move costs less than a change of colour.
#
# The model must never differ from the terminal. Terminals disagree about the width of some characters, so a row with
# one of them is written as a whole, with the cursor placed anew behind it. Everything else that is written, by Textual
# or by a program in the foreground, passes `OutputStage.passes`: unless it is known to leave the cells alone
# (`HARMLESS`), the model is forgotten, and the next frame clears the screen. The same happens after a resize and
# after a frame that failed halfway.

HARMLESS = re.compile(
    r"(?:\x07|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # bell; title, clipboard
    r"|\x1b\[\?(?:25|1000|1002|1003|1004|1006|1015|1016|2004|2026|2048)[hl]"
    r"|\x1b\[\?\d+\$p|\x1b\[[<>=]\d*u|\x1b\[\d* q)*"
)
"""Sequences that leave cells, attributes and cursor as they are."""

MOVE = 5
"""The bytes of a move within a row. Fewer unchanged cells than that are written again."""

ERASE = 9
"""The bytes that erase blanks within a row and go on behind them."""

FEW = 4
"""So many blanks are as short as erasing the rest of a row."""


@dataclass(frozen=True)
class Erasing:
    """How a terminal erases."""

    keeps_colour: bool = False
    """Whether erased cells get the current background (terminfo's `bce`), instead of the default one."""
    within_row: bool = False
    """Whether it can erase a number of cells (terminfo's `ech`)."""


def erasing(term: str, descriptor: int) -> Erasing:
    """Return terminfo's description of a terminal, nothing if it does not know it."""
    try:
        import curses

        curses.setupterm(term, descriptor)
    except (ImportError, curses.error):
        return Erasing()
    return Erasing(keeps_colour=curses.tigetflag("bce") > 0, within_row=bool(curses.tigetstr("ech")))


class Row:
    """One row of the terminal as it is shown."""

    __slots__ = ("cells", "looks", "sure")

    def __init__(self, cells: list[str], looks: list[Look], sure: bool) -> None:
        self.cells = cells
        self.looks = looks
        self.sure = sure
        """Whether every terminal takes each cell to be one cell wide."""


class Frame(CompositorUpdate):
    """An update of the screen, written as the difference to the terminal's content."""

    def __init__(self, stage: OutputStage, update: Update, width: int, height: int) -> None:
        self._stage = stage
        self._update = update
        self._width = width
        self._height = height

    def render_segments(self, console: Console) -> str:
        """Return the bytes to write.

        Textual asks for them once."""
        colours = console._color_system or ColorSystem.TRUECOLOR
        return self._stage.frame(self._update.pieces, self._width, self._height, colours)


class OutputStage:
    """Knows the terminal's content."""

    def __init__(self, erasing: Erasing) -> None:
        self._erasing = erasing
        self._rows: list[Row] = []
        self._size = (0, 0)
        self._known = False

    def knows(self, width: int, height: int) -> bool:
        """Return whether the content of a terminal of this size is known.

        If not, the next frame has to be whole."""
        return self._known and self._size == (width, height)

    def forget(self) -> None:
        """Forget the terminal's content, because something else has written to it or it was resized."""
        self._known = False

    def passes(self, sequence: str) -> None:
        """Note that something other than a frame is written."""
        if HARMLESS.fullmatch(sequence) is None:
            self.forget()

    def frame(self, pieces: Iterable[Piece], width: int, height: int, colours: ColorSystem) -> str:
        """Return the bytes after which the terminal shows these pieces.

        Attributes are reset before a frame and after it."""
        known = self.knows(width, height)
        self._known = False  # if this fails halfway
        self._size = (width, height)
        if not known:
            self._rows = [_blank(PLAIN, width) for _ in range(height)]
        changed = self._changed(pieces, colours)
        pen = Pen(self._erasing, width)
        ground = None
        if not known:
            ground = _commonest_ground(changed.values()) if self._erasing.keeps_colour else PLAIN
            self._rows = [_blank(ground, width) for _ in range(height)]
        for y, row in changed.items():
            pen.draw(y, self._rows[y], row)
            self._rows[y] = row
        self._known = True
        return pen.written(ground)

    def _changed(self, pieces: Iterable[Piece], colours: ColorSystem) -> dict[int, Row]:
        """Return the new rows, by number."""
        changed: dict[int, Row] = {}
        for piece in pieces:
            row = changed.get(piece.y)
            if row is None:
                if not 0 <= piece.y < len(self._rows):
                    continue
                old = self._rows[piece.y]
                row = changed[piece.y] = Row(old.cells.copy(), old.looks.copy(), old.sure)
            _put(row, piece, colours)
        return changed


def _blank(ground: Look, width: int) -> Row:
    return Row([" "] * width, [ground] * width, True)


def _commonest_ground(rows: Iterable[Row]) -> Look:
    """Return the look of most blanks."""
    blanks = Counter(
        look.ground for row in rows for cell, look in zip(row.cells, row.looks, strict=True) if cell == " "
    )
    return next((PLAIN.on(ground) for ground, _ in blanks.most_common() if ground is not None), PLAIN)


def _put(row: Row, piece: Piece, colours: ColorSystem) -> None:
    """Replace a part of a row."""
    width = len(row.cells)
    cells: list[str] = []
    looks: list[Look] = []
    sure = True
    for text, style, _ in piece.strip:
        if text.isascii():
            cells += text
            looks += [look_of(style, colours)] * len(text)
        else:
            of_text = cells_of(text)
            if of_text.leading and cells:
                cells[-1] += of_text.leading
            cells += of_text.cells
            looks += [look_of(style, colours)] * len(of_text.cells)
            sure = sure and of_text.sure
    x, end = piece.x, min(piece.x + len(cells), width)
    if not row.sure:  # half of a wide character may remain, of which terminals show nothing
        for at in (x, end):
            if at < width and not row.cells[at]:
                row.cells[at] = " "
                row.cells[max(at - 1, 0)] = " "
    row.cells[x:end] = cells[: end - x]
    row.looks[x:end] = looks[: end - x]
    if not (sure and row.sure):
        row.sure = all(map(is_sure, row.cells))


def _differing(old: Row, new: Row) -> Iterator[tuple[int, int]]:
    """Yield the ranges of cells that look different.

    Few equal cells between two are part of the range if writing them is not longer than a move."""
    cells, looks = new.cells, new.looks
    places = []
    for x, (before, after, look_before, look_after) in enumerate(zip(old.cells, cells, old.looks, looks, strict=True)):
        if before != after or (
            look_before is not look_after and (after != " " or not _same_ground(look_before, look_after))
        ):
            places.append(x)
    start = end = -1
    for x in places:
        if start < 0:
            start = x
        elif x > end and not (x - end < MOVE and _is_as(looks[end - 1], cells, looks, end, x)):
            yield start, end
            start = x
        end = x + 1
    if start >= 0:
        yield start, end


def _is_as(look: Look, cells: list[str], looks: list[Look], start: int, end: int) -> bool:
    """Return whether some cells can be written without changing the look."""
    return all(looks[x] is look or (cells[x] == " " and _same_ground(looks[x], look)) for x in range(start, end))


def _same_ground(one: Look, other: Look) -> bool:
    return one.ground is not None and one.ground == other.ground


class _Run(NamedTuple):
    """Cells of a row that are written together."""

    y: int
    x: int
    end: int
    """The cursor's column afterwards, -1 if it is not sure."""
    sequence: str
    look: Look | None
    """`None` for blanks, which are written with any look that has their ground."""
    ground: str | None


class Pen:
    """Collects the writes of a frame, and orders them for the fewest bytes."""

    def __init__(self, erasing: Erasing, width: int) -> None:
        self._erasing = erasing
        self._width = width
        self._in_order: list[_Run] = []
        """The runs of rows that are written as a whole."""
        self._runs: list[_Run] = []

    def draw(self, y: int, old: Row, new: Row) -> None:
        """Change a row from its shown content to another.

        If terminals may differ in the width of a character, the whole row is written, and the cursor is placed anew
        behind the character."""
        if old.cells == new.cells and old.looks == new.looks:
            return
        if not (old.sure and new.sure):
            for x, (cell, look) in enumerate(zip(new.cells, new.looks, strict=True)):
                if cell:
                    self._in_order.append(_Run(y, x, self._known(x + 1) if is_sure(cell) else -1, cell, look, None))
            return
        drawn = 0
        for start, end in _differing(old, new):
            if end > drawn:
                drawn = self._cut(y, max(start, drawn), end, new)

    def written(self, cleared: Look | None) -> str:
        """Return everything as one text, after clearing the screen with a look.

        Runs of one look follow each other if that is shorter: where colours have many digits, a move is shorter than a
        change of colour."""
        return min(
            (_written((*self._in_order, *runs), cleared) for runs in (self._runs, _by_look(self._runs))), key=len
        )

    def _cut(self, y: int, x: int, end: int, row: Row) -> int:
        """Cut cells into runs.

        Returns where they end, which may be later because the rest of the row is erased."""
        cells, looks = row.cells, row.looks
        while x < end:
            first, ground = x, looks[x].ground
            if cells[x] == " " and ground is not None:
                x = _behind_blanks(row, x, end, ground)
                if (erasing := self._erasing_of(row, first, x, ground)) is not None:
                    sequence, x = erasing
                    self._runs.append(_Run(y, first, first, sequence, None, ground))
                    continue
                if x == end or looks[x].ground != ground:
                    self._runs.append(_Run(y, first, self._known(x), " " * (x - first), None, ground))
                    continue
            look = looks[x]
            while x < end:
                if looks[x] is look and (cells[x] != " " or look.ground is None):
                    x += 1
                    continue
                if cells[x] != " " or look.ground is None or looks[x].ground != look.ground:
                    break
                behind = _behind_blanks(row, x, end, look.ground)
                if self._erasing_of(row, x, behind, look.ground) is not None:
                    break
                x = behind
            self._runs.append(_Run(y, first, self._known(x), "".join(cells[first:x]), look, look.ground))
        return x

    def _erasing_of(self, row: Row, x: int, end: int, ground: str) -> tuple[str, int] | None:
        """Return how to erase blanks and where they end then, `None` if it is better to write them."""
        if end - x < FEW or not (self._erasing.keeps_colour or ground == PLAIN.bg):
            return None
        if _behind_blanks(row, end, self._width, ground) == self._width:
            return "\x1b[K", self._width
        if end - x > ERASE and self._erasing.within_row:
            return f"\x1b[{end - x}X", end
        return None

    def _known(self, x: int) -> int:
        """Return a column of the cursor, -1 behind the last one."""
        return x if x < self._width else -1


def _behind_blanks(row: Row, x: int, end: int, ground: str) -> int:
    """Return the end of the blanks that begin at `x` and have a ground."""
    cells, looks = row.cells, row.looks
    while x < end and cells[x] == " " and looks[x].ground == ground:
        x += 1
    return x


def _by_look(runs: Sequence[_Run]) -> list[_Run]:
    """Sort runs so that each look is taken once.

    Blanks take a look that is needed anyway."""
    times = Counter(run.look for run in runs if run.look is not None)
    by_ground = {}
    for look, _ in reversed(times.most_common()):
        by_ground[look.ground] = look
    taken = []
    for run in runs:
        taken.append(
            run
            if run.look is not None
            else run._replace(look=by_ground.get(run.ground) or PLAIN.on(run.ground or PLAIN.bg))
        )
    return sorted(taken, key=_look_of_run)


def _look_of_run(run: _Run) -> tuple[str, tuple[str, ...], str, str]:
    look = run.look or PLAIN
    return look.bg, look.attributes, look.fg, look.link


def _written(runs: Iterable[_Run], cleared: Look | None) -> str:
    """Return the runs as one text with moves and changes of the look, after clearing the screen with a look."""
    out: list[str] = []
    look = PLAIN
    if cleared is not None:
        out += (look.to(cleared), "\x1b[2J")
        look = cleared
    at_y = at_x = -1
    for y, x, end, sequence, needed, ground in runs:
        if y != at_y or x != at_x:
            out.append(_move(at_y, at_x, y, x))
        needed = needed or look.on(ground or "")
        if needed is not look:
            out.append(look.to(needed))
            look = needed
        out.append(sequence)
        at_y, at_x = y, end
    out.append(look.to(PLAIN))
    return "".join(out)


def _move(from_y: int, from_x: int, y: int, x: int) -> str:
    """Return the shortest sequence that moves the cursor, whose column is -1 if it is not sure."""
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
    return f"\x1b[{abs(distance) if abs(distance) > 1 else ''}{ahead if distance > 0 else back}"
