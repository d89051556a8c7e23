"""Keys that stand twice in one object of a JSON text: parsers keep the last one without a word."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]')


def repeated_keys(text: str, first_line: int = 1) -> Iterator[str]:
    """Yield each key that an object of a valid JSON text has twice, with both places; `first_line` is the number of the
    text's first line."""
    objects: list[dict[str, int] | None] = []
    before = ""
    for token in _TOKEN.finditer(text):
        kind = token[0]
        if kind in "{[":
            objects.append({} if kind == "{" else None)
        elif kind in "}]":
            objects.pop()
        elif kind[0] == '"' and before in ("{", ",") and objects and (known := objects[-1]) is not None:
            key = json.loads(kind)
            if key in known:
                places = " and ".join(_place(text, at, first_line) for at in (known[key], token.start()))
                yield f"{json.dumps(key, ensure_ascii=False)} stands twice in one object, at {places}: keep one of them"
            known.setdefault(key, token.start())
        before = kind


def _place(text: str, at: int, first_line: int) -> str:
    return f"line {first_line + text.count(chr(10), 0, at)}, column {at - text.rfind(chr(10), 0, at)}"
