"""Text from models, tools and files, made safe to show.

Characters that control a terminal, such as those of escape sequences, become visible."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from workbench.startup import late_pattern

if TYPE_CHECKING:
    from workbench.trajectory.events import JsonValue

ELLIPSIS = "…"

ACTED_ON = late_pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # invisible letters and marks
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero width, line separators, bidirectional controls
    "\ufe00-\ufe0f\ufeff\ufff9-\ufffb"  # variation selectors, byte order mark, annotations
    "\U000e0000-\U000e0fff"  # tags and more variation selectors
    "\ud800-\udfff]"  # surrogates, which cannot be encoded
)
"""Characters that a terminal or a layout engine obeys instead of displaying."""


def visible(text: str) -> str:
    """Return a text with its control characters replaced by Unicode pictures.

    Invisible and bidirectional characters become their code points, such as `<U+202E>`. Tabs and newlines stay."""
    return ACTED_ON.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    # Unicode has a picture of each C0 control character, at the same offset in the block of control pictures.
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return f"<U+{code:04X}>"


def one_line(text: str) -> str:
    """Return a text on one line, with control characters made visible. Newlines become `⏎`, and tabs become blanks."""
    return visible(text.replace("\r\n", "\n").replace("\t", " ")).replace("\n", "⏎")


def model_label(model: str) -> str:
    """Return the name of a model for display. The offline model is marked as a baseline."""
    if model == "offline":
        return "offline (baseline)"
    return one_line(model)


def widest_cells(texts: Iterable[str]) -> int:
    """Return the width of the widest text in terminal cells, or 0 if there are no texts. A text counts as one line."""
    return max((cell_len(one_line(text)) for text in texts), default=0)


def fit(text: str, width: int) -> str:
    """Return one line of text, cut or padded to exactly `width` terminal cells."""
    cut = shortened(text, width)
    return cut + " " * (width - cell_len(cut))


def shortened(text: str, width: int) -> str:
    """Return one line of text, cut to at most `width` terminal cells. An ellipsis marks a cut."""
    if width <= 0:
        return ""
    # Only the beginning is measured, because a long text may be cut to a few cells.
    head = text[: width + 1]
    if len(head) == len(text) and cell_len(text) <= width:
        return text
    return set_cell_size(head, width - 1) + ELLIPSIS


def after(prefix: str, text: str | None, end: str = "") -> str:
    """Return a text between `prefix` and `end`, such as `: why` or ` (why)`. If the text is empty, return ""."""
    if not text:
        return ""
    return f"{prefix}{text}{end}"


TOO_DEEP = "a value too deep to show"


def compact_json(value: JsonValue, limit: int | None = None) -> str:
    """Return a value as JSON on one line that is safe to show, cut after `limit` characters."""
    try:
        return one_line(json.dumps(value, ensure_ascii=False)[:limit])
    except RecursionError:
        return TOO_DEEP
