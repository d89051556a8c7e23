"""Writes JSON reports piece by piece: the same text as that of a whole document with `indent=2`, made of one run after
the other, and without a model for each of their values."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from json.encoder import encode_basestring
from operator import attrgetter, itemgetter
from types import NoneType
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, BeforeValidator, JsonValue

from workbench.reports.json_base import ReportModel, bounded
from workbench.trajectory.typed_json import escape_lone_surrogates, json_text

Write = Callable[[Any], str]
"""Returns a value as JSON text, indented as its place asks."""

_Item = TypeVar("_Item")
_Value = TypeVar("_Value")
_STEP = "  "


def _itself(item: object) -> object:
    return item


class Redactor(Protocol):
    """Keeps secrets out of what is written."""

    def redacted(self, value: _Value) -> _Value: ...
    def may_be_in_json(self, text: str) -> bool: ...


class Records(Generic[_Item]):
    """The records of one key of a document, one for each run or case. `source_of` returns what a record's model can be
    validated from: an object with its fields as attributes, or a dictionary of them."""

    def __init__(
        self, model: type[ReportModel], items: Iterable[_Item], source_of: Callable[[_Item], object] = _itself
    ) -> None:
        self._model = model
        self._items = items
        self._source_of = source_of

    def whole(self) -> tuple[ReportModel, ...]:
        """Returns all records as models."""
        return tuple(self._model.model_validate(self._source_of(item)) for item in self._items)

    def pieces(self, pad: str, redactor: Redactor) -> Iterator[str]:
        """Yields the list of all records behind `pad`, one record in each piece."""
        before = "["
        for text in self.texts(pad + _STEP, redactor):
            yield f"{before}\n{pad}{_STEP}{text}"
            before = ","
        yield "[]" if before == "[" else f"\n{pad}]"

    def texts(self, pad: str, redactor: Redactor) -> Iterator[str]:
        """Yields each record as JSON text behind `pad`, without secrets."""
        write = writer_of(self._model, pad)
        for item in self._items:
            source = self._source_of(item)
            text = write(source)
            if redactor.may_be_in_json(text):
                shown = redactor.redacted(self._model.model_validate(source))
                text = _moved(json_text(shown.model_dump(mode="json"), indent=2), pad)
            yield escape_lone_surrogates(text)


def document_pieces(document: ReportModel, records: Mapping[str, Records[Any]], redactor: Redactor) -> Iterator[str]:
    """Yields a document as indented JSON, without secrets. `records` take the place of the document's own values."""
    shown = redactor.redacted(document).model_dump(mode="json", exclude=set(records))
    before = "{"
    for name in type(document).model_fields:
        yield f"{before}\n{_STEP}{encode_basestring(name)}: "
        if name in records:
            yield from records[name].pieces(_STEP, redactor)
        else:
            yield _moved(json_text(shown[name], indent=2), _STEP)
        before = ","
    yield "\n}\n"


def _moved(text: str, pad: str) -> str:
    """Returns an indented JSON text behind `pad`. No string in it holds a line break."""
    return text.replace("\n", f"\n{pad}")


@cache
def writer_of(hint: Any, pad: str) -> Write:
    """Returns the function that writes values of a type behind `pad`: what `model_dump` of a report's model and
    `json.dumps` make of them, without checking them.

    Types are models, whose values may be any objects with their attributes or mappings of their fields, homogeneous
    tuples, mappings with texts as keys, JSON values, texts, numbers, words and `None`.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _converting(hint, pad)
    if isinstance(hint, type) and issubclass(hint, ReportModel):
        return _record_writer(hint, pad)
    if origin is tuple:
        return _list_writer(arguments[0], pad)
    if origin is dict:
        return _object_writer(arguments[1], pad)
    if hint is JsonValue:
        return _json_writer(pad)
    if origin is Literal:
        return _SCALARS[type(arguments[0])]
    if NoneType in arguments and len(arguments) == 2:
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        write = writer_of(inner, pad)
        return lambda value: "null" if value is None else write(value)
    return _float if hint is float else _SCALARS[hint]


def _converting(hint: Any, pad: str) -> Write:
    """Returns a writer for a type whose values a model converts."""
    inner, *metadata = get_args(hint)
    functions: list[Any] = [each.func for each in metadata if isinstance(each, AfterValidator | BeforeValidator)]
    write = writer_of(inner, pad)
    if functions == [bounded]:
        return _bounded
    if not functions:
        return write
    (convert,) = functions
    return lambda value: write(convert(value))


def _record_writer(model: type[ReportModel], pad: str) -> Write:
    inner = pad + _STEP
    hints = get_type_hints(model, include_extras=True)
    names = tuple(model.model_fields)
    writers = [writer_of(hints[name], inner) for name in names]
    template = "{\n" + ",\n".join(f"{inner}{encode_basestring(name)}: %s" for name in names) + f"\n{pad}}}"
    of_object, of_mapping = attrgetter(*names), itemgetter(*names)

    def write(value: Any) -> str:
        values = of_mapping(value) if type(value) is dict else of_object(value)
        return template % tuple([write(each) for write, each in zip(writers, values, strict=True)])

    return write


def _list_writer(hint: Any, pad: str) -> Write:
    inner = pad + _STEP
    between = f",\n{inner}"
    begin, end = f"[\n{inner}", f"\n{pad}]"
    # A model may hold others of its own kind, whose writer is made when it is needed.
    return lambda value: f"{begin}{between.join(map(writer_of(hint, inner), value))}{end}" if value else "[]"


def _object_writer(hint: Any, pad: str) -> Write:
    inner = pad + _STEP
    between, begin, end = f",\n{inner}", f"{{\n{inner}", f"\n{pad}}}"
    write = _json_writer(inner) if hint is JsonValue else writer_of(hint, inner)

    def write_all(value: Mapping[str, Any]) -> str:
        if not value:
            return "{}"
        items = [f"{encode_basestring(name)}: {write(each)}" for name, each in value.items()]
        return f"{begin}{between.join(items)}{end}"

    return write_all


def _json_writer(pad: str) -> Write:
    def write(value: JsonValue) -> str:
        write_scalar = _SCALARS.get(type(value))
        if write_scalar is not None:
            return write_scalar(value)
        return _moved(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False), pad)

    return write


def _float(value: float) -> str:
    return _number(float(value))


def _bounded(value: float) -> str:
    """Writes a score, which may be infinite."""
    return repr(float(value)) if -_MAX_NUMBER <= value <= _MAX_NUMBER else _number(float(bounded(value)))  # type: ignore[arg-type]


def _number(value: float) -> str:
    if value - value != 0:
        raise ValueError(f"{value} is not a JSON number")
    return repr(value)


_MAX_NUMBER = sys.float_info.max
_SCALARS: dict[type, Write] = {
    str: encode_basestring,
    bool: {True: "true", False: "false"}.__getitem__,
    int: int.__repr__,
    float: _number,
    NoneType: lambda _: "null",
}
