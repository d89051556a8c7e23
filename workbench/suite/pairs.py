"""Edits pairs of keys and values in their text, preserving the comments among them and their order.

The pairs are under one header, or above all of them; tables in them are in braces or written with dotted keys.
"""

from __future__ import annotations

import tomlkit
from tomlkit.items import Array, InlineTable, Item, Key
from tomlkit.items import Table as TomlkitTable

from workbench.suite.render import Keys, Table, one_line, rank, value_text
from workbench.suite.sameness import partners, same


def edited_pairs(text: str, old: Table, new: Table, keys: Keys) -> str:
    """Returns the text of pairs `old`, edited to hold `new`; `keys` lead to their table. Lines end with a line feed,
    the last one without.

    Raises what tomlkit raises where it fails: TOMLKitError, LookupError, TypeError, AttributeError. The caller must
    read the result back and compare it.
    """
    document = tomlkit.parse(text + "\n" if text else "")
    for key in old:
        if key not in new:
            document.remove(key)
    for key, value in new.items():
        if key in old and not same(old[key], value):
            fresh = _edited(document.item(key), old[key], value, (*keys, key))
            if fresh is not None:
                document[key] = fresh
    for key in sorted(new.keys() - old.keys(), key=lambda key: (rank((*keys, key)), list(new).index(key))):
        _insert(document, key, value_text((*keys, key), new[key]), keys)
    return tomlkit.dumps(document).removesuffix("\n")


def has_comment(text: str, key: str) -> bool:
    """Returns whether a comment may follow a value or be inside it. Raises as `edited_pairs` does."""
    item = tomlkit.parse(text).item(key)
    return not isinstance(item, Item) or bool(item.trivia.comment) or "#" in item.as_string()


def _edited(item: object, old: object, new: object, keys: Keys | None) -> Item | None:
    """Returns the replacement of an item; `None` when it was changed in place. `keys` are given where several lines are
    allowed."""
    match item, old, new:
        case Array(), list(), list() if "\n" in item.as_string() and new:
            _edit_array(item, old, new)
            return None
        case TomlkitTable(), dict(), dict() if new:  # dotted keys, which could not express that the table is empty
            _edit_table(item, old, new)
            return None
        case InlineTable(), dict(), dict() if old.keys() == new.keys():
            _edit_table(item, old, new)
            return None
        case InlineTable(), dict(), dict():
            new = {key: new[key] for key in dict.fromkeys((*old, *new)) if key in new}
    return tomlkit.value(one_line(new) if keys is None else value_text(keys, new))


def _edit_table(table: TomlkitTable | InlineTable, old: Table, new: Table) -> None:
    for key in old:
        if key not in new:
            table.remove(key)
    for key, value in new.items():
        if key not in old:
            table[key] = tomlkit.value(one_line(value))
        elif not same(old[key], value):
            fresh = _edited(table.value.item(key), old[key], value, None)
            if fresh is not None:
                table[key] = fresh


def _edit_array(array: Array, old: list[object], new: list[object]) -> None:
    """Elements that changed places are written again at their new place."""
    pairs = partners(old, new)
    last = -1
    for at, before in enumerate(pairs):
        if before is not None and before < last:
            pairs[at] = None
        elif before is not None:
            last = before
    for index in reversed(range(len(old))):
        if index not in pairs:
            del array[index]
    for at, (before, element) in enumerate(zip(pairs, new, strict=True)):
        if before is None:
            array.insert(at, tomlkit.value(one_line(element)))
        elif not same(old[before], element):
            fresh = _edited(array[at], old[before], element, None)
            if fresh is not None:
                array[at] = fresh


def _insert(document: tomlkit.TOMLDocument, key: str, value: str, keys: Keys) -> None:
    """Insert a pair behind the last of those that precede it in the format's order, or before all others.

    tomlkit itself only appends; it writes its body in order, so the pair is inserted there.
    """
    item = tomlkit.value(value)
    item.trivia.trail = "\n"
    body: list[tuple[Key | None, Item]] = document.body
    wanted = rank((*keys, key))
    ranks = {number: rank((*keys, other.key)) for number, (other, _) in enumerate(body) if other is not None}
    before = [number for number, other_rank in ranks.items() if other_rank <= wanted]
    body.insert(before[-1] + 1 if before else min(ranks, default=len(body)), (tomlkit.key(key), item))
