"""Texts as cells of a terminal."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len, get_character_cell_size

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
    """A text as cells. A wide character is followed by an empty one."""

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
