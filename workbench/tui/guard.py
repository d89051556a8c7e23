"""The last thing that what is drawn passes on its way out: nothing in it can be a command to the terminal."""

from __future__ import annotations

import re

from rich.cells import get_character_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from workbench.reports.visible import ACTED_ON

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
