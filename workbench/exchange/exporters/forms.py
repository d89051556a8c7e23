"""The forms in which runs are exported.

To add one, write a module with a writer and a row here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from workbench.exchange.exporters.exported import ExportedRun

EXPORTS_FOLDER = "exports"
"""The app's folder for exports, below the current folder."""


class ExportError(Exception):
    """An export that cannot be made. The message has the reason and the remedy."""


class Form(NamedTuple):
    """A form: its writer as `module:function`, the ending of its file, and its description.

    Without an ending it is several files, and the writer yields their names and texts. One without a writer is a form
    of reports (`workbench.show.forms`).
    """

    writer: str
    ending: str
    what: str


FORMS: dict[str, Form] = {
    "messages": Form("messages:lines_of_messages", ".messages.jsonl", "messages as OpenAI has them, a run a line"),
    "inspect": Form("inspect_log:files_of_inspect", "", "logs of Inspect, one for each suite and model"),
    "otlp": Form("otlp:lines_of_otlp", ".otlp.jsonl", "traces of OpenTelemetry as OTLP/JSON, a run a line"),
    "atif": Form("atif:files_of_atif", "", "ATIF trajectories, a file for each run"),
    "csv": Form("", ".csv", "a row for each run, for spreadsheets"),
    "records": Form("", ".jsonl", "a line of JSON for each run"),
}
"""Every form by the name that `--format` takes."""


def lines_of(form: str, runs: Iterable[ExportedRun]) -> Iterator[str]:
    """Yield the text of a form of one file, in pieces."""
    yield from _writer(form)(runs)


def files_of(form: str, runs: Iterable[ExportedRun]) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the names of a form's files and their texts in pieces, which must be consumed in order."""
    yield from _writer(form)(runs)


def _writer(form: str) -> Any:
    # Imported on use: the command line needs only the names and descriptions of the forms.
    module, _, function = FORMS[form].writer.partition(":")
    return getattr(import_module(f"workbench.exchange.exporters.{module}"), function)
