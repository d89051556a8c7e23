"""Turns every failure of an endpoint into one error with one sentence: the place, the event, the way out."""

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
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.numerals import seconds_text
from workbench.providers.http.bodies import BodyError
from workbench.providers.model import ModelError
from workbench.providers.wire.errors import MAX_QUOTE_CHARS, error_text, quoted

# Interprets an endpoint's refusals: the status, the text, and the time to wait.

PASSING_STATUSES = frozenset({408, 409, 425, 429})
"""Retryable in addition to all from 500 on, except 501 and 505."""
TLS_WANTED = ("plain http request was sent to https", "http request to an https server")
"""Replies of web servers to a request without TLS where TLS is expected."""
QUOTA_CODES = ("insufficient_quota", "billing_hard_limit", "billing_not_active")
"""Codes with status 429 that waiting does not help."""


@dataclass(frozen=True)
class Refusal:
    """A status with its text: `text` is short and safe to show, `body` is searched for codes."""

    status: int
    text: str
    body: str
    path: str
    location: str = ""
    tool: str | None = None

    @property
    def _why(self) -> str:
        return f"({self.status}: {self.text})" if self.text else f"({self.status})"

    def is_retryable(self, headers: Mapping[str, str]) -> bool:
        """Return whether the same request may succeed later; an explicit statement of the endpoint takes precedence."""
        header = headers.get("x-should-retry", "").lower()
        if header in ("true", "false"):
            return header == "true"
        if self.status == 429 and any(code in self.body for code in QUOTA_CODES):
            return False
        return self.status in PASSING_STATUSES or (self.status >= 500 and self.status not in (501, 505))

    def sentence(self, spec: ModelSpec) -> str:
        """Return the failure and the way out, as the rest of a sentence that begins with the endpoint."""
        why = self._why
        match self.status:
            case 401 | 403 if spec.api_key_env is None:
                return f"requires a key {why}: name the variable that holds it as api_key_env"
            case 401 | 403:
                return f"does not accept the key in {spec.api_key_env} {why}: correct the variable"
            case 402:
                return f"requires payment {why}: look at the account behind the key"
            case 404 | 405:
                return self._not_there(spec)
            case 413:
                return f"rejects the request as too large {why}: shorten the case or offer fewer tools"
            case 400 | 422 if self.tool is not None:
                return f"does not accept the tool {self.tool} {why}: correct the schema of its parameters"
            case 400 if any(words in self.body.lower() for words in TLS_WANTED):
                return f"expects TLS {why}: write https:// in base_url"
            case 400 | 422:
                return f"does not accept the request {why}: look at the model's params and the suite's tools"
            case 429 if not self.is_retryable({}):
                return f"has no quota left for the account {why}: look at the account behind the key"
            case 429:
                return f"asks for fewer requests {why}: lower concurrency or requests_per_minute of the model"
            case 503 | 529:
                return f"is overloaded {why}: try again later"
            case status if 300 <= status < 400:
                where = f" to {self.location}" if self.location else ""
                return f"redirects{where} ({status}), and keys are not sent along: correct base_url"
            case status if status >= 500:
                return f"failed {why}: try again later, or look at the server's log"
        return f"refuses the request {why}: look at base_url and the model's settings"

    def _not_there(self, spec: ModelSpec) -> str:
        named = re.search(rf"(?<!\w){re.escape(spec.model)}(?!\w)", self.text)
        if named or "model_not_found" in self.body:
            return f"has no model {spec.model!r} {self._why}: correct its name, or load it on the server"
        hint = base_url_hint(spec)
        return f"has no {self.path} {self._why}: " + (hint or "correct base_url or provider")


def base_url_hint(spec: ModelSpec) -> str | None:
    """Return the ending that the base URL most likely lacks: those of OpenAI's APIs end in `/v1`."""
    if spec.provider == "anthropic" or "/v1" in urlsplit(spec.base_url).path:
        return None
    return f"did you mean {shown_url(spec.base_url).rstrip('/')}/v1 as base_url?"


