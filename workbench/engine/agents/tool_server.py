"""Offers the suite's tools to an agent as MCP servers.

The agent starts relay processes as its servers, and these connect to this program."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import secrets
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.dataclasses import dataclass, json_text
from workbench.engine.agents.relay import TOKEN
from workbench.limits import MAX_MESSAGE_BYTES
from workbench.trajectory.events import JsonValue, Message, ToolDefinition

_logger = logging.getLogger(__name__)

_RELAY = str(Path(__file__).with_name("relay.py"))
_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The MCP versions whose tool messages this module writes, the newest first."""

_INVALID_PARAMS = -32602
_NO_METHOD = -32601

PROGRESS_INTERVAL_S = 5.0
"""The seconds between progress notices of a waiting call. The notices keep the agent from giving up."""


@dataclass(frozen=True)
class OfferedServer:
    name: str
    tools: tuple[ToolDefinition, ...]
    instructions: str = ""


class ForwardedCall:
    """A call that an agent sent to Workbench. The agent waits for its result."""

    def __init__(self, server: str, tool: str, arguments: JsonValue) -> None:
        self.server = server
        self.tool = tool
        self.arguments = arguments
        self._answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    def answer(self, result: Message) -> None:
        """Send the result of the call to the agent. Does nothing if the agent no longer waits."""
        content: list[JsonValue] = [{"type": "text", "text": result.content}]
        for medium in result.media:
            if medium.data:
                kind = "image" if medium.is_image else "audio"
                content.append({"type": kind, "data": medium.data, "mimeType": medium.media_type})
        if not self._answer.done():
            self._answer.set_result({"content": content, "isError": result.is_error})

    async def wait_for_answer(self) -> dict[str, Any]:
        """Wait for the result, in MCP's form."""
        return await asyncio.shield(self._answer)


