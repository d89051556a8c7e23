"""What servers say made fit to keep: without what no text file or request can hold."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from workbench.trajectory.messages import JsonValue

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_UNFIT = re.compile("[\0\ud800-\udfff]")


def clean_text(text: str) -> str:
    """The text with � in place of NUL and of half characters."""
    return _UNFIT.sub(REPLACEMENT, text)


def clean_json(value: JsonValue) -> JsonValue:
    """A value all of whose texts are clean, the names in its objects too; NaN and the infinities, which JSON cannot say
    but which come through all the same, become null."""
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
    """An object as `clean_json` makes it."""
    return {clean_text(name): clean_json(item) for name, item in value.items()}
