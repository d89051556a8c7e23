"""Connects to Amazon Bedrock: to Claude with signed requests and binary event streams, and to OpenAI's APIs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from workbench.config.models import ModelSpec
from workbench.providers.clouds.credentials import (
    AwsKeys,
    CredentialStore,
    KeySource,
    RenewableCredentials,
    missing_extra,
)
from workbench.providers.clouds.signing import Bearer, Sdk, capturing_client
from workbench.providers.model import ModelError

_UNUSED = "unused"
"""A placeholder for credentials in the constructors of SDKs, which would otherwise search the environment."""

_PATHS = {"messages": "/v1/messages", "chat": "/chat/completions", "responses": "/responses"}


async def connect(
    spec: ModelSpec, key: KeySource | None, environment: Mapping[str, str], store: CredentialStore
) -> Sdk:
    """Return a client of the SDK for a model at Bedrock.

    `key` returns the bearer key; it is `None` for signed requests. `environment` are the environment variables with the
    credentials for signing. Raises ModelError."""
    if key is not None:
        bearer = Bearer(key)
        await bearer.renew()
        make_by_key = _anthropic_by_key if spec.api == "messages" else _openai_by_key
        return await asyncio.to_thread(make_by_key, spec, bearer)
    credentials = _credentials(spec, environment, store)
    await credentials.current()
    make = _anthropic_by_signature if spec.api == "messages" else _openai_by_signature
    return await asyncio.to_thread(make, spec, credentials)


def _of_anthropic(spec: ModelSpec) -> dict[str, Any]:
    assert spec.place is not None
    return {
        "base_url": spec.base_url,
        "aws_region": spec.place.region or _UNUSED,
        "http_client": capturing_client(),
        "max_retries": 0,
        "open_telemetry": False,
    }


def _anthropic_by_key(spec: ModelSpec, bearer: Bearer) -> Sdk:
    import anthropic

    assert spec.cloud is not None
    kind = (
        anthropic.AsyncAnthropicBedrock if spec.cloud.endpoint == "runtime" else anthropic.AsyncAnthropicBedrockMantle
    )
    client = kind(api_key=bearer.value, **_of_anthropic(spec))

    async def renew() -> None:
        await bearer.renew()
        client.api_key = bearer.value

    return Sdk(client, _PATHS[spec.api], renew, anthropic.omit, (anthropic.AnthropicError,))


def _anthropic_by_signature(spec: ModelSpec, credentials: RenewableCredentials[AwsKeys]) -> Sdk:
    import anthropic

    assert spec.cloud is not None
    client: anthropic.AsyncAnthropicBedrock | anthropic.AsyncAnthropicBedrockMantle
    if spec.cloud.endpoint == "runtime":
        # Without a key, the constructor would read AWS_BEARER_TOKEN_BEDROCK, and raise an error if there are other
        # credentials too.
        client = anthropic.AsyncAnthropicBedrock(api_key=_UNUSED, **_of_anthropic(spec))
        client.api_key = None
    else:
        client = anthropic.AsyncAnthropicBedrockMantle(
            aws_access_key=_UNUSED, aws_secret_key=_UNUSED, **_of_anthropic(spec)
        )

    async def renew() -> None:
        keys = await credentials.current()
        client.aws_access_key, client.aws_secret_key = keys.access_key, keys.secret_key
        client.aws_session_token = keys.session_token

    errors: tuple[type[Exception], ...] = (anthropic.AnthropicError, *_aws_errors())
    return Sdk(client, _PATHS[spec.api], renew, anthropic.omit, errors, credentials)


def _openai_by_key(spec: ModelSpec, bearer: Bearer) -> Sdk:
    return _of_openai(spec, bearer.renew, None, token_provider=bearer)


def _openai_by_signature(spec: ModelSpec, credentials: RenewableCredentials[AwsKeys]) -> Sdk:
    latest = _SigningKeys()

    async def renew() -> None:
        keys = await credentials.current()
        latest.access_key, latest.secret_key, latest.token = keys.access_key, keys.secret_key, keys.session_token

    return _of_openai(spec, renew, credentials, credential_provider=lambda: latest)


def _of_openai(
    spec: ModelSpec, renew: Callable[[], Awaitable[None]], credentials: RenewableCredentials[AwsKeys] | None, **how: Any
) -> Sdk:
    import openai
    from openai.providers import bedrock

    assert spec.cloud is not None
    assert spec.place is not None
    region = spec.place.region or None
    provider = bedrock(endpoint=spec.cloud.endpoint, region=region, base_url=spec.base_url, **how)
    client = openai.AsyncOpenAI(provider=provider, http_client=capturing_client(), max_retries=0)
    return Sdk(client, _PATHS[spec.api], renew, openai.Omit(), (openai.OpenAIError,), credentials)


def _aws_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that AWS's library may raise while it signs; empty if the library is not installed."""
    try:
        from botocore.exceptions import BotoCoreError
    except ImportError:
        return ()
    return (BotoCoreError,)


