"""Tables changed at a place: every change makes a new table and shares what it does not touch."""

from __future__ import annotations

from collections.abc import Callable

from workbench.suite.model import ANY_TOOL
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.suite.sameness import same

ABSENT = object()
"""Stands for the value of a key that is not written."""

_Change = Callable[[object], object]


def value_at(table: object, place: Place) -> object:
    """What stands at a place; `ABSENT` where nothing does."""
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
    """The elements of the list at a place; none where there is no list."""
    value = value_at(table, place)
    return value if isinstance(value, list) else []


def first_change(before: object, after: object) -> Place:
    """The place of the first thing that two tables do not have in common; an `id` counts only where there is no other,
    for any edit may write it out."""
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


def with_value(table: Table, place: Place, value: object) -> Table:
    """The value at a place set; tables on the way are made where there are none."""
    return _changed(table, place, lambda _: value)


def without(table: Table, place: Place) -> Table:
    """What stands at a place taken away, and with it every table and list that is empty then."""
    owner = place[:-1]

    def less(value: object) -> object:
        if isinstance(value, dict):
            return {key: inner for key, inner in value.items() if key != place[-1]}
        return [inner for index, inner in enumerate(_list(value)) if index != place[-1]]

    changed = _changed(table, owner, less)
    return without(changed, owner) if owner and not value_at(changed, owner) else changed


def with_item(table: Table, place: Place, item: object) -> Table:
    """An element put into a list, which then has the index that ends the place."""
    index = place[-1]
    assert isinstance(index, int)
    return _changed(table, place[:-1], lambda value: [*_list(value)[:index], item, *_list(value)[index:]])


def with_items_swapped(table: Table, place: Place, other: int) -> Table:
    """An element of a list and the one at the index `other`, each at the other's place."""
    index = place[-1]
    assert isinstance(index, int)

    def swapped(value: object) -> object:
        items = list(_list(value))
        items[index], items[other] = items[other], items[index]
        return items

    return _changed(table, place[:-1], swapped)


def with_key_renamed(table: Table, place: Place, name: str) -> Table:
    """A key of a table called otherwise, in its place among the others."""

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
    """The tool that the call, step or mock at a place of a case names, if there is one."""
    call = value_at(table, place) if place else None
    tool = call.get("tool") if isinstance(call, dict) else None
    return tool if isinstance(tool, str) and tool not in ("", ANY_TOOL) else None
