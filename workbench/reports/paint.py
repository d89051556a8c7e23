"""Colours for plain terminal output, and none where they are not wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TextIO

from workbench.dataclasses import dataclass
from workbench.grading.status import StatusRole

Tone = Literal["plain", "strong", "quiet", "good", "warn", "bad"] | StatusRole

_CODES: dict[Tone, str] = {
    "plain": "",
    "strong": "1",
    "quiet": "2",
    "good": "32",
    "warn": "33",
    "bad": "31",
    "passed": "32",
    "warned": "33",
    "failed": "31",
    "error": "35",
    "muted": "2",
}


@dataclass(frozen=True)
class Paint:
    """Colours a text by its meaning. Call it with a text that is already safe to show."""

    enabled: bool

    def __call__(self, text: str, tone: Tone) -> str:
        code = _CODES[tone] if self.enabled else ""
        return f"\x1b[{code}m{text}\x1b[0m" if code else text


def paint_for(stream: TextIO, environment: Mapping[str, str]) -> Paint:
    """Returns colours on a terminal that has them, unless `NO_COLOR` is set or `TERM` is `dumb`."""
    wanted = not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
    return Paint(wanted and stream.isatty())
