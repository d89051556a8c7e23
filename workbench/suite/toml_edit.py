"""Edits a TOML text to contain changed data. Everything that did not change keeps its formatting and comments.

Tables under headers are kept, removed and added as sections. tomlkit edits the keys and values of a changed section and
keeps their comments. The result is parsed and compared with the changed data."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import ParamSpec, TypeVar

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array, InlineTable, Item, Key
from tomlkit.items import Table as TomlkitTable

from workbench.dataclasses import dataclass
from workbench.suite.problems import Place, keys_of
from workbench.suite.render import (
    Keys,
    Table,
    block_text,
    elements_of,
    field_rank,
    fits_one_line,
    has_blank_line_before,
    header,
    is_list_of_tables,
    is_under_header,
    one_line,
    value_text,
)
from workbench.suite.sections import Section, gap_without, join_sections, split_sections
from workbench.suite.toml_equality import matching_elements, toml_equal

# tomlkit edits single sections here. On a whole file, tomlkit is slow, and it assigns a comment above a header to the
# table before the comment. "Pairs" are the keys and values of one section. Tables among them are in braces or have
# dotted keys.


def edit_pairs(text: str, old: Table, new: Table, keys: Keys) -> str:
    """Change the text of key-value pairs from the values `old` to the values `new`.

    `keys` lead to the table of the pairs. Lines end with a line feed, except the last line. Raises tomlkit's errors:
    TOMLKitError, LookupError, TypeError, AttributeError. The caller must parse and compare the result."""
    if text:
        text += "\n"
    document = tomlkit.parse(text)
    for key in old:
        if key not in new:
            document.remove(key)
    for key, value in new.items():
        if key in old and not toml_equal(old[key], value):
            fresh = _edited(document.item(key), old[key], value, (*keys, key))
            if fresh is not None:
                document[key] = fresh
    for key in sorted(new.keys() - old.keys(), key=lambda key: (field_rank((*keys, key)), list(new).index(key))):
        _insert(document, key, value_text((*keys, key), new[key]), keys)
    return tomlkit.dumps(document).removesuffix("\n")


def has_comment(text: str, key: str) -> bool:
    """Return whether a comment may follow the value of a key or be inside the value.

    Raises tomlkit's errors, as `edit_pairs` does."""
    item = tomlkit.parse(text).item(key)
    return not isinstance(item, Item) or bool(item.trivia.comment) or "#" in item.as_string()


def _edited(item: object, old: object, new: object, keys: Keys | None) -> Item | None:
    """Return the replacement of an item, or `None` if the item was changed in place.

    `keys` lead to the item. Without `keys`, the item's value is written on one line."""
    match item, old, new:
        case Array(), list(), list() if "\n" in item.as_string() and new:
            _edit_array(item, old, new)
            return None
        # This is a table with dotted keys. Without any key it would be missing from the text.
        case TomlkitTable(), dict(), dict() if new:
            _edit_table(item, old, new)
            return None
        case InlineTable(), dict(), dict() if old.keys() == new.keys():
            _edit_table(item, old, new)
            return None
        case InlineTable(), dict(), dict():
            # Remaining keys keep their order, and new keys follow.
            new = {key: new[key] for key in dict.fromkeys((*old, *new)) if key in new}
    if keys is None:
        return tomlkit.value(one_line(new))
    return tomlkit.value(value_text(keys, new))


def _edit_table(table: TomlkitTable | InlineTable, old: Table, new: Table) -> None:
    for key in old:
        if key not in new:
            table.remove(key)
    for key, value in new.items():
        if key not in old:
            table[key] = tomlkit.value(one_line(value))
        elif not toml_equal(old[key], value):
            fresh = _edited(table.value.item(key), old[key], value, None)
            if fresh is not None:
                table[key] = fresh


def _edit_array(array: Array, old: list[object], new: list[object]) -> None:
    # tomlkit cannot move an element, so moved elements are written again at their new places.
    pairs = matching_elements(old, new)
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
        elif not toml_equal(old[before], element):
            fresh = _edited(array[at], old[before], element, None)
            if fresh is not None:
                array[at] = fresh


def _insert(document: tomlkit.TOMLDocument, key: str, value: str, keys: Keys) -> None:
    """Insert a key and its value at the position that the model's order of fields gives them."""
    item = tomlkit.value(value)
    item.trivia.trail = "\n"
    # tomlkit can only append. It writes its body in order, so the pair is inserted into the body.
    body: list[tuple[Key | None, Item]] = document.body
    wanted = field_rank((*keys, key))
    first, last_before = len(body), None
    for number, (other, _) in enumerate(body):
        if other is None:
            continue
        first = min(first, number)
        if field_rank((*keys, other.key)) <= wanted:
            last_before = number
    place = first
    if last_before is not None:
        place = last_before + 1
    body.insert(place, (tomlkit.key(key), item))


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

Step = tuple[str, int | None]
"""A step from a table to a table below it: the key, and the index in an array of tables."""


