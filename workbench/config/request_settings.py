"""Parsing, joining and showing of the headers and the query of a model's requests."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, quote, urlencode

from workbench.config.variables import environment_names


def split_address(address: str) -> tuple[str, dict[str, str]]:
    """Return an address without its query, and the query with decoded values.

    Raises ValueError if a name occurs twice. A `$` in the address does not begin a variable."""
    before, mark, written = address.partition("?")
    if not mark or "#" in address:
        return address, {}
    query: dict[str, str] = {}
    for name, value in parse_qsl(written, keep_blank_values=True):
        if name in query:
            raise ValueError("has a name twice after '?': omit one")
        query[name] = value.replace("$", "$$")
    return before, query


def with_query(path: str, query: Iterable[tuple[str, str]], *, safe: str = "") -> str:
    """Add a query to a path that may already have a query.

    A new value replaces an old value of the same name. The characters in `safe` are not percent-encoded."""
    added = dict(query)
    if not added:
        return path
    before, _, written = path.partition("?")
    kept = [pair for pair in parse_qsl(written, keep_blank_values=True) if pair[0] not in added]
    return f"{before}?{urlencode([*kept, *added.items()], quote_via=quote, safe=safe)}"


def variables_of(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the environment variables in the values of headers or of a query, each once."""
    names: dict[str, None] = {}
    for value in settings.values():
        names |= dict.fromkeys(environment_names(value))
    return tuple(names)


def settings_text(settings: Mapping[str, str]) -> str:
    """Return headers or a query as shell words, such as `x-team=search x-key='$KEY'`."""
    return " ".join(f"{shlex.quote(name)}={shlex.quote(value)}" for name, value in settings.items())


def settings_of(text: str) -> dict[str, str]:
    """Return the headers or the query in a text such as `x-team=search x-key='$KEY'`.

    The words are quoted as in a shell. Raises ValueError for any other text."""
    settings: dict[str, str] = {}
    for word in words_of(text):
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise ValueError("must be words NAME=VALUE, such as x-team=search, with quotes around spaces")
        if name in settings:
            raise ValueError("has a name twice: omit one")
        settings[name] = value
    return settings


def words_of(text: str) -> list[str]:
    """Split a text into words, which are quoted as in a shell.

    Raises ValueError for an open quote."""
    try:
        return shlex.split(text)
    except ValueError:
        raise ValueError("has an open quote, or a backslash at its end: quote words as in a shell") from None
