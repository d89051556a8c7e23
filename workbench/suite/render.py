"""Suites written as TOML the way a person would: short values on one line, expected calls as blocks.

tomli-w expands every list and makes sections of tables, and tomlkit has no layout; here both depend on the place. So
the layout is below, and the values are written by the standard library: texts as JSON, which TOML reads the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, time
from typing import TypeGuard

from pydantic import BaseModel

from workbench.checks.check import CheckBase
from workbench.checks.value_kinds import Equals
from workbench.suite.shape import ARRAYS_OF_TABLES, TABLES

Table = dict[str, object]
Keys = tuple[str, ...]
"""Keys from the top of the file, without indices: the kind of element there."""

_WIDEST_LINE = 100
_AS_IT_IS = frozenset('"\n\t')
"""Characters that need no escape between triple quotes."""
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_IN_BRACKETS = frozenset({("cases", "ordered", "any_order"), ("cases", "messages", "tool_calls")})
"""Arrays of tables that read better with one line for each element than as blocks."""
_UNDER_HEADERS = frozenset(
    (*owner, "tools", *keys) for owner in ((), ("cases",)) for keys in (("parameters",), ("parameters", "properties"))
)
"""Tables that have a header however short they are, in addition to those at the top of the file."""


def suite_text(document: Mapping[str, object]) -> str:
    """Return a whole suite as text, ending with a line end.

    Raises ValueError for a value that TOML cannot express, such as null."""
    return "\n".join(_table_lines((), document)).lstrip("\n") + "\n"


def block_text(keys: Keys, table: Mapping[str, object], *, of_array: bool) -> str:
    """Return a table under its header, `[keys]` or `[[keys]]`, with everything below it, without a final line end.

    Raises ValueError as `suite_text` does."""
    return "\n".join([header(keys, of_array=of_array), *_table_lines(keys, table)])


def header(keys: Keys, *, of_array: bool) -> str:
    """Return the line that opens a table."""
    name = ".".join(map(key_text, keys))
    return f"[[{name}]]" if of_array else f"[{name}]"


def pair_text(keys: Keys, value: object) -> str:
    """Return one key, the last of `keys`, with its value, over several lines where that reads better."""
    return f"{key_text(keys[-1])} = {value_text(keys, value)}"


def value_text(keys: Keys, value: object) -> str:
    """Return the text behind the equals sign of a pair."""
    if isinstance(value, str) and "\n" in value:
        return _long_text(value)
    if isinstance(value, list | tuple) and value:
        in_lines = keys in _IN_BRACKETS and len(value) > 1
        if in_lines or not fits_one_line(keys, value):
            return "[\n" + "".join(f"  {one_line(element)},\n" for element in value) + "]"
    return one_line(value)


def one_line(value: object) -> str:
    """Return a value on one line, tables in braces.

    Raises ValueError for a value that TOML lacks."""
    match value:
        case bool():
            return "true" if value else "false"
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
            return f"{{ {pairs} }}" if pairs else "{}"
        case None:
            raise ValueError("TOML has no null: for an argument that is null, write { equals_null = true }")
        case _:
            raise ValueError(f"TOML has no value of the type {type(value).__name__}")


def key_text(key: str) -> str:
    """Return a key, in quotes where it needs them."""
    return key if _BARE_KEY.fullmatch(key) else f'"{_escaped(key)}"'


def stands_under_header(keys: Keys, value: object) -> bool:
    """Return whether a value is written as one or more tables with headers of their own rather than behind its key."""
    if isinstance(value, list):
        return keys in ARRAYS_OF_TABLES - _IN_BRACKETS and is_list_of_tables(value)
    if not isinstance(value, dict) or not value:
        return False
    return len(keys) == 1 or keys[0] == "grading" or keys in _UNDER_HEADERS or not fits_one_line(keys, value)


def fits_one_line(keys: Keys, value: object) -> bool:
    """Return whether a pair reads well on one line."""
    return not _has_line_break(value) and len(key_text(keys[-1])) + 3 + len(one_line(value)) <= _WIDEST_LINE


def is_list_of_tables(value: object) -> TypeGuard[list[Table]]:
    """Return whether a value can be written as blocks `[[…]]`."""
    return isinstance(value, list) and bool(value) and all(isinstance(element, dict) for element in value)


def elements_of(value: object) -> list[Table]:
    """Return the tables of a value under headers: those of a list, or itself."""
    if is_list_of_tables(value):
        return value
    return [value] if isinstance(value, dict) else []


def stands_apart(keys: Keys) -> bool:
    """Return whether a blank line precedes a header.

    None separates an expected call, or a tool, from the tables inside it."""
    inside = (keys[:length] for length in range(1, len(keys)))
    return not any(outer in ARRAYS_OF_TABLES and outer != ("cases",) for outer in inside) or keys in ARRAYS_OF_TABLES


def rank(keys: Keys) -> int:
    """Return the rank of the last of `keys` among the keys of its table; unknown keys are last."""
    known = TABLES.get(keys[:-1])
    if known is None:
        return 0
    names = list(known[1].model_fields)
    return names.index(keys[-1]) if keys[-1] in names else len(names)


def _table_lines(keys: Keys, table: Mapping[str, object]) -> Iterator[str]:
    ordered = sorted(table, key=lambda key: rank((*keys, key)))
    below = [key for key in ordered if stands_under_header((*keys, key), table[key])]
    for key in ordered:
        if key not in below:
            yield pair_text((*keys, key), table[key])
    for key in below:
        inner, value = (*keys, key), table[key]
        for element in elements_of(value):
            if stands_apart(inner):
                yield ""
            yield block_text(inner, element, of_array=isinstance(value, list))


def _has_line_break(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_line_break, value.values()))
    return isinstance(value, str) and "\n" in value


def _short_text(text: str) -> str:
    if ('"' in text or "\\" in text) and "'" not in text and text.isprintable():
        return f"'{text}'"
    return f'"{_escaped(text)}"'


def _long_text(text: str) -> str:
    lines = text.split("\n")
    if "\\" in text and "'''" not in text and not text.endswith("'") and all(map(str.isprintable, lines)):
        return f"'''\n{text}'''"
    parts = re.split(r'(["\n\t])', text)
    inner = "".join(part if part in _AS_IT_IS else _escaped(part) for part in parts)
    inner = inner.replace('"""', '""\\"')
    if (len(text) - len(text.rstrip('"'))) % 3:
        inner = inner[:-1] + '\\"'
    return f'"""\n{inner}"""'


