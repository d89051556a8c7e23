"""Filters for all drawn text: hide secrets, replace control characters, and draw signs in ASCII."""

from __future__ import annotations

import re

from rich.cells import cell_len, get_character_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from workbench.config.secrets import Finder, Secrets
from workbench.show.visible import ACTED_ON
from workbench.startup import late_pattern


class OutputFilter(LineFilter):
    """A filter that applies several filters in turn."""

    # One filter is faster than several, because Textual creates and caches a strip for each filter.

    def __init__(self, *filters: LineFilter) -> None:
        super().__init__()
        self._filters = filters

    def __hash__(self) -> int:
        # Textual uses the hash of a filter as a key when it caches filtered lines.
        return hash(self._filters)

    def __eq__(self, other: object) -> bool:
        return self is other

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        for one in self._filters:
            segments = one.apply(segments, background)
        return segments


class SecretsFilter(LineFilter):
    """Draws `$NAME` over each secret in a line, in the same width.

    The filter does not find parts of secrets. Text must be redacted before it is wrapped or cut."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__()
        self._secrets = secrets

    def __hash__(self) -> int:
        # Textual caches filtered lines by the hash of the filter, so the hash must change with each new secret.
        return hash(self._secrets.finder)

    def __eq__(self, other: object) -> bool:
        return self is other

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        finder = self._secrets.finder
        text = "".join(segment.text for segment in segments if not segment.control)
        if not finder.may_contain(text):
            return segments
        return _with_secret_names(segments, text, finder)


def _with_secret_names(segments: list[Segment], text: str, finder: Finder) -> list[Segment]:
    signs = list(text)
    _, places = finder.decided_part(text, 0, is_last=True)
    for first, last, name in places:
        for at, sign in enumerate(name[: last - first].ljust(last - first, "*"), first):
            # The replacement must have the width of the character: two stars for a wide one, nothing for one of width
            # 0.
            width = cell_len(text[at])
            signs[at] = sign * width if width < 2 else "**"
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
"""The ASCII replacement of each sign. Signs with different meanings stay different. The signs for passed and failed
become letters, because letters do not look like part of a formula."""

_BOX = {chr(code): "+" for code in range(0x2500, 0x2580)}
_LEVEL = dict.fromkeys("─━┄┅┈┉╌╍═╴╶╸╺╼╾▀▄▁▂▃▅▆▇▔", "-")
_UPRIGHT = dict.fromkeys("│┃┆┇┊┋╎╏║╵╷╹╻╽╿▉▊▋▌▍▎▏▐▕", "|")
_CONTROLS = {chr(0x2400 + code): "?" for code in range(0x20)}
_TABLE = str.maketrans({**_BOX, **_LEVEL, **_UPRIGHT, "█": "#", **_CONTROLS, **SIGNS})


_NOT_ASCII = late_pattern(r"[^\x00-\x7f]")


def in_ascii(text: str, *, all_of_it: bool) -> str:
    """Return a text with the app's signs replaced by ASCII of the same width.

    With `all_of_it`, every other character becomes one `?` per cell."""
    if text.isascii():
        return text
    text = text.translate(_TABLE)
    if not all_of_it:
        return text
    return _NOT_ASCII.sub(lambda match: "?" * get_character_cell_size(match[0]), text)


class AsciiFilter(LineFilter):
    """Draws the signs of the app and of Textual's widgets in ASCII."""

    def __init__(self, *, all_of_it: bool) -> None:
        super().__init__()
        self._all_of_it = all_of_it

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(in_ascii(text, all_of_it=self._all_of_it), style, control) for text, style, control in segments]


_MOVES = late_pattern(rf"{ACTED_ON.pattern}|[\t\n]")


class ControlsFilter(LineFilter):
    """Replaces control characters. The app's own views already do so, but Textual's fields and lists do not."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        if not any(_MOVES.search(segment.text) for segment in segments):
            return segments
        guarded = []
        for segment in segments:
            if not segment.control:
                segment = Segment(_MOVES.sub(_sign, segment.text), segment.style)
            guarded.append(segment)
        return guarded


def _sign(match: re.Match[str]) -> str:
    # The replacement must have the width that Textual's layout assumes, which may be 0.
    return "\N{REPLACEMENT CHARACTER}" * max(get_character_cell_size(match[0]), 0)