class ToolServer:
    """Listens on a private socket in `folder` for the relays of one run.

    `forward` receives each call, in the order of arrival."""

    def __init__(
        self, servers: Sequence[OfferedServer], folder: Path, forward: Callable[[ForwardedCall], Awaitable[None]]
    ) -> None:
        self._servers = {server.name: server for server in servers}
        self._path = folder / "tools"
        self._forward = forward
        self._token = secrets.token_hex(16)
        self._listener: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._listed: set[str] = set()
        self.all_listed = asyncio.Event()
        """An event that is set when the agent has listed the tools of all servers."""

    async def start(self) -> None:
        """Start listening.

        Raises OSError."""
        self._listener = await asyncio.start_unix_server(self._accept, self._path, limit=MAX_MESSAGE_BYTES)

    def close(self) -> None:
        """Stop listening, and cancel all waiting calls."""
        if self._listener is not None:
            self._listener.close()
        for task in self._tasks:
            task.cancel()

    @property
    def unlisted_servers(self) -> tuple[str, ...]:
        """The names of the servers whose tools the agent has not requested yet."""
        return tuple([name for name in self._servers if name not in self._listed])

    def note_listing(self, name: str) -> None:
        self._listed.add(name)
        if not self.unlisted_servers:
            self.all_listed.set()

    @property
    def as_mcp_servers(self) -> list[JsonValue]:
        """The servers in the form of ACP's `session/new`: commands that start relays."""
        described: list[JsonValue] = []
        for name in self._servers:
            # `-I` and `-S` ignore the user's settings and packages, and halve the start time.
            words: list[JsonValue] = ["-I", "-S", _RELAY, str(self._path), name]
            token: JsonValue = {"name": TOKEN, "value": self._token}
            described.append({"name": name, "command": sys.executable, "args": words, "env": [token]})
        return described

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            token, _, name = (await reader.readline()).decode("utf-8", "replace").rstrip().partition(" ")
            server = self._servers.get(name)
            if server is None or not hmac.compare_digest(token.encode(), self._token.encode()):
                return
            session = _Session(server, self, writer)
            while line := await reader.readline():
                await session.handle_line(line)
        except (OSError, ValueError) as error:
            # A message above the size limit raises ValueError. The relay is then closed, and the agent sees that its
            # server is gone.
            _logger.warning("the relay of an agent is closed: %s", error)
        finally:
            writer.close()

    async def forward(self, call: ForwardedCall) -> None:
        await self._forward(call)

    def keep_task(self, task: asyncio.Task[None]) -> None:
        """Keep a reference to a task until it is done or the server is closed."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Session:
    def __init__(self, server: OfferedServer, owner: ToolServer, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._owner = owner
        self._writer = writer
        self._waiting: dict[JsonValue, asyncio.Task[None]] = {}

    async def handle_line(self, line: bytes) -> None:
        """Answer one message. Messages other than requests are ignored, because MCP notifications have no answer."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(message, dict) or not isinstance(method := message.get("method"), str):
            return
        params = message.get("params")
        if not isinstance(params, dict):
            params = {}
        number = message.get("id")
        if method == "notifications/cancelled":
            # Some agents cancel requests that are already answered. Such a cancellation is ignored.
            if isinstance(given_up := params.get("requestId"), str | int) and given_up in self._waiting:
                self._waiting[given_up].cancel()
            return
        if not isinstance(number, str | int):
            return
        match method:
            case "initialize":
                await self._result(number, self._initialized(params))
            case "ping":
                await self._result(number, {})
            case "tools/list":
                await self._result(number, {"tools": [_tool(tool) for tool in self._server.tools]})
                self._owner.note_listing(self._server.name)
            case "tools/call" if isinstance(tool := params.get("name"), str):
                call = ForwardedCall(self._server.name, tool, params.get("arguments") or {})
                await self._owner.forward(call)
                waiting = asyncio.ensure_future(self._answer(number, call, params.get("_meta")))
                self._waiting[number] = waiting
                waiting.add_done_callback(lambda _: self._waiting.pop(number, None))
                self._owner.keep_task(waiting)
            case "tools/call":
                await self._error(number, _INVALID_PARAMS, "tools/call needs `name`, the name of a tool")
            case _:
                await self._error(number, _NO_METHOD, f"there is no method {method}")

    def _initialized(self, params: dict[str, Any]) -> dict[str, Any]:
        asked = params.get("protocolVersion")
        result: dict[str, Any] = {
            "protocolVersion": asked if asked in _VERSIONS else _VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": self._server.name, "version": "1"},
        }
        if self._server.instructions:
            result["instructions"] = self._server.instructions
        return result

    async def _answer(self, number: str | int, call: ForwardedCall, meta: object) -> None:
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        waiting = asyncio.ensure_future(call.wait_for_answer())
        sent = 0
        try:
            while not (await asyncio.wait({waiting}, timeout=PROGRESS_INTERVAL_S))[0]:
                sent += 1
                if token is not None:
                    progress = {"progressToken": token, "progress": sent}
                    await self._send({"method": "notifications/progress", "params": progress})
            await self._result(number, waiting.result())
        finally:
            waiting.cancel()

    async def _result(self, number: str | int, result: dict[str, Any]) -> None:
        await self._send({"id": number, "result": result})

    async def _error(self, number: str | int, code: int, message: str) -> None:
        await self._send({"id": number, "error": {"code": code, "message": message}})

    async def _send(self, message: dict[str, Any]) -> None:
        # The agent may have closed the relay.
        with suppress(OSError):
            self._writer.write(json_text({"jsonrpc": "2.0", **message}).encode() + b"\n")
            await self._writer.drain()


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    # The output schema is left out, because with it agents would refuse a mock's result, which is plain text.
    described: dict[str, Any] = {"name": tool.name, "inputSchema": dict(tool.parameters)}
    if tool.description:
        described["description"] = tool.description
    if tool.annotations:
        described["annotations"] = dict(tool.annotations)
    return described
