"""References to environment variables in a server's settings: filled in when it starts, and secret from then on."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.config.secrets import Secrets
from workbench.suite.model import Server
from workbench.suite.references import environment_names, with_variables


class MissingVariableError(LookupError):
    """A referenced variable is not set; `name` is its name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


_AUTHORIZING = ("authorization", "proxy-authorization", "cookie")


def learn_written(server: Server, secrets: Secrets) -> None:
    """Know what is secret in the settings of a server as they are written in the suite: what authorises in its headers,
    what looks like a key in its `env`, and passwords in addresses. Any other text in them is none."""
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
    """Replace `$NAME` and `${NAME}` by the variable's value and `$$` by a dollar sign; any other `$` stays.

    Every value that is used is told to `secrets`. Raises MissingVariableError when a variable is not set.
    """

    def value_of(name: str) -> str:
        if name not in environment:
            raise MissingVariableError(name)
        secrets.add(name, environment[name])
        return environment[name]

    return with_variables(text, value_of)
