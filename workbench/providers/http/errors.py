"""Converts each failure of an endpoint to an error with one sentence: the address, the failure and the remedy."""

from __future__ import annotations

import asyncio
import math
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from workbench.config.models import ModelSpec, is_loopback
from workbench.config.request_settings import variables_of
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.numerals import seconds_text
from workbench.providers.clouds.refusals import refusal_of
from workbench.providers.http.bodies import BodyError
from workbench.providers.model import ModelError
from workbench.providers.wire.errors import MAX_QUOTE_CHARS, error_text, quoted

RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})
"""Statuses below 500 for which a retry may succeed."""
TLS_REQUIRED_TEXTS = ("plain http request was sent to https", "http request to an https server")
"""Texts of web servers that expect TLS, in answers to a request without TLS."""
MEDIA_REFUSAL = re.compile(r"image|vision|visual|audio|modal|content.{0,40}\bstring\b", re.IGNORECASE)
"""Words of a refusal of images or sounds. Servers of text models also complain that the content is a list."""
MEDIA_STATUSES = frozenset({400, 404, 415, 422, 500, 501})
"""Statuses with which endpoints refuse images or sounds: llama.cpp sends 500, and OpenRouter sends 404."""
QUOTA_CODES = ("insufficient_quota", "billing_hard_limit", "billing_not_active")
"""Codes with status 429 for which waiting does not help."""


@dataclass(frozen=True)
class Refusal:
    """A response of an endpoint with a status other than success.

    `text` is the endpoint's message, shortened and without secrets. `body` is searched for error codes. `location` is
    the address of a redirect. `tool` is the tool that the response is about. `path` is the path of the request, and
    `has_media` is true if the request had images or sounds."""

    status: int
    text: str
    body: str
    path: str
    location: str = ""
    tool: str | None = None
    has_media: bool = False

    @property
    def status_and_text(self) -> str:
        """The status and the text, in parentheses."""
        if self.text:
            return f"({self.status}: {self.text})"
        return f"({self.status})"

    def is_retryable(self, headers: Mapping[str, str]) -> bool:
        """Return whether the same request may succeed later."""
        # The endpoint's own statement takes precedence over the status. OpenAI and Anthropic send this header.
        header = headers.get("x-should-retry", "").lower()
        if header in ("true", "false"):
            return header == "true"
        if self.status == 429 and any(code in self.body for code in QUOTA_CODES):
            return False
        return self.status in RETRYABLE_STATUSES or (self.status >= 500 and self.status not in (501, 505))

    def sentence(self, spec: ModelSpec) -> str:
        """Return the failure and its remedy as text.

        Messages begin with the endpoint's address, followed by this text."""
        why = self.status_and_text
        if self.has_media and self._is_about_media(spec):
            kinds = "images = false" if not spec.audio else "images = false or audio = false"
            return (
                f"does not accept the media in the messages {why}: set {kinds} for the model, or choose another model"
            )
        match self.status:
            case 401 | 403 if spec.key_command:
                return f"does not accept the key that {spec.command_text} prints {why}: run that command in a shell"
            case 401 | 403 if spec.has_key_header:
                return f"does not accept the header {spec.key_header} {why}: correct its variables"
            case 401 | 403 if spec.api_key_env is None and (names := variables_of(spec.headers)):
                return (
                    f"does not accept the headers with {', '.join(names)} {why}: correct the variables, or name a key"
                )
            case 401 | 403 if spec.api_key_env is None:
                return f"requires a key {why}: name the variable that holds it as api_key_env"
            case 401 | 403:
                return f"does not accept the key in {spec.api_key_env} {why}: correct the variable"
            case 402:
                return f"requires payment {why}: check the account of the key"
            case 404 | 405:
                return self._not_found(spec)
            case 413 if self.has_media:
                return f"rejects the request as too large {why}: use smaller images, or shorten the case"
            case 413:
                return f"rejects the request as too large {why}: shorten the case or offer fewer tools"
            case 400 | 422 if self.tool is not None:
                return f"does not accept the tool {self.tool} {why}: correct the schema of its parameters"
            # Web servers answer with this status if a request without TLS arrives at a port for TLS.
            case 400 if any(words in self.body.lower() for words in TLS_REQUIRED_TEXTS):
                return f"expects TLS {why}: write https:// in base_url"
            case 400 | 422:
                return f"does not accept the request {why}: check the model's params and the suite's tools"
            case 429 if not self.is_retryable({}):
                return f"has no quota left for the account {why}: check the account of the key"
            case 429:
                return f"asks for fewer requests {why}: lower concurrency or requests_per_minute of the model"
            case 503 | 529:
                return f"is overloaded {why}: try again later"
            case status if 300 <= status < 400:
                where = f" to {self.location}" if self.location else ""
                return f"redirects{where} ({status}), and keys are not sent along: correct base_url"
            case status if status >= 500:
                return f"failed {why}: try again later, or check the server's log"
        return f"refuses the request {why}: check base_url and the model's settings"

    def _is_about_media(self, spec: ModelSpec) -> bool:
        """Return whether the endpoint refuses images or sounds in general.

        Returns False if the endpoint may refuse only the size of images or sounds, or another part of the request."""
        if self.status not in MEDIA_STATUSES or self.tool is not None:
            return False
        # Leave out the model's name, because names of models that generate images contain such words.
        text = re.sub(rf"(?<!\w){re.escape(spec.model)}(?!\w)", "", self.body)
        return MEDIA_REFUSAL.search(text) is not None

    def _not_found(self, spec: ModelSpec) -> str:
        named = re.search(rf"(?<!\w){re.escape(spec.model)}(?!\w)", self.text)
        if named or "model_not_found" in self.body:
            return f"has no model {spec.model!r} {self.status_and_text}: correct its name, or load it on the server"
        hint = base_url_hint(spec)
        return f"has no {self.path} {self.status_and_text}: " + (hint or "correct base_url or provider")


