"""The output of the command line: all text for the terminal and for reports is redacted here."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

from workbench.config.secrets import NO_SECRETS, RedactedPieces, Secrets
from workbench.config.typed_keys import without_keys
from workbench.dataclasses import json_text
from workbench.show.visible import one_line

if TYPE_CHECKING:
    from workbench.config.model_book import ModelOptions
    from workbench.config.program import Program
    from workbench.show.json.base import ReportModel
    from workbench.suite.problems import Problem
    from workbench.suite.project import Search
    from workbench.suite.suite_file import SuiteFile

# The secrets to redact, as the only element of a list. `continue_as` replaces this element once the program exists.
_known = [NO_SECRETS]
_Report = TypeVar("_Report", bound="ReportModel")


def create_program(options: ModelOptions | None = None) -> Program:
    """Create the program of this process, and start its log.

    From then on, the secrets of the program are redacted in all output."""
    from workbench.config.folders import user_folders
    from workbench.config.model_book import NO_MODEL_OPTIONS
    from workbench.config.program import create_program

    program = create_program(user_folders(), os.environ, options or NO_MODEL_OPTIONS)
    continue_as(program)
    return program


def continue_as(program: Program) -> None:
    """Make `program`, which another process has created, the program of this process."""
    from workbench.config.logs import log_to

    _known[0] = program.secrets
    log_to(program.folders.log, program.secrets)


def register_suite_secrets(program: Program, files: Iterable[SuiteFile]) -> None:
    """Register the secrets of suites for redaction.

    Errors in the suites' settings are ignored here. The commands that use the settings report them."""
    from workbench.config.models import ConfigError
    from workbench.engine.suite_secrets import register_secrets

    for file in files:
        with suppress(ConfigError):
            register_secrets(program, file.path.parent, file.suite, file.text)


def redacted(text: str) -> str:
    return _known[0].redact(text)


def lines_redacted(lines: Iterable[str]) -> Iterator[str]:
    """Yield the text of lines piece by piece, without secrets."""
    return (redacted(f"{line}\n") for line in lines)


def write(text: str, stream: TextIO | None = None) -> None:
    """Write a text to a stream without secrets. The default stream is standard output."""
    (stream or sys.stdout).write(redacted(text))


def without_secrets(report: _Report) -> _Report:
    """Return a report whose values hold no secrets."""
    return _known[0].redacted(report)


def json_report(report: ReportModel | Mapping[str, Any]) -> str:
    """Return a report as indented JSON.

    The values are redacted before they become JSON, so the result is valid even if a secret has quotes."""
    shown = _known[0].redacted(report)
    data = dict(shown) if isinstance(shown, Mapping) else shown.model_dump(mode="json")
    return json_text(data, indent=2) + "\n"


def write_json(report: ReportModel | Mapping[str, Any], stream: TextIO | None = None) -> None:
    """Write a report as JSON to a stream. The default stream is standard output."""
    write_json_text(json_report(report), stream)


def write_redacted(text: str, stream: TextIO | None = None) -> None:
    """Write a text that is already redacted."""
    (stream or sys.stdout).write(text)


def write_json_text(text: str, stream: TextIO | None = None) -> None:
    """Write JSON that is already redacted.

    In a job of GitHub Actions, text that the runner would execute as a command is escaped."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from workbench.show.workflow_commands import inert_json

        text = inert_json(text)
    (stream or sys.stdout).write(text)


def warn(message: str, secrets: Secrets | None = None) -> None:
    """Write one line on standard error, without secrets and control characters."""
    # A message may quote an argument with a key that the user pasted by mistake.
    shown = without_keys((secrets or _known[0]).redact(message), sys.argv[1:])
    sys.stderr.write(f"{one_line(shown)}\n")


def warn_of_problems(problems: Iterable[Problem], secrets: Secrets | None = None) -> None:
    """Write the problems of suites on standard error, one per line."""
    for problem in problems:
        warn(str(problem), secrets)


class RedactedStream:
    """A stream for the output of a suite's Python code. Redacts secrets, even a secret written in several pieces."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._pieces = RedactedPieces()

    def write(self, text: str) -> int:
        self._stream.write(self._pieces.add(text, _known[0].finder))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self.write("".join(lines))

    def finish(self) -> None:
        """Write the rest of the text, which was held back because it could be the beginning of a secret."""
        self._stream.write(self._pieces.flush(_known[0].finder))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def printing_to(stream: TextIO) -> Iterator[None]:
    """Redirect the output of a suite's Python code to a stream, without secrets."""
    outlet = RedactedStream(stream)
    shown = cast("TextIO", outlet)
    try:
        with redirect_stdout(shown), redirect_stderr(shown):
            yield
    finally:
        outlet.finish()


def ask(question: str) -> None:
    """Write a question on standard error. The line is left open for the user's answer."""
    sys.stderr.write(f"{redacted(question)} ")
    sys.stderr.flush()


SHOW_DELAY_S = 1.0
_REDRAW_INTERVAL_S = 0.2


@contextmanager
def shown_search(*, quiet: bool = False) -> Iterator[Search]:
    """Yield a search for suites, and show its progress until it ends.

    Then print which folders were skipped, unless `quiet`."""
    from workbench.suite.project import Search

    search, over = Search(), threading.Event()
    shower = threading.Thread(target=_show, args=(search, over), daemon=True)
    shower.start()
    try:
        yield search
    finally:
        over.set()
        shower.join()
    if search.skipped_message is not None and not quiet:
        warn(f"{search.skipped_message} (give a folder to search it)")


def _show(search: Search, finished: threading.Event) -> None:
    """Update the progress line of the search on a terminal. On any other stream, print it once."""
    is_drawn = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    wait_s = SHOW_DELAY_S
    while not finished.wait(wait_s):
        wait_s = _REDRAW_INTERVAL_S
        message = search.progress_message
        if message is None:
            if is_drawn:
                _draw("")
        elif is_drawn:
            _draw(f"Ctrl+C stops: {message}")
        else:
            warn(f"{message} (Ctrl+C stops the search)")
            return
    if is_drawn and wait_s != SHOW_DELAY_S:
        _draw("")


def _draw(line: str) -> None:
    # Lazy import: most searches end within a second and draw nothing.
    from rich.cells import set_cell_size

    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        columns = 80
    # Three columns stay free. The line would wrap after the last column, and the echoed ^C takes two.
    fitting = set_cell_size(one_line(line), max(columns - 3, 1)).rstrip()
    write(f"\r\x1b[2K{fitting}", sys.stderr)
    sys.stderr.flush()
