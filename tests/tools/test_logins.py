"""Servers behind OAuth: logging in, storing a login, renewing it, and losing it."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.programs import program_of, started
from tests.providers.server import Answer, Request, document, page
from tests.providers.server import Server as RawServer
from tests.providers.server.script import Signal, Tell
from tests.sampled_rows import first_of
from tests.tools.conftest import QUICK, SUITE_FILE
from tests.tools.guarded import ROBOT_SECRET, Browser, Guarded, ended, guarded
from workbench.config.program import Program
from workbench.suite.server_model import Server
from workbench.tools.answer import ServerError, ToolAnswer
from workbench.tools.login_file import LoginFile, login_settings
from workbench.tools.mcp_server import McpServer
from workbench.tools.oauth import ServerLogin
from workbench.tools.redirect import LoginError, PortTakenError, RedirectServer
from workbench.tools.server_pool import ServerPool

ADD = {"a": 1, "b": 2}
TOKENS = b'{"access_token": "new-4711", "token_type": "bearer", "refresh_token": "next-4711", "expires_in": 3600}'
WANTS = "server 'guarded' wants a login"


@pytest.fixture(scope="module")
def server() -> Iterator[Guarded]:
    with guarded() as listening:
        yield listening


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return program_of(tmp_path, {**os.environ, "ROBOT_SECRET": ROBOT_SECRET, "PERSON_ID": "by-hand"})


class Login:
    """The login of a server in a program's folders."""

    def __init__(self, program: Program, definition: Server) -> None:
        settings = login_settings(definition, program.environment.variables, program.secrets)
        assert settings is not None
        self.folder = program.folders.logins
        self.stored = self.folder / settings.file_name
        self._file = LoginFile(self.folder, settings)
        self._login = ServerLogin("guarded", settings, self._file, program.secrets, "workbench login guarded", 5.0)

    async def by_browser(self) -> Browser:
        async with RedirectServer(0) as redirect:
            person = Browser(redirect)
            async with asyncio.timeout(20):
                await self._login.log_in(person)
        return person

    async def fails(self) -> str:
        with pytest.raises(LoginError) as caught:
            await self.by_browser()
        return str(caught.value)

    def read(self) -> Any:
        return json.loads(self.stored.read_text())

    def expire(self) -> None:
        self.stored.write_text(json.dumps(ended(self.read())))


async def start(pool: ServerPool, definition: Server) -> McpServer:
    return await started(pool, SUITE_FILE, definition)


async def start_error(pool: ServerPool, definition: Server) -> str:
    with pytest.raises(ServerError) as caught:
        await start(pool, definition)
    await pool.begin_batch()
    return str(caught.value)


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_a_login_is_kept_privately_and_parallel_calls_do_not_wait_for_each_other(
    program: Program, pool: ServerPool, server: Guarded, protocol: str
) -> None:
    definition = server.definition(protocol=protocol)
    command = f"workbench login guarded {os.path.relpath(SUITE_FILE)}"
    assert await start_error(pool, definition) == f"{WANTS}: run '{command}' (url: {server.url})"
    login = Login(program, definition)
    person = await login.by_browser()
    assert (person.asked["scope"], person.asked["resource"]) == ("use", server.url)
    assert stat.S_IMODE(login.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in login.folder.iterdir()} == {0o600}
    running = await start(pool, definition)
    # The server answers the five requests only when all have arrived.
    assert await asyncio.gather(*(running.call("meet", {}) for _ in range(5))) == [ToolAnswer("met")] * 5
    for token in ("access_token", "refresh_token"):
        value = login.read()["tokens"][token]
        assert program.secrets.redact(f"Bearer {value}") == f"Bearer $GUARDED_{token.upper().removeprefix('ACCESS_')}"


