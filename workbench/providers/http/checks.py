"""Checks whether endpoints answer, accept the key and have the model, without a request to the model."""

from __future__ import annotations

import asyncio
import json
from dataclasses import field, replace
from time import perf_counter
from urllib.parse import quote

from workbench.config.models import ModelSpec
from workbench.dataclasses import dataclass
from workbench.numerals import seconds_text
from workbench.providers.http.clients import Client
from workbench.providers.http.errors import EndpointErrors, HttpStatusError, base_url_hint, causes_of, shown_url
from workbench.providers.model import ModelError
from workbench.providers.wire.wire import as_dict, dicts_in

CHECK_READ_TIMEOUT_S = 20.0
CHECK_TIMEOUT_S = 60.0
"""The time limit of a whole check, in seconds: an endpoint might keep sending a little for ever."""
_LISTED_NAMES = 5
_NO_LISTING_STATUSES = (404, 405, 501)
_NOT_AN_API = "answers, but not as a model API does: correct base_url"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of checking a model's endpoint, without a request to the model itself.

    `ok` means that the model can be used. `answers` means that the endpoint answers, even if it lacks the path or the
    model. `sentence` describes the result."""

    ok: bool
    sentence: str
    answers: bool = False
    took_ms: float | None = field(default=None, compare=False)
    """The duration of a successful check in milliseconds."""

    @property
    def mark(self) -> str:
        """The sign for the result: ✓ if the model can be used, ? if only the endpoint answers, ✗ otherwise."""
        if self.ok:
            return "✓"
        if self.answers:
            return "?"
        return "✗"


async def check(spec: ModelSpec, client: Client, errors: EndpointErrors) -> CheckResult:
    """Check whether the endpoint lists the model. An endpoint without a list of models passes."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            began = perf_counter()
            if spec.cloud is None:
                checked = await _check(spec, client, errors)
            else:
                checked = await _check_cloud(spec, client, errors)
            if not checked.ok:
                return checked
            return replace(checked, took_ms=(perf_counter() - began) * 1000)
    except ModelError as error:
        return CheckResult(False, str(error))
    except TimeoutError:
        sentence = f"did not finish within {seconds_text(CHECK_TIMEOUT_S)}: check base_url and the server's log"
        return CheckResult(False, str(errors.error(sentence)))


async def list_models(spec: ModelSpec, client: Client, errors: EndpointErrors) -> tuple[str, ...]:
    """Return the names of the models that the endpoint lists.

    Raises ModelError."""
    listing, path = _listing(spec)
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            names = _names(await client.get(listing, _silence(spec)))
    except client.errors as error:
        raise errors.of_exception(error, path=path) from error
    if names is None:
        raise errors.error(_NOT_AN_API)
    return tuple(names)


async def _check(spec: ModelSpec, client: Client, errors: EndpointErrors) -> CheckResult:
    listing, path = _listing(spec)
    place = shown_url(spec.base_url)
    try:
        names = _names(await client.get(listing, _silence(spec)))
    except client.errors as error:
        if _status_of(error) not in _NO_LISTING_STATUSES:
            return CheckResult(False, str(errors.of_exception(error, path=path)))
        # Some servers list no models. This is an error only if the base URL or the model also seems to be wrong.
        missing = str(errors.of_exception(error, path=path))
        if _status_of(error) == 404 and (base_url_hint(spec) or "has no model" in missing):
            return CheckResult(False, missing, answers=True)
        return CheckResult(
            True, f"{place} answers, but lists no models: key and model name are unchecked", answers=True
        )
    if names is None:
        return CheckResult(False, str(errors.error(_NOT_AN_API)))
    if spec.model in names:
        return CheckResult(True, f"{place} answers and has {spec.model}", answers=True)
    try:  # the list may omit aliases of models
        await client.get(f"{path}/{quote(spec.model, safe='')}", _silence(spec))
    except client.errors:
        shown = errors.quoted(", ".join(names[:_LISTED_NAMES]))
        listed = f"it lists {shown}" if names else "it lists none"
        if len(names) > _LISTED_NAMES:
            listed += f" and {len(names) - _LISTED_NAMES} more"
        return CheckResult(False, f"{place} has no model {spec.model!r}: {listed}", answers=True)
    return CheckResult(True, f"{place} answers and has {spec.model}", answers=True)


async def _check_cloud(spec: ModelSpec, client: Client, errors: EndpointErrors) -> CheckResult:
    """Check whether a cloud answers at the address of a model.

    The credentials need no check, because the client was made with them."""
    # The lists of clouds are of no use: they include models that the caller may not use, and lack deployments. Only a
    # request that costs tokens shows whether the model can be used.
    place = shown_url(spec.base_url)
    try:
        await client.get("", _silence(spec))
    except client.errors as error:
        if _status_of(error) is None:
            return CheckResult(False, str(errors.of_exception(error, path="")))
    found = "there is a key"
    if spec.credentials:
        found = "credentials were found"
    sentence = f"{place} answers, and {found}: the first run shows whether {spec.model} may be used"
    return CheckResult(True, sentence, answers=True)


def _listing(spec: ModelSpec) -> tuple[str, str]:
    """Return two paths of the endpoint: the path that lists its models, and the parent path of each model."""
    if spec.provider != "anthropic":
        return "/models", "/models"
    path = "/models" if spec.base_url.rstrip("/").endswith("/v1") else "/v1/models"
    # The API lists 20 models by default, and 1,000 at most.
    return f"{path}?limit=1000", path


def _names(body: bytes) -> list[str] | None:
    try:
        listed = as_dict(json.loads(body)).get("data")
    except (ValueError, RecursionError):
        return None
    if not isinstance(listed, list):
        return None
    return [str(item["id"]) for item in dicts_in(listed) if "id" in item]


def _silence(spec: ModelSpec) -> float:
    return min(spec.read_timeout_s, CHECK_READ_TIMEOUT_S)


def _status_of(error: Exception) -> int | None:
    return next((cause.status for cause in causes_of(error) if isinstance(cause, HttpStatusError)), None)
