"""The destination of a command's report, with its width and level of detail."""

from __future__ import annotations

import argparse
import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from workbench.cli.redaction import warn, write_json_text, write_redacted
from workbench.config.folders import history_option
from workbench.dataclasses import dataclass
from workbench.show.forms import (
    PLAIN_WIDTH,
    Command,
    any_form_of_file,
    endings_of,
    form_of_file,
    forms_of,
    is_json,
    why_too_many,
)
from workbench.show.report_files import why_not_writable, write_report
from workbench.suite.files import resolved

if TYPE_CHECKING:
    from workbench.show.text import Paint
    from workbench.show.views.batch_text import Amount
    from workbench.show.views.findings import StaticFinding


def report_width(stream: TextIO) -> int:
    if not stream.isatty():
        return PLAIN_WIDTH
    return shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Output:
    """Where and in what form a report is written. `form` is `None` for the default, `file` for standard output.

    `quiet` and `verbose` set the level of detail. `further_outputs` are further reports on the same runs."""

    form: str | None = None
    file: Path | None = None
    quiet: bool = False
    verbose: bool = False
    further_outputs: tuple[Output, ...] = ()
    summary: bool = True
    """Whether the report also goes to the summary of the CI job, if there is one."""
    lean: bool = False
    """Whether JSON reports have the smaller form that `--lean` selects, without repeated and empty values."""

    @property
    def is_text(self) -> bool:
        return self.form in (None, "text", "github")

    @property
    def is_brief(self) -> bool:
        """Whether the report has only three lines on standard output.

        `--format text` would request the whole report."""
        return self.quiet and self.form is None and self.file is None

    @property
    def amount(self) -> Amount:
        """The amount of detail in the report."""
        if self.quiet:
            return "little"
        return "much" if self.verbose else "normal"

    @property
    def width(self) -> int:
        """The width of the report, in columns."""
        if self.file is not None:
            return PLAIN_WIDTH
        return report_width(sys.stdout)

    @property
    def cut_at(self) -> int | None:
        """The width at which long lists are cut, in columns. `None` if they are not cut."""
        if self.file is None and sys.stdout.isatty():
            return self.width
        return None

    @property
    def paint(self) -> Paint:
        """The styles of text in the report."""
        # Lazy import: not every report is text.
        from workbench.show.text import Paint, paint_for

        if self.file is not None:
            return Paint(False)
        return paint_for(sys.stdout, os.environ)

    def can_write(self, runs: int = 0) -> bool:
        """Return whether reports on `runs` runs can be written later. Print an error if not.

        Commands call this before any run costs money."""
        for each in (self, *self.further_outputs):
            if (why := why_too_many(each.form, runs)) is not None:
                warn(why)
                return False
            if each.file is not None and (obstacle := why_not_writable(each.file)) is not None:
                warn(f"cannot write {each.file}: {obstacle}")
                return False
        return True

    @contextmanager
    def stream(self) -> Iterator[TextIO]:
        """Open the stream for events during runs: the report's file for the form jsonl, otherwise standard output."""
        if self.form != "jsonl" or self.file is None:
            yield sys.stdout
            return
        try:
            with self.file.open("w", encoding="utf-8", errors="replace", buffering=1) as file:
                yield file
        except OSError as error:
            if error.errno not in _NO_ROOM or error.filename is not None:
                raise
            # If the disk is full, the original error does not name the file.
            raise OSError(error.errno, error.strerror, str(self.file)) from error

    def deliver(self, pieces: Callable[[Output], Iterable[str]]) -> bool:
        """Write the report and the further reports, except one that was written during the runs.

        `pieces` returns the redacted text for an output. Returns whether all files could be written. If the main report
        cannot be written to its file, it goes to standard output."""
        written = self.deliver_to_file(pieces, "; the report follows on standard output")
        if self.form != "jsonl" and (self.file is None or not written):
            _write_all(pieces(self), self.form)
        return self.deliver_further(pieces) and written

    def deliver_further(self, pieces: Callable[[Output], Iterable[str]]) -> bool:
        """Write the further reports, and return whether all of them could be written."""
        written = [each.deliver_to_file(pieces) for each in self.further_outputs]
        return all(written)

    def deliver_to_file(self, pieces: Callable[[Output], Iterable[str]], instead: str = "") -> bool:
        """Write the report to its file, if any, unless it was written there during the runs.

        Returns whether the file could be written. `instead` ends the message about a failure."""
        if self.file is None or self.form == "jsonl":
            return True
        try:
            write_report(self.file, pieces(self))
        except OSError as error:
            warn(f"cannot write {self.file}: {error.strerror}{instead}")
            return False
        return True


