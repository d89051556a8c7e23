"""Converts data classes to JSON and back. The type of every field is checked, because a file can hold anything."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, NoReturn, TypeAlias, Union, get_args, get_origin, get_type_hints

from workbench.limits import MAX_MILLISECONDS, MAX_TOKENS


class Most(NamedTuple):
    """Bounds a number in both directions: `Annotated[float, Most(5.0)]`."""

    size: float


Milliseconds: TypeAlias = Annotated[float, Most(MAX_MILLISECONDS)]
Tokens: TypeAlias = Annotated[int, Most(MAX_TOKENS)]

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Returns `value` as JSON, compact on one line or indented. Lone surrogates are escaped, other characters stay.

    Raises TypeError, ValueError or RecursionError for what JSON cannot express, such as NaN and infinity.
    """
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, ensure_ascii=False, separators=separators, indent=indent, allow_nan=False)
    return escape_lone_surrogates(text)


def escape_lone_surrogates(text: str) -> str:
    """Returns a JSON text with escapes such as `\\ud800` in place of lone surrogates, which UTF-8 cannot express."""
    try:
        # Next to no text has one, and encoding finds that out in a twentieth of a search's time.
        text.encode()
    except UnicodeEncodeError:
        return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return text


Reader = Callable[[Any], Any]


def stored_name(of: Field[Any]) -> str:
    """Returns the JSON key of a data class's field: the name in its metadata under `stored`, else its own name."""
    name: str = of.metadata.get("stored", of.name)
    return name


def compact_json(value: Any) -> str:
    """Returns `value`, which may hold data classes, as JSON on one line. Lone surrogates are escaped.

    Raises TypeError, ValueError or RecursionError for what JSON cannot express, such as NaN and infinity.
    """
    return escape_lone_surrogates(_ENCODER.encode(value))


def parsed_json(text: str) -> Any:
    """Returns the value of a JSON text. Raises ValueError when it is not JSON, or holds numbers that are not finite."""
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def reader_of(hint: Any) -> Reader:
    """Returns a reader that converts a JSON value to a type: a data class, a named tuple, `str`, `int`, `float`,
    `bool`, a `Literal`, a homogeneous tuple of any or of a fixed length, a mapping from names to any JSON value, any
    JSON value, or one of these or `None`. A number may be `Annotated` with `Most`.

    The reader raises ValueError when the value does not fit. Keys that a data class does not have are ignored.
    """
    return _reader_of(hint)


@cache
def _reader_of(hint: Any) -> Reader:
    origin, arguments = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        keys = {field.name: stored_name(field) for field in fields(hint)}
        return _record(hint, keys, [field.name for field in fields(hint) if _needed(field)])
    if hasattr(hint, "_field_defaults"):
        return _record(hint, {}, [name for name in hint._fields if name not in hint._field_defaults])
    if origin is Literal:
        return _one_of(arguments)
    if origin is Annotated:
        return _of_type(_TYPES[arguments[0]], arguments[1].size)
    if origin is tuple:
        return _sequence(reader_of(arguments[0]), None if arguments[-1] is Ellipsis else len(arguments))
    if origin in (Union, UnionType):
        inner = [argument for argument in arguments if argument is not NoneType]
        # A union of several types is any JSON value; no other is used.
        return _optional(reader_of(inner[0])) if len(inner) == 1 else lambda value: value
    return _of_type(_TYPES[origin or hint], _MAX_NUMBER.get(hint))


_TYPES: dict[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "a text"),
    int: ((int,), "a whole number"),
    float: ((float, int), "a number"),
    bool: ((bool,), "true or false"),
    Mapping: ((dict,), "an object"),
}
_MAX_NUMBER: dict[Any, float] = {int: 2**63 - 1, float: sys.float_info.max}
"""JSON has integers of any size: those of other programs have 64 bits, and a larger number than this is no float."""


def _of_type(wanted: tuple[tuple[type, ...], str], most: float | None = None) -> Reader:
    types, expected = wanted

    def read(value: Any) -> Any:
        if type(value) not in types:
            raise ValueError(f"must be {expected}")
        if most is not None and abs(value) > most:
            raise ValueError(f"must be {expected} of at most {most:.0e}")
        return value

    return read


def _one_of(words: tuple[Any, ...]) -> Reader:
    def read(value: Any) -> Any:
        if value not in words:
            raise ValueError(f"must be one of {', '.join(map(repr, words))}")
        return value

    return read


def _optional(inner: Reader) -> Reader:
    return lambda value: None if value is None else inner(value)


def _sequence(inner: Reader, length: int | None) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not list or length not in (None, len(value)):
            raise ValueError("must be a list" if length is None else f"must be a list of {length}")
        return tuple(map(inner, value))

    return read


def _needed(field: Field[Any]) -> bool:
    return field.default is field.default_factory is MISSING


def _record(cls: Any, keys: Mapping[str, str], needed: Sequence[str]) -> Reader:
    hints = get_type_hints(cls, include_extras=True)
    readers = [(name, keys.get(name, name), reader_of(hint)) for name, hint in hints.items()]

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise ValueError("must be an object")
        found = {}
        for name, key, inner in readers:
            if key in value:
                try:
                    found[name] = inner(value[key])
                except ValueError as error:
                    raise ValueError(f"{key}: {error}") from None
            elif name in needed:
                raise ValueError(f"{key} is missing")
        return cls(**found)

    return read


def _plain(value: object) -> dict[str, Any]:
    if is_dataclass(value):
        return {stored_name(field): getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is nothing that JSON has")


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large a number")
    return number


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain)
_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)
