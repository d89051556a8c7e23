"""Writes suites as TOML in the layout of hand-written suites: short values on one line, expected calls as blocks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, time
from typing import TypeGuard

from pydantic import BaseModel

from workbench.checks.check import CheckBase
from workbench.checks.structure_kinds import HasFields
from workbench.checks.value_kinds import Equals
from workbench.suite.shape import ARRAYS_OF_TABLES, TABLES

# Libraries for TOML cannot produce this layout. tomli-w puts every element of a list on its own line and every table
# under a header. tomlkit leaves the layout to its caller. So this module derives the layout from the place of a value
# in the suite. Texts are written as JSON, whose escapes mean the same in TOML.

Table = dict[str, object]
Keys = tuple[str, ...]
"""Keys from the top of the file without indices. They are the same for all elements of an array."""

_WIDEST_LINE = 100
_AS_IT_IS = frozenset('"\n\t')
"""Characters that need no escape between triple quotes."""
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_IN_BRACKETS = frozenset(
    {
        ("cases", "messages", "tool_calls"),
        ("cases", "final", "changes"),
        *[keys for keys in ARRAYS_OF_TABLES if keys[-1] in ("any_order", "any_of")],
    }
)
"""Arrays of tables that are written in brackets with one line for each element, and not as blocks."""
_UNDER_HEADERS = frozenset(
    {
        ("tools", "parameters"),
        ("tools", "parameters", "properties"),
        ("cases", "tools", "parameters"),
        ("cases", "tools", "parameters", "properties"),
        ("cases", "user"),
        ("cases", "user", "facts"),
        ("cases", "final"),
    }
)
"""Tables that always have a header. The tables at the top of the file have a header too."""


def suite_text(document: Mapping[str, object]) -> str:
    """Return a suite as TOML that ends with a line end.

    Raises ValueError for a value that TOML lacks, such as null."""
    return "\n".join(_table_lines((), document)).lstrip("\n") + "\n"


def block_text(keys: Keys, table: Mapping[str, object], *, of_array: bool) -> str:
    """Return a table and all tables below it under its header, `[keys]` or `[[keys]]`, without a final line end.

    Raises ValueError for a value that TOML lacks."""
    lines = list(_table_lines(keys, table))
    # A table that has only tables needs no header of its own.
    if lines[:1] == [""] and not of_array:
        return "\n".join(lines[1:])
    return "\n".join([header(keys, of_array=of_array), *lines])


def header(keys: Keys, *, of_array: bool) -> str:
    """Return the header of a table, `[keys]` or `[[keys]]`."""
    name = ".".join(map(key_text, keys))
    if of_array:
        return f"[[{name}]]"
    return f"[{name}]"


def pair_text(keys: Keys, value: object) -> str:
    """Return the last of `keys` with its value: `key = value`. A long value takes several lines."""
    return f"{key_text(keys[-1])} = {value_text(keys, value)}"


def value_text(keys: Keys, value: object) -> str:
    """Return a value as TOML for the place after the equals sign. A long value takes several lines."""
    if isinstance(value, str) and "\n" in value:
        return _long_text(value)
    if isinstance(value, list | tuple) and value:
        in_lines = keys in _IN_BRACKETS and len(value) > 1
        if in_lines or not fits_one_line(keys, value):
            elements = "".join(f"  {one_line(element)},\n" for element in value)
            return f"[\n{elements}]"
    return one_line(value)


def one_line(value: object) -> str:
    """Return a value on one line, with tables in braces.

    Raises ValueError for a value that TOML lacks."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return _short_text(value)
        case int() | float():
            return repr(value)
        case date() | time():
            return value.isoformat()
        case list() | tuple():
            return f"[{', '.join(map(one_line, value))}]"
        case dict():
            pairs = ", ".join(f"{key_text(key)} = {one_line(inner)}" for key, inner in value.items())
            if pairs:
                return f"{{ {pairs} }}"
            return "{}"
        case None:
            raise ValueError("TOML has no null: for an argument that is null, write { equals_null = true }")
        case _:
            raise ValueError(f"TOML has no value of the type {type(value).__name__}")


def key_text(key: str) -> str:
    if _BARE_KEY.fullmatch(key):
        return key
    return f'"{_escaped(key)}"'


def is_under_header(keys: Keys, value: object) -> bool:
    """Return whether a value is written as tables with headers, in place of `key = value`."""
    if isinstance(value, list):
        return keys in ARRAYS_OF_TABLES - _IN_BRACKETS and is_list_of_tables(value)
    if not isinstance(value, dict) or not value:
        return False
    return len(keys) == 1 or keys[0] == "grading" or keys in _UNDER_HEADERS or not fits_one_line(keys, value)


def fits_one_line(keys: Keys, value: object) -> bool:
    """Return whether a key and its value fit on one line of 100 characters."""
    return not _has_line_break(value) and len(key_text(keys[-1])) + 3 + len(one_line(value)) <= _WIDEST_LINE


def is_list_of_tables(value: object) -> TypeGuard[list[Table]]:
    return isinstance(value, list) and bool(value) and all(isinstance(element, dict) for element in value)


