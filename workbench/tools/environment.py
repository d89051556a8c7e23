"""Fills in references to environment variables in a server's settings, and registers their values as secrets."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from workbench.checks.references import environment_names, with_variables
from workbench.config.secrets import Secrets
from workbench.suite.model import Server


class MissingVariableError(LookupError):
    """A referenced variable is not set; `name` is its name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


INHERITED = (
    (
        *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
        *("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
    )
    if sys.platform == "win32"
    else ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
)
"""The variables that every started program has: those of `mcp.client.stdio`, which takes a second to import."""


_AUTHORIZING = ("authorization", "proxy-authorization", "cookie")


def learn_written(server: Server, secrets: Secrets) -> None:
    """Register what is secret in a server's settings as written in the suite: credentials in its headers, values in its
    `env` that look like keys, and passwords in addresses. Other texts are not secret."""
    secrets.add_passwords(server.name, server.url or "")
    for name, value in server.env.items():
        if not environment_names(value):
            secrets.guess(name, value)
    for name, value in server.headers.items():
        variable = name.upper().replace("-", "_")
        if environment_names(value):
            continue
        if name.lower() in _AUTHORIZING:
            secrets.add(variable, value.rpartition(" ")[2])
        else:
            secrets.guess(variable, value)


def filled(text: str, environment: Mapping[str, str], secrets: Secrets) -> str:
    """Replace `$NAME` and `${NAME}` by the variable's value and `$$` by a dollar sign; any other `$` stays. Every value
    used is added to `secrets`.

    Raises MissingVariableError when a variable is not set.
    """

    def value_of(name: str) -> str:
        if name not in environment:
            raise MissingVariableError(name)
        secrets.add(name, environment[name])
        return environment[name]

    return with_variables(text, value_of)
