"""Data classes: frozen ones made four times as fast, answers about them remembered, JSON from them and back."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, fields, is_dataclass
from enum import StrEnum
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NoReturn,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from workbench.limits import MAX_MILLISECONDS, MAX_TOKENS
from workbench.startup import late_pattern

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **options):
        """Make a data class, as `dataclasses.dataclass` does."""
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        if not options.get("frozen") or not options.keys() <= _OPTIONS:
            return dataclasses.dataclass(cls, **options)
        return _frozen(cls, options)


_OPTIONS = {"frozen", "slots", "kw_only", "weakref_slot"}


def _frozen(cls: type, options: dict[str, bool]) -> Any:
    own = vars(cls)
    methods = {}
    for name, method in _METHODS.items():
        if name not in own:
            methods[name] = method
    if own.get("__hash__") is None:  # as Python sets it where a class defines `__eq__`
        methods["__hash__"] = _hash
    if options.get("slots"):
        methods |= {name: method for name, method in _STATE.items() if name not in own}
    if not cls.__doc__:  # else the standard library writes a signature, with a tokenizer
        cls.__doc__ = cls.__name__
    made: Any = dataclasses.dataclass(cls, init=False, repr=False, eq=False, **{**options, "frozen": False})
    made.__init__ = _Init(made)
    compared = []
    for field in fields(made):
        if field.compare:
            compared.append(field.name)
    made.__compared__ = staticmethod(_values_of(compared))
    for name, method in methods.items():
        setattr(made, name, method)
    return made


class _Init:
    """A stand-in for `__init__` until that is first looked up: a command never creates most classes that it imports."""

    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def __get__(self, instance: object, owner: type) -> Any:
        self._cls.__init__ = init = _init_of(self._cls)
        return init.__get__(instance, owner)


def _init_of(cls: type) -> Any:
    """Return the method `__init__`, compiled.

    It takes the fields, in their order, those of `kw_only` at the end."""
    names: dict[str, object] = {"__assign__": object.__setattr__, "__missing__": MISSING}
    positional: list[str] = []
    named: list[str] = []
    lines: list[str] = []
    for field in fields(cls):
        given = field.name
        if field.default is not MISSING:
            names[f"__default_{field.name}"] = field.default
            given = f"{field.name}=__default_{field.name}"
        elif field.default_factory is not MISSING:
            names[f"__default_{field.name}"] = field.default_factory
            given = f"{field.name}=__missing__"
            lines.append(f"if {field.name} is __missing__: {field.name} = __default_{field.name}()")
        (named if field.kw_only else positional).append(given)
        slot = getattr(cls, field.name, None)
        if isinstance(slot, MemberDescriptorType):  # takes half the time of finding it by its name
            names[f"__set_{field.name}"] = slot.__set__
            lines.append(f"__set_{field.name}(self, {field.name})")
        else:
            lines.append(f"__assign__(self, {field.name!r}, {field.name})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(["self", *positional, *(["*", *named] if named else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"]), names)
    init: Any = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {**{field.name: field.type for field in fields(cls)}, "return": None}
    return init


def _values_of(names: list[str]) -> Callable[[object], object]:
    """Return a function that gives the values of these fields, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _eq(self: Any, other: Any) -> bool:
    return self.__compared__(self) == self.__compared__(other) if type(self) is type(other) else NotImplemented


def _hash(self: Any) -> int:
    return hash(self.__compared__(self))


def _setattr(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in fields(self)]


