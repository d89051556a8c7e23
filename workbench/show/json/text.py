"""Writers of reports as JSON text. They read the program's objects directly, without validation.

A report has dozens of objects for each run. Writing their attributes directly, without creating the Pydantic models,
takes a quarter of the time. A test checks that Pydantic writes the same text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import AfterValidator, BeforeValidator
from pydantic.fields import FieldInfo

from workbench.dataclasses import escape_lone_surrogates
from workbench.json_writer import JsonField, JsonWriter
from workbench.show.json.base import ReportModel, bounded


@cache
def text_of(model: type[ReportModel], *, lean: bool = False) -> Callable[[Any], str]:
    """Return a function that writes a report model as JSON on one line, with lone surrogates escaped.

    The function takes an object with the fields as attributes, or a dictionary. Fields with defaults may be missing.
    With `lean`, values that are null, empty or the default are left out."""
    write = _writer(lean=lean).of(model)
    return lambda source: escape_lone_surrogates(write(source))


def texts_by_key(report: ReportModel, *, lean: bool = False) -> dict[str, str]:
    """Return the JSON text of each key of a report, written as `text_of` does."""
    texts = _writer(lean=lean).texts_by_key(type(report), report)
    return {key: escape_lone_surrogates(text) for key, text in texts.items()}


def _absent(field: FieldInfo) -> str:
    """Return a Python expression that tests whether a lean report omits the field's value, which is named `value`.

    Return "" if the field is never omitted."""
    hint: Any = field.annotation
    default = _default(field)
    if get_origin(hint) is Literal:
        return ""
    if default in ((), {}) or (field.is_required() and (hint is str or get_origin(hint) in (tuple, dict))):
        return "not value"
    if not field.is_required() or NoneType in get_args(hint):
        return f"value == {default!r}"
    return ""


def _is_model(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, ReportModel)


def _fields_of(model: type[ReportModel], kind: type, *, lean: bool) -> list[JsonField]:
    known = {*dir(kind), *getattr(kind, "__dataclass_fields__", ()), *getattr(kind, "model_fields", ())}
    found = []
    for name, field in model.model_fields.items():
        default = _default(field)
        value = f"source.{name}"
        if issubclass(kind, dict):
            value = f"source[{name!r}]" if field.is_required() else f"source.get({name!r}, {default!r})"
        elif name not in known and not field.is_required():
            value = repr(default)
        hint: Any = field.annotation
        if field.metadata:
            hint = Annotated[(hint, *field.metadata)]
        found.append(JsonField(name, hint, value, _absent(field) if lean else ""))
    return found


def _default(field: FieldInfo) -> Any:
    """Return the default of a field, or `None` if it has none.

    The `repr` of the default must be valid Python source."""
    if field.is_required():
        return None
    return field.get_default(call_default_factory=True)


def _converting(metadata: Iterable[object]) -> Callable[[Any], Any] | None:
    for each in metadata:
        # `bounded` need not be called here, because all numbers are bounded when they are written.
        if isinstance(each, BeforeValidator | AfterValidator) and each.func is not bounded:
            convert: Callable[[Any], Any] = each.func  # type: ignore[assignment]
            return convert
    return None


def _number(number: float) -> str:
    number = float(number)
    if number != number:
        return "null"
    return repr(bounded(number))


@cache
def _writer(*, lean: bool) -> JsonWriter:
    return JsonWriter(partial(_fields_of, lean=lean), _is_model, _number, _converting)
