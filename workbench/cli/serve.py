"""`workbench serve`: the app in a browser."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from workbench.cli.app import add_app_options
from workbench.cli.app import execute as open_app
from workbench.cli.model_options import model_options
from workbench.cli.parser import history_to_read, natural, number_from, paths_of, show_first
from workbench.evaluation.exit_codes import OK, USAGE

if TYPE_CHECKING:
    from workbench.config.model_book import ModelOptions
    from workbench.config.program import Program
    from workbench.remote.web import Settings
    from workbench.suite.suite_file import SuiteFile

PORT = 8765
VISITORS = 4
IDLE_MINUTES = 60
MAX_LISTED_SECRETS = 8
"""The maximum number of places with a secret that an error message lists."""

_WITHOUT_TLS = (
    "The connection to other machines is not encrypted: anyone in between can read everything shown and typed, and "
    "can use the address, too. A tunnel avoids this: 'ssh -L {port}:127.0.0.1:{port} HOST'"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_app_options(parser)
    served = parser.add_argument_group("serving")
    served.add_argument(
        "--port", type=_port, default=PORT, metavar="N", help=f"the port (default {PORT}); 0 takes a free one"
    )
    served.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="the address to listen at (default 127.0.0.1)"
    )
    served.add_argument(
        "--without-tls",
        action="store_true",
        help="serve other machines (--host) without encryption",
    )
    served.add_argument(
        "--public-url",
        type=_public,
        metavar="URL",
        help="the address that a proxy gives this server",
    )
    served.add_argument(
        "--attach",
        metavar="BATCH",
        help="open this batch, such as one of 'run --detach'",
    )
    served.add_argument(
        "--visitors",
        type=natural,
        default=VISITORS,
        metavar="N",
        help=f"the most browsers at a time, each with a process of its own (default {VISITORS})",
    )
    served.add_argument(
        "--idle",
        type=_minutes,
        default=IDLE_MINUTES,
        metavar="MINUTES",
        help=f"end an app after this time without input (default {IDLE_MINUTES}); 0: never",
    )
    show_first(
        *(parser, "--port", "--host", "--without-tls", "--public-url", "--attach"),
        *("--visitors", "--read-only", "--model", "--trust"),
    )


def execute(arguments: argparse.Namespace) -> int:
    from workbench.config.program import SERVED_VARIABLE

    if SERVED_VARIABLE in os.environ:
        return _open_app(arguments)
    from workbench.cli.redaction import warn

    reason = _obstacle(arguments)
    if reason is not None:
        warn(reason)
        return USAGE
    try:
        from workbench.remote.web import AppServer, app_for
    except ImportError as error:
        warn(f"the app in a browser needs the extra 'web' ({error}): pip install 'toolcall-workbench[web]'")
        return USAGE
    models = model_options(arguments)
    # This is checked here, because otherwise only the pages of visitors would show the error.
    if models is None or not _may_be_shown(arguments, models):
        return USAGE
    import asyncio

    settings = _settings(arguments)
    app = app_for(sys.argv[1:], os.environ, read_only=arguments.read_only)

    def ready(address: str) -> None:
        from workbench.cli.redaction import write

        what = "Serving Workbench, read-only," if settings.read_only else "Serving Workbench"
        write(f"{what} at\n\n    {address}/?token={settings.gate.token}\n\n")
        write("Anyone with this address can use it. Ctrl+C ends the server and the apps of its visitors.\n")
        if not _only_here(arguments):
            warn(_WITHOUT_TLS.format(port=arguments.port or urlsplit(address).port or PORT))

    try:
        asyncio.run(AppServer(app, settings).run(ready))
    except OSError as error:
        warn(f"nothing can be served at {arguments.host}, port {arguments.port}: {error.strerror or error}")
        return USAGE
    return OK


def _open_app(arguments: argparse.Namespace) -> int:
    if arguments.attach is None:
        return open_app(arguments)
    from workbench.cli.attach import attach_in_app

    history = history_to_read(arguments, arguments.paths)
    return attach_in_app(arguments.attach, history, theme=arguments.theme, read_only=arguments.read_only)


def _may_be_shown(arguments: argparse.Namespace, models: ModelOptions) -> bool:
    """Return whether the batch exists and a read-only view of it shows no secret. Print an error if not.

    The app of a read-only visitor knows no secrets, so it cannot redact them."""
    from workbench.authoring.workspace import is_recording
    from workbench.cli.attach import batch_and_suites
    from workbench.cli.redaction import warn
    from workbench.config.folders import user_folders
    from workbench.config.models import ConfigError
    from workbench.config.program import create_program
    from workbench.engine.suite_secrets import literal_secrets, register_secrets
    from workbench.history.records import HistoryError
    from workbench.numerals import counted
    from workbench.remote.records import AttachError

    program = create_program(user_folders(), os.environ, models)
    paths: Sequence[Path] = [Path(path) for path in paths_of(arguments)]
    try:
        if arguments.attach is not None:
            history = history_to_read(arguments, arguments.paths)
            paths = batch_and_suites(arguments.attach, history, program)[1]
        files = _opened_by_visitors(paths, program) if arguments.read_only else ()
        for file in files:
            register_secrets(program, file.path.parent, file.suite, file.text)
    except ConfigError as error:
        for problem in error.problems:
            warn(problem, program.secrets)
        return False
    except (AttachError, HistoryError) as error:
        warn(str(error), program.secrets)
        return False
    found: list[str] = []
    for file in files:
        # Visitors see the whole recording, not only its suite.
        if is_recording(file.path) and file.path.is_file():
            file = replace(file, text=file.path.read_text("utf-8", "replace"))
        found += literal_secrets(file, program.secrets)
    if not found:
        return True
    for secret_place in found[:MAX_LISTED_SECRETS]:
        warn(secret_place, program.secrets)
    message = f"visitors would see secrets in {counted(len(found), 'place')}, so nothing is served"
    if len(found) > MAX_LISTED_SECRETS:
        message += f" ({len(found) - MAX_LISTED_SECRETS} more are not listed)"
    warn(message, program.secrets)
    return False


def _opened_by_visitors(paths: Sequence[Path], program: Program) -> tuple[SuiteFile, ...]:
    from workbench.authoring.workspace import open_workspace
    from workbench.cli.redaction import shown_search

    with shown_search() as search:
        return open_workspace(paths, program.models, search).files


def _obstacle(arguments: argparse.Namespace) -> str | None:
    try:
        # The host is resolved here, because the event loop's message for a misspelt host would be unclear.
        socket.getaddrinfo(arguments.host, arguments.port)
    except (OSError, UnicodeError):
        return f"--host {arguments.host}: there is no such address or name; without --host, it is 127.0.0.1"
    if not _only_here(arguments) and not arguments.without_tls:
        port = arguments.port or PORT
        return (
            f"--host {arguments.host} lets other machines in without encrypting what is typed and shown. Reach"
            f" this machine by a tunnel ('ssh -L {port}:127.0.0.1:{port} HOST', and no --host), put a proxy with TLS in"
            " front (--public-url), or say --without-tls"
        )
    idle = []
    if arguments.record is not None:
        idle.append("--record")
    if arguments.trust:
        idle.append("--trust")
    if arguments.read_only and idle:
        return f"--read-only runs nothing: leave out {' and '.join(idle)}"
    return None


def _only_here(arguments: argparse.Namespace) -> bool:
    from workbench.remote.gate import is_loopback

    return is_loopback(arguments.host)


def _settings(arguments: argparse.Namespace) -> Settings:
    from workbench.remote.gate import Gate
    from workbench.remote.web import Settings

    only_here = _only_here(arguments)
    # Browsers may address the server by these names. A request with any other Host header may be a DNS rebinding
    # attack.
    names = () if only_here else (arguments.host, socket.gethostname(), socket.getfqdn())
    return Settings(
        host=arguments.host,
        port=arguments.port,
        visitors=arguments.visitors,
        idle_s=arguments.idle * 60 or None,
        read_only=arguments.read_only,
        gate=Gate(frozenset(name.lower() for name in names), by_address=not only_here, public=arguments.public_url),
    )


def _port(text: str) -> int:
    return number_from(text, 0, 65535)


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = -1
    if not 0 <= minutes < 1e6:
        raise argparse.ArgumentTypeError("write minutes, or 0 for never")
    return minutes


def _public(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        is_fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.path in ("", "/")
        is_fine = is_fine and "@" not in parts.netloc and not parts.query and not parts.fragment
    except ValueError:
        is_fine = False
    if not is_fine:
        raise argparse.ArgumentTypeError("write an address without a path, such as https://workbench.example.org")
    return parts
