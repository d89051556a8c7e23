"""Loads a suite file into a `Suite`, or reports all of its problems at once, each with its line.

Loading starts no process, imports no module, opens no connection, reads no secret, and never raises because of the
content."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

from pydantic import BaseModel, ValidationError

from workbench.dataclasses import dataclass
from workbench.encoding import BYTE_ORDER_MARK, SAVE_AS_UTF_8, toml_of, utf_8_problem
from workbench.startup import late_pattern
from workbench.suite.advice import advice
from workbench.suite.case_effects import (
    affects_findings_elsewhere,
    changed_texts,
    have_same_lines,
    tag_findings_may_differ,
)
from workbench.suite.case_rows import CaseRows, is_one_row, place_in_text, text_with_rows, with_rows
from workbench.suite.model import Case, Suite, derived_id
from workbench.suite.positions import Positions, scan
from workbench.suite.problems import (
    Finding,
    Place,
    Problem,
    did_you_mean,
    has_error,
    kind_of_value,
    place_text,
    table,
    tables,
)
from workbench.suite.render import Table, is_list_of_tables
from workbench.suite.rules import cases_rules, suite_rules
from workbench.suite.shape import nested_too_deeply, shape_findings, value_findings
from workbench.suite.suite_text import COMMENTS, SpliceError, SuiteText, places_of_blocks

_SMALLEST = 'a suite begins with format = 1 and name = "…"'


@dataclass(frozen=True)
class SuiteFile:
    """A suite file as it was read.

    `suite` is `None` if a problem is an error. `hash` is the SHA-256 of the file's bytes in hex. It is empty if the
    file could not be read. Problems are in the order of their lines."""

    path: Path
    text: str
    hash: str
    suite: Suite | None
    problems: tuple[Problem, ...]
    is_missing: bool = False
    """Whether the file does not exist."""
    is_historical: bool = False
    """Whether the text is an earlier version from a history."""
    templates: tuple[int, ...] = ()
    """For each case, the index of its table in the text. Empty if each table is one case, because no table has rows."""
    row_files: tuple[str, ...] = ()
    """The files of rows that cases name, as paths relative to the suite's folder."""
    written: SuiteFile | None = None
    """The file on disk, if this text is its `standalone` form with a table for each row."""
    header: Table | None = field(default=None, compare=False, repr=False)
    """The content of the text outside its cases, or `None` if it is not known."""

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that prevent the suite from running."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The problems that do not prevent the suite from running."""
        return tuple(problem for problem in self.problems if problem.severity == "warning")

    @cached_property
    def standalone(self) -> SuiteFile:
        """The suite with a separate `[[cases]]` table for each row of a case, so that reading it needs no file of rows.

        Only the text changes: the suite and its cases are the same objects. A suite without rows is returned
        unchanged."""
        if not self.templates or self.suite is None:
            return self
        text = text_with_rows(self.text, self.suite.cases, self.templates)
        file_hash = _sha256(text.encode("utf-8", errors="surrogatepass"))
        return replace(self, text=text, hash=file_hash, templates=(), row_files=(), written=self)

    @cached_property
    def positions(self) -> Positions:
        """The lines of all tables and keys in the text. They are empty for a text that is not TOML."""
        if self.suite is None and _parsed(self.text) is None:
            return Positions({}, {}, (), 1)
        return scan(self.text)

    @cached_property
    def case_places(self) -> tuple[tuple[int, int], ...]:
        """Start and end of each case's block in the text, as indices of characters.

        Empty if the cases are not in blocks."""
        places = places_of_blocks(self.text, self.header)
        if self.suite is None or len(places) != max(self.templates, default=len(self.suite.cases) - 1) + 1:
            return ()
        return places

    @cached_property
    def parts(self) -> SuiteText | None:
        """The text split into cases and the text between them, for editing, or `None` if the text is not TOML."""
        try:
            return SuiteText.of(self.text)
        except SpliceError:
            return None

    def place_in_text(self, place: Place) -> Place:
        """Translate a place in the suite to the place in the file, where all rows of a case share one table."""
        return place_in_text(place, (self.written or self).templates)

    def line_of(self, place: Place) -> int:
        """Return the line of a place in the suite, or of the nearest enclosing place."""
        return (self.written or self).positions.line(self.place_in_text(place))

    def case_of(self, index: int, case_id: str) -> Case:
        """Return a case by the index of its `[[cases]]` table in the file.

        If the table has rows, `case_id` selects the row. If no row has the id, the first row is returned. Raises
        IndexError if there is no such table or if the suite has errors."""
        if self.suite is None:
            raise IndexError(f"{self.path} has no case {index}")
        return self.suite.cases[self.number_of(index, case_id)]

    def number_of(self, index: int, case_id: str) -> int:
        """Return the index in `suite.cases` of the case that `case_of` returns.

        Raises IndexError if there is no such table."""
        if not self.templates:
            return index
        number = self._numbers.get(case_id)
        if number is not None and self.templates[number] == index:
            return number
        if index not in self.templates:
            raise IndexError(f"{self.path} has no case {index}")
        return self.templates.index(index)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        assert self.suite is not None
        return {case.id: number for number, case in enumerate(self.suite.cases)}

    def case_lines(self, index: int) -> tuple[int, int]:
        """Return the first and last line (from 1) of a case's block.

        The block begins with the comment lines directly above its header. It ends before the next table header that is
        not below it, without trailing blank lines. Raises IndexError if the text has no such case."""
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

    If the file cannot be read or is not valid, the result has problems. No error is raised."""
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
        reason = str(error)
        if isinstance(error, OSError) and error.strerror:
            reason = error.strerror
        return _refused(path, f"cannot be read: {reason}")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line, message = utf_8_problem(content, error)
        problem = Problem(path, line, "", message, SAVE_AS_UTF_8, kind="not UTF-8")
        text = content.decode("utf-8", errors="replace")
        return SuiteFile(path, text, _sha256(content), None, (problem,))
    return with_images(_loaded(text, path, _sha256(content)))


def with_images(file: SuiteFile) -> SuiteFile:
    """Return a suite file to which the problems of its cases' images are added."""
    if file.suite is None or not any(case.images for case in file.suite.cases):
        return file
    from workbench.suite.case_images import image_findings  # lazy import: few suites have images

    found = with_findings(file, image_findings(file.suite, file.path.parent))
    if found is file:
        return file
    return replace(found, suite=None)


