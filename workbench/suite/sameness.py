"""Compares TOML data: when two values are the same, and which element of one list became which of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

_NAMES = ("id", "name", "tool", "role")
"""Keys that identify a changed element, the most specific one first."""


def same(left: object, right: object) -> bool:
    """Return whether two values are the same in TOML: 1, 1.0 and true all differ, the order of keys does not matter."""
    if left is right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and (repr(left) == repr(right) if isinstance(left, float) else left == right)


def partners(old: Sequence[object], new: Sequence[object]) -> list[int | None]:
    """Return for each new element the index of the old one that it is, or was made from; `None` when it is new.

    Equal elements belong together wherever they are, then those of one id, name, tool or role, then the rest in order.
    """
    found: list[int | None] = [None] * len(new)
    for at in range(min(len(old), len(new))):
        if same(old[at], new[at]):
            found[at] = at
    free = [index for index in range(len(old)) if index not in found]
    ways: list[Callable[[object, object], bool]] = [same, *(partial(_named_alike, name) for name in _NAMES), _any_two]
    for belong_together in ways:
        for at, element in enumerate(new):
            if found[at] is None:
                match = next((index for index in free if belong_together(old[index], element)), None)
                if match is not None:
                    found[at] = match
                    free.remove(match)
    return found


def _any_two(old: object, new: object) -> bool:
    return True


def _named_alike(name: str, old: object, new: object) -> bool:
    return isinstance(old, dict) and isinstance(new, dict) and name in old and same(old[name], new.get(name))