def base_url_hint(spec: ModelSpec) -> str | None:
    """Return a question that suggests the base URL with `/v1`; `None` if the URL has `/v1` or needs none."""
    if spec.api == "messages" or spec.cloud is not None or "/v1" in urlsplit(spec.base_url).path:
        return None
    return f"did you mean {shown_url(spec.base_url).rstrip('/')}/v1 as base_url?"


def shown_url(url: str) -> str:
    """Return an address without its user name, password and query, because these may be secret."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "the endpoint"
    if not host:
        return parts.path
    return f"{parts.scheme}://{host}{parts.path}"


def requested_wait_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """Return the seconds that the headers of a response ask to wait; `None` if they do not ask for a wait.

    The headers are `retry-after-ms`, and `retry-after` in seconds or as a date. `now_s` is the time since 1970."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait_s = float(headers[name]) * unit_s
        except (KeyError, ValueError):
            continue
        if math.isfinite(wait_s):
            return max(wait_s, 0.0)
    try:
        until_s = parsedate_to_datetime(headers["retry-after"]).timestamp()
    except (KeyError, ValueError, OverflowError):
        return None
    # Use the time in the response if possible, because the server's clock may differ from the clock here.
    with suppress(KeyError, ValueError, OverflowError):
        now_s = parsedate_to_datetime(headers["date"]).timestamp()
    return max(until_s - now_s, 0.0)


CONNECT_TIMEOUT_S = 10.0
TLS_PROBE_TIMEOUT_S = 2.0
_NOT_IN_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""OpenSSL's reasons for an answer that is not TLS."""


class TlsExpectedError(ConnectionError):
    """A server closed a connection without TLS because it expects TLS."""


