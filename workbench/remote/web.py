"""The web server of `workbench serve`: textual-serve with access checks and a limited number of visitors."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial
from html import escape

from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.http_exceptions import HttpProcessingError
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager
from textual_serve.server import Server

from workbench.config.program import SERVED_VARIABLE
from workbench.dataclasses import dataclass
from workbench.limits import MAX_PIPED_BYTES, MAX_TERMINAL_COLUMNS, MAX_TERMINAL_ROWS
from workbench.numerals import counted, setting_text
from workbench.remote.gate import COOKIE, Gate

# By default, textual-serve starts a process for every connection, even for one from a foreign page, loads a font from
# another machine, and runs its command in a shell. Here, every request must pass `remote.gate`, and these three
# behaviours are replaced.

_ICON = (
    "data:image/svg+xml,<svg xmlns='http:%2F%2Fwww.w3.org/2000/svg' viewBox='0 0 16 16'>"
    "<rect width='16' height='16' rx='3' fill='%2315181d'/>"
    "<path d='M3.5 4.5 7 8l-3.5 3.5M8.5 12H13' stroke='%237fb4ff' stroke-width='2' fill='none'/></svg>"
)

_STYLE = """
@font-face { font-family: "Roboto Mono"; src: url("STATICfonts/RobotoMono-VariableFont_wght.ttf"); }
@font-face { font-family: "Roboto Mono"; font-style: italic;
  src: url("STATICfonts/RobotoMono-Italic-VariableFont_wght.ttf"); }
