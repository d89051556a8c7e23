"""What a server says that its tool does to the world, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping

from workbench.trajectory.messages import JsonValue

_HINTS: Mapping[str, tuple[str, str]] = {
    "readOnlyHint": ("only reads", "may change things"),
    "destructiveHint": ("may destroy things", "only adds"),
    "idempotentHint": ("repeating it changes nothing more", "each call counts"),
    "openWorldHint": ("reaches beyond its server", "stays within its server"),
}
"""What a hint means when it is true and when it is false."""


def hints_in_words(annotations: Mapping[str, JsonValue]) -> str:
    """Every annotation, those that are known first and in words."""
    known = [name for name in _HINTS if name in annotations]
    said = []
    for name in (*known, *(name for name in annotations if name not in _HINTS)):
        value = annotations[name]
        if name in _HINTS and isinstance(value, bool):
            said.append(_HINTS[name][0 if value else 1])
        else:
            said.append(f"{name} {json.dumps(value, ensure_ascii=False)}")
    return "; ".join(said)
