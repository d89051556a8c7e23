"""The library of hosts: prompts and tools that hosts put around the tools of a suite, as variants."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from workbench.encoding import toml_of

ORIGIN = "the library of hosts"
"""The name of the library in messages."""

HOST_NAMES = frozenset({"no prompt", "concise assistant", "coding agent", "forty tools"})
"""The names of the variants in the library."""


def host_variants() -> tuple[Mapping[str, object], ...]:
    """Return the `[[variants]]` tables of the library."""
    text = files("workbench.suite").joinpath("hosts.toml").read_text(encoding="utf-8")
    return tuple(toml_of(text)["variants"])
