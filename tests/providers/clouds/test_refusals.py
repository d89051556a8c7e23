"""What clouds refuse with, and the sentence with the right way out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.providers.clouds.asking import AWS_KEYS, cloud_spec
from tests.providers.http.asking import ask
from tests.providers.server import Answer, document, serve
from tests.sampled_rows import first_of
from workbench.providers.model import ModelError

ENVIRONMENT = {"MY_KEY": "planted-own-key-0123456789", **AWS_KEYS}
AZURE = 'provider = "azure"\nmodel = "my-gpt"\napi_key_env = "MY_KEY"'
BY_KEY = 'provider = "bedrock"\nmodel = "anthropic.claude"\napi_key_env = "MY_KEY"\nregion = "us-east-1"'
SIGNED = 'provider = "bedrock"\nmodel = "anthropic.claude"\ncredentials = "default"\nregion = "us-east-1"'
VERTEX = 'provider = "vertex"\nmodel = "claude"\nproject = "p-1"\napi_key_env = "MY_KEY"'


def azure(status: int, code: str, message: str, **more: Any) -> Answer:
    return document({"error": {"code": code, "message": message, **more}}, status, {"apim-request-id": "1"})


def aws(status: int, kind: str, message: str) -> Answer:
    headers = {"x-amzn-errortype": f"{kind}:http://internal.amazon.com/coral/com.amazon.bedrock/"}
    return document({"message": message}, status, headers)


def google(status: int, name: str, message: str) -> Answer:
    return document([{"error": {"code": status, "message": message, "status": name}}], status)


FILTERED = {
    "innererror": {
        "code": "ResponsibleAIPolicyViolation",
        "content_filter_result": {"jailbreak": {"filtered": True, "detected": True}, "hate": {"filtered": False}},
    }
}


@pytest.mark.parametrize(
    ("settings", "answer", "said", "retryable"),
    [
        (
            AZURE,
            azure(400, "content_filter", "The response was filtered.", **FILTERED),
            "refused the request by its content filter (jailbreak) (400: The response was filtered.): reword the case",
            False,
        ),
        (
            AZURE,
            azure(404, "DeploymentNotFound", "The API deployment for this resource does not exist."),
            "has no deployment 'my-gpt' (404: The API deployment for this resource does not exist.): write the deploy",
            False,
        ),
        (
            AZURE,
            azure(404, "404", "Resource not found"),
            "has no such address (404: Resource not found): correct",
            False,
        ),
        (
            AZURE,
            azure(403, "AuthenticationTypeDisabled", "Key based authentication is disabled for this resource."),
            'is disabled for this resource.): write credentials = "default" in place of api_key_env',
            False,
        ),
        (
            AZURE,
            azure(403, "403", "Access denied due to Virtual Network/Firewall rules."),
            "is closed to this network",
            False,
        ),
        (AZURE, azure(401, "401", "Access denied due to invalid subscription key"), "the key in MY_KEY (401", False),
        (
            AZURE,
            azure(429, "429", "Requests have exceeded token rate limit. Please retry after 1 second."),
            "asks for fewer requests (429",
            True,
        ),
        (
            SIGNED,
            aws(
                400,
                "ValidationException",
                "Invocation of model ID anthropic.claude with on-demand throughput isn’t supported.",
            ),
            "offers anthropic.claude only by an inference profile (400",
            False,
        ),
        (
            SIGNED,
            aws(400, "ValidationException", "The provided model identifier is invalid."),
            "in us-east-1 (400",
            False,
        ),
        (
            SIGNED,
            aws(403, "AccessDeniedException", "You don't have access to the model with the specified model ID."),
            "does not let the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY use anthropic.claude (403",
            False,
        ),
        (
            SIGNED,
            aws(403, "ExpiredTokenException", "The security token included in the request is expired"),
            "says that the credentials are expired (403: The security token included in the request is expired): put ",
            False,
        ),
        (
            SIGNED,
            aws(403, "UnrecognizedClientException", "The security token included in the request is invalid."),
            "does not accept the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (403",
            False,
        ),
        (
            SIGNED,
            aws(403, "InvalidSignatureException", "The request signature we calculated does not match"),
            "correct them, or the clock of this machine",
            False,
        ),
        (
            BY_KEY,
            aws(403, "AccessDeniedException", "Authentication failed: Please make sure your API Key is valid."),
            "does not accept the key in MY_KEY (403",
            False,
        ),
        (SIGNED, aws(429, "ThrottlingException", "Too many requests."), "asks for fewer requests (429", True),
        (SIGNED, aws(429, "ThrottlingException", "Too many tokens per day."), "has no tokens left for today", False),
        (SIGNED, aws(400, "ServiceQuotaExceededException", "No."), "raise the quota in Service Quotas", False),
        (SIGNED, aws(424, "ModelErrorException", "The model failed."), "failed within the model (424", True),
        (SIGNED, aws(503, "ServiceUnavailableException", "Busy."), "is overloaded (503: Busy.)", True),
        (SIGNED, aws(404, "ResourceNotFoundException", "No."), "has no model 'anthropic.claude' (404", False),
        (
            VERTEX,
            google(403, "PERMISSION_DENIED", "Permission 'aiplatform.endpoints.predict' denied on resource"),
            "does not let the key in MY_KEY use claude (403",
            False,
        ),
        (
            VERTEX,
            google(403, "PERMISSION_DENIED", "Vertex AI API has not been used in project 1 before or it is disabled."),
            "enable the Vertex AI API in the project",
            False,
        ),
        (VERTEX, google(401, "UNAUTHENTICATED", "invalid credentials"), "the token in MY_KEY (401", False),
        (
            VERTEX,
            google(404, "NOT_FOUND", "Publisher Model `claude` was not found"),
            "has no model 'claude' in global for the project p-1 (404",
            False,
        ),
        (
            VERTEX,
            google(
                429, "RESOURCE_EXHAUSTED", "Quota exceeded for aiplatform.googleapis.com/online_prediction_requests"
            ),
            "lower requests_per_minute, or request quota",
            True,
        ),
    ],
)
async def test_each_refusal_has_the_way_out(
    tmp_path: Path, settings: str, answer: Answer, said: str, retryable: bool
) -> None:
    with serve(answer) as server:
        spec = cloud_spec(server, tmp_path, settings, ENVIRONMENT)
        with pytest.raises(ModelError) as raised:
            await ask(spec, ENVIRONMENT)
        message = str(raised.value)
        assert message.startswith(server.url)
    assert said in message
    assert raised.value.retryable == retryable
    assert "planted" not in message


@pytest.mark.parametrize(
    "body", first_of([{}, [], "{", {"error": []}, {"error": {"innererror": [], "content_filter_result": 1}}], 1)
)
async def test_a_refusal_of_another_shape_is_a_refusal(tmp_path: Path, body: Any) -> None:
    answers = [document(body, status) for status in (400, 401, 403, 404, 429)]
    settings: Mapping[str, str] = {"azure": AZURE, "bedrock": SIGNED, "vertex": VERTEX}
    for written in settings.values():
        with serve(*answers) as server:
            spec = cloud_spec(server, tmp_path, written, ENVIRONMENT)
            for _ in answers:
                with pytest.raises(ModelError, match=server.url):
                    await ask(spec, ENVIRONMENT)


async def test_braces_in_a_refusal_stay_as_they_are(tmp_path: Path) -> None:
    refusal = azure(404, "DeploymentNotFound", "No {why} {0} here.")
    with serve(refusal) as server, pytest.raises(ModelError) as raised:
        await ask(cloud_spec(server, tmp_path, AZURE.replace("my-gpt", "my-{gpt}"), ENVIRONMENT), ENVIRONMENT)
    assert "has no deployment 'my-{gpt}' (404: No {why} {0} here.)" in str(raised.value)
