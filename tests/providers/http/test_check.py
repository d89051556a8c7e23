"""What `workbench models --check` finds out about an endpoint."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.providers.server import (
    APIS,
    HANG,
    Answer,
    Api,
    Pause,
    Server,
    base_url_of,
    document,
    error_document,
    models_document,
    page,
    serve,
)
from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.http.checks import CheckResult
from workbench.providers.http.endpoints import Endpoints

WRONG_KEY = document(error_document("openai", "no such key sk-of-mine-0123456789"), 401)


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> Api:
    found: Api = request.param
    return found


def spec_of(server: Server, api: Api) -> ModelSpec:
    return ModelSpec("m", api, "test-model", base_url_of(server, api), "MY_KEY", read_timeout_s=20.0)


async def check(spec: ModelSpec, **environment: str) -> CheckResult:
    endpoints = Endpoints(Secrets())
    try:
        return await endpoints.check(spec, {"MY_KEY": "sk-of-mine-0123456789", **environment})
    finally:
        await endpoints.close()


async def test_a_model_that_is_listed_is_there(api: Api) -> None:
    with serve() as server:
        assert await check(spec_of(server, api)) == CheckResult(
            True, f"{base_url_of(server, api)} answers and has test-model", answers=True
        )
        assert server.requests == []
        assert server.listings[0].headers["authorization"] == "Bearer sk-of-mine-0123456789"


async def test_a_model_that_is_only_known_by_another_name_is_there(api: Api) -> None:
    with serve(document({"id": "test-model"}), models=document(models_document("test-model:latest"))) as server:
        assert (await check(spec_of(server, api))).ok
        assert server.requests[0].path.endswith("/models/test-model")


async def test_a_model_that_is_not_there_is_told_with_some_that_are(api: Api) -> None:
    listing = models_document(*(f"model-{number}" for number in range(9)))
    with serve(document({}, 404), models=document(listing)) as server:
        result = await check(spec_of(server, api))
    assert not result.ok
    assert (
        "has no model 'test-model': it lists model-0, model-1, model-2, model-3, model-4 and 4 more" in result.sentence
    )


@pytest.mark.parametrize("status", [404, 405, 501])
async def test_an_endpoint_that_only_lists_no_models_counts_as_good(status: int, api: Api) -> None:
    with serve(models=document({}, status)) as server:
        result = await check(spec_of(server, api))
    assert result.ok
    assert "answers, but lists no models: key and model name are unchecked" in result.sentence


async def test_an_endpoint_with_nothing_at_the_path_is_doubtful() -> None:
    with serve(models=document({}, 404)) as server:
        result = await check(replace(spec_of(server, "openai"), base_url=f"{server.url}/api"))
    assert (result.ok, result.mark) == (False, "?")
    assert f"did you mean {server.url}/api/v1 as base_url?" in result.sentence


async def test_a_listing_that_misses_the_model_by_its_status_is_doubtful() -> None:
    missing = document({"error": {"message": "no model test-model", "code": "model_not_found"}}, 404)
    with serve(models=missing) as server:
        result = await check(spec_of(server, "openai"))
    assert (result.ok, result.mark) == (False, "?")
    assert "has no model 'test-model'" in result.sentence


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (WRONG_KEY, "does not accept the key in MY_KEY (401: no such key $MY_KEY)"),
        (document({}, 500), "failed (500: {})"),
        (page("<html>Hello</html>"), "answers, but not as a model API does: correct base_url"),
        (document({"data": "none"}), "answers, but not as a model API does"),
        (Answer((HANG,)), "was silent for 0.2 s"),
    ],
    ids=["key", "failure", "page", "no listing", "silence"],
)
async def test_what_is_wrong_is_told_in_one_sentence(answer: Answer, sentence: str, api: Api) -> None:
    with serve(models=answer) as server:
        result = await check(replace(spec_of(server, api), read_timeout_s=0.2))
    assert not result.ok
    assert sentence in result.sentence


async def test_a_listing_that_comes_to_no_end_is_told(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.providers.http.checks.CHECK_TIMEOUT_S", 0.3)
    endless = Answer((b'{"data": [', *(b" ", Pause(0.02)) * 10_000), headers={})
    with serve(models=endless) as server:
        result = await check(spec_of(server, api))
    assert not result.ok
    assert "did not finish within 0.3 s" in result.sentence


async def test_nobody_there_and_no_key_are_told(api: Api) -> None:
    with serve() as server:
        spec = spec_of(server, api)
    refused = await check(spec)
    assert refused.mark == "✗"
    assert "refuses connections" in refused.sentence
    assert "m needs a key, and MY_KEY is empty: give it a value" in (await check(spec, MY_KEY="")).sentence
    assert "m needs a key, and OTHER is not set" in (await check(replace(spec, api_key_env="OTHER"))).sentence


async def test_a_proxy_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve() as server:
        gone = server.url
    monkeypatch.setenv("HTTP_PROXY", gone.replace("http://", "http://me:hidden@"))
    for name in ("http_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    result = await check(ModelSpec("m", "openai", "m", "http://models.test/v1"))
    place = gone.removeprefix("http://")
    assert f"http://models.test/v1 cannot be reached: its proxy {place} refuses connections" in result.sentence
    assert "hidden" not in result.sentence
