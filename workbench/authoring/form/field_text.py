"""Converts the text of a field to TOML values and back, and changes nested tables.

Text needs quotes only if it would be read as another value. Surrounding spaces are ignored, except in quotes. A change
makes a new table that shares the unchanged parts with the old table."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, time

from workbench.checks.fields import is_percent
from workbench.checks.values import duration_seconds
from workbench.dataclasses import dataclass
from workbench.numerals import setting_text
from workbench.startup import late_pattern
from workbench.suite.expected_calls import ANY_TOOL
from workbench.suite.problems import Place
from workbench.suite.render import Table, one_line
from workbench.suite.toml_equality import matching_elements, toml_equal
from workbench.trajectory.json_schema import TEXT, Schema, is_list, is_number, is_text, items_of, types_of

ABSENT = object()
"""The value of a key that is not written."""

_Change = Callable[[object], object]


@dataclass(frozen=True)
class InvalidText:
    """Invalid text that was typed into a form's cell, with the cell's name and why the text is invalid."""

    text: str
    cell: str
    why: str


CellId = tuple[str, Place, str]
"""The identity of a form's cell, regardless of its content: its kind, place and option."""

CellKey = tuple[str | None, CellId]
"""The key of a case (`None`: the suite's settings) and a cell of its form."""


def without_keys(table: Table, *keys: object) -> Table:
    return {key: value for key, value in table.items() if key not in keys}


def only_keys(table: Table, keys: Iterable[str]) -> Table:
    """Return a table with only these keys, in the order of `keys`."""
    return {key: table[key] for key in keys if key in table}


def value_at(table: object, place: Place) -> object:
    """Return the value at a place, or `ABSENT` if there is none."""
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
    """Return the elements of the list at a place, or an empty list if there is no list."""
    value = value_at(table, place)
    return value if isinstance(value, list) else []


def first_change(before: object, after: object) -> Place:
    """Return the place of the first difference between two tables.

    A different `id` counts only if there is no other difference, because any edit may add the id."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys: list[str | int] = [*before, *(key for key in after if key not in before)]
        changed = [key for key in keys if not toml_equal(before.get(key, ABSENT), after.get(key, ABSENT))]
        changed.sort(key=lambda key: key == "id")
    elif isinstance(before, list) and isinstance(after, list):
        # Slices are compared, because the index may be beyond the end of the shorter list.
        longest = range(max(len(before), len(after)))
        changed = [at for at in longest if not toml_equal(before[at : at + 1], after[at : at + 1])]
    else:
        return ()
    if not changed:
        return ()
    place = (changed[0],)
    return (*place, *first_change(value_at(before, place), value_at(after, place)))


def place_in(after: object, before: object, place: Place) -> Place | None:
    """Return the place of an element after a change, or `None` if the element was removed.

    `place` is the element's place in `before`. It may end with a key that has no value yet: such a key moves together
    with the table that it belongs to."""
    if not place:
        return ()
    old = value_at(before, place[:1])
    part: str | int | None = place[0]
    if old is ABSENT and isinstance(after, type(before)):
        return place
    if isinstance(before, list) and isinstance(after, list):
        pairs = matching_elements(before, after)
        part = pairs.index(place[0]) if place[0] in pairs else None
    elif isinstance(before, dict) and isinstance(after, dict):
        if part not in after:  # the key may have been renamed
            part = next((key for key in after if key not in before and toml_equal(after[key], old)), None)
    else:
        return None
    if part is None:
        return None
    # The search goes from the outermost element inward, because an edit may have moved any of these elements.
    rest = place_in(value_at(after, (part,)), old, place[1:])
    if rest is None:
        return None
    return (part, *rest)


# A change copies only the tables around the changed place. All versions of a suite in the undo history share the other
# tables. An unchanged case can therefore be recognised by the identity of its table.


def with_value(table: Table, place: Place, value: object) -> Table:
    """Set the value at a place. Missing tables around it are created."""
    return _changed(table, place, lambda _: value)


def without(table: Table, place: Place) -> Table:
    """Remove the value at a place. Also remove each table and list around it that becomes empty."""
    owner = place[:-1]

    def less(value: object) -> object:
        if isinstance(value, dict):
            return without_keys(value, place[-1])
        return [inner for index, inner in enumerate(_list(value)) if index != place[-1]]

    changed = _changed(table, owner, less)
    if not owner or value_at(changed, owner):
        return changed
    return without(changed, owner)


def with_item(table: Table, place: Place, item: object) -> Table:
    """Insert an element into a list. The last part of the place is the element's new index."""
    index = place[-1]
    assert isinstance(index, int)
    return _changed(table, place[:-1], lambda value: [*_list(value)[:index], item, *_list(value)[index:]])


