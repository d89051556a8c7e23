"""Connects to a server by its URL, over streamable HTTP or the older SSE, and explains failures."""

from __future__ import annotations

import asyncio
import functools
import importlib
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from workbench.config.models import is_loopback
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.limits import MAX_MESSAGE_BYTES
from workbench.numerals import seconds_text
from workbench.startup import late_pattern
from workbench.suite.server_model import Server
from workbench.tools.answer import ServerError, clean_text
from workbench.tools.connection import REFUSAL, TimeLimits, expand_variables, first_line
from workbench.tools.login_file import LoginFile, Logins, login_settings
from workbench.tools.redirect import LoginError
from workbench.trajectory.events import ServerOutput

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import ReadStream, TransportStreams
    from mcp.shared.message import SessionMessage

    from workbench.tools.oauth import LoginAuth, ServerLogin

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"([!-~]([\t -~]*[!-~])?)?")

_OFFERS_LOGIN = re.compile(r"\bresource_metadata=")
"""The parameter in a refusal with which an MCP server offers a login. It says where to get tokens (RFC 9728)."""

# This time is shorter than the limit of any server. Otherwise, a request could use a connection that the server is
# about to close.
_KEEP_ALIVE_S = 2.0

_NOT_FOUND = "Not Found"
# The SDK's error does not contain the HTTP status, so the connection records it.
_REFUSED = ("Server returned an error response", _NOT_FOUND)
"""The SDK's texts for an HTTP error."""

_METHOD_NOT_FOUND = b"-32601"

_NO_ANSWER = (
    "server answered a request with 202",
    "Redirect to http",
    "Unexpected content type: ",
    "Failed to parse JSON response: ",
    "Failed to parse SSE message: ",
    "SSE stream ended ",
    "SSE stream failed: ",
)
"""The beginnings of the SDK's errors for answers that violate MCP."""

_VALIDATION_ERRORS = late_pattern(r": \d+ validation errors? for .*")
"""The end of the SDK's errors for messages that are not JSON-RPC."""


def _reason(error: BaseException | None) -> str:
    return _VALIDATION_ERRORS.sub(": it is not a message of JSON-RPC", first_line(error))


class TooLongError(Exception):
    """Raised if a server's answer exceeds the limit."""


