"""The calls that `workbench run` executes: read-only tools with `--execute`, all with `--execute-all`, otherwise
none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.test_tools import SERVERS, audited
from tests.samples import SAMPLES
from workbench.suite.suite_file import load_suite

OFFICE = SAMPLES / "office.toml"


OFFICE_SERVER = f"""
import sys
sys.path.append({str(SERVERS)!r})
from plain import PlainServer
server = PlainServer("office")
@server.tool()
def send_email(to: str, subject: str, body: str) -> str:
    return "sent"
server.run()
"""


def sending_case() -> str:
    """The id of a sample case that sends an e-mail."""
    suite = load_suite(OFFICE).suite
    assert suite is not None
    return next(case.id for case in suite.cases if any(call.tool == "send_email" for call in case.expected_calls()))


@pytest.fixture
def copy(program: Program) -> Path:
    """Copy the sample suite out of the installed program. Its server has the tool of one case."""
    program.write("office_server.py", OFFICE_SERVER)
    return Path(shutil.copy(OFFICE, program.folder))


@pytest.mark.slow
def test_the_samples_own_server_is_exempt(program: Program) -> None:
    done = program.run("run", str(OFFICE), "--case", sending_case())
    assert done.returncode == 0, done.stdout
    assert [line["allowed"] for line in audited(program)] == ["exempt", "exempt"]
    assert {line["model"] for line in audited(program)} == {"offline"}
    assert "calls executed: 1" in done.stdout


@pytest.mark.parametrize("options", [(), ("--execute",)])
def test_a_copy_of_it_is_not_and_the_run_ends_naming_the_tool_and_the_way_out(
    program: Program, copy: Path, options: tuple[str, ...]
) -> None:
    done = program.run("run", copy.name, "--trust", "--case", sending_case(), *options)
    assert done.returncode == 3
    assert "send_email of server 'office' is not marked read-only" in done.stdout
    assert "--execute-all" in done.stdout
    assert audited(program) == []


@pytest.mark.slow
def test_all_tools_can_be_executed_and_what_is_read_only_needs_no_leave(program: Program, copy: Path) -> None:
    shutil.copy(OFFICE.with_name("office_server.py"), program.folder)
    done = program.run("run", copy.name, "--trust", "--execute-all", "--case", sending_case(), "--case", "times-ten")
    assert done.returncode == 0, done.stdout
    found = {(line["tool"], line["allowed"]) for line in audited(program)}
    assert found == {("send_email", "all"), ("calculate", "read-only")}


@pytest.mark.slow
def test_execute_all_makes_a_suite_execute_that_does_not_say_so(program: Program, copy: Path) -> None:
    copy.write_text(copy.read_text().replace("execute = true", "execute = false", 1))
    assert "✗ failed" in program.run("run", copy.name, "--trust", "--case", sending_case()).stdout, "it ends"
    assert audited(program) == []
    program.run("run", copy.name, "--trust", "--case", sending_case(), "--execute-all")
    assert [line["event"] for line in audited(program)] == ["started", "ended"]


NOISY = """
from contextlib import asynccontextmanager
from mcp.server.mcpserver import MCPServer

@asynccontextmanager
async def lifespan(server):
    print("begins")
    yield {}
    print("ends")

mcp = MCPServer("noisy", lifespan=lifespan)

@mcp.tool()
def greet() -> str:
    print("greets")
    return "hello"
"""


def test_what_a_server_in_a_module_prints_spoils_no_report_not_even_at_its_end(program: Program) -> None:
    program.write("noisy.py", NOISY)
    server = '[[servers]]\nname = "noisy"\nmodule = "noisy"\n'
    case = '[[cases]]\nname = "Greet"\nuser = "Greet"\nordered = [{ tool = "greet", args = {} }]\n'
    program.write("noisy.toml", f'format = 1\nname = "Noisy"\n{server}{case}')
    done = program.run("run", "noisy.toml", "--trust", "--execute-all", "--format", "json")
    assert json.loads(done.stdout)["totals"]["executions"] == 1
    assert [word for word in ("begins", "greets", "ends") if word in done.stderr] == ["begins", "greets", "ends"]