def with_items_swapped(table: Table, place: Place, other: int) -> Table:
    """Swap an element of a list with the element at the index `other`."""
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
        # A new table is built, because a key that is added to the old table would come last.
        changed: Table = {}
        if isinstance(value, dict):
            for key, inner in value.items():
                changed[name if key == place[-1] else key] = inner
        return changed

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
        items = list(_list(value))
        items[part] = _changed_below(items[part], rest, change)
        return items
    # A new table is made, because earlier versions of the suite share the old table.
    table = value if isinstance(value, dict) else {}
    return {**table, part: _changed_below(table.get(part, ABSENT), rest, change)}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def tool_of_call(table: Table, place: Place) -> str | None:
    """Return the tool named by the call, step or mock at a place.

    Returns `None` if no tool is named, or if any tool is accepted."""
    if not place:
        return None
    tool = value_at(table, (*place, "tool"))
    if not isinstance(tool, str) or tool in ("", ANY_TOOL):
        return None
    return tool


_RANGE = late_pattern(r"([^.\s]*(?:\.[^.\s]+)?)\s*\.\.\s*([^.\s]*(?:\.[^.\s]+)?)")
_END = "\N{SYMBOL FOR END OF TRANSMISSION}"


class CellError(ValueError):
    """Raised if a text is not a value of the expected kind. The message is one sentence of advice to the user."""


def read_text(text: str) -> str:
    """Return the text that the user meant. Quoted text is read as TOML, other text is returned as typed."""
    text = text.strip()
    if text[:1] in ('"', "'"):
        found = _toml(text)
        if found is not None and isinstance(found[0], str):
            return found[0]
    return text


def shown_text(text: str) -> str:
    """Return text as a form field shows it. Text that would be read as another value is quoted."""
    return shown_value(text, TEXT)


def shown_name(name: str) -> str:
    """Return a name as a form field shows it, quoted only if necessary."""
    if name and name.isprintable() and read_text(name) == name:
        return name
    return _written(name)


def read_value(text: str, schema: Schema | None = None) -> object:
    """Read the value of an argument that has this schema.

    If the schema requires text, the value is text. Otherwise it is read as TOML or JSON if possible, and else as text.
    `red, blue` is a list if the schema allows only lists. Raises CellError for an unclosed bracket, and for values that
    no argument can have: null, dates, and infinities inside lists and tables."""
    text = text.strip()
    if is_text(schema):
        return read_text(text)
    # TOML is tried first, because suites are written in TOML. JSON follows, because TOML tables are written
    # differently.
    found = _toml(text)
    if found is not None:
        if isinstance(found[0], date | time) or (isinstance(found[0], float) and not math.isfinite(found[0])):
            return text  # models send dates as text, and JSON cannot express infinity
        return _sendable(found[0])
    if text[:1] in ("[", "{"):
        try:
            return _sendable(json.loads(text))
        except CellError:
            raise
        except (ValueError, RecursionError):
            if "string" not in types_of(schema):
                raise CellError(
                    'not yet a list or a table: write [1, 2], ["red", "blue"] or { key = "value" }'
                ) from None
    if is_list(schema):
        return read_values(text, items_of(schema))
    return text


def shown_value(value: object, schema: Schema | None = None) -> str:
    """Write a value on one line. `read_value` reads the same value from it.

    Text that looks like another value is quoted, even if the schema allows only text: "3" is not 3. A value that the
    schema refuses is written as TOML."""
    if isinstance(value, str) and value.isprintable() and not _is_mistakable(value):
        try:
            if toml_equal(read_value(value, schema), value):
                return value
        except CellError:
            pass  # needs quotes
    return _written(value)


def _is_mistakable(text: str) -> bool:
    """Return whether text without quotes looks like another value, such as a number, a list, true or null."""
    if not text or text[0] in "\"'" or text == "null" or (".." in text and _is_range(text)):
        return True
    try:
        return not toml_equal(read_value(text), text)
    except CellError:
        return True


def _is_range(text: str) -> bool:
    try:
        read_range(text)
    except CellError:
        return False
    return True


