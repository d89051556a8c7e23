"""References from a suite to things outside it: environment variables (`$NAME`), modules and Python functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_REFERENCE = re.compile(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)")
_NAME = r"[^\W\d]\w*"
_MODULE = re.compile(rf"{_NAME}(?:\.{_NAME})*")
_FUNCTION = re.compile(rf"{_MODULE.pattern}:{_NAME}")


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


def file_name_fault(reference: object) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a reference to a function that names a file: message and hint."""
    module, _, function = reference.partition(":") if isinstance(reference, str) else ("", "", "")
    if module.endswith(".py"):
        yield f'"{module}" is a file name', f'write the module: "{module[:-3]}:{function}"'