class CannotEditError(Exception):
    """The text cannot be changed to the new data without losing formatting."""


def edit_toml(text: str, old: Table, new: Table, line_end: str = "\n") -> str:
    """Change a TOML text with the data `old` so that it contains the data `new`. `line_end` ends new lines.

    Raises CannotEditError if formatting outside the change would be lost, and ValueError for values that TOML lacks."""
    root = _tree(text)
    result = _joined(_Editor(line_end).table(root, old, new, ()), line_end)
    try:
        reread = tomllib.loads(result)
    except ValueError as error:
        raise CannotEditError(f"the changed text is not TOML: {error}") from error
    if not toml_equal(reread, new):
        raise CannotEditError("the edited text does not have the new content")
    return result


@dataclass
class _Unit:
    """A table with the tables below it, in the order of the text.

    `own` is the section of the table itself, or `None` for a table without a header."""

    place: Place
    own: Section | None = None
    below: dict[Step, _Unit] = field(default_factory=dict)

    def sections(self) -> Iterator[Section]:
        if self.own is not None:
            yield self.own
        for unit in self.below.values():
            yield from unit.sections()


def _tree(text: str) -> _Unit:
    sections = split_sections(text)
    root = _Unit(())
    for section in sections:
        unit = root
        for length, key in enumerate(section.place, 1):
            if isinstance(key, str):
                index, end = None, length
                if length < len(section.place) and isinstance(following := section.place[length], int):
                    index, end = following, length + 1
                unit = unit.below.setdefault((key, index), _Unit(section.place[:end]))
        unit.own = section
    # TOML allows the tables that belong together to stand apart. Writing them together would change their order.
    if list(root.sections()) != sections:
        raise CannotEditError("a table is separated from the table it belongs to")
    return root


@dataclass(frozen=True)
class _Piece:
    """A section of the new text.

    If `dropped`, the table of the section was removed, and only the comments and blank lines after it remain. If
    `added`, the section is new, and its gap is not determined yet."""

    section: Section
    dropped: bool = False
    added: bool = False


class _Editor:
    def __init__(self, line_end: str) -> None:
        self._line_end = line_end

    def table(self, unit: _Unit, old: Table, new: Table, keys: Keys) -> list[_Piece]:
        if toml_equal(old, new):
            return [_Piece(section) for section in unit.sections()]
        under_headers = {key for key, _ in unit.below}
        in_body = {key: value for key, value in old.items() if key not in under_headers}
        body: Table = {}
        added: Table = {}
        for key, value in new.items():
            if key in under_headers and _fits(unit, key, value):
                continue
            inner = (*keys, key)
            if is_under_header(inner, value) and not self._stays_behind_key(unit, inner, in_body.get(key), value):
                added[key] = value
            else:
                body[key] = value
        pieces = self._own(unit, in_body, body, keys, needed=not (under_headers & new.keys() or added))
        below = self._tables_below(unit, old, {key: value for key, value in new.items() if key not in body}, keys)
        for key in sorted(added, key=lambda key: field_rank((*keys, key))):
            at = _place_for(field_rank((*keys, key)), below, keys)
            below.insert(at, (key, self._new_tables((*keys, key), added[key])))
        for _, group in below:
            pieces += group
        return pieces

    def _own(self, unit: _Unit, old: Table, new: Table, keys: Keys, needed: bool) -> list[_Piece]:
        own = unit.own
        if own is None:
            if not new and not needed:
                return []
            own = Section(unit.place, header(keys, of_array=False), "", "")
        elif toml_equal(old, new):
            return [_Piece(own)]
        return [_Piece(replace(own, body=self._body(own, old, new, keys)), added=unit.own is None)]

    def _stays_behind_key(self, unit: _Unit, keys: Keys, before: object, value: object) -> bool:
        """Return whether a table, or an array of tables, stays behind its key instead of moving under a header.

        A value with a comment stays. Any other value moves if it was no table before or if the table has become too
        long."""
        if isinstance(before, list):
            return bool(before)
        if before is None or before == {} or unit.own is None:
            return False
        if isinstance(before, dict) and (toml_equal(before, value) or fits_one_line(keys, value)):
            return True
        return _by_tomlkit(has_comment, _pairs(unit.own), keys[-1])

    def _body(self, own: Section, old: Table, new: Table, keys: Keys) -> str:
        text = _by_tomlkit(edit_pairs, _pairs(own), old, new, keys)
        if own.lead and text:
            text = f"\n{text}"
        return text.replace("\n", self._line_end)

    def _tables_below(self, unit: _Unit, old: Table, new: Table, keys: Keys) -> list[tuple[str, list[_Piece]]]:
        """Return the tables below a table, each with its key. New elements of an array follow their neighbours."""
        arrays: dict[str, list[list[_Piece]]] = {}
        for key, index in unit.below:
            if index is not None and key not in arrays:
                arrays[key] = self._elements(unit, key, old[key], new.get(key), keys)
        groups = []
        for (key, index), table in unit.below.items():
            if index is not None:
                groups.append((key, arrays[key][index]))
                continue
            before, after = old[key], new.get(key)
            if isinstance(before, dict) and isinstance(after, dict):
                groups.append((key, self.table(table, before, after, (*keys, key))))
            else:
                groups.append((key, _dropped(table)))
        return groups

    def _elements(self, unit: _Unit, key: str, old: object, new: object, keys: Keys) -> list[list[_Piece]]:
        units = [table for (name, _), table in unit.below.items() if name == key]
        if not isinstance(old, list) or len(old) != len(units):
            raise CannotEditError(f"`{key}` is written in more than one way")
        if not is_list_of_tables(new):
            return [_dropped(table) for table in units]
        inner = (*keys, key)
        pairs = matching_elements(old, new)
        retained = set(pairs) - {None}
        # The sequence holds all elements in their new order. A removed element stays before its former successor,
        # because the gap after it is kept.
        sequence: list[tuple[bool, list[_Piece]]] = []
        following = 0
        for before, element in zip(pairs, new, strict=True):
            if before is None:
                sequence.append((False, self._new_tables(inner, [element])))
                continue
            while following < before:
                if following not in retained:
                    sequence.append((True, _dropped(units[following])))
                following += 1
            following = max(following, before + 1)
            sequence.append((True, self.table(units[before], old[before], element, inner)))
        for index in range(following, len(units)):
            if index not in retained:
                sequence.append((True, _dropped(units[index])))
        return _in_slots(units, sequence)

    def _new_tables(self, keys: Keys, value: object) -> list[_Piece]:
        pieces = []
        for element in elements_of(value):
            text = block_text(keys, element, of_array=isinstance(value, list))
            pieces.append(_Piece(Section(keys, text.replace("\n", self._line_end), "", ""), added=True))
        return pieces


