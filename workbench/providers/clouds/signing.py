"""Requests that a vendor's SDK prepares (address, credentials, signature). They are sent like all other requests.

The SDK is given a transport that sends nothing. So connections, proxies, limits, streams and errors are the same as for
other endpoints, and broken JSON in an answer stays unchanged."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from workbench.dataclasses import dataclass
from workbench.providers.clouds.credentials import KeySource, RenewableCredentials
from workbench.providers.model import ModelError
from workbench.version import __version__

if TYPE_CHECKING:
    import httpx2

_NOISY_LOGGERS = (
    *("anthropic", "openai", "httpx2", "httpcore2", "boto3", "botocore", "s3transfer", "urllib3"),
    *("google.auth", "azure", "msal"),
)
"""Libraries that log requests with bodies or headers, or print warnings for each source of credentials."""

_OWN_HEADERS = {
    "accept": "application/json",
    "accept-encoding": "identity",
    "content-type": "application/json",
    "user-agent": f"toolcall-workbench/{__version__}",
}
_SDK_HEADERS = (
    *("x-stainless-arch", "x-stainless-async", "x-stainless-lang", "x-stainless-os", "x-stainless-package-version"),
    *("x-stainless-read-timeout", "x-stainless-retry-count", "x-stainless-runtime", "x-stainless-runtime-version"),
    "x-stainless-timeout",
)
_INVALID = (b"expired", b"security token", b"signature")
"""AWS refuses credentials and models with status 403. These words mark a refusal of credentials."""
_OF_CONNECTION = ("connection", "content-length")


class SignedRequest(NamedTuple):
    """A request that is ready to be sent: its address with the query, and all headers."""

    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Sdk:
    """A client of a vendor's SDK, made with `capturing_client`.

    `path` is the path of the vendor's API, such as `/v1/messages`; the SDK turns it into the cloud's path. `renew`
    gives the client valid credentials. `omit` is the SDK's marker for a header that is not sent. `errors` are the SDK's
    exceptions. `credentials` are the fetched credentials, if any."""

    client: Any
    path: str
    renew: Callable[[], Awaitable[None]]
    omit: object
    errors: tuple[type[Exception], ...]
    credentials: RenewableCredentials[Any] | None = None


class Bearer:
    """A key or a token that an SDK reads by a call.

    Only `renew` fetches a key. The call does not, because an SDK would replace the errors of fetching by its own
    errors."""

    def __init__(self, key: KeySource) -> None:
        self._key = key
        self.value = ""

    async def renew(self) -> None:
        self.value = await self._key()

    async def __call__(self) -> str:
        return self.value


def capturing_client() -> httpx2.AsyncClient:
    """Return an HTTP client for an SDK that sends nothing.

    It answers each request with status 204."""
    import httpx2

    class Capture(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            await request.aread()
            return httpx2.Response(204, request=request)

    client = httpx2.AsyncClient(transport=Capture(), trust_env=False, follow_redirects=False)
    # This header would be signed, but the connection here sends another value.
    del client.headers["connection"]
    return client


def silence_sdks() -> None:
    """Stop the libraries of the clouds from logging requests and printing warnings."""
    # Variables such as OPENAI_LOG turn on logs of whole requests when an SDK is imported.
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module=r"google\.auth")


class Signer:
    """Makes the requests of one model at a cloud.

    Every request needs a new signature: a signature covers one body and is valid for minutes."""

    def __init__(self, sdk: Sdk, name: str, base_url: str, headers: Mapping[str, str]) -> None:
        self._sdk = sdk
        self._name = name
        self._base_url = base_url
        self._headers: dict[str, object] = {**_OWN_HEADERS, **dict.fromkeys(_SDK_HEADERS, sdk.omit), **headers}
        self._made: SignedRequest | None = None
        self._errors: tuple[type[Exception], ...] = (*sdk.errors, ValueError, TypeError, RuntimeError)
        # The variables OPENAI_CUSTOM_HEADERS, ANTHROPIC_CUSTOM_HEADERS, OPENAI_ORG_ID and OPENAI_PROJECT_ID would add
        # headers, even other credentials. No argument of the SDKs turns that off.
        sdk.client._custom_headers = self._headers
        for of_openai in ("organization", "project"):
            if hasattr(sdk.client, of_openai):
                setattr(sdk.client, of_openai, None)

    async def start(self, model: str, query: Mapping[str, str]) -> None:
        """Find the address of the model.

        Raises ModelError if the credentials or the address cannot be used."""
        # The SDKs derive the cloud's path from a small document with model and stream. Real bodies are JSON already,
        # and are signed as bytes.
        document = {"model": model, "stream": True, "max_tokens": 1, "messages": []}
        self._made = await self._make(self._sdk.path, query, body=document)

    @property
    def sample_request(self) -> SignedRequest:
        """A request without a conversation. It was prepared when the signer started."""
        assert self._made is not None
        return self._made

    async def sign(self, body: bytes) -> SignedRequest:
        """Return the request with a body.

        Raises ModelError as `start` does."""
        return await self._make(self.sample_request.url, {}, content=body)

    def renew_if_refused(self, status: int, body: bytes) -> None:
        """Fetch new credentials for the next request if the cloud has refused the present ones."""
        lowered = body.lower()
        if self._sdk.credentials is not None and (status == 401 or any(words in lowered for words in _INVALID)):
            self._sdk.credentials.forget()

    async def _make(self, path: str, query: Mapping[str, str], **body: object) -> SignedRequest:
        import httpx2

        await self._sdk.renew()
        options: dict[str, object] = {"headers": self._headers, "params": query, "max_retries": 0}
        try:
            response = await self._sdk.client.post(path, cast_to=httpx2.Response, options=options, **body)
        except self._errors as error:
            raise ModelError(f"cannot send requests to {self._name}: {error}") from error
        request = response.request
        if _origin(str(request.url)) != _origin(self._base_url):
            raise ModelError(f"a request to {self._name} was not sent: its address would differ from {self._base_url}")
        headers = {name: value for name, value in request.headers.items() if name not in _OF_CONNECTION}
        return SignedRequest(str(request.url), headers)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