def _setstate(self: Any, state: list[object]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_METHODS: dict[str, Callable[..., object]] = {
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _setattr,
    "__delattr__": _delattr,
}
_STATE: dict[str, Callable[..., object]] = {"__getstate__": _getstate, "__setstate__": _setstate}
"""For `copy` and `pickle`: without a `__dict__`, these would assign to fields."""


# Caches answers about frozen objects by identity.

_Subject = TypeVar("_Subject")
_Answer = TypeVar("_Answer")

MAX_KNOWN = 2048
"""How many answers one function remembers. More subjects than that are those of a batch, whose runs are not looked at
again."""


class ByIdentity(Generic[_Subject, _Answer]):
    """A function that remembers its answer for each object, which must never change, as long as the object lives.

    With too many objects it forgets all and begins anew. Objects are compared by identity, because comparing or hashing
    a document takes longer than answering. The cache keeps no object alive, so an answer must not hold its own subject.
    """

    def __init__(self, answer: Callable[[_Subject], _Answer]) -> None:
        self._answer = answer
        self._known: dict[int, tuple[weakref.ref[_Subject], _Answer]] = {}

    def __call__(self, subject: _Subject) -> _Answer:
        identity = id(subject)
        try:
            return self._known[identity][1]
        except KeyError:
            pass
        answer = self._answer(subject)
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        # Drops the answer before another object can get the id of its subject.
        self._known[identity] = (weakref.ref(subject, lambda _: self._known.pop(identity, None)), answer)
        return answer


# Converts data classes to JSON and back. The type of every field is checked, because a file can hold anything.


class Most(NamedTuple):
    """Bounds a number in both directions: `Annotated[float, Most(5.0)]`."""

    size: float


Milliseconds: TypeAlias = Annotated[float, Most(MAX_MILLISECONDS)]
Tokens: TypeAlias = Annotated[int, Most(MAX_TOKENS)]

_LONE_SURROGATE = late_pattern("[\ud800-\udfff]")


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return `value` as JSON, compact on one line or indented.

    Lone surrogates are escaped, other characters stay.

    Raises TypeError, ValueError or RecursionError for a value that JSON cannot express, such as NaN and infinity."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, ensure_ascii=False, separators=separators, indent=indent, allow_nan=False)
    return escape_lone_surrogates(text)


def escape_lone_surrogates(text: str) -> str:
    """Return a JSON text with escapes such as `\\ud800` in place of lone surrogates, which UTF-8 cannot express."""
    try:
        # Next to no text has one, and encoding finds that out in a twentieth of a search's time.
        text.encode()
    except UnicodeEncodeError:
        return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return text


Reader = Callable[[Any], Any]


def stored_name(of: Field[Any]) -> str:
    """Return the JSON key of a data class's field: the name in its metadata under `stored`, else its own name."""
    name: str = of.metadata.get("stored", of.name)
    return name


def compact_json(value: Any) -> str:
    """Return `value`, which may hold data classes, as JSON on one line.

    Lone surrogates are escaped.

    Raises TypeError, ValueError or RecursionError for a value that JSON cannot express, such as NaN and infinity."""
    return escape_lone_surrogates(_ENCODER.encode(value))


def parsed_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises ValueError when it is not JSON, or holds numbers that are not finite."""
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def reader_of(hint: Any) -> Reader:
    """Return a reader that converts a JSON value to a type.

    The type is a data class, a named tuple, `str`, `int`, `float`, `bool`, a `Literal` or an enumeration of texts, a
    homogeneous tuple of any or of a fixed length, a mapping from names to any JSON value, any JSON value, or one of
    these or `None`. A number may be `Annotated` with `Most`.

    The reader raises ValueError if the value does not fit. Keys that a data class does not have are ignored."""
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
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _one_of(hint)
    if origin is Annotated:
        return _of_type(_TYPES[arguments[0]], arguments[1].size)
    if origin is tuple:
        return _sequence(reader_of(arguments[0]), None if arguments[-1] is Ellipsis else len(arguments))
    if origin in (Union, UnionType):
        inner = []
        for argument in arguments:
            if argument is not NoneType:
                inner.append(argument)
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


def _one_of(words: Iterable[str]) -> Reader:
    known = {str.__str__(word): word for word in words}

    def read(value: Any) -> Any:
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"must be one of {', '.join(map(repr, known))}")
        return known[value]

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
    readers = []
    for name, hint in hints.items():
        readers.append((name, keys.get(name, name), reader_of(hint)))

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
