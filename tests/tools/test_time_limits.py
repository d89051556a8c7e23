"""The time that starts, downloads and calls of servers have, and the keys of a suite that give them more."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.programs import grant_of, program_of
from tests.tables import each_row
from tests.tools.conftest import QUICK, SERVERS, OpenServer
from tests.tools.processes import becomes_true, group_is_gone
from workbench.engine.events import BatchEvent, StartUp, StartUpReporter
from workbench.limits import Limit
from workbench.suite.model import Suite
from workbench.suite.server_model import Server
from workbench.tools.answer import ServerError, ToolAnswer
from workbench.tools.client_requests import CallTimer
from workbench.tools.connection import ServerStatus, TimeLimits
from workbench.tools.launchers import launcher_of
from workbench.tools.mcp_server import McpServer
from workbench.tools.server_pool import ServerPool

SLOW = f"""
import sys, time
sys.path.insert(0, {str(SERVERS)!r})
from plain import PlainServer, Tell
server = PlainServer("slow")

@server.tool()
def work(parts: int, tell: Tell, stalls: bool = False) -> str:
    "Works for a while, and says after each part how far it is."
    for part in range(parts):
        time.sleep(0.1)
        tell(part + 1, parts, "part")
    if stalls:
        time.sleep(60)
    return "done"

