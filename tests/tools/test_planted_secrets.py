"""Secret values in a server's answers arrive unchanged, and appear in no log, error or listing."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.cli.forking import forked_python
from tests.programs import started
from tests.tools.conftest import PLANTED
from workbench.config.program import Program
from workbench.suite.server_model import Server
from workbench.tools.answer import ServerError
from workbench.tools.server_pool import ServerPool

PARROT = """
    import os, sys

    token = os.environ.get("TOKEN", "")
    if "complain" in sys.argv:
        sys.exit(f"wrong token {token}")

    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import CallToolResult, ResourceLink, Tool, ToolAnnotations

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


async def test_what_a_server_says_comes_in_as_it_is_and_goes_out_without_secrets(
    pool: ServerPool, program: Program, tmp_path: Path
) -> None:
    source = tmp_path / "suite" / "parrot.py"
    source.parent.mkdir()
    source.write_text(textwrap.dedent(PARROT))
    told: list[Any] = []
    server = await started(
        pool,
        source.with_name("suite.toml"),
        Server(name="parrot", command=tuple(forked_python("parrot.py")), env={"TOKEN": "$SHOP_TOKEN"}),
    )
    told.append(server.tools)
    for tool in server.tools:
        arguments = {"text": f"exactly {PLANTED}"} if tool.name == f"tool_{PLANTED}" else {}
        told.append(await server.call(tool.name, arguments, lambda *now: told.append(now)))
    for place in ("Knows {}", "with {}", "key={}", "exactly {}", '{{"{0}":["{0}"]}}'):
        assert place.format(PLANTED) in repr(told)
    with pytest.raises(ServerError) as complaint:
        await started(
            pool,
            source.with_name("suite.toml"),
            Server(name="sad", command=("python", "parrot.py", "complain"), env={"TOKEN": "${SHOP_TOKEN}"}),
        )
    with pytest.raises(ServerError) as missing:
        await started(pool, source.with_name("suite.toml"), Server(name="no", command=(PLANTED,)))
    await pool.close()
    written = everything_in(program.folders.state) + everything_in(program.folders.log)
    assert "wrong token $SHOP_TOKEN" in written
    assert "[stdout] $SHOP_TOKEN\n" in written
    assert "Knows $SHOP_TOKEN" in written
    assert PLANTED not in written + str(complaint.value) + str(missing.value)
