"""Server objects in a module of the suite's folder: both kinds of the SDK and fastmcp's, and their errors."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from tests.programs import started
from tests.tools.conftest import QUICK, SERVERS, SUITE_FILE
from workbench.config.program import Program
from workbench.suite.server_model import Server
from workbench.tools.answer import ServerError, ToolAnswer
from workbench.tools.mcp_server import McpServer
from workbench.tools.server_pool import ServerPool

WORKSHOP = Server(name="shop", module="sdk_workshop", object="server", prefix="shop_")
ADD = {"a": 1, "b": 2}

FASTMCP = """
    import logging
    from contextlib import asynccontextmanager
    from pathlib import Path
    from fastmcp import Context, FastMCP

    @asynccontextmanager
    async def lifespan(server):
        with Path(__file__).with_name("life").open("a") as life:
            life.write("begun\\n")
            life.flush()
            yield
            life.write("ended\\n")

    mcp = FastMCP("bench", lifespan=lifespan)

    @mcp.tool(annotations={"readOnlyHint": True})
    def add(a: int, b: int) -> int:
        logging.getLogger("fastmcp.bench").error("adding")
        return a + b

    @mcp.tool
    async def count(context: Context) -> str:
        await context.report_progress(1, 2, "half")
        return "counted"

    @mcp.tool
    def fail() -> str:
        raise ValueError("out of stock")
"""

AWKWARD = """
    import threading
    from mcp.server.mcpserver import MCPServer

    mcp = MCPServer("awkward")
    calls = []

    @mcp.tool()
    def calls_so_far() -> int:
        calls.append(1)
        return len(calls)

    @mcp.tool()
    async def block() -> str:
        threading.Event().wait()

    @mcp.tool()
    def half() -> str:
        return "a\\ud800b"

    @mcp.tool()
    def flood() -> str:
        return "x" * 33 * 2**20
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, source in {"with_fastmcp": FASTMCP, "awkward": AWKWARD}.items():
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
    return tmp_path


async def start(pool: ServerPool, folder: Path, module: str, **keys: str) -> McpServer:
    return await started(pool, folder / "suite.toml", Server.model_validate({"name": "mine", "module": module, **keys}))


async def start_error(pool: ServerPool, folder: Path, source: str, **keys: str) -> str:
    (folder / "broken.py").write_text(textwrap.dedent(source))
    with pytest.raises(ServerError) as caught:
        await start(pool, folder, "broken", **keys)
    assert str(caught.value).endswith(f"(module: broken:{keys.get('object', 'mcp')} in {folder})")
    return str(caught.value)


async def test_an_mcpserver_is_listed_and_called(pool: ServerPool) -> None:
    server = await started(pool, SUITE_FILE, WORKSHOP)
    add = {tool.name: tool for tool in server.tools}["shop_add"]
    assert (add.annotations, add.server) == ({"readOnlyHint": True}, "shop")
    assert await server.call("shop_add", ADD) == ToolAnswer("3")
    told: list[str | None] = []
    await server.call("shop_count", {"to": 2}, lambda _progress, _total, message: told.append(message))
    assert told == ["step 1", "step 2"]
    answers = await asyncio.gather(*(server.call("shop_add", {"a": n, "b": 1}) for n in range(20)))
    assert [answer.content for answer in answers] == [str(n + 1) for n in range(20)]


async def test_a_low_level_server_is_listed_to_its_last_page_and_its_results_are_checked(pool: ServerPool) -> None:
    server = await started(pool, SUITE_FILE, Server(name="catalogue", module="catalogue", object="server"))
    assert [tool.name for tool in server.tools] == [f"tool_{number}" for number in range(60)]
    assert await server.call("tool_0", {}) == ToolAnswer('{"count":7}')
    assert (await server.call("tool_1", {})).content.startswith("Invalid structured content")
    assert await server.call("tool_2", {}) == ToolAnswer("tool_2 is out of stock", is_error=True, code=-32000)


@pytest.mark.slow
async def test_a_fastmcp_is_listed_and_called_within_its_lifespan(pool: ServerPool, folder: Path) -> None:
    server = await start(pool, folder, "with_fastmcp")
    assert {tool.name: tool.annotations for tool in server.tools}["add"] == {"readOnlyHint": True}
    assert await server.call("add", ADD) == ToolAnswer("3")
    told: list[float] = []
    assert await server.call("count", {}, lambda progress, *_: told.append(progress)) == ToolAnswer("counted")
    assert told == [1.0]
    assert await server.call("fail", {}) == ToolAnswer("Error calling tool 'fail': out of stock", is_error=True)
    assert (folder / "life").read_text() == "begun\n"
    await pool.close()
    assert (folder / "life").read_text() == "begun\nended\n"


