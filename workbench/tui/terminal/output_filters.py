"""The screens in ASCII: every sign of ours becomes one cell that any terminal and any font has."""

from __future__ import annotations

import re

from rich.cells import get_character_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from workbench.reports.visible import ACTED_ON

SIGNS: dict[str, str] = {
    "✓": "Y",
    "✗": "N",
    "▲": "E",
    "⚠": "E",
    "■": "#",
    "…": "~",
    "·": ";",
    "○": "o",
    "▾": "V",
    "▸": ")",
    "→": ">",
    "←": "<",
    "↑": "^",
    "↓": "v",
    "↻": "%",
    "‖": "H",
    "✎": "/",
    "↳": "L",
    "●": "*",
    "◇": "@",
    "◉": "B",
    "◆": "M",
    "━": "=",
    "─": "-",
    "▁": "_",
    "▂": ".",
    "▃": ":",
    "▄": "-",
    "▅": "=",
    "▆": "+",
    "▇": "*",
    "█": "#",
    "┃": "|",
    "⏎": "$",
    "␡": "?",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "«": '"',
    "»": '"',
    "›": ">",
    "–": "-",
    "−": "-",
    "×": "x",
    "÷": "/",
    "±": "+",
    "≤": "<",
    "≥": ">",
    "≈": "~",
    "≠": "&",
    "²": "2",
    "\u00a0": " ",
    "\N{REPLACEMENT CHARACTER}": "?",
}
"""What stands for each sign; signs of different meaning stay different, and passed and failed, which stand beside
formulas, look like nothing in these."""

_BOX = {chr(code): "+" for code in range(0x2500, 0x2580)}
_LEVEL = dict.fromkeys("─━┄┅┈┉╌╍═╴╶╸╺╼╾▀▄▁▂▃▅▆▇▔", "-")
_UPRIGHT = dict.fromkeys("│┃┆┇┊┋╎╏║╵╷╹╻╽╿▉▊▋▌▍▎▏▐▕", "|")
_CONTROLS = {chr(0x2400 + code): "?" for code in range(0x20)}
_TABLE = str.maketrans({**_BOX, **_LEVEL, **_UPRIGHT, "█": "#", **_CONTROLS, **SIGNS})


def in_ascii(text: str, *, all_of_it: bool) -> str:
    """`text`, as many cells wide, with our signs in ASCII. With `all_of_it` nothing else than ASCII is left: what a
    suite or a model wrote becomes `?`, cell by cell."""
    if text.isascii():
        return text
    text = text.translate(_TABLE)
    if not all_of_it or text.isascii():
        return text
    return "".join(char if char.isascii() else "?" * get_character_cell_size(char) for char in text)


class AsciiFilter(LineFilter):
    """Translates whatever is drawn, by us or by Textual, at the very end."""

    def __init__(self, *, all_of_it: bool) -> None:
        super().__init__()
        self._all_of_it = all_of_it

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(in_ascii(text, all_of_it=self._all_of_it), style, control) for text, style, control in segments]


_MOVES = re.compile(rf"{ACTED_ON.pattern}|[\t\n]")


class Guard(LineFilter):
    """Our own views show such characters by other signs. Fields and lists of Textual's pass them on: here each becomes
    a sign as wide as Textual takes it for, which may be none."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment
            if segment.control or not _MOVES.search(segment.text)
            else Segment(_MOVES.sub(_sign, segment.text), segment.style)
            for segment in segments
        ]


def _sign(match: re.Match[str]) -> str:
    return "\N{REPLACEMENT CHARACTER}" * max(get_character_cell_size(match[0]), 0)
