"""Reads files of other tools: JSON, JSON lines, YAML and CSV. Each value knows its place in the file."""

from __future__ import annotations

import csv
import importlib
import json
import math
import re
import zipfile
from collections.abc import Collection, Iterable
from datetime import date, time
from functools import cached_property, partial
from io import BytesIO, StringIO
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from workbench.dataclasses import dataclass, json_text, parsed_json
from workbench.encoding import SAVE_AS_UTF_8, csv_limit, utf_8_problem
from workbench.limits import MAX_FILE_BYTES, MAX_FILE_VALUES, MAX_JSON_LEVELS, MAX_YAML_BYTES, MAX_YAML_NUMBER_CHARS
from workbench.trajectory.events import JsonValue

# Limits of imported files. A parsed file takes many times its size in memory, so its values are counted in the text
# before it is parsed.

_TOKENS_OF_A_VALUE = 3
"""The tokens of a key with a text as its value: the key, the value, and the comma after it."""
_TOKEN = re.compile(r'[\[{,]|"[^"]*+(?:"|\Z)')


class RefusedError(Exception):
    """A file, or a part of a file, cannot be imported.

    `place` is the position of the part, or empty if the whole file is refused. If `file` is given, the message begins
    with it. `reason` is the message without `file` and `place`."""

    def __init__(self, reason: str, place: str = "", file: Path | None = None) -> None:
        self.reason = reason
        self.place = place
        self.why = reason
        if file is not None:
            self.why = f"{file} {reason}"
        super().__init__(f"{place}: {self.why}" if place else self.why)


