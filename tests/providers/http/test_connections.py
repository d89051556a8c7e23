"""Connections that a server closes are replaced silently, and messages mention TLS only if it is used."""

from __future__ import annotations

import pytest

from tests.providers.http.asking import REQUEST, ask, text_of
from tests.providers.http.test_answers import RAIN, spec_of
from tests.providers.server import CUT, Answer, Server, said
from tests.providers.server.script import RESET, Piece, Request
from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.model import ModelError, http_request_of


@pytest.mark.parametrize("end", [CUT, RESET], ids=["closed", "reset"])
async def test_a_kept_connection_that_is_closed_at_the_next_request_is_replaced(end: Piece) -> None:
    def script(request: Request) -> Answer:
        is_second = len([each for each in server.requests if each.connection == request.connection]) > 1
        return Answer(before=(end,)) if is_second else said("openai", RAIN)

    endpoints = Endpoints(Secrets())
    with Server(script) as server:
        for _ in range(3):
            assert text_of(await ask(spec_of(server, "openai"), endpoints=endpoints)) == RAIN
        await endpoints.close()
    assert [request.connection for request in server.requests] == [1, 1, 2, 2, 3]


async def test_a_server_that_closes_after_each_answer_without_saying_so_is_asked_anew() -> None:
    whole = b"".join(piece for piece in said("openai", RAIN).pieces if isinstance(piece, bytes))
    endpoints = Endpoints(Secrets())
    with Server(lambda _: Answer((whole, CUT), framing="length")) as server:
        for _ in range(5):
            assert text_of(await ask(spec_of(server, "openai"), endpoints=endpoints)) == RAIN
        await endpoints.close()
    assert len(server.requests) == 5


async def test_a_new_connection_that_is_closed_is_an_error_without_a_word_of_tls() -> None:
    with Server(lambda _: Answer(before=(CUT,))) as server, pytest.raises(ModelError) as raised:
        await ask(spec_of(server, "openai"))
    assert raised.value.retryable
    assert str(raised.value).endswith("closed the connection before it answered")
    assert len(server.requests) == 1


async def test_an_alert_of_tls_is_recognised() -> None:
    alert = bytes.fromhex("15030100020246")
    with (
        Server(lambda _: Answer(before=(alert, CUT))) as server,
        pytest.raises(ModelError, match=r"expects TLS: write https:// in base_url"),
    ):
        await ask(spec_of(server, "openai"))


async def test_a_shown_request_names_the_variables_of_its_query_and_headers() -> None:
    query, headers = {"sig": "${SIG}", "team": "a b"}, {"x-key": "id $SIG"}
    spec = ModelSpec("m", "openai", "m", "http://127.0.0.1:9/v1", query=query, headers=headers)
    endpoints = Endpoints(Secrets())
    shown = await http_request_of(endpoints.open(spec, {"SIG": "sig-of-mine-4711"}), REQUEST)
    await endpoints.close()
    assert shown is not None and shown.url == "http://127.0.0.1:9/v1/chat/completions?sig=${SIG}&team=a%20b"
    assert dict(shown.headers)["x-key"] == "id $SIG"
    assert "sig-of-mine" not in repr(shown)