class _SigningKeys:
    """The credentials for the next signature, as the attributes that botocore reads."""

    access_key = _UNUSED
    secret_key = _UNUSED
    token: str | None = None


def _credentials(
    spec: ModelSpec, environment: Mapping[str, str], store: CredentialStore
) -> RenewableCredentials[AwsKeys]:
    assert spec.place is not None
    source = spec.place.source

    def fetch() -> AwsKeys:
        try:
            import boto3  # noqa: F401 (the SDKs sign with it)
            from botocore.exceptions import BotoCoreError, ClientError
            from botocore.session import Session
        except ImportError:
            raise missing_extra(spec, "boto3") from None
        if source.kind == "AWS keys":
            access_key, secret_key, token = (environment.get(name) for name in source.variables)
            return AwsKeys(access_key or "", secret_key or "", token or None)
        try:
            # A new session reads the files of profiles again, because they may have changed.
            found = Session(profile=source.profile).get_credentials()
            frozen = found.get_frozen_credentials() if found is not None else None
        except (BotoCoreError, ClientError) as error:
            raise ModelError(_why(error, source.profile)) from error
        if frozen is None:
            raise ModelError(
                "no AWS credentials are found: run 'aws configure' or 'aws sso login', or set AWS_ACCESS_KEY_ID and"
                " AWS_SECRET_ACCESS_KEY"
            )
        expiry = getattr(found, "_expiry_time", None)
        expires_s = expiry.timestamp() if expiry is not None else None
        return AwsKeys(frozen.access_key, frozen.secret_key, frozen.token, expires_s)

    return store.get(source, tuple(environment.values()), fetch, _secrets_in)


def _secrets_in(keys: AwsKeys) -> Mapping[str, str]:
    found = {"AWS_ACCESS_KEY_ID": keys.access_key, "AWS_SECRET_ACCESS_KEY": keys.secret_key}
    if keys.session_token:
        found["AWS_SESSION_TOKEN"] = keys.session_token
    return found


def _why(error: Exception, profile: str | None) -> str:
    of_profile = f" --profile {profile}" if profile else ""
    whose = f"AWS profile {profile}" if profile else "the AWS default credentials"
    # Failures are distinguished by the names of their classes, because older versions of the library lack some of these
    # classes.
    kind = type(error).__name__
    if kind == "ProfileNotFound":
        return f"there is no AWS profile {profile}: correct profile or AWS_PROFILE, or run 'aws configure{of_profile}'"
    if kind.startswith("Login"):
        return f"the sign-in of {whose} has expired: run 'aws login{of_profile}'"
    if "SSO" in kind or "Token" in kind:
        return f"the sign-in of {whose} has expired: run 'aws sso login{of_profile}'"
    return f"{whose} cannot be used: {error}"
