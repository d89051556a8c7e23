"""Connects to Azure OpenAI (its v1 and dated APIs) and to Claude in Foundry, with a key or Entra ID."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from workbench.config.clouds import V1
from workbench.config.models import ModelSpec
from workbench.providers.clouds.credentials import (
    CredentialStore,
    KeySource,
    RenewableCredentials,
    Token,
    missing_extra,
    token_of,
)
from workbench.providers.clouds.signing import Bearer, Sdk, capturing_client
from workbench.providers.model import ModelError

_PATHS = {"chat": "/chat/completions", "responses": "/responses", "messages": "/v1/messages"}


async def connect(
    spec: ModelSpec, key: KeySource | None, environment: Mapping[str, str], store: CredentialStore
) -> Sdk:
    """Return a client of the SDK for a deployment at Azure.

    `key` returns the key of the Azure resource; it is `None` for Entra ID. `environment` are the environment variables
    with the credentials of an Entra ID application. Raises ModelError."""
    if key is not None:
        bearer, credentials = Bearer(key), None
    else:
        credentials = _credentials(spec, environment, store)
        bearer = Bearer(partial(token_of, credentials))
    await bearer.renew()
    make = _of_anthropic if spec.api == "messages" else _of_openai
    return await asyncio.to_thread(make, spec, bearer, credentials)


def _of_anthropic(spec: ModelSpec, bearer: Bearer, credentials: RenewableCredentials[Token] | None) -> Sdk:
    import anthropic

    client: Any
    common: dict[str, Any] = {"base_url": spec.base_url, "http_client": capturing_client(), "max_retries": 0}
    if credentials is not None:
        client = anthropic.AsyncAnthropicFoundry(azure_ad_token_provider=bearer, open_telemetry=False, **common)
    else:
        client = anthropic.AsyncAnthropicFoundry(api_key=bearer.value, open_telemetry=False, **common)

    async def renew() -> None:
        await bearer.renew()
        if credentials is None:
            client.api_key = bearer.value

    return Sdk(client, _PATHS[spec.api], renew, anthropic.omit, (anthropic.AnthropicError,), credentials)


def _of_openai(spec: ModelSpec, bearer: Bearer, credentials: RenewableCredentials[Token] | None) -> Sdk:
    import openai

    assert spec.cloud is not None
    client: Any
    common: dict[str, Any] = {"base_url": spec.base_url, "http_client": capturing_client(), "max_retries": 0}
    if spec.cloud.api_version == V1:
        client = openai.AsyncOpenAI(api_key=bearer, **common)
    elif credentials is not None:
        client = openai.AsyncAzureOpenAI(azure_ad_token_provider=bearer, api_version=spec.cloud.api_version, **common)
    else:
        client = openai.AsyncAzureOpenAI(api_key=bearer, api_version=spec.cloud.api_version, **common)
    return Sdk(client, _PATHS[spec.api], bearer.renew, openai.Omit(), (openai.OpenAIError,), credentials)


def _scope(spec: ModelSpec) -> str:
    country = (urlsplit(spec.base_url).hostname or "").rpartition(".")[2]
    if country in ("us", "cn"):
        return f"https://cognitiveservices.azure.{country}/.default"
    if spec.cloud is not None and spec.api != "messages" and spec.cloud.api_version != V1:
        return "https://cognitiveservices.azure.com/.default"
    return "https://ai.azure.com/.default"


def _credentials(
    spec: ModelSpec, environment: Mapping[str, str], store: CredentialStore
) -> RenewableCredentials[Token]:
    assert spec.place is not None
    source, scope = spec.place.source, _scope(spec)

    def fetch() -> Token:
        try:
            from azure.core.exceptions import AzureError, ClientAuthenticationError
            from azure.identity import ClientSecretCredential, DefaultAzureCredential
        except ImportError:
            raise missing_extra(spec, "azure-identity") from None
        found: Any
        try:
            if source.kind == "Entra secret":
                found = ClientSecretCredential(*(environment[name] for name in source.variables))
            else:
                found = DefaultAzureCredential()
            with found:
                token = found.get_token(scope)
        except ClientAuthenticationError as error:
            remedy = "run 'az login', or set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET"
            raise ModelError(f"Entra ID gave no token: {remedy} ({error.message})") from error
        except (AzureError, ValueError) as error:
            raise ModelError(
                f"Entra ID cannot be asked for a token: {error}", retryable=isinstance(error, AzureError)
            ) from error
        return Token(token.token, float(token.expires_on))

    return store.get(source, (scope, *environment.values()), fetch, _secrets_in)


def _secrets_in(token: Token) -> Mapping[str, str]:
    return {"ENTRA_ACCESS_TOKEN": token.value}
