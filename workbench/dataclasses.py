"""`dataclass` as in the standard library, with frozen ones made four times as fast.

For a frozen class the standard library compiles six methods, which for all the classes that a command imports took a
quarter of its start. Here only `__init__` is compiled, when it is first used; the other methods are the same functions
for every class. What they do is the same, and so is everything that `fields`, `replace` and type checkers see.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError, fields
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **options):
        """Makes a data class, as `dataclasses.dataclass` does."""
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        if not options.get("frozen") or not options.keys() <= _OPTIONS:
            return dataclasses.dataclass(cls, **options)
        return _frozen(cls, options)


_OPTIONS = {"frozen", "slots", "kw_only", "weakref_slot"}


def _frozen(cls: type, options: dict[str, bool]) -> Any:
    own = vars(cls)
    methods = {name: method for name, method in _METHODS.items() if name not in own}
    if own.get("__hash__") is None:  # as Python sets it where a class defines `__eq__`
        methods["__hash__"] = _hash
    if options.get("slots"):
        methods |= {name: method for name, method in _STATE.items() if name not in own}
    if not cls.__doc__:  # else the standard library writes a signature, with a tokenizer
        cls.__doc__ = cls.__name__
    made: Any = dataclasses.dataclass(cls, init=False, repr=False, eq=False, **{**options, "frozen": False})
    made.__init__ = _Init(made)
    compared = [field.name for field in fields(made) if field.compare]
    made.__compared__ = staticmethod(_values_of(compared))
    for name, method in methods.items():
        setattr(made, name, method)
    return made


class _Init:
    """Stands in the place of `__init__` until that is first looked up: most classes that a command imports are for
    others."""

    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def __get__(self, instance: object, owner: type) -> Any:
        self._cls.__init__ = init = _init_of(self._cls)
        return init.__get__(instance, owner)


def _init_of(cls: type) -> Any:
    """Returns the method `__init__`, compiled. It takes the fields, in their order, those of `kw_only` at the end."""
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
    """Returns what gives the values of these fields, as a tuple."""
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