def parse_suite(text: str, path: Path) -> SuiteFile:
    """Read a suite from its text. `path` is the path of its file, which need not exist yet."""
    return _loaded(text, path, _sha256(text.encode("utf-8", errors="surrogatepass")))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _refused(path: Path, message: str, hint: str = "") -> SuiteFile:
    return SuiteFile(path, "", "", None, (Problem(path, None, "", message, hint),))


def _loaded(text: str, path: Path, file_hash: str) -> SuiteFile:
    if not text.removeprefix(BYTE_ORDER_MARK).strip():
        problem = Problem(path, 1, "", "the file is empty", _SMALLEST)
        return SuiteFile(path, text, file_hash, None, (problem,))
    try:
        raw = toml_of(text)
        # Later code walks the tables recursively and relies on a maximum depth.
        if nested_too_deeply(raw):
            raise RecursionError
    except (ValueError, RecursionError) as error:
        return SuiteFile(path, text, file_hash, None, (_not_toml(error, text, path),))
    with warnings.catch_warnings():
        # Python's warnings about regular expressions in checks and in tools' schemas must not be printed.
        warnings.simplefilter("ignore", FutureWarning)
        suite, findings, templates = _read(raw, path.parent)
    problems: tuple[Problem, ...] = ()
    # Finding the lines takes longer than parsing, and most suites have no problems.
    if findings:
        problems = _placed(findings, scan(text), path, raw)
    row_files = _row_files(case for _, case in tables(raw.get("cases")))
    header = None
    if is_list_of_tables(raw.get("cases")):
        header = {key: value for key, value in raw.items() if key != "cases"}
    return SuiteFile(path, text, file_hash, suite, problems, templates=templates, row_files=row_files, header=header)


def _row_files(cases: Iterable[Table]) -> tuple[str, ...]:
    names = []
    for case in cases:
        if isinstance(name := case.get("each"), str):
            names.append(name)
    return tuple(names)


def _names_in(folder: Path, ending: str) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir() if path.suffix == ending)
    except OSError:
        return []


