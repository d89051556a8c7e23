"""JSON text that can always be written as UTF-8, whatever a model or a tool put into a string."""

from __future__ import annotations

import json
import re
from typing import Any

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def json_text(value: Any, *, indent: int | None = None) -> str:
    """`value` as JSON: compact on one line, or indented. Lone surrogates are escaped, other characters stay.

    Raises TypeError, ValueError or RecursionError for what JSON cannot say, NaN and the infinities among it.
    """
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, ensure_ascii=False, separators=separators, indent=indent, allow_nan=False)
    return escape_lone_surrogates(text)


def escape_lone_surrogates(text: str) -> str:
    """A JSON text with `\\ud800` and the like in place of what UTF-8 cannot say."""
    return text if text.isascii() else _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