def shown_url(url: str) -> str:
    """Return an address without its possible secrets: a user's name and password, the query."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "the endpoint"
    return f"{parts.scheme}://{host}{parts.path}" if host else parts.path


def asked_wait_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """Return the seconds that the headers ask to wait: `retry-after-ms`, or `retry-after` in seconds or as a date.

    A date counts from that of the answer, where it has one, because the clock here may be another's or be set
    meanwhile.
    """
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
    with suppress(KeyError, ValueError, OverflowError):
        now_s = parsedate_to_datetime(headers["date"]).timestamp()
    return max(until_s - now_s, 0.0)


# Recognises failures of the connection: names, connections, TLS, timeouts, broken connections.

CONNECT_TIMEOUT_S = 10.0
TLS_PROBE_TIMEOUT_S = 2.0
_NOT_IN_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""OpenSSL's reasons for an answer that is no record of TLS."""


class TlsExpectedError(ConnectionError):
    """A server closed a connection because it speaks TLS."""


async def speaks_tls(host: str, port: int) -> bool:
    """Return whether a server answers the beginning of a TLS handshake in TLS, whatever its certificate.

    Most close a connection without a word that begins otherwise, as any other server may."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(TLS_PROBE_TIMEOUT_S):
            _, connection = await asyncio.open_connection(host, port, ssl=context)
            connection.close()
    except ssl.SSLError as error:
        # Any other reason is that of an alert, such as a version that both lack.
        return bool(error.reason) and error.reason not in _NOT_IN_TLS and "EOF" not in error.reason
    except (OSError, TimeoutError):
        return False
    return True


def proxy_for(base_url: str) -> str | None:
    """Return the address of the proxy that the environment names for an endpoint; `None` where it is reached directly.

    Raises ValueError for a proxy that cannot be used, without quoting a password.
    """
    parts = urlsplit(base_url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or is_loopback(base_url) or proxy_bypass(parts.netloc):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    found = urlsplit(proxy)
    if found.scheme not in ("http", "https") or not found.hostname:
        raise ValueError(f"the proxy {shown_proxy(proxy)} has no address that begins with http:// or https://")
    return proxy


def shown_proxy(proxy: str) -> str:
    """Return the address of a proxy without a user and a password."""
    scheme, _, rest = proxy.rpartition("://")
    host = rest.rpartition("@")[2].rstrip("/")
    return host if scheme in ("", "http") else f"{scheme}://{host}"


_CERTIFICATE_PROBLEMS = {
    10: ("has expired", "renew it on the server"),
    18: ("is self-signed, which this machine does not trust", "put it into a file and name that in SSL_CERT_FILE"),
    62: ("is for another host", "write the host that it is for in base_url"),
    64: ("is for another host", "write the host that it is for in base_url"),
}
"""By OpenSSL's error number: the problem of the certificate, and the way out."""
_UNTRUSTED = ("is not from an authority that this machine trusts", "name its authority's file in SSL_CERT_FILE")


