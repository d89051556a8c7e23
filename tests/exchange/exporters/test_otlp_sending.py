"""Runs as protobuf, sent to a real HTTP server that decodes them."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.exchange.exporters.recorded_runs import events_of, run_of, wrong_run
from tests.providers.server import Answer, Server, document
from workbench.config.secrets import Secrets
from workbench.exchange.exporters.exported import ExportedRun
from workbench.exchange.exporters.forms import ExportError
from workbench.exchange.exporters.otlp import ENDPOINT, HEADERS, collector_of, require_protobuf, send

service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="the extra otlp")

TAKEN = Answer((b"",), 200, {"content-type": "application/x-protobuf"}, "length")


def sent(
    *answers: Answer,
    runs: list[ExportedRun] | None = None,
    content: bool = False,
    environment: Mapping[str, str] | None = None,
) -> tuple[int, Server]:
    """Send runs to a collector with these answers. Return the number of accepted runs, and the collector."""
    with Server(answers) as server:
        collector = collector_of(f"{server.url}/api", environment or {}, Secrets(), content=content)
        return send(runs if runs is not None else [wrong_run()], collector), server


def decoded(server: Server) -> list[Any]:
    """Return all received spans."""
    requests = [service.ExportTraceServiceRequest.FromString(request.body) for request in server.requests]
    return [
        span
        for request in requests
        for of_resource in request.resource_spans
        for scope in of_resource.scope_spans
        for span in scope.spans
    ]


def values(attributes: Any) -> dict[str, object]:
    """Attributes by their names."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


def test_a_collector_gets_the_agent_its_requests_and_its_calls() -> None:
    count, server = sent(TAKEN, content=True)
    (request,) = server.requests
    assert (count, request.path) == (1, "/api/v1/traces")
    assert request.headers["content-type"] == "application/x-protobuf"
    spans = decoded(server)
    assert [span.name for span in spans] == ["invoke_agent Oslo", "chat m-1", "execute_tool get_weather", "chat m-1"]
    agent, first, call, last = spans
    run = wrong_run()
    assert {span.trace_id.hex() for span in spans} == {run.key}
    assert {span.parent_span_id for span in spans[1:]} == {agent.span_id} and not agent.parent_span_id
    assert values(agent.attributes)["gen_ai.usage.input_tokens"] == 6
    assert (agent.status.code, agent.status.message) == (2, "wrong argument: get_weather.city: city is Bergen")
    (grade,) = agent.events
    assert grade.name == "gen_ai.evaluation.result"
    assert values(grade.attributes) == {
        "gen_ai.evaluation.name": "critics",
        "gen_ai.evaluation.score.value": 0.5,
        "gen_ai.evaluation.score.label": "failed",
        "gen_ai.evaluation.explanation": "0.5 of 1",
    }
    assert json.loads(str(values(call.attributes)["gen_ai.tool.call.arguments"])) == {"city": "Bergen"}
    assert [part["role"] for part in json.loads(str(values(last.attributes)["gen_ai.input.messages"]))] == [
        "user",
        "assistant",
        "tool",
    ]
    assert agent.start_time_unix_nano == 1795379509000000000
    assert agent.start_time_unix_nano <= first.start_time_unix_nano < first.end_time_unix_nano
    assert call.end_time_unix_nano <= last.start_time_unix_nano < last.end_time_unix_nano <= agent.end_time_unix_nano


def test_nothing_that_was_said_is_sent_unless_asked_for() -> None:
    _, server = sent(TAKEN)
    (body,) = [request.body for request in server.requests]
    for said in (b"Is it raining", b"Be brief", b"Bergen", b"I look", b"It rains", b"rain", b"The weather", b"0.5 of"):
        assert said not in body
    agent = decoded(server)[0]
    assert agent.status.message == "wrong argument: get_weather.city"


@pytest.mark.slow
def test_many_runs_go_in_several_requests_and_a_busy_collector_is_asked_again() -> None:
    busy = Answer((b"busy",), 503, {"retry-after": "0"}, "length")
    run = run_of(events_of([("Yes \ud800.", "", ())]))
    count, server = sent(busy, TAKEN, TAKEN, runs=[run] * 40, content=True)
    assert count == 40
    assert [request.body == server.requests[0].body for request in server.requests] == [True, True, False]
    assert len(decoded(server)) == 2 * (32 + 40)
    large = run_of(events_of([("x" * 1_500_000, "", ())]))
    assert len(sent(TAKEN, TAKEN, runs=[large, large], content=True)[1].requests) == 2


def test_the_headers_of_the_environment_are_sent_and_are_secret() -> None:
    secrets = Secrets()
    environment = {HEADERS: "Authorization=Bearer%20planted-0815,x-team = a", ENDPOINT: "http://127.0.0.1:1"}
    with Server([TAKEN]) as server:
        send([wrong_run()], collector_of(server.url, environment, secrets, content=False))
    (request,) = server.requests
    assert (request.headers["authorization"], request.headers["x-team"]) == ("Bearer planted-0815", "a")
    assert "planted" not in secrets.redact("it said planted-0815")
    assert collector_of("", environment, secrets, content=False).url == "http://127.0.0.1:1/v1/traces"


def _rejecting() -> Answer:
    answer = service.ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = 3
    answer.partial_success.error_message = "too old"
    return Answer((answer.SerializeToString(),), 200, {"content-type": "application/x-protobuf"}, "length")


def _refusals() -> Iterator[tuple[Answer, str]]:
    yield document({"message": "no"}, 401), "does not accept the headers (401: no): set OTEL_EXPORTER_OTLP_HEADERS"
    yield document({}, 404), "takes no traces there (404"
    yield document({"message": "JSON only"}, 415), "takes no protobuf (415: JSON only): name the collector's port"
    yield Answer((b"",), 302, {"location": "http://other.test"}, "length"), "redirects (302)"
    yield _rejecting(), "rejected 3 spans: too old"


@pytest.mark.parametrize(("answer", "why"), list(_refusals()), ids=["401", "404", "415", "302", "partly"])
def test_what_a_collector_refuses_is_said_with_a_way_out(answer: Answer, why: str) -> None:
    with pytest.raises(ExportError) as refused:
        sent(answer)
    assert why in str(refused.value)
    assert str(refused.value).startswith("http://127.0.0.1:")


def test_a_dead_collector_a_wrong_address_and_wrong_headers_are_said() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(ExportError, match="refuses connections: start the collector, or correct the address"):
            send([wrong_run()], collector_of(url, {}, Secrets(), content=False))
    for asked, environment, why in (
        ("", {}, "give it after --otlp, or set OTEL_EXPORTER_OTLP_ENDPOINT"),
        ("localhost:4318", {}, "is not the address of a collector"),
        ("http://user:planted@[", {}, "is not the address of a collector"),
        ("http://h", {HEADERS: "planted"}, "must be written NAME=value,NAME=value"),
    ):
        with pytest.raises(ExportError, match=why) as refused:
            collector_of(asked, environment, Secrets(), content=False)
        assert "planted" not in str(refused.value)


def test_a_missing_package_is_said_with_the_extra_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    require_protobuf()
    monkeypatch.setitem(sys.modules, service.__name__, None)
    with pytest.raises(ExportError, match=r"pip install 'toolcall-workbench\[otlp\]'"):
        require_protobuf()
