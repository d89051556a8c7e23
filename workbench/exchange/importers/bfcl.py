"""Import rows with one turn from the Berkeley Function Calling Leaderboard.

The accepted values are in a separate file: `possible_answer/NAME` beside the rows, or `STEM.possible_answer.ENDING`.
docs/compatibility.md lists the differences to the leaderboard's scores."""

from __future__ import annotations

from dataclasses import replace

from workbench.exchange.importers.conversations import (
    Conversation,
    Format,
    ImportedCase,
    ImportedFile,
    MappedPart,
    Note,
    case_of,
    graded_as,
    imported_of,
    last_request,
    tool_table,
)
from workbench.exchange.importers.messages import conversation_of
from workbench.exchange.importers.source_files import Node, Source, holds_table, read_source
from workbench.limits import MAX_ACCEPTED_VALUES
from workbench.suite.render import Table, holds_null
from workbench.trajectory.events import JsonValue

_TYPES: dict[str, str | None] = {
    "dict": "object",
    "float": "number",
    "tuple": "array",
    "any": None,
    "HashMap": "object",
    "ArrayList": "array",
    "Array": "array",
    "String": "string",
    "long": "integer",
    "double": "number",
    "char": "string",
    "Boolean": "boolean",
    "": None,
}
_EMPTY: dict[JsonValue, JsonValue] = {"string": "", "any": "", "array": [], "tuple": [], "ArrayList": [], "Array": []}
"""The empty values that the leaderboard accepts for an optional parameter, by the parameter's declared type."""

_LEAVE_OUT = ""
"""Marks a parameter as optional when it is among the accepted values."""


def _recognizes(source: Source) -> bool:
    row = source.beginning
    return row.has("id", "function") and isinstance(row.value_of("question"), list)


def _read(source: Source) -> ImportedFile:
    answers = _answers(source)
    # Rows do not say to which category they belong, but the name of their file does.
    name = source.path.name
    any_call = "relevance" in name and "irrelevance" not in name
    made = imported_of(source.records, lambda row: _case(row, answers, "irrelevance" in name, any_call), "row")
    return replace(
        made, suite={"grading": {"by": "trajectory", "invalid_arguments": "note", "whole_numbers": "as BFCL"}}
    )


def _answers(source: Source) -> dict[str, Node]:
    """Return the accepted values by row id, from the separate file or from the rows themselves."""
    path = source.path
    rows = list(source.records)
    for beside in (path.parent / "possible_answer" / path.name, path.with_suffix(f".possible_answer{path.suffix}")):
        if beside.is_file() and beside.stat().st_size:
            rows += read_source(beside).records
    answers = {}
    for row in rows:
        if row.has("ground_truth"):
            answers[row.text_of("id")] = row.at("ground_truth")
    return answers


def _case(row: Node, answers: dict[str, Node], no_call: bool, any_call: bool) -> ImportedCase:
    turns = row.need("question").items()
    row_id = row.need("id").text()
    if len(turns) != 1:
        raise row.refused("has several turns, judged by the state of a simulation that a suite cannot run")
    functions = {}
    for each in row.need("function").listed():
        functions[each.need("name").text()] = each
    conversation = conversation_of(turns[0])
    tools = tuple(_tool(name, function) for name, function in functions.items())
    opening = Conversation(row.place, conversation.messages, conversation.system, tools, name=row_id)
    asked = case_of(opening, last_request(opening.messages))
    table = asked.table_without("expect_nothing_yet")
    # The leaderboard judges only the first answer, and executes no tools.
    table |= {"id": row_id, "limits": {"max_rounds": 1}}
    notes: list[Note] = []
    if row_id in answers:
        calls = [_call(functions, each) for each in answers[row_id].items()]
        table |= {"unordered": calls, "extra_calls": "forbid"} if calls else {"expect_no_calls": True}
        mapped = MappedPart("ground_truth", "unordered, no other calls")
        why = "texts are compared without case, blanks and punctuation, nearly as the leaderboard does"
        notes.append(Note(row.place, why))
    elif any_call:
        table["ordered"] = [{"tool": "*"}]
        mapped = MappedPart("relevance", "a call of any tool")
    elif no_call:
        table["expect_no_calls"] = True
        mapped = MappedPart("irrelevance", "expect_no_calls")
    else:
        raise row.refused(
            "has no accepted answers: put BFCL's file of accepted answers, which has the same name as this file, into "
            "the folder possible_answer/ next to this file"
        )
    before = MappedPart("question", "user"), MappedPart(f"{len(tools)} functions", "tools")
    return ImportedCase(row.place, table, (*before, mapped), tuple(notes))


