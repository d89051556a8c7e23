"""A recording proxy between a program and the endpoint of a model.

The proxy forwards every byte as it arrives, and reports requests and answers to an `Observer`. It listens only on this
machine, and stores no headers."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from workbench.config.models import ANTHROPIC_URL, OPENAI_URL, ModelSpec, checked_base_url, is_loopback
from workbench.config.secrets import Secrets, is_plain_word
from workbench.dataclasses import dataclass
from workbench.exchange.observed.conversations import Observer, Step
from workbench.exchange.observed.wire_formats import READABLE_ENCODINGS, wire_format_of
from workbench.limits import MAX_BODY_BYTES
from workbench.providers.http.clients import tls_context
from workbench.providers.http.errors import CONNECT_TIMEOUT_S, connection_failure, proxy_for

if TYPE_CHECKING:
    import aiohttp
    from aiohttp import web
    from multidict import CIMultiDict, CIMultiDictProxy

UPSTREAMS = {"openai": OPENAI_URL, "anthropic": ANTHROPIC_URL}
DEFAULT_PORT = 8808
_OF_ONE_CONNECTION = {
    *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"),
    *("transfer-encoding", "upgrade"),
}
_CLOSING_S = 0.2
"""Time for open answers to end when the proxy is closed, in seconds."""
# Headers that contain API keys. Their values are registered as secrets, because a program may repeat its key in a
# message.
_KEYS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")


class ListenError(Exception):
    """The proxy cannot be started. The message says why, and what to do."""


@dataclass(frozen=True)
class ListenAddress:
    """An address of this machine to listen on, and a port. Port 0 means any free port."""

    host: str
    port: int


def parse_listen_address(text: str) -> ListenAddress:
    """Parse `HOST:PORT`, `:PORT` or `PORT`. Raises ListenError for an address of another machine."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise ListenError(f"cannot listen on {text}: write an address and a port, such as 127.0.0.1:{DEFAULT_PORT}")
    try:
        is_here = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_here = False
    if not is_here:
        way_out = f"keys pass through the proxy, so listen on this machine only, such as on 127.0.0.1:{port}"
        raise ListenError(f"cannot listen on {text}: {way_out}")
    return ListenAddress(host, int(port))


def parse_upstream(text: str) -> str:
    """Return the base URL for `openai`, `anthropic`, or a URL that the user gave. Raises ListenError."""
    if text in UPSTREAMS:
        return UPSTREAMS[text]
    try:
        return checked_base_url(text)
    except ValueError as error:
        raise ListenError(f"the endpoint {text} {error}, or be {' or '.join(UPSTREAMS)}") from None


