"""`workbench login`: log in to a server of a suite over OAuth, or forget its login."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from workbench.cli.downloads import announce_download
from workbench.cli.parser import add_exit_codes, number_from, options_as
from workbench.dataclasses import dataclass
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, OK, USAGE
from workbench.startup import executes

if TYPE_CHECKING:
    from workbench.tools.oauth import ServerLogin

if executes(__name__):
    import asyncio

    from workbench.cli.approval import approved
    from workbench.cli.redaction import (
        create_program,
        register_suite_secrets,
        shown_search,
        warn,
        write,
        write_redacted,
    )
    from workbench.cli.tools import run_until_signal
    from workbench.config.models import ConfigError
    from workbench.config.program import Program
    from workbench.evaluation.approval import Approval, Needs
    from workbench.evaluation.suites import NoSuitesError, load_suites
    from workbench.numerals import counted, seconds_text
    from workbench.show.visible import visible
    from workbench.suite.server_model import Server
    from workbench.suite.server_rules import is_web_address
    from workbench.suite.suite_file import SuiteFile
    from workbench.tools.answer import ServerError
    from workbench.tools.connection import MissingVariableError, TimeLimits
    from workbench.tools.login_file import LoginFile, LoginFileError, Logins, LoginSettings, login_settings
    from workbench.tools.redirect import REDIRECT_PORT, LoginError, PortTakenError, RedirectAnswer, RedirectServer
    from workbench.tools.server_pool import ServerPool


LOGIN_TIMEOUT_S = 900.0
"""The maximum time in seconds to wait until the user has logged in."""

_LINE_BYTES = 1 << 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", metavar="NAME", help="the name of a server, or its address if no suite has it yet")
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="the suite with the server, or a folder of suites (default: the current one)",
    )
    parser.add_argument("--forget", action="store_true", help="delete the stored login")
    parser.add_argument(
        "--port",
        type=_port,
        metavar="N",
        help="the local port to which the browser is sent (default: the same each time, if it is free)",
    )
    parser.add_argument("--trust", action="store_true", help="let the suite start and reach what it names")
    add_exit_codes(
        parser,
        {
            OK: "logged in, or forgotten",
            USAGE: "wrong usage or missing trust",
            INFRASTRUCTURE: "the login failed",
            INTERRUPTED: "interrupted",
        },
    )


def _port(text: str) -> int:
    return number_from(text, 1, 65535)


def execute(arguments: argparse.Namespace) -> int:
    return log_in(options_as(LoginOptions, arguments))


class RefusedError(Exception):
    """Raised if the command cannot be carried out. The message has the reason and the remedy."""


@dataclass(frozen=True)
class LoginOptions:
    """The options of `workbench login`: the server to log in to, and the method."""

    server: str
    paths: Sequence[str]
    forget: bool
    port: int | None
    trust: bool


@dataclass(frozen=True)
class _Target:
    server: Server
    settings: LoginSettings
    file: SuiteFile | None


def log_in(options: LoginOptions) -> int:
    program = create_program()
    try:
        target = _target(options, program)
        if options.forget:
            return asyncio.run(_forget(target, program))
        approval = None
        if target.file is not None:
            approval = approved(Needs.of_servers([target.file], program), program, all_of_them=options.trust)
            if approval is None:
                return USAGE
        pool = ServerPool(program, starting=announce_download)
        return asyncio.run(run_until_signal(pool, _log_in(target, options, program, approval, pool)))
    except (NoSuitesError, RefusedError, LoginFileError) as error:
        warn(str(error), program.secrets)
        return USAGE


def _target(options: LoginOptions, program: Program) -> _Target:
    if options.server.startswith(("http://", "https://")):
        if options.paths:
            raise RefusedError("an address needs no suite: leave out the path, or give the server's name")
        if not is_web_address(options.server):
            raise RefusedError(f"{options.server} is not a web address: write https://host/path")
        server = Server(name=options.server, url=options.server, auth="oauth")
        return _Target(server, LoginSettings(options.server, "oauth"), None)
    with shown_search() as search:
        files = load_suites(options.paths or ["."], search)
    register_suite_secrets(program, files)
    targets: dict[str, _Target] = {}
    refusals: list[RefusedError] = []
    others: set[str] = set()
    for file in files:
        if file.suite is None:
            continue
        servers = list(file.suite.servers)
        for variant in file.suite.variants:
            servers += variant.servers
        for server in servers:
            if server.name == options.server:
                try:
                    target = _target_in(file, server, program)
                except RefusedError as error:
                    refusals.append(error)
                else:
                    targets.setdefault(target.settings.file_name, target)
            elif server.auth is not None:
                others.add(server.name)
    if len(targets) > 1:
        places = sorted({str(target.file.path) for target in targets.values() if target.file is not None})
        way_out = "name the suite of one"
        if len(places) == 1:
            way_out = "give the servers of variants other names"
        raise RefusedError(f"several servers have the name {options.server}: {way_out} ({', '.join(places)})")
    for target in targets.values():
        return target
    for refusal in refusals:
        raise refusal
    for file in files:
        for problem in file.errors:
            raise RefusedError(f"there is no server {options.server!r}, and {file.path} has problems: {problem}")
    known = ", ".join(sorted(others)) or "none"
    raise RefusedError(f"there is no server {options.server!r} in the suites; the servers with auth are: {known}")


def _target_in(file: SuiteFile, server: Server, program: Program) -> _Target:
    server_name = f"server {server.name!r} of {file.path}"
    try:
        settings = login_settings(server, program.environment.of(file.path.parent), program.secrets)
    except ConfigError as error:
        raise RefusedError("; ".join(error.problems)) from error
    except MissingVariableError as error:
        raise RefusedError(f"{server_name} needs the environment variable {error.name}, which is not set") from error
    if settings is None:
        raise RefusedError(f'{server_name} has no login: write auth = "oauth" beside its url')
    return _Target(server, settings, file)


async def _forget(target: _Target, program: Program) -> int:
    file = LoginFile(program.folders.logins, target.settings)
    async with file.locked():
        was_there = file.delete()
    done = "the login is forgotten" if was_there else "there was no login"
    write(f"{target.server.name}: {done}\n")
    return OK


async def _log_in(
    target: _Target, options: LoginOptions, program: Program, approval: Approval | None, pool: ServerPool
) -> int:
    # A thread does this, because the SDK's client provider takes long to import, and signals must be handled meanwhile.
    login = await asyncio.to_thread(_login_of, target, program)
    name = target.server.name
    try:
        if target.settings.auth == "client_credentials":
            await login.token()
        else:
            await _by_person(login, target, options.port)
    except LoginError as error:
        warn(f"server {name!r} {error}", program.secrets)
        return INFRASTRUCTURE
    except (PortTakenError, LoginFileError) as error:
        warn(str(error), program.secrets)
        return INFRASTRUCTURE
    except asyncio.CancelledError:
        warn("the login was abandoned, and nothing was stored")
        raise
    if target.file is None:
        write(f"{name}: logged in\n")
        return OK
    assert approval is not None
    try:
        server = await pool.running_server(target.file.path, target.server, approval.grants[target.file.path])
    except ServerError as error:
        warn(f"logged in, but {error}", program.secrets)
        return INFRASTRUCTURE
    write(f"{name}: logged in, with {counted(len(server.tools), 'tool')}\n")
    return OK


def _login_of(target: _Target, program: Program) -> ServerLogin:
    from workbench.tools.oauth import ServerLogin

    folder, name = program.folders.logins, target.server.name
    command = f"workbench login {name}"
    if target.file is not None:
        command = Logins(folder, target.file.path).command(name)
    file = LoginFile(folder, target.settings)
    return ServerLogin(name, target.settings, file, program.secrets, command, TimeLimits().of(target.server).start_s)


async def _by_person(login: ServerLogin, target: _Target, port: int | None) -> None:
    async with AsyncExitStack() as exits:
        try:
            redirect = await exits.enter_async_context(RedirectServer(REDIRECT_PORT if port is None else port))
        except PortTakenError:
            # A client that was registered manually has only this redirect address, so no other port can be tried.
            if port is not None or target.settings.client_id is not None:
                raise
            redirect = await exits.enter_async_context(RedirectServer(0))
        await login.log_in(_AtTerminal(redirect, os.environ))


class _AtTerminal:
    def __init__(self, redirect: RedirectServer, environment: Mapping[str, str]) -> None:
        self.redirect = redirect.address
        self._redirect = redirect
        self._can_open = sys.stdin.isatty() and sys.stdout.isatty() and _has_browser(environment)

    async def answer_to(self, address: str) -> RedirectAnswer:
        # The address is not redacted, because it has no secret, and a replaced word would make it useless.
        write_redacted(f"open this address, and log in:\n\n{visible(address)}\n\n")
        hint = (
            f"then the browser opens {self.redirect}; if it cannot reach this machine, paste the address that it "
            "shows here"
        )
        if self._can_open:
            hint = f"press Enter to open it in a browser here; {hint}"
        write(f"{hint}\n")
        sys.stdout.flush()
        answer = asyncio.create_task(self._redirect.answer_to(address))
        # The task must be waiting for the answer before the first line is read.
        await asyncio.sleep(0)

        def on_line(line: str) -> None:
            if line.strip():
                problem = self._redirect.accept_address(line)
                if problem is not None:
                    warn(problem)
            elif self._can_open and not answer.done():
                _open_browser(address)

        reading = _read_lines(on_line)
        try:
            async with asyncio.timeout(LOGIN_TIMEOUT_S):
                return await answer
        except TimeoutError:
            raise LoginError(f"there was no login within {seconds_text(LOGIN_TIMEOUT_S)}: try again") from None
        finally:
            reading()


def _read_lines(on_line: Callable[[str], None]) -> Callable[[], None]:
    """Call `on_line` with each line of standard input. Return a function that stops the reading."""
    # The descriptor is read directly. Python's buffer has a lock, which a thread would still hold when the program
    # ends.
    loop, descriptor, held = asyncio.get_running_loop(), sys.stdin.fileno(), bytearray()

    def end() -> None:
        loop.remove_reader(descriptor)

    def read() -> None:
        try:
            piece = os.read(descriptor, _LINE_BYTES)
        except OSError:
            piece = b""
        held.extend(piece)
        *lines, rest = bytes(held).split(b"\n")
        held[:] = rest[-_LINE_BYTES:]
        if not piece:
            end()
            lines, held[:] = [bytes(held)] if held else [], b""
        for line in lines:
            on_line(line.decode(errors="replace"))

    try:
        loop.add_reader(descriptor, read)
    except (OSError, ValueError):
        # The event loop cannot wait for a file or /dev/null, but can read all lines at once.
        for line in sys.stdin:
            on_line(line)
        return lambda: None
    return end


def _has_browser(environment: Mapping[str, str]) -> bool:
    """Return whether a browser with a window can be opened.

    A text browser does not count, because it needs this terminal."""
    if sys.platform in ("darwin", "win32"):
        return "SSH_CONNECTION" not in environment
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def _open_browser(address: str) -> None:
    import threading
    import webbrowser

    if not address.startswith(("http://", "https://")):
        return
    # Some systems wait here until the browser has started, so a thread does this.
    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
