"""Loads a suite file into a `Suite`, or into all of its problems at once, each with its line.

Loading never starts a process, imports a module, opens a connection or reads a secret, and never raises for content.
"""

from __future__ import annotations

import hashlib
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

from pydantic import BaseModel, ValidationError

from workbench.dataclasses import dataclass
from workbench.startup import late_pattern
from workbench.suite.advice import advice, unknown_tags
from workbench.suite.model import Case, Suite, derived_id
from workbench.suite.positions import Positions, scan
from workbench.suite.problems import Finding, Problem, described, did_you_mean, written
from workbench.suite.render import Table, block_text
from workbench.suite.rules import cases_rules, suite_rules
from workbench.suite.shape import nested_too_deeply, shape_findings, value_findings
from workbench.suite.splice import SpliceError, SuiteText

_SMALLEST = 'a suite begins with format = 1 and name = "…"'


@dataclass(frozen=True)
class SuiteFile:
    """A suite file as it was read.

    `suite` is `None` when a problem is an error; `hash` is the SHA-256 of the file's bytes in hex, empty when it could
    not be read. Problems are in the order of their lines."""

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

        try:
            return SuiteText.of(self.text)
        except SpliceError:
            return None

    def case_lines(self, index: int) -> tuple[int, int]:
        """Return the first and last line (from 1) of a case's block.

        The block runs from the comment lines directly above its header to the next table header that is not below it,
        without trailing blank lines. Raises IndexError if the text has no such case."""
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
    """Read a suite file.

    Everything wrong with the file or in it becomes a problem, unreadable files included."""
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
    """Return the names of the files of a folder that end like this; none if the folder cannot be read."""
    try:
        return sorted(path.name for path in folder.iterdir() if path.suffix == ending)
    except OSError:
        return []


def with_findings(file: SuiteFile, findings: Iterable[Finding]) -> SuiteFile:
    """Return the file with further problems, except for places where it has the same problem already."""
    known = {(problem.where, problem.message) for problem in file.problems}
    found = []
    for finding in findings:
        if (written(finding.place), finding.message) not in known:
            found.append(finding)
    if not found:
        return file
    new = _placed(found, file.positions, file.path)
    return replace(file, problems=tuple(sorted([*file.problems, *new], key=lambda problem: problem.line or 0)))


def _placed(findings: list[Finding], lines: Positions, path: Path) -> tuple[Problem, ...]:
    problems = []
    for found in dict.fromkeys(findings):
        problems.append(
            Problem(path, _line_of(found, lines), written(found.place), found.message, found.hint, found.severity)
        )
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
    """Let equal models share one set of the names that were written in each.

    A large suite has few different sets, and they take a fifth of a case's memory. A copy gets a set of its own."""
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
    """Return advice on the well-formed cases: all of them, or those without errors when only cases have errors."""
    errors = []
    for finding in findings:
        if finding.severity == "error":
            errors.append(finding.place)
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


