"""What answers the calls of letter_count.toml: a mock that computes its answer from the arguments."""

from __future__ import annotations

from typing import Any


def count_letters(arguments: dict[str, Any]) -> int:
    """How often `letter` occurs in `word`, as they are written: an upper-case letter is another one."""
    word: str = arguments["word"]
    return word.count(arguments["letter"])
