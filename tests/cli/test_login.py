"""`workbench login` as a person types it: in a pipe and on a terminal, by a browser and by a pasted address."""

from __future__ import annotations

import json
import re
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import httpx2
import pytest

from tests.cli.program import Dialogue, Program, read_until
from tests.tools.guarded import ROBOT_SECRET, Guarded, ended, guarded

REDIRECT_PORT = 47323
RUN = ("run", "shop.toml", "--model", "offline", "--trust")
CALL = ("tools", "shop.toml", "--call", "add", "--args", '{"a": 1, "b": 2}', "--trust")
LOGIN = ("login", "tracker", "--trust")
WANTS = "server 'tracker' wants a login: run 'workbench login tracker shop.toml'"


@pytest.fixture(scope="module")
def server() -> Iterator[Guarded]:
    with guarded() as listening:
        yield listening


def suite(server: Guarded, keys: str = 'auth = "oauth"', name: str = "tracker") -> str:
    return (
        f'format = 1\nname = "Shop"\nexecute = true\n[[servers]]\nname = "{name}"\nurl = "{server.url}"\n{keys}\n'
        '[[cases]]\nname = "Adds"\nuser = "add a 1 b 2"\nunordered = [{ tool = "add", args = { a = 1, b = 2 } }]\n'
    )


@pytest.fixture
def shop(program: Program, server: Guarded) -> Program:
    program.write("shop.toml", suite(server))
    return program


def logins(program: Program) -> Path:
    return program.folder / "state" / "toolcall-workbench" / "logins"


def address_in(text: str) -> str:
    found = re.search(r"^http://\S+/authorize\?\S+", text, re.MULTILINE)
    assert found is not None, text
    return found[0]


def log_in(program: Program, *words: str) -> str:
    """Log in with a browser that follows the printed address. Return the rest of the output."""
    with program.start(*(words or LOGIN)) as running:
        said = read_until(running, "/authorize?")
        assert httpx2.get(address_in(said), follow_redirects=True).status_code == 200
        rest, errors = running.communicate()
        assert running.returncode == 0, errors
    return rest


def test_a_suite_is_run_after_a_login_and_nothing_shows_its_tokens(shop: Program, server: Guarded) -> None:
    before = shop.run(*RUN)
    assert before.returncode == 3 and WANTS in before.stdout and "1 in error" in before.stdout
    rest = log_in(shop)
    assert "paste the address that it shows here" in rest and rest.endswith("tracker: logged in, with 2 tools\n")
    called = shop.run(*CALL)
    assert (called.returncode, called.stdout) == (0, "3\n")
    [stored] = logins(shop).glob("*.json")
    stored.write_text(json.dumps(ended(json.loads(stored.read_text()))))
    tokens = set(json.loads(stored.read_text())["tokens"].values())
    report = shop.run(*RUN, "--report", "report.html", "--report", "report.json")
    assert report.returncode in (0, 1), report.stdout + report.stderr
    tokens |= set(json.loads(stored.read_text())["tokens"].values())
    secrets = [token.encode() for token in tokens if isinstance(token, str) and token.startswith("test_")]
    assert len(secrets) == 4
    for file in shop.folder.rglob("*"):
        if file.is_file() and file.parent != logins(shop):
            content = file.read_bytes()
            assert not any(secret in content for secret in secrets), file


def test_the_address_is_pasted_over_ssh(shop: Program) -> None:
    asked = shop.ask(*LOGIN)
    asked.wait_for("paste the address that it shows here")
    address = address_in(asked._said.decode().replace("\r", ""))
    back = httpx2.get(address).headers["location"]
    asked.answer("what?")
    asked.wait_for("it has neither code= nor error=")
    asked.answer(back.replace("state=", "state=x"))
    asked.wait_for("belongs to another login")
    asked.answer("")
    asked.answer(f"  {back} ")
    said = asked.end()
    assert "tracker: logged in, with 2 tools" in said and "Traceback" not in said
    assert asked.returncode == 0


FOLLOWS = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()"


def test_enter_opens_a_browser_on_this_machine(shop: Program) -> None:
    shop.write("browser.py", FOLLOWS)
    browser = f"{sys.executable} {shop.folder / 'browser.py'} %s"
    asked = replace(shop, variables={"DISPLAY": ":0", "BROWSER": browser}).ask(*LOGIN)
    asked.wait_for("press Enter to open it in a browser here")
    asked.answer("")
    assert "tracker: logged in, with 2 tools" in asked.end()
    assert asked.returncode == 0


def test_a_login_is_given_up_and_refused(shop: Program) -> None:
    for way in ("interrupt", "refuse"):
        asked: Dialogue = shop.ask(*LOGIN)
        asked.wait_for("paste the address that it shows here")
        if way == "interrupt":
            asked.answer("\x03")
            assert "the login was abandoned, and nothing was stored" in asked.end()
            assert asked.returncode == 130
        else:
            state = address_in(asked._said.decode().replace("\r", "")).partition("state=")[2].partition("&")[0]
            asked.answer(f"http://127.0.0.1/callback?error=access_denied&error_description=No%1B[31m&state={state}")
            assert "server 'tracker' refused the login (No" in (said := asked.end()) and "\x1b" not in said
            assert asked.returncode == 3
    assert not logins(shop).exists()


