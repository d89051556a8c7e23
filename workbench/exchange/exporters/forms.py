"""The formats in which runs are exported.

To add a format, write a module with a writer, and add a row to `FORMS`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from workbench.exchange.exporters.exported import ExportedRun

EXPORTS_FOLDER = "exports"
"""The app's folder for exports, below the current folder."""


class ExportError(Exception):
    """An export failed. The message says why, and what to do."""


class Form(NamedTuple):
    """An export format: its writer as `module:function`, its file extension, and its description.

    A format without an extension has several files, so its writer yields file names and texts. A format without a
    writer is a format of reports (`workbench.show.forms`)."""

    writer: str
    ending: str
    what: str


FORMS: dict[str, Form] = {
    "messages": Form("messages:lines_of_messages", ".messages.jsonl", "messages in OpenAI's form, one line per run"),
    "inspect": Form("inspect_log:files_of_inspect", "", "logs of Inspect, one per suite and model"),
    "otlp": Form("otlp:lines_of_otlp", ".otlp.jsonl", "traces of OpenTelemetry as OTLP/JSON, one line per run"),
    "atif": Form("atif:files_of_atif", "", "ATIF trajectories, one file per run"),
    "csv": Form("", ".csv", "one row per run, for spreadsheets"),
    "records": Form("", ".jsonl", "one line of JSON per run"),
}
"""Every form by the name that `--format` takes."""


def lines_of(form: str, runs: Iterable[ExportedRun]) -> Iterator[str]:
    """Yield the text of a single-file format in pieces."""
    yield from _writer(form)(runs)


def files_of(form: str, runs: Iterable[ExportedRun]) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the name of each file of a multi-file format, with its text in pieces.

    Read each text to its end before you take the next file."""
    yield from _writer(form)(runs)


def _writer(form: str) -> Any:
    # This import is lazy, because the command line needs only the names and descriptions of formats.
    module, _, function = FORMS[form].writer.partition(":")
    return getattr(import_module(f"workbench.exchange.exporters.{module}"), function)
