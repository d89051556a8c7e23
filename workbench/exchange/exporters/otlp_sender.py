"""Sends runs as traces to a collector of OpenTelemetry: protobuf over HTTP, a few runs in each request."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any
from urllib.parse import unquote, urlsplit

from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.dataclasses import dataclass
from workbench.exchange.exporters.exported import ExportedRun
from workbench.exchange.exporters.forms import ExportError
from workbench.exchange.exporters.otlp import Json, resource_spans
from workbench.limits import MAX_COLLECTOR_ANSWER_BYTES, MAX_COLLECTOR_REQUEST_BYTES
from workbench.numerals import counted
from workbench.providers.http.clients import Client, beginning_of, tls_context
from workbench.providers.http.errors import Refused, asked_wait_s, causes_of, proxy_for, shown_url, words_of
from workbench.providers.model import DEFAULT_RETRIES, RetryPolicy
from workbench.providers.wire.errors import quoted
from workbench.version import __version__

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"

_PATH = "/v1/traces"
_RUNS_AT_ONCE = 32
_ANSWER_TIMEOUT_S = 30.0
_RETRYABLE = (429, 502, 503, 504)


@dataclass(frozen=True)
class Collector:
    """Where traces are sent, with which headers; with `content`, what was said too."""

    url: str = field(repr=False)  # a password may be in it
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: bool = False
    retries: RetryPolicy = DEFAULT_RETRIES
    secrets: Secrets = field(default=NO_SECRETS, repr=False)


def collector_of(asked: str, environment: Mapping[str, str], secrets: Secrets, *, content: bool) -> Collector:
    """Returns the collector at the asked address, else at that of the environment, with the environment's headers,
    whose values are secret from now on. Raises ExportError."""
    base = asked or environment.get(ENDPOINT, "")
    if not base:
        raise ExportError(f"there is no address to send traces to: write it behind --otlp, or set {ENDPOINT}")
    secrets.add_passwords(ENDPOINT, base)
    try:
        parts = urlsplit(base)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        usable = False
    if not usable:
        raise ExportError(f"{shown_url(base)} is no address of a collector, such as http://localhost:4318")
    url = base if parts.path.endswith(_PATH) else parts._replace(path=parts.path.rstrip("/") + _PATH).geturl()
    return Collector(url, _headers(environment.get(HEADERS, ""), secrets), content, secrets=secrets)


def _headers(text: str, secrets: Secrets) -> dict[str, str]:
    """Returns the headers in `NAME=value,NAME=value`, percent-encoded as OpenTelemetry says."""
    headers = {}
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (unquote(part).strip() for part in each.partition("="))
        if not equals or not name or not f"{name}{value}".isprintable():
            raise ExportError(f"{HEADERS} must be written NAME=value,NAME=value")
        headers[name] = value
        for secret in (value, value.rpartition(" ")[2]):
            secrets.add(HEADERS, secret)
    return headers


def must_be_installed() -> None:
    """Raises ExportError where what makes protobuf is not installed."""
    try:
        _request_of([])
    except ImportError as error:
        raise ExportError(
            "sending traces needs packages that are not installed: pip install 'toolcall-workbench[otlp]'"
        ) from error


def send(runs: Iterable[ExportedRun], collector: Collector) -> int:
    """Send runs one request after the other, and return how many the collector took. Raises ExportError, also for what
    it only partly took."""
    return asyncio.run(_send(runs, collector))


async def _send(runs: Iterable[ExportedRun], collector: Collector) -> int:
    import aiohttp
    import yarl

    try:
        proxy = proxy_for(collector.url)
        tls = tls_context() if collector.url.startswith("https:") or (proxy or "").startswith("https:") else None
        url = yarl.URL(collector.url)
    except (ValueError, OSError) as error:
        raise ExportError(f"{shown_url(collector.url)} cannot be asked: {error}") from error
    headers = {"user-agent": f"toolcall-workbench/{__version__}", **collector.headers}
    connector = aiohttp.TCPConnector(ssl=tls or True, resolver=aiohttp.ThreadedResolver())
    sent = 0
    async with aiohttp.ClientSession(
        headers={**headers, "content-type": "application/x-protobuf"},
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        client = Client(url, (aiohttp.ClientError, OSError, Refused), session, proxy)
        for count, body in _requests(runs, collector):
            try:
                await _deliver(client, body, collector)
            except ExportError as error:
                taken = f"; {counted(sent, 'run')} before were sent" if sent else ""
                raise ExportError(f"{error}{taken}") from error
            sent += count
    return sent


def _requests(runs: Iterable[ExportedRun], collector: Collector) -> Iterator[tuple[int, bytes]]:
    """Yields the bodies of all requests, and how many runs each holds: several small ones, or a large one alone."""
    count, waiting = 0, _request_of([])
    for run in runs:
        more = _request_of([resource_spans(run, content=collector.content)])
        if count and (count == _RUNS_AT_ONCE or waiting.ByteSize() + more.ByteSize() > MAX_COLLECTOR_REQUEST_BYTES):
            yield count, waiting.SerializeToString()
            count, waiting = 0, _request_of([])
        waiting.MergeFrom(more)
        count += 1
    if count:
        yield count, waiting.SerializeToString()


async def _deliver(client: Client, body: bytes, collector: Collector) -> None:
    attempt = 1
    while True:
        try:
            async with await client.post("", body, _ANSWER_TIMEOUT_S) as response:
                _must_be_whole(await beginning_of(response, MAX_COLLECTOR_ANSWER_BYTES), collector)
                return
        except client.errors as error:
            refused = error if isinstance(error, Refused) else None
            passing = refused.status in _RETRYABLE if refused is not None else isinstance(error, ConnectionError)
            asked_s = asked_wait_s(refused.headers, time.time()) if refused is not None else None
            wait_s = collector.retries.wait_s(attempt, asked_s) if passing else None
            if wait_s is None:
                raise ExportError(f"{shown_url(collector.url)} {_why(error, collector.secrets)}") from error
        await collector.retries.sleep(wait_s)
        attempt += 1


def _must_be_whole(answer: bytes, collector: Collector) -> None:
    """Raises ExportError where a collector took only a part."""
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    try:
        partial = ExportTraceServiceResponse.FromString(answer).partial_success
    except DecodeError:
        return  # it said that it took them, in a way of its own
    if partial.rejected_spans:
        raise ExportError(
            f"{shown_url(collector.url)} rejected {partial.rejected_spans} spans: "
            f"{quoted(partial.error_message, collector.secrets)}"
        )


def _why(error: Exception, secrets: Secrets) -> str:
    """Returns why nothing was taken, and what to do, as the rest of a sentence that begins with the address."""
    if isinstance(error, Refused):
        said = quoted(words_of(error.body), secrets)
        why = f"({error.status}: {said})" if said else f"({error.status})"
        match error.status:
            case 401 | 403:
                return f"does not accept the headers {why}: set {HEADERS}, such as Authorization=Bearer%20KEY"
            case 404 | 405:
                return f"takes no traces there {why}: name the address before {_PATH}, or the whole one"
            case 413:
                return f"rejects the request as too large {why}: export fewer runs, or raise the collector's limit"
            case 415:
                return f"takes no protobuf {why}: name the collector's port for OTLP over HTTP, usually 4318"
            case status if 300 <= status < 400:
                return f"redirects ({status}), and headers are not sent along: name the address it redirects to"
            case _:
                return f"refuses the traces {why}: look at the collector's log"
    for cause in causes_of(error):
        match cause:
            case ConnectionRefusedError():
                return "refuses connections: start the collector, or correct the address"
            case socket.gaierror():
                return "has an unknown host name: correct the address, or look at the network"
            case ssl.SSLCertVerificationError():
                return "shows a certificate that is not trusted here: name its authority's file in SSL_CERT_FILE"
            case TimeoutError():
                return f"did not answer within {_ANSWER_TIMEOUT_S:g} s: look at the collector's log"
    return "broke off the connection: a collector's port 4317 speaks gRPC, and 4318 HTTP"


def _request_of(traces: Sequence[Json]) -> Any:
    """Returns the request of protobuf. Raises ImportError."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    return ParseDict({"resourceSpans": [_with_ids(each) for each in traces]}, ExportTraceServiceRequest())


def _with_ids(trace: Any) -> Any:
    """Returns a trace with ids as protobuf's JSON has bytes: in base64, where OTLP/JSON has hexadecimal digits."""
    ids = ("traceId", "spanId", "parentSpanId")
    scopes = [
        {
            **scope,
            "spans": [
                {
                    key: base64.b64encode(bytes.fromhex(value)).decode() if key in ids else value
                    for key, value in span.items()
                }
                for span in scope["spans"]
            ],
        }
        for scope in trace["scopeSpans"]
    ]
    return {**trace, "scopeSpans": scopes}
