"""Writes JSON reports piece by piece: the same text as that of a whole document with `indent=2`, made of one run after
the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from json.encoder import encode_basestring
from typing import Any, Generic, TypeVar

from pydantic_core import PydanticSerializationError

from workbench.dataclasses import json_text
from workbench.show.json.base import ReportModel
from workbench.show.views.runs_report import Redactor

_Item = TypeVar("_Item")
_STEP = "  "


def _itself(item: object) -> object:
    return item


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
        """Yield each record as JSON text behind `pad`, without secrets."""
        for item in self._items:
            record = self._model.model_validate(self._source_of(item))
            text = _record_text(record)
            if redactor.may_be_in_json(text):
                text = _record_text(redactor.redacted(record))
            yield _moved(text, pad)


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


def _record_text(record: ReportModel) -> str:
    try:
        return record.model_dump_json(indent=2)
    except PydanticSerializationError:  # lone surrogates, which pydantic cannot write
        return json_text(record.model_dump(mode="json"), indent=2)


def _moved(text: str, pad: str) -> str:
    """Return an indented JSON text behind `pad`. No string in it holds a line break."""
    return text.replace("\n", f"\n{pad}")


def dumped(records: Iterable[ReportModel]) -> Iterator[dict[str, Any]]:
    """Yield records as JSON values."""
    return (record.model_dump(mode="json") for record in records)


def json_lines(records: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield JSON values, each on a line of its own."""
    return (f"{json_text(record)}\n" for record in records)