def _fits(unit: _Unit, key: str, value: object) -> bool:
    if (key, None) in unit.below:
        return isinstance(value, dict)
    return is_list_of_tables(value)


def _pairs(section: Section) -> str:
    """Return the text of a section's pairs. Lines end with a line feed, except the last line."""
    text = section.body.replace("\r\n", "\n")
    if section.lead:
        return text.removeprefix("\n")
    return text


def _by_tomlkit(
    work: Callable[_Arguments, _Result], *arguments: _Arguments.args, **named: _Arguments.kwargs
) -> _Result:
    try:
        return work(*arguments, **named)
    except (TOMLKitError, LookupError, TypeError, AttributeError) as error:
        raise CannotEditError(f"tomlkit cannot edit these pairs: {error}") from error


def _dropped(unit: _Unit) -> list[_Piece]:
    return [_Piece(section, dropped=True) for section in unit.sections()]


def _place_for(position: int, groups: list[tuple[str, list[_Piece]]], keys: Keys) -> int:
    place = 0
    for number, (key, _) in enumerate(groups, 1):
        if field_rank((*keys, key)) <= position:
            place = number
    return place


def _in_slots(units: list[_Unit], sequence: list[tuple[bool, list[_Piece]]]) -> list[list[_Piece]]:
    """Place the elements of an edited array of tables in the text.

    `sequence` has the elements in their new order, each with a flag that is true if the element existed before. Each
    existing element takes the next place of an old element. A new element follows the element before it."""
    # The gap after a place stays there, whichever element comes to the place. Comments between elements do not move.
    slots: list[list[_Piece]] = []
    leading: list[_Piece] = []
    for had_place, pieces in sequence:
        if had_place:
            *_, last = units[len(slots)].sections()
            slots.append(leading + _with_last_gap(pieces, last.gap))
            leading = []
        else:
            (slots[-1] if slots else leading).extend(pieces)
    return slots


def _with_last_gap(pieces: list[_Piece], gap: str) -> list[_Piece]:
    last = max(number for number, piece in enumerate(pieces) if not piece.added)
    piece = pieces[last]
    return [*pieces[:last], replace(piece, section=replace(piece.section, gap=gap)), *pieces[last + 1 :]]


def _joined(pieces: list[_Piece], line_end: str) -> str:
    sections: list[Section] = []
    last = max(number for number, piece in enumerate(pieces) if not piece.dropped)
    for number, piece in enumerate(pieces):
        if not piece.dropped and not piece.added:
            sections.append(piece.section)
            continue
        before = sections[-1]
        if piece.dropped:
            gap = gap_without(before.gap, piece.section.gap, at_end=number > last)
            sections[-1] = replace(before, gap=gap)
            continue
        blank = line_end if has_blank_line_before(keys_of(piece.section.place)) else ""
        if before.lead or before.body:
            sections[-1] = replace(before, gap=line_end + blank)
            sections.append(replace(piece.section, gap=before.gap))
        else:
            sections.append(replace(piece.section, gap=line_end + blank if number < last else ""))
    return join_sections(sections)
