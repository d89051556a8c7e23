"""Compares TOML data: decides whether values are equal, and finds the corresponding elements of two lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

_NAMES = ("id", "name", "tool", "role")
"""Keys that identify a changed element, most specific first."""


def toml_equal(left: object, right: object) -> bool:
    """Return whether two values are equal in TOML: 1, 1.0 and true differ, and the order of keys does not matter."""
    if left is right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(toml_equal(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(toml_equal, left, right))
    if type(left) is not type(right):
        return False
    # `==` does not fit: nan differs from itself, and 0.0 equals -0.0, which is written differently.
    if isinstance(left, float):
        return repr(left) == repr(right)
    return left == right


def matching_elements(old: Sequence[object], new: Sequence[object]) -> list[int | None]:
    """Return, for each element of `new`, the index of its partner in `old`, or `None` for an added element.

    Equal elements are partners wherever they are. Then elements with the same id, name, tool or role are partners, and
    then the remaining elements in order."""
    found: list[int | None] = [None] * len(new)
    # Most edits leave most elements in place, and equal elements at equal places need no search.
    for at in range(min(len(old), len(new))):
        if toml_equal(old[at], new[at]):
            found[at] = at
    taken = set(found)
    free = [index for index in range(len(old)) if index not in taken]
    by_names = [partial(_named_alike, name) for name in _NAMES]
    relations: list[Callable[[object, object], bool]] = [toml_equal, *by_names, _any_two]
    for correspond in relations:
        for at, element in enumerate(new):
            if found[at] is not None:
                continue
            for index in free:
                if correspond(old[index], element):
                    found[at] = index
                    free.remove(index)
                    break
    return found


def _any_two(old: object, new: object) -> bool:
    return True


def _named_alike(name: str, old: object, new: object) -> bool:
    return isinstance(old, dict) and isinstance(new, dict) and name in old and toml_equal(old[name], new.get(name))
