"""JSON reports in pieces, without indentation: one line for each key of the document and for each record.

Runs are written one at a time, so a large batch is never in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from workbench.dataclasses import dataclass, json_text
from workbench.show.json.base import ReportModel
from workbench.show.json.text import text_of, texts_by_key
from workbench.show.views.runs_report import Redactor

_Item = TypeVar("_Item")
_PORTION_CHARS = 50_000


@dataclass(frozen=True)
class Records(Generic[_Item]):
    """The records of one key of a document, such as its runs. Records are built one at a time.

    `source_of` returns the source of a record: an object with the model's fields as attributes, or a dictionary."""

    model: type[ReportModel]
    items: Iterable[_Item]
    source_of: Callable[[_Item], object]
    lean: bool = False
    """Whether values that are null, empty or a default are left out."""
    shape: Callable[[Any], object] | None = None
    """Converts the source of a record, or the redacted record, to the object that is written. `None` converts
    nothing."""
    shaped_as: type[ReportModel] | None = None
    """The report model of the object that `shape` returns."""

    def __iter__(self) -> Iterator[ReportModel]:
        return (self.model.model_validate(self.source_of(item)) for item in self.items)

    def texts(self, redactor: Redactor) -> Iterator[str]:
        """Yield the JSON of each record, without secrets."""
        write = text_of(self.shaped_as or self.model, lean=self.lean)
        shape = self.shape or _itself
        for sources, texts in self._portions(lambda source: write(shape(source))):
            # One search of a long text is cheaper than a search of each value, and most records hold no secret.
            if redactor.json_may_contain("\n".join(texts)):
                for at, source in enumerate(sources):
                    if redactor.json_may_contain(texts[at]):
                        texts[at] = write(shape(redactor.redacted(self.model.model_validate(source))))
            yield from texts

    def _portions(self, write: Callable[[object], str]) -> Iterator[tuple[list[object], list[str]]]:
        """Yield the sources of records with their texts, in portions of about `_PORTION_CHARS` characters."""
        sources: list[object] = []
        texts: list[str] = []
        length = 0
        for item in self.items:
            source = self.source_of(item)
            text = write(source)
            sources.append(source)
            texts.append(text)
            length += len(text)
            if length >= _PORTION_CHARS:
                yield sources, texts
                sources, texts, length = [], [], 0
        yield sources, texts


def _itself(source: object) -> object:
    return source


def document_pieces(
    document: ReportModel, records: Mapping[str, Records[Any]], redactor: Redactor, *, lean: bool = False
) -> Iterator[str]:
    """Yield a document as JSON without secrets. `records` replaces values of the document by key.

    With `lean`, values that are null, empty or a default are left out."""
    shown = texts_by_key(redactor.redacted(document), lean=lean)
    before = "{"
    for name in type(document).model_fields:
        if name in records:
            yield f'{before}\n"{name}":'
            yield from _list_pieces(records[name].texts(redactor))
        elif name in shown:
            yield f'{before}\n"{name}":{shown[name]}'
        else:
            continue
        before = ","
    yield "\n}\n"


def _list_pieces(texts: Iterable[str]) -> Iterator[str]:
    before = "["
    for text in texts:
        yield f"{before}\n{text}"
        before = ","
    yield "[]" if before == "[" else "\n]"


def dumped(records: Iterable[ReportModel]) -> Iterator[dict[str, Any]]:
    """Yield records as JSON objects."""
    return (record.model_dump(mode="json") for record in records)


def json_lines(records: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a line of JSON for each object."""
    return (f"{json_text(record)}\n" for record in records)
