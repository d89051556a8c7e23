"""Connects to Google Vertex: to Claude by raw predictions, and to Gemini and other models by OpenAI's API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Any

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
from workbench.providers.wire.wire import as_dict

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_LOGIN = "run 'gcloud auth application-default login'"


async def connect(
    spec: ModelSpec, key: KeySource | None, environment: Mapping[str, str], store: CredentialStore
) -> Sdk:
    """Return a client of the SDK for a model at Vertex.

    `key` returns a token. If it is `None`, the environment variables in `environment` name the source of the
    credentials. Raises ModelError."""
    assert spec.place is not None
    project = spec.place.project
    if key is not None:
        bearer, credentials = Bearer(key), None
    else:
        credentials = _credentials(spec, environment, store)
        bearer = Bearer(partial(token_of, credentials))
        # The SDKs need the project for the address, even if the credentials contain it.
        project = project or (await credentials.current()).project
    if not project:
        raise ModelError(f"{spec.name} has no project: write project into workbench.toml, or set GOOGLE_CLOUD_PROJECT")
    await bearer.renew()
    make = _of_anthropic if spec.api == "messages" else _of_openai
    return await asyncio.to_thread(make, spec, project, bearer, credentials)


def _of_anthropic(
    spec: ModelSpec, project: str, bearer: Bearer, credentials: RenewableCredentials[Token] | None
) -> Sdk:
    import anthropic

    assert spec.place is not None
    client = anthropic.AsyncAnthropicVertex(
        region=spec.place.region,
        project_id=project,
        access_token=bearer.value,
        base_url=spec.base_url,
        http_client=capturing_client(),
        max_retries=0,
        open_telemetry=False,
    )

    async def renew() -> None:
        await bearer.renew()
        client.access_token = bearer.value

    return Sdk(client, "/v1/messages", renew, anthropic.omit, (anthropic.AnthropicError,), credentials)


def _of_openai(spec: ModelSpec, project: str, bearer: Bearer, credentials: RenewableCredentials[Token] | None) -> Sdk:
    import openai
    from openai.providers import vertex

    assert spec.place is not None
    base_url = spec.base_url
    if "/endpoints/" not in base_url:
        base_url += f"/projects/{project}/locations/{spec.place.region}/endpoints/openapi"
    provider = vertex(base_url=base_url, token_provider=bearer)
    client = openai.AsyncOpenAI(provider=provider, http_client=capturing_client(), max_retries=0)
    return Sdk(client, "/chat/completions", bearer.renew, openai.Omit(), (openai.OpenAIError,), credentials)


def _credentials(
    spec: ModelSpec, environment: Mapping[str, str], store: CredentialStore
) -> RenewableCredentials[Token]:
    assert spec.place is not None
    source = spec.place.source

    def fetch() -> Token:
        try:
            import google.auth
            from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError
            from google.auth.transport.requests import Request
        except ImportError:
            raise missing_extra(spec, "google-auth") from None
        found: Any
        try:
            if source.kind == "Google file":
                found, project = _from_file(environment[source.variables[0]])
            else:
                found, project = google.auth.default(scopes=_SCOPES)
            found.refresh(Request())
        except TransportError as error:
            raise ModelError(f"Google's token service cannot be reached: {error}", retryable=True) from error
        except DefaultCredentialsError as error:
            raise ModelError(f"no Google credentials were found: {_LOGIN} ({error})") from error
        except GoogleAuthError as error:
            raise ModelError(
                f"the Google credentials are expired or revoked: {_LOGIN} ({error})", retryable=error.retryable
            ) from error
        expires_s = found.expiry.replace(tzinfo=UTC).timestamp() if found.expiry is not None else None
        return Token(found.token, expires_s, project or "")

    return store.get(source, tuple(environment.values()), fetch, _secrets_in)


def _from_file(path: str) -> tuple[Any, str]:
    """Return the credentials in a file that a `.env` names, and their Google project.

    Raises ModelError for an unreadable file, and for a file that holds neither a service account nor a user's
    credentials."""
    from google.oauth2 import credentials, service_account

    try:
        content = json.loads(Path(path).expanduser().read_text(encoding="utf-8"))
        # A file of another type can make the library send local files to an address, or start a program.
        match as_dict(content).get("type"):
            case "service_account":
                found = service_account.Credentials.from_service_account_info(content, scopes=_SCOPES)
            case "authorized_user":
                found = credentials.Credentials.from_authorized_user_info(content, scopes=_SCOPES)
            case _:
                raise ModelError(
                    f"{path} holds neither a service account nor a user: a file of another kind must be named "
                    "in the environment, not in .env"
                )
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or "it is not a file of Google credentials"
        raise ModelError(f"the credentials in {path} cannot be used: {reason}") from error
    return found, str(as_dict(content).get("project_id") or "")


def _secrets_in(token: Token) -> Mapping[str, str]:
    return {"GOOGLE_ACCESS_TOKEN": token.value}
