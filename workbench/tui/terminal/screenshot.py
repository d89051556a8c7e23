"""Screenshots of the app as SVG and as plain text."""

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
    """Return the screen as SVG without external resources, with all text escaped."""
    # Rich's SVG loads a font from the web, and its blanks are no-break spaces.
    drawing = _WEB_FONT.sub("", app.export_screenshot(title=NAME, simplify=True))
    drawing = drawing.replace("<text ", '<text xml:space="preserve" ').replace("&#160;", " ")
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", drawing)


def text_of(app: App[Any]) -> str:
    """Return the screen as lines of text, without trailing blanks."""
    return "".join(f"{strip.text.rstrip()}\n" for strip in app.screen._compositor.render_strips())


def save_picture(folders: Sequence[Path], svg: str, text: str) -> tuple[Path, Path]:
    """Save a screenshot under the next free name in the first writable folder. Return the SVG file and the text file.

    Raises:
        OSError: No folder is writable."""
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
    raise AssertionError("count() ended")
