"""Servers behind a URL, over both transports with old and new protocols: listings, answers and failures."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.programs import program_of, started
from tests.providers.server.script import HANG, Answer, Request, document, page
from tests.providers.server.server import Server as RawServer
from tests.sampled_rows import first_of
from tests.tools.conftest import PLANTED, QUICK, SUITE_FILE
from tests.tools.processes import becomes_true
from tests.tools.web import ALL_SPEAK, Shared, Speaks, hosted
from workbench.config.program import Program
from workbench.suite.server_model import Server
from workbench.tools.answer import ServerError, ToolAnswer
from workbench.tools.mcp_server import McpServer, RunServer
from workbench.tools.server_pool import ServerPool

ADD = {"a": 1, "b": 2}
TOKEN: dict[str, Any] = {"headers": {"Authorization": "Bearer $SHOP_TOKEN", "X-Plain": "yes"}}


@pytest.fixture(scope="module")
def shared() -> Iterator[Shared]:
    with ExitStack() as exits:
        yield Shared(exits)


async def start(pool: ServerPool, definition: Server) -> McpServer:
    return await started(pool, SUITE_FILE, definition)


async def start_error(pool: ServerPool, url: str, **keys: object) -> str:
    with pytest.raises(ServerError) as caught:
        await start(pool, Server.model_validate({"name": "hosted", "url": url, **keys}))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("speaks", first_of(ALL_SPEAK, 1))
async def test_a_server_is_listed_and_called_whatever_it_speaks(
    pool: ServerPool, shared: Shared, speaks: Speaks
) -> None:
    web = shared("sdk_workshop", speaks)
    server = await start(pool, web.definition(prefix="shop_"))
    add = {tool.name: tool for tool in server.tools}["shop_add"]
    assert (add.annotations, add.server) == ({"readOnlyHint": True}, "hosted")
    assert await server.call("shop_add", ADD) == ToolAnswer("3")
    assert (await server.call("shop_refuse", {})).is_error
    long = "long " * 80_000
    assert (await server.call("shop_echo", {"text": long})).content == long
    answers = await asyncio.gather(*(server.call("shop_add", {"a": n, "b": 1}) for n in range(20)))
    assert [answer.content for answer in answers] == [str(n + 1) for n in range(20)]


@pytest.mark.parametrize("speaks", ["http", "old"])
async def test_a_listing_is_read_to_its_last_page_and_results_are_checked(
    pool: ServerPool, shared: Shared, speaks: Speaks
) -> None:
    web = shared("catalogue", speaks)
    server = await start(pool, web.definition())
    assert [tool.name for tool in server.tools] == [f"tool_{number}" for number in range(60)]
    assert await server.call("tool_0", {}) == ToolAnswer('{"count":7}')
    assert (await server.call("tool_1", {})).content.startswith("Invalid structured content")
    assert await server.call("tool_2", {}) == ToolAnswer("tool_2 is out of stock", is_error=True, code=-32000)


@pytest.mark.parametrize("speaks", ["http", "sse"])
async def test_headers_arrive_filled_in(pool: ServerPool, shared: Shared, speaks: Speaks) -> None:
    web = shared("sdk_workshop", speaks)
    server = await start(pool, web.definition(**TOKEN))
    assert await server.call("header", {"name": "authorization"}) == ToolAnswer(f"Bearer {PLANTED}")
    assert await server.call("header", {"name": "x-plain"}) == ToolAnswer("yes")
    assert await server.call("header_is", {"name": "authorization", "value": f"Bearer {PLANTED}"}) == (
        ToolAnswer("true")
    )


@pytest.mark.parametrize("speaks", ["http", "old", "sse"])
async def test_progress_is_told_while_a_call_runs(pool: ServerPool, shared: Shared, speaks: Speaks) -> None:
    web = shared("sdk_workshop", speaks)
    server = await start(pool, web.definition(**TOKEN))
    told: list[tuple[float, float | None, str | None]] = []
    word = f"{PLANTED} " + "x" * 300
    await server.call("count", {"to": 3, "word": word}, lambda *now: told.append(now))
    assert [(progress, total) for progress, total, _ in told] == [(1, 3), (2, 3), (3, 3)]
    assert all(message is not None and message.startswith("$SHOP_TOKEN xxx") for *_, message in told)
    assert all(message is not None and len(message) == 200 for *_, message in told)


@pytest.mark.parametrize("speaks", first_of(["http", "old", "sse"], 1))
async def test_a_server_that_dies_in_a_call_leaves_others_alone_and_is_reached_again_in_the_next_batch(
    pool: ServerPool, shared: Shared, speaks: Speaks
) -> None:
    survivor = shared().definition("other")
    with hosted("sdk_workshop", speaks) as web:
        server = await start(pool, web.definition())
        other = await start(pool, survivor)
        hanging = asyncio.create_task(server.call("hang", {}))
        assert await server.call("add", ADD) == ToolAnswer("3")
        web.kill()
        with pytest.raises(ServerError, match=rf"server 'hosted' .*\(url: {web.url}\)"):
            await hanging
        with pytest.raises(ServerError, match="server 'hosted'"):
            await server.call("add", ADD)
        assert await other.call("add", ADD) == ToolAnswer("3")
        with pytest.raises(ServerError, match="server 'hosted'"):
            await (await start(pool, web.definition())).call("add", ADD)
        with hosted("sdk_workshop", speaks, web.port):
            await pool.begin_batch()
            again = await start(pool, web.definition())
            assert await again.call("add", ADD) == ToolAnswer("3")
            assert await start(pool, survivor) is other


@pytest.mark.slow
async def test_a_server_that_was_started_again_gets_a_new_session(pool: ServerPool) -> None:
    with hosted("sdk_workshop", "old") as web:
        server = await start(pool, web.definition())
        web.kill()
        with hosted("sdk_workshop", "old", web.port):
            assert await server.call("add", ADD) == ToolAnswer("3")
            assert server.down_reason is None
            assert await start(pool, web.definition()) is server


@pytest.mark.slow
async def test_a_lost_server_has_some_time_to_come_back(program: Program) -> None:
    pool = ServerPool(program, replace(QUICK, return_s=60))
    with hosted("sdk_workshop", "old") as web:
        server = await start(pool, web.definition())
        web.kill()
        with pytest.raises(ServerError, match="server 'hosted'"):
            await server.call("add", ADD)
        waiting = [asyncio.create_task(RunServer(server).call("add", ADD)) for _ in range(3)]
        await becomes_true(lambda: server.renewal is not None)
        with hosted("sdk_workshop", "old", web.port):
            assert await asyncio.gather(*waiting) == [ToolAnswer("3")] * 3
            await pool.close()


@pytest.mark.parametrize("status", first_of([405, 404], 1))
async def test_a_server_that_refuses_to_stream_serves_on(program: Program, status: int) -> None:
    pool = ServerPool(program, replace(QUICK, call_s=1.0))
    asked: list[str] = []

    def answer(request: Request) -> Answer:
        message: Mapping[str, Any] = request.json if request.body else {}
        asked.append(message.get("method", request.method))
        match asked[-1]:
            case "GET":
                return page("Cannot GET /mcp", status)
            case "initialize":
                about = {"serverInfo": {"name": "raw", "version": "1"}, "capabilities": {"tools": {}}}
                result: dict[str, Any] = {"protocolVersion": "2025-06-18", **about}
            case "tools/list":
                result = {"tools": [{"name": "talk", "inputSchema": {"type": "object"}}]}
            case "tools/call" if message["params"]["arguments"]:
                result = {"content": []}
            case "tools/call":
                return Answer((HANG,))
            case "server/discover":
                return page("no session", 400)
            case _:
                return document({}, 202)
        said = document({"jsonrpc": "2.0", "id": message["id"], "result": result})
        return replace(said, headers={**said.headers, "mcp-session-id": "one"})

    with RawServer(answer) as raw:
        server = await start(pool, Server(name="hosted", url=f"{raw.url}/mcp"))
        await becomes_true(lambda: "GET" in asked)
        with pytest.raises(ServerError, match=r"did not answer a call of talk within 1 s") as caught:
            await server.call("talk", {})
        assert f"{status}" not in str(caught.value)
        assert await server.call("talk", {"answer": True}) == ToolAnswer("")
        await pool.close()


async def test_a_server_can_be_stopped_and_is_started_anew_when_it_is_needed(pool: ServerPool, shared: Shared) -> None:
    web = shared("sdk_workshop", "old")
    server = await start(pool, web.definition())
    await pool.stop(SUITE_FILE, web.definition())
    with pytest.raises(ServerError, match="server 'hosted' was closed"):
        await server.call("add", ADD)
    again = await start(pool, web.definition())
    assert again is not server
    assert await again.call("add", ADD) == ToolAnswer("3")


@pytest.mark.parametrize("speaks", first_of(ALL_SPEAK, 2))
async def test_an_answer_that_is_too_long_is_not_taken_in(pool: ServerPool, shared: Shared, speaks: Speaks) -> None:
    web = shared("sdk_workshop", speaks)
    server = await start(pool, web.definition())
    with pytest.raises(ServerError, match=r"more than 32 MiB|too long|exceeded the 33554432 byte limit"):
        await server.call("flood", {"mebibytes": 33})


async def test_a_call_that_takes_too_long_is_given_up(program: Program, shared: Shared) -> None:
    pool = ServerPool(program, replace(QUICK, call_s=1))
    web = shared("sdk_workshop")
    server = await start(pool, web.definition())
    with pytest.raises(ServerError, match=r"did not answer a call of hang within 1 s"):
        await server.call("hang", {})
    assert await server.call("add", ADD) == ToolAnswer("3")
    await pool.close()


async def test_a_variable_that_is_missing_is_named_before_anything_is_sent(pool: ServerPool) -> None:
    with RawServer([]) as raw:
        error = await start_error(pool, f"{raw.url}/mcp", headers={"Authorization": "Bearer ${NOT_SET}"})
        assert error == (
            f"server 'hosted' needs the environment variable NOT_SET, which is not set (url: {raw.url}/mcp)"
        )
        assert raw.requests == []


async def test_a_value_that_no_header_can_hold_is_reported_by_its_header(tmp_path: Path) -> None:
    pool = ServerPool(program_of(tmp_path, {"SHOP_TOKEN": f"{PLANTED}\n"}), QUICK)
    with RawServer([]) as raw:
        error = await start_error(pool, f"{raw.url}/mcp", headers={"X-Token": "$SHOP_TOKEN"})
        assert "the header 'X-Token' contains a character that is not allowed there" in error
        assert PLANTED not in error


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:9/mcp", "cannot be reached: nothing listens at its address (connection refused)"),
        ("http://no-such-host.invalid/mcp", "cannot be reached: there is no host 'no-such-host.invalid'"),
        ("http://user:s3cret@127.0.0.1:9/mcp?key=s3cret", "connection refused) (url: http://127.0.0.1:9/mcp)"),
    ],
)
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_server_that_is_not_there_is_one_plain_sentence(
    pool: ServerPool, url: str, said: str, transport: str
) -> None:
    error = await start_error(pool, url, transport=transport)
    assert said in error
    assert "s3cret" not in error


async def test_a_certificate_that_nobody_vouches_for_is_one_plain_sentence(pool: ServerPool) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    with RawServer([], tls=context) as raw:
        error = await start_error(pool, f"{raw.url}/mcp")
        assert "cannot be reached: its TLS certificate is not accepted (" in error
        assert "name the file of its authority, or its own, in SSL_CERT_FILE" in error
    with RawServer([]) as raw:
        assert "cannot be reached: TLS failed (" in await start_error(pool, f"https://127.0.0.1:{raw.port}/mcp")


ANSWERS: dict[str, tuple[Callable[[Request], Answer], str]] = {
    "a wrong key": (
        lambda _: document({"error": "who are you?"}, 401),
        "answers with 401 Unauthorized: check its headers and the token in them",
    ),
    "a wrong path": (lambda _: page("<h1>404</h1>", 404), "answers with 404 Not Found: check the path"),
    "the other transport": (lambda _: page("", 405), "answers with 405 Method Not Allowed: check its address, or"),
    "a broken gateway": (lambda _: page("<h1>502</h1>", 502), "answers with 502 Bad Gateway"),
    "a web page": (lambda _: page("<h1>Welcome</h1>"), "does not speak MCP as expected: Unexpected content type"),
    "no JSON": (
        lambda _: Answer((b"{",), headers={"content-type": "application/json"}),
        "does not speak MCP as expected: Failed to parse JSON response: it is not a message of JSON-RPC (",
    ),
    "no event": (lambda _: Answer(()), "does not speak MCP as expected: SSE stream ended without a response"),
    "a moved server": (
        lambda _: Answer((), 307, {"location": "http://elsewhere.invalid/mcp?token=1"}, "length"),
        "does not speak MCP as expected: Redirect to http://elsewhere.invalid/mcp not followed",
    ),
}


@pytest.mark.parametrize("what", ANSWERS)
async def test_what_speaks_no_mcp_is_one_plain_sentence(pool: ServerPool, what: str) -> None:
    answer, said = ANSWERS[what]
    with RawServer(answer) as raw:
        error = await start_error(pool, f"{raw.url}/mcp", headers={"Authorization": "Bearer $SHOP_TOKEN"})
        assert error.startswith(f"server 'hosted' {said}")
        assert error.endswith(f"(url: {raw.url}/mcp)")


@pytest.mark.parametrize("what", ["a wrong key", "a wrong path", "a web page", "a moved server"])
async def test_so_it_is_over_sse(pool: ServerPool, what: str) -> None:
    with RawServer(ANSWERS[what][0]) as raw:
        error = await start_error(pool, f"{raw.url}/sse", transport="sse")
        said = {
            "a web page": "sent something that is not a stream of events",
            "a moved server": "answers with 307 Temporary Redirect",
        }
        assert error.startswith(f"server 'hosted' {said.get(what, ANSWERS[what][1])}")


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_server_that_never_answers_is_given_up(program: Program, transport: str) -> None:
    pool = ServerPool(program, replace(QUICK, start_s=0.3))
    with RawServer(lambda _: Answer((HANG,))) as raw:
        error = await start_error(pool, f"{raw.url}/mcp", transport=transport)
        assert "did not answer within 0.3 s" in error


async def test_no_other_host_is_sent_the_headers(pool: ServerPool) -> None:
    with RawServer([]) as elsewhere:
        moved = Answer((), 307, {"location": f"http://localhost:{elsewhere.port}/mcp"}, "length")
        with RawServer(lambda _: moved) as raw:
            error = await start_error(pool, f"{raw.url}/mcp", **TOKEN)
            assert f"Redirect to http://localhost:{elsewhere.port}/mcp not followed" in error
            assert raw.requests[0].headers["authorization"] == f"Bearer {PLANTED}"
        assert elsewhere.requests == []


@pytest.mark.slow
async def test_proxies_of_the_environment_are_not_used_for_this_machine(
    pool: ServerPool, shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = shared()
    with RawServer([]) as proxy:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        for host in ("127.0.0.1", "localhost"):
            url = f"http://{host}:{web.port}/mcp"
            server = await start(pool, Server(name=host, url=url))
            assert await server.call("add", ADD) == ToolAnswer("3")
        assert proxy.requests == []
        error = await start_error(pool, "http://example.invalid/mcp")
        assert proxy.requests[0].path == "http://example.invalid/mcp"
        assert "answers with 500 Internal Server Error" in error


class Scripted:
    """A server of the newest protocol with a tool `talk`, whose answers the test defines. Everything else works."""

    def __init__(self, answer: Callable[[Request], Answer]) -> None:
        self._answer = answer

    def __call__(self, request: Request) -> Answer:
        message: Mapping[str, Any] = request.json if request.body else {}
        match message.get("method"):
            case "server/discover":
                found = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
                return self._said(message, {**found, "ttlMs": 0, "cacheScope": "private"})
            case "tools/list":
                tool = {"name": "talk", "inputSchema": {"type": "object"}}
                return self._said(message, {"tools": [tool], "ttlMs": 0, "cacheScope": "private"})
            case "tools/call":
                return self._answer(request)
        return document({}, 202)

    @staticmethod
    def _said(message: Mapping[str, Any], result: Mapping[str, Any]) -> Answer:
        return document({"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete", **result}})


async def test_a_certificate_of_ones_own_is_accepted_when_its_authority_is_named(
    pool: ServerPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    authority.issue_cert("127.0.0.1").configure_cert(context)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    with RawServer(Scripted(lambda _: document({})), tls=context) as raw:
        server = await start(pool, Server.model_validate({"name": "hosted", "url": f"{raw.url}/mcp"}))
        assert [tool.name for tool in server.tools] == ["talk"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda _: page("<h1>502</h1>", 502), "failed a call of talk: it answered with 502 Bad Gateway"),
        (lambda _: document({"detail": "slow down"}, 429), "failed a call of talk: it answered with 429 Too Many"),
        (lambda _: page("<h1>Welcome</h1>"), "failed a call of talk: Unexpected content type"),
        (lambda _: Answer((b": nothing\n\n",)), "failed a call of talk: SSE stream ended without a response"),
        (
            lambda _: Answer((b"data: {\n\n",)),
            "failed a call of talk: Failed to parse SSE message: it is not a message of JSON-RPC (",
        ),
        (lambda _: document({"ok": True}), "failed a call of talk: Failed to parse JSON response: it is not a message"),
    ],
)
async def test_an_answer_that_is_none_fails_that_call_alone(
    pool: ServerPool, answer: Callable[[Request], Answer], said: str
) -> None:
    with RawServer(Scripted(answer)) as raw:
        server = await start(pool, Server(name="hosted", url=f"{raw.url}/mcp"))
        for _ in range(2):
            with pytest.raises(ServerError) as caught:
                await server.call("talk", {})
            assert str(caught.value).startswith(f"server 'hosted' {said}")
        assert server.down_reason is None


async def test_an_error_of_the_protocol_is_for_the_model_to_see(pool: ServerPool) -> None:
    def refuse(request: Request) -> Answer:
        error = {"code": -32602, "message": f"no {PLANTED} today"}
        return document({"jsonrpc": "2.0", "id": request.json["id"], "error": error}, 400)

    with RawServer(Scripted(refuse)) as raw:
        server = await start(pool, Server.model_validate({"name": "hosted", "url": f"{raw.url}/mcp", **TOKEN}))
        assert await server.call("talk", {}) == ToolAnswer(f"no {PLANTED} today", is_error=True, code=-32602)


async def test_a_connection_that_breaks_takes_the_server_down(pool: ServerPool) -> None:
    with RawServer(Scripted(lambda _: Answer((), before=(b"junk\r\n\r\n",)))) as raw:
        server = await start(pool, Server(name="hosted", url=f"{raw.url}/mcp"))
        with pytest.raises(ServerError, match="closed the connection"):
            await server.call("talk", {})
        assert server.down_reason is not None


@pytest.mark.slow
async def test_a_call_that_hangs_does_not_hold_up_closing(pool: ServerPool) -> None:
    with RawServer(Scripted(lambda _: Answer((HANG,)))) as raw:
        server = await start(pool, Server(name="hosted", url=f"{raw.url}/mcp"))
        call = asyncio.create_task(server.call("talk", {}))
        await becomes_true(lambda: len(raw.requests) == 3)
        async with asyncio.timeout(30):
            await pool.close()
        with pytest.raises(ServerError, match="was closed"):
            await call
