"""Refusals of clouds in words: what each of them means by its statuses, codes and messages, and the way out.

https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html
https://learn.microsoft.com/azure/ai-foundry/openai/quotas-limits
https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/api-errors
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from workbench.config.models import ModelSpec
from workbench.providers.wire.wire import as_dict


class CloudRefusal(NamedTuple):
    """The predicate of a sentence about the endpoint, whose `{why}` is the cloud's own message.

    `retryable` is `None` if the status decides that."""

    sentence: str
    retryable: bool | None = None


def refusal_of(spec: ModelSpec, status: int, headers: Mapping[str, str], body: str) -> CloudRefusal | None:
    """Return the meaning of a refusal of a model's cloud; `None` if it means what its status means everywhere.

    `headers` have names in lower case."""
    code = headers.get("x-amzn-errortype", "").partition(":")[0]
    said = f"{code} {body}".lower()
    match spec.cloud_name:
        case "azure":
            return _azure(spec, status, said, body)
        case "bedrock":
            return _bedrock(spec, status, said)
        case "vertex":
            return _vertex(spec, status, said)
    return None


def _azure(spec: ModelSpec, status: int, said: str, body: str) -> CloudRefusal | None:
    if status in (400, 403) and ("content_filter" in said or "responsibleaipolicyviolation" in said):
        by = " and ".join(_filters(body))
        of = f" ({by})" if by else ""
        return CloudRefusal(
            f"refused the request by its content filter{of} {{why}}: reword the case, or let the deployment have"
            " another content filter",
            False,
        )
    if status == 404 and "deploymentnotfound" in said:
        return CloudRefusal(
            f"has no deployment {spec.model!r} {{why}}: write the deployment's name as model, or wait until a new one"
            " is ready"
        )
    if status == 404 and spec.cloud is not None:
        return CloudRefusal(
            f"has no such address {{why}}: correct resource, api ({spec.cloud.api}) or api_version"
            f" ({spec.cloud.api_version})"
        )
    if status in (401, 403) and "authenticationtypedisabled" in said:
        return CloudRefusal(
            "takes no keys {why}: write credentials = \"default\" in place of api_key_env, and run 'az login'"
        )
    if status == 403 and ("firewall" in said or "virtual network" in said or "public access is disabled" in said):
        return CloudRefusal("is closed to this network {why}: look at the network settings of the resource")
    if status in (401, 403) and spec.api_key_env is None:
        return CloudRefusal(
            "does not let this identity of Entra ID in {why}: give it the role 'Cognitive Services OpenAI User' or"
            " 'Azure AI User' of the resource, or run 'az login' with another tenant"
        )
    if status == 429 and "quota" in said and "retry" not in said:
        return CloudRefusal("has no quota left {why}: raise the quota of the deployment in Azure", False)
    return None


def _filters(body: str) -> Iterator[str]:
    """Yield the names of the content filters that an error of Azure reports."""
    try:
        error = as_dict(as_dict(json.loads(body)).get("error"))
    except (ValueError, RecursionError):
        return
    for inner in (as_dict(error.get("innererror")), error):
        for name, result in as_dict(inner.get("content_filter_result")).items():
            if as_dict(result).get("filtered") is True:
                yield re.sub(r"[^\w -]", "", str(name))[:40]


def _bedrock(spec: ModelSpec, status: int, said: str) -> CloudRefusal | None:
    region = spec.place.region if spec.place is not None else ""
    if status == 400 and "on-demand throughput" in said:
        return CloudRefusal(
            f"offers {spec.model} only by an inference profile {{why}}: write us., eu., apac. or global. before the"
            " model's name, as its profile has it"
        )
    if status in (400, 404) and (
        "model identifier is invalid" in said or "could not resolve the foundation model" in said
    ):
        return CloudRefusal(f"has no model {spec.model!r} in {region} {{why}}: correct model or region")
    if status == 404:
        return CloudRefusal(
            f"has no model {spec.model!r} {{why}}: correct model or region, or ask for access to it in the console"
        )
    if status in (400, 401, 403) and ("expiredtoken" in said or ("token" in said and "expired" in said)):
        return CloudRefusal(f"says that the credentials are expired {{why}}: {_renewal(spec)}")
    if status in (401, 403) and ("signature" in said or "unrecognizedclient" in said or "security token" in said):
        return CloudRefusal(f"does not accept {_credentials(spec)} {{why}}: correct them, or the clock of this machine")
    if status in (401, 403) and "api key" in said and spec.api_key_env is not None:
        return None
    if status == 403:
        return CloudRefusal(
            f"does not let {_credentials(spec)} use {spec.model} {{why}}: ask for access to the model in the console,"
            " allow bedrock:InvokeModelWithResponseStream to the role, or correct region"
        )
    if status == 429 and "per day" in said:
        return CloudRefusal("has no tokens left for today {why}: raise the quota in Service Quotas", False)
    if "servicequotaexceeded" in said:
        return CloudRefusal("has no quota left {why}: raise the quota in Service Quotas", False)
    if status == 424:
        return CloudRefusal("failed within the model {why}: try again later", True)
    return None


def _renewal(spec: ModelSpec) -> str:
    place = spec.place
    if spec.api_key_env is not None:
        return f"put another one into {spec.api_key_env}"
    if place is not None and place.source.kind == "AWS keys":
        return "put others into AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
    if place is not None and place.source.profile:
        return f"run 'aws sso login --profile {place.source.profile}'"
    return "run 'aws sso login'"


def _credentials(spec: ModelSpec) -> str:
    if spec.api_key_env is not None:
        return f"the key in {spec.api_key_env}"
    return spec.credentials.partition(",")[0]


def _vertex(spec: ModelSpec, status: int, said: str) -> CloudRefusal | None:
    place = spec.place
    where = ""
    if place is not None:
        where = f"in {place.region}"
        if place.project:
            where = f"in {place.region} for the project {place.project}"
    if status == 401:
        if spec.api_key_env is not None:
            return CloudRefusal(f"does not accept the token in {spec.api_key_env} {{why}}: put a new one there")
        return CloudRefusal("does not accept the Google credentials {why}: run 'gcloud auth application-default login'")
    if status == 403 and ("service_disabled" in said or "has not been used in project" in said):
        return CloudRefusal("is not enabled {why}: enable the Vertex AI API in the project")
    if status == 403 and "billing" in said:
        return CloudRefusal("wants billing {why}: enable billing for the project")
    if status == 403:
        return CloudRefusal(
            f"does not let {_credentials(spec)} use {spec.model} {{why}}: give them the role 'Vertex AI User'"
            " (roles/aiplatform.user) of the project, and enable the model in Model Garden"
        )
    if status == 404:
        return CloudRefusal(
            f"has no model {spec.model!r} {where} {{why}}: correct model, region or project, or enable the model in"
            " Model Garden"
        )
    if status == 429 and "quota" in said:
        return CloudRefusal(
            "has a quota that is used up, or that is 0 as for every new model {why}: lower requests_per_minute, or"
            " request quota for the model in the console"
        )
    return None
