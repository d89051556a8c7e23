"""JSON reports in pieces that join to the text of the whole document with `indent=2`.

Runs are written in turn, so that a large batch is never in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from pydantic_core import PydanticSerializationError

from workbench.dataclasses import dataclass, json_text
from workbench.show.json.base import ReportModel
from workbench.show.views.runs_report import Redactor

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Records(Generic[_Item]):
    """The records of one key of a document, such as its runs, which are built one at a time.

    `source_of` returns the source from which a record's model is validated: an object with its fields as attributes,
    or a dictionary of them.
    """

    model: type[ReportModel]
    items: Iterable[_Item]
    source_of: Callable[[_Item], object]

    def __iter__(self) -> Iterator[ReportModel]:
        return (self.model.model_validate(self.source_of(item)) for item in self.items)

    def texts(self, redactor: Redactor) -> Iterator[str]:
        """Yield the indented JSON of each record, without secrets."""
        for record in self:
            text = _text(record)
            # Searching the text once is cheaper than walking the record, and most records hold no secret.
            if redactor.may_be_in_json(text):
                text = _text(redactor.redacted(record))
            yield text


def document_pieces(document: ReportModel, records: Mapping[str, Records[Any]], redactor: Redactor) -> Iterator[str]:
    """Yield a document as indented JSON without secrets; `records` replaces the document's values by key."""
    # The excluded keys are never built, which keeps the runs out of memory.
    shown = redactor.redacted(document).model_dump(mode="json", exclude=set(records))
    before = "{"
    for name in type(document).model_fields:
        yield f'{before}\n  "{name}": '
        if name in records:
            yield from _list_pieces(records[name].texts(redactor))
        else:
            yield _moved(json_text(shown[name], indent=2), "  ")
        before = ","
    yield "\n}\n"


def _list_pieces(texts: Iterable[str]) -> Iterator[str]:
    before = "["
    for text in texts:
        yield f"{before}\n    {_moved(text, '    ')}"
        before = ","
    yield "[]" if before == "[" else "\n  ]"


def _text(record: ReportModel) -> str:
    try:
        return record.model_dump_json(indent=2)
    except PydanticSerializationError:
        # Pydantic cannot write lone surrogates, which a model's text may hold.
        return json_text(record.model_dump(mode="json"), indent=2)


def _moved(text: str, pad: str) -> str:
    """Return an indented JSON text with `pad` before each line but the first."""
    # Every line break comes from the indentation: inside a JSON string it would be escaped.
    return text.replace("\n", f"\n{pad}")


def dumped(records: Iterable[ReportModel]) -> Iterator[dict[str, Any]]:
    """Yield records as JSON objects."""
    return (record.model_dump(mode="json") for record in records)


def json_lines(records: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a line of JSON for each object."""
    return (f"{json_text(record)}\n" for record in records)
