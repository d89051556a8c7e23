"""MCP servers in Python code, given as a table, a command or an address, and the tools that they list."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from workbench.api.loops import run_blocking
from workbench.api.suites import UsageError, WorkbenchError
from workbench.config.folders import user_folders
from workbench.config.models import ConfigError
from workbench.config.program import create_program
from workbench.evaluation.approval import Needs
from workbench.evaluation.client_servers import ClientConfigError, FoundServers, server_of_text, typed_server
from workbench.evaluation.first_suite import ServersToList, servers_to_list
from workbench.evaluation.tool_list import tools_of
from workbench.show.views.tools import ToolSource
from workbench.tools.server_pool import ServerPool
from workbench.trajectory.events import ToolDefinition

ServerLike = str | Sequence[str] | Mapping[str, Any]
"""A server: a command as in a shell, the command's words, an address (`https://…`), or a table as in `[[servers]]`."""


class ServerError(WorkbenchError):
    """Raised if a server could not be started or reached, or did not list its tools."""


def server_table(server: ServerLike, name: str | None = None) -> dict[str, Any]:
    """Return a server as the table of a suite file. The default name comes from the command or host.

    Raises UsageError for a text that is not a server, and for a text with a key, which belongs in the environment.

    >>> server_table("uvx mcp-server-time")
    {'name': 'time', 'command': ['uvx', 'mcp-server-time']}"""
    found = _found(server)
    if keys := sorted(variable for variable, value in found.variables.items() if value is not None):
        raise UsageError(
            f"the text of a server contains the value of {', '.join(keys)}, which a suite must not hold: put it into "
            f'the environment, and give the server as a table with env = {{"{keys[0]}": "${{{keys[0]}}}"}}'
        )
    (table,) = found.tables
    if name is not None:
        table = {**table, "name": name}
    return dict(table)


def _found(server: ServerLike) -> FoundServers:
    if isinstance(server, Mapping):
        table = dict(server)
        if "name" not in table:
            words = table.get("command")
            named = table.get("module") or "server"
            if isinstance(words, list | tuple) and words:
                named = _typed(list(words)).tables[0]["name"]
            elif isinstance(table.get("url"), str):
                named = _typed(table["url"]).tables[0]["name"]
            table = {"name": named, **table}
        return FoundServers((table,), {})
    return _typed(server)


def _typed(server: str | Sequence[str]) -> FoundServers:
    try:
        if isinstance(server, str):
            return server_of_text(server)
        if not all(isinstance(word, str) for word in server):
            raise TypeError("a command must be a list of strings")
        return typed_server(list(server), None)
    except (ClientConfigError, TypeError) as error:
        raise UsageError(f"{_shown(server)!r} is not a server: {error}") from None


def _shown(server: object) -> object:
    """Return a server as a message may show it: an address without its user and its query, which may hold a key."""
    if not isinstance(server, str) or "://" not in server:
        return server
    address = urlsplit(server)
    return address._replace(netloc=address.netloc.rpartition("@")[2], query="", fragment="").geturl()


def list_tools(server: ServerLike) -> tuple[ToolDefinition, ...]:
    """Start a server, or reach it at its address, and return its tools for `workbench.Suite`.

    `server` is a command as in a shell (`"uvx mcp-server-time"`) or the command's words, an address, or a table with
    the keys of `[[servers]]`. The server is started without asking for approval, and closed again. A tool has a `name`,
    a `description` and `parameters`, which are a JSON Schema.

    Raises UsageError if `server` is not a server, and ServerError if the server does not start or answer.

    >>> import sys, workbench
    >>> tools = workbench.list_tools([sys.executable, "-m", "mcp_server_time"])
    >>> [tool.name for tool in tools], tools[0].parameters["required"]
    (['get_current_time', 'convert_time'], ['timezone'])"""
    program = create_program(user_folders(), os.environ)
    folder = Path.cwd()
    try:
        asked = servers_to_list(_found(server), "tools", folder / "tools.toml", folder, program)
    except (ClientConfigError, ConfigError) as error:
        raise UsageError(program.secrets.redact(str(error))) from None
    source = run_blocking(_listed(asked))
    if source.error is not None:
        raise ServerError(program.secrets.redact(source.error))
    return tuple(source.tools)


async def _listed(request: ServersToList) -> ToolSource:
    # The caller's own code names the server, so no approval is needed.
    approval = Needs.of_servers([request.file], request.program).approved()
    pool = ServerPool(request.program)
    try:
        (source,) = (await tools_of(request.file, None, pool, approval)).sources
    finally:
        await pool.close()
    return source
