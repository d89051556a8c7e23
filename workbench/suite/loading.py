"""Loads a suite file into a `Suite`, or into all of its problems at once, each with its line.

Loading never starts a process, imports a module, opens a connection or reads a secret, and never raises for content.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from workbench.dataclasses import dataclass
from workbench.suite.advice import advice
from workbench.suite.case_rules import cases_rules
from workbench.suite.model import Suite
from workbench.suite.positions import Positions, scan
from workbench.suite.problems import Finding, Problem, described, did_you_mean, written
from workbench.suite.rules import suite_rules
from workbench.suite.shape import nested_too_deeply, shape_findings, value_findings

if TYPE_CHECKING:
    from workbench.suite.splice import SuiteText

_SMALLEST = 'a suite begins with format = 1 and name = "…"'


@dataclass(frozen=True)
class SuiteFile:
    """A suite file as it was read. `suite` is `None` when a problem is an error; `hash` is the SHA-256 of the file's
    bytes in hex, empty when it could not be read. Problems are in the order of their lines."""

    path: Path
    text: str
    hash: str
    suite: Suite | None
    problems: tuple[Problem, ...]
    is_missing: bool = False
    """Whether the file does not exist."""
    as_then: bool = False
    """Whether the text comes from a history, not from the file."""

    @property
    def errors(self) -> tuple[Problem, ...]:
        """Problems that prevent the suite from running."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """Problems that only inform."""
        return tuple(problem for problem in self.problems if problem.severity == "warning")

    @cached_property
    def positions(self) -> Positions:
        """The lines of everything in the text; empty for a text that is not TOML."""
        if self.suite is None and _parsed(self.text) is None:
            return Positions({}, {}, (), 1)
        return scan(self.text)

    @cached_property
    def parts(self) -> SuiteText | None:
        """The text split for editing, which reads it once more; `None` when it is not TOML."""
        from workbench.suite.splice import SpliceError, SuiteText

        try:
            return SuiteText.of(self.text)
        except SpliceError:
            return None

    def case_lines(self, index: int) -> tuple[int, int]:
        """Returns the first and last line (from 1) of a case's block: from the comment lines directly above its header
        to the next table header that is not below it, without trailing blank lines. Raises IndexError when the text has
        no such case."""
        try:
            first, last = self.positions.block(("cases", index))
        except KeyError:
            raise IndexError(f"{self.path} has no case {index}") from None
        lines = self._lines
        while last > first and not lines[last - 1].strip():
            last -= 1
        return first, last

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.replace("\r\n", "\n").split("\n")


def load_suite(path: Path) -> SuiteFile:
    """Read a suite file. Everything wrong with the file or in it becomes a problem, unreadable files included."""
    try:
        if path.is_dir():
            return _refused(path, "is a folder, not a suite file", "name a file in it")
        if path.exists() and not path.is_file():
            return _refused(path, "is not a regular file")
        content = path.read_bytes()
    except FileNotFoundError:
        folder = path.parent
        hint = f"check the path: there is no folder {folder.name} either"
        if folder.is_dir():
            hint = did_you_mean(path.name, _names_in(folder, path.suffix)) or "check the path"
        return replace(_refused(path, "there is no such file", hint), is_missing=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return _refused(path, f"cannot be read: {reason}")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"is not UTF-8: the byte 0x{content[error.start]:02x} cannot be read"
        problem = Problem(path, line, "", message, "save the file as UTF-8")
        text = content.decode("utf-8", errors="replace")
        return SuiteFile(path, text, _sha256(content), None, (problem,))
    return _loaded(text, path, _sha256(content))


def parse_suite(text: str, path: Path) -> SuiteFile:
    """Read a suite from its text; `path` is where the file is or will be."""
    return _loaded(text, path, _sha256(text.encode("utf-8", errors="surrogatepass")))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _refused(path: Path, message: str, hint: str = "") -> SuiteFile:
    return SuiteFile(path, "", "", None, (Problem(path, None, "", message, hint),))


def _loaded(text: str, path: Path, file_hash: str) -> SuiteFile:
    if not text.strip():
        problem = Problem(path, 1, "", "the file is empty", _SMALLEST)
        return SuiteFile(path, text, file_hash, None, (problem,))
    try:
        raw: dict[str, object] = tomllib.loads(text)
        if nested_too_deeply(raw):
            raise RecursionError
    except (ValueError, RecursionError) as error:
        return SuiteFile(path, text, file_hash, None, (_not_toml(error, text, path),))
    with warnings.catch_warnings():
        # Python's warnings about regular expressions, in checks and in tools' schemas, must not be printed.
        warnings.simplefilter("ignore", FutureWarning)
        suite, findings = _read(raw)
    problems = _placed(findings, scan(text), path) if findings else ()
    return SuiteFile(path, text, file_hash, suite, problems)


def _names_in(folder: Path, ending: str) -> list[str]:
    """Returns the names of the files of a folder that end like this; none if the folder cannot be read."""
    try:
        return sorted(path.name for path in folder.iterdir() if path.suffix == ending)
    except OSError:
        return []


def with_findings(file: SuiteFile, findings: Iterable[Finding]) -> SuiteFile:
    """Returns the file with further problems, except for places where it has the same problem already."""
    known = {(problem.where, problem.message) for problem in file.problems}
    found = [finding for finding in findings if (written(finding.place), finding.message) not in known]
    if not found:
        return file
    new = _placed(found, file.positions, file.path)
    return replace(file, problems=tuple(sorted([*file.problems, *new], key=lambda problem: problem.line or 0)))


def _placed(findings: list[Finding], lines: Positions, path: Path) -> tuple[Problem, ...]:
    problems = [
        Problem(path, _line_of(found, lines), written(found.place), found.message, found.hint, found.severity)
        for found in dict.fromkeys(findings)
    ]
    if problems and not lines.are_known:
        problems.append(Problem(path, None, "", _UNKNOWN_LINES, "please report it with this file", "warning"))
    return tuple(sorted(problems, key=lambda problem: problem.line or 0))


def _line_of(found: Finding, lines: Positions) -> int | None:
    return lines.line(found.place) if lines.are_known else None


_UNKNOWN_LINES = "the lines of this file cannot be told, so its problems name none"


def _parsed(text: str) -> dict[str, object] | None:
    try:
        raw: dict[str, object] = tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if nested_too_deeply(raw) else raw


def _read(raw: dict[str, object]) -> tuple[Suite | None, list[Finding]]:
    format_problem = _format_problem(raw)
    if format_problem is not None and ("format" in raw or not {"name", "cases"} & raw.keys()):
        return None, [format_problem]
    findings = [format_problem] if format_problem else []
    findings += value_findings(raw)
    refused = {finding.place for finding in findings}
    suite: Suite | None = None
    of_shape: Iterable[Finding] = ()
    try:
        suite = Suite.model_validate({"format": 1, **raw})
        _share_names(suite.cases)
    except ValidationError as error:
        of_shape = shape_findings(raw, error)
    for finding in (*of_shape, *suite_rules(raw), *cases_rules(raw.get("cases"))):
        if finding.place not in refused:
            findings.append(finding)
    if suite is None and not findings:
        findings.append(Finding((), "this is not a suite of format 1"))
    findings += _advice(raw, suite, findings)
    if any(finding.severity == "error" for finding in findings):
        suite = None
    return suite, findings


def _share_names(models: Iterable[object]) -> None:
    """Let models, and those in them, share the sets of the names that were written in each: a fifth of a case's memory,
    of which a large suite has few different ones. A copy gets a set of its own."""
    known: dict[frozenset[str], set[str]] = {}
    waiting = list(models)
    while waiting:
        item = waiting.pop()
        if isinstance(item, BaseModel):
            written = item.__pydantic_fields_set__
            if written:
                object.__setattr__(item, "__pydantic_fields_set__", known.setdefault(frozenset(written), written))
                waiting += [item.__dict__[name] for name in written if type(item.__dict__[name]) not in _PLAIN]
        elif isinstance(item, tuple):
            waiting += item
        elif isinstance(item, dict):
            waiting += item.values()


_PLAIN = frozenset({str, int, float, bool, type(None)})


def _format_problem(raw: dict[str, object]) -> Finding | None:
    if "format" not in raw:
        return Finding((), "`format` is missing", "a suite's first line is format = 1")
    value = raw["format"]
    if type(value) is int and value == 1:
        return None
    if type(value) is int and value > 1:
        return Finding(("format",), f"format {value} is newer than this version", "it reads format 1: update Workbench")
    return Finding(("format",), f"must be the number 1, not {described(value)}", "write format = 1")


def _advice(raw: dict[str, object], suite: Suite | None, findings: list[Finding]) -> Iterator[Finding]:
    """Returns advice on what is well formed: all cases, or those without errors when only cases have errors."""
    errors = [finding.place for finding in findings if finding.severity == "error"]
    if not errors and suite is not None:
        yield from advice(suite, range(len(suite.cases)))
        return
    cases = raw.get("cases")
    if not isinstance(cases, list) or any(len(place) < 2 or place[0] != "cases" for place in errors):
        return
    broken = {place[1] for place in errors}
    sound = [index for index in range(len(cases)) if index not in broken]
    try:
        yield from advice(Suite.model_validate({**raw, "cases": [cases[index] for index in sound]}), sound)
    except ValidationError:
        return


_LINE_AND_COLUMN = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")

_WAYS_OUT = (
    ("Cannot overwrite a value", "this key is already written above in the same table"),
    ("Cannot declare", "this table is already written above; use [[…]] with two brackets to add one to a list"),
    ("Cannot mutate immutable namespace", "this name already has a value in brackets or braces above"),
    ("Duplicate inline table key", "write the key once"),
    ("Expected '=' after a key", "write = and a value after the key; put a key with spaces in quotes"),
    ("Expected newline or end of document", "write one key and its value per line; put text in quotes"),
    ("Expected ']'", "close the bracket of the table header on the same line"),
    ("Unclosed array", "close the list with ] and put commas between its values"),
    ("Unclosed inline table", "close the table with } and put commas between its keys"),
    ("Unterminated string", "close the text with a quotation mark"),
    ('Expected "\'"', "close the text with an apostrophe"),
    ("Illegal character '\\n'", "close the text on the same line, or put it between three quotation marks"),
    ("Unescaped", "write \\\\ for a backslash, or put the text in apostrophes: 'C:\\temp'"),
    ("Invalid hex value", "a \\u escape has four hexadecimal digits, a \\U escape eight"),
    ("Invalid initial character for a key", "write a table in braces on one line, without a trailing comma"),
    ("Exceeds the limit", "put a number this long in quotes"),
)


def _not_toml(error: ValueError | RecursionError, text: str, path: Path) -> Problem:
    if isinstance(error, RecursionError):
        return Problem(path, None, "", "is nested too deeply", "use fewer levels of tables")
    message = str(error)
    place = _LINE_AND_COLUMN.search(message)
    line: int | None = None
    column = ""
    if place is not None:
        message = message[: place.start()]
        line = int(place[1]) if place[1] else text.rstrip().count("\n") + 1
        column = f" (column {place[2]})" if place[2] else " (at the end of the file)"
    if text.startswith("\ufeff"):
        message, hint = "a byte order mark at the beginning", "save the file as UTF-8 without it"
    else:
        hint = next((hint for start, hint in _WAYS_OUT if message.startswith(start)), "")
    if message == "Invalid value":
        hint = _way_out_of_value(text, line)
    message = message.split(" for integer")[0]
    return Problem(path, line, "", f"is not TOML: {message}{column}", hint)


def _way_out_of_value(text: str, line: int | None) -> str:
    written_line = text.split("\n")[line - 1] if line else ""
    value = written_line.partition("=")[2].partition("#")[0].strip().rstrip(",")
    if value in ("True", "False"):
        return f"write {value.lower()}"
    if value in ("null", "None", "nil"):
        return "TOML has no null: leave the key out, or expect it with { equals_null = true }"
    return "put text in quotes" if value else "write a value after ="
