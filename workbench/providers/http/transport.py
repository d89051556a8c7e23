"""Recognises failures of the connection: names, connections, TLS, timeouts, broken connections."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from workbench.config.models import ModelSpec, is_loopback
from workbench.dataclasses import dataclass
from workbench.providers.http.bodies import BodyError

CONNECT_TIMEOUT_S = 10.0
TLS_PROBE_TIMEOUT_S = 2.0
_NOT_IN_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""OpenSSL's reasons for an answer that is no record of TLS."""


class TlsExpectedError(ConnectionError):
    """A server closed a connection because it speaks TLS."""


async def speaks_tls(host: str, port: int) -> bool:
    """Return whether a server answers the beginning of a TLS handshake in TLS, whatever its certificate. Most close a
    connection without a word that begins otherwise, as any other server may."""
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
    """Returns the address of the proxy that the environment names for an endpoint; `None` where it is reached directly.

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
    """Returns the address of a proxy without a user and a password."""
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
    """What happened, as the rest of a sentence that begins with the endpoint, and whether a retry may help."""

    sentence: str
    retryable: bool = False


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yields an exception and everything that led to it, the outermost first."""
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
    """Returns the failure of the connection behind an exception; `None` when it is none. `began` tells that part of an
    answer had come."""
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
    """Returns what is wrong with a proxy, to which every connection goes first."""
    import aiohttp

    for cause in causes:
        match cause:
            case ConnectionRefusedError():
                return "refuses connections"
            case socket.gaierror():
                return "has an unknown host name"
            case aiohttp.ConnectionTimeoutError():
                return f"accepts no connection within {CONNECT_TIMEOUT_S:g} s"
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
                return Broken(f"accepts no connection within {CONNECT_TIMEOUT_S:g} s: look at base_url and the network")
            case TimeoutError():
                way_out = "raise read_timeout_s of the model, or look at what the server does"
                return Broken(f"was silent for {spec.read_timeout_s:g} s: {way_out}")
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
    """Returns whether the status line that could not be read is an alert of TLS."""
    from aiohttp import http_exceptions

    return isinstance(error, http_exceptions.BadStatusLine) and r"b'\x15\x03" in error.message


def _is_incomplete(error: BaseException) -> bool:
    """Returns whether an error in HTTP is only that the rest is missing."""
    from aiohttp import http_exceptions

    return isinstance(error, http_exceptions.PayloadEncodingError) and "Not enough data" in str(error)