class UrlConnection:
    """A `Connection` over HTTP.

    Redirects are followed only within the server's own origin, so that no other host receives the headers. For
    addresses of this machine, the proxies in the environment are ignored."""

    def __init__(
        self,
        server: Server,
        url: str,
        environment: Mapping[str, str],
        secrets: Secrets,
        limits: TimeLimits,
        logins: Logins,
    ) -> None:
        self._server = server
        self._url = url
        self._environment = environment
        self._secrets = secrets
        self._limits = limits
        self._logins = logins
        self._login: ServerLogin | None = None
        self._exits = AsyncExitStack()
        self._refusal: str | None = None
        """The last HTTP status that refused a message, such as `401 Unauthorized`."""
        self._remedy = ""
        """The remedy for that refusal, as the end of a sentence.

        It is empty if the server has no login, or if no remedy is known."""
        self._session_gone = False
        self._lost: asyncio.Future[None] | None = None
        self._reading: _ObservedStream | None = None

    @property
    def where(self) -> str:
        parts = urlsplit(self._url)
        return f"url: {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def pid(self) -> int | None:
        return None

    @property
    def output(self) -> ServerOutput | None:
        return None

    @property
    def has_read(self) -> bool | None:
        return None

    @property
    def is_direct(self) -> bool:
        return False

    @property
    def expired(self) -> bool:
        return self._session_gone

    @property
    def closed(self) -> bool:
        return self._reading is None or self._reading.ended or self.disconnected.done()

    @property
    def disconnected(self) -> asyncio.Future[None]:
        assert self._lost is not None
        return self._lost

    async def __aenter__(self) -> TransportStreams:
        from mcp.client.sse import sse_client
        from mcp.client.streamable_http import streamable_http_client

        headers = {}
        for name, value in self._server.headers.items():
            headers[name] = self._header(name, value)
        self._lost = asyncio.get_running_loop().create_future()
        async with AsyncExitStack() as exits:
            # Reading the certificates of this machine is slow, so a thread does it.
            auth = await self._authorization()
            client = await asyncio.to_thread(self._client, headers, auth)
            if self._server.transport == "sse":
                transport = sse_client(self._url, httpx_client_factory=_ExistingClient(client))
            else:
                await exits.enter_async_context(client)
                transport = streamable_http_client(self._url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES)
            read_stream, write_stream = await exits.enter_async_context(transport)
            self._reading = _ObservedStream(read_stream, self._lose)
            self._exits = exits.pop_all()
            return self._reading, write_stream

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._exits.__aexit__(kind, error, traceback)

    def kill(self) -> None:
        """Do nothing. The server is not a process of this program."""

    def start_failure(self, error: BaseException | None) -> str:
        reason = _reason(error)
        if self._refusal is not None and reason in _REFUSED:
            return f"answers with {self._refusal}{self._advice(self._refusal)}"
        return self._in_words(error) or f"does not speak MCP as expected: {reason}"

    @property
    def rollback_s(self) -> float:
        return 0.0

    def advice(self) -> str:
        return ""

    def hint(self) -> str:
        if self._refusal is not None:
            return f"; it answered with {self._refusal}"
        return "; check that its transport is the one in the suite"

    def ended_by_server(self, error: BaseException) -> bool:
        import httpx2

        return any(isinstance(cause, httpx2.ReadError | httpx2.RemoteProtocolError) for cause in _causes(error))

    def loss_reason(self, error: BaseException | None) -> str:
        if self._session_gone:
            return "has forgotten the session: it was probably restarted"
        if error is None and self._refusal is not None:
            return f"answered with {self._refusal}{self._remedy}"
        return self._in_words(error) or "ended the connection"

    def unanswered_reason(self, error: Exception) -> str | None:
        reason = _reason(error)
        # If the status is not 404, the server itself reported an error with this text.
        if reason == _NOT_FOUND and not (self._refusal or "").startswith("404"):
            return None
        if reason in _REFUSED:
            return f"it answered with {self._refusal or 'an HTTP error'}{self._remedy}"
        if reason.startswith(_NO_ANSWER):
            return reason
        return None

    async def _authorization(self) -> LoginAuth | None:
        """Return the object that sends the token of a login with each request, `None` for a server without `auth`.

        Raises ServerError if there is no valid login, and MissingVariableError if a variable in the settings is not
        set."""
        settings = login_settings(self._server, self._environment, self._secrets)
        if settings is None:
            return None
        # Importing the SDK's OAuth client is slow, so a thread does it.
        await asyncio.to_thread(importlib.import_module, "workbench.tools.oauth")
        from workbench.tools.oauth import LoginAuth, ServerLogin

        if self._login is None:
            file, command = LoginFile(self._logins.folder, settings), self._logins.command(self._server.name)
            limit_s = self._limits.start_s
            self._login = ServerLogin(self._server.name, settings, file, self._secrets, command, limit_s)
        try:
            await self._login.token()
        except LoginError as error:
            message = clean_text(f"server {self._server.name!r} {error} ({self.where})")
            raise ServerError(self._secrets.redact(message)) from error
        return LoginAuth(self._login, self._refuse_login)

    def _client(self, headers: Mapping[str, str], auth: LoginAuth | None) -> httpx2.AsyncClient:
        import httpx2

        # A mount without a transport exempts the host from the proxies of the environment.
        mounts = None
        if is_loopback(self._url):
            host = urlsplit(self._url).hostname or ""
            if ":" in host:
                host = f"[{host}]"
            mounts = {f"all://{host}": None}
        return httpx2.AsyncClient(
            auth=auth,
            # An answer is held in memory as a whole, and the full size of a compressed answer cannot be known in
            # advance.
            headers={"Accept-Encoding": "identity", **headers},
            timeout=httpx2.Timeout(self._limits.start_s, read=None),
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=_KEEP_ALIVE_S),
            mounts=mounts,
            event_hooks={"response": [self._inspect_response]},
        )

    async def _inspect_response(self, response: httpx2.Response) -> None:
        sent = response.request
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _bounded_type()(response.stream)
        # Only a refused message (POST) matters. A server may refuse to stream (GET) or to end a session (DELETE) and
        # still work. With a login, the first status 401 leads to a new token, and the login reports a second 401.
        is_of_login = response.status_code == 401 and self._login is not None
        if response.status_code < 400 or sent.method != "POST" or is_of_login:
            return
        self._refuse(response)
        if "mcp-session-id" in sent.headers and await _reports_lost_session(response):
            self._session_gone = True
            if (refusal := REFUSAL.get()) is not None:
                refusal.expired = True

    def _refuse(self, response: httpx2.Response) -> None:
        self._refusal = f"{response.status_code} {response.reason_phrase}".rstrip()
        self._remedy = ""
        is_free = self._login is None and not any(name.lower() == "authorization" for name in self._server.headers)
        if is_free and _OFFERS_LOGIN.search(response.headers.get("www-authenticate", "")):
            self._remedy = f": {self._logins.how_to_log_in(self._server.name, self._url)}"
        if self._login is not None and response.status_code == 403:
            from workbench.tools.oauth import wanted_scope

            scope = wanted_scope(response)
            if scope is not None:
                self._remedy = f": the login lacks the scope {scope!r}: add it to scope, and log in again"
        # Over SSE, the SDK only logs the refusal, and the call would never be answered.
        if self._server.transport == "sse":
            self._lose()

    def _refuse_login(self, response: httpx2.Response, reason: str) -> None:
        if response.request.method == "POST":
            self._refuse(response)
            self._remedy = f": it {reason}"

    def _lose(self) -> None:
        if not self.disconnected.done():
            self.disconnected.set_result(None)

    def _header(self, name: str, written: str) -> str:
        value = expand_variables(written, self._environment, self._secrets)
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            where = f"server {self._server.name!r}: the header {name!r}"
            raise ServerError(
                f"{where} contains a character that is not allowed there, such as a line break, a space at its end or "
                f"a non-ASCII letter: check {written!r} and the variables in it ({self.where})"
            )
        return value

    def _advice(self, refusal: str) -> str:
        if self._remedy:
            return self._remedy
        match refusal[:3]:
            case "401" | "403":
                return ": check its headers and the token in them"
            case "404":
                return ": check the path of its address"
            case "405" if self._server.transport != "sse":
                return ': check its address, or give it transport = "sse"'
        return ""

    def _in_words(self, error: BaseException | None) -> str | None:
        import httpx2

        # Inner causes are more precise, so they are examined before the client's own errors.
        causes = list(_causes(error))
        for cause in causes:
            match cause:
                case httpx2.SSEError() if "limit" in str(cause):
                    return f"sent a message that is too long: {first_line(cause)}"
                case TooLongError():
                    return MAX_MESSAGE_BYTES.reached(what="a message")
                case ssl.SSLCertVerificationError():
                    way_out = "name the file of its authority, or its own, in SSL_CERT_FILE"
                    why = cause.verify_message
                    return f"cannot be reached: its TLS certificate is not accepted ({why}): {way_out}"
                case ssl.SSLError():
                    return f"cannot be reached: TLS failed ({cause.reason or cause})"
                case socket.gaierror():
                    return f"cannot be reached: there is no host {urlsplit(self._url).hostname!r}"
                case ConnectionRefusedError():
                    return "cannot be reached: nothing listens at its address (connection refused)"
        for cause in causes:
            match cause:
                case httpx2.HTTPStatusError(response=response):
                    refusal = f"{response.status_code} {response.reason_phrase}".rstrip()
                    moved = response.headers.get("location")
                    if moved is not None:
                        return f"answers with {refusal} to {moved}"
                    return f"answers with {refusal}{self._advice(refusal)}"
                case httpx2.ProxyError():
                    return f"cannot be reached through the proxy of the environment: {first_line(cause)}"
                case httpx2.TimeoutException():
                    return f"cannot be reached within {seconds_text(self._limits.start_s)}"
                case httpx2.ConnectError():
                    return f"cannot be reached: {first_line(cause)}"
                case httpx2.SSEError():
                    return f"sent something that is not a stream of events: {first_line(cause)}"
                case httpx2.TransportError():
                    return f"closed the connection ({first_line(cause)})"
        return None


