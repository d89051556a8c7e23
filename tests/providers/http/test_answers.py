"""Unusual but valid answers, and the reuse of their connections."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.http.asking import REQUEST, ask, ask_model, text_of
from tests.providers.server import (
    APIS,
    CUT,
    HANG,
    Answer,
    Api,
    Call,
    Server,
    Signal,
    base_url_of,
    document,
    said,
    serve,
    whole_document,
)
from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.http.answers import body_kind
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.model import AnswerFinished, ModelError
from workbench.trajectory.events import CallArgumentsDelta, CallFinished, CallStarted, TextDelta

RAIN = "It rains in Tromsø."


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> Api:
    found: Api = request.param
    return found


def spec_of(server: Server, api: Api) -> ModelSpec:
    return ModelSpec("m", api, "test-model", base_url_of(server, api), read_timeout_s=20.0)


def _compressed(answer: Answer) -> Answer:
    body = gzip.compress(b"".join(piece for piece in answer.pieces if isinstance(piece, bytes)))
    return replace(answer, pieces=(body,), headers={**answer.headers, "content-encoding": "gzip"})


def _nameless(answer: Answer) -> list[bytes]:
    """Data alone, with a blank at its end, as some gateways hand it on."""
    blocks = [piece.partition(b"data:") for piece in answer.pieces if isinstance(piece, bytes)]
    return [field + data.replace(b"\n\n", b" \n\n") for _, field, data in blocks]


ODDITIES = {
    "byte by byte": lambda api: said(api, RAIN).in_pieces_of(1),
    "all at once": lambda api: said(api, RAIN).in_pieces_of(10**6),
    "no chunks": lambda api: replace(said(api, RAIN), framing="close"),
    "no content type": lambda api: replace(said(api, RAIN), headers={}),
    "a wrong content type": lambda api: replace(said(api, RAIN), headers={"content-type": "application/json"}),
    "compressed": lambda api: _compressed(said(api, RAIN)),
    "one document": lambda api: document(whole_document(api, RAIN)),
    "one document called a stream": lambda api: replace(document(whole_document(api, RAIN)), headers={}),
    "comments": lambda api: Answer((b"\xef\xbb\xbf: wait\n\n", b": wait\n\n", *said(api, RAIN).pieces)),
    "an open end without names of events": lambda api: Answer((*_nameless(said(api, RAIN)), HANG)),
    "an open end": lambda api: Answer((*said(api, RAIN).pieces, HANG)),
    "a cut end": lambda api: Answer((*said(api, RAIN).pieces, CUT)),
}


@pytest.mark.parametrize("oddity", ODDITIES)
async def test_odd_servers_are_understood(oddity: str, api: Api) -> None:
    with serve(ODDITIES[oddity](api)) as server:
        answer = await ask(spec_of(server, api))
    assert text_of(answer) == RAIN
    assert isinstance(answer[-1], AnswerFinished)


async def test_what_is_not_counted_stays_uncounted(api: Api) -> None:
    with serve(said(api, RAIN, usage=None)) as server:
        answer = await ask(spec_of(server, api))
    assert isinstance(answer[-1], AnswerFinished)
    assert answer[-1].usage is None


async def test_what_one_reading_brings_is_one_event_of_each_kind(api: Api) -> None:
    calls = [Call("get_weather", {"city": city}) for city in ("Oslo", "Bergen")]
    with serve(said(api, RAIN, calls=calls).in_pieces_of(10**6)) as server:
        answer = await ask(spec_of(server, api))
    kinds = [TextDelta, *[CallStarted, CallArgumentsDelta, CallFinished] * 2, AnswerFinished]
    assert sorted(map(str, map(type, answer))) == sorted(map(str, kinds))


async def test_broken_arguments_stay_visible(api: Api) -> None:
    with serve(said(api, calls=[Call("get_weather", '{"city": "Os')])) as server:
        answer = await ask(spec_of(server, api))
    (call,) = [event for event in answer if isinstance(event, CallFinished)]
    assert (dict(call.arguments), call.raw) == ({}, '{"city": "Os')


async def test_calls_with_one_id_stay_two(api: Api) -> None:
    twice = [Call("get_weather", {"city": city}, "same") for city in ("Oslo", "Bergen")]
    with serve(said(api, calls=twice)) as server:
        answer = await ask(spec_of(server, api))
    calls = [event for event in answer if isinstance(event, CallFinished)]
    assert [call.arguments["city"] for call in calls] == ["Oslo", "Bergen"]
    assert len({call.call_id for call in calls}) == 2


async def test_words_arrive_while_the_rest_is_still_to_come(api: Api) -> None:
    more = Signal()
    first, *rest = [piece for piece in said(api, RAIN).pieces if isinstance(piece, bytes)]
    with serve(Answer((first, *rest[:4], more, *rest[4:]))) as server:
        endpoints = Endpoints(Secrets())
        model = endpoints.open(spec_of(server, api), {})
        async for event in model.stream(REQUEST):
            if isinstance(event, TextDelta):
                more.set()
        await endpoints.close()
    assert more.future.done()


async def test_a_connection_serves_many_answers(api: Api) -> None:
    endpoints = Endpoints(Secrets())
    with Server(lambda request: said(api, RAIN)) as server:
        for _ in range(3):
            await ask(spec_of(server, api), endpoints=endpoints)
        await endpoints.close()
    assert [request.connection for request in server.requests] == [1, 1, 1]


async def test_whoever_stops_listening_leaves_no_connection_behind(api: Api) -> None:
    endless = Answer((*said(api, RAIN, end=False).pieces, HANG))
    endpoints = Endpoints(Secrets())
    with serve(endless, said(api, RAIN)) as server:
        model = endpoints.open(spec_of(server, api), {})
        events = model.stream(REQUEST)
        await anext(events)
        await events.aclose()
        answer = await ask_model(model)
        await endpoints.close()
    assert text_of(answer) == RAIN
    assert [request.connection for request in server.requests] == [1, 2]


async def test_no_more_requests_are_under_way_than_the_model_allows(api: Api) -> None:
    endpoints = Endpoints(Secrets())
    with Server(lambda request: said(api, RAIN)) as server:
        spec = replace(spec_of(server, api), concurrency=3)
        await asyncio.gather(*(ask(spec, endpoints=endpoints) for _ in range(12)))
        await endpoints.close()
    assert len(server.requests) == 12
    assert server.most_at_once <= 3


def _tls_of(authority: trustme.CA, host: str, until: datetime | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host, not_after=until).configure_cert(context)
    return context


async def test_a_certificate_of_ones_own_is_accepted_when_its_authority_is_named(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    with serve(said(api, RAIN), tls=_tls_of(authority, "127.0.0.1")) as server:
        assert text_of(await ask(spec_of(server, api))) == RAIN


async def _refusal_of(spec: ModelSpec) -> str:
    with pytest.raises(ModelError) as raised:
        await ask(spec)
    assert not raised.value.retryable
    return str(raised.value)


async def test_a_certificate_of_an_unknown_authority_is_told_with_the_way_out(api: Api) -> None:
    with serve(tls=_tls_of(trustme.CA(), "127.0.0.1")) as server:
        said_of_it = await _refusal_of(spec_of(server, api))
    assert (
        "shows a certificate that is not from an authority that this machine trusts: name its authority's file"
        in said_of_it
    )
    assert "SSL_CERT_FILE" in said_of_it


async def test_a_certificate_that_is_wrong_is_told_with_what_is_wrong(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    with serve(tls=_tls_of(authority, "models.test")) as server:
        assert "shows a certificate that is for another host" in await _refusal_of(spec_of(server, api))
    with serve(tls=_tls_of(authority, "127.0.0.1", datetime(2020, 1, 1, tzinfo=UTC))) as server:
        assert "shows a certificate that has expired" in await _refusal_of(spec_of(server, api))


def self_signed(folder: Path) -> Path:
    """Write a self-signed certificate for 127.0.0.1 with its key, and return its path."""
    request = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2")
    host = ("-addext", "subjectAltName=IP:127.0.0.1")
    files = ("-keyout", folder / "own.key", "-out", folder / "own.pem")
    subprocess.run(["openssl", *request, *host, *files], check=True, capture_output=True)
    return folder / "own.pem"


@pytest.mark.slow
async def test_a_self_signed_certificate_is_accepted_when_its_file_is_named(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, context = self_signed(tmp_path), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, tmp_path / "own.key")
    with Server(lambda _: said(api, RAIN), tls=context) as server:
        refusal = await _refusal_of(spec_of(server, api))
        assert "a certificate that is self-signed, which this machine does not trust: put it into a file" in refusal
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        assert text_of(await ask(spec_of(server, api))) == RAIN
        monkeypatch.setenv("SSL_CERT_FILE", "missing.pem")
        assert "cannot be reached: SSL_CERT_FILE is missing.pem: No such" in await _refusal_of(spec_of(server, api))


async def test_tls_where_there_is_none_and_none_where_there_is_are_told(api: Api) -> None:
    with serve() as plain, serve(tls=_tls_of(trustme.CA(), "127.0.0.1")) as secure:
        to_plain = replace(spec_of(plain, api), base_url=plain.url.replace("http:", "https:"))
        to_secure = replace(spec_of(secure, api), base_url=secure.url.replace("https:", "http:"), read_timeout_s=2.0)
        assert "does not speak TLS: write http:// in base_url" in await _refusal_of(to_plain)
        assert "expects TLS: write https:// in base_url" in await _refusal_of(to_secure)


async def test_nobody_there_and_no_such_host_are_told(api: Api) -> None:
    with serve() as server:
        nobody = spec_of(server, api)
    assert f"{nobody.base_url} refuses connections: start the server" in await _refusal_of(nobody)
    localhost = replace(nobody, base_url=nobody.base_url.replace("127.0.0.1", "localhost"))
    assert "refuses connections" in await _refusal_of(localhost)
    nowhere = replace(nobody, base_url="http://nowhere.invalid/v1")
    assert "has an unknown host name: correct base_url" in await _refusal_of(nowhere)


@pytest.mark.parametrize("provider", ["openai", "openai-responses"])
async def test_a_base_url_that_lacks_its_end_is_told(provider: Api) -> None:
    with Server(lambda request: document({"detail": "Not Found"}, 404)) as server:
        short = ModelSpec("m", provider, "test-model", server.url)
        assert f"(404: Not Found): did you mean {server.url}/v1 as base_url?" in await _refusal_of(short)


async def test_a_schema_that_an_endpoint_refuses_is_told_with_its_tool(api: Api) -> None:
    words = {
        "openai": "Invalid schema for function 'send': schema must be an object",
        "openai-responses": "Invalid schema for function 'send': schema must be an object",
        "anthropic": "tools.1.custom.input_schema: JSON schema is invalid",
    }
    with serve(document({"error": {"message": words[api]}}, 400)) as server:
        said_of_it = await _refusal_of(spec_of(server, api))
    assert "does not accept the tool send (400: " in said_of_it
    assert "correct the schema of its parameters" in said_of_it


async def test_an_endless_error_is_cut_short(api: Api) -> None:
    words = "no " * 100_000
    with serve(Answer((words.encode(), HANG), 400, {"content-type": "text/plain"})) as server:
        said_of_it = await _refusal_of(spec_of(server, api))
    assert len(said_of_it) < 600


async def test_what_would_draw_on_a_terminal_does_not_get_that_far(api: Api) -> None:
    with serve(document({"error": {"message": "\x1b[2Jgone\r\n\u202egone"}}, 400)) as server:
        assert (await _refusal_of(spec_of(server, api))).isprintable()


@given(st.binary(max_size=40), st.sampled_from(["", "text/event-stream", "application/json"]))
def test_what_a_body_is_does_not_change_with_what_follows(head: bytes, content_type: str) -> None:
    kinds = [body_kind(head[:end], content_type) for end in range(len(head) + 1)]
    known = [kind for kind in kinds if kind is not None]
    assert len(set(known)) <= 1
    assert kinds == [None] * (len(kinds) - len(known)) + known
