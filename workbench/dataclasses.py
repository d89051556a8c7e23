"""A decorator that makes data classes four times as fast as `dataclasses`, and conversion from and to JSON."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, fields, is_dataclass
from enum import StrEnum
from functools import cache, cached_property, partial
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
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
        """Make a data class, as `dataclasses.dataclass` does. `InitVar` is not supported."""
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        if not options.keys() <= _OPTIONS:
            return _standard(cls, **options)
        return _quick(cls, options)


# The original is kept, because `workbench.startup` replaces `dataclasses.dataclass` while other packages are imported.
_standard: Any = dataclasses.dataclass
_OPTIONS = {"eq", "frozen", "slots", "kw_only", "weakref_slot"}


def _quick(cls: type, options: dict[str, bool]) -> Any:
    # The standard library generates and compiles each method of each class. Here, all classes share most methods, and
    # only `__init__` is compiled, when it is first used.
    own = vars(cls)
    frozen, compares = options.get("frozen", False), options.get("eq", True)
    methods = dict(_METHODS)
    if compares:
        methods["__eq__"] = _eq
    if frozen:
        methods |= _FROZEN
        if options.get("slots"):
            methods |= _STATE
    methods = {name: method for name, method in methods.items() if name not in own}
    # Python sets `__hash__` to `None` in a class that defines `__eq__`.
    if compares and own.get("__hash__") is None:
        methods["__hash__"] = _hash if frozen else None
    has_init = "__init__" in own
    # Without a docstring, the standard library would generate one from the signature with a slow tokenizer.
    if not cls.__doc__:
        cls.__doc__ = cls.__name__
    made: Any = _standard(cls, init=False, repr=False, **{**options, "eq": False, "frozen": False})
    if not has_init:
        made.__init__ = _Init(made)
    compared = [field.name for field in fields(made) if field.compare]
    made.__compared__ = staticmethod(_values_of(compared))
    for name, method in methods.items():
        setattr(made, name, method)
    return made


class _Init:
    """A placeholder for `__init__`, which compiles the method on its first use."""

    # A command imports many classes of which it creates no object, so compiling their methods would waste time.

    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def __get__(self, instance: object, owner: type) -> Any:
        self._cls.__init__ = init = _init_of(self._cls)
        return init.__get__(instance, owner)


def _init_of(cls: Any) -> Any:
    """Compile the method `__init__` of a data class. Its keyword-only parameters come last."""
    names: dict[str, object] = {"__assign__": object.__setattr__, "__missing__": MISSING}
    positional: list[str] = []
    named: list[str] = []
    lines: list[str] = []
    is_frozen = cls.__setattr__ is _setattr
    for field in fields(cls):
        given = value = field.name
        default = f"__default_{field.name}"
        if field.default is not MISSING:
            names[default] = field.default
            given += f"={default}"
        elif field.default_factory is not MISSING:
            names[default] = field.default_factory
            given += "=__missing__"
            default += "()"
        if not field.init:
            if given == field.name:
                continue
            value = default
        else:
            if given.endswith("=__missing__"):
                lines.append(f"if {field.name} is __missing__: {field.name} = {default}")
            parameters = named if field.kw_only else positional
            parameters.append(given)
        slot = getattr(cls, field.name, None)
        # Setting a slot by its descriptor takes half the time of setting it by name.
        if not is_frozen:
            lines.append(f"self.{field.name} = {value}")
        elif isinstance(slot, MemberDescriptorType):
            names[f"__set_{field.name}"] = slot.__set__
            lines.append(f"__set_{field.name}(self, {value})")
        else:
            lines.append(f"__assign__(self, {field.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    if named:
        named.insert(0, "*")
    signature = ", ".join(["self", *positional, *named])
    exec(f"def __init__({signature}):\n " + "\n ".join(lines or ["pass"]), names)
    init: Any = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {**{field.name: field.type for field in fields(cls)}, "return": None}
    return init


def _values_of(names: list[str]) -> Callable[[object], object]:
    # `attrgetter` is the fastest way, but for a single name it returns no tuple.
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _eq(self: Any, other: Any) -> Any:
    if type(self) is not type(other):
        return NotImplemented
    return self.__compared__(self) == self.__compared__(other)


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


_METHODS: dict[str, Callable[..., object] | None] = {"__repr__": _repr}
_FROZEN: dict[str, Callable[..., object]] = {"__setattr__": _setattr, "__delattr__": _delattr}
_STATE: dict[str, Callable[..., object]] = {"__getstate__": _getstate, "__setstate__": _setstate}
"""Methods for `copy` and `pickle` that assign to the fields of objects without a `__dict__`."""


_Subject = TypeVar("_Subject")
_Answer = TypeVar("_Answer")

MAX_CACHED = 2048
"""The most answers that `cached_by_identity` keeps. A larger cache would be useless, because a large batch reads each
of its runs only once."""


def cached_by_identity(answer: Callable[[_Subject], _Answer]) -> Callable[[_Subject], _Answer]:
    """Return a function that caches the result of `answer` for each argument for as long as the argument exists.

    An argument must never change. Arguments are distinguished by identity, because comparing or hashing a document
    takes longer than calling the function. The cache does not keep an argument alive, so a result must not refer to its
    argument."""
    known: dict[int, tuple[weakref.ref[_Subject], _Answer]] = {}

    # A run asks a hundred times. Calling an object with `__call__` would take half as long again.
    def cached(subject: _Subject) -> _Answer:
        identity = id(subject)
        found = known.get(identity)
        if found is not None:
            return found[1]
        answered = answer(subject)
        if len(known) >= MAX_CACHED:
            known.clear()
        # The callback removes the entry before another object can get the same id. It is called with the reference,
        # which `pop` takes as its default.
        known[identity] = (weakref.ref(subject, partial(known.pop, identity)), answered)
        return answered

    return cached


if TYPE_CHECKING:
    kept_property = cached_property
else:

    class kept_property(cached_property):  # noqa: N801 (named like the decorators of Python)
        """A property that an immutable object computes once. Unlike `cached_property`, it takes no slow lock."""

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            # From now on, Python finds the value in the `__dict__` without this method.
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


# Reading JSON. A file may contain anything, so the type of every field is checked.


class MaxSize(NamedTuple):
    """The largest absolute value of a number: `Annotated[float, MaxSize(5.0)]` allows -5.0 to 5.0."""

    size: float


Milliseconds: TypeAlias = Annotated[float, MaxSize(MAX_MILLISECONDS)]
Tokens: TypeAlias = Annotated[int, MaxSize(MAX_TOKENS)]

_LONE_SURROGATE = late_pattern("[\ud800-\udfff]")


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON, compact on one line or with an `indent`.

    Lone surrogates are escaped, but other characters are not. Raises TypeError, ValueError or RecursionError for a
    value that JSON cannot express, such as NaN."""
    if indent is None:
        return escape_lone_surrogates(_encoded_json(value))
    return escape_lone_surrogates(json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False))


