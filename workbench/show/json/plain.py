"""The fields of a report model as plain JSON values, read from the program's own objects without validation.

A report has dozens of objects for each run. Reading their fields by the models' annotations, without creating the
models, takes a quarter of the time. A test compares both ways.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, BeforeValidator, JsonValue
from pydantic.fields import FieldInfo

from workbench.show.json.base import ReportModel, bounded

_Convert = Callable[[Any], Any]


@cache
def plain(model: Any) -> Callable[[Any], dict[str, Any]]:
    """Return a function that reads the fields of a report model from a source.

    The source is an object with the fields as attributes, or a dictionary. It may lack fields with defaults.
    """
    readers: dict[type, _Convert] = {}

    def read(source: Any) -> dict[str, Any]:
        reader = readers.get(type(source))
        if reader is None:
            reader = readers[type(source)] = _reader(model, type(source))
        fields: dict[str, Any] = reader(source)
        return fields

    return read


def _reader(model: type[ReportModel], kind: type) -> _Convert:
    """Compile a function that reads the fields of `model` from objects of a class."""
    known = {*dir(kind), *getattr(kind, "__dataclass_fields__", ())}
    names: dict[str, Any] = {}
    items = []
    for name, field in model.model_fields.items():
        names[f"default_{name}"] = None if field.is_required() else field.get_default(call_default_factory=True)
        value = f"source.{name}"
        if issubclass(kind, dict):
            value = f"source[{name!r}]" if field.is_required() else f"source.get({name!r}, default_{name})"
        elif name not in known and not field.is_required():
            value = f"default_{name}"
        convert = _of_field(field)
        if convert is not None:
            names[f"convert_{name}"] = convert
            value = f"convert_{name}({value})"
        items.append(f"{name!r}: {value}")
    exec(f"def read(source): return {{{', '.join(items)}}}", names)
    read: _Convert = names["read"]
    return read


def _of_field(field: FieldInfo) -> _Convert | None:
    return _annotated(_of_hint(field.annotation), field.metadata)


def _of_hint(hint: Any) -> _Convert | None:
    """Return the conversion for values of a type, or `None` if values are written unchanged."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is JsonValue or origin is Literal:
        return None
    if origin is Annotated:
        return _annotated(_of_hint(arguments[0]), arguments[1:])
    if origin in (Union, UnionType):
        inner = [argument for argument in arguments if argument is not NoneType]
        if len(inner) != 1:
            raise TypeError(f"a report has no union such as {hint}")
        return _optional(_of_hint(inner[0]))
    if origin is tuple:
        return _each(_of_hint(arguments[0]))
    if origin is dict:
        return _by_key(_of_hint(arguments[1]))
    if hint is float:
        return float
    if isinstance(hint, type) and issubclass(hint, ReportModel):
        return plain(hint)
    return None


def _annotated(convert: _Convert | None, metadata: Iterable[object]) -> _Convert | None:
    for each in metadata:
        if isinstance(each, BeforeValidator) and each.func is bounded:
            convert = _finite
        elif isinstance(each, BeforeValidator):
            convert = _in_turn(each.func, convert)
        elif isinstance(each, AfterValidator):
            convert = _in_turn(convert, each.func)
    return convert


def _finite(score: Any) -> float:
    if type(score) is float and -_MAX_NUMBER <= score <= _MAX_NUMBER:
        return score
    return float(bounded(float(score)))  # type: ignore[arg-type]


_MAX_NUMBER = sys.float_info.max


def _in_turn(first: Any, second: Any) -> _Convert:
    if first is None or second is None:
        chosen: _Convert = first or second
        return chosen
    return lambda value: second(first(value))


def _optional(convert: _Convert | None) -> _Convert | None:
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


def _each(convert: _Convert | None) -> _Convert | None:
    if convert is None:
        return None
    return lambda values: [convert(value) for value in values]


def _by_key(convert: _Convert | None) -> _Convert:
    if convert is None:
        return dict

    def converted(values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: convert(value) for key, value in values.items()}

    return converted