def details_of(batch: int | None, history: Path | None, output: Output) -> str:
    """Return where to find the details that a report of three lines leaves out: files, a command or an option."""
    places = [str(each.file) for each in output.further_outputs]
    if batch is not None and history is not None:
        places.append(f"workbench history show {batch}{history_option(history)}")
    return ", ".join(places) or "leave out --quiet"


def _write_all(pieces: Iterable[str], form: str | None) -> None:
    write = write_json_text if is_json(form) else write_redacted
    for piece in pieces:
        write(piece)
    sys.stdout.flush()


def annotate(output: Output, findings: Callable[[], Sequence[StaticFinding]], stream: TextIO | None = None) -> None:
    """In a job of GitHub Actions, write annotations for findings on suites and tools."""
    if output.form != "github" and os.environ.get("GITHUB_ACTIONS") != "true":
        return
    from workbench.cli.github import write_commands
    from workbench.show.views.findings import annotations_of

    # If the report is not text, a program may read it from standard output, so annotations go to standard error.
    if stream is None:
        stream = sys.stdout if output.is_text else sys.stderr
    write_commands(annotations_of(findings()), stream)


def output_of(arguments: argparse.Namespace, command: Command) -> Output | None:
    """Return the output that `--format`, `--output`, `--report`, `--lean`, `--quiet` and `--verbose` select.

    If the options contradict each other, or if `command` lacks the form, print the reason and return `None`."""
    output = _output_of(arguments, command)
    if output is None or not output.lean or "json" in (output.form, *(each.form for each in output.further_outputs)):
        return output
    warn("--lean is for JSON reports: give --format json, or end the name of a report in .json")
    return None


def _output_of(arguments: argparse.Namespace, command: Command) -> Output | None:
    beside = further_reports(arguments, command)
    if beside is None:
        return None
    file, asked = getattr(arguments, "output", None), arguments.format
    quiet, verbose = getattr(arguments, "quiet", False), getattr(arguments, "verbose", False)
    summary, lean = not getattr(arguments, "no_step_summary", False), getattr(arguments, "lean", False)
    if file is None:
        return Output(asked, None, quiet, verbose, beside, summary, lean)
    forms, ending = forms_of(command), file.suffix.lower()
    form = form_of_file(file, command, asked) or any_form_of_file(file) or asked
    if form is None and not ending:
        form = "text"
    if form in forms and asked in (None, form):
        if _are_different((file, *(each.file for each in beside))):
            return Output(form, file, quiet, verbose, beside, summary, lean)
        return None
    endings = endings_of(command)
    if form is None:
        warn(
            f"cannot write {file}: {ending} is not the ending of a format; give --format, or end the name in {endings}"
        )
    elif form not in forms:
        warn(f"cannot write {file}: 'workbench {command}' has no {form} report; end the name in {endings}")
    else:
        warn(f"cannot write {file}: its ending means {form}, but --format is {asked}: change one of them")
    return None


def further_reports(arguments: argparse.Namespace, command: Command) -> tuple[Output, ...] | None:
    """Return the reports of `--report`.

    If the form of a report is unknown, print the reason and return `None`."""
    files: list[Path] = arguments.report
    reports = []
    for file in files:
        reports.append((file, form_of_file(file, command, for_report=True)))
    for file, form in reports:
        if form is None:
            why = "its ending means no format"
            if other := any_form_of_file(file):
                why = f"'workbench {command}' has no {other} report"
            warn(f"cannot write {file}: {why}; end the name in {endings_of(command, for_report=True)}")
            return None
    if not _are_different(files):
        return None
    verbose, lean = getattr(arguments, "verbose", False), getattr(arguments, "lean", False)
    return tuple(Output(form, file, False, verbose, lean=lean) for file, form in reports)


def _are_different(files: Sequence[Path | None]) -> bool:
    seen: set[Path] = set()
    for file in files:
        if file is None:
            continue
        if resolved(file) in seen:
            warn(f"{file} is named twice: give each report a file of its own")
            return False
        seen.add(resolved(file))
    return True


def can_record_in(folder: Path) -> bool:
    """Return whether recordings can be written to a folder, which is created if necessary. Print an error if not."""
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
