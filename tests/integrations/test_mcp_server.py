"""`workbench mcp` as a coding agent uses it: a real process, asked by the client of MCP's own SDK."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.conftest import BROKEN, CLOCK
from tests.cli.forking import forked_command
from tests.providers.server import Server, base_url_of, said

if TYPE_CHECKING:
    from mcp import Client

JUDGED = CLOCK.replace("expect_no_calls = true", 'response = { judged = "polite" }')
SERVED = CLOCK.replace("[[tools]]", '[[servers]]\nname = "own"\ncommand = ["touch", "started"]\n\n[[tools]]', 1)


@asynccontextmanager
async def served(folder: Path, *options: str, environment: Mapping[str, str] | None = None) -> AsyncIterator[Client]:
    """A client of `workbench mcp` in a folder."""
    from mcp import Client, StdioServerParameters

    homes = {f"XDG_{kind}_HOME": str(folder / ".home") for kind in ("STATE", "CONFIG", "DATA", "CACHE")}
    program, *words = forked_command()
    command = StdioServerParameters(
        command=program,
        args=[*words, "mcp", *options],
        cwd=str(folder),
        env={**homes, **(environment or {})},
    )
    async with Client(command) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """Return a tool's answer, or the text of its refusal."""
    answer = await client.call_tool(tool, arguments)
    if answer.is_error:
        return "".join(getattr(block, "text", "") for block in answer.content)
    assert answer.structured_content is not None
    return answer.structured_content.get("result", answer.structured_content)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "clock.toml").write_text(CLOCK)
    return tmp_path


async def test_an_agent_lists_validates_runs_and_reads_why(project: Path) -> None:
    (project / "broken.toml").write_text(BROKEN)
    async with served(project) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"list_suites", "validate", "run", "failures"} == set(tools)
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
        suites = await call(client, "list_suites")
        assert [(suite["path"], suite["errors"]) for suite in suites] == [("broken.toml", 1), ("clock.toml", 0)]
        assert suites[1]["cases"][0] == {"id": "time-in-bergen", "name": "Time in Bergen", "line": 13, "tags": ["time"]}
        (problem,) = await call(client, "validate")
        assert (problem["line"], problem["hint"]) == (6, "did you mean `expect_no_calls`?")
        told: list[str | None] = []

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            told.append(message)

        answer = await client.call_tool("run", {"suites": ["clock.toml"]}, progress_callback=tell)
        run = answer.structured_content
        assert run is not None and not run["passed"]
        assert run["models"] == [
            {"model": "offline", "passed": 1, "failed": 1, "errors": 0, "other": 0, "mean_score": 0.5}
        ]
        (failure,) = run["failures"]
        assert (failure["case"], failure["line"], failure["status"]) == ("time-in-bergen", 13, "failed")
        assert failure["issues"] == [
            'missing call: get_time, expected get_time(timezone="Europe/Oslo"): no call matches it'
        ]
        assert sorted(filter(None, told)) == ["small-talk: passed", "time-in-bergen: failed"]
        assert "→ this baseline matches words" in await call(client, "failures")
        resource = (await client.read_resource(run["report"])).contents[0]
        assert "Not everything passed" in getattr(resource, "text", "")


async def test_a_baseline_says_what_broke(project: Path) -> None:
    async with served(project) as client:
        first = await call(client, "run", cases=["small-talk"])
        assert first["passed"] and "batch 1 in the history" in first["text"]
        broken = CLOCK.replace("expect_no_calls = true", '[[cases.ordered]]\ntool = "get_time"')
        (project / "clock.toml").write_text(broken)
        second = await call(client, "run", cases=["small-talk"], baseline="1")
        assert "broke" in second["text"] and not second["passed"]