def with_findings(file: SuiteFile, findings: Iterable[Finding]) -> SuiteFile:
    """Return the file with further problems. Problems that it already has at the same place are omitted."""
    known = {(problem.where, problem.message) for problem in file.problems}
    found = []
    for finding in CaseRows({}, file.templates, ("",) * len(file.templates)).as_written(findings):
        if (place_text(finding.place), finding.message) not in known:
            found.append(finding)
    if not found:
        return file
    as_written = file.written or file
    new = _placed(found, as_written.positions, file.path, _parsed(as_written.text) or {})
    return replace(file, problems=tuple(sorted([*file.problems, *new], key=_by_line)))


def _by_line(problem: Problem) -> int:
    return problem.line or 0


def _placed(findings: list[Finding], lines: Positions, path: Path, raw: Mapping[str, object]) -> tuple[Problem, ...]:
    names: dict[int, str] = {}
    for index, case in tables(raw.get("cases")):
        if isinstance(name := case.get("name"), str):
            names[index] = name
    problems = []
    for found in dict.fromkeys(findings):
        line = None
        if lines.are_known:
            line = lines.line(found.place)
        case_name = ""
        if len(found.place) > 1 and found.place[0] == "cases" and isinstance(found.place[1], int):
            case_name = names.get(found.place[1], "")
        where = place_text(found.place)
        problems.append(Problem(path, line, where, found.message, found.hint, found.severity, case_name, found.kind))
    if problems and not lines.are_known:
        problems.append(Problem(path, None, "", _UNKNOWN_LINES, "please report it with this file", "warning"))
    return tuple(sorted(problems, key=_by_line))


_UNKNOWN_LINES = "the lines of this file could not be found, so its problems have no line numbers"


def _parsed(text: str) -> dict[str, object] | None:
    try:
        raw = toml_of(text)
    except (ValueError, RecursionError):
        return None
    if nested_too_deeply(raw):
        return None
    return raw


def _read(raw: dict[str, object], folder: Path) -> tuple[Suite | None, list[Finding], tuple[int, ...]]:
    format_problem = _format_problem(raw)
    # If the file has another format or is not a suite at all, further problems would only mislead the user.
    if format_problem is not None and ("format" in raw or not {"name", "cases"} & raw.keys()):
        return None, [format_problem], ()
    findings: list[Finding] = []
    if format_problem is not None:
        findings.append(format_problem)
    findings += value_findings(raw)
    rows, of_rows = with_rows(raw, folder)
    raw, left_out = rows.raw, has_error(of_rows)
    # Each place has one problem. A refused value needs no second message about its type.
    refused = {finding.place for finding in findings}
    suite: Suite | None = None
    of_shape: Iterable[Finding] = ()
    try:
        suite = Suite.model_validate({"format": 1, **raw})
        _share_names(suite.cases)
    except ValidationError as error:
        of_shape = shape_findings(raw, error)
    of_cases: list[Finding] = []
    for finding in (*of_shape, *suite_rules(raw), *cases_rules(raw.get("cases"), rows.templates)):
        if finding.place not in refused and not (left_out and finding.kind == "no cases"):
            of_cases.append(finding)
    if suite is None and not findings and not of_cases:
        findings.append(Finding((), "this is not a suite of format 1"))
    of_cases += _advice(raw, suite, [*findings, *of_cases])
    findings += (*of_rows, *rows.as_written(of_cases))
    if has_error(findings):
        suite = None
    return suite, findings, rows.templates


def _share_names(models: Iterable[object]) -> None:
    """Replace equal sets of field names in pydantic models by one shared set, to save memory."""
    # pydantic keeps such a set for each model. A large suite has few distinct sets, and all sets take a fifth of a
    # case's memory. Sharing them is safe, because a copy of a model gets a new set.
    known: dict[frozenset[str], set[str]] = {}
    waiting = list(models)
    while waiting:
        item = waiting.pop()
        if isinstance(item, BaseModel):
            written = item.__pydantic_fields_set__
            if written:
                object.__setattr__(item, "__pydantic_fields_set__", known.setdefault(frozenset(written), written))
                for name in written:
                    value = item.__dict__[name]
                    if type(value) not in _PLAIN:
                        waiting.append(value)
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
    return Finding(("format",), f"must be the number 1, not {kind_of_value(value)}", "write format = 1")


def _advice(raw: dict[str, object], suite: Suite | None, findings: list[Finding]) -> Iterator[Finding]:
    """Yield advice on the suite. If only cases have errors, yield advice on the cases without errors."""
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