@pytest.mark.slow
def test_programs_that_renew_at_once_use_each_refresh_token_once_until_the_login_is_forgotten(
    shop: Program, server: Guarded
) -> None:
    log_in(shop)
    [stored] = logins(shop).glob("*.json")
    stored.write_text(json.dumps(ended(json.loads(stored.read_text()))))
    before = server.grants()
    running = [shop.start(*CALL) for _ in range(3)]
    for each in running:
        output, errors = each.communicate()
        assert (each.returncode, output) == (0, "3\n"), errors
    assert server.grants() == [*before, "refresh_token"]
    assert shop.run("login", "tracker", "--forget").stdout == "tracker: the login is forgotten\n"
    assert not stored.exists() and WANTS in shop.run(*CALL).stderr
    assert shop.run("login", "tracker", "--forget").stdout == "tracker: there was no login\n"


@pytest.mark.slow
def test_a_login_without_a_suite_is_that_of_a_plain_server(program: Program, server: Guarded) -> None:
    init = ("init", "--trust", "-o", "made.toml", server.url)
    refused = program.run(*init)
    assert refused.returncode == 3 and not (program.folder / "made.toml").exists()
    assert f"401 Unauthorized: it wants a login: run 'workbench login {server.url}', then try" in refused.stderr
    assert log_in(program, "login", server.url).endswith(f"{server.url}: logged in\n")
    assert program.run(*init).returncode == 0
    assert 'auth = "oauth"' in (program.folder / "made.toml").read_text(encoding="utf-8")
    program.write("shop.toml", suite(server))
    assert program.run(*CALL).stdout == "3\n"
    program.write("shop.toml", suite(server, ""))
    assert (
        "write auth = \"oauth\" beside its url, and run 'workbench login tracker shop.toml'"
        in program.run(*CALL).stderr
    )


def test_a_machine_needs_no_person(program: Program, server: Guarded) -> None:
    keys = f'auth = "client_credentials"\nclient_id = "robot"\nclient_secret = "$ROBOT"\nissuer = "{server.origin}/"'
    program.write("shop.toml", suite(server, keys))
    lacking = program.run(*CALL)
    assert lacking.returncode == 3 and "needs the environment variable ROBOT, which is not set" in lacking.stderr
    program.write(".env", f"ROBOT={ROBOT_SECRET}\n")
    assert program.run(*CALL).stdout == "3\n"
    assert program.run(*LOGIN).stdout == "tracker: logged in, with 2 tools\n"


def test_mistakes_have_a_way_out(program: Program, server: Guarded) -> None:
    program.write("shop.toml", suite(server))
    program.write("other.toml", suite(server, "", "plain"))
    program.write("third.toml", suite(server, 'auth = "oauth"\nscope = "admin"'))
    program.write("fourth.toml", suite(server, 'auth = "oauth"\nclient_id = "$WHO"', "lacking"))
    for words, says in (
        (["nobody"], "there is no server 'nobody' in the suites; the servers with auth are: lacking, tracker"),
        (["plain"], "server 'plain' of other.toml has no login: write auth = \"oauth\" beside its url"),
        (["tracker"], "several servers have the name tracker: name the suite of one (shop.toml, third.toml)"),
        (["lacking"], "server 'lacking' of fourth.toml needs the environment variable WHO, which is not set"),
        (["tracker", "shop.toml"], "not trusted, nothing was started"),
        ([server.url, "shop.toml"], "an address needs no suite"),
        (["https://["], "https://[ is not a web address: write https://host/path"),
        (["tracker", "none.toml"], "none.toml"),
    ):
        done = program.run("login", *words)
        assert done.returncode == 2 and says in done.stderr, done.stderr
    allowed = "open the address: {} with your OAuth login, from the authorization server that it names"
    assert allowed.format(server.url) in program.run("login", "tracker", "shop.toml").stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = program.run("login", server.url, "--port", port)
    assert done.returncode == 3 and f"cannot listen on port {port}" in done.stderr


def test_an_interrupt_reaches_a_login_in_a_pipe(shop: Program) -> None:
    with ExitStack() as exits:
        with suppress(OSError):  # another test may hold it
            exits.enter_context(socket.create_server(("127.0.0.1", REDIRECT_PORT)))
        running = exits.enter_context(shop.start(*LOGIN))
        said = unquote(read_until(running, "paste the address that it shows here"))
        port = re.search(r"redirect_uri=http://127\.0\.0\.1:(\d+)/callback&", said)
        assert port is not None and int(port[1]) != REDIRECT_PORT
        running.send_signal(signal.SIGTERM)
        _, errors = running.communicate()
        assert running.returncode == 130 and "Traceback" not in errors
