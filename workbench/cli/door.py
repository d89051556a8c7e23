"""The command line's door: all that goes to the terminal or into a report passes here, without secrets."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

from workbench.config.finding import Pieces
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.config.typed_keys import without_keys
from workbench.show.visible import one_line
from workbench.trajectory.typed_json import json_text

if TYPE_CHECKING:
    from workbench.config.model_book import ModelOptions
    from workbench.config.program import Program
    from workbench.reports.json_base import ReportModel
    from workbench.suite.loading import SuiteFile
    from workbench.suite.problems import Problem

_known = [NO_SECRETS]
_Report = TypeVar("_Report", bound="ReportModel")


def begin_program(options: ModelOptions | None = None) -> Program:
    """Return the program of this process, its log begun. From now on its secrets stay out of all that is written."""
    from workbench.config.folders import user_folders
    from workbench.config.model_book import NOTHING_SAID
    from workbench.config.program import program_in

    program = program_in(user_folders(), os.environ, options or NOTHING_SAID)
    go_on_as(program)
    return program


def go_on_as(program: Program) -> None:
    """Go on as a program that another process has begun."""
    from workbench.config.logs import log_to

    _known[0] = program.secrets
    log_to(program.folders.log, program.secrets)


def know_suites(program: Program, files: Iterable[SuiteFile]) -> None:
    """Know what is secret for some suites too. What is wrong with their settings is said elsewhere."""
    from workbench.batches.known_secrets import learn_secrets
    from workbench.config.models import ConfigError

    for file in files:
        with suppress(ConfigError):
            learn_secrets(program, file.path.parent, file.suite, file.text)


def redacted(text: str) -> str:
    """A text without secrets."""
    return _known[0].redact(text)


def lines_redacted(lines: Iterable[str]) -> Iterator[str]:
    """Lines as a text in pieces, without secrets."""
    return (redacted(f"{line}\n") for line in lines)


def write(text: str, stream: TextIO | None = None) -> None:
    """Write a text to a stream, standard output if none is given."""
    (stream or sys.stdout).write(redacted(text))


def without_secrets(report: _Report) -> _Report:
    """A report whose values hold no secrets."""
    return _known[0].redacted(report)


def json_report(report: ReportModel | Mapping[str, Any]) -> str:
    """A report as indented JSON. Its values are redacted before they are written, so that it stays JSON whatever the
    secrets are."""
    shown = _known[0].redacted(report)
    data = dict(shown) if isinstance(shown, Mapping) else shown.model_dump(mode="json")
    return json_text(data, indent=2) + "\n"


def write_json(report: ReportModel | Mapping[str, Any], stream: TextIO | None = None) -> None:
    """Write a report as JSON to a stream, standard output if none is given."""
    write_json_text(json_report(report), stream)


def write_redacted(text: str, stream: TextIO | None = None) -> None:
    """Write a text whose parts have passed a door already."""
    (stream or sys.stdout).write(text)


def write_json_text(text: str, stream: TextIO | None = None) -> None:
    """Write JSON whose values have passed a door already; to a runner, in a way that has none of its commands."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from workbench.reports.workflow_commands import inert_json

        text = inert_json(text)
    (stream or sys.stdout).write(text)


def warn(message: str, secrets: Secrets | None = None) -> None:
    """One line on standard error, safe to show."""
    shown = without_keys((secrets or _known[0]).redact(message), sys.argv[1:])
    sys.stderr.write(f"{one_line(shown)}\n")


def warn_of_problems(problems: Iterable[Problem], secrets: Secrets | None = None) -> None:
    """Problems of suites on standard error, one a line."""
    for problem in problems:
        warn(str(problem), secrets)


class Outlet:
    """A stream to which Python code of a suite prints: it goes to another one without secrets, also if one comes in
    pieces."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._pieces = Pieces()

    def write(self, text: str) -> int:
        self._stream.write(self._pieces.add(text, _known[0].finder))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self.write("".join(lines))

    def finish(self) -> None:
        """Write what was held back."""
        self._stream.write(self._pieces.rest(_known[0].finder))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def printing_to(stream: TextIO) -> Iterator[None]:
    """Have all that Python code prints go to a stream, without secrets."""
    outlet = Outlet(stream)
    shown = cast(TextIO, outlet)
    try:
        with redirect_stdout(shown), redirect_stderr(shown):
            yield
    finally:
        outlet.finish()


def ask(question: str) -> None:
    """A question on standard error, whose answer is typed behind it."""
    sys.stderr.write(f"{redacted(question)} ")
    sys.stderr.flush()
