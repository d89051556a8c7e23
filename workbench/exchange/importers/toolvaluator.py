"""Import datasets of Toolvaluator: examples, in which the model decides once, and chains of several decisions.

`workbench.exchange.importers.scripts` has run the script that builds the datasets. A dataset in a JSON file has the
fields of a `dspy.Example` in each record."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from workbench.exchange.importers.conversations import (
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
from workbench.numerals import counted
from workbench.suite.render import Table, holds_null
from workbench.suite.toml_equality import toml_equal
from workbench.trajectory.events import JsonValue

_EXPECTED = ("expected_should_call", "expected_tool_name", "expected_arguments")


def _recognizes(source: Source) -> bool:
    first = source.beginning
    return source.root.has("toolvaluator") or (first.has("user_query") and any(map(first.has, _EXPECTED)))


def _read(source: Source) -> ImportedFile:
    notes = []
    for each in source.root.items_of("problems"):
        notes.append(not_imported(each.text_of("name"), each.text_of("error")))
    if not source.root.has("toolvaluator"):
        cases, others = collect_cases(partial(_example, record, (), "") for record in source.records)
        if not cases:
            raise first_refusal(others, "holds no example")
        return ImportedFile(cases, _top(), others)
    found = source.root.at("toolvaluator")
    top = _top()
    # A server that the suite can start lists its own tools. If it cannot be started, each case defines its tools.
    served: tuple[Table, ...] = ()
    listed = tuple(map(tool_of, found.items_of("tools")))
    if (server := found.get("server")) is not None and server.value is not None:
        top["servers"] = [_server(server, source.root)]
        served = listed
    elif listed:
        notes.append(Note("", "the server is an object of the script itself: its tools are written out"))
    makers: list[Callable[[], ImportedCase]] = []
    systems = {each.text_of("system_prompt") for each in (*found.items_of("examples"), *found.items_of("chains"))}
    system = systems.pop() if len(systems) == 1 else ""
    if system:
        top["system"] = system
    for example in found.items_of("examples"):
        makers.append(partial(_example, example, served, system))
    for number, chain in enumerate(found.items_of("chains"), start=1):
        makers.append(partial(_chain, chain, number, listed, system, served=bool(served)))
    made, others = collect_cases(makers)
    if not made:
        raise first_refusal([*notes, *others], "evaluates no dataset, and no variable holds a dataset")
    return ImportedFile(made, top, (*notes, *others))


def _top() -> Table:
    return {"limits": {"max_rounds": 1}, "grading": {"by": "decision", "published_report": True}}


def _server(server: Node, root: Node) -> Table:
    module, variable = server.need("module").text(), server.need("object").text()
    name = module.rpartition(".")[2]
    if not root.has("python"):
        return {"name": name, "module": module, "object": variable}
    code = f"from {module} import {variable}; {variable}.run()"
    table: Table = {"name": name, "command": [root.text_of("python"), "-c", code]}
    if cwd := root.text_of("cwd"):
        table["cwd"] = cwd
    return table


def _example(example: Node, served: tuple[Table, ...], system: str) -> ImportedCase:
    query = example.need("user_query").text()
    tool = example.text_of("tool_name") or example.text_of("expected_tool_name")
    if not tool:
        raise example.refused("names no tool")
    table: Table = {"name": case_name(query, example.place), "user": query, "offer": [tool]}
    notes: list[Note] = []
    if (own := example.text_of("system_prompt")) != system:
        table["system"] = own
    if example.has("tool_schema"):
        described = {"name": tool, "description": example.text_of("tool_description")}
        schema = example.value_of("tool_schema")
        defined = tool_of(Node({**described, "inputSchema": schema}, example.place))
        if tool not in tool_names(served):
            table["tools"] = [defined]
        elif not any(toml_equal(defined, each) for each in served):
            notes.append(
                Note(
                    example.place,
                    f"describes {tool} differently from the server, whose definition is offered",
                )
            )
    expected = example.value_of("expected_should_call")
    arguments = example.get("expected_arguments")
    mapped = [MappedPart("user_query", "user")]
    if expected is not None and not expected:
        if arguments is None or arguments.value != {}:
            notes.append(Note(example.place, "a call that should not be made is graded as one without arguments"))
        table["expect_no_calls"] = True
        return ImportedCase(example.place, table, (*mapped, MappedPart("no call", "expect_no_calls")), tuple(notes))
    if expected is None and not example.has("expected_should_call"):
        notes.append(Note(example.place, "does not state whether to call: here the call is expected"))
    call: Table = {"tool": example.text_of("expected_tool_name") or tool}
    if (args := _arguments(arguments, notes)) is not None:
        call["args"] = args
    table["ordered"] = [call]
    return ImportedCase(example.place, table, (*mapped, MappedPart("expected call", "ordered")), tuple(notes))


def _arguments(arguments: Node | None, notes: list[Note]) -> Table | None:
    if arguments is None or arguments.value is None:
        return None
    args: Table = {}
    for name, value in arguments.table().items():
        if value is None:
            args[name] = {"present": True}
        elif holds_null(value):
            args[name] = {"present": True}
            why = f"{name} contains null, which TOML lacks: only its presence is checked"
            notes.append(Note(arguments.place, why))
        else:
            args[name] = _plain(value)
    return args


def _plain(value: JsonValue) -> object:
    return {"equals": value} if isinstance(value, dict) else value


def _chain(chain: Node, number: int, listed: tuple[Table, ...], system: str, *, served: bool) -> ImportedCase:
    notes: list[Note] = []
    steps: list[Table] = []
    offered: dict[str, None] = {}
    for each in chain.need("steps").items():
        tool = each.need("expected_tool").text()
        offered[tool] = None
        step: Table = {}
        if query := each.text_of("initial_query"):
            step["user"] = query
        if each.value_of("system_prompt") is not None:
            step["system"] = each.text_of("system_prompt")
        step["tool"] = tool
        if (args := _arguments(each.get("expected_arguments"), notes)) is not None:
            step["args"] = args
        if each.value_of("mock_result") is not None:
            step["mock_result"] = each.value_of("mock_result")
        steps.append(step)
    if not steps or "user" not in steps[0]:
        raise chain.refused("its first step has no initial_query")
    table: Table = {"name": f"Chain {number}: {case_name(str(steps[0]['user']), chain.place)}", "offer": [*offered]}
    if (own := chain.text_of("system_prompt")) != system:
        table["system"] = own
    if not served:
        table["tools"] = [dict(tool) for tool in listed if tool["name"] in offered]
    mocks: list[Table] = []
    mocked = chain.at("mocks").table() if chain.has("mocks") else {}
    for tool, mock in mocked.items():
        made = Node(mock, f"{chain.place}.mocks.{tool}")
        if made.has("result"):
            mocks.append({"tool": tool, "result": made.value_of("result")})
        elif made.has("python"):
            mocks.append({"tool": tool, "python": made.text_of("python")})
        else:
            why = (
                "is code of the script: move it to a module as `function(arguments)`, and name it in a mock's `python`"
            )
            notes.append(Note(made.place, why))
    if mocks:
        table["mocks"] = mocks
    if served and any(step["tool"] not in mocked and "mock_result" not in step for step in steps):
        table["execute"] = True
        notes.append(Note(chain.place, "tools without a mock are really run, as in Toolvaluator: see `execute`"))
    table["steps"] = steps
    mapped = MappedPart(counted(len(steps), "step"), "steps")
    return ImportedCase(chain.place, table, (mapped,), tuple(notes))


TOOLVALUATOR = Format(_recognizes, _read, graded_as())