async def speaks_tls(host: str, port: int) -> bool:
    """Return whether a server answers the beginning of a TLS handshake. Its certificate is not checked."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(TLS_PROBE_TIMEOUT_S):
            _, connection = await asyncio.open_connection(host, port, ssl=context)
            connection.close()
    except ssl.SSLError as error:
        # Any other reason is an alert of TLS, such as an unsupported version. An alert proves that the server speaks
        # TLS.
        return bool(error.reason) and error.reason not in _NOT_IN_TLS and "EOF" not in error.reason
    except (OSError, TimeoutError):
        return False
    return True


def proxy_for(base_url: str) -> str | None:
    """Return the address of the proxy that the environment names for an endpoint; `None` without one.

    Raises ValueError for an unusable proxy. The message does not contain the proxy's password."""
    parts = urlsplit(base_url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or is_loopback(base_url) or proxy_bypass(parts.netloc):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    found = urlsplit(proxy)
    if found.scheme not in ("http", "https") or not found.hostname:
        raise ValueError(
            f"the proxy {shown_proxy(proxy)} cannot be used: its address must begin with http:// or https://"
        )
    return proxy


def shown_proxy(proxy: str) -> str:
    """Return the address of a proxy without its user name and password."""
    scheme, _, rest = proxy.rpartition("://")
    host = rest.rpartition("@")[2].rstrip("/")
    if scheme in ("", "http"):
        return host
    return f"{scheme}://{host}"


_CERTIFICATE_PROBLEMS = {
    10: ("has expired", "renew it on the server"),
    18: ("is self-signed, which this machine does not trust", "put it into a file and name that in SSL_CERT_FILE"),
    62: ("is for another host", "write the host that it is for in base_url"),
    64: ("is for another host", "write the host that it is for in base_url"),
}
"""The problem of a certificate and its remedy, by the error number of OpenSSL."""
_UNTRUSTED = ("is not from an authority that this machine trusts", "name its authority's file in SSL_CERT_FILE")


@dataclass(frozen=True)
class ConnectionFailure:
    """A failure of the connection, and whether a retry may help.

    `sentence` says what failed. Messages begin with the endpoint's address, followed by this sentence."""

    sentence: str
    retryable: bool = False


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and all its causes, the outermost first."""
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting:
        cause = waiting.pop()
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            waiting += cause.exceptions
        waiting += [inner for inner in (cause.__context__, cause.__cause__) if inner is not None]


def connection_failure(error: BaseException, spec: ModelSpec, *, has_begun: bool) -> ConnectionFailure | None:
    """Return the connection failure that caused an exception; `None` for any other exception.

    `has_begun` means that the response had begun, at least with its headers."""
    causes = tuple(causes_of(error))
    proxy = proxy_for(spec.base_url)
    if proxy is not None and (problem := _with_proxy(causes)):
        way_out = "check HTTPS_PROXY, HTTP_PROXY and NO_PROXY"
        return ConnectionFailure(f"cannot be reached: its proxy {shown_proxy(proxy)} {problem}: {way_out}")
    for found in (_before_connecting(causes), _timed_out(causes, spec), _broken_off(causes, has_begun)):
        if found is not None:
            return found
    return None


def _with_proxy(causes: tuple[BaseException, ...]) -> str | None:
    # Every connection goes to the proxy first, so a failure to connect is the proxy's.
    import aiohttp

    for cause in causes:
        match cause:
            case ConnectionRefusedError():
                return "refuses connections"
            case socket.gaierror():
                return "has an unknown host name"
            case aiohttp.ConnectionTimeoutError():
                return f"accepts no connection within {seconds_text(CONNECT_TIMEOUT_S)}"
            case aiohttp.ClientHttpProxyError():
                return f"refuses to forward the request ({cause.status} {cause.message})"
    return None


def _before_connecting(causes: tuple[BaseException, ...]) -> ConnectionFailure | None:
    import aiohttp

    for cause in causes:
        match cause:
            case aiohttp.ClientConnectorError():
                continue  # the next cause is the system's error, which says more
            case ssl.SSLCertVerificationError():
                problem, way_out = _CERTIFICATE_PROBLEMS.get(cause.verify_code, _UNTRUSTED)
                return ConnectionFailure(f"shows a certificate that {problem}: {way_out}")
            case ssl.SSLError() if cause.reason in _NOT_IN_TLS:
                return ConnectionFailure("does not speak TLS: write http:// in base_url")
            case ssl.SSLError() if cause.reason and "EOF" not in cause.reason:
                return ConnectionFailure(f"cannot agree on TLS ({cause.reason}): check the server's TLS settings")
            case socket.gaierror():
                return ConnectionFailure("has an unknown host name: correct base_url, or check the network")
            case ConnectionRefusedError():
                return ConnectionFailure("refuses connections: start the server, or correct base_url")
            case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
                return ConnectionFailure(
                    "is not a valid address: base_url must begin with http:// or https:// and a host"
                )
    return None


def _timed_out(causes: tuple[BaseException, ...], spec: ModelSpec) -> ConnectionFailure | None:
    import aiohttp

    for cause in causes:
        match cause:
            case aiohttp.ConnectionTimeoutError():
                return ConnectionFailure(
                    f"accepts no connection within {seconds_text(CONNECT_TIMEOUT_S)}: check base_url and the network"
                )
            case TimeoutError():
                way_out = "raise read_timeout_s of the model, or check the server"
                return ConnectionFailure(f"was silent for {seconds_text(spec.read_timeout_s)}: {way_out}")
    return None


def _broken_off(causes: tuple[BaseException, ...], has_begun: bool) -> ConnectionFailure | None:
    import aiohttp
    from aiohttp import http_exceptions

    when = "in the middle of its answer" if has_begun else "before it answered"
    if any(isinstance(cause, TlsExpectedError) or _is_in_tls(cause) for cause in causes):
        return ConnectionFailure("expects TLS: write https:// in base_url")
    # The innermost cause is the most precise: for example, the body of a seemingly incomplete answer may not be gzip at
    # all.
    for cause in reversed(causes):
        match cause:
            case BodyError():
                return ConnectionFailure(cause.sentence, retryable=cause.retryable)
            case http_exceptions.HttpProcessingError() if not _is_incomplete(cause):
                return ConnectionFailure("does not answer in HTTP: correct base_url, or check the server")
    for cause in causes:
        match cause:
            case aiohttp.ClientConnectorError():
                return ConnectionFailure("cannot be reached: check base_url and the network")
            case aiohttp.ClientError() | OSError():
                return ConnectionFailure(f"closed the connection {when}", retryable=True)
    return None


def _is_in_tls(error: BaseException) -> bool:
    from aiohttp import http_exceptions

    # 0x15 is the type of an alert record, 0x03 the major version (RFC 8446, section 5.1).
    return isinstance(error, http_exceptions.BadStatusLine) and r"b'\x15\x03" in error.message


def _is_incomplete(error: BaseException) -> bool:
    from aiohttp import http_exceptions

    return isinstance(error, http_exceptions.PayloadEncodingError) and "Not enough data" in str(error)


class HttpStatusError(Exception):
    """A response with a status other than success.

    It has the status, the headers with names in lower case, and the beginning of the body."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.headers = headers
        self.body = body


@dataclass(frozen=True)
class EndpointErrors:
    """Makes the errors of one model's endpoint. `now` returns seconds since 1970, for dates in headers."""

    spec: ModelSpec
    secrets: Secrets
    now: Callable[[], float] = time.time

    def error(self, sentence: str, *, retryable: bool = False, retry_after_s: float | None = None) -> ModelError:
        """Return an error whose message is the endpoint's address followed by `sentence`."""
        return ModelError(
            f"{shown_url(self.spec.base_url)} {sentence}", retryable=retryable, retry_after_s=retry_after_s
        )

    def of_reading(self, error: ModelError) -> ModelError:
        """Add the endpoint's address to the message of an error that reading an answer raised."""
        place = shown_url(self.spec.base_url)
        text = self.quoted(str(error), 2 * MAX_QUOTE_CHARS)
        sentence = text if place in text else f"{text} ({place})"
        return ModelError(sentence, retryable=error.retryable, retry_after_s=error.retry_after_s)

    def of_exception(
        self,
        error: Exception,
        *,
        path: str,
        has_begun: bool = False,
        tool_at: Callable[[str], str | None] = lambda _: None,
        has_media: bool = False,
    ) -> ModelError:
        """Convert an exception of the HTTP library to a ModelError.

        `path` is the path of the request. `has_begun` means that the response had begun, at least with its headers.
        `tool_at` returns the tool that the text of an error is about. `has_media` means that the request has images or
        sounds."""
        for cause in causes_of(error):
            if isinstance(cause, HttpStatusError):
                return self._of_refusal(cause, path, tool_at, has_media)
        broken = connection_failure(error, self.spec, has_begun=has_begun)
        if broken is not None:
            return self.error(self.quoted(broken.sentence), retryable=broken.retryable)
        return self.error(f"cannot be reached: {self.quoted(f'{type(error).__name__}: {error}')}")

    def of_page(self, body: bytes) -> ModelError:
        """Return the error for a web page that arrived in place of an answer."""
        words = refusal_message(body)
        hint = base_url_hint(self.spec) or "correct base_url"
        return self.error(f"answers with a web page ({self.quoted(words)}), not with a model's answer: {hint}")

    def of_unknown_body(self, body: bytes) -> ModelError:
        """Return the error for a body that is neither a stream of events nor JSON."""
        # Bytes that are not text were probably damaged during transmission, so a retry may help.
        text = body.decode("utf-8", "replace")
        sentence = f"answers with something that is not a model's answer ({self.quoted(text, 80)})"
        return self.error(f"{sentence}: correct base_url or provider", retryable="\0" in text or "\ufffd" in text)

    def of_cut_document(self) -> ModelError:
        """Return the error for a JSON document whose end is missing."""
        return self.error("sent only the beginning of its answer: check the server or its proxy", retryable=True)

    def of_settings(self, error: Exception) -> ModelError:
        """Return the error for model settings with which no request can be made."""
        way_out = "check base_url, the proxy variables and SSL_CERT_FILE"
        return self.error(f"cannot be reached: {self.quoted(str(error))}; {way_out}")

    def of_empty_body(self) -> ModelError:
        """Return the error for a successful response without a body."""
        return self.error("answers with nothing: check the server's log", retryable=True)

    def quoted(self, text: str, longest: int = MAX_QUOTE_CHARS) -> str:
        """Shorten a text from an endpoint to one line, and remove secrets from it."""
        return quoted(text, self.secrets, longest)

    def _of_refusal(
        self, refused: HttpStatusError, path: str, tool_at: Callable[[str], str | None], has_media: bool
    ) -> ModelError:
        words = refusal_message(refused.body)
        tool: str | None = None
        if refused.status in (400, 422):
            tool = tool_at(words)
        refusal = Refusal(
            status=refused.status,
            text=self.quoted(words),
            body=refused.body.decode("utf-8", "replace"),
            path=path,
            location=self.quoted(shown_url(refused.headers.get("location", ""))),
            tool=tool,
            has_media=has_media,
        )
        sentence, retryable = refusal.sentence(self.spec), refusal.is_retryable(refused.headers)
        of_cloud = refusal_of(self.spec, refused.status, refused.headers, refusal.body)
        if of_cloud is not None:
            sentence = f"{of_cloud.predicate} {refusal.status_and_text}: {of_cloud.way_out}"
            if of_cloud.retryable is not None:
                retryable = of_cloud.retryable
        return self.error(sentence, retryable=retryable, retry_after_s=requested_wait_s(refused.headers, self.now()))


def refusal_message(body: bytes) -> str:
    """Return the message in the body of an error response; empty if there is none."""
    return error_text(body.decode("utf-8", "replace")) or ""