class BoundedJsonParser:
    """Parses the JSON texts of one file, up to a number of values for all texts together.

    The limit is checked before a text is parsed, because its values could fill the memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left = _TOKENS_OF_A_VALUE * MAX_FILE_VALUES

    def parsed(self, text: str) -> JsonValue:
        """Return the value of a JSON text. Raises RefusedError for too many values, ValueError for invalid JSON."""
        without_escapes = text.replace("\\\\", "").replace('\\"', "")
        self._left -= sum(1 for _ in islice(_TOKEN.finditer(without_escapes), self._left + 1))
        if self._left < 0:
            raise RefusedError(MAX_FILE_VALUES.reached(), file=self._path)
        value: JsonValue = parsed_json(text)
        return value


# `.eval` files of Inspect are zip archives with the parts of a log.

_STEP_BYTES = 4_096
"""The number of bytes that are unpacked at a time. A part may be larger than its archive declares."""
_ZSTANDARD = 93
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTANDARD)


def log_of_archive(path: Path, content: bytes) -> JsonValue:
    """Return the log in the archive of an `.eval` file, as the same log would be in a `.json` file.

    The message of a ValueError or RefusedError advises the user what to do."""
    how = f"convert it to .json: inspect log convert --to json --output-dir . {path.name}"
    few = BoundedJsonParser(path)
    try:
        with _archive(content) as archive:
            parts = {info.filename: info for info in archive.infolist()}
            # If the writing of a log was interrupted, the archive has a journal instead of a header.
            head = parts.get("header.json") or parts.get("_journal/start.json")
            if head is None:
                raise ValueError("the archive has no header.json, so it is not a log of Inspect")
            samples = []
            for name in sorted(parts):
                if name.startswith("samples/") and name.endswith(".json"):
                    samples.append(parts[name])
            if head.file_size + sum(part.file_size for part in samples) > MAX_FILE_BYTES:
                raise RefusedError(f"unpacked {MAX_FILE_BYTES.reached()}", file=path)
            log = few.parsed(_unpacked(archive, head))
            if not isinstance(log, dict):
                log = {}
            log["samples"] = [few.parsed(_unpacked(archive, part)) for part in samples]
            return log
    except RefusedError:
        raise
    except NotImplementedError as error:
        raise ValueError(f"is packed with Zstandard: install backports.zstd, or {how}") from error
    # Each compression method has its own errors for a broken archive.
    except Exception as error:
        raise ValueError(f"is an archive that cannot be unpacked ({error}): if it is a log, {how}") from error


def _unpacked(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> str:
    if part.compress_type not in _METHODS:
        raise ValueError(f"{part.filename} is compressed by a method that logs of Inspect do not use")
    with archive.open(part) as file:
        return b"".join(iter(partial(file.read, _STEP_BYTES), b"")).decode()


def _archive(content: bytes) -> zipfile.ZipFile:
    """Open a zip archive, which may be compressed with Zstandard.

    `zipfile` supports Zstandard from Python 3.14 on. In earlier versions, the package `backports.zstd` adds it."""
    try:
        module = importlib.import_module("backports.zstd.zipfile")
    except ImportError:
        module = zipfile
    found: zipfile.ZipFile = module.ZipFile(BytesIO(content))
    return found


Kind = Literal["json", "lines", "yaml", "csv"]


@dataclass(frozen=True)
class Node:
    """A value in a file, with its place there, such as `line 3.messages[0].role`.

    Methods raise RefusedError if the value does not have the required type."""

    value: JsonValue
    place: str = ""

    def get(self, key: str) -> Node | None:
        """Return a table's value under a key.

        Returns `None` if there is no value, if the value is null, or if the node is not a table."""
        if not isinstance(self.value, dict) or self.value.get(key) is None:
            return None
        return Node(self.value[key], self._place_of(key))

    def at(self, key: str) -> Node:
        """Return a table's value under a key. If there is no value, return a node whose value is `None`.

        Lookups can therefore be chained: `node.at("output").at("choices").value`."""
        return self.get(key) or Node(None, self._place_of(key))

    def _place_of(self, key: str) -> str:
        return f"{self.place}.{key}".lstrip(".")

    def first(self, *keys: str) -> Node | None:
        """Return the value under the first of `keys` for which the table has a value; `None` without such a key."""
        for key in keys:
            if (found := self.get(key)) is not None:
                return found
        return None

    def value_of(self, *keys: str) -> JsonValue:
        """Return the result of `first` as a bare value, without its node."""
        found = self.first(*keys)
        return None if found is None else found.value

    def need(self, key: str) -> Node:
        """Return a table's value under a key. Raises RefusedError if there is no value."""
        self.table()
        found = self.get(key)
        if found is None:
            raise self.refused(f"has no {key!r}")
        return found

    def has(self, *keys: str) -> bool:
        """Return whether the value is a table with a value under each of these keys."""
        return all(self.get(key) is not None for key in keys)

    def table(self) -> dict[str, JsonValue]:
        if not isinstance(self.value, dict):
            raise self.refused(f"must be a table, not {kind_of(self.value)}")
        return self.value

    def items(self) -> list[Node]:
        if not isinstance(self.value, list):
            raise self.refused(f"must be a list, not {kind_of(self.value)}")
        return [Node(value, f"{self.place}[{index}]") for index, value in enumerate(self.value)]

    def items_of(self, *keys: str) -> list[Node]:
        """Return the elements of the list that `first` finds under `keys`; empty if it finds no value."""
        found = self.first(*keys)
        return [] if found is None else found.items()

    def listed(self) -> list[Node]:
        """Return the elements of a list, or the node itself as the only element if it is not a list."""
        if isinstance(self.value, list):
            return self.items()
        return [self]

    def listed_of(self, *keys: str) -> list[Node]:
        """Return the elements of the list that `first` finds under `keys`; empty if it finds no value.

        A value that is not a list is returned as the only element."""
        found = self.first(*keys)
        return [] if found is None else found.listed()

    def other_keys(self, known: Collection[str]) -> list[str]:
        """Return the keys of a table that have a value and that the importer does not know."""
        others = []
        for key, value in self.table().items():
            if key not in known and value not in (None, "", [], {}):
                others.append(key)
        return others

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.refused(f"must be a text, not {kind_of(self.value)}")
        return self.value

    def text_of(self, *keys: str) -> str:
        """Return the first value under `keys` that is a text; an empty text if there is no such value."""
        for key in keys:
            if isinstance(found := self.at(key).value, str):
                return found
        return ""

    def parsed(self) -> Node:
        """Return a node with the value of a JSON text, or this node if its value is not a text."""
        if not isinstance(self.value, str):
            return self
        try:
            return Node(parsed_json(self.value), self.place)
        except ValueError as error:
            raise self.refused(f"is not JSON: {error}") from error

    def refused(self, reason: str) -> RefusedError:
        return RefusedError(reason, self.place)


def bare_values(nodes: Iterable[Node]) -> list[JsonValue]:
    return [node.value for node in nodes]