async def test_what_was_not_allowed_is_refused_with_the_option_that_allows_it(project: Path) -> None:
    outside = project.parent / "outside.toml"
    outside.write_text(CLOCK)
    (project / "judged.toml").write_text(JUDGED)
    (project / "served.toml").write_text(SERVED)
    async with served(project) as client:
        assert "--model openai:gpt-4o" in await call(client, "run", suites=["clock.toml"], model="openai:gpt-4o")
        for chosen in ([], ["*-talk"]):
            assert "--judge" in await call(client, "run", suites=["judged.toml"], cases=chosen)
        assert "--trust" in await call(client, "run", suites=["served.toml"])
        assert "list_suites" in await call(client, "run", suites=[str(outside)])
        assert "call `run` first" in await call(client, "failures")
        assert "no case 'none'" in await call(client, "run", suites=["clock.toml"], cases=["none"])
    assert not (project / "started").exists()


OWN_SERVER = """[[servers]]
name = "own"
command = ["python", "server.py"]
env = { TOKEN = "$TOKEN" }
prefix = "own_"

[[tools]]"""
TRUSTED = f"""{CLOCK.replace("[[tools]]", OWN_SERVER, 1)}
[[mocks]]
tool = "get_time"
python = "answers:noon"
"""
SERVER = """import os
from mcp.server.mcpserver import MCPServer
open("token", "w").write(os.environ["TOKEN"])
server = MCPServer("own")
@server.tool()
def look() -> str: return ""
server.run("stdio")
"""


def settings(server: Server) -> str:
    return f"""[models.fast]
provider = "openai"
model = "m"
base_url = "{base_url_of(server, "openai")}"
api_key_env = "FAST_KEY"
"""


@pytest.mark.slow
async def test_trust_covers_what_stood_there_at_the_start_and_no_edit_of_any_file(project: Path) -> None:
    secret = "sk-planted-in-a-file-1234567890"
    with (
        Server(lambda request: said("openai", text="Fine.")) as server,
        Server(lambda request: said("openai", text="Mine.")) as evil,
    ):
        files = {
            "clock.toml": TRUSTED,
            "answers.py": "from .deeper import noon\n",
            "deeper.py": "def noon(call): return 'noon'\n",
            "server.py": SERVER,
            "workbench.toml": settings(server),
            ".env": f"TOKEN=from-the-start\nFAST_KEY={secret}\n",
        }
        for name, content in files.items():
            (project / name).write_text(content)
        planted = "open('planted', 'w')\n"
        other_command = TRUSTED.replace('"server.py"]', '"other.py"]')
        attacks = {
            "python other.py": {"clock.toml": other_command, "other.py": planted},
            "$FAST_KEY": {"clock.toml": TRUSTED.replace('"$TOKEN"', '"$FAST_KEY"')},
            "answers:": {"clock.toml": TRUSTED.replace("answers:noon", "answers:night")},
            "other:noon": {"clock.toml": TRUSTED.replace("answers:noon", "other:noon"), "other.py": planted},
            "changed since it was approved: answers": {"answers.py": planted + files["answers.py"]},
            "changed since it was approved: deeper": {"deeper.py": planted + files["deeper.py"]},
            "variables of a .env file that have changed since they were approved: TOKEN": {
                ".env": files[".env"].replace("from-the-start", "changed-by-the-agent")
            },
            "NEW_NAME": {".env": files[".env"] + "NEW_NAME=1\n"},
            base_url_of(evil, "openai"): {"workbench.toml": settings(evil)},
            "api_key_env": {"workbench.toml": files["workbench.toml"].replace("FAST_KEY", "TOKEN")},
            "http://127.0.0.1:9": {
                "clock.toml": TRUSTED.replace(
                    "[[tools]]", '[[servers]]\nname = "far"\nurl = "http://127.0.0.1:9"\n\n[[tools]]', 1
                )
            },
            "python new.py": {"sub/new.toml": TRUSTED.replace("server.py", "new.py"), "new.py": planted},
            f"m at {base_url_of(evil, 'openai')}": {"sub/new.toml": CLOCK, "sub/workbench.toml": settings(evil)},
            "FAST_KEY": {"sub/new.toml": CLOCK, "sub/.env": "FAST_KEY=of-the-agent"},
        }
        async with served(project, "--trust", "--model", "fast") as client:

            async def run() -> Any:
                return await call(client, "run", model="fast", cases=["small-talk", "time-in-bergen"])

            assert (await run())["models"][0]["errors"] == 0
            asked, token = len(server.requests), (project / "token").read_text()
            assert asked and token == "from-the-start"
            (project / "token").unlink()
            for named, edits in attacks.items():
                for name, content in edits.items():
                    (project / name).parent.mkdir(exist_ok=True)
                    (project / name).write_text(content)
                answer = await run()
                assert isinstance(answer, str) and "restart the server" in answer and named in answer, (
                    named,
                    answer,
                )
                assert secret not in answer
                for name in edits:
                    (project / name).unlink()
                    if name in files:
                        (project / name).write_text(files[name])
            assert not (project / "planted").exists() and not (project / "token").exists()
            assert not evil.requests and len(server.requests) == asked
            (project / "clock.toml").write_text(TRUSTED.replace("What time", "Which hour"))  # what runs needs no trust
            assert (await run())["models"][0]["errors"] == 0
            (project / "new.toml").write_text(CLOCK.replace("Clock", "New"))
            assert (await call(client, "run", suites=["new.toml"]))["models"][0]["errors"] == 0