def read_values(text: str, schema: Schema | None = None) -> list[object]:
    """Read values separated by commas or line ends. Each value may be quoted. Empty items are ignored.

    Raises CellError like `read_value`."""
    return [read_value(item, schema) for item in _split(text)]


def shown_values(values: Iterable[object], schema: Schema | None = None) -> str:
    """Write values on one line. `read_values` reads the same values from it."""
    return _listed((value, shown_value(value, schema)) for value in values)


def read_checks(text: str, *, may_be_empty: bool) -> list[object]:
    """Read a list of checks, each a plain value or a table. Raises CellError."""
    found = _toml(text.strip())
    if found is None or not isinstance(found[0], list) or not (found[0] or may_be_empty):
        raise CellError('write a list of checks: [{ prefix = "a" }, { suffix = "z" }]')
    return found[0]


def read_fields(text: str) -> Table:
    """Read a table of checks whose keys are names of fields. Raises CellError if the text is another value."""
    found = _toml(text.strip())
    if found is None or not isinstance(found[0], dict):
        raise CellError('write a table of checks: { city = { prefix = "O" }, size = 3 }')
    return found[0]


def read_texts(text: str) -> list[str]:
    """Read a list of texts, such as tags or tools, separated by commas or line ends."""
    return [read_text(item) for item in _split(text)]


def shown_texts(texts: Iterable[str]) -> str:
    """Write a list of texts, such as tags or tools, on one line. `read_texts` reads the same list from it."""
    return _listed((text, shown_name(text)) for text in texts)


def _listed(shown: Iterable[tuple[object, str]]) -> str:
    """Join values, each given with its text, by commas. A text that would be split at a comma is quoted."""
    texts: list[str] = []
    for value, text in shown:
        # The text needs no quotes if it would be read as one item, even when another item follows.
        is_one = _split(f"{text}, {_END}") == [text, _END]
        texts.append(text if is_one else _written(value))
    return ", ".join(texts)


def last_item(text: str) -> tuple[str, str]:
    """Split the text of an unfinished list into the text before the last item and the last item.

    The text before it ends with a space."""
    *_, item = pieces_of(text)
    head = text[: len(text) - len(item)].rstrip()
    return head + " " * bool(head), item.strip()


def read_number(text: str, minimum: float = -math.inf, maximum: float = math.inf) -> int | float:
    """Read a number between `minimum` and `maximum`.

    A whole number is an `int`. Raises CellError for any other text."""
    (number,) = _toml(text.strip()) or (None,)
    if not is_number(number) and number not in (math.inf, -math.inf):
        raise CellError(f"write a number{_limits(minimum, maximum)}")
    if not minimum <= number <= maximum:
        raise CellError(f"must be a number{_limits(minimum, maximum)}, not {text.strip()}")
    return number


def read_whole(text: str, minimum: int = 0, maximum: float = math.inf) -> int:
    """Read a whole number between `minimum` and `maximum`. Raises CellError for any other text."""
    number = read_number(text, minimum, maximum)
    if isinstance(number, float):
        raise CellError(f"must be a whole number{_limits(minimum, maximum)}, not {text.strip()}")
    return number


def read_times(text: str) -> object:
    """Read how often a call is expected: `2`, `1..3`, or `1..` for no upper limit. Raises CellError for other text."""
    low, dots, high = text.strip().partition("..")
    try:
        ends = [read_whole(low or "0"), math.inf if dots and not high.strip() else read_whole(high or low)]
    except CellError:
        raise CellError("write a number of calls: 2, 1..3 or 1..") from None
    if not 0 <= ends[0] <= ends[1] or not ends[1]:
        raise CellError("the upper end must be at least 1, and at least the lower end: write 2, 1..3 or 1..")
    return ends if dots else ends[0]


def times_text(value: object) -> str | None:
    """Write how often a call is expected, as `read_times` reads it. Return `None` for another type of value."""
    if isinstance(value, list) and len(value) == 2 and all(type(end) in (int, float) for end in value):
        low, high = value
        return f"{low}..{'' if high == math.inf else high}"
    return str(value) if type(value) is int else None


def read_switch(text: str) -> bool:
    """Read `true` or `false`. Raises CellError for other text."""
    return read_choice(text.lower(), ("true", "false")) == "true"


def read_choice(text: str, choices: Sequence[str]) -> str:
    """Read one of several words. Raises CellError for any other word."""
    text = read_text(text)
    if text not in choices:
        raise CellError(f"write {' or '.join(filter(None, [', '.join(choices[:-1]), choices[-1]]))}")
    return text


