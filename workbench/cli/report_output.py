"""Where a report of the command line goes, and how wide and how long it is there."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from workbench.cli.door import warn, write_redacted
from workbench.dataclasses import dataclass
from workbench.reports.paint import Paint, paint_for
from workbench.reports.text import PLAIN_WIDTH, Amount


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


@dataclass(frozen=True)
class Output:
    """Where a report goes: in which form, `None` where nobody said so, and to which file, `None` for standard output.
    `quiet` and `verbose` say how much of it is wanted."""

    form: str | None = None
    file: Path | None = None
    quiet: bool = False
    verbose: bool = False

    @property
    def amount(self) -> Amount:
        """How much of a report is wanted."""
        return "little" if self.quiet else "much" if self.verbose else "normal"

    @property
    def width(self) -> int:
        """Columns of the report."""
        return PLAIN_WIDTH if self.file is not None else report_width(sys.stdout)

    @property
    def cut_at(self) -> int | None:
        """Columns at which long lists are cut; `None` where nothing has to be."""
        return self.width if self.file is None and sys.stdout.isatty() else None

    @property
    def paint(self) -> Paint:
        """How the report is coloured."""
        return Paint(False) if self.file is not None else paint_for(sys.stdout, os.environ)

    def can_write(self) -> bool:
        """Whether the report can be written later: found out before any run is paid for. Reports why not."""
        return self.file is None or _can_write(self.file)

    @contextmanager
    def stream(self) -> Iterator[TextIO]:
        """Where events are streamed to: the file, where the form is jsonl."""
        if self.form != "jsonl" or self.file is None:
            yield sys.stdout
            return
        with self.file.open("w", encoding="utf-8", errors="replace", buffering=1) as file:
            yield file

    def deliver(self, pieces: Callable[[], Iterable[str]]) -> bool:
        """Write a report, whose pieces hold no secrets any more. Returns whether the file could be written; the report
        is on standard output if not."""
        if self.file is None:
            _write_all(pieces())
            return True
        try:
            with self.file.open("w", encoding="utf-8") as file:
                file.writelines(pieces())
        except OSError as error:
            warn(f"cannot write {self.file}: {error.strerror}; the report follows on standard output")
            _write_all(pieces())
            return False
        return True


def _write_all(pieces: Iterable[str]) -> None:
    for piece in pieces:
        write_redacted(piece)
    sys.stdout.flush()


def output_of(arguments: argparse.Namespace, command: str, forms: Sequence[str]) -> Output | None:
    """The output that `--format`, `--output`, `--quiet` and `--verbose` mean; `None` where these do not go together or
    `command` has no such report, which has then been reported."""
    file, asked = arguments.output, arguments.format
    quiet, verbose = arguments.quiet, getattr(arguments, "verbose", False)
    if file is None:
        return Output(asked, None, quiet, verbose)
    ending = file.suffix.lower()
    form = _FORM_OF.get(ending, asked) if ending else asked or "text"
    if form in forms and asked in (None, form):
        return Output(form, file, quiet, verbose)
    endings = ", ".join(_ENDINGS[each] for each in forms)
    if form is None:
        warn(
            f"cannot write {file}: {ending} is not the ending of a format; give --format, or end the name in {endings}"
        )
    elif form not in forms:
        warn(f"cannot write {file}: 'workbench {command}' has no {form} report; end the name in {endings}")
    else:
        warn(f"cannot write {file}: its ending means {form}, but --format is {asked}; change one of them")
    return None


def _can_write(output: Path) -> bool:
    if output.is_dir():
        obstacle = "it is a folder"
    elif not output.parent.is_dir():
        obstacle = f"there is no folder {output.parent}"
    elif not os.access(output if output.exists() else output.parent, os.W_OK):
        obstacle = "permission denied"
    else:
        return True
    warn(f"cannot write {output}: {obstacle}")
    return False


def can_record_in(folder: Path) -> bool:
    """Whether a folder can be written to; it is made if need be. Reports why not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        obstacle = "it is a file" if folder.is_file() else error.strerror
    else:
        if os.access(folder, os.W_OK | os.X_OK):
            return True
        obstacle = "permission denied"
    warn(f"cannot record in {folder}: {obstacle}")
    return False
