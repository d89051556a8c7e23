"""References to environment variables in a server's settings: filled in when it starts, kept out of every message."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.suite.references import with_variables

_SHORTEST_SECRET = 4
"""Shorter values are no secrets, and hiding them would garble messages."""


class MissingVariableError(LookupError):
    """A referenced variable is not set; `name` is its name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def filled(text: str, environment: Mapping[str, str]) -> str:
    """Replace `$NAME` and `${NAME}` by the variable's value and `$$` by a dollar sign; any other `$` stays.

    Raises MissingVariableError when a variable is not set.
    """

    def value_of(name: str) -> str:
        if name not in environment:
            raise MissingVariableError(name)
        return environment[name]

    return with_variables(text, value_of)


def redacted(text: str, secrets: Mapping[str, str]) -> str:
    """Put `$NAME` in place of every value of `secrets` (name to value) that stands in the text."""
    for name, value in sorted(secrets.items(), key=lambda item: -len(item[1])):
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, f"${name}")
    return text
