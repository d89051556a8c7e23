"""`workbench record`: record the traffic between a program and its model, or between a client and its server."""

from __future__ import annotations

import argparse
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.parser import COMMAND_METAVAR
from workbench.evaluation.exit_codes import OK, USAGE
from workbench.numerals import count_text, duration_text

if TYPE_CHECKING:
    from workbench.config.program import Program
    from workbench.exchange.observed.conversations import ConversationJournal, Observation, Observer, ServerLog

_TRAFFIC_OPTIONS = ("upstream", "recordings", "server_log", "kept", "force")
"""Options about recorded traffic, which do not apply to a conversation with an agent (`--agent`)."""

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen",
        default="127.0.0.1:8808",
        metavar="HOST:PORT",
        help="the proxy's address on this machine (default: 127.0.0.1:8808; port 0: a free one)",
    )
    parser.add_argument(
        "--upstream",
        metavar="NAME|URL",
        help="the endpoint behind the proxy: openai, anthropic or a base URL",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write the conversations as a new suite; with --server, the traffic as JSON lines; "
        "with --agent, the suite that has the tools and gets the case",
    )
    parser.add_argument("--recordings", type=Path, metavar="DIR", help="write the conversations as recordings")
    parser.add_argument(
        "--server-log",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="merge results and schemas from this file of --server; repeatable",
    )
    parser.add_argument(
        "--agent", metavar="NAME", help="talk with this agent, and keep the conversation as a case of --output"
    )
    parser.add_argument("--execute", action="store_true", help="with --agent: let servers answer calls, not mocks")
    parser.add_argument("--trust", action="store_true", help="with --agent: let the suite start what it names")
    parser.add_argument("--force", action="store_true", help="replace the suite, and add to recordings in the folder")
    parser.add_argument(
        "--kept",
        type=Path,
        metavar="FILE",
        help="record nothing: use the saved copy of an interrupted recording",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="show only the report at the end")
    parser.add_argument(
        "--server",
        action="store_true",
        help="record between a client and the MCP server COMMAND",
    )
    parser.add_argument("command", nargs="*", metavar=COMMAND_METAVAR, help="the command of the MCP server")


def execute(arguments: argparse.Namespace) -> int:
    # Lazy import: `--help` answers at once.
    from workbench.cli.redaction import create_program, warn
    from workbench.config.models import ConfigError
    from workbench.engine.suite_secrets import register_secrets

    if (why := _misused(arguments)) is not None:
        warn(why)
        return USAGE
    program = create_program()
    for folder in {Path(), (arguments.output or Path()).parent}:
        # Errors in these settings are reported by the commands that use them.
        with suppress(ConfigError):
            register_secrets(program, folder)
    if arguments.agent is not None:
        from workbench.cli.record_agent import talk

        return talk(arguments.agent, arguments.output, program, execute=arguments.execute, trust=arguments.trust)
    if arguments.server:
        from workbench.exchange.observed.tee import run_tee

        return run_tee(arguments.command, arguments.output, program.secrets, warn)
    return _proxy(arguments, program)


def _misused(arguments: argparse.Namespace) -> str | None:
    if arguments.agent is not None:
        if arguments.output is None:
            return "--agent needs the suite with the tools: workbench record --agent NAME --output FILE"
        if arguments.server or arguments.command or any(getattr(arguments, name) for name in _TRAFFIC_OPTIONS):
            return "--agent takes only --output, --execute and --trust"
        return None
    if arguments.execute or arguments.trust:
        return "--execute and --trust need --agent"
    if arguments.server:
        if not arguments.command or arguments.output is None:
            return "--server needs a command and a file: workbench record --server --output FILE -- COMMAND"
        if any((arguments.upstream, arguments.recordings, arguments.server_log, arguments.kept)):
            return "--server takes only --output; --server-log FILE merges its file into a recording of the proxy"
        return None
    if arguments.command:
        return "a command needs --server: workbench record --server --output FILE -- COMMAND"
    if arguments.upstream is not None and arguments.kept is not None:
        return "--kept records nothing: leave out --upstream"
    if arguments.upstream is None and arguments.kept is None:
        return "--upstream is missing: openai, anthropic, or a base URL such as http://localhost:11434/v1"
    if arguments.output is None and arguments.recordings is None:
        return "nothing would be written: give --output FILE, --recordings DIR, or both"
    return None


