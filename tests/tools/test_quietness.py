"""`tools` prints nothing to the terminal, and does not slow the start of the program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.conftest import SERVERS

TALKATIVE = """
import asyncio, os, sys
from pathlib import Path
from workbench.config.folders import Folders
from workbench.config.program import create_program
from workbench.suite.model import (Case, Suite)
from workbench.tools.answer import ToolsError
from workbench.suite.trust import needs_trust
from workbench.tools.python_code import hash_code
from workbench.tools.grant import Grant
from workbench.tools.server_pool import ServerPool
from workbench.trajectory.events import ToolCall

async def main():
    folder, logs = map(Path, sys.argv[1:])
    servers = [
        {"name": "shop", "command": ["python", "workshop.py", "chatty", "loud"]},
        {"name": "catalogue", "command": ["python", "catalogue.py"]},
    ]
    suite = Suite.model_validate({"format": 1, "name": "s", "servers": servers})
    case = Case(id="c", name="c", user="u")
    pool = ServerPool(create_program(Folders(logs, logs, logs, logs), os.environ))

    def grant(suite):
        needs = needs_trust(suite, folder / "suite.toml")
        return Grant(needs, os.environ, hash_code(folder, needs.code))

    tools = await pool.open_toolbox(suite, case, folder / "suite.toml", execute=True, grant=grant(suite))
    for tool in ("tool_1", "tool_2", "refuse", "crash"):
        try:
            await (await tools.plan(ToolCall("c1", tool))).run()
        except ToolsError:
            pass
    absent = Suite.model_validate({"format": 1, "name": "s", "servers": [{"name": "x", "command": ["absent"]}]})
    try:
        await pool.open_toolbox(absent, case, folder / "suite.toml", execute=True, grant=grant(absent))
    except ToolsError:
        pass
    await pool.close()

asyncio.run(main())
print("done")
"""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.slow
def test_neither_servers_nor_the_sdk_write_on_the_terminal(tmp_path: Path) -> None:
    done = run(TALKATIVE, str(SERVERS), str(tmp_path / "logs"))
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_the_sdk_is_not_imported_before_a_server_starts() -> None:
    program = (
        "import sys, workbench.tools.server_pool; print({'mcp', 'mcp_types', 'anyio', 'httpx2'} & sys.modules.keys())"
    )
    done = run(program)
    assert (done.stdout, done.stderr) == ("set()\n", "")
