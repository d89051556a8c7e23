"""Lists of models in one text, such as `openai:gpt-6-luna,gpt-6.1-sol,offline`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.config.models import PROVIDERS
from workbench.startup import late_pattern

# A comma inside a name is written `\,`.
_COMMA = late_pattern(r"(?<!\\),")


def names_in(text: str) -> list[str]:
    """Split a list of models at commas. Names are not completed.

    Raises ValueError for an empty name."""
    names = [name.strip().replace("\\,", ",") for name in _COMMA.split(text)]
    if "" in names:
        raise ValueError("a model name is empty: write A, or A,B for two")
    return names


def are_full(names: Sequence[str]) -> bool:
    """Return whether no name in a list takes its provider from the name before it."""
    return full_names(names, lambda _: False) == list(names)


def full_names(names: Sequence[str], is_known: Callable[[str], bool]) -> list[str]:
    """Complete each bare name in a list with the provider and address of the name before it.

    A name is bare if it has no `:` and `is_known` is false for it. A bare name without a preceding provider stays bare.

    >>> full_names(["openai:gpt-6-luna", "offline", "gpt-6.1-sol"], {"offline"}.__contains__)
    ['openai:gpt-6-luna', 'offline', 'openai:gpt-6.1-sol']
    """
    full = []
    provider = address = ""
    for name in names:
        prefix, colon, rest = name.partition(":")
        if colon and prefix in PROVIDERS:
            provider = prefix
            _, at, url = rest.rpartition("@http")
            address = at + url if at else ""
        elif not colon and provider and not is_known(name):
            name = f"{provider}:{name}{address}"
        full.append(name)
    return full
