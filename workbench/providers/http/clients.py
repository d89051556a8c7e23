"""The vendors' SDK clients, one for each endpoint and key, made on first use and shielded from the environment.

The SDKs read variables and files of their own: base URLs, profiles, further headers, proxies. Of these only proxies
and, at the vendor's own address, further headers are let through; servers on this machine are reached without a proxy.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import ssl
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from workbench.config.models import OWN_URLS, ModelSpec, is_loopback
from workbench.providers.http.errors import EndpointErrors, Refused
from workbench.providers.http.transport import CONNECT_TIMEOUT_S
from workbench.version import __version__

if TYPE_CHECKING:
    import anthropic
    import httpx2
    import openai

KEEP_ALIVE_S = 30.0
LARGEST_ERROR_BYTES = 64 * 1024
ERROR_BODY_TIMEOUT_S = 5.0

ANTHROPIC_VERSION = "2026-10-21"
OLDER_ANTHROPIC_VERSION = "2023-06-01"


@dataclass(frozen=True)
class Client:
    """An SDK's client for one endpoint. `errors` are the exceptions that its use can raise."""

    sdk: openai.AsyncOpenAI | anthropic.AsyncAnthropic
    stream_class: Any
    headers: Mapping[str, Any] = field(repr=False)  # the key is in them
    errors: tuple[type[Exception], ...]

    async def post(self, path: str, body: bytes, read_timeout_s: float) -> httpx2.Response:
        """Send a request and return the unread response. Raises one of `errors`; a refusal is `Refused`, possibly
        wrapped."""
        import httpx2

        answer: httpx2.Response = await self.sdk.post(
            path,
            content=body,
            cast_to=httpx2.Response,
            options={"headers": self.headers, "timeout": _timeout(read_timeout_s)},
            stream=True,
            stream_cls=self.stream_class,
        )
        return answer

    async def get(self, path: str, read_timeout_s: float) -> bytes:
        """Returns the body at a path. Raises as `post`."""
        import httpx2

        answer = await self.sdk.get(
            path, cast_to=httpx2.Response, options={"headers": self.headers, "timeout": _timeout(read_timeout_s)}
        )
        return answer.content


class Clients:
    """The clients of a session. `starting` wraps the creation of each. Use it on one event loop."""

    def __init__(self, starting: Callable[[str], AbstractContextManager[None]] = lambda _what: nullcontext()) -> None:
        self._starting = starting
        self._clients: dict[tuple[str, str, str | None, bool], Client] = {}
        self._making = asyncio.Lock()
        self._tls: ssl.SSLContext | None = None

    async def client(self, spec: ModelSpec, key: str | None, errors: EndpointErrors) -> Client:
        """Returns the client for a model's endpoint. Raises ModelError when none can be made."""
        sdk = spec.provider.partition("-")[0]
        place = (sdk, spec.base_url, key, spec.legacy_auth)
        if place not in self._clients:
            async with self._making:
                if place not in self._clients:
                    with self._starting(f"model {spec.name}"):
                        self._clients[place] = await self._make(sdk, spec, key, errors)
        return self._clients[place]

    async def close(self) -> None:
        """Close all connections."""
        clients = tuple(self._clients.values())
        self._clients.clear()
        for client in clients:
            await client.sdk.close()

    async def _make(self, sdk: str, spec: ModelSpec, key: str | None, errors: EndpointErrors) -> Client:
        # Imports of a second and more, and reading certificates, must not delay other runs.
        module = await asyncio.to_thread(importlib.import_module, sdk)
        import anyio
        import httpx2

        for name in ("openai", "anthropic", "httpx2"):
            # OPENAI_LOG and ANTHROPIC_LOG would log whole requests.
            logging.getLogger(name).setLevel(logging.WARNING)
        try:
            if self._tls is None:
                self._tls = await asyncio.to_thread(httpx2.create_ssl_context)
            http = httpx2.AsyncClient(
                verify=self._tls,
                trust_env=not is_loopback(spec.base_url),
                limits=httpx2.Limits(max_keepalive_connections=None, keepalive_expiry=KEEP_ALIVE_S),
                event_hooks={"response": [_refuse_failures]},
            )
            client = _sdk_client(module, sdk, spec.base_url, key, http)
        except (ValueError, OSError, ImportError, httpx2.InvalidURL) as error:
            raise errors.of_settings(error) from error
        headers = _headers(module, client.default_headers, sdk, spec, key)
        vendor_error = module.OpenAIError if sdk == "openai" else module.AnthropicError
        http_errors = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, anyio.EndOfStream, OSError)
        return Client(client, module.AsyncStream, headers, (vendor_error, *http_errors, Refused))


def _sdk_client(module: Any, sdk: str, base_url: str, key: str | None, http: httpx2.AsyncClient) -> Any:
    # Always with a key: without one the SDKs would look for another in the environment.
    settings = {"base_url": base_url, "api_key": key or "none", "max_retries": 0, "http_client": http}
    if sdk == "anthropic":
        return module.AsyncAnthropic(**settings, open_telemetry=False)
    return module.AsyncOpenAI(**settings)


def _headers(
    module: Any, defaults: Mapping[str, object], sdk: str, spec: ModelSpec, key: str | None
) -> Mapping[str, Any]:
    """Returns the headers of each request. The SDK's description of this machine is left out, and so is, for endpoints
    other than its vendor's, what it took from the environment."""
    to_vendor = urlsplit(spec.base_url).hostname == urlsplit(OWN_URLS[spec.provider]).hostname
    headers: dict[str, Any] = {
        name.lower(): module.omit
        for name in (*defaults, "x-stainless-retry-count", "x-stainless-read-timeout", "x-stainless-timeout")
        if name.lower().startswith("x-stainless-") or not to_vendor
    }
    headers |= {
        "accept": "application/json",
        "accept-encoding": "identity",
        "authorization": f"Bearer {key}" if key else module.omit,
        "content-type": "application/json",
        "user-agent": f"toolcall-workbench/{__version__}",
    }
    if sdk == "anthropic":
        headers["anthropic-version"] = OLDER_ANTHROPIC_VERSION if spec.legacy_auth else ANTHROPIC_VERSION
        if spec.legacy_auth and key:
            headers["x-api-key"] = key
            headers["authorization"] = module.omit
    return headers


async def _refuse_failures(response: httpx2.Response) -> None:
    """Raise `Refused` for anything but success, with as much of the body as an error can need: the SDKs would read it
    to its end, however long that takes."""
    import httpx2

    if response.is_success:
        return
    body = bytearray()
    try:
        async with asyncio.timeout(ERROR_BODY_TIMEOUT_S):
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > LARGEST_ERROR_BYTES:
                    break
    except (TimeoutError, httpx2.HTTPError):
        pass  # the status is enough
    raise Refused(response.status_code, dict(response.headers), bytes(body[:LARGEST_ERROR_BYTES]))


def _timeout(read_timeout_s: float) -> httpx2.Timeout:
    import httpx2

    # The rate limiter counts requests, so no request ever waits for a place in the pool.
    return httpx2.Timeout(read_timeout_s, connect=CONNECT_TIMEOUT_S, pool=None)
