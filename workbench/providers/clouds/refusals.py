"""Explains errors that clouds return: the meaning of their statuses, codes and messages, and the remedy.

https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html
https://learn.microsoft.com/azure/ai-foundry/openai/quotas-limits
https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/api-errors"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from workbench.config.models import ModelSpec
from workbench.providers.wire.wire import as_dict


class CloudRefusal(NamedTuple):
    """The meaning of an error response of a cloud.

    `predicate` says what happened; the name of the endpoint precedes it in messages. `way_out` is the remedy.
    `retryable` is `None` if the HTTP status decides whether a retry may help."""

    predicate: str
    way_out: str
    retryable: bool | None = None


def refusal_of(spec: ModelSpec, status: int, headers: Mapping[str, str], body: str) -> CloudRefusal | None:
    """Return the meaning of an error response of a model's cloud.

    Returns `None` if the status has the same meaning at this cloud as at other endpoints. The names in `headers` are in
    lower case."""
    code = headers.get("x-amzn-errortype", "").partition(":")[0]
    lowered = f"{code} {body}".lower()
    match spec.cloud_name:
        case "azure":
            return _azure(spec, status, lowered, body)
        case "bedrock":
            return _bedrock(spec, status, lowered)
        case "vertex":
            return _vertex(spec, status, lowered)
    return None


def _azure(spec: ModelSpec, status: int, lower_body: str, body: str) -> CloudRefusal | None:
    if status in (400, 403) and ("content_filter" in lower_body or "responsibleaipolicyviolation" in lower_body):
        by = " and ".join(_filters(body))
        return CloudRefusal(
            f"refused the request by its content filter ({by})" if by else "refused the request by its content filter",
            "reword the case, or let the deployment have another content filter",
            False,
        )
    if status == 404 and "deploymentnotfound" in lower_body:
        return CloudRefusal(
            f"has no deployment {spec.model!r}",
            "write the deployment's name as model, or wait until a new one is ready",
        )
    if status == 404 and spec.cloud is not None:
        version = spec.cloud.api_version
        return CloudRefusal("has no such address", f"correct resource, api ({spec.api}) or api_version ({version})")
    if status in (401, 403) and "authenticationtypedisabled" in lower_body:
        return CloudRefusal(
            "takes no keys", "write credentials = \"default\" in place of api_key_env, and run 'az login'"
        )
    if status == 403 and (
        "firewall" in lower_body or "virtual network" in lower_body or "public access is disabled" in lower_body
    ):
        return CloudRefusal("is closed to this network", "check the network settings of the resource")
    if status in (401, 403) and spec.credentials:
        return CloudRefusal(
            "does not accept this identity of Entra ID",
            "give it the role 'Cognitive Services OpenAI User' or 'Azure AI User' of the resource, or run 'az login'"
            " with another tenant",
        )
    return None


def _filters(body: str) -> Iterator[str]:
    try:
        error = as_dict(as_dict(json.loads(body)).get("error"))
    except (ValueError, RecursionError):
        return
    for inner in (as_dict(error.get("innererror")), error):
        for name, result in as_dict(inner.get("content_filter_result")).items():
            if as_dict(result).get("filtered") is True:
                yield re.sub(r"[^\w -]", "", str(name))[:40]


def _bedrock(spec: ModelSpec, status: int, lower_body: str) -> CloudRefusal | None:
    region = spec.place.region if spec.place is not None else ""
    is_identity = status in (400, 401, 403)
    if status == 400 and "on-demand throughput" in lower_body:
        return CloudRefusal(
            f"offers {spec.model} only by an inference profile",
            "write us., eu., apac. or global. before the model's name, as its profile has it",
        )
    if status in (400, 404) and (
        "model identifier is invalid" in lower_body or "resolve the foundation model" in lower_body
    ):
        return CloudRefusal(f"has no model {spec.model!r} in {region or 'its region'}", "correct model or region")
    if status == 404:
        return CloudRefusal(
            f"has no model {spec.model!r}", "correct model or region, or ask for access to it in the console"
        )
    if is_identity and ("expiredtoken" in lower_body or ("token" in lower_body and "expired" in lower_body)):
        return CloudRefusal("says that the credentials are expired", _renewal(spec))
    if is_identity and (
        "signature" in lower_body or "unrecognizedclient" in lower_body or "security token" in lower_body
    ):
        return CloudRefusal(f"does not accept {_credentials_of(spec)}", "correct them, or the clock of this machine")
    if status in (401, 403) and "api key" in lower_body and not spec.credentials:
        return None
    if status == 403:
        return CloudRefusal(
            f"does not let {_credentials_of(spec)} use {spec.model}",
            "ask for access to the model in the console, grant bedrock:InvokeModelWithResponseStream to the role, or"
            " correct region",
        )
    if status == 429 and "per day" in lower_body:
        return CloudRefusal("has no tokens left for today", "raise the quota in Service Quotas", False)
    if "servicequotaexceeded" in lower_body:
        return CloudRefusal("has no quota left", "raise the quota in Service Quotas", False)
    if status == 424:
        return CloudRefusal("failed within the model", "try again later", True)
    return None


def _renewal(spec: ModelSpec) -> str:
    place = spec.place
    if spec.api_key_env is not None:
        return f"put another key into {spec.api_key_env}"
    if place is not None and place.source.kind == "AWS keys":
        return f"put new credentials into {', '.join(place.source.variables)}"
    if place is not None and place.source.profile:
        return f"run 'aws sso login --profile {place.source.profile}'"
    return "run 'aws sso login'"


def _credentials_of(spec: ModelSpec) -> str:
    """Describe a model's credentials for a message, without the programs that may fetch them."""
    if spec.api_key_env is not None:
        return f"the key in {spec.api_key_env}"
    return spec.credentials.partition(",")[0] or "the key"


def _vertex(spec: ModelSpec, status: int, lower_body: str) -> CloudRefusal | None:
    if status == 401 and spec.api_key_env is not None:
        return CloudRefusal(f"does not accept the token in {spec.api_key_env}", "put a new one there")
    if status == 401 and spec.credentials:
        return CloudRefusal("does not accept the Google credentials", "run 'gcloud auth application-default login'")
    if status == 403 and ("service_disabled" in lower_body or "has not been used in project" in lower_body):
        return CloudRefusal("is not enabled", "enable the Vertex AI API in the project")
    if status == 403 and "billing" in lower_body:
        return CloudRefusal("requires billing", "enable billing for the project")
    if status == 403:
        return CloudRefusal(
            f"does not let {_credentials_of(spec)} use {spec.model}",
            "give them the role 'Vertex AI User' (roles/aiplatform.user) of the project, and enable the model in Model"
            " Garden",
        )
    if status == 404:
        where = ""
        if spec.place is not None:
            where = f" in {spec.place.region}"
            if spec.place.project:
                where += f" for the project {spec.place.project}"
        return CloudRefusal(
            f"has no model {spec.model!r}{where}",
            "correct model, region or project, or enable the model in Model Garden",
        )
    if status == 429 and "quota" in lower_body:
        return CloudRefusal(
            "has a quota that is used up, or that is 0 as for every new model",
            "lower requests_per_minute, or request quota for the model in the console",
        )
    return None