async def test_an_expired_login_is_renewed_after_a_restart(program: Program, pool: ServerPool, server: Guarded) -> None:
    login = Login(program, server.definition())
    await login.by_browser()
    login.expire()
    before = login.read()["tokens"]
    running = await start(pool, server.definition())
    assert await running.call("add", ADD) == ToolAnswer("3")
    after = login.read()
    assert after["tokens"]["access_token"] != before["access_token"] and after["expires_at"] > 1
    assert after["tokens"]["refresh_token"] != before["refresh_token"]
    assert program.secrets.redact(after["tokens"]["access_token"]) == "$GUARDED_TOKEN"
    assert server.grants()[-2:] == ["authorization_code", "refresh_token"]


async def test_a_login_that_cannot_be_renewed_now_is_kept(program: Program, pool: ServerPool, server: Guarded) -> None:
    login = Login(program, server.definition())
    await login.by_browser()
    stored = login.read()
    stored["authorization_metadata"]["token_endpoint"] = "http://127.0.0.1:9/token"
    login.stored.write_text(json.dumps({**stored, "expires_at": 1.0}))
    message = await start_error(pool, server.definition())
    assert "cannot renew its login: http://127.0.0.1:9/token cannot be reached" in message
    # A token that expires soon is renewed, and is still sent while the renewal fails.
    login.stored.write_text(json.dumps({**stored, "expires_at": time.time() + 20}))
    assert await (await start(pool, server.definition())).call("add", ADD) == ToolAnswer("3")
    assert login.read()["tokens"] == stored["tokens"]


async def test_a_run_that_is_stopped_while_a_login_is_renewed_keeps_it(program: Program, server: Guarded) -> None:
    login = Login(program, server.definition())
    await login.by_browser()
    came, go_on = Signal(), Signal()
    with RawServer([Answer((Tell(came), go_on, TOKENS), headers={"content-type": "application/json"})]) as raw:
        stored = login.read()
        stored["authorization_metadata"]["token_endpoint"] = f"{raw.url}/token"
        login.stored.write_text(json.dumps(ended(stored)))
        stopped = asyncio.create_task(login._login.token())
        await asyncio.to_thread(came.wait)
        stopped.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await stopped
    assert login.read()["tokens"] == {**json.loads(TOKENS), "token_type": "Bearer", "scope": "use"}


async def test_a_token_that_is_refused_is_renewed_once_by_all_connections(program: Program, server: Guarded) -> None:
    pools = [ServerPool(program, QUICK) for _ in range(2)]
    await Login(program, server.definition()).by_browser()
    running = [await start(pool, server.definition()) for pool in pools]
    server.does("end-access")
    answers = await asyncio.gather(*(each.call("add", ADD) for each in running * 5))
    assert answers == [ToolAnswer("3")] * 10
    assert server.grants()[-2:] == ["authorization_code", "refresh_token"]
    for pool in pools:
        await pool.close()


async def test_a_revoked_login_is_asked_for_again(program: Program, pool: ServerPool, server: Guarded) -> None:
    login = Login(program, server.definition())
    await login.by_browser()
    running = await start(pool, server.definition())
    server.does("revoke")
    with pytest.raises(ServerError, match=r"401 Unauthorized: it wants a login \(the last one has ended\): run 'work"):
        await running.call("add", ADD)
    assert not login.stored.exists()
    assert (await start_error(ServerPool(program, QUICK), server.definition())).startswith(f"{WANTS}: run '")
    await login.by_browser()
    assert await running.call("add", ADD) == ToolAnswer("3")


async def test_a_login_without_enough_rights_says_what_it_lacks(
    program: Program, pool: ServerPool, server: Guarded
) -> None:
    definition = server.definition(scope="admin", client_id="narrow")
    async with RedirectServer(0) as redirect:
        server.does(
            "register",
            {
                "client_id": "narrow",
                "redirect_uris": [redirect.address],
                "scope": "admin",
                "token_endpoint_auth_method": "none",
            },
        )
        await Login(program, definition)._login.log_in(Browser(redirect))
    message = await start_error(pool, definition)
    assert "answers with 403 Forbidden: the login lacks the scope 'use': add it to scope, and log in again" in message