def _escaped(text: str) -> str:
    """Return a text as it stands between double quotes.

    The escapes of JSON are escapes of TOML; invisible characters are escaped too, so that a review shows them."""
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
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


# Converts the frozen models back to plain data as a person writes it: no defaults filled in, checks in their short
# form. A model does not remember everything: whether an id was written or derived from the name (it is written),
# whether a float was written as an integer (`5` for `5.0`), and that a schema was JSON text (only one with null
# needs to be).

_ANY_JSON = frozenset({"equals", "one_of", "equals_text", "result", "results", "mock_result"})
"""Fields whose numbers are the author's own: there 5 and 5.0 are two values."""


def to_toml_data(model: BaseModel) -> Table:
    """Return a suite, a case or any part of one as plain data; loading it gives an equal model.

    Raises ValueError for a null inside a value, which TOML lacks."""
    names = list(type(model).model_fields)
    if isinstance(model, CheckBase):
        names.sort(key=lambda name: name != model.kind)
    data: Table = {}
    for name in names:
        value = getattr(model, name)
        if name not in model.model_fields_set or name == "plain" or (value is None and name != "equals"):
            continue
        if name == "parameters" and _holds_null(value):
            data[name] = json.dumps(value, ensure_ascii=False)
        else:
            data[name] = _plain(value if name in _ANY_JSON else _short(value))
    return data


def _plain(value: object) -> object:
    match value:
        case Equals(plain=True):
            return _plain(value.equals)
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
    """Return numbers of the format without `.0`, as people write them."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if isinstance(value, tuple):
        return tuple(map(_short, value))
    return value


def _holds_null(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_null, value.values()))
    if isinstance(value, list):
        return any(map(_holds_null, value))
    return value is None
