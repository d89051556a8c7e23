"""Texts of others in GitHub Markdown, in which they mean nothing but themselves, and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from workbench.reports.visible import one_line

_MARKUP = re.compile(r"[\\`*_\[\]<>~&$#]")
_ACTED_ON = re.compile(r"@|://|www\.|#\d|\bGH-\d|:[\w+-]+:")
"""What GitHub makes a link or a picture of even where it is escaped: only code is left alone."""
_BAR = r"\|"
_WORDS = re.compile(r"\S+")
_TICKS = re.compile(r"`+")


def text(plain: str) -> str:
    """Any text as Markdown that shows it and nothing else, on one line."""
    return _WORDS.sub(lambda word: _word(word[0]), one_line(plain).strip())


def _word(word: str) -> str:
    return code(word) if _ACTED_ON.search(word) else _MARKUP.sub(r"\\\g<0>", word)


def code(plain: str) -> str:
    """Any text as code."""
    line = one_line(plain).strip()
    if not line:
        return ""
    fence = "`" * (1 + max((len(ticks) for ticks in _TICKS.findall(line)), default=0))
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def table(titles: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a table whose cells are Markdown. A bar in a cell would end it, even in code; nowhere else is it
    anything."""
    for cells in (titles, ["---"] * len(titles), *rows):
        yield f"| {' | '.join(cell.replace('|', _BAR) for cell in cells)} |"


def text_table(titles: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """A table whose cells are any texts."""
    return "\n".join(table(titles, (map(text, row) for row in rows)))
