"""Compiles functions that write records as JSON text, from the types of the records' fields.

The functions are the inverse of `dataclasses.reader_of`. Turning a run into dictionaries for a general encoder takes
three times as long as writing its text directly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from json.encoder import encode_basestring
from math import isfinite
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from workbench.dataclasses import compact_json

Write = Callable[[Any], str]
"""Returns a value as JSON text, which may hold lone surrogates.

Raises TypeError, ValueError or RecursionError for a value that JSON cannot express."""


class JsonField(NamedTuple):
    """A field of a record: its key in JSON, the type of its values, and Python code for its value.

    The code reads the variable `source`. `absent` is code for a condition on the variable `value`. If the condition is
    true, the field is left out."""

    key: str
    hint: Any
    value: str
    absent: str = ""


FieldsOf = Callable[[Any, type], Sequence[JsonField]]
"""Returns the fields of a record for its type and the class of the object from which it is read."""


class JsonWriter:
    """Writes records of some types as JSON text in one form.

    `fields_of` returns the fields of a record. `is_record` returns whether a type is a record. `number` writes a value
    in a field of floats that is not a finite float. `converting` gets the annotations of a field's type, and returns a
    function that changes the value before it is written, or `None`."""

    def __init__(
        self,
        fields_of: FieldsOf,
        is_record: Callable[[Any], bool],
        number: Callable[[float], str],
        converting: Callable[[Iterable[object]], Callable[[Any], Any] | None] = lambda _: None,
    ) -> None:
        self._fields_of = fields_of
        self._is_record = is_record
        self._converting = converting
        self._called = {**_CALLED, "number": partial(_number, number)}
        self._writers: dict[Any, _ByClass] = {}

    def of(self, hint: Any) -> Write:
        """Return the function that writes a record of this type."""
        writers = self.by_class(hint)
        return lambda source: writers[type(source)](source)

    def by_class(self, hint: Any) -> Mapping[type, Write]:
        """Return the functions that write a record of this type, by the class of the object from which it is read."""
        if hint not in self._writers:
            self._writers[hint] = _ByClass(partial(self._compiled, hint))
        return self._writers[hint]

    def texts_by_key(self, hint: Any, source: object) -> dict[str, str]:
        """Return the JSON text of each field of a record, by the field's key. Fields that are left out have no text."""
        fields = self._fields_of(hint, type(source))
        lines, names = self._lines(fields)
        lines.append(f"return [{', '.join(f'text_{at}' for at in range(len(fields)))}]")
        texts = _function(lines, names)(source)
        return {field.key: text for field, text in zip(fields, texts, strict=True) if text}

    def _compiled(self, hint: Any, kind: type) -> Write:
        """Compile the function that writes a record of type `hint` from objects of class `kind`."""
        fields = self._fields_of(hint, kind)
        lines, names = self._lines(fields)
        pieces = []
        for at, field in enumerate(fields):
            key = f",{encode_basestring(field.key)}:"
            if field.absent:
                lines.append(f"if text_{at}: text_{at} = {key!r} + text_{at}")
                key = ""
            pieces.append(f"{key}{{text_{at}}}")
        written = "".join(pieces)
        # If the first field is never left out, its comma is removed here, and not from each text.
        if fields and not fields[0].absent:
            lines.append(f"return f{'{{' + written[1:] + '}}'!r}")
        else:
            lines.append(f"return '{{' + f{written!r}[1:] + '}}'")
        write: Write = _function(lines, names)
        return write

    def _lines(self, fields: Sequence[JsonField]) -> tuple[list[str], dict[str, Any]]:
        """Return Python statements that set `text_0`, `text_1` … to the JSON texts of fields.

        The second value has the objects that the statements use, by name."""
        names: dict[str, Any] = dict(self._called)
        lines = []
        for at, field in enumerate(fields):
            text = self._expression(field.hint, "value", names)
            lines.append(f"value = {field.value}")
            if field.absent:
                text = f"'' if {field.absent} else {text}"
            lines.append(f"text_{at} = {text}")
        return lines, names

    def _expression(self, hint: Any, value: str, names: dict[str, Any]) -> str:
        """Return Python code for the JSON text of the variable `value`.

        Names that the code uses are added to `names`."""
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            convert = self._converting(arguments[1:])
            if convert is not None:
                name = f"convert_{len(names)}"
                names[name] = convert
                value = f"{name}({value})"
            return self._expression(arguments[0], value, names)
        if origin in (Union, UnionType):
            inner = [each for each in arguments if each is not NoneType]
            if len(inner) == 1 < len(arguments):
                return f"('null' if {value} is None else {self._expression(inner[0], value, names)})"
        elif hint is bool:
            return f"('true' if {value} else 'false')"
        elif hint is int:
            return f"(integers.get({value}) or format({value}, 'd'))"
        elif hint is float:
            return f"(floats.get({value}) or number({value}))"
        elif hint is str or _is_text(hint, origin, arguments):
            return f"text({value})"
        elif origin is tuple:
            item = self._expression(arguments[0], "item", names)
            return f"('[%s]' % (','.join([{item} for item in {value}]),) if {value} else '[]')"
        elif origin in (dict, Mapping) and (item := self._expression(arguments[1], "item", names)) != _ANY_ITEM:
            items = f"'%s:%s' % (text(key), {item}) for key, item in {value}.items()"
            return f"('{{%s}}' % (','.join([{items}]),) if {value} else '{{}}')"
        elif self._is_record(hint):
            name = f"writers_{len(names)}"
            names[name] = self.by_class(hint)
            return f"{name}[type({value})]({value})"
        return f"any_json({value})"


class _ByClass(dict[type, Write]):
    """The functions that write records of one type, by the class of the object. Each is compiled when first used."""

    def __init__(self, compiled: Callable[[type], Write]) -> None:
        super().__init__()
        self._compiled = compiled

    def __missing__(self, kind: type) -> Write:
        write = self[kind] = self._compiled(kind)
        return write


def _function(lines: Iterable[str], names: dict[str, Any]) -> Any:
    exec("def function(source):\n " + "\n ".join(lines), names)
    return names["function"]


def _is_text(hint: Any, origin: Any, arguments: Iterable[Any]) -> bool:
    if origin is Literal:
        return all(isinstance(each, str) for each in arguments)
    return isinstance(hint, type) and issubclass(hint, StrEnum)


def _number(otherwise: Callable[[float], str], number: float) -> str:
    if type(number) is float and isfinite(number):
        return repr(number)
    return otherwise(number)


def _any_json(value: Any) -> str:
    if value is None:
        return "null"
    if type(value) is str:
        return encode_basestring(value)
    return compact_json(value)


# Most numbers in a run are among these, and a look-up takes a fifth of the time of a conversion.
_CALLED: Mapping[str, object] = {
    "text": encode_basestring,
    "any_json": _any_json,
    "integers": {number: str(number) for number in range(100)},
    "floats": {0.0: "0.0", 1.0: "1.0"},
}
_ANY_ITEM = "any_json(item)"
