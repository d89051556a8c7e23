"""References from a suite to things outside it: environment variables (`$NAME`), modules and Python functions."""

from __future__ import annotations

from collections.abc import Callable

from workbench.late_patterns import late_pattern

_REFERENCE = late_pattern(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)")
_NAME = r"[^\W\d]\w*"
_MODULE = late_pattern(rf"{_NAME}(?:\.{_NAME})*")
_FUNCTION = late_pattern(rf"{_MODULE.pattern}:{_NAME}")


def environment_names(text: str) -> tuple[str, ...]:
    """Returns the variables that a value of `env` or `headers` reads, in order: `$NAME` and `${NAME}`, not `$$`."""
    return tuple(match[1] or match[2] for match in _REFERENCE.finditer(text) if match[0] != "$$")


def with_variables(text: str, value_of: Callable[[str], str]) -> str:
    """Returns the text with each variable that `environment_names` finds replaced by its value, and `$$` by `$`."""
    return _REFERENCE.sub(lambda match: "$" if match[0] == "$$" else value_of(match[1] or match[2]), text)


def has_stray_dollar(text: str) -> bool:
    """Returns whether a dollar sign is left that starts no reference and is not doubled."""
    return "$" in _REFERENCE.sub("", text)


def is_module_name(text: str) -> bool:
    """Returns whether a text is a module name: `my_server`, `tools.mocks`."""
    return _MODULE.fullmatch(text) is not None


def is_function_reference(text: str) -> bool:
    """Returns whether a text names a module and a function in it: `tools.mocks:answer`."""
    return _FUNCTION.fullmatch(text) is not None
