"""Connects to models at clouds: imports the cloud's SDK, and finds the credentials and the address."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterable, Mapping

from workbench.config.models import ModelSpec
from workbench.providers.clouds import azure, bedrock, vertex
from workbench.providers.clouds.credentials import CredentialStore, KeySource
from workbench.providers.clouds.signing import Signer, silence_sdks
from workbench.providers.model import ModelError

_CONNECT = {"azure": azure.connect, "bedrock": bedrock.connect, "vertex": vertex.connect}


async def signer_of(
    spec: ModelSpec,
    key: KeySource | None,
    variables: Mapping[str, str],
    store: CredentialStore,
    *,
    headers: Iterable[tuple[str, str]] = (),
    query: Iterable[tuple[str, str]] = (),
) -> Signer:
    """Return the signer, which builds and signs the requests of a model at a cloud.

    `key` returns the API key, and `variables` has other credentials as environment variables. `headers` and `query` are
    added to every request. Raises ModelError if the credentials cannot be used."""
    if spec.problem is not None or spec.place is None:
        raise ModelError(spec.problem or f"the address of {spec.name} is unknown")
    # The import takes up to two seconds. It runs in a thread, so that it does not delay other runs.
    sdk_name, error_name = "openai", "OpenAIError"
    if spec.api == "messages":
        sdk_name, error_name = "anthropic", "AnthropicError"
    module = await asyncio.to_thread(importlib.import_module, sdk_name)
    silence_sdks()
    errors: tuple[type[Exception], ...] = (getattr(module, error_name), ValueError)
    try:
        sdk = await _CONNECT[spec.provider](spec, key, variables, store)
    except errors as error:
        raise ModelError(f"cannot send requests to {spec.name}: {error}") from error
    signer = Signer(sdk, spec.name, spec.base_url, dict(headers))
    await signer.start(spec.model, dict(query))
    return signer