def escape_lone_surrogates(text: str) -> str:
    """Escape lone surrogates in a JSON text (`\\ud800`), because UTF-8 cannot express them."""
    # Few texts have a lone surrogate. Encoding a text shows that in a twentieth of the time that a search takes. Most
    # texts are Latin-1, which is encoded by a plain copy.
    for encoding in ("latin-1", "utf-8"):
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            continue
        return text
    return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


Reader = Callable[[Any], Any]


def stored_name(field: Field[Any]) -> str:
    """Return the JSON key of a field: `stored` in the field's metadata, or else its name."""
    name: str = field.metadata.get("stored", field.name)
    return name


def compact_json(value: Any) -> str:
    """Return a value, which may contain data classes, as JSON on one line. Lone surrogates are escaped.

    Raises TypeError, ValueError or RecursionError for a value that JSON cannot express, such as NaN."""
    return escape_lone_surrogates(_encoded(value))


def parsed_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises ValueError for invalid JSON, for too deep nesting, and for infinite numbers and NaN."""
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def reader_of(hint: Any) -> Reader:
    """Return a function that converts a JSON value to a type.

    The type is a data class, a named tuple, `str`, `int`, `float`, `bool`, or a `Literal` or an enumeration of texts.
    It may also be a homogeneous tuple of any or of a fixed length, a mapping from names to JSON values, or any JSON
    value. A union of such a type with `None` is possible too. A number may be `Annotated` with `MaxSize`.

    The function raises ValueError if the value does not fit. Keys that a data class lacks are ignored."""
    return _reader_of(hint)


@cache
def _reader_of(hint: Any) -> Reader:
    origin, arguments = get_origin(hint), get_args(hint)
    if is_dataclass(hint) or hasattr(hint, "_field_defaults"):
        return _record(hint)
    if origin is Literal:
        return _one_of(arguments)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _one_of(hint)
    if origin is Annotated:
        return _of_type(_TYPES[arguments[0]], arguments[1].size)
    if origin is tuple:
        length = None
        if arguments[-1] is not Ellipsis:
            length = len(arguments)
        return _sequence(reader_of(arguments[0]), length)
    if origin in (Union, UnionType):
        inner = [argument for argument in arguments if argument is not NoneType]
        if len(inner) == 1:
            return _optional(reader_of(inner[0]))
        # JsonValue is the only union of several types in use.
        return lambda value: value
    return _of_type(_TYPES[origin or hint], _MAX_NUMBER.get(hint))


_TYPES: dict[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "a text"),
    int: ((int,), "a whole number"),
    float: ((float, int), "a number"),
    bool: ((bool,), "true or false"),
    Mapping: ((dict,), "an object"),
}
_MAX_NUMBER: dict[Any, float] = {int: 2**63 - 1, float: sys.float_info.max}
"""The largest numbers that a reader accepts. SQLite and other programs store integers of 64 bits."""


def _of_type(kind: tuple[tuple[type, ...], str], maximum: float | None = None) -> Reader:
    types, expected = kind

    def read(value: Any) -> Any:
        if type(value) not in types:
            raise ValueError(f"must be {expected}")
        if maximum is not None and abs(value) > maximum:
            raise ValueError(f"must be {expected} of at most {maximum:.0e}")
        return value

    return read


def _one_of(texts: Iterable[str]) -> Reader:
    # `str(status)` would be its word in reports, so `str.__str__` is used to get the plain value.
    known = {str.__str__(word): word for word in texts}

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
            expected = "a list"
            if length is not None:
                expected = f"a list of {length}"
            raise ValueError(f"must be {expected}")
        return tuple(map(inner, value))

    return read


def _record(cls: Any) -> Reader:
    """Compile a function that reads a data class or a named tuple. A loop over the fields would take 50% longer."""
    names: dict[str, Any] = {"make": cls, "absent": MISSING}
    lines = ["if type(source) is not dict: raise ValueError('must be an object')", "try:"]
    made = []
    hints = get_type_hints(cls, include_extras=True)
    for at, (name, key, default) in enumerate(_fields_of(cls)):
        names[f"read_{at}"] = reader_of(hints[name])
        # The compiled condition accepts most values as they are. A reader is called only for the others.
        reading = [f"  if not ({_unchanged_condition(hints[name], f'value_{at}')}):", f"   key = {key!r}"]
        reading.append(f"   value_{at} = read_{at}(value_{at})")
        if default is None:
            lines += [f" value_{at} = source[{key!r}]", " if True:", *reading]
        else:
            names[f"default_{at}"] = default
            lines += [f" value_{at} = source.get({key!r}, absent)", f" if value_{at} is absent:"]
            lines += [f"  value_{at} = default_{at}()", " else:", *reading]
        made.append(f"{name}=value_{at}")
    lines.append("except KeyError as error: raise ValueError(f'{error.args[0]} is missing') from None")
    lines.append("except ValueError as error: raise ValueError(f'{key}: {error}') from None")
    lines.append(f"return make({', '.join(made)})")
    exec("def read(source):\n " + "\n ".join(lines), names)
    read: Reader = names["read"]
    return read


def _fields_of(cls: Any) -> Iterator[tuple[str, str, Callable[[], object] | None]]:
    """Yield the name, the JSON key and a function for the default of each field.

    For a required field, the third value is `None`."""
    if is_dataclass(cls):
        for field in fields(cls):
            default: Any = field.default_factory
            if field.default is not MISSING:
                default = partial(_identity, field.default)
            yield field.name, stored_name(field), None if default is MISSING else default
    else:
        for name in cls._fields:
            default = None
            if name in cls._field_defaults:
                default = partial(_identity, cls._field_defaults[name])
            yield name, name, default


def _identity(value: object) -> object:
    return value


def _unchanged_condition(hint: Any, value: str) -> str:
    """Return Python code for a condition on the variable `value`.

    If the condition is true, the reader of `hint` would return the value unchanged, so the reader need not be called.
    If there is no simple condition of this kind, the code is `False`."""
    origin, arguments = get_origin(hint), get_args(hint)
    most = _MAX_NUMBER.get(hint, 0)
    if origin is Annotated:
        hint, most = arguments[0], arguments[1].size
    if hint in (int, float):
        return f"type({value}) is {hint.__name__} and {-most!r} <= {value} <= {most!r}"
    if hint in (str, bool):
        return f"type({value}) is {hint.__name__}"
    if origin is Mapping:
        return f"type({value}) is dict"
    # A member of an enumeration equals its text, but is another object, so only the reader can make it.
    if origin is Literal and all(type(argument) is str for argument in arguments):
        return f"type({value}) is str and {value} in {set(arguments)!r}"
    if origin in (Union, UnionType):
        inner = [argument for argument in arguments if argument is not NoneType]
        return "True" if len(inner) > 1 else f"{value} is None or {_unchanged_condition(inner[0], value)}"
    return "False"


def _plain(value: object) -> dict[str, Any]:
    if is_dataclass(value):
        kind: Any = type(value)
        stored = {}
        for name, key, is_sparse in _stored_fields(kind):
            item = getattr(value, name)
            # An empty object has a meaning and is written. An empty list means the same as a missing list.
            if item or not is_sparse or isinstance(item, Mapping):
                stored[key] = item
        return stored
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


@cache
def _stored_fields(cls: Any) -> tuple[tuple[str, str, bool], ...]:
    """Return the name of each field of a data class, its JSON key, and whether it is left out if it is empty."""
    return tuple([(field.name, stored_name(field), field.metadata.get("sparse", False)) for field in fields(cls)])


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large a number")
    return number


def _refuse(value: Any) -> NoReturn:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def compact_encoder(default: Callable[[Any], Any]) -> Callable[[Any], str]:
    """Return a function that writes a value as JSON on one line, without escaping lone surrogates.

    `default` converts a value that is no JSON to a simpler value. The function raises TypeError, ValueError or
    RecursionError for a value that JSON cannot express, such as NaN."""
    written_by = json.JSONEncoder(
        ensure_ascii=False, check_circular=False, separators=(",", ":"), allow_nan=False, default=default
    )
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # as in an interpreter without the accelerator
        return written_by.encode
    # `JSONEncoder.encode` would create an encoder for each value, which takes longer than writing an event.
    pieces = make(None, default, json.encoder.encode_basestring, None, ":", ",", False, False, False)
    return lambda value: "".join(pieces(value, 0))


_encoded = compact_encoder(_plain)
_encoded_json = compact_encoder(_refuse)
_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)