@dataclass(frozen=True)
class Broken:
    """The failure, as the rest of a sentence that begins with the endpoint, and whether a retry may help."""

    sentence: str
    retryable: bool = False


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and everything that led to it, the outermost first."""
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


def broken_by(error: BaseException, spec: ModelSpec, *, began: bool) -> Broken | None:
    """Return the failure of the connection behind an exception; `None` when it is none.

    `began` tells that part of an answer had come."""
    causes = tuple(causes_of(error))
    proxy = proxy_for(spec.base_url)
    if proxy is not None and (problem := _with_proxy(causes)):
        way_out = "look at HTTPS_PROXY, HTTP_PROXY and NO_PROXY"
        return Broken(f"cannot be reached: its proxy {shown_proxy(proxy)} {problem}: {way_out}")
    for found in (_before_connecting(causes), _timed_out(causes, spec), _broken_off(causes, began)):
        if found is not None:
            return found
    return None


def _with_proxy(causes: tuple[BaseException, ...]) -> str | None:
    """Return the problem of a proxy, to which every connection goes first."""
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
                return f"refuses to ask it ({cause.status} {cause.message})"
    return None


def _before_connecting(causes: tuple[BaseException, ...]) -> Broken | None:
    import aiohttp

    for cause in causes:
        match cause:
            case aiohttp.ClientConnectorError():
                continue  # wraps the error that tells what happened
            case ssl.SSLCertVerificationError():
                problem, way_out = _CERTIFICATE_PROBLEMS.get(cause.verify_code, _UNTRUSTED)
                return Broken(f"shows a certificate that {problem}: {way_out}")
            case ssl.SSLError() if cause.reason in _NOT_IN_TLS:
                return Broken("does not speak TLS: write http:// in base_url")
            case ssl.SSLError() if cause.reason and "EOF" not in cause.reason:
                return Broken(f"cannot agree on TLS ({cause.reason}): look at the server's TLS settings")
            case socket.gaierror():
                return Broken("has an unknown host name: correct base_url, or look at the network")
            case ConnectionRefusedError():
                return Broken("refuses connections: start the server, or correct base_url")
            case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
                return Broken("is not a valid address: base_url must begin with http:// or https:// and a host")
    return None


def _timed_out(causes: tuple[BaseException, ...], spec: ModelSpec) -> Broken | None:
    import aiohttp

    for cause in causes:
        match cause:
            case aiohttp.ConnectionTimeoutError():
                return Broken(
                    f"accepts no connection within {seconds_text(CONNECT_TIMEOUT_S)}: look at base_url and the network"
                )
            case TimeoutError():
                way_out = "raise read_timeout_s of the model, or look at what the server does"
                return Broken(f"was silent for {seconds_text(spec.read_timeout_s)}: {way_out}")
    return None


def _broken_off(causes: tuple[BaseException, ...], began: bool) -> Broken | None:
    import aiohttp
    from aiohttp import http_exceptions

    when = "in the middle of its answer" if began else "before it answered"
    if any(isinstance(cause, TlsExpectedError) or _is_in_tls(cause) for cause in causes):
        return Broken("expects TLS: write https:// in base_url")
    # What led to an error says more than the error: that a body is incomplete, for example, that it is no gzip.
    for cause in reversed(causes):
        match cause:
            case BodyError():
                return Broken(cause.sentence, retryable=cause.retryable)
            case http_exceptions.HttpProcessingError() if not _is_incomplete(cause):
                return Broken("does not answer in HTTP: correct base_url, or look at what the server sends")
    for cause in causes:
        match cause:
            case aiohttp.ClientConnectorError():
                return Broken("cannot be reached: look at base_url and the network")
            case aiohttp.ClientError() | OSError():
                return Broken(f"closed the connection {when}", retryable=True)
    return None


def _is_in_tls(error: BaseException) -> bool:
    """Return whether the status line that could not be read is an alert of TLS."""
    from aiohttp import http_exceptions

    return isinstance(error, http_exceptions.BadStatusLine) and r"b'\x15\x03" in error.message


def _is_incomplete(error: BaseException) -> bool:
    """Return whether an error in HTTP is only that the rest is missing."""
    from aiohttp import http_exceptions

    return isinstance(error, http_exceptions.PayloadEncodingError) and "Not enough data" in str(error)


class Refused(Exception):  # noqa: N818 (an answer, not a failure of this program)
    """A response other than success: its status, its headers (names in lower case) and the beginning of its body."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.headers = headers
        self.body = body


