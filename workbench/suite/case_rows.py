"""Expands a case with the key `each` into one case for each row, before other code reads the cases.

The texts of such a case have placeholders for columns. Each text is parsed once, and each row only fills in its values.
Parts without placeholders are the same objects in all rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import JsonValue

from workbench.dataclasses import dataclass, json_text
from workbench.numerals import counted
from workbench.startup import late_pattern
from workbench.suite.model import Case, derived_id
from workbench.suite.problems import (
    Finding,
    Place,
    did_you_mean,
    has_error,
    in_backticks,
    quoted,
    table,
    tables,
    warning,
)
from workbench.suite.render import block_text, holds_null, one_line, suite_text, to_toml_data
from workbench.suite.suite_text import SuiteText

if TYPE_CHECKING:
    from workbench.suite.row_files import Row, Rows

Table = dict[str, object]
Fill = Callable[["Row"], object]
"""A function that returns a value with the columns of a row filled in."""

_ReadText = Callable[[str, Place, bool], Fill | None]
"""A function that reads a text at its place. The last argument says whether a value there may be a check."""

ID_COLUMN: Final = "id"

_BRACES = late_pattern(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
COLUMN = late_pattern(r"\{row\.([^{}]+)\}")
"""A column in a mock. Without `row.`, `{city}` would be an argument of the call."""

NO_ROW: Final[Mapping[str, JsonValue]] = MappingProxyType({})

_TEXTS = frozenset({"name", "user", "system", "content"})
"""Keys whose values stay texts, whatever the column contains."""
_VALUES = frozenset({"args", "result", "response", "response_contains"})
"""Keys below which columns are filled in at any depth."""
_CHECKS = frozenset({"ordered", "unordered", "disallowed", "steps", "final", "response", "variants"})
_HOLDERS = frozenset({"messages", "setup", "ordered", "unordered", "disallowed", "steps", "final", "variants"})
"""Keys of a case that hold tables with keys of `_TEXTS` and `_VALUES`."""
_WITH_BRACES = frozenset({"each", "tools"})
"""Keys in which braces name no columns: the rows themselves, and tools' schemas."""
_FILLED: Final = "`name`, `user`, `system`, `messages`, `response`, `response_contains`, `args` and `result`"
_OUTSIDE: Final = ("python", "judged")
"""Checks that import code or need a judge. Rows cannot change them."""


