"""References to environment variables in a server's settings: filled in when it starts, and secret from then on."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.config.secrets import Secrets
from workbench.suite.references import with_variables


class MissingVariableError(LookupError):
    """A referenced variable is not set; `name` is its name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


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