async def test_a_login_that_cannot_be_read_says_so(program: Program, pool: ServerPool, server: Guarded) -> None:
    login = Login(program, server.definition())
    login.folder.mkdir(parents=True)
    login.stored.write_text('{"tokens": "tok-4711"')
    message = await start_error(pool, server.definition())
    assert f"{login.stored} is damaged: delete it, and log in again" in message and "tok-4711" not in message


async def test_a_machine_logs_in_by_itself(program: Program, pool: ServerPool, server: Guarded) -> None:
    running = await start(pool, server.machine(scope="use"))
    assert await running.call("add", ADD) == ToolAnswer("3")
    server.does("end-access")
    assert await running.call("add", ADD) == ToolAnswer("3")
    assert server.grants()[-2:] == ["client_credentials"] * 2
    [stored] = program.folders.logins.glob("*.json")
    assert ROBOT_SECRET not in stored.read_text()


async def test_a_machine_logs_in_where_nothing_can_be_stored(
    program: Program, pool: ServerPool, server: Guarded
) -> None:
    program.folders.state.mkdir(parents=True)
    program.folders.logins.write_text("no folder")
    running = await start(pool, server.machine())
    server.does("end-access")
    assert await running.call("add", ADD) == ToolAnswer("3")
    assert f"cannot be logged in to: {program.folders.logins}" in await start_error(pool, server.definition())


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (
            {"client_id": "robert"},
            "answers with 401 Unauthorized (no such client): check client_id and client_secret",
        ),
        ({"issuer": "https://other.test"}, "but the suite has issuer = 'https://other.test'"),
    ],
)
async def test_a_machine_that_is_refused_says_why(
    pool: ServerPool, server: Guarded, keys: dict[str, str], says: str
) -> None:
    assert says in await start_error(pool, server.machine(**keys))


@pytest.mark.slow
async def test_a_login_over_server_sent_events(program: Program, pool: ServerPool) -> None:
    with guarded("sse") as server:
        definition = server.definition()
        login = Login(program, definition)
        await login.by_browser()
        running = await start(pool, definition)
        server.does("end-access")
        assert await running.call("add", ADD) == ToolAnswer("3")
        server.does("revoke")
        with pytest.raises(ServerError, match="wants a login"):
            await running.call("add", ADD)


async def test_a_client_that_was_registered_by_hand_is_used_at_its_issuer_alone(
    program: Program, pool: ServerPool, server: Guarded
) -> None:
    keys = {"client_id": "$PERSON_ID", "client_secret": "$ROBOT_SECRET", "scope": "use admin"}
    async with RedirectServer(0) as redirect:
        registered = {
            "client_id": "by-hand",
            "client_secret": ROBOT_SECRET,
            "redirect_uris": [redirect.address],
            "token_endpoint_auth_method": "client_secret_post",
            "scope": "use admin",
        }
        server.does("register", registered)
        definition = server.definition(**keys, issuer=f"{server.origin}/")
        before = server.grants()
        person = Browser(redirect)
        await Login(program, definition)._login.log_in(person)
    assert (person.asked["client_id"], person.asked["scope"]) == ("by-hand", "use admin")
    # The server accepts the client's secret only in the form, which takes a second request.
    assert server.grants() == [*before, "authorization_code", "authorization_code"]
    login = Login(program, definition)
    assert ROBOT_SECRET not in login.stored.read_text()
    login.expire()
    assert await (await start(pool, definition)).call("add", ADD) == ToolAnswer("3")
    other = Login(program, server.definition(**keys, issuer="https://other.test"))
    assert "the server names the authorization server" in await other.fails()


WHERE = "{origin}/.well-known/oauth-protected-resource"


def told(origin: str, **changes: object) -> dict[str, object]:
    """The metadata of an authorization server."""
    endpoints = {"authorization": "authorize", "token": "token", "registration": "register"}
    return {"issuer": origin, **{f"{name}_endpoint": f"{origin}/{at}" for name, at in endpoints.items()}, **changes}


