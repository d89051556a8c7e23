"""Every fault of an endpoint, under every API and both SDKs: the right events, one plain sentence, others unharmed."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import pytest

from tests.engine.making import finish_of
from tests.providers.http.runs import SILENCE_S, failures, retries_of, run_on, spec_of
from tests.providers.server import (
    APIS,
    CUT,
    HANG,
    RESET,
    Answer,
    Api,
    Piece,
    Server,
    document,
    error_document,
    error_event,
    page,
    said,
    serve,
    whole_document,
)
from tests.sampled_rows import in_turn
from workbench.config.secrets import Secrets
from workbench.providers.http.endpoints import Endpoints

RAIN = "It rains."
LONG_RAIN = " ".join(f"It rains in town {number}." for number in range(40))


@dataclass(frozen=True)
class Fault:
    """A faulty answer, its message, and whether it is retried."""

    name: str
    answer: Callable[[Api], Answer]
    sentence: str
    passing: bool = False
    read_timeout_s: float = 20.0


def _refusal(status: int, message: str = "so it is", **headers: str) -> Callable[[Api], Answer]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda api: document(error_document(api, message), status, named)


def _half(*rest: Piece, framing: Literal["chunked", "close"] = "chunked") -> Callable[[Api], Answer]:
    """Return the beginning of an answer, followed by other pieces."""
    return lambda api: Answer((*said(api, RAIN, end=False).pieces[:3], *rest), framing=framing)


Framing = Literal["chunked", "length", "close"]
FRAMINGS: tuple[Framing, ...] = ("chunked", "length", "close")
Compress = Callable[[bytes], bytes]


def _headless(body: bytes) -> bytes:
    """`deflate` as some servers misunderstand it."""
    return zlib.compress(body)[2:-4]


COMPRESSIONS: tuple[tuple[str, str, Compress], ...] = (
    ("gzip", "gzip", gzip.compress),
    ("deflate", "deflate", zlib.compress),
)


def _encoded(encoding: str, compress: Compress, framing: Framing = "chunked") -> Callable[[Api], Answer]:
    """A whole document, compressed."""
    whole = partial(_compressed, encoding=encoding, compress=compress, framing=framing)
    return lambda api: whole(document(whole_document(api, LONG_RAIN)))


def _compressed(answer: Answer, *, encoding: str, compress: Compress, framing: Framing) -> Answer:
    body = compress(b"".join(piece for piece in answer.pieces if isinstance(piece, bytes)))
    return Answer((body,), headers={**answer.headers, "content-encoding": encoding}, framing=framing)


def _cut_document(encoding: str, compress: Compress, framing: Framing) -> Callable[[Api], Answer]:
    return _encoded(encoding, lambda body: compress(body)[:-20], framing)


def _damaged_document(encoding: str, compress: Compress, framing: Framing) -> Callable[[Api], Answer]:
    def damaged(body: bytes) -> bytes:
        packed = compress(body)
        return packed[:12] + bytes(byte ^ 0xFF for byte in packed[12:40]) + packed[40:]

    return _encoded(encoding, damaged, framing)


def _cut_stream(encoding: str, compress: Compress, framing: Framing) -> Callable[[Api], Answer]:
    return lambda api: _compressed(
        said(api, LONG_RAIN), encoding=encoding, compress=lambda body: compress(body)[:-60], framing=framing
    )


def _cut_body(*rest: Piece, framing: Framing = "chunked") -> Callable[[Api], Answer]:
    """Return half of an uncompressed document, followed by other pieces."""
    return lambda api: Answer(
        (json.dumps(whole_document(api, RAIN)).encode()[:60], *rest),
        headers={"content-type": "application/json"},
        framing=framing,
    )


def _cut_length(api: Api) -> Answer:
    """Half of a document, whose headers promise the whole of it."""
    body = json.dumps(whole_document(api, RAIN)).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return Answer(before=(head.encode() + body[:60], CUT))


FAULTS = (
    Fault("429", _refusal(429, "slow down", retry_after="7"), "asks for fewer requests (429: slow down)", True),
    Fault("429 quota", _refusal(429, "insufficient_quota"), "has no quota left for the account (429"),
    Fault("500", _refusal(500), "failed (500: so it is)", True),
    Fault("503", _refusal(503), "is overloaded (503: so it is)", True),
    Fault("529", _refusal(529), "is overloaded (529: so it is)", True),
    Fault("408", _refusal(408), "(408: so it is)", True),
    Fault("409", _refusal(409), "(409: so it is)", True),
    Fault("425", _refusal(425), "(425: so it is)", True),
    Fault("500, hopeless", _refusal(500, x_should_retry="false"), "failed (500: so it is)"),
    Fault("400", _refusal(400), "does not accept the request (400: so it is)"),
    Fault(
        "400, TLS",
        lambda _: page("<html><title>400 The plain HTTP request was sent to HTTPS port</title>", 400),
        "port): write https:// in base_url",
    ),
    Fault("401", _refusal(401), "requires a key (401: so it is): name the variable that holds it as api_key_env"),
    Fault("402", _refusal(402), "requires payment (402: so it is)"),
    Fault("403", _refusal(403), "requires a key (403: so it is)"),
    Fault("404, model", _refusal(404, "no test-model here"), "has no model 'test-model' (404: no test-model here)"),
    Fault("404, path", lambda _: page("<html>Not Found</html>", 404), "(404: Not Found): correct base_url or provider"),
    Fault("413", _refusal(413), "rejects the request as too large (413: so it is)"),
    Fault("418", _refusal(418), "refuses the request (418: so it is)"),
    Fault("422", _refusal(422), "does not accept the request (422: so it is)"),
    Fault("redirect", _refusal(302, location="http://u:p@other/v1?key=1"), "redirects to http://other/v1 (302)"),
    Fault("HTML, 502", lambda _: page("<html><title>Bad Gateway</title>", 502), "failed (502: Bad Gateway)", True),
    Fault("HTML, 200", lambda _: page("<!doctype html><title>Hello</title>"), "answers with a web page (Hello)"),
    Fault("error JSON, 200", lambda api: document(error_document(api, "no GPU")), "no GPU"),
    Fault("other JSON, 200", lambda _: document({"hello": "world"}), "is not an answer"),
    Fault("broken JSON, 200", lambda _: Answer((b'{"id": "c1", }',), framing="length"), "that is not a model's answer"),
    Fault("garbage in the stream", _half(b"data: {nonsense\n\n"), "something that is not JSON"),
    Fault("bottomless", _half(b'data: {"error":' + b"[" * 900 + b"]" * 900 + b"}\n\n"), "too deeply nested"),
    Fault("no terminal event", lambda api: said(api, RAIN, end=False), "ended too early", True),
    Fault("empty stream", lambda _: Answer((b": nothing\n\n",)), "held no answer", True),
    Fault("empty body", lambda _: Answer(framing="length"), "answers with nothing", True),
    Fault("only the end", lambda _: Answer((b"data: [DONE]\n\n",)), "held no answer", True),
    Fault("other text", lambda _: Answer((b"hello, world",), headers={}), "something that is not a model's answer"),
    Fault("binary", lambda _: Answer((b"\x00\x01 hello",), headers={}), "something that is not a model's answer", True),
    Fault(
        "not compressed",
        lambda _: Answer((b"hello, world",), headers={"content-encoding": "gzip"}),
        "sends a body that is not compressed as declared",
    ),
    Fault("another compression", _encoded("br", bytes), "compresses its answers (br) without being asked"),
    *(
        Fault(f"{what}, {how}, {framing}", answer(encoding, compress, framing), sentence, True)
        for what, answer, sentence in (
            ("a cut document", _cut_document, "closed the connection in the middle of its answer"),
            ("a cut stream", _cut_stream, "closed the connection in the middle of its answer"),
            ("a damaged document", _damaged_document, "sends a body that is damaged"),
        )
        for how, encoding, compress in COMPRESSIONS
        for framing in FRAMINGS
    ),
    Fault("a cut document", _cut_body(CUT), "closed the connection in the middle of its answer", True),
    Fault("a cut document of known length", _cut_length, "closed the connection in the middle of its answer", True),
    Fault("a cut document without chunks", _cut_body(framing="close"), "sent only the beginning of its answer", True),
    Fault("cut within an event", _half(b'data: {"id": "c1", "cho', framing="close"), "ended too early", True),
    Fault("cut before the headers", lambda _: Answer(before=(CUT,)), "closed the connection before it answered", True),
    Fault("reset before the headers", lambda _: Answer(before=(RESET,)), "closed the connection before", True),
    Fault("cut in the stream", _half(CUT), "closed the connection in the middle of its answer", True),
    Fault("cut without chunks", _half(CUT, framing="close"), "ended too early", True),
    Fault("reset in the stream", _half(RESET), "closed the connection in the middle of its answer", True),
    Fault(
        "no headers",
        lambda _: Answer(before=(HANG,)),
        "was silent for 0.25 s: raise read_timeout_s",
        read_timeout_s=SILENCE_S,
    ),
    Fault("nothing but headers", lambda _: Answer((HANG,)), "was silent for 0.25 s", read_timeout_s=SILENCE_S),
    Fault("silence in the stream", _half(HANG), "was silent for 0.25 s", read_timeout_s=SILENCE_S),
    Fault("not HTTP", lambda _: Answer(before=(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", CUT)), "does not answer in HTTP"),
)


@pytest.fixture(scope="module")
def healthy() -> Iterator[Server]:
    with Server(lambda request: said("openai", RAIN)) as server:
        yield server


@pytest.mark.parametrize(
    ("fault", "api"), in_turn(FAULTS, APIS), ids=[f"{fault.name}-{api}" for fault in FAULTS for api in APIS]
)
async def test_a_fault_ends_in_one_plain_sentence_and_harms_nobody_beside_it(
    fault: Fault, api: Api, healthy: Server
) -> None:
    endpoints = Endpoints(Secrets(), sleep=lambda _: asyncio.sleep(0), clock=iter(range(0, 10**9, 100)).__next__)
    with Server(lambda request: fault.answer(api)) as server:
        spec = spec_of(server, api, read_timeout_s=fault.read_timeout_s)
        broken, beside = await asyncio.gather(
            run_on(endpoints, spec), run_on(endpoints, spec_of(healthy, "openai", name="healthy"))
        )
        await endpoints.close()
        assert len(server.requests) == (2 if fault.passing else 1)
    finish = finish_of(broken)
    assert finish.reason == "error"
    assert fault.sentence in (finish.error or "")
    assert spec.base_url in (finish.error or "")
    assert "\n" not in (finish.error or "")
    assert failures(broken) == [(finish.error or "").removesuffix("; tried 2 times")] * len(server.requests)
    assert [retry.attempt for retry in retries_of(broken)] == ([2] if fault.passing else [])
    assert finish_of(beside).reason == "answered"
    assert failures(beside) == []


@pytest.mark.parametrize(
    ("encoding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", _headless)]
)
@pytest.mark.parametrize(("framing", "api"), in_turn(FRAMINGS, APIS))
async def test_a_compressed_answer_is_read(encoding: str, compress: Compress, framing: Framing, api: Api) -> None:
    stream = _compressed(said(api, LONG_RAIN), encoding=encoding, compress=compress, framing=framing)
    with serve(_encoded(encoding, compress, framing)(api), stream) as server:
        endpoints = Endpoints(Secrets())
        for _ in range(2):
            made = await run_on(endpoints, spec_of(server, api))
            assert made.trajectory.rounds[0].text == LONG_RAIN
        await endpoints.close()


@pytest.mark.parametrize("api", APIS)
async def test_an_error_in_the_middle_of_a_stream_is_told_in_its_words(api: Api) -> None:
    with serve(*[Answer((*said(api, RAIN, end=False).pieces, error_event(api, "out of memory")))] * 2) as server:
        endpoints = Endpoints(Secrets())
        made = await run_on(endpoints, spec_of(server, api))
        await endpoints.close()
    assert "out of memory" in (finish_of(made).error or "")
    assert made.trajectory.rounds[0].text.startswith("It")
