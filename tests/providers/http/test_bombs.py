"""A body that is small on the wire and unpacks to hundreds of megabytes is read up to a limit and no further."""

from __future__ import annotations

import pytest

from tests.compression_bombs import gzipped
from tests.providers.http.asking import ask
from tests.providers.http.test_answers import spec_of
from tests.providers.http.test_check import check
from tests.providers.server import APIS, Answer, Api, serve
from workbench.exchange.observed.wire_formats import Decompressor
from workbench.providers.model import ModelError

JSON = b'{"data":"'
TOO_MUCH = "the model sent too much: more than 32 MiB in one answer"


def answer(kind: str, status: int = 200, first: bytes = JSON) -> Answer:
    return Answer((gzipped(first, b"x"),), status, {"content-type": kind, "content-encoding": "gzip"}, "length")


@pytest.mark.parametrize("api", APIS[:1])
@pytest.mark.parametrize(
    ("kind", "status", "first", "why"),
    [
        ("application/json", 200, JSON, TOO_MUCH),
        ("text/event-stream", 200, b"data: ", TOO_MUCH),
        ("application/json", 400, JSON, "400"),
    ],
)
async def test_an_answer_that_unpacks_to_too_much_ends_at_the_limit(
    api: Api, kind: str, status: int, first: bytes, why: str
) -> None:
    with serve(answer(kind, status, first)) as server, pytest.raises(ModelError, match=why):
        await ask(spec_of(server, api))


async def test_a_listing_that_unpacks_to_too_much_ends_at_the_limit() -> None:
    with serve(models=answer("application/json")) as server:
        checked = await check(spec_of(server, APIS[0]))
        assert checked.sentence.endswith("sends more than 16 MiB as its list of models: correct base_url")


def test_what_the_proxy_reads_of_an_answer_ends_at_the_limit() -> None:
    with pytest.raises(ValueError, match="unpacks to more than 64 MiB"):
        Decompressor("gzip").feed(gzipped(JSON, b"x"))
