"""Where a report of the command line goes, and how wide and how long it is there."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from workbench.cli.door import write_redacted
from workbench.cli.suites import complain
from workbench.reports.text import Amount

PLAIN_WIDTH = 120
"""Columns of a report that does not go to a terminal."""


def report_width(stream: TextIO) -> int:
    """Columns for a report on a stream."""
    return shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns if stream.isatty() else PLAIN_WIDTH


_FORM_OF = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    ".log": "text",
}
_ENDINGS = {"text": ".txt", "json": ".json", "jsonl": ".jsonl", "markdown": ".md"}
"""How a file of each form is named."""


def is_named_as_report(path: Path) -> bool:
    """Whether a path ends as the file of a report does."""
    return path.suffix.lower() in _FORM_OF


def takes_form(options: argparse.Namespace, command: str, forms: Sequence[str]) -> bool:
    """Settle in which form a report is written: what `--format` and the ending of `--output` say. Where these do not go
    together, or `command` has no such report, that is said."""
    output, asked = options.output, options.format
    if output is None:
        return True
    ending = output.suffix.lower()
    form = _FORM_OF.get(ending, asked) if ending else asked or "text"
    if form in forms and asked in (None, form):
        options.format = form
        return True
    endings = ", ".join(_ENDINGS[each] for each in forms)
    if form is None:
        complain(f"cannot write {output}: {ending} says nothing of a form; give --format, or end it in {endings}")
    elif form not in forms:
        complain(f"cannot write {output}: 'workbench {command}' has no {form} report; end the name in {endings}")
    else:
        complain(f"cannot write {output}: it ends as a {form} file, and --format says {asked}; change one of them")
    return False


@contextmanager
def stream_of(options: argparse.Namespace, usual: TextIO) -> Iterator[TextIO]:
    """Where events are streamed to: the file of `--output` with `--format jsonl`."""
    if options.format != "jsonl" or options.output is None:
        yield usual
        return
    with options.output.open("w", encoding="utf-8", errors="replace", buffering=1) as file:
        yield file


def report_amount(options: argparse.Namespace) -> Amount:
    """What `--quiet` and `--verbose` ask for."""
    return "little" if options.quiet else "much" if options.verbose else "normal"


def can_write(output: Path | None) -> bool:
    """Whether the report can be written later: found out before any run is paid for."""
    if output is None:
        return True
    if output.is_dir():
        obstacle = "it is a folder"
    elif not output.parent.is_dir():
        obstacle = f"there is no folder {output.parent}"
    elif not os.access(output if output.exists() else output.parent, os.W_OK):
        obstacle = "permission denied"
    else:
        return True
    complain(f"cannot write {output}: {obstacle}")
    return False


def write_report(text: str, output: Path | None) -> bool:
    """Write a report, which holds no secrets any more, to its file or to standard output. Returns whether the file
    could be written; the report is on standard output if not."""
    if output is None:
        write_redacted(text)
        sys.stdout.flush()
        return True
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        complain(f"cannot write {output}: {error.strerror}; the report follows on standard output")
        write_redacted(text)
        return False
    return True
