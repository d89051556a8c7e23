"""Servers without `server/discover`: each can be used, and a notice names the cost."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.programs import started
from tests.providers.server.script import CUT, HANG, RESET, Answer, Request, document, page
from tests.providers.server.server import Server as RawServer
from tests.sampled_rows import first_rows
from tests.tools.conftest import QUICK, SERVERS, OpenServer
from tests.tools.forgetful import Forgetful
from tests.tools.processes import group_is_gone
from workbench.config.program import Program
from workbench.suite.server_model import Server, ServerProtocol
from workbench.tools.answer import ServerError, ToolAnswer
from workbench.tools.server_pool import ServerPool

SOON = replace(QUICK, probe_s=0.3, greeting_s=0.3)

SAVES = ': `protocol = "legacy"` in its [[servers]] saves the time'
AGAIN = "after the question server/discover, and was started once more without it"

STARTS_SLOWLY = """
import sys, time
time.sleep(0.9)
sys.argv[1:] = {habits}
exec(open({server!r}).read())
"""


@pytest.mark.parametrize(
    ("habit", "protocol", "starts", "notices"),
    first_rows(
        [
            ("", "auto", 1, ()),
            ("", "legacy", 1, ()),
            ("strict", "auto", 2, (f"server 'bench' ended {AGAIN}{SAVES}",)),
            ("strict", "legacy", 1, ()),
            ("closing", "auto", 2, (f"server 'bench' ended {AGAIN}{SAVES}",)),
            ("ignorant", "auto", 1, (f"server 'bench' left server/discover without an answer for 0.3 s{SAVES}",)),
            ("ignorant", "legacy", 1, ()),
            ("stuck", "auto", 2, (f"server 'bench' said nothing more {AGAIN}{SAVES}",)),
            ("stuck", "legacy", 1, ()),
        ],
        5,
    ),
)
async def test_a_server_that_cannot_be_asked_is_greeted_the_old_way(
    open_server: OpenServer, log_file: Path, habit: str, protocol: ServerProtocol, starts: int, notices: tuple[str, ...]
) -> None:
    server = open_server("python", "antique.py", habit, protocol=protocol, limits=SOON)
    await server.start()
    assert [tool.name for tool in server.tools] == ["say"]
    assert await server.call("say", {"result": {"content": []}}) == ToolAnswer("")
    assert tuple(news.notice for news in server.pop_start_notices()) == notices
    assert log_file.read_text().count("== server 'bench'") == starts


async def test_what_a_start_has_found_out_saves_the_next_one_the_time(pool: ServerPool) -> None:
    definition = Server(name="bench", command=("python", "antique.py", "strict"))
    for expected in (1, 0):
        server = await started(pool, SERVERS / "suite.toml", definition)
        assert len(server.pop_start_notices()) == expected
        await pool.stop(SERVERS / "suite.toml", definition)


async def test_a_server_of_the_newest_protocol_alone_has_no_old_way(open_server: OpenServer) -> None:
    server = open_server("python", "workshop.py", protocol="legacy")
    with pytest.raises(ServerError, match="does not speak MCP as expected: there is no method initialize"):
        await server.start()


@pytest.mark.parametrize(
    ("file", "habits"), first_rows([("workshop.py", []), ("antique.py", []), ("antique.py", ["strict"])], 2)
)
async def test_a_slow_start_is_no_silence(
    open_server: OpenServer, log_file: Path, file: str, habits: list[str]
) -> None:
    program = STARTS_SLOWLY.format(server=file, habits=habits)
    server = open_server("python", "-c", program, limits=SOON)
    await server.start()
    assert len(server.pop_start_notices()) == len(habits)
    assert log_file.read_text().count("== server 'bench'") == 1 + len(habits)


FORWARDS = """#!{python}
import subprocess, sys, time
first = sys.stdin.buffer.readline()
time.sleep(0.9)
server = subprocess.Popen([sys.executable, *sys.argv[2:]], stdin=subprocess.PIPE)
while first:
    server.stdin.write(first)
    server.stdin.flush()
    first = sys.stdin.buffer.readline()
server.stdin.close()
server.wait()
"""


@pytest.mark.parametrize("file", ["workshop.py", "antique.py"])
async def test_a_slow_start_behind_a_program_that_passes_messages_on_is_no_silence(
    open_server: OpenServer, log_file: Path, tmp_path: Path, file: str
) -> None:
    docker = tmp_path / "docker"
    docker.write_text(FORWARDS.replace("{python}", sys.executable))
    docker.chmod(0o755)
    server = open_server(str(docker), "run", file, limits=SOON)
    await server.start()
    assert server.pop_start_notices() == []
    assert log_file.read_text().count("== server 'bench'") == 1


async def test_what_ends_in_any_case_is_started_twice_and_told_once(open_server: OpenServer, log_file: Path) -> None:
    server = open_server("python", "-c", "import sys; sys.stdin.readline(); sys.exit('no such database')")
    with pytest.raises(ServerError, match="ended with exit code 1 before it listed its tools") as caught:
        await server.start()
    assert caught.value.output is not None
    assert caught.value.output.lines == ("no such database",)
    assert log_file.read_text().count("== server 'bench'") == 2
    assert group_is_gone(server.pid)


@pytest.mark.parametrize(
    ("answer", "notices"),
    first_rows(
        [
            (page("no session", 400), []),
            (document({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no such method"}}), []),
            (Answer((HANG,)), [f"server 'hosted' left server/discover without an answer for 0.3 s{SAVES}"]),
            (Answer((RESET,), before=(RESET,)), [f"server 'hosted' ended {AGAIN}{SAVES}"]),
            (Answer((CUT,), before=(CUT,)), [f"server 'hosted' ended {AGAIN}{SAVES}"]),
        ],
        3,
    ),
)
async def test_a_server_behind_a_url_is_greeted_the_old_way_too(
    program: Program, answer: Answer, notices: list[str]
) -> None:
    served, asked = Forgetful(page("gone", 404)), list[str]()

    def answer_to(request: Request) -> Answer:
        method = request.json["method"] if request.method == "POST" else request.method
        asked.append(method)
        return answer if method == "server/discover" else served(request)

    pool = ServerPool(program, SOON)
    with RawServer(answer_to) as raw:
        server = await started(pool, SERVERS / "suite.toml", Server(name="hosted", url=f"{raw.url}/mcp"))
        assert await server.call("talk", {"number": 1}) == ToolAnswer("s1")
        await pool.close()
    assert [news.notice for news in server.pop_start_notices()] == notices
    assert asked[:2] == ["server/discover", "initialize"]
