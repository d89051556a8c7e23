"""Requests to clouds: the vendor's SDK prepares and signs them, and the program sends them like all other requests.

The SDK gets a transport that sends nothing. So connections, proxies, limits, streams and errors are the same as for
other endpoints, and broken JSON in an answer reaches the repairs unchanged."""

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
    """The address of a request, with its query, and all its headers, including the signature."""

    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Sdk:
    """A client of a vendor's SDK, made with `capturing_client`.

    `path` is a path of the vendor's own API, such as `/v1/messages`; the SDK converts it to the cloud's path. `renew`
    gives the client valid credentials. `omit` is the SDK's value for a header that it must not send. `errors` are the
    SDK's exceptions. `credentials` are `None` if the user gave a key."""

    client: Any
    path: str
    renew: Callable[[], Awaitable[None]]
    omit: object
    errors: tuple[type[Exception], ...]
    credentials: RenewableCredentials[Any] | None = None


class Bearer:
    """A key or a token that an SDK gets by calling this object.

    `renew` fetches the key beforehand. If the call itself fetched the key, the SDK would replace the error of a failed
    fetch by its own error."""

    def __init__(self, key: KeySource) -> None:
        self._key = key
        self.value = ""

    async def renew(self) -> None:
        self.value = await self._key()

    async def __call__(self) -> str:
        return self.value


def capturing_client() -> httpx2.AsyncClient:
    """Return an HTTP client that sends nothing, so that an SDK only prepares its requests.

    Every request gets the response 204."""
    import httpx2

    class Capture(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            await request.aread()
            return httpx2.Response(204, request=request)

    client = httpx2.AsyncClient(transport=Capture(), trust_env=False, follow_redirects=False)
    # This header would be signed, but the connection that sends the request sets another value.
    del client.headers["connection"]
    return client


def silence_sdks() -> None:
    """Stop the libraries of the clouds from logging requests and printing warnings."""
    # Environment variables such as OPENAI_LOG turn on logs of whole requests when an SDK is imported.
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module=r"google\.auth")


class Signer:
    """Prepares the requests of one model at a cloud.

    Every request gets its own signature, which covers the request's body and is valid for some minutes."""

    def __init__(self, sdk: Sdk, name: str, base_url: str, headers: Mapping[str, str]) -> None:
        self._sdk = sdk
        self._name = name
        self._base_url = base_url
        self._headers: dict[str, object] = {**_OWN_HEADERS, **dict.fromkeys(_SDK_HEADERS, sdk.omit), **headers}
        self._made: SignedRequest | None = None
        self._errors: tuple[type[Exception], ...] = (*sdk.errors, ValueError, TypeError, RuntimeError)
        # The variables OPENAI_CUSTOM_HEADERS, ANTHROPIC_CUSTOM_HEADERS, OPENAI_ORG_ID and OPENAI_PROJECT_ID would add
        # headers, even other credentials. No argument of the SDKs prevents this.
        sdk.client._custom_headers = self._headers
        for of_openai in ("organization", "project"):
            if hasattr(sdk.client, of_openai):
                setattr(sdk.client, of_openai, None)

    async def start(self, model: str, query: Mapping[str, str]) -> None:
        """Let the SDK find the model's address, by preparing `sample_request`.

        Raises ModelError if the credentials or the address cannot be used."""
        # The SDKs derive the cloud's path from the fields `model` and `stream`, so this request has a small document.
        # Real bodies are JSON text already, and are signed as bytes.
        document = {"model": model, "stream": True, "max_tokens": 1, "messages": []}
        self._made = await self._make(self._sdk.path, query, body=document)

    @property
    def sample_request(self) -> SignedRequest:
        """The request that `start` prepared.

        It has the address and the headers of all requests, but no conversation."""
        assert self._made is not None
        return self._made

    async def sign(self, body: bytes) -> SignedRequest:
        """Return the address and the headers for a request with this body.

        Raises ModelError as `start` does."""
        return await self._make(self.sample_request.url, {}, content=body)

    def renew_if_refused(self, status: int, body: bytes) -> None:
        """Discard the credentials if a response shows that the cloud refuses them.

        The next request then fetches new credentials."""
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
