"""A value that a suite refers to by a variable's name is nowhere to be seen, however a server repeats it."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.programs import started
from tests.tools.conftest import PLANTED
from workbench.config.program import Program
from workbench.suite.model import Server
from workbench.tools.errors import ServerError
from workbench.tools.pool import ServerPool

PARROT = """
    import os, sys
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import CallToolResult, ResourceLink, Tool, ToolAnnotations

    token = os.environ.get("TOKEN", "")
    if "complain" in sys.argv:
        sys.exit(f"wrong token {token}")
    server = MCPServer("parrot")

    @server.tool(name=f"tool_{token}", description=f"Knows {token}", annotations=ToolAnnotations(title=token))
    def told(text: str = token) -> str:
        return text

    @server.tool()
    async def repeat(context: Context) -> CallToolResult:
        for half in (token[:9], token[9:]):
            os.write(2, half.encode())
        await context.report_progress(1, 2, f"with {token}")
        link = ResourceLink(name="x", uri=f"https://example.test/?key={token}")
        return CallToolResult(content=[link], structured_content={token: [token]})

    @server.tool()
    def fail() -> str:
        print(token)
        raise ToolError(token)

    server.run("stdio")
"""


def everything_in(folder: Path) -> str:
    return "".join(f"{file}{file.read_text()}" for file in sorted(folder.rglob("*")) if file.is_file())


async def test_a_planted_value_is_found_nowhere(pool: ServerPool, program: Program, tmp_path: Path) -> None:
    source = tmp_path / "suite" / "parrot.py"
    source.parent.mkdir()
    source.write_text(textwrap.dedent(PARROT))
    told: list[Any] = []
    server = await started(
        pool,
        source.with_name("suite.toml"),
        Server(name="parrot", command=("python", "parrot.py"), env={"TOKEN": "$SHOP_TOKEN"}),
    )
    told.append(server.tools)
    for tool in server.tools:
        arguments = {"text": PLANTED} if tool.name == "tool_$SHOP_TOKEN" else {}
        told.append(await server.call(tool.name, arguments, lambda *now: told.append(now)))
    with pytest.raises(ServerError) as complaint:
        await started(
            pool,
            source.with_name("suite.toml"),
            Server(name="sad", command=("python", "parrot.py", "complain"), env={"TOKEN": "${SHOP_TOKEN}"}),
        )
    with pytest.raises(ServerError) as missing:
        await started(pool, source.with_name("suite.toml"), Server(name="no", command=(PLANTED,)))
    told += [str(complaint.value), str(missing.value)]
    await pool.close()
    written = everything_in(program.folders.state) + everything_in(program.folders.log)
    assert "wrong token $SHOP_TOKEN" in written
    assert "[stdout] $SHOP_TOKEN\n" in written
    assert PLANTED not in written
    assert PLANTED not in repr(told)
    for place in ("Knows $SHOP_TOKEN", "with $SHOP_TOKEN", "key=$SHOP_TOKEN", '{"$SHOP_TOKEN":["$SHOP_TOKEN"]}'):
        assert place in repr(told)