CLIENT = document({"client_id": "c", "redirect_uris": ["http://127.0.0.1/callback"]}, 201)
NO_CLIENTS = document({"error": "access_denied", "error_description": "clients are registered\nby mail"}, 403)
REFUSED = Answer((), 401, {"content-length": "0"}, "length")

NO_METADATA = dict.fromkeys(("/prm", "/as", "/register"), page("none", 404))

Pages = Callable[[str], dict[str, Answer]]

FAILURES: dict[str, tuple[Pages, str]] = {
    "no such path": (lambda _: {"/mcp": page("none", 404)}, "answers with 404 Not Found: check the path"),
    "no login": (
        lambda _: {"/mcp": document({}), **NO_METADATA},
        "the server does not ask for a login: remove auth, or check the server's address",
    ),
    "no metadata": (
        lambda _: NO_METADATA,
        "the server does not say where to log in: check the server's address, or put a token into headers",
    ),
    "metadata that fails": (lambda _: {"/prm": page("", 500)}, "metadata request failed: HTTP 500: try again later"),
    "metadata of another server": (
        lambda origin: {"/prm": document({"resource": "https://other.test", "authorization_servers": [origin]})},
        "/mcp: check the address of the server",
    ),
    "metadata of another issuer": (
        lambda _: {"/as": document(told("https://other.test"))},
        "the operator of the server has to correct this",
    ),
    "metadata without end": (lambda _: {"/prm": page("x" * (1 << 20) + "x")}, "answers with more than 1 MiB"),
    "no registration": (
        lambda _: {"/register": NO_CLIENTS},
        "/register answers with 403 Forbidden (clients are registered), so clients cannot register "
        "themselves: register a client by hand, with the redirect address http://127.0.0.1:",
    ),
    "registration in clear text": (
        lambda origin: {"/as": document(told(origin, registration_endpoint="http://other.test/register"))},
        "the login leads to http://other.test/register, which has no TLS, so nothing was sent there",
    ),
    "a registration that is none": (
        lambda _: {"/register": document({"clientId": "c"}, 201)},
        "/register does not answer as OAuth requires: check its address, or ask its operator",
    ),
    "a refusal by the person": (
        lambda _: {"/authorize": redirected("error=access_denied&error_description=Not+%1B%5B31mtoday")},
        "refused the login",
    ),
    "no token": (
        lambda _: {"/authorize": redirected("code=abc"), "/token": document({"error": "server_error"}, 503)},
        "/token answers with 503 Service Unavailable (server_error)",
    ),
    "a token that is none": (
        lambda _: {"/authorize": redirected("code=abc"), "/token": document({"accessToken": "tok-4711"})},
        "/token does not answer as OAuth requires: check its address, or ask its operator",
    ),
}


def redirected(query: str) -> Answer:
    """An answer that sends the browser back; `scripted` completes it."""
    return Answer((query.encode(),), 302)


def scripted(pages: Pages) -> Callable[[Request], Answer]:
    """An authorization server, and the server that it guards, of some pages; others are as they should be."""

    def answer(request: Request) -> Answer:
        origin = f"http://{request.headers['host']}"
        path, _, query = request.path.partition("?")
        usual = {
            "/mcp": REFUSED,
            "/register": CLIENT,
            "/prm": document({"resource": f"{origin}/mcp", "authorization_servers": [origin]}),
            "/as": document(told(origin)),
        }
        name = path
        if path.startswith("/.well-known/oauth-protected-resource"):
            name = "/prm"
        elif path.startswith("/.well-known/"):
            name = "/as"
        found = (usual | pages(origin)).get(name, page("none", 404))
        if path != "/authorize" or found.status != 302:
            return found
        asked = dict(pair.split("=") for pair in query.split("&"))
        [back] = found.pieces
        assert isinstance(back, bytes)
        address = (
            f"{httpx2.URL('http://x?u=' + asked['redirect_uri']).params['u']}?{back.decode()}&state={asked['state']}"
        )
        return Answer((), 302, {"location": address, "content-length": "0"}, "length")

    return answer