def _proxy(arguments: argparse.Namespace, program: Program) -> int:
    import asyncio

    from workbench.cli.redaction import warn, write
    from workbench.exchange.importers.source_files import RefusedError
    from workbench.exchange.observed.conversations import (
        ConversationJournal,
        Destination,
        Observer,
        read_journal,
        read_server_log,
        save_observed,
    )
    from workbench.exchange.observed.proxy import ListenError
    from workbench.show.visible import one_line

    destination = Destination(arguments.output, arguments.recordings, arguments.force)
    keeper = ConversationJournal(destination.kept, program.secrets, warn)
    lines = _Lines(keeper, quiet=arguments.quiet)
    observer = lines.observer = Observer(program.secrets, lines)
    try:
        # This check comes first, because a recording that cannot be saved would be lost.
        destination.check()
        if arguments.kept is not None:
            observer.conversations += read_journal(arguments.kept, program.secrets)
        else:
            keeper.check()
            asyncio.run(_served(arguments, observer, program))
        logs: list[ServerLog] = []
        for path in arguments.server_log:
            try:
                logs.append(read_server_log(path))
            # The recorded conversations are saved even if the suite cannot be merged.
            except RefusedError as error:
                warn(f"{path} is not merged: {error}")
        saved = save_observed(observer, destination, program.secrets, logs)
    except (ListenError, RefusedError) as error:
        warn(f"{error}{keeper.leftover_advice()}", program.secrets)
        return USAGE
    # Everything is saved, so the journal for the case of a crash can be removed.
    keeper.remove()
    for line in saved.lines:
        write(f"{one_line(line)}\n")
    if arguments.kept is not None and saved.cases:
        write(f"{one_line(str(arguments.kept))} can be removed now\n")
    return OK


async def _served(arguments: argparse.Namespace, observer: Observer, program: Program) -> None:
    import asyncio

    from workbench.cli.redaction import warn
    from workbench.exchange.observed.proxy import RecordingProxy, parse_listen_address, parse_upstream

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, ended.set)
    proxy = RecordingProxy(parse_upstream(arguments.upstream), observer, program.secrets, warn)
    address = await proxy.start(parse_listen_address(arguments.listen))
    try:
        warn(f"recording: give the program the base URL {address}; Ctrl+C ends it")
        await ended.wait()
    finally:
        await proxy.close()
    if proxy.passed:
        warn(f"{count_text(proxy.passed)} other requests, such as listings of models, were passed on")


class _Lines:
    """An observer that prints a line on standard error for each answer, and stores the answer."""

    observer: Observer

    def __init__(self, keeper: ConversationJournal, *, quiet: bool) -> None:
        self._keeper = keeper
        self._quiet = quiet
        self._models: dict[int, str] = {}

    def __call__(self, observation: Observation) -> None:
        from workbench.cli.redaction import warn
        from workbench.exchange.observed.conversations import ConversationBegan, StepEnded

        if isinstance(observation, ConversationBegan):
            self._models[observation.number] = f"{observation.wire} {observation.model}"
        elif isinstance(observation, StepEnded):
            conversation = self.observer.conversations[observation.number - 1]
            self._keeper.write_step(conversation, conversation.steps[observation.step - 1])
            if self._quiet:
                return
            answer = observation.answer
            request = (
                f"conversation {observation.number}, {self._models[observation.number]}, request {observation.step}"
            )
            if answer.problem:
                warn(f"{request}: not recorded: {answer.problem}")
            else:
                reaction = ", ".join(call.tool for call in answer.calls) or "answered"
                warn(f"{request}: {reaction}, {duration_text(answer.latency_ms)}")
