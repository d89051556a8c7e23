"""Runs an MCP server from a Python module of the suite, in a thread of this process.

The thread has its own event loop, so a blocking tool delays only its own server. If a tool never returns, the thread is
abandoned. As a daemon, it does not keep the program from ending."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from workbench.dataclasses import dataclass
from workbench.tools.answer import PythonReferenceError, ToolsError
from workbench.tools.connection import TimeLimits, first_line, innermost_error
from workbench.tools.python_code import HashedCode, PythonFunctions
from workbench.trajectory.events import ServerOutput

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.server import Server
    from mcp.shared.message import SessionMessage


class ModuleConnection:
    """A `Connection` to a server that is an object in a module of the approved code.

    Each connection loads the module again, so that no state is left from an earlier connection."""

    def __init__(self, module: str, name: str, code: HashedCode, limits: TimeLimits) -> None:
        self._module = module
        self._name = name
        self._code = code
        self._limits = limits
        self._closing = False
        self._error: BaseException | None = None
        self._serving: _Serving | None = None

    @property
    def where(self) -> str:
        return f"module: {self._module}:{self._name} in {self._code.folder}"

    @property
    def pid(self) -> int | None:
        return None

    @property
    def output(self) -> ServerOutput | None:
        return None

    @property
    def closed(self) -> bool:
        return self._closing or self._over.done()

    @property
    def disconnected(self) -> asyncio.Future[None]:
        return self._over

    async def __aenter__(self) -> TransportStreams:
        import anyio
        from mcp.shared.message import SessionMessage

        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()
        ready: asyncio.Future[None] = self._loop.create_future()
        self._to_client, client_reads = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        client_writes, from_client = anyio.create_memory_object_stream[SessionMessage](math.inf)
        threading.Thread(target=self._run, args=(ready,), name=f"server {self._module}", daemon=True).start()
        try:
            await asyncio.wait({ready, self._over}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._closing = True
            self.kill()
            raise
        if self._serving is None:
            raise ConnectionError("the server ended before it could be reached")
        self._writer = asyncio.create_task(self._write(from_client, self._serving))
        return client_reads, client_writes

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._serving is not None
        self._closing = True
        try:
            self._serving.soon(self._serving.to_server.close)
            await asyncio.wait({self._over}, timeout=self._limits.polite_s)
            if not self._over.done():
                self.kill()
                await asyncio.wait({self._over}, timeout=self._limits.terminate_s)
        finally:
            self._writer.cancel()

    def kill(self) -> None:
        if self._serving is not None:
            self._serving.soon(self._serving.task.cancel)

    def start_failure(self, error: BaseException | None) -> str:
        if self._error is not None:
            return f"cannot be started: {self._error_in_words()}"
        return f"does not speak MCP as expected: {first_line(error)}"

    @property
    def rollback_s(self) -> float:
        return 0.0

    def advice(self) -> str:
        return ""

    def hint(self) -> str:
        return ""

    @property
    def has_read(self) -> bool | None:
        return None

    @property
    def is_direct(self) -> bool:
        return False

    @property
    def expired(self) -> bool:
        return False

    def ended_by_server(self, error: BaseException) -> bool:
        return False

    def loss_reason(self, error: BaseException | None) -> str:
        if self._error is not None:
            return f"ended: {self._error_in_words()}"
        return "ended"

    def unanswered_reason(self, error: Exception) -> str | None:
        return None

    def _error_in_words(self) -> str:
        assert self._error is not None
        error = innermost_error(self._error)
        if isinstance(error, ToolsError):
            return str(error)
        return f"{type(error).__name__}: {first_line(error)}"

    def _run(self, ready: asyncio.Future[None]) -> None:
        functions = PythonFunctions(self._code)
        # The suite's code may raise anything, even SystemExit. `start_failure` and `loss_reason` report the error.
        try:
            server = _server_in(self._module, self._name, functions)
            asyncio.run(self._serve(server, ready))
        except BaseException as error:  # noqa: BLE001
            self._error = error
        finally:
            functions.forget()
            with suppress(RuntimeError):  # the engine's loop may be closed already
                self._loop.call_soon_threadsafe(self._end)

    async def _serve(self, server: Server[Any], ready: asyncio.Future[None]) -> None:
        import anyio
        from mcp.shared.message import SessionMessage

        to_server, server_reads = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
        server_writes, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        task = asyncio.current_task()
        assert task is not None
        self._serving = _Serving(asyncio.get_running_loop(), task, to_server)
        # The caller may give up now. It sets `_closing` and then cancels `_serving`. Here, `_serving` is set and then
        # `_closing` is checked. In any order, one of the two threads stops the server.
        if self._closing:
            return
        self._loop.call_soon_threadsafe(_resolve, ready)
        reading = asyncio.create_task(self._read(from_server))
        await server.run(server_reads, server_writes, server.create_initialization_options())
        await reading

    async def _read(self, from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
        # Each message is awaited, so that messages do not accumulate in memory.
        import anyio

        async with from_server:
            async for message in from_server:
                passed = asyncio.run_coroutine_threadsafe(self._to_client.send(message), self._loop)
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await asyncio.wrap_future(passed)

    async def _write(self, from_client: MemoryObjectReceiveStream[SessionMessage], serving: _Serving) -> None:
        async with from_client:
            async for message in from_client:
                serving.soon(serving.pass_on, message)

    def _end(self) -> None:
        self._to_client.close()
        _resolve(self._over)


@dataclass(frozen=True)
class _Serving:
    """A running server.

    `loop` and `task` belong to the server's thread. Messages to the server go into `to_server`, on that loop."""

    loop: asyncio.AbstractEventLoop
    task: asyncio.Task[None]
    to_server: MemoryObjectSendStream[SessionMessage | Exception]

    def pass_on(self, message: SessionMessage) -> None:
        """Pass a message to the server, on the server's loop. It is dropped if the server no longer reads."""
        import anyio

        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.to_server.send_nowait(message)

    def soon(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function soon on the server's loop. Do nothing if the server has ended."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function, *arguments)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _server_in(module: str, name: str, functions: PythonFunctions) -> Server[Any]:
    """Load a module and return the server object with the given name.

    Raises PythonReferenceError if the name is missing or its object is not an MCP server."""
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

    with _console_handlers_removed():
        value = functions.value(module, name)
    if isinstance(value, MCPServer):
        return value._lowlevel_server
    if isinstance(value, Server):
        return value
    # The value may be a FastMCP of the package fastmcp, which is not a dependency. It wraps a server of the SDK.
    inner = getattr(value, "_mcp_server", None)
    if isinstance(inner, Server):
        return inner
    found = "does not exist"
    if value is not None:
        found = f"is not an MCP server but of type {type(value).__name__}"
    raise PythonReferenceError(
        f"{module}:{name} {found}: name an MCPServer, a Server or a FastMCP with the key `object`"
    )


@contextmanager
def _console_handlers_removed() -> Iterator[None]:
    """Remove the log handlers that a module installs for the terminal while it is loaded.

    The SDK and fastmcp install such handlers. Without them, their log lines go to the program's log."""
    from rich.logging import RichHandler

    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.NullHandler())
    before = set()
    for logger in _loggers():
        for handler in logger.handlers:
            before.add(id(handler))
    try:
        yield
    finally:
        for logger in _loggers():
            for handler in tuple(logger.handlers):
                on_console = isinstance(handler, RichHandler) or type(handler) is logging.StreamHandler
                if on_console and id(handler) not in before:
                    logger.removeHandler(handler)
                    logger.propagate = True


def _loggers() -> list[logging.Logger]:
    known = logging.getLogger().manager.loggerDict.values()
    return [logging.getLogger(), *(logger for logger in tuple(known) if isinstance(logger, logging.Logger))]
