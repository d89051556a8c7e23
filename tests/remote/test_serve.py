"""`workbench serve`, as real HTTP and WebSockets see it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path

import aiohttp
import pytest

from tests.cli.program import Program
from tests.cli.suites import SLOW, WEATHER
from tests.remote.served import LONGEST_WAIT_S, Served, browser, enter, served, visit
from workbench.remote.web import App, Visitor

EVIL = {"Origin": "http://evil.example"}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    program = Program(tmp_path_factory.mktemp("served"), {"OPENAI_API_KEY": "sk-planted-0123456789"})
    program.write("weather.toml", WEATHER + SLOW)
    return program


@pytest.fixture(scope="module")
def server(program: Program) -> Iterator[Served]:
    with served(program, "weather.toml", "--visitors", "2") as server:
        yield server


async def none_left(server: Served) -> None:
    """Wait until no visitor has a process."""
    until = time.monotonic() + LONGEST_WAIT_S
    while server.apps():
        assert time.monotonic() < until
        await asyncio.sleep(0.02)


async def test_a_visitor_runs_a_case_and_leaves(server: Served, program: Program) -> None:
    async with browser() as session:
        page = await enter(session, server)
        async with session.get(page) as response:
            text = await response.text()
            assert (
                response.status == 200
                and server.token not in text
                and "://" not in text.replace(f"ws://{server.address.removeprefix('http://')}", "")
            )
            policy = response.headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'; script-src 'self';")
            assert response.headers["Referrer-Policy"] == "no-referrer"
        async with visit(session, server, page) as visitor:
            await visitor.until("weather", "Right", "r run")
            await visitor.type("r")
            await visitor.until("get_weather", "passed")
            # An impossible byte, half a character and an enormous size have no effect.
            await visitor.type("\x1b[<999999;1;1M\udcff")
            await visitor.socket.send_json(["resize", {"width": 10**9, "height": -5}])
            await visitor.socket.send_json(["resize", {"width": 100, "height": 30}])
            await visitor.type("?")
            await visitor.until("Here, in Suites")
            # Ctrl+Z and the editor have no place in a browser.
            await visitor.type("\x1b")
            await visitor.type("\x1bOS")
            await visitor.until("browser")
            (app,) = server.apps()
            assert os.getsid(app) == app  # Ctrl+C of the server is not the app's
            await visitor.type("q")
            assert await visitor.until_closed() == "It was quit."
        await none_left(server)
    assert "every run passed" in program.run("history", "show", "1").stdout


async def test_what_a_foreign_page_sends_is_refused(server: Served) -> None:
    async with browser() as session:
        page = await enter(session, server)
        foreign = [
            EVIL,
            {"Origin": "null"},
            {"Host": "evil.example", "Origin": "http://evil.example"},
            {"Host": "evil.example"},
            {"Sec-Fetch-Site": "cross-site"},
        ]
        for path in ("", "ws", "page.js", "static/js/textual.js", "download/x"):
            for headers in foreign:
                async with session.get(f"{page}{path}", headers=headers) as response:
                    assert response.status == 403, (path, headers)
                    assert "Access-Control-Allow-Origin" not in response.headers
        for headers in ({}, *foreign):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await session.ws_connect(f"{page}ws", headers=headers)
            assert refused.value.status == 403
        assert not server.apps()


async def test_nothing_is_shown_without_the_token_or_its_cookie(server: Served) -> None:
    async with browser() as session, aiohttp.ClientSession() as stranger:
        page = await enter(session, server)
        path = page.removeprefix(server.address)
        for address in (server.address, f"{server.address}/?token=wrong", f"{server.address}/?token=", page):
            async with stranger.get(address) as response:
                assert response.status == 403 and path not in await response.text()
        for name in ("ws", "static/js/textual.js", "page.js"):
            for cookie in ("", "workbench=wrong", f"workbench={server.token}"):
                headers = {"Cookie": cookie, "Origin": server.address}
                async with stranger.get(f"{page}{name}", headers=headers) as response:
                    assert response.status == 403
        async with session.get(server.entry) as response:
            kept = SimpleCookie(response.headers["Set-Cookie"])["workbench"]
            assert kept["httponly"] and kept["samesite"] == "Strict" and kept["path"] == path
            assert kept.value != server.token
        for there_is_no in ("static/", "static/../server.py", "static/%2e%2e/server.py", "download/x", "ws/"):
            async with session.get(f"{page}{there_is_no}") as response:
                assert response.status in (403, 404)
        async with session.post(server.entry) as response:
            assert response.status == 405
        assert not server.apps()


@pytest.mark.slow
async def test_of_a_hundred_at_once_as_many_get_in_as_there_are_places(server: Served) -> None:
    async with browser() as session:
        page = await enter(session, server)
        address, own = f"{page}ws".replace("http", "ws", 1), {"Origin": server.address}
        answers = await asyncio.gather(
            *(session.ws_connect(address, headers=own) for _ in range(100)), return_exceptions=True
        )
        in_it = [answer for answer in answers if isinstance(answer, aiohttp.ClientWebSocketResponse)]
        refused = [answer for answer in answers if isinstance(answer, aiohttp.WSServerHandshakeError)]
        assert len(in_it) == 2 and {each.status for each in refused} == {503}
        # Connections beyond the limit receive nothing.
        assert {type(each) for each in answers} - {type(in_it[0]), type(refused[0])} <= {
            aiohttp.ServerDisconnectedError,
            aiohttp.ClientOSError,
            aiohttp.ClientConnectionResetError,
        }
        assert len(server.apps()) <= 2
        async with session.get(page) as response:
            assert response.status == 503 and "All places are taken: 2 visitors." in await response.text()
        for socket in in_it:
            await socket.close()
        async with visit(session, server, page) as visitor:  # waits until one of those has ended
            await visitor.until("weather.toml", "r run")
        await none_left(server)


@pytest.mark.slow
async def test_connections_that_say_nothing_keep_nobody_out(server: Served) -> None:
    host, port = server.address.removeprefix("http://").split(":")
    silent = [await asyncio.open_connection(host, int(port)) for _ in range(100)]
    async with browser() as session:
        await enter(session, server)
    ended = [asyncio.create_task(reader.read()) for reader, _ in silent]
    async with asyncio.timeout(LONGEST_WAIT_S):
        await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
    assert not all(task.done() for task in ended)  # no more of them than need be
    for (_, writer), task in zip(silent, ended, strict=True):
        task.cancel()
        writer.close()


@pytest.mark.slow
async def test_a_page_that_is_closed_ends_its_app_in_good_order(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.write("weather.toml", WEATHER + SLOW)
    with served(program, "weather.toml") as server:
        async with browser() as session:
            page = await enter(session, server)
            async with visit(session, server, page) as visitor:
                await visitor.until("Slow")
                await visitor.type("R")  # one of the two runs waits for a minute
                await visitor.until("1/2")
                (app,) = server.apps()
            await none_left(server)
            assert not Path(f"/proc/{app}").exists()
    report = json.loads(program.run("history", "show", "1", "--format", "json").stdout)
    assert [run["status"] for run in report["runs"]] == ["passed", "stopped"]


async def test_who_leaves_an_app_that_hangs_gives_the_place_back(server: Served) -> None:
    async with browser() as session:
        page = await enter(session, server)
        waits = aiohttp.ClientWSTimeout(ws_close=0.01)
        address = f"{page}ws".replace("http", "ws", 1)
        async with session.ws_connect(address, headers={"Origin": server.address}, timeout=waits) as socket:
            await socket.receive()
            (app,) = server.apps()
            os.kill(app, signal.SIGSTOP)
            await socket.send_json(["stdin", "x" * 1_000_000])
    status, waiting = Path(f"/proc/{app}/status"), 1 << signal.SIGTERM - 1
    until = time.monotonic() + LONGEST_WAIT_S
    while not int(re.findall(r"ShdPnd:\s*(\w+)", status.read_text())[0], 16) & waiting:
        assert time.monotonic() < until
        await asyncio.sleep(0.02)
    os.kill(app, signal.SIGCONT)
    await none_left(server)


@pytest.mark.slow
async def test_whoever_types_nothing_for_long_is_sent_away(program: Program) -> None:
    with served(program, "weather.toml", "--idle", "0.02") as server:
        async with browser() as session:
            page = await enter(session, server)
            async with visit(session, server, page) as visitor:
                assert await visitor.until_closed() == "Nothing was typed for 0.02 minutes."
        await none_left(server)


@pytest.mark.slow
async def test_the_server_ends_its_visitors_with_itself(program: Program) -> None:
    with served(program, "weather.toml") as server:
        async with browser() as session:
            page = await enter(session, server)
            async with visit(session, server, page) as visitor:
                await visitor.until("weather.toml", "r run")
                (app,) = server.apps()
                stranger, sends = await asyncio.open_connection(*server.address.removeprefix("http://").split(":"))
                sends.write(f"GET /?token={server.token} HTTP/9.9\r\n\r\n".encode())
                assert (await stranger.read()).startswith(b"HTTP/1.0 400")
                sends.close()
                server.process.send_signal(signal.SIGINT)
                assert str(await visitor.until_closed()).startswith("Its server was ended.")
        assert server.process.wait(LONGEST_WAIT_S) == 0 and server.process.stdout is not None
        assert server.token not in server.process.stdout.read()  # what is no HTTP is not quoted
    assert not Path(f"/proc/{app}").exists()


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 2", "It did not start"),
        ("echo what; read _", "It did not start"),
        ("echo __GANGLION__; exit 1", "It failed"),
        ("echo __GANGLION__", "It was quit."),
    ],
)
async def test_a_page_is_told_why_its_app_ended(script: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # It would take the exit code from asyncio, which prints a complaint.
    monkeypatch.setattr(subprocess.Popen, "send_signal", lambda *_: pytest.fail("asks for the exit code"))
    told: asyncio.Queue[bytes] = asyncio.Queue()
    visitor = Visitor(App(("sh", "-c", script), os.environ), write=told.put, write_text=print, close=told.put)  # type: ignore[arg-type]
    await visitor.start(80, 24)
    async with asyncio.timeout(LONGEST_WAIT_S):
        said = await told.get()
    await visitor.stop()
    assert said.decode().startswith(why) and len(said) < 124


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--read-only", "--trust"], "--read-only runs nothing: leave out --trust\n"),
        (["--host", "0.0.0.0"], "say --without-tls"),
        (["--host", "0.0.0.0", "--port", "0"], "'ssh -L 8765:127.0.0.1:8765 HOST'"),
        (["--host", "nohost.invalid"], "there is no such address or name"),
        (["--public-url", "https://a.example/x"], "an address without a path"),
        (["--port", "65536"], "a number from 0 to 65535\n"),
        (["--port", "abc"], "a number from 0 to 65535\n"),
    ],
)
def test_what_cannot_be_served_is_said(words: list[str], said: str, program: Program) -> None:
    done = program.run("serve", *words)
    assert done.returncode == 2 and said in done.stderr


def test_without_the_extra_it_says_what_to_install(program: Program) -> None:
    done = program.run("serve", first="import sys; sys.modules['workbench.remote.web'] = None")
    assert done.returncode == 2 and "pip install 'toolcall-workbench[web]'" in done.stderr


@pytest.mark.slow
def test_nothing_but_the_driver_reads_and_writes_what_is_the_browsers() -> None:
    script = """
import subprocess, sys
from workbench.tui.terminal.served_driver import reserve_pipes
reserve_pipes()
print("printed")
child = "import os, sys; print('child', repr(sys.stdin.read()), len(os.listdir('/proc/self/fd')))"
subprocess.run([sys.executable, "-c", child], close_fds=False)
"""
    done = subprocess.run([sys.executable, "-c", script], input="typed", capture_output=True, text=True)
    assert done.stdout == "" and "printed\n" in done.stderr
    assert "child '' 4\n" in done.stderr  # its three streams, and the folder that it lists
