"""Pictures of the screen: as SVG, which any browser shows and which asks nobody for anything, and as plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from textual.app import App

NAME = "workbench"

_WEB_FONT = re.compile(r"\s*@font-face \{[^}]*\}")
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def svg_of(app: App[Any]) -> str:
    """The screen as SVG; all that stands on it is text there, and can be nothing else."""
    drawing = _WEB_FONT.sub("", app.export_screenshot(title=NAME))
    drawing = drawing.replace("<text ", '<text xml:space="preserve" ').replace("&#160;", " ")
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", drawing)


def text_of(app: App[Any]) -> str:
    """The screen as lines of text, without blanks at their ends."""
    return "".join(f"{strip.text.rstrip()}\n" for strip in app.screen._compositor.render_strips())


def save_picture(folders: Sequence[Path], svg: str, text: str) -> tuple[Path, Path]:
    """Write a picture under the next free name into the first folder that takes it; the two files.

    Raises OSError when none does.
    """
    for folder in folders[:-1]:
        try:
            return _saved_in(folder, svg, text)
        except OSError:
            continue
    folders[-1].mkdir(parents=True, exist_ok=True)
    return _saved_in(folders[-1], svg, text)


def _saved_in(folder: Path, svg: str, text: str) -> tuple[Path, Path]:
    for number in count(1):
        drawing, lines = folder / f"{NAME}-{number}.svg", folder / f"{NAME}-{number}.txt"
        if lines.exists():
            continue
        try:
            with drawing.open("x", encoding="utf-8") as file:
                file.write(svg)
        except FileExistsError:
            continue
        lines.write_text(text, encoding="utf-8", errors="replace")
        return drawing, lines
    raise AssertionError("numbers do not end")