@dataclass(frozen=True)
class EndpointErrors:
    """Makes the errors of one model's endpoint.

    `now` returns seconds since 1970, for dates in headers."""

    spec: ModelSpec
    secrets: Secrets
    now: Callable[[], float] = time.time

    def error(self, sentence: str, *, retryable: bool = False, retry_after_s: float | None = None) -> ModelError:
        """Return an error from the rest of a sentence that begins with the endpoint."""
        return ModelError(
            f"{shown_url(self.spec.base_url)} {sentence}", retryable=retryable, retry_after_s=retry_after_s
        )

    def of_reading(self, error: ModelError) -> ModelError:
        """Return an error of the answer's reader, with the endpoint added."""
        place = shown_url(self.spec.base_url)
        said = self.quoted(str(error), 2 * MAX_QUOTE_CHARS)
        sentence = said if place in said else f"{said} ({place})"
        return ModelError(sentence, retryable=error.retryable, retry_after_s=error.retry_after_s)

    def of_exception(
        self, error: Exception, *, path: str, began: bool = False, tool_at: Callable[[str], str | None] = lambda _: None
    ) -> ModelError:
        """Return the error for an exception of the HTTP library.

        `path` was requested; `began` tells that part of an answer had come; `tool_at` finds the tool that an error's
        text complains about."""
        for cause in causes_of(error):
            if isinstance(cause, Refused):
                return self._of_refusal(cause, path, tool_at)
        broken = broken_by(error, self.spec, began=began)
        if broken is not None:
            return self.error(self.quoted(broken.sentence), retryable=broken.retryable)
        return self.error(f"cannot be asked: {self.quoted(f'{type(error).__name__}: {error}')}")

    def of_page(self, body: bytes) -> ModelError:
        """Return the error for a web page where a model's answer should be."""
        said = words_of(body)
        hint = base_url_hint(self.spec) or "correct base_url"
        return self.error(f"answers with a web page ({self.quoted(said)}), not with a model's answer: {hint}")

    def of_garbage(self, body: bytes) -> ModelError:
        """Return the error for something that is neither a stream of events nor JSON.

        Bytes that are not even text may have been garbled in transit, and are worth another try."""
        text = body.decode("utf-8", "replace")
        sentence = f"answers with something that is not a model's answer ({self.quoted(text, 80)})"
        return self.error(f"{sentence}: correct base_url or provider", retryable="\0" in text or "\ufffd" in text)

    def of_cut_document(self) -> ModelError:
        """Return the error for JSON whose end is missing."""
        return self.error("sent only the beginning of its answer: look at the server or its proxy", retryable=True)

    def of_settings(self, error: Exception) -> ModelError:
        """Return the error for an endpoint that cannot even be tried."""
        way_out = "look at base_url, the proxy variables and SSL_CERT_FILE"
        return self.error(f"cannot be asked: {self.quoted(str(error))}; {way_out}")

    def of_nothing(self) -> ModelError:
        """Return the error for success without a body."""
        return self.error("answers with nothing: look at the server's log", retryable=True)

    def quoted(self, text: str, longest: int = MAX_QUOTE_CHARS) -> str:
        """Return foreign text on one line, without secrets, and cut."""
        return quoted(text, self.secrets, longest)

    def _of_refusal(self, refused: Refused, path: str, tool_at: Callable[[str], str | None]) -> ModelError:
        said = words_of(refused.body)
        refusal = Refusal(
            status=refused.status,
            text=self.quoted(said),
            body=refused.body.decode("utf-8", "replace"),
            path=path,
            location=self.quoted(shown_url(refused.headers.get("location", ""))),
            tool=tool_at(said) if refused.status in (400, 422) else None,
        )
        return self.error(
            refusal.sentence(self.spec),
            retryable=refusal.is_retryable(refused.headers),
            retry_after_s=asked_wait_s(refused.headers, self.now()),
        )


def words_of(body: bytes) -> str:
    """Return the message in the body of a refusal, empty where there is none."""
    return error_text(body.decode("utf-8", "replace")) or ""
