"""Answers that never end, or that are far too large: bounded in memory and time, with one sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.limits import lower
from tests.providers.http.asking import ask
from tests.providers.server import APIS, HANG, Answer, Api, Server, base_url_of, blocks_of
from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.http import answers, clients
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.model import AnswerTooLargeError, ModelError
from workbench.providers.wire import errors, tool_calls

MOST = 32 * 1024
MORE = 4 * MOST


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> Api:
    found: Api = request.param
    return found


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    lower(monkeypatch, answers, "MAX_BODY_BYTES", MOST)
    monkeypatch.setattr(answers, "MAX_MESSAGE_BYTES", MOST)
    monkeypatch.setattr(answers, "MAX_MESSAGE_BYTES", MOST // 2)
    lower(monkeypatch, clients, "MAX_LISTING_BYTES", MOST)


def spec_of(server: Server, api: Api) -> ModelSpec:
    return ModelSpec("m", api, "test-model", base_url_of(server, api), read_timeout_s=20.0)


def endless(piece: bytes, first: bytes = b"") -> Callable[[Api], Answer]:
    """An answer that repeats a piece until there is far too much of it."""
    return lambda _: Answer((first + piece * (MORE // len(piece)), HANG))


ENDLESS: dict[str, Callable[[Api], Answer]] = {
    "one line": endless(b"x", b"data: "),
    "one event of many lines": endless(b"data: x\n"),
    "valid tiny events": lambda api: Answer((blocks_of(api, "a", end=False)[-1] * (MORE // 40), HANG)),
    "comments": endless(b": wait\n\n"),
    "the name of an event": endless(b"x", b"event: "),
    "blanks": endless(b"\n"),
    "one document": endless(b"x", b'{"a": "'),
    "a document of many values": endless(b"{},", b'{"a": ['),
}


@pytest.mark.parametrize("what", ENDLESS)
async def test_an_answer_without_end_is_not_read_beyond_a_limit(what: str, api: Api) -> None:
    with (
        Server(lambda _: ENDLESS[what](api)) as server,
        pytest.raises(AnswerTooLargeError, match=r"the model sent too much: .*more than "),
    ):
        await ask(spec_of(server, api))


async def test_a_page_without_end_is_quoted_from_its_beginning(api: Api) -> None:
    with (
        Server(lambda _: Answer((b"<html><title>Hello</title>" + b"x" * MORE, HANG))) as server,
        pytest.raises(ModelError, match=r"answers with a web page \(Hello\)"),
    ):
        await ask(spec_of(server, api))


@pytest.mark.parametrize(
    "headers", [b"x: " + b"y" * MORE, b"x: y\r\n" * (MORE // 6)], ids=["a header without end", "headers without end"]
)
async def test_headers_without_end_are_not_read_beyond_a_limit(headers: bytes, api: Api) -> None:
    with (
        Server(lambda _: Answer(before=(b"HTTP/1.1 200 OK\r\n" + headers, HANG))) as server,
        pytest.raises(ModelError, match="does not answer in HTTP: correct base_url"),
    ):
        await ask(spec_of(server, api))


async def test_a_listing_of_models_without_end_is_not_read_beyond_a_limit(api: Api) -> None:
    with Server((), models=Answer((b'{"data": [' + b"{}," * MORE, HANG))) as server:
        endpoints = Endpoints(Secrets())
        spec = replace(spec_of(server, api), read_timeout_s=20.0)
        with pytest.raises(ModelError, match=r"sends more than .* MiB as its list of models"):
            await endpoints.list_models(spec, {})
        assert "sends more than " in (await endpoints.check(spec, {})).sentence
        await endpoints.close()


PARTS: dict[Api, bytes] = {
    "openai": b'{"choices":[{"delta":{"reasoning_details":[{},{},{},{},{},{},{},{}]}}]}',
    "openai-responses": b'{"type":"response.output_item.added","item":{"id":"NUMBER"}}',
    "anthropic": b'{"type":"content_block_start","content_block":{"type":"other"}}',
}


async def test_parts_that_are_kept_have_a_limit_of_their_own(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    lower(monkeypatch, errors, "MAX_ANSWER_PARTS", 20)
    events = b"".join(b"data: " + PARTS[api].replace(b"NUMBER", str(number).encode()) + b"\n\n" for number in range(30))
    with (
        Server(lambda _: Answer((events, HANG))) as server,
        pytest.raises(AnswerTooLargeError, match="more than 20 parts in one answer"),
    ):
        await ask(spec_of(server, api))


async def test_calls_without_names_count(monkeypatch: pytest.MonkeyPatch) -> None:
    lower(monkeypatch, tool_calls, "MAX_ANSWER_CALLS", 20)
    calls = b",".join(b'{"index": %d, "function": {}}' % number for number in range(30))
    event = b'data: {"choices": [{"delta": {"tool_calls": [' + calls + b"]}}]}\n\n"
    with (
        Server(lambda _: Answer((event, HANG))) as server,
        pytest.raises(AnswerTooLargeError, match="more than 20 calls in one answer"),
    ):
        await ask(spec_of(server, "openai"))