@pytest.mark.parametrize("what", first_of(FAILURES, 4))
async def test_a_login_that_fails_says_why_and_stores_nothing(program: Program, what: str) -> None:
    pages, says = FAILURES[what]
    with RawServer(scripted(pages)) as raw:
        definition = Server.model_validate({"name": "guarded", "url": f"{raw.url}/mcp", "auth": "oauth"})
        login = Login(program, definition)
        message = await login.fails()
    assert says in message and "\n" not in message and "tok-4711" not in message
    assert not login.stored.exists()


ODD_TEXTS = st.sampled_from(["", "https://[", "http://a..b/", "x", "Bearer", "\ud800", "https://as.test/\n"])
ODD_VALUES = ODD_TEXTS | st.none() | st.booleans() | st.integers(-2, 1 << 70) | st.lists(ODD_TEXTS, max_size=2)
ODD_KEYS = st.sampled_from(
    [
        *("resource", "authorization_servers", "issuer", "authorization_endpoint", "token_endpoint"),
        *("registration_endpoint", "scopes_supported", "client_id", "client_secret", "token_endpoint_auth_method"),
        *("token_type", "expires_in", "scope", "error", "error_description"),
    ]
)


@pytest.mark.slow
@given(
    st.sampled_from(["/prm", "/as", "/register", "/token"]),
    st.sampled_from([200, 201, 302, 400, 401, 503]),
    st.binary(max_size=8) | ODD_VALUES | st.dictionaries(ODD_KEYS, ODD_VALUES, max_size=4),
)
def test_whatever_an_authorization_server_answers_is_one_sentence(path: str, status: int, answer: Any) -> None:
    odd = Answer((answer,), status) if isinstance(answer, bytes) else document(answer, status)
    odd = replace(odd, headers={**odd.headers, "location": "https://[" if status == 302 else ""})

    def pages(_: str) -> dict[str, Answer]:
        return {"/token": document({"error": "invalid_grant"}, 400), "/authorize": redirected("code=abc"), path: odd}

    with TemporaryDirectory() as folder, RawServer(scripted(pages)) as raw:
        definition = Server.model_validate({"name": "guarded", "url": f"{raw.url}/mcp", "auth": "oauth"})
        message = asyncio.run(Login(program_of(Path(folder)), definition).fails())
    assert message.startswith("cannot be logged in to: ") and "\n" not in message


async def test_nothing_listens(program: Program, server: Guarded) -> None:
    with RawServer([]) as raw:
        url = f"{raw.url}/mcp"
    login = Login(program, Server.model_validate({"name": "guarded", "url": url, "auth": "oauth"}))
    assert f"{url} cannot be reached" in await login.fails()


async def test_the_local_address_takes_the_answer_of_this_login_alone() -> None:
    async with RedirectServer(0) as redirect, httpx2.AsyncClient() as browser:
        with pytest.raises(PortTakenError):
            await RedirectServer(redirect.port).__aenter__()
        waiting = asyncio.create_task(redirect.answer_to("https://as.test/authorize?state=s1"))
        await asyncio.sleep(0)
        origin = f"http://127.0.0.1:{redirect.port}"
        for path, status in (
            ("/favicon.ico", 404),
            ("/callback", 400),
            ("/callback?code=c", 400),
            ("/callback?code=c&state=s2", 400),
            ("/callback?error=access_denied&state=s2", 400),
            ("/callback?code=c&state=s1&iss=https%3A%2F%2Fas.test", 200),
        ):
            assert (await browser.get(f"{origin}{path}")).status_code == status, path
        assert (await browser.post(f"{origin}/callback?code=d&state=s1")).status_code == 404
        answer = await waiting
        assert (answer.code, answer.state, answer.iss) == ("c", "s1", "https://as.test")
        for text in ("", "nonsense", "https://[", "http://127.0.0.1/callback?state=s1"):
            assert (
                redirect.accept_address(text)
                == "this is not the address to which the browser was sent: it has neither "
                "code= nor error="
            )
