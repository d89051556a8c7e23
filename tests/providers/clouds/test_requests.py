"""Requests to clouds: address, credentials and body as each cloud wants them, and nothing of the environment."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pytest

from tests.providers.clouds.asking import AWS_KEYS, answer_for, calls_in, cloud_spec
from tests.providers.clouds.frames import frames_of, streamed
from tests.providers.clouds.signatures import is_signed
from tests.providers.http.asking import REQUEST, ask, text_of
from tests.providers.server import CUT, Answer, Call, document, serve
from workbench.config.secrets import Secrets
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.model import HttpModel

PLANTED = "planted-trap-0123456789"
EVIL = f"http://127.0.0.1:1/{PLANTED}"
HEADERS = f"X-Mine: {PLANTED}\nAuthorization: Bearer {PLANTED}\nUser-Agent: {PLANTED}\napi-key: {PLANTED}"
TRAPS = {
    **dict.fromkeys(("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"), PLANTED),
    **dict.fromkeys(("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"), PLANTED),
    **dict.fromkeys(("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN", "ANTHROPIC_FOUNDRY_API_KEY"), PLANTED),
    **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"), PLANTED),
    **dict.fromkeys(("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "AZURE_OPENAI_ENDPOINT"), EVIL),
    **dict.fromkeys(("ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL", "AWS_BEDROCK_BASE_URL"), EVIL),
    **dict.fromkeys(("ANTHROPIC_VERTEX_BASE_URL", "ANTHROPIC_FOUNDRY_BASE_URL", "ANTHROPIC_AWS_API_KEY"), EVIL),
    **dict.fromkeys(("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"), HEADERS),
    **dict.fromkeys(("OPENAI_LOG", "ANTHROPIC_LOG"), "debug"),
    "AWS_REGION": "eu-central-1",
    "OPENAI_API_VERSION": "2001-01-01",
}
KEY = "planted-own-key-0123456789"
TRAVELS = {
    *("accept", "accept-encoding", "authorization", "api-key", "anthropic-version", "content-length", "content-type"),
    *("host", "user-agent", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token", "x-api-key"),
}

SIGNED = 'provider = "bedrock"\ncredentials = "default"\nregion = "us-east-1"'
KEYED = 'provider = "{}"\napi_key_env = "MY_KEY"'
DATED = 'api_version = "2025-04-01-preview"'

# The settings, the API, the path, and how the request shows who asks: headers with the key, or the service that a
# signature is for.
WAYS = [
    (KEYED.format("azure"), "chat", "/openai/v1/chat/completions", ["authorization"]),
    (KEYED.format("azure"), "responses", "/openai/v1/responses", ["authorization"]),
    (KEYED.format("azure"), "messages", "/anthropic/v1/messages", ["x-api-key", "api-key"]),
    (
        f"{KEYED.format('azure')}\n{DATED}",
        "chat",
        "/openai/deployments/us.x:my%20model/chat/completions?api-version=2025-04-01-preview",
        ["api-key"],
    ),
    (f"{KEYED.format('azure')}\n{DATED}", "responses", "/openai/responses?api-version=2025-04-01-preview", ["api-key"]),
    (KEYED.format("bedrock"), "messages", "/model/us.x:my%20model/invoke-with-response-stream", ["authorization"]),
    (f'{KEYED.format("bedrock")}\nendpoint = "mantle"', "messages", "/anthropic/v1/messages", ["authorization"]),
    (KEYED.format("bedrock"), "chat", "/openai/v1/chat/completions", ["authorization"]),
    (SIGNED, "messages", "/model/us.x:my%20model/invoke-with-response-stream", "bedrock"),
    (f'{SIGNED}\nendpoint = "mantle"', "messages", "/anthropic/v1/messages", "bedrock-mantle"),
    (SIGNED, "chat", "/openai/v1/chat/completions", "bedrock"),
    (SIGNED, "responses", "/openai/v1/responses", "bedrock"),
    (f'{SIGNED}\nendpoint = "mantle"', "chat", "/openai/v1/chat/completions", "bedrock-mantle"),
    (
        f'{KEYED.format("vertex")}\nproject = "my-project"',
        "messages",
        "/v1/projects/my-project/locations/global/publishers/anthropic/models/us.x:my%20model:streamRawPredict",
        ["authorization"],
    ),
    (
        f'{KEYED.format("vertex")}\nproject = "my-project"\nregion = "us-east5"',
        "chat",
        "/v1/projects/my-project/locations/us-east5/endpoints/openapi/chat/completions",
        ["authorization"],
    ),
]


@pytest.mark.parametrize(("settings", "api", "path", "shown_by"), WAYS)
async def test_each_cloud_gets_its_own_request(
    settings: str,
    api: str,
    path: str,
    shown_by: list[str] | str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name, value in TRAPS.items():
        monkeypatch.setenv(name, value)
    if not isinstance(shown_by, str):
        # A key needs none of the extras.
        for module in ("boto3", "botocore", "google.auth", "azure.identity"):
            monkeypatch.setitem(sys.modules, module, None)
    binary = "invoke-with" in path
    call = Call("get_weather", {"city": "Zürich", "days": 3})
    environment = {"MY_KEY": KEY, **AWS_KEYS}
    caplog.set_level(logging.DEBUG)
    with serve(answer_for(api, "Looking.", call, binary=binary)) as server:
        spec = cloud_spec(server, tmp_path, f'{settings}\napi = "{api}"\nmodel = "us.x:my model"', environment)
        answer = await ask(spec, environment)
    (request,) = server.requests
    assert text_of(answer) == "Looking."
    assert {tool: json.loads(text) for tool, text in calls_in([*answer]).items()} == {"get_weather": call.arguments}

    assert request.path == path
    assert set(request.headers) <= TRAVELS
    assert request.headers["user-agent"].startswith("toolcall-workbench/")
    assert request.headers["accept-encoding"] == "identity"
    if isinstance(shown_by, str):
        assert is_signed(request, AWS_KEYS["AWS_SECRET_ACCESS_KEY"], "us-east-1", shown_by)
        assert request.headers["x-amz-security-token"] == AWS_KEYS["AWS_SESSION_TOKEN"]
    else:
        assert [name for name, value in request.headers.items() if KEY in value] == shown_by
    assert PLANTED not in str(request)
    assert PLANTED not in caplog.text
    assert KEY not in caplog.text
    assert "Weather in Oslo" not in caplog.text

    if api == "messages":
        own = {"model", "stream", "anthropic_version"} & set(request.json)
        expected = {"model", "stream"}
        if binary:
            expected = {"anthropic_version"}
        elif "vertex" in settings:
            expected = {"anthropic_version", "stream"}
        assert own == expected


async def test_the_version_in_bodies_is_that_of_the_sdk() -> None:
    from anthropic._constants import ANTHROPIC_API_VERSION

    from workbench.providers.wire.messages import ANTHROPIC_VERSION

    assert ANTHROPIC_VERSION == ANTHROPIC_API_VERSION


async def test_a_request_is_shown_without_its_credentials(tmp_path: Path) -> None:
    environment = {"MY_KEY": KEY, **AWS_KEYS}
    shown = []
    with serve() as server:
        for settings in (KEYED.format("bedrock"), SIGNED, f"{KEYED.format('azure')}\n{DATED}"):
            spec = cloud_spec(server, tmp_path, f'{settings}\nmodel = "x"', environment)
            endpoints = Endpoints(Secrets())
            model = endpoints.open(spec, environment)
            assert isinstance(model, HttpModel)
            request = await model.http_request(REQUEST)
            assert request is not None
            shown.append(f"{request.url.removeprefix(server.url)} {dict(request.headers)}")
            await endpoints.close()
    assert "/model/x/invoke-with-response-stream" in shown[0]
    assert "'authorization': 'Bearer $MY_KEY'" in shown[0]
    assert "'authorization': '…'" in shown[1]
    assert "/openai/deployments/x/chat/completions?api-version=2025-04-01-preview" in shown[2]
    assert "'api-key': '$MY_KEY'" in shown[2]
    assert "planted" not in str(shown)
    assert not server.requests


async def test_each_attempt_has_a_signature_of_its_own_and_a_closed_connection_is_signed_again(tmp_path: Path) -> None:
    answers = [
        streamed(*frames_of("One.")),
        Answer((CUT,), framing="close", before=(CUT,)),
        streamed(*frames_of("Two.")),
    ]
    with serve(*answers) as server:
        spec = cloud_spec(server, tmp_path, f'{SIGNED}\nmodel = "x"', AWS_KEYS)
        endpoints = Endpoints(Secrets())
        assert text_of(await ask(spec, AWS_KEYS, endpoints)) == "One."
        # The server closes the connection that it kept open, so the request is sent once more on another one.
        assert text_of(await ask(spec, AWS_KEYS, endpoints)) == "Two."
        await endpoints.close()
    assert len(server.requests) == 3
    for request in server.requests:
        assert is_signed(request, AWS_KEYS["AWS_SECRET_ACCESS_KEY"], "us-east-1", "bedrock")


@pytest.mark.parametrize("model", ["..", ".", ";x"])
async def test_a_name_of_a_model_cannot_leave_its_place_in_the_address(tmp_path: Path, model: str) -> None:
    with serve() as server:
        spec = cloud_spec(server, tmp_path, f'{KEYED.format("bedrock")}\nmodel = "{model}"', {"MY_KEY": KEY})
        endpoints = Endpoints(Secrets())
        checked = await endpoints.check(spec, {"MY_KEY": KEY})
        await endpoints.close()
    assert not checked.ok
    assert "cannot send requests to m" in checked.sentence


async def test_a_check_finds_credentials_and_the_address_without_asking_the_model(tmp_path: Path) -> None:
    endpoints = Endpoints(Secrets())
    with serve(document({"message": "no"}, 403)) as server:
        spec = cloud_spec(server, tmp_path, f'{SIGNED}\nmodel = "x"', AWS_KEYS)
        checked = await endpoints.check(spec, AWS_KEYS)
        assert (checked.mark, checked.took_ms is not None) == ("✓", True)
        assert f"{server.url} answers, and credentials were found: the first run shows whether x" in checked.sentence
    (request,) = server.requests
    assert (request.method, "authorization" in request.headers) == ("GET", False)
    gone = await endpoints.check(spec, AWS_KEYS)
    assert "refuses connections" in gone.sentence
    nothing = await endpoints.check(cloud_spec(server, tmp_path, f"{KEYED.format('azure')}", {}), {})
    assert "MY_KEY is not set" in nothing.sentence
    await endpoints.close()