html, body { margin: 0; height: 100%; background: #15181d; color: #d3d8df; overflow: hidden; }
body { font: 15px/1.5 "Roboto Mono", Monaco, "Courier New", monospace; }
main { position: fixed; inset: 0; display: grid; place-content: center; justify-items: center; padding: 2em;
  text-align: center; background: #15181d; z-index: 10; }
main p { max-width: 60ch; margin: .4em 0; }
a { color: #7fb4ff; }
.textual-terminal { position: fixed; inset: 0; }
.textual-terminal .xterm { height: 100%; }
.xterm .xterm-viewport { overflow: hidden !important; }
body.-first-byte .opening, .closed { display: none; }
body.-closed .closed { display: grid; }
"""

SCRIPT = """
// Keys go to the app at once, and again whenever the page comes back.
function focus() {
  const field = document.querySelector(".xterm-helper-textarea");
  if (field) field.focus();
}
window.addEventListener("load", focus);
window.addEventListener("focus", focus);

// Ctrl+V pastes what the browser has, as it does elsewhere: the terminal would send it as a key.
window.addEventListener("keydown", (key) => {
  if (key.ctrlKey && !key.altKey && !key.metaKey && key.key.toLowerCase() === "v") key.stopPropagation();
}, true);

// The server says why it closes the connection. Without a word, it is gone, or what is in between.
window.WebSocket = class extends WebSocket {
  constructor(...where) {
    super(...where);
    this.addEventListener("close", (closed) => {
      document.title = `${document.title} (ended)`;
      if (closed.reason) document.querySelector("#why").textContent = closed.reason;
    });
  }
};
"""
"""The page's own script. The terminal in the page has another script."""

SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every answer."""


def policy(socket: str) -> str:
    """Return the Content-Security-Policy of a page, which may load only this server's files and open one WebSocket.

    `socket` is the address of the WebSocket, or empty for a page without a WebSocket."""
    connects = socket or "'none'"
    return (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; "
        f"img-src 'self' data:; connect-src {connects}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def app_page(static: str, socket: str, font_size: int, *, read_only: bool) -> str:
    """Return the page that shows the app in the browser.

    `static` is the address of the page's files. `socket` is the address of its WebSocket."""
    title, left = "Workbench", "Runs under way were stopped; what had finished is in the history."
    if read_only:
        title, left = "Workbench (read-only)", ""
    return _page(
        title,
        f"""<main class="opening"><p>Opening Workbench …</p></main>
<main class="closed"><p>This app has ended.</p>
<p id="why">The connection to its server broke, or the server is gone.</p>
<p>{left}</p>
<p><a href="./">Open it again</a></p></main>
<div class="textual-terminal" id="terminal" data-session-websocket-url="{escape(socket)}"
 data-font-size="{font_size}"></div>""",
        head=f'<link rel="stylesheet" href="{escape(static)}css/xterm.css">\n'
        f'<link rel="preload" as="font" crossorigin href="{escape(static)}fonts/RobotoMono-VariableFont_wght.ttf">\n'
        f'<script src="{escape(static)}js/textual.js"></script>\n'
        '<script src="page.js" defer></script>\n',
        static=static,
    )


def entry_page(path: str) -> str:
    """Return a page that opens the app at `path`.

    The browser asked for the printed address, which contains the access token. The page leads to an address without the
    token."""
    # This is a page and not a redirect. After a redirect from a link on another page, the browser would not send the
    # new cookie, which is restricted to requests of this site.
    return _page(
        "Workbench",
        f'<main><p><a href="{escape(path)}">Open Workbench</a></p></main>',
        head=f'<meta http-equiv="refresh" content="0; url={escape(path)}">\n',
    )


def message_page(*lines: str) -> str:
    """Return a page with lines of text and no link."""
    paragraphs = "\n".join(f"<p>{escape(line)}</p>" for line in lines)
    return _page("Workbench", f"<main>{paragraphs}</main>")


def _page(title: str, body: str, *, head: str = "", static: str | None = None) -> str:
    # A page without the static files has no fonts, so the rules for fonts at the beginning of the style are left out.
    style = _STYLE[_STYLE.index("html, body") :]
    if static is not None:
        style = _STYLE.replace("STATIC", static)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<link rel="icon" href="{_ICON}">\n{head}<style>{style}</style></head>\n<body>{body}</body></html>\n'
    )


_log = logging.getLogger(__name__)

APP_END_TIMEOUT_S = 20.0
"""Time for an app to stop its runs and servers before it is killed, in seconds."""

_NOT_STARTED = "It did not start: its output is in the terminal where 'workbench serve' was started."
_FAILED = "It failed: see the program log, or the terminal where 'workbench serve' was started."

_GREETING = b"__GANGLION__\n"

_NEEDED_VARIABLES = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV"),
    "WORKBENCH_ASCII",
)
_NEEDED_ON_WINDOWS = ("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "SYSTEMROOT", "TEMP", "USERPROFILE")
_NEEDED_BEGINNINGS = ("LC_", "XDG_", "PYTHON")
_TERMINAL_VARIABLES = ("NO_COLOR", "COLORTERM", "TERM_PROGRAM", "TMUX", "STY", "TEXTUAL_DRIVER", "TEXTUAL_COLOR_SYSTEM")
"""Variables that describe the server's terminal, not the browser's."""


@dataclass(frozen=True)
class App:
    """The command and the environment variables of each visitor's process."""

    words: Sequence[str]
    environment: Mapping[str, str]


def app_for(command_line: Sequence[str], environment: Mapping[str, str], *, read_only: bool) -> App:
    """Return the app that this command line starts.

    A read-only app gets only the variables that any program needs, so it has no keys of providers."""
    needed = (*_NEEDED_VARIABLES, *_NEEDED_ON_WINDOWS)
    kept = {}
    for name, value in environment.items():
        if name in _TERMINAL_VARIABLES:
            continue
        if not read_only or name in needed or name.startswith(_NEEDED_BEGINNINGS):
            kept[name] = value
    # `-P` and this process's `sys.path` keep the current folder out of the module search path. Otherwise, a module in
    # that folder could replace a module of the program.
    begin = f"import sys; sys.path[:] = {sys.path!r}; from workbench.cli.main import main; sys.exit(main())"
    return App(
        (sys.executable, "-P", "-c", begin, *command_line), {**kept, "TERM": "xterm-256color", SERVED_VARIABLE: "1"}
    )


class Visitor(AppService):
    """The process of one visitor's app."""

    def __init__(
        self,
        app: App,
        *,
        write: Callable[[bytes], Awaitable[None]],
        write_text: Callable[[str], Awaitable[None]],
        close: Callable[[bytes], Awaitable[object]],
    ) -> None:
        async def end() -> None:
            await close(self.why.encode())

        self.why = ""
        """The reason why the app ends, which its page shows. A WebSocket transmits at most 123 bytes of it."""

        super().__init__(
            "workbench", write_bytes=write, write_str=write_text, close=end, download_manager=DownloadManager()
        )
        self._app = app
        self.typed_s = asyncio.get_running_loop().time()
        """The time of the visitor's last input, by the clock of the event loop."""

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        self._process = await asyncio.create_subprocess_exec(
            *self._app.words,
            stdin=PIPE,
            stdout=PIPE,
            env={**self._app.environment, "COLUMNS": str(width), "LINES": str(height)},
            # Ctrl+C must reach only the server, which then ends its visitors' apps itself.
            start_new_session=os.name == "posix",
        )
        self._stdin = self._process.stdin
        return self._process

    async def stop(self, reason: str = "") -> None:
        """End the process, as if its terminal had been closed.

        Its runs are stopped. Finished runs stay in the history. `reason` is shown on the visitor's page."""
        process, task = self._process, self._task
        self.why = self.why or reason
        if process is None or task is None:
            return
        if process.returncode is None:
            # `process.terminate` is not used: if the process has just ended, it would take the exit code that
            # `process.wait` needs.
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
        try:
            # Meanwhile, `run` still reads the app's output, so that the app cannot block while it writes.
            await asyncio.wait_for(asyncio.shield(process.wait()), APP_END_TIMEOUT_S)
        except TimeoutError:
            _log.error("the app of a visitor did not end and was killed")
            process.kill()
            await process.wait()
        await task

    async def run(self) -> None:
        """Forward the app's output to the browser until the app ends."""
        assert self._process is not None and self._process.stdout is not None
        stdout = self._process.stdout
        is_there = True
        try:
            if await stdout.readline() != _GREETING:
                _log.error("the app of a visitor did not start")
                self.why = self.why or _NOT_STARTED
                return
            while True:
                kind = await stdout.readexactly(1)
                size = int.from_bytes(await stdout.readexactly(4), "big")
                if size > MAX_PIPED_BYTES:
                    _log.error("the app of a visitor wrote something that is not a packet")
                    self.why = self.why or _FAILED
                    return
                content = await stdout.readexactly(size)
                try:
                    # Only packets with screen content (`D`) are forwarded. Others could make the browser open an
                    # address or load a file.
                    if is_there and kind == b"D":
                        await self.remote_write_bytes(content)
                except (ConnectionError, RuntimeError):
                    is_there = False  # the browser has disconnected
        except (asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            if not self.why:
                ended = "It was quit."
                if await self._process.wait():
                    ended = _FAILED
                self.why = self.why or ended
            with suppress(ConnectionError, RuntimeError):  # the browser may have disconnected
                await self.remote_close()


# Anyone who can reach the port can open connections, so their number is limited. A connection without an allowed
# request is closed after a while, or when a new connection needs its place.

FIRST_REQUEST_TIMEOUT_S = 10.0
"""The time for the first allowed request of a connection, in seconds."""
IDLE_TIMEOUT_S = 75.0
"""The time between allowed requests after which a connection is closed, in seconds."""


class Connections:
    """The open connections. `most` is the highest number of connections.

    If the limit is reached, a new connection replaces the connection that has waited longest for its first allowed
    request. If all connections have sent such a request, the new connection is refused."""

    def __init__(self, maximum: int) -> None:
        self._most = maximum
        self._open: set[Connection] = set()
        self._outside: dict[Connection, asyncio.TimerHandle] = {}
        """Connections without an allowed request, the oldest first, each with the timer that ends it."""

    def add(self, connection: Connection) -> bool:
        """Add a new connection. Returns false if there is no room for it."""
        if len(self._open) >= self._most:
            if not self._outside:
                return False
            self._end(next(iter(self._outside)))
        self._open.add(connection)
        self._outside[connection] = asyncio.get_running_loop().call_later(
            FIRST_REQUEST_TIMEOUT_S, self._end, connection
        )
        return True

    def admit(self, connection: object) -> None:
        """Record that a connection has sent an allowed request."""
        if isinstance(connection, Connection) and (ending := self._outside.pop(connection, None)) is not None:
            ending.cancel()

    def remove(self, connection: Connection) -> None:
        """Record that a connection has ended."""
        self.admit(connection)
        self._open.discard(connection)

    def _end(self, connection: Connection) -> None:
        self.remove(connection)
        if connection.transport is not None:
            connection.transport.abort()


class Connection(web.RequestHandler):
    """An HTTP connection that is counted in `Connections`."""

    __slots__ = ("_connections",)

    def __init__(self, connections: Connections, server: web.Server, logger: logging.Logger) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]
            logger=logger,
            keepalive_timeout=IDLE_TIMEOUT_S,
        )
        self._connections = connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._connections.add(self):
            super().connection_made(transport)
        elif isinstance(transport, asyncio.Transport):
            transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.remove(self)
        super().connection_lost(exc)


_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


FONT_SIZES = range(6, 73)
SPARE_CONNECTIONS = 32
CONNECTIONS_OF_VISITOR = 6
"""The most connections that a browser opens to one server."""
ACCEPT_BACKLOG = 32
"""The most connections that asyncio accepts at once, before they are counted again."""
FORWARDED_CHUNK_BYTES = 4096
"""The number of bytes of input that are forwarded at a time. While the app is busy, it reads no more."""
HEARTBEAT_S = 15.0
"""The interval between two pings of a browser, in seconds."""


@dataclass(frozen=True)
class Settings:
    """The settings of the server.

    `visitors` is the highest number of visitors at a time. If `idle_s` is set, a visitor who types nothing for
    `idle_s` seconds is disconnected. `gate` decides which requests are answered."""

    host: str
    port: int
    visitors: int
    idle_s: float | None
    read_only: bool
    gate: Gate = field(default_factory=Gate)


class AppServer(Server):
    """A web server that starts a process of the app for each visitor."""

    def __init__(self, app: App, settings: Settings) -> None:
        super().__init__("workbench", settings.host, settings.port, title="Workbench")
        self._app = app
        self._settings = settings
        self._gate = settings.gate
        self._visitors: set[Visitor] = set()
        self._taken = 0
        """The number of visitors, including those whose app is starting or ending."""
        self._ending = 0
        self._freed = asyncio.Event()
        self._connections = Connections(SPARE_CONNECTIONS + CONNECTIONS_OF_VISITOR * settings.visitors)

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        path = self._gate.path
        app.add_routes(
            [
                web.get("/", self._enter),
                web.get(path, self._page),
                web.get(f"{path}page.js", self._script),
                web.get(f"{path}ws", self.handle_websocket),
                web.static(f"{path}static", self.statics_path, show_index=False),
            ]
        )
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Pass a request to its handler if it comes from the server's own page and has the token or the cookie.

        All other requests are refused."""
        # All refusals have the same status, so a foreign page learns nothing from them.
        entering = request.path == "/"
        refusal = self._gate.refusal(
            request.headers, is_entry=entering, is_socket=request.headers.get("Upgrade", "").lower() == "websocket"
        )
        if refusal is not None:
            return _refused(f"Refused: {refusal}.")
        if not self._is_known(request, is_entry=entering):
            return _refused(*_NO_KEY)
        self._connections.admit(request.protocol)
        try:
            response = await handler(request)
        except web.HTTPException as error:
            return _message(error.status, f"{error.status}: {error.reason}")
        if not response.prepared:
            response.headers.update(SECURITY)
        return response

    def _is_known(self, request: web.Request, *, is_entry: bool) -> bool:
        if is_entry:
            return self._gate.knows_token(request.query.get("token", ""))
        return self._gate.knows_key(request.cookies.get(COOKIE, ""))

    async def _enter(self, request: web.Request) -> web.Response:
        """Answer a request for the printed address: give the browser a cookie in exchange for the token."""
        response = _html(entry_page(self._gate.path))
        response.set_cookie(
            COOKIE,
            self._gate.key,
            path=self._gate.path,
            httponly=True,
            samesite="Strict",
            secure=self._gate.origin(request.host).startswith("https"),
        )
        return response

    async def _page(self, request: web.Request) -> web.Response:
        if self._is_full and not self._ending:
            return _message(503, *self._full())
        socket = f"ws{self._gate.origin(request.host).removeprefix('http')}{self._gate.path}ws"
        font_size, asked = 16, request.query.get("fontsize", "")
        if asked.isdecimal() and int(asked) in FONT_SIZES:
            font_size = int(asked)
        page = app_page(f"{self._gate.path}static/", socket, font_size, read_only=self._settings.read_only)
        return _html(page, socket=socket)

    async def _script(self, _: web.Request) -> web.Response:
        return web.Response(text=SCRIPT, content_type="text/javascript")

    @property
    def _is_full(self) -> bool:
        return self._taken >= self._settings.visitors

    def _full(self) -> tuple[str, str]:
        return (
            f"All places are taken: {counted(self._taken, 'visitor')}.",
            "Close the page of one, or start the server with more places (--visitors).",
        )

    async def _acquire_place(self) -> bool:
        """Reserve a place for a visitor. Returns false if all places are taken."""
        # When a page is reloaded, its former app is ending and soon frees a place.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(APP_END_TIMEOUT_S):
                while self._is_full and self._ending:
                    self._freed.clear()
                    await self._freed.wait()
        if self._is_full:
            return False
        self._taken += 1
        return True

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run an app for a visitor for as long as the browser is connected."""
        if not await self._acquire_place():
            raise web.HTTPServiceUnavailable
        visitor: Visitor | None = None
        try:
            socket = web.WebSocketResponse(heartbeat=HEARTBEAT_S)
            await socket.prepare(request)

            async def close(reason: bytes) -> None:
                await socket.close(message=reason)

            visitor = Visitor(self._app, write=socket.send_bytes, write_text=socket.send_str, close=close)
            self._visitors.add(visitor)
            await visitor.start(
                _bounded(request.query.get("width"), 80, MAX_TERMINAL_COLUMNS),
                _bounded(request.query.get("height"), 24, MAX_TERMINAL_ROWS),
            )
            idle = asyncio.create_task(self._end_idle(visitor, socket))
            try:
                await self._process_messages(socket, visitor)
            finally:
                idle.cancel()
            return socket
        finally:
            await asyncio.shield(self._release_place(visitor))

    async def _release_place(self, visitor: Visitor | None) -> None:
        self._ending += 1
        try:
            if visitor is not None:
                # The page sees this reason only if it is still connected, which is the case after an invalid message.
                await visitor.stop("Its page sent a message that the app's page never sends.")
                self._visitors.discard(visitor)
        finally:
            self._ending -= 1
            self._taken -= 1
            self._freed.set()

    async def _end_idle(self, visitor: Visitor, socket: web.WebSocketResponse) -> None:
        idle_s = self._settings.idle_s
        loop = asyncio.get_running_loop()
        while idle_s is not None:
            left_s = visitor.typed_s + idle_s - loop.time()
            if left_s <= 0:
                why = f"Nothing was typed for {setting_text(idle_s / 60)} minutes."
                await socket.close(code=WSCloseCode.GOING_AWAY, message=why.encode())
                return
            await asyncio.sleep(left_s)

    async def _process_messages(self, websocket: web.WebSocketResponse, app_service: Visitor) -> None:  # type: ignore[override]
        async for message in websocket:
            if message.type != WSMsgType.TEXT:
                break
            try:
                document = json.loads(message.data)
            except (ValueError, RecursionError):
                break
            match document:
                case ["stdin", str(text)]:
                    app_service.typed_s = asyncio.get_running_loop().time()
                    typed = text.encode("utf-8", "ignore")
                    for start in range(0, len(typed), FORWARDED_CHUNK_BYTES):
                        if app_service.stdin.is_closing():  # the app is ending
                            break
                        await app_service.send_bytes(typed[start : start + FORWARDED_CHUNK_BYTES])
                case ["resize", {"width": int(width), "height": int(height)}]:
                    await app_service.set_terminal_size(
                        _bounded(width, 80, MAX_TERMINAL_COLUMNS), _bounded(height, 24, MAX_TERMINAL_ROWS)
                    )
                case ["ping", int() | float() | str() as data]:
                    await websocket.send_json(["pong", data])
                case ["blur", *_]:
                    await app_service.blur()
                case ["focus", *_]:
                    await app_service.focus()
                case _:
                    break

    async def run(self, ready: Callable[[str], object]) -> None:
        """Serve until SIGINT or SIGTERM.

        `ready` is called with the server's address, without the token, once the server accepts connections. Raises
        OSError if the port is not available."""
        _log.addFilter(_belongs_in_log)
        runner = web.AppRunner(
            await self._make_app(),
            access_log=None,
            logger=_log,
            shutdown_timeout=APP_END_TIMEOUT_S,
            # If a browser disconnects, its handler must end even while it waits for an app that reads no input.
            handler_cancellation=True,
        )
        await runner.setup()
        assert runner.server is not None
        listening: asyncio.Server | None = None
        try:
            listening = await asyncio.get_running_loop().create_server(
                partial(Connection, self._connections, runner.server, _log),
                self._settings.host,
                self._settings.port,
                backlog=ACCEPT_BACKLOG,
            )
            ended = asyncio.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                with contextlib.suppress(NotImplementedError):
                    asyncio.get_running_loop().add_signal_handler(number, ended.set)
            ready(_address(self._settings, listening.sockets[0].getsockname()[1]))
            await ended.wait()
            await asyncio.gather(*(visitor.stop(_SERVER_ENDED) for visitor in tuple(self._visitors)))
        finally:
            if listening is not None:
                listening.close()
            await runner.cleanup()


_SERVER_ENDED = "Its server was ended. Start 'workbench serve' again, and open the address that it prints."

_NO_KEY = (
    "This page opens from the address that 'workbench serve' printed, with its token.",
    "Addresses of an earlier server no longer open anything.",
)


def _belongs_in_log(record: logging.LogRecord) -> bool:
    """Return whether the log should have a record. Errors about requests that are not HTTP are left out."""
    # Anyone can send such requests at any rate, and the record would quote their text, possibly with a token.
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


def _address(settings: Settings, port: int) -> str:
    if settings.gate.public is not None:
        return settings.gate.public.geturl().rstrip("/")
    # `0.0.0.0` and `::` mean all interfaces, and browsers cannot open them.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
    if ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{port}"


def _bounded(text: str | int | None, default: int, maximum: int) -> int:
    """Return a number of columns or rows, limited to the range from 1 to `maximum`.

    If the number is absent or invalid, the result is `default`."""
    try:
        return min(max(int(text or default), 1), maximum)
    except ValueError:
        return default


def _html(text: str, status: int = 200, socket: str = "") -> web.Response:
    response = web.Response(text=text, status=status, content_type="text/html")
    response.headers.update({**SECURITY, "Content-Security-Policy": policy(socket)})
    return response


def _refused(*lines: str) -> web.Response:
    response = _message(403, *lines)
    response.force_close()
    return response


def _message(status: int, *lines: str) -> web.Response:
    return _html(message_page(*lines), status)
