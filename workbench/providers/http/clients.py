"""Connections to endpoints: one pool for each pair of endpoint and credentials, created on first use.

Requests are sent with aiohttp, because the vendors' SDKs take several times the CPU for the same bytes. Only a vendor's
own address gets the headers that its SDK reads from the environment, such as organisation and project. Servers on this
machine are reached without a proxy."""

from __future__ import annotations

import asyncio
import importlib
import os
import ssl
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import field
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakSet

from workbench.config.models import OWN_URLS, ModelSpec
from workbench.config.request_settings import with_query
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.limits import MAX_ERROR_BYTES, MAX_HEADER_BYTES, MAX_LISTING_BYTES
from workbench.providers.clouds.credentials import CredentialStore
from workbench.providers.http.bodies import BodyError, content_of
from workbench.providers.http.errors import (
    CONNECT_TIMEOUT_S,
    EndpointErrors,
    HttpStatusError,
    TlsExpectedError,
    proxy_for,
    speaks_tls,
)
from workbench.providers.http.key_command import KeyCommand, KeyCommandError
from workbench.providers.model import ModelError
from workbench.providers.wire.messages import ANTHROPIC_VERSION
from workbench.version import __version__

if TYPE_CHECKING:
    import aiohttp
    import yarl

    from workbench.providers.clouds.signing import Signer

KEEP_ALIVE_S = 30.0
MAX_BUFFERED_BYTES = 32 * 1024
ERROR_BODY_TIMEOUT_S = 5.0
SIDE_REQUEST_TIMEOUT_S = 2.0

OLDER_ANTHROPIC_VERSION = "2023-06-01"

_SHOWN_HEADERS = ("accept", "accept-encoding", "anthropic-version", "content-type", "user-agent")
"""The headers whose values are shown. Others come from the environment or are the key, and may be secret."""

_KEY_HEADERS = ("authorization", "api-key", "x-api-key")
"""The headers by which clouds take a key."""

_VENDOR_HEADERS = {"openai": (("openai-organization", "OPENAI_ORG_ID"), ("openai-project", "OPENAI_PROJECT_ID"))}


@dataclass(frozen=True)
class RequestAccess:
    """The key, headers and query for requests to a model's endpoint, with variables filled in.

    `command` prints the key if there is no `key`. `variables` are environment variables with the credentials for a
    cloud."""

    key: str | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    command: KeyCommand | None = None
    variables: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(slots=True)
class _Connection:
    """The connection of a request. `was_reused` means that an earlier request used it too."""

    was_reused: bool = False


_connection: ContextVar[_Connection] = ContextVar("connection")
"""The connection of the request that the current task sends."""


