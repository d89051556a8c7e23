"""Credentials of clouds. They are fetched in a thread, renewed before they expire, and redacted as secrets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from workbench.config.clouds import Source
from workbench.config.models import ModelSpec
from workbench.config.read_only import refuse_if_read_only
from workbench.config.secrets import Secrets
from workbench.providers.model import ModelError

KeySource = Callable[[], Awaitable[str]]
"""Returns the key of a model, which may have been printed by a program; raises ModelError."""

MIN_LIFETIME_S = 300.0
"""The remaining lifetime below which a token is renewed, in seconds, because requests may wait in queues."""

FAILURE_REUSE_S = 3.0
"""The time, in seconds, for which a failure is reused: a thousand runs must not all wait for a failing program."""

DISTRIBUTION = "toolcall-workbench"


class Token(NamedTuple):
    """A bearer token.

    `expires_s` is in seconds since 1970. `project` is the project of Google's credentials."""

    value: str
    expires_s: float | None = None
    project: str = ""


class AwsKeys(NamedTuple):
    """The AWS keys that sign requests. `expires_s` is in seconds since 1970."""

    access_key: str
    secret_key: str
    session_token: str | None = None
    expires_s: float | None = None


class Expiring(Protocol):
    @property
    def expires_s(self) -> float | None:
        """The time when the credentials expire, in seconds since 1970; `None` if they never expire."""
        ...


_Value = TypeVar("_Value", bound=Expiring)


class RenewableCredentials(Generic[_Value]):
    """Credentials that are fetched on first use, and again before they expire.

    `fetch` fetches the credentials, or raises ModelError. It runs in a thread, once for all waiting requests.
    `secrets_in` returns the secrets in the credentials, keyed by the names that replace them in redacted texts."""

    def __init__(
        self, fetch: Callable[[], _Value], secrets_in: Callable[[_Value], Mapping[str, str]], secrets: Secrets
    ) -> None:
        self._fetch = fetch
        self._secrets_in = secrets_in
        self._secrets = secrets
        self._value: _Value | None = None
        self._failure: tuple[float, ModelError] | None = None
        self._fetching = asyncio.Lock()

    async def current(self) -> _Value:
        """Return valid credentials, and fetch them if necessary.

        Raises ModelError if they cannot be fetched."""
        if (value := self._valid_for(MIN_LIFETIME_S)) is not None:
            return value
        async with self._fetching:
            if (value := self._valid_for(MIN_LIFETIME_S)) is not None:
                return value
            if self._failure is None or time.monotonic() - self._failure[0] > FAILURE_REUSE_S:
                await self._renew()
            if self._failure is None:
                assert self._value is not None
                return self._value
            # If renewing failed, the old credentials are used until they expire.
            if (value := self._valid_for(0.0)) is not None:
                return value
            failed = self._failure[1]
            raise ModelError(str(failed), retryable=failed.retryable) from failed

    async def _renew(self) -> None:
        refuse_if_read_only("credentials of a cloud are fetched")
        try:
            value = await asyncio.to_thread(self._fetch)
        except ModelError as error:
            self._failure = (time.monotonic(), error)
            return
        for name, secret in self._secrets_in(value).items():
            self._secrets.add(name, secret)
        self._value, self._failure = value, None

    def forget(self) -> None:
        """Discard the credentials, because the cloud has refused them. The next request fetches new credentials."""
        self._value = None

    def _valid_for(self, seconds: float) -> _Value | None:
        value = self._value
        if value is not None and value.expires_s is not None and value.expires_s - time.time() <= seconds:
            return None
        return value


async def token_of(credentials: RenewableCredentials[Token]) -> str:
    return (await credentials.current()).value


class CredentialStore:
    """Keeps the credentials of a session, so that models with the same source of credentials fetch them only once."""

    def __init__(self, secrets: Secrets) -> None:
        self.secrets = secrets
        self._known: dict[tuple[object, ...], RenewableCredentials[Any]] = {}

    def get(
        self,
        source: Source,
        values: tuple[str, ...],
        fetch: Callable[[], _Value],
        secrets_in: Callable[[_Value], Mapping[str, str]],
    ) -> RenewableCredentials[_Value]:
        """Return the credentials of a source, which are shared by all callers with the same `source` and `values`.

        `values` are the values of the source's environment variables. `fetch` and `secrets_in` are used for new
        credentials."""
        key = (source, *values)
        if key not in self._known:
            self._known[key] = RenewableCredentials(fetch, secrets_in, self.secrets)
        return self._known[key]


def missing_extra(spec: ModelSpec, package: str) -> ModelError:
    """Return the error for a cloud's library that is not installed."""
    return ModelError(
        f"{spec.name} needs {package}, which is not installed: pip install '{DISTRIBUTION}[{spec.cloud_name}]'"
    )
