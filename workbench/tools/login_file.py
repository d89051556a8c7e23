"""Stores the logins of servers in private files. While a process renews tokens, it locks the file."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import shlex
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.suite.files import LockedError, is_outside, locked, relative_to_cwd, resolved, write_atomically
from workbench.suite.server_model import Server, ServerAuth
from workbench.tools.connection import expand_variables

LOCK_TIMEOUT_S = 60.0
"""The maximum time in seconds to wait for another process that renews a token. It exceeds the time limits of the
requests for a renewal."""

_LOCK_RETRY_S = 0.02

_RENEW_EARLY_S = 30.0
_EARLY_SHARE = 0.1


@dataclass(frozen=True)
class LoginSettings:
    """The settings with which Workbench logs in to a server. Variables in them are replaced by their values."""

    url: str
    auth: ServerAuth
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    issuer: str | None = None
    scope: str | None = None

    @property
    def file_name(self) -> str:
        """The name of the file that stores the login.

        It is a hash of everything that determines who may use the tokens, and for which server."""
        keys = [self.url, self.auth, self.client_id, self.issuer, self.scope]
        return f"{hashlib.sha256(json.dumps(keys).encode()).hexdigest()[:32]}.json"


def login_settings(server: Server, environment: Mapping[str, str], secrets: Secrets) -> LoginSettings | None:
    """Return the settings for logging in to a server, `None` if the server has no `auth`.

    Raises MissingVariableError if a variable is not set."""
    if server.auth is None or server.url is None:
        return None
    client_id = client_secret = None
    if server.client_id is not None:
        # The client id is not a secret, because the address that the user opens contains it.
        client_id = expand_variables(server.client_id, environment, Secrets())
    if server.client_secret is not None:
        client_secret = expand_variables(server.client_secret, environment, secrets)
    return LoginSettings(server.url, server.auth, client_id, client_secret, server.issuer, server.scope)


@dataclass(frozen=True)
class Logins:
    """The folder of the stored logins, and the suite to whose servers they belong."""

    folder: Path
    suite_file: Path

    def command(self, server: str) -> str:
        suite = relative_to_cwd(str(self.suite_file))
        if is_outside(suite):
            suite = str(resolved(self.suite_file))
        return f"workbench login {shlex.quote(server)} {shlex.quote(suite)}"

    def how_to_log_in(self, server: str, url: str) -> str:
        """Return how to log in to a server that requires a login but has no `auth`.

        The text is the end of a message."""
        # If there is no suite yet, the login is stored for the address, and a later suite will use it.
        if not self.suite_file.exists():
            return f"it wants a login: run 'workbench login {shlex.quote(url)}', then try again"
        return f"it wants a login: write auth = \"oauth\" beside its url, and run '{self.command(server)}'"


def has_login(folder: Path, url: str) -> bool:
    """Return whether a person's login to an address is stored. Logins that have further settings do not count."""
    return (folder / LoginSettings(url, "oauth").file_name).exists()


class StoredLogin(BaseModel):
    """The tokens of a login, and the data for their renewal, in the form in which the MCP SDK writes them.

    `expires_at` is the end of the access token, in seconds of the system clock."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="ignore", hide_input_in_errors=True)

    format: Literal[1] = 1
    url: str
    tokens: dict[str, JsonValue] = Field(repr=False)
    expires_at: float | None = None
    client: dict[str, JsonValue] | None = Field(default=None, repr=False)
    authorization_server: str | None = None
    authorization_metadata: dict[str, JsonValue] | None = None
    resource_metadata: dict[str, JsonValue] | None = None

    @property
    def access_token(self) -> str:
        """The access token for requests, "" if there is none."""
        return _text(self.tokens.get("access_token"))

    @property
    def can_be_renewed(self) -> bool:
        return bool(_text(self.tokens.get("refresh_token")))

    def is_valid(self, now_s: float) -> bool:
        """Return whether the access token has not expired."""
        return bool(self.access_token) and (self.expires_at is None or now_s < self.expires_at)

    def is_fresh(self, now_s: float) -> bool:
        """Return whether the access token is valid and not yet due for renewal."""
        # Tokens are renewed early, because some servers revoke the whole login when they get an expired token.
        lifetime_s = self.tokens.get("expires_in")
        early_s = _RENEW_EARLY_S
        if isinstance(lifetime_s, int | float):
            early_s = min(early_s, lifetime_s * _EARLY_SHARE)
        return self.is_valid(now_s + early_s)

    def register_secrets(self, server: str, secrets: Secrets) -> None:
        name = re.sub(r"\W+", "_", server.upper())
        secrets.add(f"{name}_TOKEN", self.access_token)
        secrets.add(f"{name}_REFRESH_TOKEN", _text(self.tokens.get("refresh_token")))
        if self.client is not None:
            secrets.add(f"{name}_CLIENT_SECRET", _text(self.client.get("client_secret")))


class LoginFileError(Exception):
    """Raised if a stored login cannot be read or written. The message gives the file, the reason and a remedy."""


class LoginFile:
    """The file of one login, which only its owner can read and write."""

    def __init__(self, folder: Path, settings: LoginSettings) -> None:
        self._path = folder / settings.file_name

    def read(self) -> StoredLogin | None:
        """Return the stored login, `None` if there is none.

        Raises LoginFileError."""
        try:
            return StoredLogin.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError:
            # The cause is left out, because it could quote a token.
            raise LoginFileError(f"{self._path} is damaged: delete it, and log in again") from None
        except OSError as error:
            raise LoginFileError(f"{self._path} cannot be read: {error.strerror}") from error

    def write(self, login: StoredLogin) -> None:
        """Replace the stored login.

        Raises LoginFileError."""
        try:
            self._make_folder()
            write_atomically(self._path, login.model_dump_json(exclude_none=True).encode())
        except OSError as error:
            raise LoginFileError(f"the login cannot be stored in {self._path}: {error.strerror}") from error

    def delete(self) -> bool:
        """Delete the stored login, and return whether it existed.

        Raises LoginFileError."""
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise LoginFileError(f"{self._path} cannot be deleted: {error.strerror}") from error
        return True

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Lock the login while the body of the `with` statement runs. Other connections and processes wait.

        Raises LoginFileError if another process does not release the lock in time."""
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        with ExitStack() as held:
            while True:
                try:
                    self._make_folder()
                    # The lock is tried repeatedly, not awaited in a thread. A cancelled thread would still take the
                    # lock, and keep it.
                    held.enter_context(locked(self._path.with_suffix(".lock"), 0.0))
                    break
                except LockedError:
                    if time.monotonic() >= deadline:
                        raise LoginFileError(f"another program keeps {self._path} locked: end that program") from None
                except OSError as error:
                    raise LoginFileError(f"{self._path} cannot be locked: {error.strerror}") from error
                await asyncio.sleep(_LOCK_RETRY_S)
            yield

    def _make_folder(self) -> None:
        folder = self._path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
