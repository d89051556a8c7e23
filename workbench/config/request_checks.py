"""Checks of a model's headers, query, address and key command, as written in the settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from workbench.config import typed_keys
from workbench.config.models import checked_base_url
from workbench.config.request_settings import split_address
from workbench.config.secret_forms import forms_in
from workbench.config.secrets import is_secret_if_used, names_a_secret
from workbench.config.variables import environment_names, has_stray_dollar
from workbench.numerals import count_text
from workbench.startup import late_pattern

SET_BY_HTTP = frozenset(
    {"accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect", "host"}
    | {"keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers that the program, its HTTP library or a proxy sets, so no model can have them."""

CREDENTIALS = frozenset({"authorization", "cookie"})
"""Headers that contain nothing but credentials."""

MAX_SETTING_CHARS = 8_192
"""The longest value of a header or a query. Servers accept 8 to 16 KiB for all headers."""

# https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2
_TOKEN = late_pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PATH = late_pattern(r"(?:~|\.{0,2})(?:/[^/]+){2,}/?|[A-Za-z]:\\.+")
_UUID = late_pattern(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PIECES = late_pattern(r"[\s=,;:]+")

VARIABLE_ADVICE = "put it into an environment variable or .env, and write $NAME in its place"


def checked_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return the headers of a model unchanged if they are valid.

    Raises ValueError for an invalid name or value, for a header that the program sets, and for a literal that looks
    like a secret. The message quotes no value."""
    seen = set()
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise ValueError('has an invalid header name: write { "x-team" = "search" }, without spaces and \':\'')
        lower = name.lower()
        if lower in SET_BY_HTTP:
            raise ValueError(f"must not contain {lower!r}: the program sets it")
        if lower in seen:
            raise ValueError(f"has {lower!r} twice: header names ignore case, so omit one")
        seen.add(lower)
        _check_value(name, value)
        if not value.strip():
            raise ValueError(f"has no value for {_named(name)}: give one, or leave the header out")
        if _is_secret_header(lower, value):
            raise ValueError(f"holds what looks like a secret in {_named(name)}: {VARIABLE_ADVICE}")
    return headers


def checked_query(query: Mapping[str, str]) -> Mapping[str, str]:
    """Return the query of a model unchanged if it is valid.

    Raises ValueError as `checked_headers` does."""
    for name, value in query.items():
        if not name or not name.isprintable():
            raise ValueError('has an invalid parameter name: write { "api-version" = "2024-10-21" }')
        _check_value(name, value)
        if _looks_secret(name, value):
            raise ValueError(f"holds what looks like a secret in {_named(name)}: {VARIABLE_ADVICE}")
    return query


def checked_command(words: Sequence[str]) -> tuple[str, ...]:
    """Check a command that prints a key. Return `words` as a tuple.

    Raises ValueError for a command that cannot be started, and for a word that looks like a secret."""
    if not words or not words[0].strip():
        raise ValueError(f"names no program: write {EXAMPLE_COMMAND}")
    if any("\0" in word for word in words):
        raise ValueError("contains a null character, which no argument of a program can hold: remove it")
    for word in words:
        # A path is no secret, although folders such as temporary folders may have random names.
        value = word.partition("=")[2]
        if _PATH.fullmatch(value or word):
            continue
        if _is_key(word) or _is_key(value):
            raise ValueError("holds what looks like a secret: let the program read it from an environment variable")
    return tuple(words)


EXAMPLE_COMMAND = '["gcloud", "auth", "print-access-token"]'


def _check_value(name: str, value: str) -> None:
    if not value.isascii() or not value.isprintable():
        raise ValueError(f"has a line end or another character that requests cannot hold in {_named(name)}: remove it")
    if len(value) > MAX_SETTING_CHARS:
        raise ValueError(f"has more than {count_text(MAX_SETTING_CHARS)} characters in {_named(name)}: shorten it")
    if has_stray_dollar(value):
        raise ValueError(
            f"has a '$' in {_named(name)} that does not start the name of a variable: write $NAME or ${{NAME}}, and $$ "
            "for a dollar sign"
        )


def holds_key(text: str) -> bool:
    """Return whether any word of a text looks like a key."""
    return any(forms_in(text)) or any(map(_is_key, _PIECES.split(text)))


def _named(name: str) -> str:
    """Return the name of a header for a message, or a placeholder if a key may have been written in its place."""
    if _is_key(name):
        return "a name"
    return repr(name)


def _is_secret_header(name: str, value: str) -> bool:
    if name in CREDENTIALS and not environment_names(value):
        # In `Bearer abc`, the secret is `abc`.
        return is_secret_if_used("TOKEN", value.rpartition(" ")[2])
    return _looks_secret(name, value)


def _looks_secret(name: str, value: str) -> bool:
    if not environment_names(value) and names_a_secret(name) and is_secret_if_used(name, value):
        return True
    return holds_key(value)


def _is_key(text: str) -> bool:
    # Ids of tenants and projects are often UUIDs, which mix letters and digits like keys.
    return typed_keys.looks_like_key(text) and not _UUID.fullmatch(text)


def checked_address(text: str) -> tuple[str, Mapping[str, str]]:
    """Split the address of an endpoint from its query.

    Raises ValueError as `checked_base_url` and `checked_query` do."""
    base_url, query = split_address(text)
    return checked_base_url(base_url), checked_query(query)


def joined_query(of_address: Mapping[str, str], query: Mapping[str, str]) -> Mapping[str, str]:
    """Join the query in an address with the query in the settings.

    Raises ValueError for a name in both, and the errors of `checked_query`."""
    for name in of_address:
        if name in query:
            raise ValueError(f"has {_named(name)} after '?', and query has it, too: omit one")
    return checked_query({**of_address, **query})