# The beginnings of tomllib's messages, with advice for the usual mistakes behind them.
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
        return Problem(path, None, "", "is nested too deeply", "use fewer levels of tables", kind="not TOML")
    message = str(error)
    place = _LINE_AND_COLUMN.search(message)
    line: int | None = None
    column = ""
    if place is not None:
        message = message[: place.start()]
        if place[1]:
            line, column = int(place[1]), f" (column {place[2]})"
        else:
            line, column = text.rstrip().count("\n") + 1, " (at the end of the file)"
    hint = ""
    for start, advised in _WAYS_OUT:
        if message.startswith(start):
            hint = advised
            break
    if message == "Invalid value":
        hint = _way_out_of_value(text, line)
    message = message.split(" for integer")[0]
    return Problem(path, line, "", f"is not TOML: {message}{column}", hint, kind="not TOML")


def _way_out_of_value(text: str, line: int | None) -> str:
    value = ""
    if line:
        value = text.split("\n")[line - 1].partition("=")[2].partition("#")[0].strip().rstrip(",")
    if value in ("True", "False"):
        return f"write {value.lower()}"
    if value in ("null", "None", "nil"):
        return "TOML has no null: leave the key out, or expect it with { equals_null = true }"
    if value:
        return "put text in quotes"
    return "write a value after ="


# To read a suite again after an edit, the text is split into the blocks of cases. Only new and changed blocks are read,
# together with everything outside the cases. The models and problems of the other cases are reused with their new
# lines. The whole file is read if a change could affect other cases, for example through ids or tags.

MAX_REPARSED_CASES = 8
"""Maximum number of changed cases that are read separately. With more of them, the whole file is read."""

_CASE = late_pattern(r"cases\[(\d+)\]")


@dataclass(frozen=True)
class _Reused:
    """The reuse of parsed cases after an edit.

    `cases` has, for each case of the new text, the index of the equal case in the old text, or `None` if it changed."""

    cases: tuple[int | None, ...]

    @property
    def fresh(self) -> tuple[int, ...]:
        return tuple(at for at, old in enumerate(self.cases) if old is None)


def reparse(file: SuiteFile, before: SuiteText, now: SuiteText) -> SuiteFile | None:
    """Read the edited text `now`. Unchanged cases are taken from `file`, whose text is `before`.

    The result equals that of `parse_suite`. Returns `None` if the whole text must be read again."""
    has_rows = any("each" in case for case in now.cases)
    # Two kinds of files are read again as a whole. If the first case with rows was added or the last one removed,
    # warnings about mocks change. If rows are faulty, their case is missing from the parsed cases.
    if has_rows and (file.suite is None or not file.templates or all(map(is_one_row, now.cases))):
        return None
    if has_rows != any("each" in case for case in before.cases):
        return None
    texts = changed_texts(before.header, now.header)
    reused = _reused(before, now)
    if texts is None or reused is None or any(map(_involves_several_cases, file.problems)):
        return None
    # Problems above the cases keep their lines only if the text above the cases keeps its lines.
    has_others = any(not problem.where.startswith("cases[") for problem in file.problems)
    if has_others and not have_same_lines(before.between[0], now.between[0]):
        return None
    fresh = reused.fresh
    dropped = set(range(len(before.cases))).difference(reused.cases)
    changed = [now.cases[at] for at in fresh] + [before.cases[at] for at in dropped]
    if affects_findings_elsewhere(now.header, changed):
        return None
    if not (_ids_differ(file, now, reused) and _names_differ(now, reused)):
        return None
    alone, templates, found = _read_alone(file, now, fresh)
    of_fresh = [problem for problem in found if problem.where.startswith("cases[")]
    if any(map(_involves_several_cases, found)):
        return None
    if fresh and alone is None and not has_error(of_fresh):
        return None
    problems = sorted((*_moved(file.problems, before, now, reused), *of_fresh), key=lambda problem: problem.line or 0)
    suite = None
    places: list[int] = []
    if not has_error(problems):
        if file.suite is None:
            return None
        of_now: list[Case] = []
        if has_rows:
            of_tables = _by_table(file.suite.cases, file.templates)
            of_fresh_tables = _by_table(alone or (), templates)
            for at, old in enumerate(reused.cases):
                made = of_fresh_tables[fresh.index(at)] if old is None else of_tables[old]
                of_now += made
                places += [at] * len(made)
            of_rows = [{case.id for case in of_now}, {case.name for case in of_now}]
            if any(len(names) < len(of_now) for names in of_rows):
                return None
        else:
            read = iter(alone or ())
            for old in reused.cases:
                of_now.append(next(read) if old is None else file.suite.cases[old])
        suite = file.suite.model_copy(update={**texts, "cases": tuple(of_now)})
        if tag_findings_may_differ(file.suite, suite):
            return None
    elif has_rows or now.header.get("aggregates") or table(now.header.get("gate")).get("quarantine"):
        return None
    digest = sha256(now.text.encode("utf-8", errors="surrogatepass")).hexdigest()
    again = SuiteFile(file.path, now.text, digest, suite, tuple(problems), header=now.header)
    if not has_rows:
        return again
    return replace(again, templates=tuple(places), row_files=_row_files(now.cases))


