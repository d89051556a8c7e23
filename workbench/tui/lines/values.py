"""Values as a form shows them: texts mostly without quotes, several values separated by commas."""

from __future__ import annotations

import re

from workbench.authoring.form.typed import CellError, pieces_of, read_value
from workbench.show.spans import Line, Role, Span
from workbench.tui.lines.highlight import NUMBER, toml_value

_NUMBER = re.compile(rf"(?:{NUMBER})?\.\.(?:{NUMBER})?|{NUMBER}")
"""A number, or a range of numbers."""


def value_line(text: str, *, several: bool = False) -> Line:
    """Highlight a value, or `several` that are separated by commas. Text that could be mistaken for something else has
    quotes (`shown_value`), so that everything without them is what it looks like."""
    if several:
        spans: list[Span] = []
        for piece in pieces_of(text):
            spans += [*value_line(piece), Span(",", "muted")]
        return tuple(spans[:-1])
    bare = text.strip()
    if bare.startswith(("[", "{")) and not isinstance(_read(bare), str):
        return tuple(Span(part, "string" if role == "text" else role) for part, role in toml_value(text))
    role: Role = "number" if _NUMBER.fullmatch(bare) else "literal" if bare in ("true", "false", "null") else "string"
    return (Span(text, role),)


def _read(text: str) -> object:
    try:
        return read_value(text)
    except CellError:
        return None
