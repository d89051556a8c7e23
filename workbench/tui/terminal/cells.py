"""Cells of a terminal: their text and style, and the shortest escape sequence from one style to another."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len, get_character_cell_size
from rich.color import ColorSystem
from rich.style import Style
from textual.strip import Strip

from workbench.tui.terminal.colour_depth import in_256

_UNSURE = ("M", "C")
"""Categories of characters that may have no width of their own, or are not assigned: terminals differ."""

_EMOJI_STYLE = "\ufe0f"
"""Makes the character before it wider."""


@lru_cache(maxsize=4096)
def is_sure(cell: str) -> bool:
    """Return whether every terminal shows this in exactly one cell."""
    return (
        len(cell) == 1
        and get_character_cell_size(cell) == 1
        and unicodedata.east_asian_width(cell) not in ("W", "F")
        and not unicodedata.category(cell).startswith(_UNSURE)
    )


class Cells(NamedTuple):
    """A text as cells.

    A wide character is followed by an empty one."""

    leading: str
    """Characters without width at the beginning, which belong to the cell before the text."""
    cells: tuple[str, ...]
    sure: bool
    """Whether every terminal takes each cell to be one cell wide."""


@lru_cache(maxsize=2048)
def cells_of(text: str) -> Cells:
    """Cut a text into cells, by the widths that Textual counts with."""
    if all(map(is_sure, text)):
        return Cells("", tuple(text), True)
    leading = ""
    cells: list[str] = []
    for end, character in enumerate(text, 1):
        wider = cell_len(text[:end]) - len(cells)
        if wider > 0 and character != _EMOJI_STYLE:
            cells += [character, *[""] * (wider - 1)]
        elif cells:
            base = next(at for at in reversed(range(len(cells))) if cells[at])
            cells[base] += character
            cells += [""] * wider
        else:
            leading += character
    return Cells(leading, tuple(cells), False)


_DEFAULT_FG, _DEFAULT_BG = "39", "49"

_OFF = {
    **dict.fromkeys(("1", "2"), "22"),
    "3": "23",
    **dict.fromkeys(("4", "21"), "24"),
    **dict.fromkeys(("5", "6"), "25"),
    "7": "27",
    "8": "28",
    "9": "29",
    **dict.fromkeys(("51", "52"), "54"),
    "53": "55",
}
"""The code that ends each attribute. Some end two at once."""

_UNSEEN_ON_BLANKS = frozenset({"1", "2", "3", "8"})


class Look:
    """Colours, attributes and link of a cell.

    There is one object for each look, so that `is` compares them."""

    __slots__ = ("_steps", "attributes", "bg", "fg", "ground", "link")

    def __init__(self, fg: str, bg: str, attributes: tuple[str, ...], link: str) -> None:
        self.fg = fg
        self.bg = bg
        self.attributes = attributes
        self.link = link
        self.ground = bg if not link and _UNSEEN_ON_BLANKS.issuperset(attributes) else None
        """The background, if a blank shows nothing else."""
        self._steps: dict[Look, str] = {}

    def to(self, after: Look) -> str:
        """Return the sequence that changes this look to another."""
        step = self._steps.get(after)
        if step is None:
            step = self._steps[after] = self._step(after)
        return step

    def _step(self, after: Look) -> str:
        if self is after:
            return ""
        ended = set()
        for code in self.attributes:
            if code not in after.attributes:
                ended.add(_OFF[code])
        changes = sorted(ended)
        changes += [code for code in after.attributes if code not in self.attributes or _OFF[code] in ended]
        changes += [new for old, new in ((self.fg, after.fg), (self.bg, after.bg)) if new != old]
        anew = [*after.attributes, *(code for code in (after.fg, after.bg) if code not in (_DEFAULT_FG, _DEFAULT_BG))]
        by_change, by_reset = ";".join(changes), ";".join(["", *anew])
        link = f"\x1b]8;{after.link or ';'}\x1b\\" if self.link != after.link else ""
        codes = by_change if len(by_change) <= len(by_reset) else by_reset
        return f"{link}\x1b[{codes}m" if changes else link

    def on(self, ground: str) -> Look:
        """Return the look nearest to this one whose blanks show `ground` and nothing else."""
        if self.ground == ground:
            return self
        return look(self.fg, ground, tuple(code for code in self.attributes if code in _UNSEEN_ON_BLANKS))


_looks: dict[tuple[str, str, tuple[str, ...], str], Look] = {}
_by_codes: dict[str, Look] = {}


def look(fg: str = _DEFAULT_FG, bg: str = _DEFAULT_BG, attributes: tuple[str, ...] = (), link: str = "") -> Look:
    """Return the look with these codes of SGR sequences, and this link as OSC 8 writes it."""
    key = (fg, bg, attributes, link)
    found = _looks.get(key)
    if found is None:
        found = _looks[key] = Look(*key)
    return found


PLAIN = look()
"""The look after a reset."""


def look_of(style: Style | None, colours: ColorSystem) -> Look:
    """Return the look of a style on a terminal with this many colours."""
    if style is None:
        return PLAIN
    codes = style._ansi
    if codes is None:
        shown = in_256(style) if colours is ColorSystem.EIGHT_BIT else style
        codes = style._ansi = Strip.render_ansi(shown, colours)
    found = _by_codes.get(codes)
    if found is None:
        found = _by_codes[codes] = _read(codes)
    if style._link:
        return look(found.fg, found.bg, found.attributes, f"id={style._link_id};{style._link}")
    return found


def _read(codes: str) -> Look:
    fg, bg, attributes = _DEFAULT_FG, _DEFAULT_BG, []
    for code in _whole(codes):
        if code in _OFF:
            attributes.append(code)
        elif code.startswith(("4", "10")):
            bg = code
        else:
            fg = code
    return look(fg, bg, tuple(attributes))


def _whole(codes: str) -> Iterator[str]:
    """Yield each attribute and each colour, which may have several numbers."""
    numbers = iter(codes.split(";") if codes else ())
    for number in numbers:
        if number in ("38", "48"):
            kind = next(numbers)
            yield ";".join([number, kind, *(next(numbers) for _ in range(3 if kind == "2" else 1))])
        else:
            yield number