class RecordingProxy:
    """A proxy that forwards requests to one endpoint.

    `say` is called with a line for each problem with a connection or an address. Start and close the proxy on one event
    loop."""

    def __init__(
        self, upstream: str, observer: Observer, secrets: Secrets, on_message: Callable[[str], object]
    ) -> None:
        self._upstream = upstream
        self._parts = urlsplit(upstream)
        self._observer = observer
        self._secrets = secrets
        self._say = on_message
        self._hosts: set[str] = set()
        self._runner: web.ServerRunner | None = None
        self._session: aiohttp.ClientSession | None = None
        self._proxy: str | None = None
        self.passed = 0
        """Number of forwarded requests that belong to no conversation, such as listings of models."""

    async def start(self, listen: ListenAddress) -> str:
        """Start listening, and return the base URL that the program must use. Raises ListenError."""
        import aiohttp
        from aiohttp import web

        if listen.port and is_loopback(self._upstream) and self._parts.port == listen.port:
            raise ListenError(f"the endpoint {self._upstream} is the address of the proxy itself: name another port")
        try:
            self._proxy = proxy_for(self._upstream)
        except ValueError as error:
            raise ListenError(f"{error}: check HTTPS_PROXY and HTTP_PROXY") from None
        server = web.Server(self._handle, auto_decompress=False, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=_CLOSING_S)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, listen.host, listen.port).start()
        except OSError as error:
            await self._runner.cleanup()
            why = error.strerror or str(error)
            raise ListenError(f"cannot listen on {listen.host}:{listen.port}: {why}; name another port") from error
        port = self._runner.addresses[0][1]
        # Requests may have only these host names. `_refused` explains the reason.
        self._hosts = {f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]", _in_url(listen.host))}
        tls = await asyncio.to_thread(tls_context) if self._parts.scheme == "https" else True
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls),
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_S),
            # The program gets the bytes of the endpoint unchanged, even if they are compressed.
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            read_bufsize=2**20,
        )
        return f"http://{_in_url(listen.host)}:{port}{self._parts.path}"

    async def close(self) -> None:
        """Stop listening, and break off unfinished answers."""
        if self._runner is not None:
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        from aiohttp import web

        if (why := self._refused(request)) is not None:
            self._say(f"refused: {why}")
            return _plain(403, why)
        # Keys are registered before the body is read, because an error message could quote a part of the body.
        for name in _KEYS:
            key = request.headers.get(name, "").rpartition(" ")[2]
            if not is_plain_word(key):
                self._secrets.add("RECORDED_KEY", key)
        body = bytearray()
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                return _plain(413, MAX_BODY_BYTES.reached())
        # The model answers only requests with the method POST. Other methods list or delete stored answers.
        wire = wire_format_of(request.path) if request.method == "POST" else None
        step: Step | None = None
        if wire is not None:
            encoding = request.headers.get("content-encoding", "")
            step = self._observer.record_request(wire, bytes(body), encoding, self._upstream)
        else:
            self.passed += 1
        try:
            return await self._passed_on(request, bytes(body), step)
        except asyncio.CancelledError:
            self._fail(step, "the program or the proxy disconnected before the answer ended")
            raise
        except web.HTTPException:
            raise
        finally:
            self._fail(step, "the answer was not forwarded completely")

    async def _passed_on(self, request: web.BaseRequest, body: bytes, step: Step | None) -> web.StreamResponse:
        import aiohttp
        import yarl
        from aiohttp import web

        assert self._session is not None
        url = self._url(request.rel_url.raw_path_qs)
        try:
            upstream = await self._session.request(
                request.method,
                yarl.URL(url, encoded=True),
                data=body or None,
                headers=_sent_headers(request.headers),
                allow_redirects=False,
                proxy=self._proxy,
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            why = self._broken(error, has_begun=False)
            self._fail(step, why)
            self._say(why)
            return _plain(502, why)
        try:
            if upstream.status in (404, 405):
                base = f"the base URL that the program was given must end with {self._parts.path or 'the port'}"
                self._say(f"{upstream.status} for {request.method} {request.path}: {base}")
            answer = web.StreamResponse(status=upstream.status, reason=upstream.reason)
            for name, value in _kept(upstream.headers).items():
                answer.headers.add(name, value)
            if step is not None:
                head = upstream.headers
                step.reading.begin(
                    upstream.status, head.get("content-type", ""), head.get("content-encoding", "identity")
                )
            await answer.prepare(request)
            await self._body(request, upstream, answer, step)
            return answer
        finally:
            upstream.close()

    async def _body(
        self,
        request: web.BaseRequest,
        upstream: aiohttp.ClientResponse,
        answer: web.StreamResponse,
        step: Step | None,
    ) -> None:
        """Forward the body of an answer, and record its end.

        The end is recorded before the last bytes are forwarded, because the program may send its next request at
        once."""
        import aiohttp

        missing = upstream.content_length if request.method != "HEAD" else 0
        try:
            while chunk := await upstream.content.readany():
                if missing is not None:
                    missing -= len(chunk)
                if step is not None:
                    step.reading.feed(chunk)
                    if missing == 0:
                        step.reading.end()
                    self._observer.record_answer(step)
                try:
                    await answer.write(chunk)
                except ConnectionError:
                    self._fail(step, "the program disconnected in the middle of the answer")
                    return
            if step is not None:
                step.reading.end()
                self._observer.record_answer(step)
            await answer.write_eof()
        except (aiohttp.ClientError, OSError) as error:
            self._fail(step, self._broken(error, has_begun=True))
            if request.transport is not None:
                # The connection is closed. If the body ended properly, the program could not see that the answer broke
                # off.
                request.transport.close()

    def _fail(self, step: Step | None, reason: str) -> None:
        if step is not None:
            step.reading.fail(reason)
            self._observer.record_answer(step)

    def _url(self, path: str) -> str:
        base = self._parts.path
        if base and not (path == base or path.startswith((f"{base}/", f"{base}?"))):
            path = base + path
        return f"{self._parts.scheme}://{self._parts.netloc}{path}"

    def _refused(self, request: web.BaseRequest) -> str | None:
        """Return why a request is refused; `None` if it is accepted.

        Only this machine's own host names are accepted. Without this check, a web page could send requests here through
        a host name of its own that resolves to this machine."""
        host = request.headers.get("host", "").lower()
        if host not in self._hosts:
            return f"the Host {host or '(missing)'} is not this proxy: use {min(self._hosts)}"
        origin = request.headers.get("origin")
        if origin is not None and not is_loopback(origin):
            return f"the Origin {origin} is not on this machine"
        return None

    def _broken(self, error: Exception, *, has_begun: bool) -> str:
        spec = ModelSpec("upstream", "openai", "", self._upstream)
        broken = connection_failure(error, spec, has_begun=has_begun)
        sentence = broken.sentence if broken is not None else f"cannot be reached: {error}"
        return self._secrets.redact(f"{self._upstream} {sentence.replace('base_url', 'the endpoint')}")


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _kept(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """Return headers without those that apply to a single connection only (RFC 9110, section 7.6.1)."""
    named = set()
    for value in headers.getall("connection", []):
        for name in value.split(","):
            named.add(name.strip().lower())
    kept = headers.copy()
    for name in _OF_ONE_CONNECTION | named:
        kept.popall(name, None)
    return kept


def _sent_headers(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    kept = _kept(headers)
    # aiohttp sets these headers itself.
    for name in ("host", "content-length", "expect"):
        kept.popall(name, None)
    if (accepted := kept.popall("accept-encoding", None)) is not None:
        readable = []
        for value in accepted:
            for each in map(str.strip, value.split(",")):
                # An encoding may have a weight, as in `gzip;q=0.5`.
                if each.partition(";")[0].strip().lower() in READABLE_ENCODINGS:
                    readable.append(each)
        kept["accept-encoding"] = ", ".join(readable) or "identity"
    return kept


def _plain(status: int, reason: str) -> web.Response:
    from aiohttp import web

    error = {"type": "error", "error": {"type": "workbench_record", "message": f"workbench record: {reason}"}}
    return web.json_response(error, status=status)