def texts_of(nodes: Iterable[Node], key: str) -> list[str]:
    """Return the texts under a key of several tables. Missing and empty texts are left out."""
    return list(filter(None, (node.text_of(key) for node in nodes)))


def placed_at(place: str, values: Iterable[JsonValue]) -> list[Node]:
    """Return values as nodes that all have the same place: the part of the file from which they were made."""
    return [Node(value, place) for value in values]


def has_type(nodes: Iterable[Node], types: Collection[str]) -> bool:
    return any(node.text_of("type") in types for node in nodes)


def holds_table(values: Iterable[JsonValue]) -> bool:
    return any(isinstance(value, dict) for value in values)


def as_text(value: JsonValue) -> str:
    """Return a text unchanged, an empty text for null, and any other value as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json_text(value)


def kind_of(value: JsonValue) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case str():
            return "a text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case _:
            return "a table"


@dataclass(frozen=True)
class Source:
    """The content of a file.

    `root` is the whole content, which for JSON lines and CSV is the list of records. `fields` maps meanings to the
    fields of records, if the user gave `--map`."""

    path: Path
    kind: Kind
    root: Node
    fields: dict[str, str] | None = None
    match: str | None = None
    """The user's text for the comparison of a reference's calls (see `workbench.exchange.importers.match`)."""

    @property
    def name(self) -> str:
        """The name for the suite that an import makes from the file."""
        return self.path.name.split(".")[0].replace("_", " ").replace("-", " ").strip().capitalize() or "Imported"

    line_numbers: tuple[int, ...] = ()
    """The line number of each record, for JSON lines and CSV."""

    columns: tuple[str, ...] = ()
    """The names in the first line, including columns without a value, for CSV."""

    @property
    def beginning(self) -> Node:
        """The first record, by which the format is recognized. Its value is `None` if there is no record."""
        return self.records[0] if self.records else Node(None)

    @cached_property
    def records(self) -> list[Node]:
        """The records of the file: the elements of its list, or the whole content as the only record."""
        records = self.root.listed()
        if not self.line_numbers:
            return records
        return [Node(each.value, f"line {number}") for each, number in zip(records, self.line_numbers, strict=True)]


def read_source(path: Path, fields: dict[str, str] | None = None) -> Source:
    """Read a JSON, JSON lines, YAML or CSV file.

    Raises RefusedError if the file is unreadable or has another format."""
    try:
        if path.is_dir():
            raise RefusedError("cannot be read: it is a folder", file=path)
        # A pipe is refused, because reading it could wait forever for its writer.
        if path.exists() and not path.is_file():
            raise RefusedError("cannot be read: it is a special file", file=path)
        if path.stat().st_size > MAX_FILE_BYTES:
            raise RefusedError(MAX_FILE_BYTES.reached(), file=path)
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RefusedError(f"cannot be read: {reason}", file=path) from error
    return source_of(path, content, fields)


def source_of(path: Path, content: bytes, fields: dict[str, str] | None = None) -> Source:
    """Parse the bytes of a JSON, JSON lines, YAML or CSV file.

    Raises RefusedError."""
    if content.startswith(b"PK\x03\x04"):
        try:
            return Source(path, "json", Node(_checked(log_of_archive(path, content))), fields)
        except ValueError as error:
            raise RefusedError(str(error)) from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, why = utf_8_problem(content, error)
        raise RefusedError(f"{why}: {SAVE_AS_UTF_8}", f"line {line}") from error
    if not text.strip():
        raise RefusedError("the file is empty")
    ending = path.suffix.lower()
    if ending in (".yaml", ".yml"):
        return Source(path, "yaml", Node(_yaml(text)), fields)
    if ending in _DELIMITERS:
        rows, numbers, columns = _rows(text, _delimiter(text, ending))
        return Source(path, "csv", Node(rows), fields, line_numbers=numbers, columns=columns)
    few = BoundedJsonParser(path)
    try:
        value = _checked(few.parsed(text))
        if ending in (".jsonl", ".ndjson"):  # the file has a single line
            return Source(path, "lines", Node([value]), fields, line_numbers=(1,))
        return Source(path, "json", Node(value), fields)
    except json.JSONDecodeError as error:
        lines: dict[int, str] = {}
        for number, written in enumerate(text.split("\n"), 1):
            if written.strip():
                lines[number] = written
        if len(lines) == 1 and error.lineno <= next(iter(lines)):
            raise RefusedError(f"is not JSON: {error.msg}", f"line {error.lineno}") from error
    except ValueError as error:
        raise RefusedError(f"is not JSON: {error}") from error
    # Many tools write JSON lines into a file called `.json`, so they are recognized by their content too.
    few = BoundedJsonParser(path)
    values: list[JsonValue] = []
    for at, each in lines.items():
        try:
            values.append(_checked(few.parsed(each)))
        except ValueError as problem:
            # If the first line is not JSON either, the file does not have JSON lines. Then the error in the whole text
            # is reported.
            place = f"line {at if values else _error_line(text)}"
            raise RefusedError(f"is not JSON: {problem}", place) from problem
    return Source(path, "lines", Node(values), fields, line_numbers=tuple(lines))


_DELIMITERS = {".csv": ",", ".tsv": "\t"}


def _delimiter(text: str, ending: str) -> str:
    first_line = text.partition("\n")[0]
    # Spreadsheets write semicolons in countries where a comma separates decimals.
    if ending == ".csv" and ";" in first_line and "," not in first_line:
        return ";"
    return _DELIMITERS[ending]


def _error_line(text: str) -> int:
    try:
        parsed_json(text)
    except json.JSONDecodeError as error:
        return error.lineno
    except ValueError:
        return 1
    return 1


def _rows(text: str, delimiter: str) -> tuple[JsonValue, tuple[int, ...], tuple[str, ...]]:
    try:
        reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
        head = [name.strip() for name in next(reader)]
        rows: list[JsonValue] = []
        numbers: list[int] = []
        count = len(head)
        for row in reader:
            if not row:
                continue
            count += len(row)
            if count > MAX_FILE_VALUES:
                raise RefusedError(MAX_FILE_VALUES.reached())
            # A row with too many values usually has an unquoted comma, which moves all later values to wrong columns.
            if len(row) > len(head):
                raise RefusedError(
                    f"has {len(row)} values, and the first line names {len(head)}", f"line {reader.line_num}"
                )
            rows.append({name: value for name, value in zip(head, row, strict=False) if value})
            numbers.append(reader.line_num)
    except csv.Error as error:
        if (limit := csv_limit(error)) is not None:
            raise RefusedError(limit.reached()) from error
        raise RefusedError(f"is not CSV: {error}") from error
    return rows, tuple(numbers), tuple(head)


def _yaml(text: str) -> JsonValue:
    try:
        import yaml
    except ImportError:
        raise RefusedError("is YAML: pip install 'toolcall-workbench[yaml]', or write it as JSON") from None
    if len(text) > MAX_YAML_BYTES:
        raise RefusedError(MAX_YAML_BYTES.reached())
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        def construct_scalar(self, node: Any) -> Any:
            if node.tag.endswith((":int", ":float")) and len(node.value) > MAX_YAML_NUMBER_CHARS:
                raise ValueError(MAX_YAML_NUMBER_CHARS.reached())
            return super().construct_scalar(node)

    try:
        value = yaml.load(text, Loader=Loader)
    # For a value that contradicts its tag, yaml raises various errors.
    except Exception as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or str(error)
        place = f"line {mark.line + 1}" if mark is not None else ""
        raise RefusedError(f"is not YAML: {why}", place) from error
    return _checked(value)


def _checked(value: object) -> JsonValue:
    """Return a value of a YAML file in JSON's types. Dates become texts.

    Raises RefusedError for a value that nests too deeply or contains too many values. Each use of a YAML alias counts,
    because aliases can expand a small file to billions of values."""
    count = 0

    def copied(value: object, level: int) -> JsonValue:
        nonlocal count
        count += 1
        if count > MAX_FILE_VALUES:
            raise RefusedError(MAX_FILE_VALUES.reached())
        if level > MAX_JSON_LEVELS:
            raise RefusedError(f"is {MAX_JSON_LEVELS.reached()}")
        match value:
            case dict():
                return {str(key): copied(inner, level + 1) for key, inner in value.items()}
            case list() | tuple() | set():
                return [copied(inner, level + 1) for inner in value]
            case float() if not math.isfinite(value):
                return str(value)
            case None | bool() | int() | float() | str():
                return value
            case date() | time():
                return value.isoformat()
            case _:
                return str(value)

    return copied(value, 0)
