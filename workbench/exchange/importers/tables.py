"""Import tables with a request and its expectations in each row.

The user maps the fields of the table to their meanings with `--map`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

from workbench.authoring.from_calls import case_with_expected_call
from workbench.exchange.importers.conversations import (
    Format,
    ImportedCase,
    ImportedFile,
    MappedPart,
    Note,
    case_name,
    imported_of,
)
from workbench.exchange.importers.source_files import Node, RefusedError, Source, holds_table
from workbench.suite.render import Table
from workbench.trajectory.events import JsonValue

MEANINGS = {
    "user": "the request",
    "tool": "the expected tool, or a list of them; an empty one expects no calls",
    "args": "the arguments of the expected tool, as a table or its JSON text",
    "id": "the id of the case",
    "name": "the name of the case",
    "system": "the system prompt",
    "tags": "tags: a list, or a text with commas",
    "answer": "a text that the answer contains",
    "skip": "why the case is skipped",
}
"""The meanings that `--map` can give to a field."""


def fields_of(option: str) -> dict[str, str]:
    """Parse the value of `--map`, such as `user=question,tool=expected_tool`. Raises RefusedError."""
    fields: dict[str, str] = {}
    for word in option.split(","):
        meaning, equals, field = word.partition("=")
        if not equals or not field or meaning not in MEANINGS or meaning in fields:
            raise RefusedError(
                f"--map cannot use {word!r}: write MEANING=FIELD, with each meaning at most once; "
                f"the meanings are {', '.join(MEANINGS)}"
            )
        fields[meaning] = field
    return fields


def _records(source: Source) -> list[Node]:
    if source.kind in ("lines", "csv") or isinstance(source.root.value, list):
        return source.records
    lists: list[Node] = []
    for key, value in source.root.table().items():
        if isinstance(value, list) and holds_table(value):
            lists.append(source.root.at(key))
    if len(lists) != 1:
        raise source.root.refused("must hold exactly one list of rows")
    return lists[0].items()


def _known_fields(rows: list[Node], columns: Iterable[str]) -> str:
    known: dict[str, None] = dict.fromkeys(columns)
    for row in rows:
        if isinstance(row.value, dict):
            known |= dict.fromkeys(row.value)
    return ", ".join(known)


def _recognizes(source: Source) -> bool:
    return source.fields is not None or source.kind == "csv"


def _read(source: Source) -> ImportedFile:
    fields = source.fields or {}
    rows = _records(source)
    if "user" not in fields:
        known = _known_fields(rows, source.columns)
        raise RefusedError(
            f"a table needs --map user=FIELD, which names the field with the request; the fields are: {known}"
        )
    if not rows:
        raise RefusedError("the table has no rows")
    named = []
    for meaning, field in fields.items():
        # A CSV record lacks empty cells, but the first line names all columns.
        if field in source.columns:
            continue
        parts = [field]
        if all(row.get(field) is None for row in rows):
            parts = field.split("+")
        named += [(meaning, part) for part in parts]
    for meaning, field in named:
        if not any(_at(row, field) is not None for row in rows):
            known = _known_fields(rows, source.columns)
            raise RefusedError(
                f"no row has the field {field!r}, which --map names as {meaning}; the fields are: {known}"
            )
    return imported_of(rows, partial(_case, fields=fields), "row")


_INDEX = re.compile(r"\[(\d+)\]")


def _at(row: Node, field: str) -> Node | None:
    """Return a row's value under a field; `None` if there is no value.

    Dots in the field's name lead into tables, and into each table of a list. `calls[0].tool` and `calls.0.tool` take
    one element of a list. `prompt+question` joins the texts of two fields."""
    # A column's name may have a dot, so the whole name is tried first.
    if (whole := row.get(field)) is not None:
        return whole
    if "+" in field:
        return _joined(row, field)
    return _below(row, _INDEX.sub(r".\1", field).split("."))


def _below(node: Node, path: list[str]) -> Node | None:
    if not path:
        return None if node.value is None else node
    # A cell of CSV may hold a list or a table as its JSON text.
    if isinstance(node.value, str) and node.value.lstrip()[:1] in ("[", "{"):
        node = node.parsed()
    key, *rest = path
    if not isinstance(node.value, list):
        return _below(node.at(key), rest)
    if key.isdecimal():
        elements = node.items()
        return _below(elements[int(key)], rest) if int(key) < len(elements) else None
    # A missing value stays in the list as `None`, because the arguments of a call are found by the index of its tool.
    found = [_below(each, path) for each in node.items()]
    if found and not any(found):
        return None
    values: list[JsonValue] = []
    for each in found:
        values.append(None if each is None else each.value)
    return Node(values, f"{node.place}.{'.'.join(path)}")


def _joined(row: Node, field: str) -> Node | None:
    parts = filter(None, (_at(row, part) for part in field.split("+")))
    values = [each.value for part in parts for each in part.listed()]
    return Node(values, f"{row.place}.{field}") if values else None


def _text(node: Node) -> str:
    if isinstance(node.value, list):
        return "\n\n".join(filter(None, (each.text().strip() for each in node.items())))
    return node.text()


def _case(row: Node, fields: dict[str, str]) -> ImportedCase:
    row.table()
    asked = _at(row, fields["user"])
    if asked is None or not _text(asked).strip():
        raise row.refused(f"has no request: the field {fields['user']!r} is missing or empty")
    given: dict[str, Node] = {}
    for meaning, field in fields.items():
        if (found := _at(row, field)) is not None:
            given[meaning] = found
    name = _text(given["name"]) if "name" in given else case_name(_text(asked), row.place)
    table: Table = {"name": name}
    if "id" in given:
        table["id"] = _cell_text(given["id"])
    table["user"] = _text(asked)
    for meaning in ("system", "skip"):
        if meaning in given:
            table[meaning] = _text(given[meaning])
    if (tags := given.get("tags")) is not None:
        table["tags"] = list(map(_cell_text, tags.items())) if isinstance(tags.value, list) else _split(tags)
    if "answer" in given:
        table["response_contains"] = list(map(_cell_text, given["answer"].listed()))
    notes = _expect(table, row, fields, given)
    # If a field inside a column is mapped, the whole column counts as used.
    used = set(fields.values())
    for field in fields.values():
        used |= {re.split(r"[.\[]", part)[0] for part in field.split("+")}
    left = [key for key in row.table() if key not in used]
    if left:
        notes.append(Note(row.place, f"fields without a meaning in --map: {', '.join(left)}"))
    mapped = tuple(MappedPart(fields[meaning], meaning) for meaning in given)
    return ImportedCase(row.place, table, mapped, tuple(notes))


def _expect(table: Table, row: Node, fields: dict[str, str], given: dict[str, Node]) -> list[Note]:
    notes: list[Note] = []
    if "tool" not in fields:
        if "answer" not in given:
            table["expect_nothing_yet"] = True
            notes.append(Note(row.place, "no tool is mapped: the case expects nothing yet", "expects nothing yet"))
        return notes
    tools = _tools(given["tool"]) if "tool" in given else []
    if not tools:
        table["expect_no_calls"] = True
        return notes
    args = given.get("args")
    if args is None:
        table["ordered"] = [{"tool": tool} for tool in tools]
        return notes
    listed = args.parsed().listed()
    if len(listed) != len(tools):
        raise args.refused(f"has arguments of {len(listed)} calls, and the tool field names {len(tools)}")
    calls: list[object] = []
    # `case_with_expected_call` makes sure that arguments that look like checks are compared as values.
    for tool, each in zip(tools, listed, strict=True):
        if each.value is None:
            calls.append({"tool": tool})
            continue
        made = case_with_expected_call({}, tool, each.parsed().table())["ordered"]
        assert isinstance(made, list)
        calls += made
    table["ordered"] = calls
    return notes


def _tools(node: Node) -> list[str]:
    """Return the names of tools in a list, in the JSON text of a list, or in a single text.

    An element that is a table has the name in its field `name`."""
    if isinstance(node.value, str) and node.value.lstrip().startswith("["):
        node = node.parsed()
    names = []
    for each in node.listed():
        names.append((each.first("name", "tool", "tool_name", "toolName") or each).text().strip())
    return list(filter(None, names))


def _split(node: Node) -> list[str]:
    return list(filter(None, map(str.strip, _cell_text(node).split(","))))


def _cell_text(node: Node) -> str:
    if isinstance(node.value, bool) or not isinstance(node.value, str | int):
        return node.text()
    return str(node.value)


TABLE = Format(_recognizes, _read)