@dataclass(frozen=True)
class _ExistingClient:
    client: httpx2.AsyncClient

    def __call__(self, headers: object = None, timeout: object = None, auth: object = None) -> httpx2.AsyncClient:
        return self.client


class _ObservedStream:
    def __init__(self, stream: ReadStream[SessionMessage | Exception], on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end
        self.ended = False

    @property
    def last_context(self) -> Any:
        """The context of the message that was sent last. The SDK reads this attribute of its streams."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        try:
            return await self._stream.receive()
        except BaseException:
            self._end()
            raise

    def __aiter__(self) -> _ObservedStream:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self._stream.__anext__()
        except BaseException:
            self._end()
            raise

    async def aclose(self) -> None:
        self._end()
        await self._stream.aclose()

    async def __aenter__(self) -> _ObservedStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        self._end()
        return await self._stream.__aexit__(kind, error, traceback)

    def _end(self) -> None:
        self.ended = True
        self._on_end()


async def _reports_lost_session(response: httpx2.Response) -> bool:
    """Return whether a server refused a message because it does not know the session."""
    # The protocol's status for an unknown session is 404, but some servers also use it for unknown methods. Other
    # servers answer an unknown session with 400 or 410. After a restart, a server with a single session reports that it
    # is not initialized.
    if response.status_code not in (400, 404, 410):
        return False
    body = (await response.aread()).lower()
    if b"session" in body or b"not initialized" in body:
        return True
    return response.status_code != 400 and _METHOD_NOT_FOUND not in body


@functools.cache
def _bounded_type() -> type[Any]:
    # The class is made here, because its base class is in `httpx2`, which is imported only when a server is used.
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, stream: httpx2.AsyncByteStream) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in self._stream:
                size += len(chunk)
                if size > MAX_MESSAGE_BYTES:
                    raise TooLongError
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    return Bounded


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
