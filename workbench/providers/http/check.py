"""Asks an endpoint at little cost whether it answers, accepts the key and has the model."""

from __future__ import annotations

import asyncio
import json
from dataclasses import field, replace
from time import perf_counter
from urllib.parse import quote

from workbench.config.models import ModelSpec
from workbench.dataclasses import dataclass
from workbench.providers.http.clients import Client
from workbench.providers.http.errors import EndpointErrors, Refused, base_url_hint, causes_of, shown_url
from workbench.providers.model import ModelError

CHECK_READ_TIMEOUT_S = 20.0
CHECK_TIMEOUT_S = 60.0
"""For the whole check: an endpoint may send something now and then without coming to an end."""
_LISTED_NAMES = 5
_LACKING = (404, 405, 501)
_NOT_AN_API = "answers, but not as a model API does: correct base_url"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Whether a model can be asked, as far as that is known without asking it, in one sentence. `answers` is also true
    where the endpoint answers but has nothing at this path, or no such model."""

    ok: bool
    sentence: str
    answers: bool = False
    took_ms: float | None = field(default=None, compare=False)
    """How long a good endpoint took to say so."""

    @property
    def mark(self) -> str:
        """✓ where the model exists, ? where only something answers, ✗ otherwise."""
        return "✓" if self.ok else "?" if self.answers else "✗"


async def check(spec: ModelSpec, client: Client, errors: EndpointErrors) -> CheckResult:
    """Look for the model among those that the endpoint lists. An endpoint that lists none counts as good."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            began = perf_counter()
            checked = await _check(spec, client, errors)
            return replace(checked, took_ms=(perf_counter() - began) * 1000) if checked.ok else checked
    except ModelError as error:
        return CheckResult(False, str(error))
    except TimeoutError:
        sentence = f"did not finish within {CHECK_TIMEOUT_S:g} s: look at base_url and at what the server does"
        return CheckResult(False, str(errors.error(sentence)))


async def list_models(spec: ModelSpec, client: Client, errors: EndpointErrors) -> tuple[str, ...]:
    """Return the names of the models that the endpoint lists. Raises ModelError."""
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
        if _status_of(error) not in _LACKING:
            return CheckResult(False, str(errors.of_exception(error, path=path)))
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
    try:  # listings omit aliases of models
        await client.get(f"{path}/{quote(spec.model, safe='')}", _silence(spec))
    except client.errors:
        shown = errors.quoted(", ".join(names[:_LISTED_NAMES]))
        others = f" and {len(names) - _LISTED_NAMES} more" if len(names) > _LISTED_NAMES else ""
        listed = f"it lists {shown}{others}" if names else "it lists none"
        return CheckResult(False, f"{place} has no model {spec.model!r}: {listed}", answers=True)
    return CheckResult(True, f"{place} answers and has {spec.model}", answers=True)


def _listing(spec: ModelSpec) -> tuple[str, str]:
    """Returns the path of the listing of models, and the path below which each model is."""
    if spec.provider != "anthropic":
        return "/models", "/models"
    path = "/models" if spec.base_url.rstrip("/").endswith("/v1") else "/v1/models"
    return f"{path}?limit=1000", path


def _names(body: bytes) -> list[str] | None:
    """Returns the ids in a listing of models; `None` when it is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    listed = document.get("data") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        return None
    return [str(item["id"]) for item in listed if isinstance(item, dict) and "id" in item]


def _silence(spec: ModelSpec) -> float:
    return min(spec.read_timeout_s, CHECK_READ_TIMEOUT_S)


def _status_of(error: Exception) -> int | None:
    return next((cause.status for cause in causes_of(error) if isinstance(cause, Refused)), None)
