"""Filters for everything that is drawn: secrets, control characters, and ASCII mode."""

from __future__ import annotations

import re

from rich.cells import cell_len, get_character_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from workbench.config.secrets import Finder, Secrets
from workbench.show.visible import ACTED_ON


class OutputFilter(LineFilter):
    """Applies several filters as one, because Textual makes and caches a strip for each filter."""

    def __init__(self, *filters: LineFilter) -> None:
        super().__init__()
        self._filters = filters

    def __hash__(self) -> int:
        """Textual caches filtered lines by their filter."""
        return hash(self._filters)

    def __eq__(self, other: object) -> bool:
        return self is other

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        for one in self._filters:
            segments = one.apply(segments, background)
        return segments


class SecretsFilter(LineFilter):
    """Draws `$NAME` over each secret in a line, at the same width.

    Text that is wrapped or cut must be cleaned before: half a secret is not found here."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__()
        self._secrets = secrets

    def __hash__(self) -> int:
        """Textual caches filtered lines by their filter.

        A new secret must change the hash."""
        return hash(self._secrets.finder)

    def __eq__(self, other: object) -> bool:
        return self is other

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        finder = self._secrets.finder
        text = "".join(segment.text for segment in segments if not segment.control)
        if not finder.may_be_in(text):
            return segments
        return _covered(segments, text, finder)


def _covered(segments: list[Segment], text: str, finder: Finder) -> list[Segment]:
    signs = list(text)
    _, places = finder.decided(text, 0, over=True)
    for first, last, name in places:
        for at, sign in enumerate(name[: last - first].ljust(last - first, "*"), first):
            # A sign of two cells is covered by two characters, one of width 0 by none.
            signs[at] = sign * cell_len(text[at]) if cell_len(text[at]) < 2 else "**"
    shown: list[Segment] = []
    at = 0
    for segment in segments:
        if segment.control:
            shown.append(segment)
            continue
        end = at + len(segment.text)
        shown.append(Segment("".join(signs[at:end]), segment.style))
        at = end
    return shown


SIGNS: dict[str, str] = {
    "✓": "Y",
    "✗": "N",
    "▲": "E",
    "⚠": "E",
    "■": "#",
    "…": "~",
    "·": ";",
    "○": "o",
    "◌": "U",
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
    "‹": "<",
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
"""The ASCII replacement of each sign. Different meanings stay different, and the signs for passed and failed cannot be
mistaken for parts of formulas."""

_BOX = {chr(code): "+" for code in range(0x2500, 0x2580)}
_LEVEL = dict.fromkeys("─━┄┅┈┉╌╍═╴╶╸╺╼╾▀▄▁▂▃▅▆▇▔", "-")
_UPRIGHT = dict.fromkeys("│┃┆┇┊┋╎╏║╵╷╹╻╽╿▉▊▋▌▍▎▏▐▕", "|")
_CONTROLS = {chr(0x2400 + code): "?" for code in range(0x20)}
_TABLE = str.maketrans({**_BOX, **_LEVEL, **_UPRIGHT, "█": "#", **_CONTROLS, **SIGNS})


def in_ascii(text: str, *, all_of_it: bool) -> str:
    """Replace our signs in `text` with ASCII of the same width.

    With `all_of_it`, every other character becomes `?` in each of its cells."""
    if text.isascii():
        return text
    text = text.translate(_TABLE)
    if not all_of_it or text.isascii():
        return text
    return "".join(char if char.isascii() else "?" * get_character_cell_size(char) for char in text)


class AsciiFilter(LineFilter):
    """Replaces signs in everything that is drawn, by the app or by Textual."""

    def __init__(self, *, all_of_it: bool) -> None:
        super().__init__()
        self._all_of_it = all_of_it

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(in_ascii(text, all_of_it=self._all_of_it), style, control) for text, style, control in segments]


_MOVES = re.compile(rf"{ACTED_ON.pattern}|[\t\n]")


class Guard(LineFilter):
    """Replaces control characters.

    The app's own views already do that, but Textual's fields and lists do not. Each becomes a sign of the width that
    Textual assumes, which may be 0."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment
            if segment.control or not _MOVES.search(segment.text)
            else Segment(_MOVES.sub(_sign, segment.text), segment.style)
            for segment in segments
        ]


def _sign(match: re.Match[str]) -> str:
    return "\N{REPLACEMENT CHARACTER}" * max(get_character_cell_size(match[0]), 0)
