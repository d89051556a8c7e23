"""Variables of the shell that every command of a trusted suite gets.

These are proxies, the certificate files that proxies need, and settings of package managers. Without them, `npx` and
`uvx` cannot reach a registry on many machines. A suite gets variables with a user, a password or a token only if it
names them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import parse_qsl, urlsplit

from workbench.config.secret_forms import forms_in
from workbench.config.secrets import Secrets, is_secret_of_file, names_a_secret
from workbench.startup import late_pattern

_PROXY = late_pattern("(?:HTTP|HTTPS|ALL|NO)_PROXY|(?:http|https|all|no)_proxy")
_CERTIFICATES = frozenset(
    {"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
)
_PACKAGE_MANAGER = late_pattern(r"(?i:npm_config)_[!-~]+|UV_\w+|PIP_\w+", re.ASCII)
_USER = late_pattern(r".*[_:]_?(?:user|username|auth|otp)", re.IGNORECASE)
"""Names of settings for users and for npm's credentials. They lack words that mark secrets, such as KEY."""

_SWITCHES = frozenset({"true", "false", "null", "undefined", "0", "1"})
_ADDRESS = late_pattern(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s,;'\"]+")
_USER_OF_ADDRESS = late_pattern(r"//[^\s/?#@]*@")
_RANDOM = late_pattern(r"[0-9a-f-]{32,}|(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[A-Za-z0-9]{20,}")
_PATH = late_pattern(r"[~.]?/[^:]*|[A-Za-z]:\\.*")
_WORDS = late_pattern(r"[A-Za-z0-9-]+")

_LOCAL = late_pattern(r"localhost|127\.\d+\.\d+\.\d+|::1|0\.0\.0\.0", re.IGNORECASE)
_PORT = late_pattern(r":\d{1,5}/?\Z")

_MIN_HOST_CHARS = 6
"""The shortest host that is redacted: a shorter name may be part of any text."""


def passed_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sorted names of the variables that every program of a trusted suite receives.

    Example: `("HTTPS_PROXY", "npm_config_registry")`."""
    names = []
    for name, value in environment.items():
        if value and _is_of_kind(name) and not has_credentials(name, value):
            names.append(name)
    return tuple(sorted(names))


def withheld_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sorted names of the proxies and settings that are not passed because they hold credentials."""
    names = []
    for name, value in environment.items():
        if value and _is_of_kind(name) and has_credentials(name, value):
            names.append(name)
    return tuple(sorted(names))


def _is_of_kind(name: str) -> bool:
    if name in _CERTIFICATES or _PROXY.fullmatch(name):
        return True
    return _PACKAGE_MANAGER.fullmatch(name) is not None


def has_credentials(name: str, value: str) -> bool:
    """Return whether the value of a proxy or of a package manager's setting has a user, a password or a token."""
    if (names_a_secret(name) or _USER.fullmatch(name)) and value.lower() not in _SWITCHES:
        return True
    # A proxy may be written without its scheme: `user:password@host:8080`.
    if _USER_OF_ADDRESS.search(value) or ("proxy" in name.lower() and "@" in value):
        return True
    for address in _ADDRESS.findall(value):
        if any(names_a_secret(key.upper()) for key, _ in parse_qsl(_host_and_query(address)[1])):
            return True
    if any(True for _ in forms_in(value)):
        return True
    # A long random word is a token, except in paths, because folders such as CI caches have random names.
    return not _PATH.fullmatch(value) and any(map(_RANDOM.fullmatch, _WORDS.findall(value)))


def add_passed(names: Iterable[str], environment: Mapping[str, str], secrets: Secrets) -> None:
    """Add the secret parts of passed variables to `secrets`, so that they are redacted."""
    for name in names:
        for text in secret_parts(name, environment.get(name, "")):
            secrets.add_text(name, text)


def secret_parts(name: str, value: str) -> Iterator[str]:
    """Yield the secrets in a passed variable: addresses, host names, lists of hosts, and values that look like secrets.

    Values such as `true`, `60`, `copy`, a path and a public registry are not secret. If they were, ordinary words in
    reports would be redacted."""
    if addresses := _ADDRESS.findall(value):
        for address in addresses:
            yield from _parts_of_address(address, _host_and_query(address)[0])
    elif re.search("no_?proxy", name, re.IGNORECASE):
        # A single host name may be an ordinary word, so it is not secret.
        several = len(re.split(r"[\s,;]+", value.strip(" ,;"))) > 1
        if several and not all(map(_reveals_nothing, re.split(r"[\s,;]+", value))):
            yield value
    elif re.search("proxy|host", name, re.IGNORECASE):
        for address in value.split():
            yield from _parts_of_address(address, _PORT.sub("", address))
    elif is_secret_of_file(name, value) and not _PATH.fullmatch(value):
        yield value


def _parts_of_address(address: str, host: str) -> Iterator[str]:
    if _reveals_nothing(host):
        return
    dotted = "." in host and len(host) >= _MIN_HOST_CHARS
    # `proxy:8080` is redacted as a whole, but `proxy` alone is an ordinary word.
    if dotted or host != address:
        yield address.rstrip("/")
    if dotted and host != address:
        yield host


def _reveals_nothing(host: str) -> bool:
    return not host or _LOCAL.fullmatch(host) is not None


def _host_and_query(address: str) -> tuple[str, str]:
    try:
        parts = urlsplit(address)
        return parts.hostname or "", parts.query
    except ValueError:
        return "", ""
