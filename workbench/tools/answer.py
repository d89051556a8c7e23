"""What answers a tool call, as the model will read it."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The text that goes back to the model; `is_error` marks a tool error, which is the model's to handle."""

    content: str
    is_error: bool = False


def compact_json(value: object) -> str:
    """JSON on one line without spaces, other scripts as they are.

    Raises TypeError or ValueError for what JSON cannot say.
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
