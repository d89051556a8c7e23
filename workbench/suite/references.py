"""What a suite may name without saying it: environment variables (`$NAME`), modules and Python functions."""

from __future__ import annotations

import re

_REFERENCE = re.compile(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)")
_MODULE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def environment_names(text: str) -> tuple[str, ...]:
    """The variables that a value of `env` or `headers` reads, in order: `$NAME` and `${NAME}`, not `$$`."""
    return tuple(match[1] or match[2] for match in _REFERENCE.finditer(text) if match[0] != "$$")


def has_stray_dollar(text: str) -> bool:
    """Whether a dollar sign is left that starts no reference and is not doubled."""
    return "$" in _REFERENCE.sub("", text)


def is_module_name(text: str) -> bool:
    """Whether a text can be imported: `my_server`, `tools.mocks`."""
    return _MODULE.fullmatch(text) is not None
