"""JSON reports in pieces, without indentation: one line for each key of the document and for each record.

Runs are written one at a time, so a large batch is never in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from pydantic_core import PydanticSerializationError, to_json

from workbench.dataclasses import dataclass, json_text
from workbench.show.json.base import ReportModel
from workbench.show.json.plain import plain
from workbench.show.views.runs_report import Redactor

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Records(Generic[_Item]):
    """The records of one key of a document, such as its runs. Records are built one at a time.

    `source_of` returns the source from which a record's model is validated: an object with the fields as attributes, or
    a dictionary.
    """

    model: type[ReportModel]
    items: Iterable[_Item]
    source_of: Callable[[_Item], object]
    shape: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """A function that changes the fields of each record before they are written."""

    def __iter__(self) -> Iterator[ReportModel]:
        return (self.model.model_validate(self.source_of(item)) for item in self.items)

    def shaped(self, shape: Callable[[dict[str, Any]], dict[str, Any]]) -> Records[_Item]:
        """Return the same records, with `shape` applied to their fields before they are written."""
        return Records(self.model, self.items, self.source_of, shape)

    def texts(self, redactor: Redactor) -> Iterator[str]:
        """Yield the JSON of each record, without secrets."""
        fields_of, shape = plain(self.model), self.shape or _as_they_are
        for item in self.items:
            source = self.source_of(item)
            text = _text(shape(fields_of(source)))
            if text is None:
                text = _text_of(self.model.model_validate(source), shape)
            # Searching the text once is cheaper than walking the record, and most records hold no secret.
            if redactor.may_be_in_json(text):
                text = _text_of(redactor.redacted(self.model.model_validate(source)), shape)
            yield text


def _as_they_are(fields: dict[str, Any]) -> dict[str, Any]:
    return fields


def document_pieces(document: ReportModel, records: Mapping[str, Records[Any]], redactor: Redactor) -> Iterator[str]:
    """Yield a document as JSON without secrets. `records` replaces the document's values by key."""
    # The excluded keys are never built, so memory does not hold the runs.
    shown = redactor.redacted(document).model_dump(mode="json", exclude=set(records))
    before = "{"
    for name in type(document).model_fields:
        yield f'{before}\n"{name}":'
        if name in records:
            yield from _list_pieces(records[name].texts(redactor))
        else:
            yield json_text(shown[name])
        before = ","
    yield "\n}\n"


def _list_pieces(texts: Iterable[str]) -> Iterator[str]:
    before = "["
    for text in texts:
        yield f"{before}\n{text}"
        before = ","
    yield "[]" if before == "[" else "\n]"


def _text(fields: dict[str, Any]) -> str | None:
    """Return fields as JSON text, or `None` if they hold lone surrogates.

    Models may write these, and Pydantic refuses them.
    """
    try:
        return to_json(fields, inf_nan_mode="null").decode()
    except PydanticSerializationError:
        return None


def _text_of(record: ReportModel, shape: Callable[[dict[str, Any]], dict[str, Any]]) -> str:
    text = _text(shape(record.model_dump()))
    if text is None:
        text = json_text(shape(record.model_dump(mode="json")))
    return text


def dumped(records: Iterable[ReportModel]) -> Iterator[dict[str, Any]]:
    """Yield records as JSON objects."""
    return (record.model_dump(mode="json") for record in records)


def json_lines(records: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a line of JSON for each object."""
    return (f"{json_text(record)}\n" for record in records)
