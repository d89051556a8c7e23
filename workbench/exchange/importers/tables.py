"""Tables of home-made sets: a request in each row, and its expectations. The user says which field is which."""

from __future__ import annotations

from functools import partial

from workbench.authoring.from_calls import case_expecting
from workbench.exchange.importers.conversations import (
    Format,
    Imported,
    ImportedCase,
    Mapped,
    Note,
    imported_of,
    name_of,
)
from workbench.exchange.importers.source_files import Node, RefusedError, Source, holds_table
from workbench.suite.render import Table

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


def fields_of(words: str) -> dict[str, str]:
    """Read `user=question,tool=expected_tool`, the value of `--map`. Raises RefusedError."""
    fields: dict[str, str] = {}
    for word in words.split(","):
        meaning, equals, field = word.partition("=")
        if not equals or not field or meaning not in MEANINGS or meaning in fields:
            raise RefusedError(f"--map has {word!r}: write MEANING=FIELD, each once, with {', '.join(MEANINGS)}")
        fields[meaning] = field
    return fields


def _records(source: Source) -> list[Node]:
    """Return the rows of a file: its elements, or those of the one list of tables that a table holds."""
    if source.kind in ("lines", "csv") or isinstance(source.root.value, list):
        return source.records
    lists: list[Node] = []
    for key, value in source.root.table().items():
        if isinstance(value, list) and holds_table(value):
            lists.append(source.root.at(key))
    if len(lists) != 1:
        raise source.root.refused("holds no list of rows, or several")
    return lists[0].items()


def _known_fields(rows: list[Node]) -> str:
    known: dict[str, None] = {}
    for row in rows:
        if isinstance(row.value, dict):
            known |= dict.fromkeys(row.value)
    return ", ".join(known)


def _recognizes(source: Source) -> bool:
    return source.fields is not None or source.kind == "csv"


def _read(source: Source) -> Imported:
    fields = source.fields or {}
    rows = _records(source)
    if "user" not in fields:
        known = _known_fields(rows)
        raise RefusedError(f"a table needs --map user=FIELD, the field with the request, one of: {known}")
    for meaning, field in fields.items():
        if not any(_at(row, field) is not None for row in rows):
            known = _known_fields(rows)
            raise RefusedError(f"no row has the field {field!r}, which --map names as {meaning}; there are: {known}")
    return imported_of(rows, partial(_case, fields=fields), "row")


def _at(row: Node, field: str) -> Node | None:
    """Return a row's value under a field; dots in the field's name lead into tables."""
    # A column may have a dot in its name, so the whole name comes first.
    if (whole := row.get(field)) is not None:
        return whole
    *path, last = field.split(".")
    for key in path:
        row = row.at(key)
    return row.get(last)


def _case(row: Node, fields: dict[str, str]) -> ImportedCase:
    row.table()
    asked = _at(row, fields["user"])
    if asked is None or not asked.text().strip():
        raise row.refused(f"has no request: the field {fields['user']!r} is missing or empty")
    given: dict[str, Node] = {}
    for meaning, field in fields.items():
        if (found := _at(row, field)) is not None:
            given[meaning] = found
    name = given["name"].text() if "name" in given else name_of(asked.text(), row.place)
    table: Table = {"name": name}
    if "id" in given:
        table["id"] = _said(given["id"])
    table["user"] = asked.text()
    for meaning in ("system", "skip"):
        if meaning in given:
            table[meaning] = given[meaning].text()
    if (tags := given.get("tags")) is not None:
        table["tags"] = list(map(_said, tags.items())) if isinstance(tags.value, list) else _split(tags)
    if "answer" in given:
        table["response_contains"] = list(map(_said, given["answer"].listed()))
    notes = _expect(table, row, fields, given)
    # A field inside a table stands for all of its column.
    used = {field.split(".")[0] for field in fields.values()} | set(fields.values())
    left = [key for key in row.table() if key not in used]
    if left:
        notes.append(Note(row.place, f"fields without a meaning in --map: {', '.join(left)}"))
    mapped = tuple(Mapped(fields[meaning], meaning) for meaning in given)
    return ImportedCase(row.place, table, mapped, tuple(notes))


def _expect(table: Table, row: Node, fields: dict[str, str], given: dict[str, Node]) -> list[Note]:
    notes: list[Note] = []
    if "tool" not in fields:
        if "answer" not in given:
            table["expect_nothing_yet"] = True
            notes.append(Note(row.place, "no field is its tool: the case expects nothing yet", "expects nothing yet"))
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
    # Written as the form writes a call, so that arguments which look like checks stay values.
    for tool, each in zip(tools, listed, strict=True):
        made = case_expecting({}, tool, each.parsed().table())["ordered"]
        assert isinstance(made, list)
        calls += made
    table["ordered"] = calls
    return notes


def _tools(node: Node) -> list[str]:
    """Return names of tools: of a list, of its JSON text, or of one name. Tables have theirs under `name`."""
    if isinstance(node.value, str) and node.value.lstrip().startswith("["):
        node = node.parsed()
    names = []
    for each in node.listed():
        names.append((each.first("name", "tool", "tool_name") or each).text().strip())
    return list(filter(None, names))


def _split(node: Node) -> list[str]:
    return list(filter(None, map(str.strip, _said(node).split(","))))


def _said(node: Node) -> str:
    if isinstance(node.value, bool) or not isinstance(node.value, str | int):
        return node.text()
    return str(node.value)


TABLE = Format(_recognizes, _read)