@dataclass(eq=False)
class Client:
    """The connections to one endpoint.

    `errors` are the exceptions that the methods raise. `has_responded` means that the endpoint has answered a request,
    so TLS is configured correctly. `signer` prepares the requests if the endpoint is a cloud."""

    base_url: yarl.URL
    errors: tuple[type[Exception], ...]
    session: aiohttp.ClientSession = field(repr=False)  # it has the headers, including the key
    proxy: str | None = field(repr=False)  # it may contain a password
    access: RequestAccess = RequestAccess()
    key_header: str = "authorization"
    has_responded: bool = False
    signer: Signer | None = field(default=None, repr=False)

    async def post(self, path: str, body: bytes, read_timeout_s: float) -> aiohttp.ClientResponse:
        """Send a request, and return the response with its body unread.

        At a cloud, the signer chooses the path. Raises one of the client's `errors`, such as HttpStatusError for a
        status other than success. Raises ModelError for unusable credentials."""
        return await self._ask("POST", path, read_timeout_s, body)

    def headers_without_secrets(self, spec: ModelSpec) -> tuple[tuple[str, str], ...]:
        """Return the headers of every request of a model, without secrets.

        The key is shown as `$` and the name of its variable. The headers in the model's settings are shown as written
        there. Other values that may be secret are shown as `…`."""
        hidden: dict[str, str] = {}
        key_name = spec.api_key_env
        if self.access.command is not None:
            key_name = self.access.command.name
        headers: Mapping[str, str] = self.session.headers
        key_headers: tuple[str, ...] = (self.key_header,)
        if self.signer is not None:
            headers = self.signer.sample_request.headers
            key_headers = tuple(name for name in _KEY_HEADERS if name in headers)
        if key_name:
            for name in key_headers:
                hidden |= _with_key(name, f"${key_name}")
        hidden |= {name.lower(): value for name, value in spec.headers.items()}
        shown = {name.lower(): value for name, value in headers.items()}
        for name in shown:
            if name not in _SHOWN_HEADERS:
                shown[name] = "…"
        return tuple({**shown, **hidden}.items())

    async def get(self, path: str, read_timeout_s: float) -> bytes:
        """Return the body at a path.

        Raises the errors of `post`, and BodyError for a body that is too large."""
        async with await self._ask("GET", path, read_timeout_s) as response:
            body = bytearray()
            content = content_of(response)
            while chunk := await content.readany():
                body += chunk
                if len(body) > MAX_LISTING_BYTES:
                    raise BodyError(MAX_LISTING_BYTES.reached())
            return bytes(body)

    async def get_side_request(self, url: str) -> bytes:
        """Return the body at an address of the same server, within `SIDE_REQUEST_TIMEOUT_S`.

        Raises the errors of `post`, and TimeoutError."""
        import yarl

        # The request uses a separate connection. If a server does not know the address, the connection might be
        # unusable for the next request.

        async with (
            asyncio.timeout(SIDE_REQUEST_TIMEOUT_S),
            self.session.get(
                yarl.URL(url, encoded=True),
                headers={"connection": "close"},
                allow_redirects=False,
            ) as response,
        ):
            if response.status != 200:
                raise HttpStatusError(response.status, {}, b"")
            return await read_beginning(response, MAX_ERROR_BYTES)

    async def _ask(
        self, method: str, path: str, read_timeout_s: float, body: bytes | None = None
    ) -> aiohttp.ClientResponse:
        path = with_query(path, self.access.query)
        headers, key = {}, None
        if (command := self.access.command) is not None:
            key = await command.key()
            headers = _with_key(self.key_header, key)
        response = await self._response(method, path, read_timeout_s, body, headers)
        if command is not None and key is not None:
            # The key that a command printed may have expired, so a refused request is repeated once with a new key.
            if response.status == 401 and (renewed := await _renewed(command, key, response)) is not None:
                headers = _with_key(self.key_header, renewed)
                response = await self._response(method, path, read_timeout_s, body, headers)
            if response.status != 401:
                command.note_accepted()
        self.has_responded = True
        if not 200 <= response.status < 300:
            try:
                refused = await _refusal(response)
            finally:
                response.close()
            if self.signer is not None and body is not None:
                self.signer.renew_if_refused(refused.status, refused.body)
            raise refused
        return response

    async def _response(
        self, method: str, path: str, read_timeout_s: float, body: bytes | None, headers: Mapping[str, str]
    ) -> aiohttp.ClientResponse:
        """Send a request. If the server has closed a reused connection, send the request again."""
        import aiohttp

        # A server may close an idle connection just when the next request is sent on it. The request is then repeated
        # at once, until it is sent on a new connection.
        while True:
            connection = _Connection()
            _connection.set(connection)
            try:
                return await self._send(method, path, read_timeout_s, body, headers)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError) as error:
                if connection.was_reused:
                    continue
                if await self._expects_tls(error):
                    raise TlsExpectedError from error
                raise

    async def _expects_tls(self, error: Exception) -> bool:
        """Return whether the server broke off a connection because it expects TLS."""
        import aiohttp

        is_plain = self.base_url.scheme == "http" and self.proxy is None
        if not is_plain or self.has_responded or isinstance(error, aiohttp.ClientConnectorError):
            return False
        return await speaks_tls(self.base_url.host or "", self.base_url.port or 80)

    async def _send(
        self,
        method: str,
        path: str,
        read_timeout_s: float,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> aiohttp.ClientResponse:
        import yarl

        # aiohttp's read timeout begins only after the whole body is written. If the server reads nothing, a body that
        # is larger than the system's buffer is never written. So large bodies get a second timeout.
        is_large = body is not None and len(body) > MAX_BUFFERED_BYTES
        url = f"{self.base_url}{path}"
        if self.signer is not None and body is not None:
            # A repeated request gets a new signature here, because a signature is valid for only some minutes.
            url, headers = await self.signer.sign(body)
        async with asyncio.timeout(CONNECT_TIMEOUT_S + 2 * read_timeout_s) if is_large else nullcontext():
            return await self.session.request(
                method,
                yarl.URL(url, encoded=True),
                data=body,
                headers=headers,
                allow_redirects=False,
                proxy=self.proxy,
                # The pool is unlimited, because the rate limiter already limits requests.
                timeout=_timeout(read_timeout_s),
            )


@cache
def _timeout(read_timeout_s: float) -> aiohttp.ClientTimeout:
    import aiohttp

    return aiohttp.ClientTimeout(connect=CONNECT_TIMEOUT_S, sock_read=read_timeout_s)


class Clients:
    """The clients of a session, on one event loop.

    `starting` returns a context that is entered while a client is created. Fetched credentials of clouds are added to
    `secrets`."""

    def __init__(
        self,
        starting: Callable[[str], AbstractContextManager[object]] = lambda _what: nullcontext(),
        secrets: Secrets | None = None,
    ) -> None:
        self._starting = starting
        self._clients: dict[tuple[object, ...], Client] = {}
        self._making: dict[tuple[object, ...], asyncio.Lock] = {}
        self._tls: ssl.SSLContext | None = None
        self._credentials = CredentialStore(secrets or Secrets())

    async def client(self, spec: ModelSpec, access: RequestAccess, errors: EndpointErrors) -> Client:
        """Return the client for a model's endpoint. Models with the same endpoint and `access` share a client.

        Raises ModelError for invalid settings, and for credentials of a cloud that cannot be used."""
        place: tuple[object, ...] = (spec.provider, spec.base_url, access, spec.legacy_auth)
        if spec.cloud is not None:
            # At a cloud, each model has its own address.
            place = (*place, spec.cloud, spec.place, spec.model)
        client = self._clients.get(place)
        if client is not None:
            return client
        # Fetching credentials may take seconds. Models of other endpoints do not wait for it, because each client has
        # its own lock.
        async with self._making.setdefault(place, asyncio.Lock()):
            if place not in self._clients:
                with self._starting(f"model {spec.name}"):
                    self._clients[place] = await self._make(spec, access, errors)
        return self._clients[place]

    async def close(self) -> None:
        clients = tuple(self._clients.values())
        self._clients.clear()
        for client in clients:
            await client.session.close()

    async def _make(self, spec: ModelSpec, access: RequestAccess, errors: EndpointErrors) -> Client:
        # Importing takes up to a second. It runs in a thread, like reading the certificates, so that it does not delay
        # other runs.
        aiohttp: Any = await asyncio.to_thread(importlib.import_module, "aiohttp")
        import yarl

        signer: Signer | None = None
        if spec.cloud is not None:
            signer = await self._signer(spec, access, errors)
        try:
            proxy = proxy_for(spec.base_url)
            base_url = yarl.URL(spec.base_url.rstrip("/"), encoded=True)
            headers = _headers(spec, access)
            if _is_the_vendors(spec):
                headers = _vendor_headers(spec) | headers
            for name, value in headers.items():
                if not value.isprintable():
                    raise ValueError(f"the header {name} contains characters that no header can have")
            if base_url.scheme == "https" or (proxy or "").startswith("https:"):
                self._tls = self._tls or await asyncio.to_thread(tls_context)
        except (ValueError, OSError) as error:
            raise errors.of_settings(error) from error
        session = aiohttp.ClientSession(
            headers=headers,
            connector=_connector_class()(
                limit=0, keepalive_timeout=KEEP_ALIVE_S, ssl=self._tls or True, resolver=aiohttp.ThreadedResolver()
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
        )
        raised = (aiohttp.ClientError, OSError, HttpStatusError)
        return Client(base_url, raised, session, proxy, access, spec.key_header, signer=signer)

    async def _signer(self, spec: ModelSpec, access: RequestAccess, errors: EndpointErrors) -> Signer:
        from workbench.providers.clouds.connect import signer_of  # imported here: few models are at clouds

        key = None
        if access.command is not None:
            key = access.command.key
        elif access.key is not None:
            key = partial(_known, access.key)
        try:
            return await signer_of(
                spec, key, dict(access.variables), self._credentials, headers=access.headers, query=access.query
            )
        except KeyCommandError:
            raise
        except ModelError as error:
            raise errors.of_reading(error) from error


async def _known(key: str) -> str:
    return key


async def _renewed(command: KeyCommand, refused_key: str, response: aiohttp.ClientResponse) -> str | None:
    """Return a key in place of a refused key; `None` if the command may not run again yet.

    `response` is the error response. It is closed if a key is returned. Otherwise, the caller still needs it."""
    try:
        renewed = await command.renewed_key(refused_key)
    except BaseException:
        response.close()
        raise
    if renewed is not None:
        response.close()
    return renewed


def _with_key(header: str, key: str) -> dict[str, str]:
    if header == "authorization":
        key = f"Bearer {key}"
    return {header: key}


@cache
def _connector_class() -> type[aiohttp.TCPConnector]:
    import aiohttp

    class Connector(aiohttp.TCPConnector):
        # This class notes reused connections. aiohttp's own tracing would take several times as long in each request.

        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self._used: WeakSet[object] = WeakSet()

        async def connect(self, *request: Any, **settings: Any) -> Any:
            connection = await super().connect(*request, **settings)
            if (current := _connection.get(None)) is not None:
                current.was_reused = connection.protocol in self._used
            self._used.add(connection.protocol)
            return connection

    return Connector


def _is_the_vendors(spec: ModelSpec) -> bool:
    own = OWN_URLS.get(spec.provider)
    return own is not None and urlsplit(spec.base_url).hostname == urlsplit(own).hostname


def _vendor_headers(spec: ModelSpec) -> dict[str, str]:
    vendor = spec.provider.partition("-")[0]
    headers = {}
    for header, variable in _VENDOR_HEADERS.get(vendor, ()):
        headers[header] = os.environ.get(variable, "")
    for line in os.environ.get(f"{vendor.upper()}_CUSTOM_HEADERS", "").split("\n"):
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    # A key in these variables is not sent, because only the model's own key is registered as a secret.
    return {name: value for name, value in headers.items() if value and name not in ("authorization", "x-api-key")}


def _headers(spec: ModelSpec, access: RequestAccess) -> dict[str, str]:
    headers = {
        "accept": "application/json",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "user-agent": f"toolcall-workbench/{__version__}",
    }
    if spec.provider == "anthropic":
        headers["anthropic-version"] = OLDER_ANTHROPIC_VERSION if spec.legacy_auth else ANTHROPIC_VERSION
    # For a cloud, the SDK adds the key to the requests that it signs. Other requests to the cloud need no key.
    if access.key and spec.cloud is None:
        headers |= _with_key(spec.key_header, access.key)
    return headers | dict(access.headers)


def tls_context() -> ssl.SSLContext:
    """Return a TLS context that trusts the system's certificate authorities.

    If SSL_CERT_FILE or SSL_CERT_DIR is set, the context trusts the authorities in that file or folder instead. Raises
    ValueError if that file cannot be read."""
    import httpx2

    try:
        context = httpx2.create_ssl_context()
    except OSError as error:
        # Python's error does not name the file.
        file = os.environ.get("SSL_CERT_FILE")
        if file:
            raise ValueError(f"SSL_CERT_FILE is {file}: {error.strerror or error}") from error
        raise ValueError(str(error)) from error
    context.set_alpn_protocols(["http/1.1"])
    return context


async def read_beginning(response: aiohttp.ClientResponse, min_bytes: int) -> bytes:
    """Return the beginning of a response's body, undecoded: at least `min_bytes` bytes, if the body is that long."""
    body = bytearray()
    while len(body) <= min_bytes and (chunk := await response.content.readany()):
        body += chunk
    return bytes(body)


async def _refusal(response: aiohttp.ClientResponse) -> HttpStatusError:
    import aiohttp

    body = bytearray()
    try:
        async with asyncio.timeout(ERROR_BODY_TIMEOUT_S):
            content = content_of(response)
            while len(body) <= MAX_ERROR_BYTES and (chunk := await content.readany()):
                body += chunk
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass  # the status without a body is enough for an error
    headers = {name.lower(): value for name, value in response.headers.items()}
    return HttpStatusError(response.status, headers, bytes(body[:MAX_ERROR_BYTES]))
