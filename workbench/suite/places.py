"""Where something stands in a suite file: the path of keys and indices that leads to it, and how it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

Place = tuple[str | int, ...]
"""Keys and indices (from 0) from the top of the file, such as `("cases", 3, "ordered", 0, "args", "city")`."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def written(place: Iterable[str | int]) -> str:
    """A place as a person reads it: `cases[3].ordered[0].args.city`, unusual keys in quotes."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = part if _BARE_KEY.fullmatch(part) else json.dumps(part, ensure_ascii=False)
            text += f".{key}" if text else key
    return text


def keys_of(place: Place) -> tuple[str, ...]:
    """A place without its indices: the kind of thing that stands there."""
    return tuple(part for part in place if isinstance(part, str))
