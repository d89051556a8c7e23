"""Finds the one part in which a text differs from another, quickly in long texts, and applies it."""

from __future__ import annotations

from collections.abc import Mapping


def changed_part(old: str, new: str) -> tuple[int, int, int]:
    """Returns where two texts begin to differ, and where the difference ends in the old and in the new one."""
    start = _common(old, new, min(len(old), len(new)), from_end=False)
    same_at_end = _common(old, new, min(len(old), len(new)) - start, from_end=True)
    return start, len(old) - same_at_end, len(new) - same_at_end


def _common(old: str, new: str, most: int, *, from_end: bool) -> int:
    """Returns how many characters two texts share at one end, at most `most`, by bisection, because comparing slices is
    fast."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if from_end:
            equal = old[len(old) - middle : len(old) - low] == new[len(new) - middle : len(new) - low]
        else:
            equal = old[low:middle] == new[low:middle]
        low, high = (middle, high) if equal else (low, middle - 1)
    return low


def with_part(text: str, change: Mapping[str, object]) -> str:
    """Returns a text with one part replaced: `cut` characters from `at` on by `put`.

    Raises KeyError, TypeError or IndexError when the change does not fit this text.
    """
    at, removed, put = change["at"], change["cut"], change["put"]
    if not (isinstance(at, int) and isinstance(removed, int) and isinstance(put, str)):
        raise TypeError("a change is two numbers and a text")
    if not 0 <= at <= at + removed <= len(text):
        raise IndexError("a change outside of the text")
    return text[:at] + put + text[at + removed :]
