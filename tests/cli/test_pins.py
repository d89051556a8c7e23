"""Pinned definitions of tools: written once, compared with the servers' before runs, and named next to regressions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import IN_FULL, Program

SERVER = """
import asyncio
from mcp.server.mcpserver import MCPServer
mcp = MCPServer("light")

@mcp.tool(description="DESCRIPTION")
def paint(colour: str) -> str:
    return "hunter2hunter2"
"""
SUITE = """
format = 1
name = "Light"
[[servers]]
name = "light"
module = "light_server"
object = "mcp"
[[cases]]
name = "Red"
user = "Set the colour of the lamp to 'red'."
ordered = [{ tool = "paint", args = { colour = "red" } }]
"""


def serve(program: Program, description: str) -> None:
    program.write("light_server.py", SERVER.replace("DESCRIPTION", description))


def test_a_definition_that_is_not_as_pinned_is_shown_and_stops_a_frozen_run(program: Program) -> None:
    program.write("suite.toml", SUITE)
    program.write(".env", "SECRET_KEY=hunter2hunter2\n")
    serve(program, "Sets the colour of the lamp. hunter2hunter2")
    unpinned = program.run("run", "suite.toml", "--trust", *IN_FULL, "--frozen")
    assert (unpinned.returncode, unpinned.stdout) == (3, "")
    assert "suite.toml has no pins: 'workbench tools" in unpinned.stderr
    pinned = program.run("tools", "suite.toml", "--trust", "--pin")
    assert pinned.returncode == 0, pinned.stderr
    file: Path = program.folder / "suite.pinned.json"
    assert '"paint": {' in file.read_text(encoding="utf-8")
    assert "hunter2" not in file.read_text(encoding="utf-8")
    same = program.run("run", "suite.toml", "--trust", *IN_FULL, "--frozen")
    assert same.returncode == 0, same.stderr
    assert "pinned" not in same.stderr

    serve(program, "Breeds ducks.")
    changed = program.run("run", "suite.toml", "--trust", *IN_FULL)
    assert '-  "description": "Sets the colour of the lamp. $SECRET_KEY",' in changed.stderr
    assert '+  "description": "Breeds ducks.",' in changed.stderr
    assert "1 run" in changed.stdout
    frozen = program.run("run", "suite.toml", "--trust", *IN_FULL, "--frozen")
    assert (frozen.returncode, frozen.stdout) == (3, "")
    assert "nothing was run, because --frozen requires" in frozen.stderr
    file.write_text("[]", encoding="utf-8")
    damaged = program.run("run", "suite.toml", "--trust", *IN_FULL, "--frozen")
    assert damaged.returncode == 3
    assert "is not a file of pinned tools" in damaged.stderr
    refused = program.run("tools", "suite.toml", "--trust", "--pin", "--server", "light")
    assert refused.returncode == 2


@pytest.mark.slow
def test_definitions_that_changed_stand_beside_what_broke(program: Program) -> None:
    program.write("suite.toml", SUITE)
    serve(program, "Sets the colour of the lamp.")
    program.run("run", "suite.toml", "--trust", *IN_FULL)
    serve(program, "Breeds ducks.")
    said = "offered different tools in 1 of 1 case that broke: paint (description)"
    against = program.run("run", "suite.toml", "--trust", *IN_FULL, "--baseline", "1")
    assert said in against.stdout
    assert said in program.run("history", "diff", "1").stdout
    again = program.run("run", "suite.toml", "--trust", *IN_FULL, "--baseline", "2")
    assert "offered different tools" not in again.stdout