def elements_of(value: object) -> list[Table]:
    """Return the tables of a value: the elements of a list of tables, or the value itself if it is a table."""
    if is_list_of_tables(value):
        return value
    if isinstance(value, dict):
        return [value]
    return []


def has_blank_line_before(keys: Keys) -> bool:
    """Return whether a blank line precedes a header."""
    # No blank line separates an expected call or a tool from the tables inside it.
    inside = (keys[:length] for length in range(1, len(keys)))
    return not any(outer in ARRAYS_OF_TABLES and outer != ("cases",) for outer in inside) or keys in ARRAYS_OF_TABLES


def field_rank(keys: Keys) -> int:
    """Return the position at which a table's key is written: the position of its field in the model.

    The key is the last of `keys`. Unknown keys are last."""
    known = TABLES.get(keys[:-1])
    if known is None:
        return 0
    names = list(known[1].model_fields)
    if keys[-1] in names:
        return names.index(keys[-1])
    return len(names)


def _table_lines(keys: Keys, table: Mapping[str, object]) -> Iterator[str]:
    ordered = sorted(table, key=lambda key: field_rank((*keys, key)))
    below = [key for key in ordered if is_under_header((*keys, key), table[key])]
    for key in ordered:
        if key not in below:
            yield pair_text((*keys, key), table[key])
    for key in below:
        inner, value = (*keys, key), table[key]
        for element in elements_of(value):
            if has_blank_line_before(inner):
                yield ""
            yield block_text(inner, element, of_array=isinstance(value, list))


def _has_line_break(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_line_break, value.values()))
    return isinstance(value, str) and "\n" in value


def _short_text(text: str) -> str:
    # Between apostrophes nothing needs an escape, which makes patterns and JSON easier to read.
    if ('"' in text or "\\" in text) and "'" not in text and text.isprintable():
        return f"'{text}'"
    return f'"{_escaped(text)}"'


def _long_text(text: str) -> str:
    lines = text.split("\n")
    if "\\" in text and "'''" not in text and not text.endswith("'") and all(map(str.isprintable, lines)):
        return f"'''\n{text}'''"
    inner = ""
    for part in re.split(r'(["\n\t])', text):
        inner += part if part in _AS_IT_IS else _escaped(part)
    inner = inner.replace('"""', '""\\"')
    # A quotation mark at the end would merge with the closing marks.
    if (len(text) - len(text.rstrip('"'))) % 3:
        inner = inner[:-1] + '\\"'
    return f'"""\n{inner}"""'


def _escaped(text: str) -> str:
    # JSON's escapes are also valid in TOML. Invisible characters are escaped, so that a review shows them.
    escaped = json.dumps(text, ensure_ascii=False)[1:-1]
    if escaped.isprintable():
        return escaped
    return "".join(map(_visible_character, escaped))


def _visible_character(character: str) -> str:
    if character.isprintable():
        return character
    number = ord(character)
    if 0xD800 <= number <= 0xDFFF:
        raise ValueError("a text contains half of a character (a lone surrogate), which UTF-8 cannot encode")
    if number <= 0xFFFF:
        return f"\\u{number:04x}"
    return f"\\U{number:08x}"


# Models are converted to the data that a person writes, without defaults and with checks in their short form. A model
# has lost some of the original text. An id derived from the name is written, and `5.0` becomes `5`. A schema becomes
# JSON text only if it has a null.

_ANY_JSON = frozenset({"equals", "one_of", "equals_text", "result", "results", "mock_result"})
"""Fields that hold any values of the author. In these fields, 5 and 5.0 differ."""


def to_toml_data(model: BaseModel) -> Table:
    """Return a suite, a case or another part of a suite as plain data. Loading the data gives an equal model.

    Raises ValueError if a value contains a null, which TOML lacks."""
    names = list(type(model).model_fields)
    # The kind of a check comes before its options.
    if isinstance(model, CheckBase):
        names.sort(key=lambda name: name != model.kind)
    data: Table = {}
    for name in names:
        value = getattr(model, name)
        if name not in model.model_fields_set or name == "plain" or (value is None and name != "equals"):
            continue
        if name == "parameters" and holds_null(value):
            data[name] = json.dumps(value, ensure_ascii=False)
        elif name in _ANY_JSON:
            data[name] = _plain(value)
        else:
            data[name] = _plain(_short(value))
    return data


def _plain(value: object) -> object:
    match value:
        case Equals(plain=True) | HasFields(plain=True):
            return _plain(value.expected)
        case BaseModel():
            return to_toml_data(value)
        case dict():
            return {key: _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case None:
            raise ValueError("TOML has no null: for an argument that is null, write { equals_null = true }")
        case _:
            return value


def _short(value: object) -> object:
    """Return a whole float as an integer, as people write it: 5 instead of 5.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if isinstance(value, tuple):
        return tuple(map(_short, value))
    return value


def holds_null(value: object) -> bool:
    """Return whether a value has a null at any depth. TOML cannot express such a value."""
    if isinstance(value, dict):
        return any(map(holds_null, value.values()))
    if isinstance(value, list):
        return any(map(holds_null, value))
    return value is None
