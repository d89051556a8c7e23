"""JSON reports piece by piece, with the same text as a whole document with `indent=2`.

Runs are written one after the other, so that a large batch is never in memory as a whole.
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
    """The records of one key of a document, one for each run or case, built one at a time.

    `source_of` returns the source that a record's model is validated from: an object with its fields as attributes, or
    a dictionary of them.
    """

    model: type[ReportModel]
    items: Iterable[_Item]
    source_of: Callable[[_Item], object]

    def __iter__(self) -> Iterator[ReportModel]:
        return (self.model.model_validate(self.source_of(item)) for item in self.items)

    def texts(self, redactor: Redactor) -> Iterator[str]:
        """Yield each record as indented JSON, without secrets."""
        for record in self:
            text = _text(record)
            # One search through its text is cheaper than a walk through a record, and most hold no secret.
            yield _text(redactor.redacted(record)) if redactor.may_be_in_json(text) else text


def document_pieces(document: ReportModel, records: Mapping[str, Records[Any]], redactor: Redactor) -> Iterator[str]:
    """Yield a document as indented JSON, without secrets.

    `records` take the place of the document's own values."""
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
    except PydanticSerializationError:  # lone surrogates, which pydantic cannot write
        return json_text(record.model_dump(mode="json"), indent=2)


def _moved(text: str, pad: str) -> str:
    """Return an indented JSON text behind `pad`.

    No string in it holds a line break."""
    return text.replace("\n", f"\n{pad}")


def dumped(records: Iterable[ReportModel]) -> Iterator[dict[str, Any]]:
    """Yield records as JSON values."""
    return (record.model_dump(mode="json") for record in records)


def json_lines(records: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield JSON values, each on a line of its own."""
    return (f"{json_text(record)}\n" for record in records)