@pytest.mark.parametrize(
    ("source", "keys", "said"),
    [
        ("1 / 0", {}, "broken:mcp cannot be loaded from .*: ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(3)", {}, "broken:mcp cannot be loaded from .*: SystemExit: 3"),
        ("import no_such_module", {}, "No module named 'no_such_module'"),
        ("", {}, "broken:mcp does not exist: name an MCPServer, a Server or a FastMCP with the key `object`"),
        ("app = object()", {"object": "app"}, "broken:app is not an MCP server but of type object: name an MCPServer"),
    ],
)
async def test_what_holds_no_server_is_one_plain_sentence(
    pool: ServerPool, folder: Path, source: str, keys: dict[str, str], said: str
) -> None:
    error = await start_error(pool, folder, source, **keys)
    assert error.startswith("server 'mine' cannot be started: ")
    assert re.search(said, error)


async def test_a_server_that_fails_while_it_begins_says_why(pool: ServerPool, folder: Path) -> None:
    source = """
        from contextlib import asynccontextmanager
        from mcp.server.mcpserver import MCPServer

        @asynccontextmanager
        async def lifespan(server):
            raise OSError("no database")
            yield

        mcp = MCPServer("x", lifespan=lifespan)
    """
    assert "cannot be started: OSError: no database" in await start_error(pool, folder, source)


async def test_a_module_that_never_loads_is_given_up(program: Program, folder: Path) -> None:
    pool = ServerPool(program, replace(QUICK, start_s=0.3))
    error = await start_error(pool, folder, "import threading; threading.Event().wait()")
    assert "did not answer within 0.3 s" in error


async def test_a_tool_that_blocks_holds_up_nobody_but_its_own_server(
    pool: ServerPool, program: Program, folder: Path
) -> None:
    blocked = await start(pool, folder, "awkward")
    shop = await started(pool, SUITE_FILE, WORKSHOP)
    call = asyncio.create_task(blocked.call("block", {}))
    for _ in range(20):
        assert await shop.call("shop_add", ADD) == ToolAnswer("3")
    assert not call.done()
    impatient = ServerPool(program, replace(QUICK, call_s=0.2))
    with pytest.raises(ServerError, match=r"did not answer a call of block within 0\.2 s"):
        await (await start(impatient, folder, "awkward")).call("block", {})
    async with asyncio.timeout(30):
        await asyncio.gather(pool.close(), impatient.close())
    with pytest.raises(ServerError, match="was closed"):
        await call


async def test_each_start_loads_the_module_anew(pool: ServerPool, folder: Path) -> None:
    definition = Server(name="mine", module="awkward")
    for _ in range(2):
        server = await started(pool, folder / "suite.toml", definition)
        other = await started(pool, folder / "other.toml", definition)
        assert await server.call("calls_so_far", {}) == ToolAnswer("1")
        assert await server.call("calls_so_far", {}) == ToolAnswer("2")
        assert await other.call("calls_so_far", {}) == ToolAnswer("1")
        await pool.stop(folder / "suite.toml", definition)
        await pool.stop(folder / "other.toml", definition)


async def test_half_characters_are_replaced_and_what_is_too_long_is_refused(pool: ServerPool, folder: Path) -> None:
    server = await start(pool, folder, "awkward")
    assert await server.call("half", {}) == ToolAnswer("a\ufffdb")
    with pytest.raises(ServerError, match="sent more than 32 MiB as an answer to a call of flood"):
        await server.call("flood", {})


QUIET = """
import asyncio, os, sys
from pathlib import Path
from workbench.config.folders import Folders
from workbench.config.program import create_program
from workbench.suite.model import Suite
from workbench.suite.server_model import Server
from workbench.suite.trust import needs_trust
from workbench.tools.python_code import hash_code
from workbench.tools.grant import Grant
from workbench.tools.connection import TimeLimits
from workbench.tools.server_pool import ServerPool

async def main():
    own, here, servers = map(Path, sys.argv[1:])
    async def started(file, server):
        suite = Suite(format=1, name="s", cases=(), servers=(server,))
        needs = needs_trust(suite, file)
        return await pool.running_server(file, server, Grant(needs, os.environ, hash_code(file.parent, needs.code)))

    limits = TimeLimits(polite_s=0.2, terminate_s=0.2)
    pool = ServerPool(create_program(Folders(own, own, own, own), os.environ), limits)
    shop = await started(servers / "suite.toml", Server(name="shop", module="sdk_workshop", object="server"))
    fast = await started(here / "suite.toml", Server(name="fast", module="with_fastmcp"))
    awkward = await started(here / "suite.toml", Server(name="awkward", module="awkward"))
    for server, tool in ((shop, "refuse"), (fast, "add"), (fast, "fail")):
        await server.call(tool, {"a": 1, "b": 2})
    blocked = asyncio.create_task(awkward.call("block", {}))
    hanging = asyncio.create_task(shop.call("hang", {}))
    await shop.call("add", {"a": 1, "b": 2})
    await pool.close()

asyncio.run(main())
"""


@pytest.mark.slow
def test_nothing_is_written_on_the_terminal_and_no_thread_keeps_the_program_from_ending(
    tmp_path: Path, folder: Path
) -> None:
    program = [sys.executable, "-c", QUIET, str(tmp_path / "own"), str(folder), str(SERVERS)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