def read_duration(text: str) -> str:
    """Check a duration such as `500s`, `2h` or `250ms` and return it as a suite writes it. Raises CellError."""
    text = read_text(text)
    try:
        duration_seconds(text)
    except ValueError:
        raise CellError("write a number with ms, s, m, h or d, such as 90s") from None
    return text


def read_range(text: str) -> list[int | float]:
    """Read a range, such as `5..40`. A missing end, as in `5..` or `..40`, means no limit. Raises CellError."""
    match = _RANGE.fullmatch(text.strip())
    found = _toml(text.strip())
    ends: list[str] = []
    # A range without an end, such as `5..`, is not TOML, so the text is split first.
    if match is not None:
        ends = [match[1], match[2]]
    elif found is not None and isinstance(found[0], list):  # a range as TOML writes it
        ends = list(map(_written, found[0]))
    if len(ends) == 2:
        try:
            return [read_number(ends[0] or "-inf"), read_number(ends[1] or "inf")]
        except CellError:
            pass  # the error below is raised for everything that is not a range
    raise CellError("write two numbers as 5..40; 5.. is at least 5, ..40 at most 40")


def read_length(text: str) -> object:
    """Read a length, such as `3`, or a range of lengths, such as `1..3`. Raises CellError."""
    try:
        return read_whole(text)
    except CellError:
        low, high = read_range(text)
        return [max(low, 0), high]


def read_tolerance(text: str) -> object:
    """Read a number of at least 0, or a share such as `5%`. Raises CellError."""
    if is_percent(text.strip()):
        return text.strip()
    try:
        return read_number(text, 0)
    except CellError:
        raise CellError("write a number of at least 0, or a share such as 5%") from None


def shown_range(low: float, high: float) -> str:
    """Write a range as text. `read_range` reads the same range from it."""
    shown_low = "" if low == -math.inf else _written(low)
    shown_high = "" if high == math.inf else _written(high)
    return f"{shown_low}..{shown_high}"


def _limits(minimum: float, maximum: float) -> str:
    if math.isinf(minimum):
        if math.isinf(maximum):
            return ""
        return f" up to {setting_text(maximum)}"
    if math.isinf(maximum):
        return f" of at least {setting_text(minimum)}"
    return f" from {setting_text(minimum)} to {setting_text(maximum)}"


def _toml(text: str) -> tuple[object] | None:
    """If a text is exactly one TOML value, return a tuple with the value. Otherwise return `None`."""
    if "\n" in text:
        return None
    try:
        # The text is read as the first element of a list. The second element is a marker, which shows whether a bracket
        # or a comment in the text has ended the list.
        document = tomllib.loads(f"x = [{text}, '{_END}']")
    except (ValueError, RecursionError):
        return None
    match document:
        case {"x": [value, end]} if end == _END and len(document) == 1:
            return (value,)
    return None


def _sendable(value: object) -> object:
    match value:
        case dict():
            return {key: _sendable(inner) for key, inner in value.items()}
        case list():
            return [_sendable(inner) for inner in value]
        case None:
            raise CellError("TOML has no null: for an argument that is null, choose the check equals_null")
        case date() | time():
            raise CellError("inside a list or a table, write a date in quotes: models send text")
        case float() if not math.isfinite(value):
            raise CellError("JSON has no infinite numbers: write a number, or a text in quotes")
        case _:
            return value


def _written(value: object) -> str:
    try:
        return one_line(value)
    except ValueError:  # not a TOML value, so it does not come from a suite and is only displayed
        return str(value)


def _split(text: str) -> list[str]:
    return list(filter(None, map(str.strip, pieces_of(text))))


def pieces_of(text: str) -> Iterator[str]:
    """Split a text at commas and line ends outside of brackets and quotes.

    An apostrophe inside a word opens no quote."""
    piece, quote, depth, escaped = "", "", 0, False
    for character in text:
        if quote:
            closes = character == quote and not escaped
            escaped = character == "\\" and quote == '"' and not escaped
            if closes:
                quote = ""
        elif character in "\"'" and (depth or not piece.strip()):
            quote = character
        elif character in "[{" and (depth or not piece.strip()):
            depth += 1
        elif character in "]}" and depth:
            depth -= 1
        elif (character == "\n" or character == ",") and not depth:
            yield piece
            piece = ""
            continue
        piece += character
    yield piece
