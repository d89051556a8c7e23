"""Cleans texts of servers: replaces what no text file or request can hold."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from workbench.trajectory.messages import JsonValue

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_UNFIT = re.compile("[\0\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Returns the text with � in place of NUL and lone surrogates."""
    return _UNFIT.sub(REPLACEMENT, text)


def clean_json(value: JsonValue) -> JsonValue:
    """Returns a value with all its texts clean, the names in its objects included. NaN and infinity, which JSON lacks
    but which can arrive, become null."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return clean_object(value)
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def clean_object(value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Returns an object cleaned as by `clean_json`."""
    return {clean_text(name): clean_json(item) for name, item in value.items()}
