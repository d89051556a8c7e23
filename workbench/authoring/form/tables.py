"""Immutable changes of nested tables. Each returns a new table that shares its unchanged parts with the old one."""

from __future__ import annotations

from collections.abc import Callable

from workbench.suite.model import ANY_TOOL
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.suite.sameness import partners, same

ABSENT = object()
"""Stands for the value of a key that is not written."""

_Change = Callable[[object], object]


def value_at(table: object, place: Place) -> object:
    """Return the value at a place, `ABSENT` if there is none."""
    value = table
    for part in place:
        if isinstance(value, dict):
            value = value.get(part, ABSENT)
        elif isinstance(value, list) and isinstance(part, int) and 0 <= part < len(value):
            value = value[part]
        else:
            return ABSENT
    return value


def items_at(table: object, place: Place) -> list[object]:
    """Return the elements of the list at a place, empty if there is no list."""
    value = value_at(table, place)
    return value if isinstance(value, list) else []


def first_change(before: object, after: object) -> Place:
    """Return the place of the first difference between two tables. An `id` counts only if nothing else differs, because
    any edit may write it out."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys: list[str | int] = [*before, *(key for key in after if key not in before)]
        changed = [key for key in keys if not same(before.get(key, ABSENT), after.get(key, ABSENT))]
        changed.sort(key=lambda key: key == "id")
    elif isinstance(before, list) and isinstance(after, list):
        longest = range(max(len(before), len(after)))
        changed = [at for at in longest if not same(before[at : at + 1], after[at : at + 1])]
    else:
        return ()
    if not changed:
        return ()
    place = (changed[0],)
    return (*place, *first_change(value_at(before, place), value_at(after, place)))


def place_in(after: object, before: object, place: Place) -> Place | None:
    """Return where the element at a place of `before` is in `after`, `None` if it is gone. What was not written stays
    at its place as long as what it belongs to is there."""
    if not place:
        return ()
    old = value_at(before, place[:1])
    part: str | int | None = place[0]
    if old is ABSENT and isinstance(after, type(before)):
        return place
    if isinstance(before, list) and isinstance(after, list):
        pairs = partners(before, after)
        part = pairs.index(place[0]) if place[0] in pairs else None
    elif isinstance(before, dict) and isinstance(after, dict):
        if part not in after:  # a key may have been renamed
            part = next((key for key in after if key not in before and same(after[key], old)), None)
    else:
        return None
    if part is None:
        return None
    rest = place_in(value_at(after, (part,)), old, place[1:])
    return (part, *rest) if rest is not None else None


def with_value(table: Table, place: Place, value: object) -> Table:
    """Set the value at a place; missing tables on the way are created."""
    return _changed(table, place, lambda _: value)


def without(table: Table, place: Place) -> Table:
    """Remove the value at a place, and every table and list that is empty after that."""
    owner = place[:-1]

    def less(value: object) -> object:
        if isinstance(value, dict):
            return {key: inner for key, inner in value.items() if key != place[-1]}
        return [inner for index, inner in enumerate(_list(value)) if index != place[-1]]

    changed = _changed(table, owner, less)
    return without(changed, owner) if owner and not value_at(changed, owner) else changed


def with_item(table: Table, place: Place, item: object) -> Table:
    """Insert an element into a list. The place ends with its new index."""
    index = place[-1]
    assert isinstance(index, int)
    return _changed(table, place[:-1], lambda value: [*_list(value)[:index], item, *_list(value)[index:]])


def with_items_swapped(table: Table, place: Place, other: int) -> Table:
    """Swap an element of a list with the one at the index `other`."""
    index = place[-1]
    assert isinstance(index, int)

    def swapped(value: object) -> object:
        items = list(_list(value))
        items[index], items[other] = items[other], items[index]
        return items

    return _changed(table, place[:-1], swapped)


def with_key_renamed(table: Table, place: Place, name: str) -> Table:
    """Rename a key of a table without changing its position."""

    def renamed(value: object) -> object:
        pairs = value.items() if isinstance(value, dict) else ()
        return {name if key == place[-1] else key: inner for key, inner in pairs}

    return _changed(table, place[:-1], renamed)


def _changed(table: Table, place: Place, change: _Change) -> Table:
    changed = _changed_below(table, place, change)
    assert isinstance(changed, dict)
    return changed


def _changed_below(value: object, place: Place, change: _Change) -> object:
    if not place:
        return change(value)
    part, rest = place[0], place[1:]
    if isinstance(part, int):
        return [
            _changed_below(inner, rest, change) if index == part else inner for index, inner in enumerate(_list(value))
        ]
    inner = value.get(part, ABSENT) if isinstance(value, dict) else ABSENT
    pairs = value if isinstance(value, dict) else {}
    return {**pairs, part: _changed_below(inner, rest, change)}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def tool_of_call(table: Table, place: Place) -> str | None:
    """Return the tool that the call, step or mock at a place names, if any."""
    call = value_at(table, place) if place else None
    tool = call.get("tool") if isinstance(call, dict) else None
    return tool if isinstance(tool, str) and tool not in ("", ANY_TOOL) else None
