"""References to environment variables in suites and settings: `$NAME` or `${NAME}`, with `$$` for a dollar sign."""

from __future__ import annotations

from collections.abc import Callable

from workbench.startup import late_pattern

_REFERENCE = late_pattern(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)")


def environment_names(text: str) -> tuple[str, ...]:
    """Return the names of the variables in a text, such as a value of `env`, in their order."""
    return tuple(match[1] or match[2] for match in _REFERENCE.finditer(text) if match[0] != "$$")


def with_variables(text: str, value_of: Callable[[str], str]) -> str:
    """Return the text with each variable replaced by its value, and `$$` replaced by `$`."""
    return _REFERENCE.sub(lambda match: "$" if match[0] == "$$" else value_of(match[1] or match[2]), text)


def has_stray_dollar(text: str) -> bool:
    """Return whether a text has a dollar sign that is neither doubled nor the start of a reference."""
    return "$" in _REFERENCE.sub("", text)