def _by_table(cases: Iterable[Case], templates: Sequence[int]) -> Sequence[Sequence[Case]]:
    """Group cases by the `[[cases]]` table that they come from. `templates` has the index of the table for each case.

    An empty `templates` means that each table is one case."""
    if not templates:
        return [(case,) for case in cases]
    found: list[list[Case]] = [[] for _ in range(max(templates) + 1)]
    for case, at in zip(cases, templates, strict=True):
        found[at].append(case)
    return found


def _reused(before: SuiteText, now: SuiteText) -> _Reused | None:
    """Match the cases of two texts.

    Return `None` if something outside the cases changed, or if too many cases changed."""
    if not (before.in_blocks and now.in_blocks and before.blocks and now.blocks):
        return None
    # In a text without keys outside the cases, a missing key such as `format` is reported at the first case. Another
    # case may be the first now.
    if not now.header:
        return None
    # Text between cases may now belong to another case, unless it consists of blank lines.
    gaps, gaps_before = now.between[1:], before.between[1:]
    if gaps != gaps_before and any(gap.strip() for gap in (*gaps_before, *gaps)):
        return None
    # An edit keeps the text objects of unchanged cases, so cases with identical text objects are the same.
    places = {id(block): at for at, block in enumerate(before.blocks)}
    if len(places) < len(before.blocks):
        return None
    cases = tuple(places.get(id(block)) for block in now.blocks)
    if cases.count(None) > MAX_REPARSED_CASES or len(set(cases) - {None}) + cases.count(None) < len(cases):
        return None
    return _Reused(cases)


def _ids_differ(file: SuiteFile, now: SuiteText, reused: _Reused) -> bool:
    """Return whether the ids of all cases are unique. The old text must have unique ids."""
    fresh = [_id(now.cases[at]) for at in reused.fresh]
    if not fresh:
        return True
    others: set[object] = set()
    for at, old in enumerate(reused.cases):
        if old is None:
            continue
        if file.suite is not None:
            others.add(file.suite.cases[old].id)
        else:
            others.add(_id(now.cases[at]))
    return len(set(fresh)) == len(fresh) and not others & set(fresh)


def _names_differ(now: SuiteText, reused: _Reused) -> bool:
    fresh = [name for at in reused.fresh if isinstance(name := now.cases[at].get("name"), str)]
    others = [case.get("name") for case in now.cases] if fresh else []
    return all(others.count(name) == 1 for name in fresh)


def _involves_several_cases(problem: Problem) -> bool:
    """Return whether the message of a problem, or the case that has it, depends on the order of several cases."""
    return problem.kind in ("several cases", "tool of the subject")


def _id(case: Table) -> object:
    name, written = case.get("name"), case.get("id")
    if isinstance(written, str):
        return written
    if isinstance(name, str):
        return derived_id(name)
    # Without a name, no id can be derived. The identity of the table stands in, which differs for every case.
    return id(case)


def _read_alone(
    file: SuiteFile, now: SuiteText, fresh: Sequence[int]
) -> tuple[tuple[Case, ...] | None, tuple[int, ...], tuple[Problem, ...]]:
    """Read some cases of a text, together with everything outside the cases.

    Returns the cases, the index of each case's table, and the problems. The cases are `None` if a problem is an error.
    Lines and indices in problems are those of the whole text."""
    if not fresh:
        return (), (), ()
    # The text to read lacks the other cases. `shifts` has the number of lines by which each case has moved up in this
    # text.
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
            problem = _shifted(problem, shifts[number], where)
        problems.append(problem)
    if read.suite is None:
        return None, (), tuple(problems)
    return read.suite.cases, read.templates, tuple(problems)


