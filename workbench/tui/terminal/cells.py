"""Terminal cells: text, style, and the shortest escape sequence between two styles."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from rich.cells import cell_len, get_character_cell_size
from rich.color import ColorSystem
from rich.style import Style
from textual.strip import Strip

from workbench.tui.terminal.colour_depth import in_256

_UNCERTAIN_WIDTH = ("M", "C")
"""Unicode categories with widths that differ between terminals: marks, controls and unassigned characters."""

_EMOJI_STYLE = "\ufe0f"
"""The variation selector that turns the previous character into an emoji, two cells wide."""


@lru_cache(maxsize=4096)
def is_width_certain(cell: str) -> bool:
    """Return whether every terminal shows a text in exactly one cell."""
    return (
        len(cell) == 1
        and get_character_cell_size(cell) == 1
        and unicodedata.east_asian_width(cell) not in ("W", "F")
        and not unicodedata.category(cell).startswith(_UNCERTAIN_WIDTH)
    )


class Cells(NamedTuple):
    """A text cut into cells. The second cell of a wide character is empty."""

    leading: str
    """Characters without width at the beginning of the text. They belong to the previous cell."""
    cells: tuple[str, ...]
    is_width_certain: bool
    """Whether every character is one cell wide in all terminals."""


@lru_cache(maxsize=2048)
def cells_of(text: str) -> Cells:
    """Return a text cut into cells, with Textual's widths of characters."""
    if all(map(is_width_certain, text)):
        return Cells("", tuple(text), True)
    # The width of a character depends on the characters before it, so each prefix of the text is measured.
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
"""The SGR code that ends each attribute. Some codes end two attributes."""

_UNSEEN_ON_BLANKS = frozenset({"1", "2", "3", "8"})
"""Attributes that are invisible on a blank: bold, dim, italic and hidden."""


class CellStyle:
    """The colours, attributes and link of a cell. Equal styles are one object, so `is` compares styles."""

    __slots__ = ("_steps", "attributes", "bg", "fg", "ground", "link")

    def __init__(self, fg: str, bg: str, attributes: tuple[str, ...], link: str) -> None:
        self.fg = fg
        self.bg = bg
        self.attributes = attributes
        self.link = link
        self.ground = bg if not link and _UNSEEN_ON_BLANKS.issuperset(attributes) else None
        """The background, if a blank of this style shows only the background. Otherwise `None`."""
        self._steps: dict[CellStyle, str] = {}

    def to(self, after: CellStyle) -> str:
        """Return the shortest sequence that changes the terminal from this style to another."""
        step = self._steps.get(after)
        if step is None:
            step = self._steps[after] = self._step(after)
        return step

    def _step(self, after: CellStyle) -> str:
        if self is after:
            return ""
        ended = {_OFF[code] for code in self.attributes if code not in after.attributes}
        changes = sorted(ended)
        for code in after.attributes:
            # One code may end several attributes: 22 ends bold and dim. Such attributes must be set again.
            if code not in self.attributes or _OFF[code] in ended:
                changes.append(code)
        if after.fg != self.fg:
            changes.append(after.fg)
        if after.bg != self.bg:
            changes.append(after.bg)
        link = ""
        if self.link != after.link:
            link = f"\x1b]8;{after.link or ';'}\x1b\\"
        if not changes:
            return link
        # The alternative is a code that resets the style, followed by all codes of the new style. The shorter one is
        # used.
        anew = ["", *after.attributes]
        anew += [code for code in (after.fg, after.bg) if code not in (_DEFAULT_FG, _DEFAULT_BG)]
        codes = min(";".join(changes), ";".join(anew), key=len)
        return f"{link}\x1b[{codes}m"

    def on(self, ground: str) -> CellStyle:
        """Return this style for blanks on the background `ground`.

        Attributes that would show on a blank are removed."""
        if self.ground == ground:
            return self
        return cell_style(self.fg, ground, tuple(code for code in self.attributes if code in _UNSEEN_ON_BLANKS))


_cell_styles: dict[tuple[str, str, tuple[str, ...], str], CellStyle] = {}
_by_codes: dict[str, CellStyle] = {}


def cell_style(
    fg: str = _DEFAULT_FG, bg: str = _DEFAULT_BG, attributes: tuple[str, ...] = (), link: str = ""
) -> CellStyle:
    """Return the style with these SGR codes, and a link in the form of OSC 8 (`id=ID;URL`)."""
    key = (fg, bg, attributes, link)
    found = _cell_styles.get(key)
    if found is None:
        found = _cell_styles[key] = CellStyle(*key)
    return found


PLAIN = cell_style()
"""The style after a reset."""


def cell_style_of(style: Style | None, colours: ColorSystem) -> CellStyle:
    """Convert a Rich style to a cell style for a terminal with these colours."""
    if style is None:
        return PLAIN
    # Rich keeps the codes of a style in `_ansi`, so each style is converted once.
    codes = style._ansi
    if codes is None:
        shown = in_256(style) if colours is ColorSystem.EIGHT_BIT else style
        codes = style._ansi = Strip.render_ansi(shown, colours)
    found = _by_codes.get(codes)
    if found is None:
        found = _by_codes[codes] = _read(codes)
    if style._link:
        return cell_style(found.fg, found.bg, found.attributes, f"id={style._link_id};{style._link}")
    return found


def _read(codes: str) -> CellStyle:
    fg, bg, attributes = _DEFAULT_FG, _DEFAULT_BG, []
    # Codes of attributes come first, because 4 and 40 begin with the same digit. Backgrounds are 40 to 49 and 100 to
    # 107.
    for code in _whole(codes):
        if code in _OFF:
            attributes.append(code)
        elif code.startswith(("4", "10")):
            bg = code
        else:
            fg = code
    return cell_style(fg, bg, tuple(attributes))


def _whole(codes: str) -> Iterator[str]:
    """Split SGR codes into complete codes: each is an attribute, or a colour with all its numbers."""
    if not codes:
        return
    numbers = iter(codes.split(";"))
    for number in numbers:
        if number in ("38", "48"):
            # `38;2;RED;GREEN;BLUE` or `38;5;NUMBER`
            kind = next(numbers)
            count = 3 if kind == "2" else 1
            yield ";".join([number, kind, *islice(numbers, count)])
        else:
            yield number
