"""Import tests of the five-dimension evaluator from the output of its script, which `scripts` has run.

Users copy the evaluator's code and rename fields. A field is therefore recognized by words in its name. Lists of calls
and of keywords are also recognized by the type of their values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from workbench.exchange.importers.conversations import (
    NO_TOOLS,
    Format,
    ImportedCase,
    ImportedFile,
    MappedPart,
    Note,
    case_name,
    collect_cases,
    first_refusal,
    graded_as,
    not_imported,
    tool_names,
    tool_of,
)
from workbench.exchange.importers.source_files import Node, Source
from workbench.suite.render import Table, holds_null
from workbench.suite.settings import Limits
from workbench.trajectory.events import JsonValue

_REQUEST = (
    "user_message",
    "user_input",
    "user_query",
    "input_message",
    "input",
    "prompt",
    "query",
    "message",
    "question",
)
_CALLS = ("expected_calls", "expected_tool_calls", "expected_tools", "expectations")
_KEYWORDS = ("expected_response_contains", "expected_keywords", "response_contains", "keywords")
_ID = ("test_id", "id", "case_id")
_NAME = ("name", "title", "description")
_TOOL = ("tool_name", "tool", "name")
_REQUIRED = ("required_params", "required_parameters", "required")
_FORBIDDEN = ("forbidden_params", "forbidden_parameters", "forbidden")
_VALIDATORS = ("param_validators", "parameter_validators", "validators")
_LIMITS = ("max_tool_calls", "max_latency_ms")
_DEFAULTS = Limits()
"""The default limits of a suite. They equal the defaults of the evaluator."""


def _recognizes(source: Source) -> bool:
    return source.root.has("five_dimensions")


def _read(source: Source) -> ImportedFile:
    found = source.root.need("five_dimensions")
    notes = [not_imported(each.text_of("name"), each.text_of("error")) for each in source.root.items_of("problems")]
    tools = [tool_of(tool) for tool in found.items_of("tools")]
    cases, others = collect_cases(partial(_case, test, tool_names(tools)) for test in found.items_of("tests"))
    notes += others
    if not cases:
        raise first_refusal(notes, "makes no TestCase")
    suite: Table = {}
    if system := found.text_of("system"):
        suite["system"] = system
    if tools:
        suite["tools"] = tools
    return ImportedFile(cases, suite, tuple(notes))


def _case(test: Node, tools: list[str]) -> ImportedCase:
    used = {"should_not_call_tools", *_LIMITS}
    request = _field(test, _REQUEST, used)
    if request is None or not request.text().strip():
        raise test.refused(f"has no request: none of {', '.join(_REQUEST)} holds a text")
    name = _field(test, _NAME, used)
    table: Table = {"name": name.text() if name is not None else case_name(request.text(), test.place)}
    if (given_id := _field(test, _ID, used)) is not None:
        table["id"] = str(given_id.value)
    table["user"] = request.text()
    notes: list[Note] = []
    mapped = [MappedPart("the request", "user")]
    calls = _list(test, _CALLS, used, dict)
    if calls is not None and calls.value:
        expected = [_expected(call, notes) for call in calls.items()]
        # The evaluator ignores the order of calls.
        key = "ordered" if len(expected) == 1 else "unordered"
        table[key] = expected
        mapped.append(MappedPart("expected calls", key))
        if not tools:
            notes.append(Note(test.place, NO_TOOLS, "no tools"))
    if test.value_of("should_not_call_tools") is True:
        table["expect_no_calls"] = True
        mapped.append(MappedPart("should_not_call_tools", "expect_no_calls"))
    keywords = _list(test, _KEYWORDS, used, str)
    if keywords is not None and keywords.value:
        table["response_contains"] = [each.text() for each in keywords.items()]
        mapped.append(MappedPart("keywords", "response_contains"))
    limits: Table = {}
    for key in _LIMITS:
        value = test.value_of(key)
        if isinstance(value, int | float) and value != getattr(_DEFAULTS, key):
            limits[key] = value
    # `max_tool_calls` counts answers with calls. One final answer without calls follows them.
    if isinstance(rounds := limits.get("max_tool_calls"), int):
        limits["max_rounds"] = rounds + 1
    if limits:
        table["limits"] = limits
    if not {"ordered", "unordered", "expect_no_calls", "response_contains"} & table.keys():
        table["expect_nothing_yet"] = True
        notes.append(Note(test.place, "it expects no call and no keyword: the case expects nothing yet"))
    if others := test.other_keys(used):
        notes.append(not_imported(test.place, ", ".join(others)))
    return ImportedCase(test.place, table, tuple(mapped), tuple(notes))


def _field(test: Node, names: tuple[str, ...], used: set[str]) -> Node | None:
    for name in names:
        if name not in used and (found := test.get(name)) is not None and not isinstance(found.value, list | dict):
            used.add(name)
            return found
    return None


def _list(test: Node, names: tuple[str, ...], used: set[str], kind: type) -> Node | None:
    """Return the test's list under one of `names`, or else its only list of values of this type.

    `used` has the names of fields that were read before. Returns `None` if there is no such list."""
    of_kind = []
    for name, value in test.table().items():
        if name not in used and isinstance(value, list) and all(isinstance(each, kind) for each in value):
            of_kind.append(name)
    chosen = [name for name in names if name in of_kind]
    if not chosen:
        chosen = [name for name in of_kind if test.value_of(name)]
    if not chosen:
        return None
    used.add(chosen[0])
    return test.get(chosen[0])


def _expected(call: Node, notes: list[Note]) -> Table:
    tool = call.first(*_TOOL)
    if tool is None:
        raise call.refused("is an expected call without a tool")
    required = (call.first(*_REQUIRED) or Node({})).table()
    validators: dict[str, dict[str, JsonValue]] = {}
    for name, validator in (call.first(*_VALIDATORS) or Node({})).table().items():
        each = Node(validator, f"{call.place}.{name}")
        check = each.value_of("check")
        if isinstance(check, dict):
            validators[name] = _with_infinity(check)
        else:
            code = each.text_of("validator") or "a validator"
            why = f"the validator of {name} is not mapped: {code}; write it as a check with python"
            notes.append(Note(each.place, why))
    args: Table = {}
    for name in dict.fromkeys([*required, *validators]):
        checks = [*_value_checks(name, required, call, notes)]
        if name not in required and name in validators:
            args[name] = validators[name] | {"optional": True}
        elif name in validators and checks:
            args[name] = {"all_of": [*checks, validators[name]]}
        elif checks:
            (args[name],) = checks
    expected: Table = {"tool": tool.text()}
    if args:
        expected["args"] = args
    if forbidden := [each.text() for each in call.listed_of(*_FORBIDDEN)]:
        expected["forbidden_args"] = forbidden
    return expected


def _value_checks(name: str, required: dict[str, JsonValue], call: Node, notes: list[Note]) -> Iterator[object]:
    if name not in required:
        return
    value = required[name]
    if value is None:
        yield {"present": True}
    elif holds_null(value):
        notes.append(Note(call.place, f"the value of {name} is not mapped, because it contains null, which TOML lacks"))
    else:
        # A table could be taken for a check, so it is put into `equals`.
        yield {"equals": value} if isinstance(value, dict) else value


def _with_infinity(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Replace the texts `inf` and `-inf`, which the runner printed for open ends of ranges, by infinities."""
    found: dict[str, JsonValue] = {}
    for key, each in value.items():
        if isinstance(each, list) and key in ("all_of", "any_of", "none_of"):
            found[key] = [_with_infinity(part) for part in each if isinstance(part, dict)]
        elif isinstance(each, list) and key in ("range", "has_length"):
            found[key] = [float(end) if isinstance(end, str) else end for end in each]
        else:
            found[key] = each
    return found


DIMENSIONS = Format(
    _recognizes, _read, {"by": "dimensions", "dimensions": {"repeated_calls": "as published"}} | graded_as()
)