def _moved(problems: Sequence[Problem], before: SuiteText, now: SuiteText, reused: _Reused) -> list[Problem]:
    if not problems:
        return []
    starts_before, starts_now = _lines_before_pieces(before), _lines_before_pieces(now)
    now_at = {}
    for at, old in enumerate(reused.cases):
        if old is not None:
            now_at[old] = at
    moved: list[Problem] = []
    for problem in problems:
        which = _CASE.match(problem.where)
        if which is None:
            moved.append(_shifted(problem, _shift_outside(problem.line, starts_before, starts_now)))
        elif (now_there := now_at.get(int(which[1]))) is not None:
            shift = starts_now[2 * now_there + 1] - starts_before[2 * int(which[1]) + 1]
            moved.append(_shifted(problem, shift, f"cases[{now_there}]{problem.where[which.end() :]}"))
    return moved


def _lines_before_pieces(text: SuiteText) -> list[int]:
    """Return the number of lines before each piece of the text.

    Pieces alternate between cases and the text around them."""
    counts = []
    for gap, block in zip(text.between, text.blocks, strict=False):
        counts += [gap.count("\n"), block.count("\n")]
    return [0, *accumulate(counts)]


def _shift_outside(line: int | None, before: Sequence[int], now: Sequence[int]) -> int:
    # If the edit added or removed a case, there are only blank lines between the cases. Such lines have no problems.
    if line is None or len(before) != len(now):
        return 0
    # Gaps have the even indices. The gap before a line is the last gap that begins on an earlier line.
    gap = max((at for at in range(0, len(before), 2) if before[at] < line), default=0)
    return now[gap] - before[gap]


def _shifted(problem: Problem, lines: int, where: str | None = None) -> Problem:
    """Return a problem moved by a number of lines, and to the place `where` if it is given."""
    line = problem.line
    if line:
        line += lines
    if where is None:
        where = problem.where
    # A large suite may have a problem in each case, and `replace` takes five times as long.
    return Problem(
        problem.file, line, where, problem.message, problem.hint, problem.severity, problem.case, problem.kind
    )


LineOf = Callable[[str, str], int | None]
"""Returns the line (from 1) of a case by the path of its suite and its id, or `None` if the line is unknown."""


def suites_of(files: Iterable[SuiteFile]) -> dict[str, Suite]:
    suites = {}
    for file in files:
        if file.suite is not None:
            suites[str(file.path)] = file.suite
    return suites


def cases_by_id(suite: Suite | None) -> dict[str, Case]:
    """Return the cases of a suite by id, or an empty dictionary for an unreadable suite."""
    if suite is None:
        return {}
    return {case.id: case for case in suite.cases}


def unknown_line(suite: str, case_id: str) -> None:
    """Return `None`, which means that the line of the case is unknown.

    Pass this function where lines of cases are requested for suites without a file."""


def lines_of(files: Iterable[SuiteFile]) -> LineOf:
    """Return a function that finds the lines of the cases of some suites.

    Each file is searched on its first use."""
    waiting = {str(file.path): file for file in files}
    known: dict[str, dict[str, int]] = {}

    def line_of(suite: str, case_id: str) -> int | None:
        file = waiting.pop(suite, None)
        if file is not None and file.suite is not None:
            file = file.written or file
            lines = known[suite] = {}
            if file.suite is not None:
                # If the text has no known lines, no case has a line.
                for case, line in zip(file.suite.cases, _lines_of_cases(file), strict=False):
                    lines[case.id] = line
        return known.get(suite, {}).get(case_id)

    return line_of


def _lines_of_cases(file: SuiteFile) -> Iterator[int]:
    if not file.case_places:
        # `file.positions` would keep the lines of all tables and keys in memory.
        positions = scan(file.text)
        if positions.are_known and file.suite is not None:
            for index in range(len(file.suite.cases)):
                yield positions.line(place_in_text(("cases", index), file.templates))
        return
    lines = [*lines_of_blocks(file.text, [first for first, _ in file.case_places])]
    yield from [lines[table] for table in file.templates] or lines


def lines_of_blocks(text: str, starts: Iterable[int]) -> Iterator[int]:
    """Yield the line of each case's header. `starts` are the first characters of the cases' blocks in the text."""
    line, end = 1, 0
    for first in starts:
        # Above its header, a block has only comments.
        comments = COMMENTS.match(text, first)
        begin = comments.end() if comments is not None else first
        line += text.count("\n", end, begin)
        yield line
        end = begin