server.run()
"""


async def slow_server(open_server: OpenServer, call_s: float) -> McpServer:
    server = open_server("python", "-c", SLOW, limits=replace(QUICK, call_s=call_s))
    await server.start()
    return server


async def test_progress_extends_a_call_whether_anybody_listens_or_not(open_server: OpenServer) -> None:
    server = await slow_server(open_server, 0.6)
    told: list[float] = []
    calls = [server.call("work", {"parts": 10}, lambda progress, *_: told.append(progress))]
    calls.append(server.call("work", {"parts": 10}))
    assert await asyncio.gather(*calls) == [ToolAnswer("done")] * 2
    assert told == list(range(1, 11))


async def test_a_call_that_stalls_after_some_progress_is_given_up_with_the_key(open_server: OpenServer) -> None:
    server = await slow_server(open_server, 0.5)
    more = r"call_timeout_s = 1 in its \[\[servers\]\] gives it more time"
    stalled = rf"server 'bench' reported no more progress of a call of work within 0\.5 s; {more} \(command: "
    with pytest.raises(ServerError, match=stalled):
        await server.call("work", {"parts": 2, "stalls": True})


async def test_progress_without_end_is_left_at_last(open_server: OpenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "workbench.tools.session.MAX_CALL_SECONDS", Limit(1, "still reports progress after {limit} s", "stop")
    )
    server = await slow_server(open_server, 0.5)
    with pytest.raises(ServerError, match=r"did not finish a call of work, .* after 1 s: stop"):
        await server.call("work", {"parts": 600})
    assert await server.call("work", {"parts": 0}) == ToolAnswer("done")


async def test_replies_that_are_awaited_together_count_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    time = CallTimer(10, 100)
    first, second = time.suspended(), time.suspended()
    now = 1.0
    first.__enter__()
    now = 5.0
    second.__enter__()
    now = 8.0
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert time.spent_s == 1.0


@pytest.mark.parametrize(
    ("keys", "limits"),
    [
        ({}, TimeLimits(start_s=60, call_s=60, download_s=300)),
        ({"start_timeout_s": 90, "call_timeout_s": 0.5}, TimeLimits(start_s=90, call_s=0.5, download_s=300)),
        ({"start_timeout_s": 600}, TimeLimits(start_s=600, call_s=60, download_s=600)),
    ],
)
def test_a_server_has_its_own_limits(keys: dict[str, object], limits: TimeLimits) -> None:
    server = Server.model_validate({"name": "s", "url": "http://example.test/mcp", **keys})
    assert TimeLimits().of(server) == limits


@each_row(
    ("command", "launcher"),
    [
        ("npx -y @modelcontextprotocol/server-memory", "npx"),
        ("/usr/bin/npx server", "npx"),
        (r"C:\nodejs\npx.cmd server", "npx"),
        ("cmd /c npx server", "npx"),
        ("npm exec server", "npm exec"),
        ("pnpm dlx server", "pnpm dlx"),
        ("bunx server", "bunx"),
        ("uvx mcp-server-git", "uvx"),
        ("uv tool run mcp-server-git", "uv tool"),
        ("uv --quiet run server.py", "uv run"),
        ("pipx run mcp-server-git", "pipx run"),
        ("docker run -i --rm mcp/git", "docker run"),
        ("env A=b npx server", "npx"),
        ("npm start", None),
        ("uv pip list", None),
        ("node server.js", None),
        ("python server.py run", None),
        ("./npx-like", None),
    ],
)
def test_launchers_that_download_are_known(command: str, launcher: str | None) -> None:
    words = command.split(" ")
    assert launcher_of(words) == launcher
    if "\\" not in command:
        assert launcher_of(["sh", "-c", f'KEY="$KEY" exec {command}']) == launcher


@pytest.mark.parametrize(
    "command", [["sh", "-c", "'"], ["sh", "-c", ""], ["env", "A=b", "C=d"], ["cmd", "/c", ""], [""]]
)
def test_odd_commands_start_no_launcher(command: list[str]) -> None:
    assert launcher_of(command) is None


class Launched:
    """A suite whose server is started by an `npx` that waits until the test ends its download."""

    def __init__(self, folder: Path, limits: TimeLimits) -> None:
        self.folder = folder
        npx = folder / "bin" / "npx"
        npx.parent.mkdir()
        npx.write_text(
            "#!/bin/sh\n[ -f broken ] && exit 1\ntouch began\nread word < downloaded\n"
            "if [ $word = broken ]; then touch broken; exit 1; fi\n"
            f"exec {sys.executable} {SERVERS / 'workshop.py'}\n"
        )
        npx.chmod(0o755)
        os.mkfifo(folder / "downloaded")
        self.definition = Server(name="shop", command=("npx", "-y", "shop"))
        self.file = folder / "suite.toml"
        self.events: list[BatchEvent] = []
        environment = {"PATH": f"{npx.parent}{os.pathsep}{os.environ['PATH']}"}
        self.program = program_of(folder, environment)
        self.pool = ServerPool(self.program, limits, starting=StartUpReporter(self.events.append, lambda: 0.0).watch)

    def start(self) -> asyncio.Task[McpServer]:
        suite = Suite(format=1, name="any", cases=(), servers=(self.definition,))
        grant = grant_of(suite, self.file, self.program.environment)
        return asyncio.create_task(self.pool.running_server(self.file, self.definition, grant))

    @property
    def status(self) -> ServerStatus:
        return self.pool.status(self.file, self.definition)

    async def download(self, word: str = "now") -> None:
        await asyncio.to_thread((self.folder / "downloaded").write_text, f"{word}\n")


async def test_a_first_download_has_its_own_time_and_is_called_so_until_the_server_reads(tmp_path: Path) -> None:
    launched = Launched(tmp_path, replace(QUICK, start_s=30))
    try:
        starting = launched.start()
        await becomes_true((tmp_path / "began").exists)
        assert launched.status.state == "starting"
        assert launched.status.downloads
        changed = asyncio.create_task(launched.pool.wait_for_change(launched.file, launched.definition))
        await launched.download()
        await changed
        server = await starting
        assert await server.call("add", {"a": 1, "b": 2}) == ToolAnswer("3")
        words = [event.words for event in launched.events if isinstance(event, StartUp) and event.took_ms is None]
        assert words == ["downloading server shop", "starting server shop"]
        await launched.pool.stop(launched.file, launched.definition)
        # Its tools are known, so it has run before, and npx has downloaded it.
        (tmp_path / "began").unlink()
        again = launched.start()
        await becomes_true((tmp_path / "began").exists)
        assert (launched.status.state, launched.status.downloads) == ("starting", False)
        await launched.download()
        await again
    finally:
        await launched.pool.close()


@pytest.mark.parametrize(("limits", "late"), [
    (
        replace(QUICK, start_s=0.1, download_s=0.5),
        r"was not started by npx within 0\.5 s; start_timeout_s = 1 in its \[\[servers\]\] gives it more time",
    ),
    (replace(QUICK, start_s=20), "ended with exit code 1 before it listed its tools"),
])  # fmt: skip
async def test_a_download_that_fails_or_does_not_end_is_given_up(tmp_path: Path, limits: TimeLimits, late: str) -> None:
    launched = Launched(tmp_path, limits)
    try:
        starting = launched.start()
        await becomes_true((tmp_path / "began").exists)
        if limits.start_s > 1:
            await launched.download("broken")
        with pytest.raises(ServerError, match=rf"server 'shop' {late}"):
            await starting
        assert launched.status.state == "down"
    finally:
        await launched.pool.close()


async def test_a_launcher_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    launched = Launched(tmp_path, QUICK)
    starting = launched.start()
    await becomes_true((tmp_path / "began").exists)
    server = launched.pool._servers[next(iter(launched.pool._servers))].server
    await launched.pool.close()
    with pytest.raises(ServerError, match="was closed"):
        await starting
    assert group_is_gone(server.pid)