async def test_a_mock_that_needs_a_judge_is_refused_without_one(project: Path) -> None:
    mock = '[[mocks]]\ntool = "get_time"\nwhen = { timezone = { judged = "polite" } }\nresult = "noon"\n'
    (project / "clock.toml").write_text(f"{CLOCK}\n{mock}")
    async with served(project) as client:
        assert "--judge" in await call(client, "run")


async def test_an_argument_that_a_tool_lacks_is_refused_and_all_are_described(project: Path) -> None:
    async with served(project) as client:
        for tool in (await client.list_tools()).tools:
            assert tool.input_schema["additionalProperties"] is False
            assert all(each["description"] for each in tool.input_schema["properties"].values())
        answer = await call(client, "run", case=["small-talk"])
        assert "no argument case" in answer and "suites, cases, tags, model, repeats, baseline" in answer
        assert "it takes none" in await call(client, "failures", run=1)


def test_an_unknown_model_is_refused_at_the_start(project: Path) -> None:
    program, *words = forked_command()
    done = subprocess.run(
        [program, *words, "mcp", "--model", "fastt"],
        cwd=project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "there is no model 'fastt'" in done.stderr and not done.stdout


async def test_an_allowed_model_is_asked_and_its_key_is_in_no_answer(project: Path) -> None:
    key = "sk-planted-in-the-environment"
    with Server(lambda request: said("openai", text=f"My key is {key}.")) as server:
        model = f"openai:gpt-4o-mini@{base_url_of(server, 'openai')}"
        async with served(project, "--model", model, environment={"OPENAI_API_KEY": key}) as client:
            run = await call(client, "run", model=model, cases=["small-talk", "time-in-bergen"])
            assert run["models"][0]["passed"] == 1 and len(server.requests) == 2
            whole = str(run) + await call(client, "failures") + str(await client.read_resource(run["report"]))
            assert key not in whole


@pytest.mark.slow
def test_ctrl_c_ends_it_while_a_client_is_there(project: Path) -> None:
    (project / "mcp.py").write_text("raise SystemExit('a module of the folder was imported')")
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    homes = {f"XDG_{kind}_HOME": str(project / ".home") for kind in ("STATE", "CONFIG", "DATA", "CACHE")}
    with subprocess.Popen(
        [sys.executable, "-m", "workbench.cli.main", "mcp"],
        cwd=project,
        env={**os.environ, **homes},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            assert b"workbench" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == -signal.SIGINT
        finally:
            process.kill()
