"""Exports runs as OpenTelemetry traces, following the conventions for generative AI.

Each run is a trace. The span of the agent has a child span for each request to the model and for each answered call.
Grades are events of the agent's span. Traces are written into files as OTLP/JSON, or sent to a collector as
protobuf."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any
from urllib.parse import unquote, urlsplit

from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.dataclasses import compact_json, dataclass, json_text
from workbench.exchange.exporters.exported import (
    ConversationEntry,
    ExportedRun,
    Span,
    conversation,
    function_of,
    last_text_of,
    request_messages,
)
from workbench.exchange.exporters.forms import ExportError
from workbench.grading.grade import Grade, Issue
from workbench.grading.status import Status
from workbench.limits import MAX_COLLECTOR_ANSWER_BYTES, MAX_COLLECTOR_REQUEST_BYTES
from workbench.numerals import counted, seconds_text
from workbench.providers.http.clients import Client, read_beginning, tls_context
from workbench.providers.http.errors import (
    HttpStatusError,
    causes_of,
    proxy_for,
    refusal_message,
    requested_wait_s,
    shown_url,
)
from workbench.providers.model import DEFAULT_RETRIES, RetryPolicy
from workbench.providers.wire.errors import quoted
from workbench.trajectory.events import JsonValue, Usage
from workbench.trajectory.trajectory import CallRecord, Round
from workbench.version import __version__

Json = dict[str, JsonValue]

# The numbers of span kinds and status codes in OTLP.
_INTERNAL, _CLIENT = 1, 3
_OK, _ERROR = 1, 2

_FINISH_REASONS = {"answered": "stop", "tool calls": "tool_call", "truncated": "length", "refused": "content_filter"}


def lines_of_otlp(runs: Iterable[ExportedRun]) -> Iterator[str]:
    """Yield a line of OTLP/JSON for each run, as in a file that a collector wrote."""
    for run in runs:
        yield f"{compact_json({'resourceSpans': [resource_spans(run, content=True)]})}\n"


def resource_spans(run: ExportedRun, *, content: bool) -> Json:
    """Return the trace of a run.

    Without `content`, the trace has names, counts, times and verdicts, but no messages, arguments or results."""
    # Phoenix, a viewer of traces, reads the name of the project from this attribute of OpenInference.
    resource = {"service.name": "workbench", "service.version": __version__, "openinference.project.name": run.suite}
    scope: Json = {"name": "workbench", "version": __version__}
    spans: list[JsonValue] = list(_Trace(run, content).spans())
    return {"resource": {"attributes": _attributes(resource)}, "scopeSpans": [{"scope": scope, "spans": spans}]}


class _Trace:
    def __init__(self, run: ExportedRun, content: bool) -> None:
        self._run = run
        self._content = content
        # As a float, nanoseconds since 1970 are wrong by some hundred nanoseconds, so the start is rounded to
        # milliseconds.
        self._start_ns = int(run.started.timestamp() * 1_000) * 1_000_000
        self._root = self._id("agent")

    def spans(self) -> Iterator[Json]:
        yield self._agent()
        for each in self._run.result.trajectory.rounds:
            if not each.replayed:
                yield self._chat(each)
            for call in each.calls:
                if call.result is not None and call.result.source != "replayed":
                    yield self._tool(call)

    def _agent(self) -> Json:
        run, result = self._run, self._run.result
        attributes: dict[str, object] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": run.suite,
            "gen_ai.conversation.id": run.key,
            "gen_ai.request.model": result.model,
            **_used(result.usage),
            "openinference.span.kind": "AGENT",
            "workbench.suite": run.suite,
            "workbench.case": result.case_id,
            "workbench.repeat": result.repeat,
            "workbench.status": result.status,
            "workbench.score": result.score,
            "workbench.cost_usd": result.cost_usd,
        }
        if self._content:
            before = list(conversation(result, 0))
            final = []
            for each in run.conversation[-1:]:
                if each.answer is not None:
                    final.append(each)
            # Phoenix shows the input and output of a trace only if its root span has them.
            attributes |= {
                "gen_ai.input.messages": _messages(before),
                "gen_ai.output.messages": _messages(final),
                "input.value": last_text_of("user", before),
                "output.value": result.trajectory.final_answer or None,
            }
        span = self._span(f"invoke_agent {result.case_name}", "agent", _INTERNAL, Span(0.0, run.ended_ms), attributes)
        if result.status in (Status.FAILED, Status.ERROR):
            span["status"] = {"code": _ERROR, "message": _valid(self._why())}
        elif result.passed:
            span["status"] = {"code": _OK}
        at = str(self._ns(run.ended_ms))
        events: list[JsonValue] = []
        for grade in result.grades:
            evaluation = self._evaluation(grade)
            events.append({"name": "gen_ai.evaluation.result", "timeUnixNano": at, "attributes": evaluation})
        span["events"] = events
        return span

    def _why(self) -> str:
        result = self._run.result
        if self._content:
            return result.reason or result.status
        # A reason may quote arguments and answers. Without `content`, only the names in an issue are sent.
        issues = result.grade.issues if result.grade is not None else ()
        deciding = [issue for issue in issues if issue.decides] or issues
        return _named(deciding[0]) if deciding else result.status

    def _evaluation(self, grade: Grade) -> list[JsonValue]:
        return _attributes(
            {
                "gen_ai.evaluation.name": grade.grader,
                "gen_ai.evaluation.score.value": grade.score,
                "gen_ai.evaluation.score.label": grade.verdict,
                "gen_ai.evaluation.explanation": grade.reason if self._content else None,
            }
        )

    def _chat(self, answer: Round) -> Json:
        run = self._run
        model = run.result.model
        reason = answer.stop_reason
        attributes: dict[str, object] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": model,
            "gen_ai.response.finish_reasons": None if reason is None else [_FINISH_REASONS[reason]],
            **_used(answer.usage),
            "openinference.span.kind": "LLM",
            "workbench.round": answer.number,
            "workbench.retries": answer.retries or None,
            "workbench.first_token_ms": answer.first_token_ms,
        }
        if self._content:
            asked = request_messages(run.result, answer)
            entries = [each for each in run.conversation if each.answer is answer]
            instructions: list[JsonValue] = []
            if (system := last_text_of("system", asked)) is not None:
                instructions.append({"type": "text", "content": system})
            tools = [_tool_definition(function_of(tool)) for tool in run.tools]
            attributes |= {
                "gen_ai.system_instructions": _json(instructions),
                "gen_ai.input.messages": _messages(asked),
                "gen_ai.output.messages": _messages(entries),
                "gen_ai.tool.definitions": _json(tools),
            }
        times = run.requests.get(answer.number, Span(0.0, 0.0))
        span = self._span(f"chat {model}", f"chat {answer.number}", _CLIENT, times, attributes)
        if reason is None:
            why = answer.errors[-1] if self._content and answer.errors else "the request was not answered"
            span["status"] = {"code": _ERROR, "message": _valid(why)}
        return span

    def _tool(self, record: CallRecord) -> Json:
        call, result = record.sent, record.result
        assert result is not None
        attributes: dict[str, object] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.tool,
            "gen_ai.tool.call.id": call.id,
            "gen_ai.tool.type": "function",
            "openinference.span.kind": "TOOL",
            "workbench.source": result.source,
            "workbench.server": record.server,
        }
        if self._content:
            attributes["gen_ai.tool.call.arguments"] = call.raw if call.problem else json_text(dict(call.arguments))
            attributes["gen_ai.tool.call.result"] = result.content
        times = self._run.answers.get(call.id, Span(0.0, 0.0))
        span = self._span(f"execute_tool {call.tool}", f"tool {call.id}", _INTERNAL, times, attributes)
        if result.is_error:
            span["status"] = {"code": _ERROR, "message": "the tool answered with an error"}
        return span

    def _span(self, name: str, which: str, kind: int, times: Span, attributes: Mapping[str, object]) -> Json:
        span: Json = {"traceId": self._run.key, "spanId": self._id(which)}
        if which != "agent":
            span["parentSpanId"] = self._root
        return span | {
            "name": _valid(name),
            "kind": kind,
            "startTimeUnixNano": str(self._ns(times.start_ms)),
            "endTimeUnixNano": str(self._ns(times.end_ms)),
            "attributes": _attributes(attributes),
        }

    # Ids are derived from the run, so each export of a run has the same ids. W3C's Trace Context defines their lengths:
    # 8 bytes for a span, 16 for a trace.
    def _id(self, which: str) -> str:
        return hashlib.sha256(f"{self._run.key} {which}".encode(errors="surrogatepass")).hexdigest()[:16]

    def _ns(self, ms: float) -> int:
        return self._start_ns + int(ms * 1e6)


def _named(issue: Issue) -> str:
    argument = ".".join(filter(None, (issue.tool, issue.argument)))
    if argument:
        return f"{issue.kind}: {argument}"
    return issue.kind


def _used(usage: Usage | None) -> dict[str, object]:
    if usage is None:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_input_tokens or None,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens or None,
    }


def _tool_definition(function: Json) -> JsonValue:
    inner = function["function"]
    assert isinstance(inner, dict)
    return {"type": "function", **inner}


def _messages(entries: Iterable[ConversationEntry]) -> str | None:
    """Return messages as JSON in the form of the GenAI conventions; `None` without messages.

    System prompts are left out, because the span has a separate attribute for them."""
    return _json([_message(each) for each in entries if each.role != "system"])


def _message(entry: ConversationEntry) -> JsonValue:
    message, answer = entry.message, entry.answer
    parts: list[JsonValue] = []
    if answer is not None and answer.reasoning:
        parts.append({"type": "reasoning", "content": answer.reasoning})
    if message.call_id is not None:
        response: Json = {"type": "tool_call_response", "id": message.call_id, "response": message.content}
        if message.is_error:
            response["is_error"] = True
        parts.append(response)
    elif message.content or not message.tool_calls:
        parts.append({"type": "text", "content": message.content})
    for call in message.tool_calls:
        arguments: JsonValue = call.raw if call.problem is not None else dict(call.arguments)
        parts.append({"type": "tool_call", "id": call.id, "name": call.tool, "arguments": arguments})
    table: Json = {"role": entry.role, "parts": parts}
    if answer is not None and answer.stop_reason is not None:
        table["finish_reason"] = _FINISH_REASONS[answer.stop_reason]
    return table


def _json(values: list[JsonValue]) -> str | None:
    return compact_json(values) if values else None


def _attributes(values: Mapping[str, object]) -> list[JsonValue]:
    return [{"key": key, "value": _any_value(value)} for key, value in values.items() if value is not None]


def _any_value(value: object) -> JsonValue:
    match value:
        case bool():
            return {"boolValue": value}
        # OTLP/JSON writes integers of 64 bits as texts.
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": list(map(_any_value, value))}}
        # A status is a `str` too. `str(status)` would be its word in reports, but a trace gets its plain value.
        case str():
            return {"stringValue": _valid(value)}
        case _:
            return {"stringValue": _valid(str(value))}


def _valid(text: str) -> str:
    """Return a text with lone surrogates replaced, because protobuf cannot encode them."""
    return text.encode(errors="replace").decode()


ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"

_PATH = "/v1/traces"
_RUNS_AT_ONCE = 32
_ANSWER_TIMEOUT_S = 30.0
_RETRYABLE = (429, 502, 503, 504)


@dataclass(frozen=True)
class Collector:
    """The address and headers of a collector.

    With `content`, traces contain messages, arguments and results."""

    # The address is hidden in `repr`, because it may contain a password.
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: bool = False
    retries: RetryPolicy = DEFAULT_RETRIES
    secrets: Secrets = field(default=NO_SECRETS, repr=False)


def collector_of(address: str, environment: Mapping[str, str], secrets: Secrets, *, content: bool) -> Collector:
    """Return the collector at `address`, or else at the address in the environment.

    Its headers come from the environment, and their values are registered in `secrets`. Raises ExportError for a
    missing or invalid address."""
    base = address or environment.get(ENDPOINT, "")
    if not base:
        raise ExportError(f"there is no address to send traces to: give it after --otlp, or set {ENDPOINT}")
    secrets.add_passwords(ENDPOINT, base)
    try:
        parts = urlsplit(base)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        usable = False
    if not usable:
        raise ExportError(f"{shown_url(base)} is not the address of a collector, such as http://localhost:4318")
    url = base
    if not parts.path.endswith(_PATH):
        url = parts._replace(path=parts.path.rstrip("/") + _PATH).geturl()
    return Collector(url, _headers(environment.get(HEADERS, ""), secrets), content, secrets=secrets)


def _headers(text: str, secrets: Secrets) -> dict[str, str]:
    """Parse headers written as `NAME=value,NAME=value` and percent-encoded, as OpenTelemetry specifies.

    Raises ExportError."""
    headers = {}
    for each in filter(None, map(str.strip, text.split(","))):
        name, equals, value = map(str.strip, map(unquote, each.partition("=")))
        if not equals or not name or not f"{name}{value}".isprintable():
            raise ExportError(f"{HEADERS} must be written NAME=value,NAME=value")
        headers[name] = value
        # The key in `Bearer KEY` must be redacted without the word `Bearer` too.
        for secret in (value, value.rpartition(" ")[2]):
            secrets.add(HEADERS, secret)
    return headers


def require_protobuf() -> None:
    """Raise ExportError if the packages for protobuf are not installed."""
    try:
        _request_of([])
    except ImportError as error:
        raise ExportError(
            "sending traces needs packages that are not installed: pip install 'toolcall-workbench[otlp]'"
        ) from error


def send(runs: Iterable[ExportedRun], collector: Collector) -> int:
    """Send runs to a collector in as many requests as needed, and return the number of accepted runs.

    Raises ExportError if a request fails or the collector rejects a part of it."""
    return asyncio.run(_send(runs, collector))


async def _send(runs: Iterable[ExportedRun], collector: Collector) -> int:
    import aiohttp
    import yarl

    try:
        proxy = proxy_for(collector.url)
        tls = None
        if collector.url.startswith("https:") or (proxy or "").startswith("https:"):
            tls = tls_context()
        url = yarl.URL(collector.url)
    except (ValueError, OSError) as error:
        raise ExportError(f"{shown_url(collector.url)} cannot be reached: {error}") from error
    headers = {"user-agent": f"toolcall-workbench/{__version__}", **collector.headers}
    connector = aiohttp.TCPConnector(ssl=tls or True, resolver=aiohttp.ThreadedResolver())
    sent = 0
    async with aiohttp.ClientSession(
        headers={**headers, "content-type": "application/x-protobuf"},
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        client = Client(url, (aiohttp.ClientError, OSError, HttpStatusError), session, proxy)
        for count, body in _requests(runs, collector):
            try:
                await _deliver(client, body, collector)
            except ExportError as error:
                if not sent:
                    raise
                raise ExportError(f"{error}; {counted(sent, 'run')} were sent before") from error
            sent += count
    return sent


def _requests(runs: Iterable[ExportedRun], collector: Collector) -> Iterator[tuple[int, bytes]]:
    """Yield the number of runs and the body of each request.

    Small runs share a request. A large run has a request of its own."""
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
                _must_be_whole(await read_beginning(response, MAX_COLLECTOR_ANSWER_BYTES), collector)
                return
        except client.errors as error:
            wait_s = _wait_s(error, attempt, collector.retries)
            if wait_s is None:
                raise ExportError(f"{shown_url(collector.url)} {_why(error, collector.secrets)}") from error
        await collector.retries.sleep(wait_s)
        attempt += 1


def _wait_s(error: Exception, attempt: int, retries: RetryPolicy) -> float | None:
    if isinstance(error, HttpStatusError):
        if error.status not in _RETRYABLE:
            return None
        return retries.wait_s(attempt, requested_wait_s(error.headers, time.time()))
    if isinstance(error, ConnectionError):
        return retries.wait_s(attempt, None)
    return None


def _must_be_whole(answer: bytes, collector: Collector) -> None:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    try:
        partial = ExportTraceServiceResponse.FromString(answer).partial_success
    except DecodeError:
        # The HTTP status reports success, so a body of another kind does not matter.
        return
    if partial.rejected_spans:
        raise ExportError(
            f"{shown_url(collector.url)} rejected {partial.rejected_spans} spans: "
            f"{quoted(partial.error_message, collector.secrets)}"
        )


def _why(error: Exception, secrets: Secrets) -> str:
    """Return why a request failed, with advice.

    The text continues a message that begins with the collector's address."""
    if isinstance(error, HttpStatusError):
        why = f"({error.status})"
        if reason := quoted(refusal_message(error.body), secrets):
            why = f"({error.status}: {reason})"
        match error.status:
            case 401 | 403:
                return f"does not accept the headers {why}: set {HEADERS}, such as Authorization=Bearer%20KEY"
            case 404 | 405:
                return f"takes no traces there {why}: give the address without {_PATH}, or the complete one"
            case 413:
                return f"rejects the request as too large {why}: export fewer runs, or raise the collector's limit"
            case 415:
                return f"takes no protobuf {why}: name the collector's port for OTLP over HTTP, usually 4318"
            case status if 300 <= status < 400:
                return f"redirects ({status}), and headers are not sent along: name the address it redirects to"
            case _:
                return f"refuses the traces {why}: check the collector's log"
    for cause in causes_of(error):
        match cause:
            case ConnectionRefusedError():
                return "refuses connections: start the collector, or correct the address"
            case socket.gaierror():
                return "has an unknown host name: correct the address, or check the network"
            case ssl.SSLCertVerificationError():
                return "shows a certificate that is not trusted here: name its authority's file in SSL_CERT_FILE"
            case TimeoutError():
                return f"did not answer within {seconds_text(_ANSWER_TIMEOUT_S)}: check the collector's log"
    return "broke off the connection: name the collector's port for HTTP, usually 4318, because port 4317 speaks gRPC"


def _request_of(traces: Sequence[Json]) -> Any:
    # Protobuf is used because not every collector accepts OTLP/JSON. Phoenix answers with the status 415.
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    return ParseDict({"resourceSpans": list(map(_with_ids, traces))}, ExportTraceServiceRequest())


def _with_ids(trace: Any) -> Any:
    """Convert the ids of a trace from hexadecimal digits (OTLP/JSON) to base64 (protobuf's JSON)."""
    scopes = []
    for scope in trace["scopeSpans"]:
        scopes.append({**scope, "spans": list(map(_span_with_ids, scope["spans"]))})
    return {**trace, "scopeSpans": scopes}


def _span_with_ids(span: Json) -> Json:
    encoded = dict(span)
    for key in ("traceId", "spanId", "parentSpanId"):
        if key in span:
            encoded[key] = base64.b64encode(bytes.fromhex(str(span[key]))).decode()
    return encoded
