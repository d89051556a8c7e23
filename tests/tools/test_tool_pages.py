"""Lists of tools that break the protocol: the good tools are used, and every fault is named with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.programs import grant_of
from tests.sampled_rows import first_rows
from tests.tools.conftest import SUITE_FILE, OpenServer
from workbench.config.program import Program
from workbench.suite.model import Case, Suite
from workbench.tools.answer import ServerError
from workbench.tools.mcp_server import McpServer
from workbench.tools.server_pool import ServerPool
from workbench.tools.tool_pages import issues_notice

GOOD = {"name": "good", "inputSchema": {"type": "object"}}


def tool(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **fields}


async def listed(open_server: OpenServer, *pages: Any) -> tuple[list[str], list[str], McpServer]:
    """Start a server with these pages; return the names of its tools, its issues as text, and the server."""
    server = open_server("python", "pages.py", json.dumps(pages), prefix="s_")
    await server.start()
    return [each.name for each in server.tools], [f"{each.outcome}: {each}" for each in server.issues], server


ODD_TOOLS: list[tuple[Any, str | None]] = [
    (GOOD, None),
    (
        tool("no_type", inputSchema={"properties": {"a": {"type": "string"}}}),
        "repaired: s_no_type: inputSchema.type is missing, and the protocol requires it",
    ),
    (
        tool("null_type", inputSchema={"type": None}),
        "repaired: s_null_type: inputSchema.type is null, where the protocol expects 'object'",
    ),
    (
        tool("text", inputSchema={"type": "string"}),
        "left out: s_text: inputSchema.type is \"string\", where the protocol expects 'object'",
    ),
    (tool("array", inputSchema=[]), "left out: s_array: inputSchema is [], where the protocol expects an object"),
    (
        tool("items", inputSchema={"type": "object", "properties": {"a": "string"}}),
        'left out: s_items: inputSchema.properties.a is "string", where the protocol expects an object',
    ),
    ({"name": "bare"}, "left out: s_bare: inputSchema is missing, and the protocol requires it"),
    (
        tool("hint", annotations={"readOnlyHint": "yes please"}),
        'repaired: s_hint: annotations.readOnlyHint is "yes please", where the protocol expects true or false',
    ),
    (
        tool("out", outputSchema={"type": "array"}),
        "repaired: s_out: outputSchema.type is \"array\", where the protocol expects 'object'",
    ),
    (tool("wordy", description=7), "left out: s_wordy: description is 7, where the protocol expects a string"),
    ({"inputSchema": {"type": "object"}}, "left out: tools[10].name is missing, and the protocol requires it"),
    ("junk", 'left out: tools[11] is "junk", where the protocol expects an object'),
    (tool("twice"), None),
    (tool("twice"), "duplicate: s_twice: name is listed twice, with the same definition"),
    (tool("twin", description="the first"), None),
    (tool("twin", description="the second"), "duplicate: s_twin: name belongs to two different tools"),
    (
        tool("yes", annotations={"readOnlyHint": "yes"}),
        'repaired: s_yes: annotations.readOnlyHint is "yes", where the protocol expects true or false',
    ),
    (
        tool("one", annotations={"destructiveHint": 0}),
        "repaired: s_one: annotations.destructiveHint is 0, where the protocol expects true or false",
    ),
]


async def test_good_tools_are_used_and_each_bad_one_is_named_with_its_field(open_server: OpenServer) -> None:
    names, issues, server = await listed(open_server, {"tools": [odd for odd, _ in ODD_TOOLS]})
    assert names == ["s_good", "s_no_type", "s_null_type", "s_hint", "s_out", "s_twice", "s_twin", "s_yes", "s_one"]
    assert sorted(issues) == sorted(issue for _, issue in ODD_TOOLS if issue)
    by_name = {each.name: each for each in server.tools}
    assert by_name["s_no_type"].parameters == {"properties": {"a": {"type": "string"}}, "type": "object"}
    assert by_name["s_hint"].annotations == by_name["s_yes"].annotations == {}
    assert by_name["s_twin"].description == "the first"
    # A repaired output schema refuses no answer.
    assert (await server.call("s_out", {})).content == "done"
    assert issues_notice("bench", server.issues).endswith("; and 12 more")


async def test_a_run_with_tools_of_such_a_server_has_a_notice(pool: ServerPool, program: Program) -> None:
    pages = json.dumps([{"tools": [GOOD, {"name": "bare"}]}])
    servers = [{"name": "bench", "command": ["python", "pages.py", pages]}]
    suite = Suite.model_validate({"format": 1, "name": "s", "servers": servers})
    grant = grant_of(suite, SUITE_FILE, program.environment)
    case = Case(id="c", name="c", user="u")
    toolbox = await pool.open_toolbox(suite, case, SUITE_FILE, execute=False, grant=grant)
    assert [each.name for each in toolbox.definitions] == ["good"]
    assert toolbox.notices[-1] == (
        "server 'bench' breaks the protocol in its list of tools: "
        "bare: inputSchema is missing, and the protocol requires it (left out)"
    )


MORE, LAST = {"tools": [tool("a")], "nextCursor": "8"}, {"tools": [tool("b")]}


@pytest.mark.parametrize(
    ("pages", "names", "issues"),
    first_rows(
        [
            pytest.param([MORE, LAST], ["s_a", "s_b"], [], id="two pages"),
            pytest.param(
                [MORE],
                ["s_a"],
                ['cut short: nextCursor "8" was sent before: it does not advance'],
                id="the same cursor",
            ),
            pytest.param(
                [{"tools": [tool("a")], "nextCursor": ""}],
                ["s_a"],
                ['cut short: nextCursor "" was sent before: it does not advance'],
                id="an empty cursor again",
            ),
            pytest.param([{"tools": [tool("a")], "nextCursor": ""}, LAST], ["s_a", "s_b"], [], id="an empty cursor"),
            pytest.param(
                [{"tools": [tool("a")], "nextCursor": ""}, "refused"], ["s_a"], [], id="an empty cursor that is refused"
            ),
            pytest.param(
                [MORE, "refused"],
                ["s_a"],
                ['cut short: nextCursor "8" is refused by the server that sent it: "Invalid cursor"'],
                id="a cursor that is refused",
            ),
            pytest.param(
                [MORE, {"tools": [tool("b")], "nextCursor": "9"}, {"tools": [tool("c")], "nextCursor": "8"}],
                ["s_a", "s_b", "s_c"],
                ['cut short: nextCursor "8" was sent before: it does not advance'],
                id="a circle",
            ),
            pytest.param(
                [MORE, {"tools": [tool("a")], "nextCursor": "9"}],
                ["s_a"],
                ['cut short: nextCursor "9" follows a page of tools that were all listed before'],
                id="other cursors to the same page",
            ),
            pytest.param(
                [{"tools": [tool("a")], "nextCursor": 5}],
                ["s_a"],
                ["cut short: nextCursor is 5, where the protocol expects a string"],
                id="a number as cursor",
            ),
            pytest.param(
                [*({"tools": [], "nextCursor": str(at)} for at in range(101)), LAST],
                [],
                ["cut short: nextCursor continues after 100 pages"],
                id="no end",
            ),
        ],
        6,
    ),
)
async def test_a_cursor_that_does_not_advance_ends_the_list(
    open_server: OpenServer, pages: list[Any], names: list[str], issues: list[str]
) -> None:
    assert (await listed(open_server, *pages))[:2] == (names, issues)


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ([{"tools": None}], "its answer to tools/list has null as `tools`, not a list"),
        (
            [{"tools": [], "_meta": 5}],
            "its answer to tools/list breaks the protocol: _meta is 5, where the protocol expects an object",
        ),
        (["refused"], "does not speak MCP as expected: Invalid cursor"),
    ],
)
async def test_a_list_that_is_none_is_refused(open_server: OpenServer, pages: list[Any], message: str) -> None:
    with pytest.raises(ServerError) as caught:
        await listed(open_server, *pages)
    assert message in str(caught.value)