def _tool(name: str, function: Node) -> Table:
    """Return a function as a tool. Dots in its name become `_`, because most providers allow no dots."""
    schema: dict[str, JsonValue] | None = None
    if (parameters := function.get("parameters")) is not None:
        converted = json_schema_of(parameters.table())
        assert isinstance(converted, dict)
        schema = converted
    return tool_table(_plain_name(function, name), function.text_of("description"), schema)


def _plain_name(node: Node, name: str) -> str:
    if not name:
        raise node.refused("is a function without a name")
    return name.replace(".", "_")


def json_schema_of(written: JsonValue) -> JsonValue:
    """Convert a schema of the leaderboard, with types of Python or Java, to JSON Schema."""
    if isinstance(written, list):
        return [json_schema_of(each) for each in written]
    if not isinstance(written, dict):
        return written
    schema = {key: json_schema_of(value) for key, value in written.items()}
    kind = written.get("type")
    if isinstance(kind, str) and kind in _TYPES:
        del schema["type"]
        if (meant := _TYPES[kind]) is not None:
            schema = {"type": meant, **schema}
    return schema


def _call(functions: dict[str, Node], answer: Node) -> Table:
    if len(answer.table()) != 1:
        raise answer.refused("must be one function with its parameters")
    ((name, _),) = answer.table().items()
    if name not in functions:
        raise answer.refused(f"names the function {name!r}, which the row does not have")
    args: Table = {}
    for parameter, accepted in answer.need(name).table().items() if answer.has(name) else ():
        node = Node(accepted, f"{answer.place}.{parameter}")
        checks = _checks(node.items())
        may_be_left_out = any(each.value == _LEAVE_OUT for each in node.items())
        declared = _declared(functions[name], "properties", parameter, "type")
        if may_be_left_out and isinstance(declared, str) and declared in _EMPTY:
            checks.append({"equals_text": _EMPTY[declared]})
        # If the schema requires a parameter, it may not be left out, even if the accepted values allow that.
        required = _declared(functions[name], "required")
        if isinstance(required, list) and parameter in required:
            may_be_left_out = False
        if checks:
            args[parameter] = _any_of(checks, node, optional=may_be_left_out)
    return {"tool": _plain_name(answer, name), "args": args, "only_args": True}


def _declared(function: Node, *keys: str) -> JsonValue:
    found = function.at("parameters")
    for key in keys:
        found = found.at(key)
    return found.value


def _checks(accepted: list[Node], *, in_table: bool = False) -> list[Table]:
    return [_check(each, in_table=in_table) for each in accepted if each.value != _LEAVE_OUT]


def _any_of(checks: list[Table], node: Node, *, optional: bool) -> Table:
    if len(checks) > MAX_ACCEPTED_VALUES:
        raise node.refused(MAX_ACCEPTED_VALUES.reached(count=len(checks)))
    check: Table = {"any_of": checks}
    if len(checks) == 1:
        check = dict(checks[0])
    if optional:
        check["optional"] = True
    return check


def _check(node: Node, *, in_table: bool = False) -> Table:
    value = node.value
    if value is None:
        return {"equals_null": True}
    if isinstance(value, dict):
        return _table_check(node)
    if isinstance(value, list) and (holds_table(value) or holds_null(value)):
        return {"same_elements": [_check(each) for each in node.items()], "in_order": True}
    # The leaderboard ignores case, spaces and punctuation in texts and in lists of texts. Lists inside tables are
    # compared exactly.
    if isinstance(value, str) or (isinstance(value, list) and not in_table):
        return {"equals_text": value}
    return {"equals": value, "cast": False}


def _table_check(node: Node) -> Table:
    """Return a check for a table. Each field of the accepted table lists the values that the field may have."""
    fields: Table = {}
    for name in node.table():
        listed = node.at(name).listed()
        if not listed:
            raise node.at(name).refused("lists no accepted values")
        optional = any(each.value == _LEAVE_OUT for each in listed)
        checks = _checks(listed, in_table=True)
        # The leaderboard accepts an empty text for an optional field.
        if optional:
            checks.append({"equals_text": ""})
        fields[name] = _any_of(checks, node.at(name), optional=optional)
    return {"has_fields": fields, "only_fields": True}


BFCL = Format(_recognizes, _read, graded_as())