_LINE_AND_COLUMN = late_pattern(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")

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


# Reads a suite again after an edit: only new or changed cases are read, the others are reused.

MAX_FRESH = 8
"""With more cases than this to read, the whole file is read."""

_CASE = late_pattern(r"cases\[(\d+)\]")


@dataclass(frozen=True)
class _Reused:
    """How two texts correspond: for each case now, the earlier one it equals, or `None`."""

    cases: tuple[int | None, ...]

    @property
    def fresh(self) -> tuple[int, ...]:
        return tuple(at for at, old in enumerate(self.cases) if old is None)


def reread(file: SuiteFile, before: SuiteText, now: SuiteText) -> SuiteFile | None:
    """Return the suite for the text of `now`, given `file` for the text of `before`.

    The result is that of `parse_suite`; `None` if only reading the whole text can tell."""
    reused = _reused(before, now)
    if reused is None or any(map(_is_of_several, file.problems)):
        return None
    fresh = reused.fresh
    if not _ids_differ(file, now, reused):
        return None
    alone, found = _alone(file, now, fresh)
    of_fresh = [problem for problem in found if problem.where.startswith("cases[")]
    if any(map(_is_of_several, found)):
        return None
    if fresh and alone is None and not any(problem.severity == "error" for problem in of_fresh):
        return None
    problems = sorted((*_moved(file.problems, before, now, reused), *of_fresh), key=lambda problem: problem.line or 0)
    suite = None
    if not any(problem.severity == "error" for problem in problems):
        if file.suite is None:
            return None
        cases = list(alone or ())
        of_now = []
        for old in reused.cases:
            of_now.append(file.suite.cases[old] if old is not None else cases.pop(0))
        suite = file.suite.model_copy(update={"cases": tuple(of_now)})
        if list(unknown_tags(suite)) != list(unknown_tags(file.suite)):
            return None
    elif now.header.get("aggregates"):
        return None
    digest = sha256(now.text.encode("utf-8", errors="surrogatepass")).hexdigest()
    return SuiteFile(file.path, now.text, digest, suite, tuple(problems))


def _reused(before: SuiteText, now: SuiteText) -> _Reused | None:
    """Return `None` where more than cases has changed, or too many of them."""
    if not (before.in_blocks and now.in_blocks and before.blocks and now.blocks) or before.header is not now.header:
        return None
    if not now.header:
        return None  # the missing key outside the cases is then reported at the first case
    if before.between != now.between:
        # Whatever is between cases may have moved: only blank lines certainly do not matter.
        if before.between[0].rstrip() != now.between[0].rstrip():
            return None
        if any(gap.strip() for gap in (*before.between[1:], *now.between[1:])):
            return None
    places = {id(block): at for at, block in enumerate(before.blocks)}
    if len(places) < len(before.blocks):
        return None
    cases = tuple(places.get(id(block)) for block in now.blocks)
    if cases.count(None) > MAX_FRESH or len(set(cases) - {None}) + cases.count(None) < len(cases):
        return None
    return _Reused(cases)


def _ids_differ(file: SuiteFile, now: SuiteText, reused: _Reused) -> bool:
    """Return whether no two cases have the same id; those that were reused differ among themselves."""
    fresh = [_id(now.cases[at]) for at in reused.fresh]
    if not fresh:
        return True
    if file.suite is not None:
        known = file.suite.cases
        others: set[object] = set()
        for old in reused.cases:
            if old is not None:
                others.add(known[old].id)
    else:
        others = set()
        for at, old in enumerate(reused.cases):
            if old is not None:
                others.add(_id(now.cases[at]))
    return len(set(fresh)) == len(fresh) and not others & set(fresh)


def _is_of_several(problem: Problem) -> bool:
    """Return whether a problem involves several cases, or a case and a place outside it."""
    return _CASE.search(problem.message) is not None


def _id(case: Table) -> object:
    name, written = case.get("name"), case.get("id")
    if isinstance(written, str):
        return written
    return derived_id(name) if isinstance(name, str) else id(case)


def _alone(
    file: SuiteFile, now: SuiteText, fresh: Sequence[int]
) -> tuple[tuple[Case, ...] | None, tuple[Problem, ...]]:
    """Return some cases read with everything outside the cases, and the problems with their places in the text."""
    if not fresh:
        return (), ()
    wanted = set(fresh)
    pieces: list[str] = []
    shifts: list[int] = []
    lines = lines_alone = 0
    for at, gap in enumerate(now.between):
        if gap.strip():
            pieces.append(gap)
            lines_alone += gap.count("\n")
        lines += gap.count("\n")
        if at == len(now.blocks):
            break
        if at in wanted:
            if pieces and not pieces[-1].endswith("\n"):
                pieces.append("\n")
                lines_alone += 1
            pieces.append(now.blocks[at])
            shifts.append(lines - lines_alone)
            lines_alone += now.blocks[at].count("\n")
        lines += now.blocks[at].count("\n")
    read = parse_suite("".join(pieces), file.path)
    problems = []
    for problem in read.problems:
        which = _CASE.match(problem.where)
        if which is not None:
            number = int(which[1])
            where = f"cases[{fresh[number]}]{problem.where[which.end() :]}"
            problem = replace(_shifted(problem, shifts[number]), where=where)
        problems.append(problem)
    return read.suite.cases if read.suite is not None else None, tuple(problems)


def _moved(problems: Sequence[Problem], before: SuiteText, now: SuiteText, reused: _Reused) -> list[Problem]:
    """Return the problems that remain, with their present lines and indices."""
    if not problems:
        return []
    starts_before, starts_now = _starts(before), _starts(now)
    now_at = {old: at for at, old in enumerate(reused.cases) if old is not None}
    moved: list[Problem] = []
    for problem in problems:
        which = _CASE.match(problem.where)
        if which is None:
            moved.append(_shifted(problem, _shift_outside(problem.line, starts_before, starts_now)))
        elif (at := now_at.get(int(which[1]))) is not None:
            old = int(which[1])
            shift = starts_now[2 * at + 1] - starts_before[2 * old + 1]
            moved.append(replace(_shifted(problem, shift), where=f"cases[{at}]{problem.where[which.end() :]}"))
    return moved


def _starts(text: SuiteText) -> list[int]:
    """Return how many lines end before each piece: the text before the first case, that case, the text behind it, …"""
    counts = []
    for gap, block in zip(text.between, text.blocks, strict=False):
        counts += [gap.count("\n"), block.count("\n")]
    return [0, *accumulate(counts)]


def _shift_outside(line: int | None, before: Sequence[int], now: Sequence[int]) -> int:
    """Return by how much a line between cases has moved.

    Where anything is there, the pieces are the same."""
    if line is None or len(before) != len(now):
        return 0
    # The last gap that begins on an earlier line, or on this one.
    gap = max((at for at in range(0, len(before), 2) if before[at] < line), default=0)
    return now[gap] - before[gap]


def _shifted(problem: Problem, lines: int) -> Problem:
    if problem.line and lines:
        return replace(problem, line=problem.line + lines)
    return problem


# Cuts a suite's text down to one case, so that a run can be stored together with all that it was graded by.

Blocks = tuple[tuple[str, int, int], ...]
"""For each case its id, and where its block starts and ends in the suite's text, counted in characters."""


class Excerpts:
    """Cuts cases out of suite files.

    Each file is taken apart once, because a batch asks for hundreds of its cases."""

    def __init__(self) -> None:
        self._files: dict[tuple[Path, str], tuple[SuiteText, Blocks] | None] = {}
        self._standing_alone: dict[tuple[Path, str, str], bool] = {}

    def of(self, file: SuiteFile, case_id: str) -> str:
        """Return the suite with only this case, everything else as it is written, comments too.

        Returns the whole text when the cases do not stand in blocks of their own, or when there is no such case.
        """
        key = (file.path, file.hash)
        if key not in self._files:
            self._files[key] = _taken_apart(file)
        known = self._files[key]
        if known is None or not self._stands_alone(file, *known, case_id):
            return file.text
        return cut_out(file.text, known[1], case_id)

    def _stands_alone(self, file: SuiteFile, parts: SuiteText, blocks: Blocks, case_id: str) -> bool:
        key = (file.path, file.hash, case_id)
        if key not in self._standing_alone:
            index = next((number for number, (known, _, _) in enumerate(blocks) if known == case_id), None)
            self._standing_alone[key] = index is not None and _stands_alone(parts, index)
        return self._standing_alone[key]


def case_blocks(file: SuiteFile) -> Blocks | None:
    """Return where the cases stand in a suite's text; `None` when they do not stand in blocks of their own.

    The blank lines below a case belong to its block."""
    known = _taken_apart(file)
    return known[1] if known is not None else None


def _taken_apart(file: SuiteFile) -> tuple[SuiteText, Blocks] | None:
    try:
        parts = SuiteText.of(file.text)
    except SpliceError:
        return None
    if file.suite is None or not parts.blocks:
        return None
    blocks: list[tuple[str, int, int]] = []
    end = 0
    for case, before, block, after in zip(
        file.suite.cases, parts.between, parts.blocks, parts.between[1:], strict=False
    ):
        first = end + len(before)
        end = first + len(block)
        blocks.append((case.id, first, end + len(after) - len(after.lstrip())))
    return parts, tuple(blocks)


def _stands_alone(parts: SuiteText, index: int) -> bool:
    """Return whether the block of a case by itself says the same case, and nothing else."""
    try:
        return tomllib.loads(parts.blocks[index]) == {"cases": [parts.cases[index]]}
    except ValueError:
        return False


def cut_out(text: str, blocks: Blocks, case_id: str) -> str:
    """Return a suite's text without the blocks of all cases but one; the whole text when there is no such case."""
    return CutText(text, blocks).of(case_id)


class CutText:
    """A suite's text, taken apart once to cut many cases out of it."""

    def __init__(self, text: str, blocks: Blocks) -> None:
        self._text = text
        self._places: dict[str, list[tuple[int, int, int]]] = {}
        """For each case, the place of its block among the texts between blocks, and its position in the text."""
        between: list[str] = []
        end = cut = 0
        for case, first, after in blocks:
            between.append(text[end:first])
            cut += len(between[-1])
            self._places.setdefault(case, []).append((cut, first, after))
            end = after
        self._between = "".join((*between, text[end:]))

    @property
    def without_cases(self) -> str:
        """The text without the block of any case."""
        return self._between

    def of(self, case_id: str) -> str:
        """Return the text without the blocks of all other cases; the whole text when there is no such case."""
        if case_id not in self._places:
            return self._text
        parts: list[str] = []
        end = 0
        for cut, first, after in self._places[case_id]:
            parts += (self._between[end:cut], self._text[first:after])
            end = cut
        return "".join((*parts, self._between[end:]))


# Where cases are in the files of their suites, for reports that point there.

LineOf = Callable[[str, str], int | None]
"""Returns the line (from 1) of a case, by the path of its suite and its id; `None` where that is not known."""


def suites_of(files: Iterable[SuiteFile]) -> dict[str, Suite]:
    """Return the suites that could be read, by the paths of their files."""
    return {str(file.path): file.suite for file in files if file.suite is not None}


def cases_by_id(suite: Suite | None) -> dict[str, Case]:
    """Return the cases of a suite by id; none for a suite that could not be read."""
    return {case.id: case for case in suite.cases} if suite is not None else {}


def no_line(suite: str, case_id: str) -> None:
    """Knows no line: where a suite has no file."""


def lines_of(files: Iterable[SuiteFile]) -> LineOf:
    """Return where the cases of some suites are.

    A file is searched when it is first asked about."""
    waiting = {str(file.path): file for file in files}
    known: dict[str, dict[str, int]] = {}

    def line_of(suite: str, case_id: str) -> int | None:
        file = waiting.pop(suite, None)
        if file is not None and file.suite is not None:
            positions = scan(file.text)  # not the file's own, which would stay in memory with all its places
            if not positions.are_known:
                return None
            places = ((case.id, ("cases", index)) for index, case in enumerate(file.suite.cases))
            known[suite] = {case: positions.line(place) for case, place in places}
        return known.get(suite, {}).get(case_id)

    return line_of


# Variants from beside a suite, for one batch: those in a file, or a system prompt that is to be tried. They are
# added to the text of the suite in memory, so that what is stored of a run says how it was made.


class AddedVariantError(ValueError):
    """Variants that cannot be added.

    The message names where they come from."""


def variants_in(file: Path) -> tuple[Mapping[str, object], ...]:
    """Return the variants of a TOML file, as its `[[variants]]` or as its top.

    Raises AddedVariantError."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise AddedVariantError(f"{file} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise AddedVariantError(f"{file} is not TOML: {error}") from error
    tables = content.pop("variants", None)
    if tables is None:
        tables, content = [content], {}
    if content or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise AddedVariantError(f"{file} holds no variants alone: write [[variants]], or the keys of one variant")
    return tuple(tables)


def prompt_variant(file: Path) -> Mapping[str, object]:
    """Return the variant whose system prompt is the content of a file, named after it.

    Raises AddedVariantError."""
    try:
        text = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise AddedVariantError(f"{file} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise AddedVariantError(f"{file} is not UTF-8: {error}") from error
    if not text:
        raise AddedVariantError(f"{file} is empty: write a system prompt into it")
    return {"name": file.stem, "system": text}


def with_variants(file: SuiteFile, tables: Iterable[Mapping[str, object]], origin: str) -> SuiteFile:
    """Return a suite with more variants, as if its text had them at its end.

    Raises AddedVariantError with the first problem that the suite has with them."""
    try:
        blocks = []
        for table in tables:
            blocks.append(block_text(("variants",), table, of_array=True))
    except ValueError as error:
        raise AddedVariantError(f"{origin}: {error}") from error
    added = parse_suite("\n".join([file.text.rstrip("\n"), *(f"\n{block}" for block in blocks), ""]), file.path)
    if added.suite is None:
        problem = added.errors[0]
        raise AddedVariantError(f"{origin} does not go with {file.path}: {problem.message}")
    return added