@dataclass(frozen=True)
class CaseRows:
    """A suite's parsed TOML, in which a case with the key `each` is replaced by one case for each row.

    `templates` has, for each case, the index of its `[[cases]]` table in the file. It is empty if no case has rows.
    `labels` has a description of each case's row, for messages."""

    raw: Table
    templates: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()

    def as_written(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Convert findings about the expanded cases to findings about the cases in the file.

        A finding that concerns all rows of a case is yielded once."""
        if not self.templates:
            yield from findings
            return
        # A message that all rows share concerns the case. Any other message names its rows.
        rows: dict[tuple[Finding, bool], list[int]] = {}
        for finding in findings:
            at = _case_of(finding.place)
            if at is None or not self.labels[at]:
                rows.setdefault((self._at_template(finding), False), [])
            else:
                rows.setdefault((self._at_template(finding), True), []).append(at)
        shown: dict[tuple[Place, str], int] = {}
        for (finding, _), cases in rows.items():
            number = shown[finding.place, finding.severity] = shown.get((finding.place, finding.severity), 0) + 1
            if number > _MESSAGES_SHOWN and cases:
                continue
            if cases and len(cases) < self.templates.count(self.templates[cases[0]]):
                others = f" and {counted(len(cases) - 1, 'other')}" if len(cases) > 1 else ""
                finding = replace(finding, message=f"{finding.message}, in {self.labels[cases[0]]}{others}")
            yield finding

    def _at_template(self, finding: Finding) -> Finding:
        return replace(finding, place=place_in_text(finding.place, self.templates))


_MESSAGES_SHOWN = 3
"""Maximum number of messages about rows at one place of a case. Ten thousand rows may each have a fault."""


def _case_of(place: Place) -> int | None:
    if len(place) > 1 and place[0] == "cases" and isinstance(place[1], int):
        return place[1]
    return None


def place_in_text(place: Place, templates: Sequence[int]) -> Place:
    """Translate a place in the expanded suite to the place in the file.

    `templates` has, for each expanded case, the index of its `[[cases]]` table in the file."""
    at = _case_of(place)
    if at is None or at >= len(templates):
        return place
    return ("cases", templates[at], *place[2:])


def with_rows(raw: Table, folder: Path) -> tuple[CaseRows, list[Finding]]:
    """Expand the cases of a suite that have rows. Return the expanded suite and the findings about rows and columns.

    A case is left out if its rows cannot be read or if it names a missing column. Its findings are errors."""
    if not any("each" in case for _, case in tables(raw.get("cases"))):
        return CaseRows(raw), []
    cases: list[object] = []
    templates: list[int] = []
    labels: list[str] = []
    findings: list[Finding] = []
    of_suite = _columns_of_mocks(raw.get("mocks"))
    for index, mock in tables(raw.get("mocks")):
        if names := _columns_of_mocks(mock.get("when")):
            message = f"columns stay as written in `when` of a mock of the suite: {in_backticks(sorted(names))}"
            findings.append(warning(("mocks", index, "when"), message, "write the mock into the case"))
    written = cast("list[object]", raw["cases"])
    for index, case in enumerate(written):
        if not isinstance(case, dict) or "each" not in case:
            cases.append(case)
            templates.append(index)
            labels.append("")
            continue
        made, found = _cases_of(case, ("cases", index), folder, of_suite)
        findings += found
        for row_case, label in made:
            cases.append(row_case)
            templates.append(index)
            labels.append(label)
    if all(map(is_one_row, written)):
        templates = []
    return CaseRows({**raw, "cases": cases}, tuple(templates), tuple(labels)), findings


def is_one_row(case: object) -> bool:
    """Return whether a case stays a single case: it has no rows, or one row with an id in the suite itself."""
    each = table(case).get("each", [{ID_COLUMN: ""}])
    return isinstance(each, list) and len(each) == 1 and ID_COLUMN in table(each[0])


def _cases_of(
    case: Table, place: Place, folder: Path, of_suite: frozenset[str]
) -> tuple[list[tuple[Table, str]], list[Finding]]:
    from workbench.suite.row_files import RowsError, rows_of  # lazy import: few suites have rows

    at_each = (*place, "each")
    try:
        rows = rows_of(case["each"], folder)
    except RowsError as error:
        at_row = at_each if error.index is None else (*at_each, error.index)
        return [], [Finding(at_row, str(error), error.hint)]
    if isinstance(case.get("name"), str) and case["name"]:
        template = _Template(case, place, rows.columns)
    else:
        # Row ids are derived from the case's name. A case without a name is kept, so that later rules report the
        # missing name.
        return [({key: value for key, value in case.items() if key != "each"}, "")], []
    ids, found = _ids(rows, at_each)
    findings = [*template.findings, *found, *_missing(rows, template, at_each)]
    if not has_error(findings):
        findings += _outside_checks(rows, template)
    if has_error(findings):
        return [], findings
    if not template.used | of_suite & frozenset(rows.columns):
        message = "no text of the case names a column, so all rows ask the same"
        findings.append(warning(at_each, message, f"write {{{rows.columns[0]}}} into `user`"))
    elif unused := [name for name in rows.columns if name not in {*template.used, *of_suite, ID_COLUMN}]:
        few = in_backticks(unused[:_MESSAGES_SHOWN]) + ", …" * (len(unused) > _MESSAGES_SHOWN)
        findings.append(warning(at_each, f"no text of the case names {few}", "name the column, or remove it"))
    cases, names = [], dict[str, int]()
    for at, (row, row_id) in enumerate(zip(rows.rows, ids, strict=True)):
        made = template.filled(row, row_id)
        label = f"{rows.place(at)} ({row_id})"
        first = names.setdefault(cast("str", made["name"]), at)
        if first != at and len(names) == at:
            message = f"two rows have the name {quoted(cast('str', made['name']))}: {label} and {rows.place(first)}"
            findings.append(warning((*place, "name"), message, "name a column in it that differs"))
        cases.append((made, label))
    return cases, findings


def _ids(rows: Rows, place: Place) -> tuple[list[str], list[Finding]]:
    if ID_COLUMN not in rows.columns:
        return [str(number) for number in range(1, len(rows.rows) + 1)], []
    ids: dict[str, int] = {}
    for at, row in enumerate(rows.rows):
        where = place if rows.lines else (*place, at)
        value = row.get(ID_COLUMN)
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            hint = "give every row a text or a whole number, or remove the column: rows are then numbered"
            return [], [Finding(where, f"{rows.place(at)} has no `id` that can be part of a case's id", hint)]
        first = ids.setdefault(str(value), at)
        if first != at:
            message = f"two rows have the id {quoted(str(value))}: {rows.place(first)} and {rows.place(at)}"
            return [], [Finding(where, message, "give one of them another id")]
    return list(ids), []


def _missing(rows: Rows, template: _Template, place: Place) -> Iterator[Finding]:
    if rows.file.lower().endswith(".csv"):
        return
    for at, row in enumerate(rows.rows):
        for name in sorted(template.used - row.keys()):
            where = place if rows.lines else (*place, at)
            yield Finding(where, f"{rows.place(at)} has no `{name}`, which the case names", "every row needs it")
            return


def _outside_checks(rows: Rows, template: _Template) -> Iterator[Finding]:
    for name, place in template.of_checks.items():
        for at, row in enumerate(rows.rows):
            kind = _outside_check(row[name])
            if kind is not None:
                message = f"{rows.place(at)}: the value of `{name}` is a check with `{kind}`"
                hint = "write the check into the suite, and only the values that it needs into the rows"
                yield Finding(place, message, hint)
                return


def _outside_check(value: JsonValue) -> str | None:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            for kind in _OUTSIDE:
                if kind in one:
                    return kind
            waiting += one.values()
    return None


class _Template:
    """A case whose texts are parsed into words and placeholders. `used` are the columns of the placeholders."""

    def __init__(self, case: Table, place: Place, columns: Sequence[str]) -> None:
        self.findings: list[Finding] = []
        self.used: frozenset[str] = frozenset()
        self.of_checks: dict[str, Place] = {}
        """The columns whose values are checks or parts of checks, each with a place in the case that uses it."""
        self._columns = columns
        self._case = case
        name = cast("str", case["name"])
        self._id = case.get("id", derived_id(name))
        fills: dict[str, Fill] = {}
        for key, value in case.items():
            fill = self._of_key(key, value, (*place, key))
            if fill is not None:
                fills[key] = fill
        self._fills = fills
        self._names_rows = any(match[1] is not None for match in _BRACES.finditer(name))

    def filled(self, row: Row, row_id: str) -> Table:
        """Return the case with the values of a row. The key `each` of the returned case holds only this row."""
        made = {key: fill(row) for key, fill in self._fills.items()}
        if not self._names_rows:
            made["name"] = f"{made.get('name', self._case['name'])}: {row_id}"
        if isinstance(self._id, str) and self._id:
            made["id"] = f"{self._id}/{row_id}"
        own = row if ID_COLUMN in row else {ID_COLUMN: row_id, **row}
        return {"cluster": self._id, **self._case, **made, "each": [own]}

    def _of_key(self, key: str, value: object, place: Place) -> Fill | None:
        if key in _HOLDERS:
            return self._of_calls(value, place, checks=key in _CHECKS)
        if key == "response" and isinstance(value, dict) and value.keys().isdisjoint(_OUTSIDE):
            return self._of_names(value, place, self._of_text, checks=True)
        if key in _TEXTS or key in _VALUES:
            # If `user` describes a conversation, it is a table that contains checks.
            return self._of_value(value, place, self._reader(key), checks=key in _CHECKS or isinstance(value, dict))
        if key == "mocks":
            return self._of_mocks(value, place)
        if key not in _WITH_BRACES:
            self._warn_of_columns(value, place)
        return None

    def _of_calls(self, value: object, place: Place, *, checks: bool) -> Fill | None:
        """Parse a part of the case that describes calls. Only some of its keys may name columns.

        For example, `args` may name columns, and `tool` may not. Returns `None` if the part names no column."""
        if isinstance(value, list):
            return _joined_list(
                value, [self._of_calls(item, (*place, at), checks=checks) for at, item in enumerate(value)]
            )
        if not isinstance(value, dict):
            self._warn_of_columns(value, place)
            return None
        fills: dict[str, Fill | None] = {}
        for key, inner in value.items():
            at = (*place, key)
            if key == "mock_result":
                self._of_value(inner, at, self._of_mock_text)
            elif key == "args":
                fills[key] = self._of_names(inner, at, self._of_text, checks=checks)
            elif key in _TEXTS or key in _VALUES:
                fills[key] = self._of_value(inner, at, self._reader(key), checks=checks)
            else:
                fills[key] = self._of_calls(inner, at, checks=checks)
        return _joined_table(value, fills)

    def _reader(self, key: str) -> _ReadText:
        return self._of_words if key in _TEXTS else self._of_text

    def _of_value(self, value: object, place: Place, read: _ReadText, *, checks: bool = False) -> Fill | None:
        """Parse a value.

        All its texts may name columns, except in checks that import code or need a judge. Returns `None` if the value
        names no column."""
        if isinstance(value, str):
            return read(value, place, checks)
        if isinstance(value, list):
            parts = [self._of_value(item, (*place, at), read, checks=checks) for at, item in enumerate(value)]
            return _joined_list(value, parts)
        if not isinstance(value, dict):
            return None
        if checks and not value.keys().isdisjoint(_OUTSIDE):
            self._leave(value, place)
            return None
        parts_of: dict[str, Fill | None] = {}
        for key, inner in value.items():
            at = (*place, key)
            if key == "has_fields":
                parts_of[key] = self._of_names(inner, at, read, checks=checks)
            else:
                # `equals` compares a whole table, so tables inside it are not checks.
                parts_of[key] = self._of_value(inner, at, read, checks=checks and key != "equals")
        return _joined_table(value, parts_of)

    def _of_names(self, value: object, place: Place, read: _ReadText, *, checks: bool) -> Fill | None:
        """Parse a table whose keys are names of arguments, fields or checks.

        An argument may have the name of a check, such as `python`. The table itself is therefore never read as a check.
        Returns `None` if the table names no column."""
        if not isinstance(value, dict):
            return self._of_value(value, place, read, checks=checks)
        parts = {key: self._of_value(inner, (*place, key), read, checks=checks) for key, inner in value.items()}
        return _joined_table(value, parts)

    def _of_words(self, text: str, place: Place, checks: bool) -> Fill | None:
        fill = self._of_text(text, place, checks)
        if fill is None:
            return None
        return lambda row: text_of(cast("JsonValue", fill(row)))

    def _of_text(self, text: str, place: Place, checks: bool) -> Fill | None:
        if "{" not in text and "}" not in text:
            return None
        parts: list[str | _Column] = []
        end = 0
        for match in _BRACES.finditer(text):
            if match.start() > end:
                parts.append(text[end : match.start()])
            end = match.end()
            if match[0] in ("{{", "}}"):
                parts.append(match[0][0])
            elif match[1] is None:
                self.findings.append(Finding(place, f"a single `{match[0]}` names no column", _DOUBLE))
            elif self._knows(match[1], place):
                parts.append(_Column(match[1]))
        if end < len(text):
            parts.append(text[end:])
        if len(parts) == 1 and isinstance(parts[0], _Column):
            return self._typed(parts[0].name, place, checks=checks)

        def fill_text(row: Row) -> str:
            texts = []
            for part in parts:
                texts.append(part if isinstance(part, str) else text_of(row[part.name]))
            return "".join(texts)

        return fill_text

    def _typed(self, name: str, place: Place, *, checks: bool) -> Fill:
        if checks:
            self.of_checks.setdefault(name, place)
        return lambda row: row[name]

    def _knows(self, name: str, place: Place, prefix: str = "") -> bool:
        if name in self._columns:
            self.used |= {name}
            return True
        columns = in_backticks(self._columns[:_COLUMNS_SHOWN]) + ", …" * (len(self._columns) > _COLUMNS_SHOWN)
        hint = did_you_mean(name, self._columns)
        if not hint:
            hint = f"the columns are {columns}"
            if not prefix:
                hint += f"; {_DOUBLE}"
        self.findings.append(Finding(place, f"there is no column {quoted(name)}", hint))
        return False

    def _of_mocks(self, mocks: object, place: Place) -> Fill | None:
        """Parse the conditions of mocks, and check the columns in their answers.

        Answers are filled in during the run, when the call's arguments are known too. Returns `None` if no condition
        names a column."""
        if not isinstance(mocks, list):
            return None
        parts: list[Fill | None] = []
        for at, mock in enumerate(mocks):
            fills: dict[str, Fill | None] = {}
            for key, value in table(mock).items():
                if key == "when":
                    fills[key] = self._of_names(value, (*place, at, key), self._of_mock_text, checks=True)
                elif key in ("result", "results"):
                    self._of_value(value, (*place, at, key), self._of_mock_text)
            parts.append(_joined_table(table(mock), fills))
        return _joined_list(mocks, parts)

    def _of_mock_text(self, text: str, place: Place, checks: bool) -> Fill | None:
        names = [match[1] for match in COLUMN.finditer(text)]
        known = [self._knows(name, place, "row.") for name in names]
        if not names or not all(known):
            return None
        if checks:
            self.of_checks.setdefault(names[0], place)
        return lambda row: with_columns(text, row)

    def _warn_of_columns(self, value: object, place: Place) -> None:
        if isinstance(value, str):
            key = next(part for part in reversed(place) if isinstance(part, str))
            for match in _BRACES.finditer(value):
                if match[1] in self._columns:
                    message = f"`{key}` takes no columns: {match[0]} stays as written"
                    self.findings.append(warning(place, message, f"columns are filled in {_FILLED}"))
                    return
        for at, inner in enumerate(value) if isinstance(value, list) else table(value).items():
            self._warn_of_columns(inner, (*place, at))

    def _leave(self, check: Table, place: Place) -> None:
        for kind in _OUTSIDE:
            written = check.get(kind)
            for match in _BRACES.finditer(written) if isinstance(written, str) else ():
                if match[1] is not None and match[1].removeprefix("row.") in self._columns:
                    message = f"`{kind}` is left as written: {{{match[1]}}} is no column here"
                    why = "a row changes nothing that a suite imports or asks"
                    self.findings.append(warning((*place, kind), message, why))


_COLUMNS_SHOWN = 8
_DOUBLE: Final = "write {{ for a brace that is meant, }} for the closing one"


@dataclass(frozen=True, slots=True)
class _Column:
    name: str


def _joined_list(value: list[object], parts: Sequence[Fill | None]) -> Fill | None:
    if not any(parts):
        return None
    pairs = list(zip(value, parts, strict=True))

    def fill_list(row: Row) -> list[object]:
        items = []
        for item, fill in pairs:
            items.append(item if fill is None else fill(row))
        return items

    return fill_list


def _joined_table(value: Table, parts: Mapping[str, Fill | None]) -> Fill | None:
    fills = {key: fill for key, fill in parts.items() if fill is not None}
    if not fills:
        return None
    return lambda row: {**value, **{key: fill(row) for key, fill in fills.items()}}


def text_of(value: JsonValue) -> str:
    """Return a column's value inside a text: a text unchanged, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json_text(value)


def with_columns(value: Any, row: Row) -> Any:
    """Return a value of a mock in which placeholders are replaced by the values of a row.

    A text that consists of one placeholder becomes the column's value with its type. In a longer text, the value
    becomes text."""
    if isinstance(value, list):
        return [with_columns(item, row) for item in value]
    if isinstance(value, dict):
        return {key: with_columns(item, row) for key, item in value.items()}
    if not isinstance(value, str) or not row:
        return value
    alone = COLUMN.fullmatch(value)
    if alone is not None:
        return row.get(alone[1], value)
    return COLUMN.sub(lambda match: text_of(row[match[1]]) if match[1] in row else match[0], value)


def filled_table(case: Case) -> Table:
    """Return a case that was made from a row of `each` as a table without `each`, as if it had been written by hand.

    Raises ValueError if a value has a null, which TOML lacks."""
    written = to_toml_data(case)
    del written["each"]
    if "mocks" in written:
        written["mocks"] = with_columns(written["mocks"], case.row)
    return written


def _columns_of_mocks(mocks: object) -> frozenset[str]:
    names: set[str] = set()
    waiting: list[object] = [mocks]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            names.update(match[1] for match in COLUMN.finditer(value))
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
    return frozenset(names)


def text_with_rows(text: str, cases: Sequence[Case], templates: Sequence[int]) -> str:
    """Return a suite's text in which each row is a separate case.

    The key `each` of a new case holds only the case's row. Each new case keeps the layout and comments of its
    original."""
    parts = SuiteText.of(text)
    pieces: list[list[str]] = [[] for _ in parts.cases]
    written: dict[int, tuple[str, str] | None] = {}
    tables_of: list[object] = []
    for case, at in zip(cases, templates, strict=True):
        if case.each is None or isinstance(case.each, str):
            tables_of.append(parts.cases[at])
            if parts.in_blocks:
                pieces[at].append(parts.blocks[at])
            continue
        row = _row_text(case.row)
        tables_of.append({**parts.cases[at], "each": [row]})
        if parts.in_blocks:
            if at not in written:
                written[at] = _around_rows(parts, at)
            around = written[at]
            if around is None:
                pieces[at].append(block_text(("cases",), {**parts.cases[at], "each": [row]}, of_array=True))
            else:
                pieces[at].append(one_line([row]).join(around))
    if not parts.in_blocks:
        return suite_text({**parts.header, "cases": tables_of})
    joined = ["\n\n".join(of_case) for of_case in pieces]
    return "".join(chain.from_iterable(zip_longest(parts.between, joined, fillvalue="")))


_MARK: Final = "rows of this case \u241e"


def _around_rows(parts: SuiteText, position: int) -> tuple[str, str] | None:
    block = parts.with_case(position, {**parts.cases[position], "each": _MARK}).blocks[position]
    before, mark, after = block.partition(one_line(_MARK))
    if not mark or _MARK in after:
        return None
    return before, after


def _row_text(row: Row) -> Table:
    from workbench.suite.row_files import JSON_COLUMN_SUFFIX

    written: Table = {}
    for name, value in row.items():
        # TOML has no null, so a value with a null is written as JSON. A column whose name has this ending is always
        # read as JSON.
        if name.endswith(JSON_COLUMN_SUFFIX) or holds_null(value):
            written[name + JSON_COLUMN_SUFFIX] = json.dumps(value, ensure_ascii=False)
        else:
            written[name] = value
    return written
