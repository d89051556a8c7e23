"""Decides which values are secret, and in which forms a secret may be written."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus, unquote

MIN_DECLARED_CHARS = 4
"""A shorter value that is really used is secret only if its variable's name says so."""

MIN_NAMED_CHARS = 2
"""A single character is never secret: hiding it would hide every text."""

MIN_KEY_CHARS = 8
"""A value that looks like a key has at least this many characters."""

MIN_FOREIGN_KEY_CHARS = 16
"""What was never used here as a key is one only if it is this long."""

MIN_ENCODED_CHARS = 12
"""A secret of this length is also searched percent-encoded and in base64."""

JSON_LEVELS = 3
"""A secret is found in JSON within JSON within JSON."""

_FOR_HTML = re.compile("[<>&]")
_TELLING = re.compile(r".*(KEYS?|APIKEY|TOKEN|SECRETS?|PWD|JWT|CREDENTIALS?)|.*PASS(?!ED|ES|IVE|AGE).*|PAT", re.DOTALL)
_PASSWORD = re.compile(r".*(TOKEN|SECRETS?|PWD|CREDENTIALS?)|.*PASS(?!ED|ES|IVE|AGE).*|PAT", re.DOTALL)
_NO_KEYS = frozenset({"MONKEY", "TURKEY", "HOTKEY", "DONKEY", "KEYBOARD", "BYPASS", "COMPASS"})
_EVERYDAY = re.compile(
    "BASE|DIR|DOMAIN|EMAIL|ENDPOINT|ENV|ENVIRONMENT|FILE|FOLDER|HOST|LANG|LEVEL|LOCALE|MODE|MODEL|NAME|ORG|PATH|PORT|"
    "PROJECT|REGION|STAGE|TIMEOUT|TZ|URI|URL|USER|USERNAME|VERSION|ZONE"
)
"""Words in names of a `.env` that hold no secret, unless the value begins like a key."""

_REFERENCE = re.compile(r"\$(?:\{\w+\}|[A-Z_][A-Z0-9_]*)")

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_TOKEN = re.compile(r"(?<![\w-])[A-Za-z0-9_.-]{16,}")
_SHORT_NUMBER = re.compile(r"[+-]?\d{0,7}(\.\d*)?")
_PLAIN_WORD = re.compile(r"[^\W\d_]{1,32}")
_IDENTIFIER = re.compile(r"[a-z]+([_.-][a-z]+)*|[A-Z]+([_.-][A-Z]+)*|[A-Za-z]?[a-z]+([A-Z][a-z]+)*")
_ADDRESS = re.compile(
    r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s@]*|([a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,}|localhost|\d+(\.\d+){3})(:\d+)?(/\S*)?"
)
_USER_PASSWORD = re.compile(r"[a-z][a-z0-9+.-]*://([^\s/?#@:]*):([^\s/?#]+)@", re.IGNORECASE)
_KNOWN_BEGINNING = re.compile(
    r"sk-|pk-|rk-|sk_|pk_|rk_|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AKIA|ASIA|AIza|ya29\.|hf_|npm_|pypi-|SG\.|eyJ|"
    r"shpat_|dop_v1_|xai-|gsk_|-----BEGIN "
)
_NOTHING = re.compile(
    "true|false|yes|no|on|off|none|null|empty|dummy|localhost|ollama|vllm|lm-?studio|not-(needed|required)|"
    "(sk-)?no-key(-required)?|your-api-key",
    re.IGNORECASE,
)
"""Placeholders for values that are not needed, and the words for yes and no."""


def is_secret_if_used(name: str, value: str) -> bool:
    """Returns whether a value that was really used as a key, a header or a server's setting is secret: all but one
    character, a word for yes, no or nothing, a path that exists, and two or three characters under an everyday name."""
    shortest = MIN_NAMED_CHARS if _tells(name) else MIN_DECLARED_CHARS
    return len(value) >= shortest and not _NOTHING.fullmatch(value) and not _is_path(value)


def is_secret_of_file(name: str, value: str) -> bool:
    """Returns whether a value in a `.env` that was not used is secret: all but what `is_secret_if_used` excludes,
    numbers, addresses, single words, and what an everyday name such as MODEL or REGION holds.

    A name that says "password", "token" or "secret" makes a single word secret too, unless the word is part of the name
    (`POSTGRES_PASSWORD=postgres`).
    """
    if len(value) < MIN_DECLARED_CHARS or _NOTHING.fullmatch(value) or _is_path(value):
        return False
    if _KNOWN_BEGINNING.match(value):
        return True
    words = _words(name)
    if any(map(_PASSWORD.fullmatch, words)) and not _is_about(words):
        return value.upper() not in words
    if _SHORT_NUMBER.fullmatch(value) or _ADDRESS.fullmatch(value) or _IDENTIFIER.fullmatch(value):
        return False
    return _tells(name) or (len(value) >= MIN_KEY_CHARS and not any(map(_EVERYDAY.fullmatch, words)))


def is_secret_by_look(name: str, value: str) -> bool:
    """Returns whether a value of the environment that was not used is secret: its name has to say so, and it has to
    look like a key. An ordinary word never does."""
    return _tells(name) and looks_like_key(value)


def names_a_secret(name: str) -> bool:
    """Returns whether a name says that what it holds is secret, and not something about a secret, such as TOKEN_URL."""
    words = _words(name)
    return any(map(_TELLING.fullmatch, words)) and not _is_about(words)


def looks_like_key(value: str) -> bool:
    """Returns whether a value has the length and the mixture of a key, or begins like keys of well-known services."""
    if len(value) < MIN_KEY_CHARS or _NOTHING.fullmatch(value) or _is_path(value) or _SHORT_NUMBER.fullmatch(value):
        return False
    if _KNOWN_BEGINNING.match(value):
        return True
    if re.search(r"\s", value) or _ADDRESS.fullmatch(value) or _IDENTIFIER.fullmatch(value):
        return False
    kinds = [re.search(kind, value) for kind in ("[a-z]", "[A-Z]", r"\d", r"[^A-Za-z0-9_.-]")]
    return sum(kind is not None for kind in kinds) > 1 or value.isdigit()


def keys_in(text: str) -> Iterator[str]:
    """Returns what in a text begins and looks like a key of a well-known service, whoever's it is."""
    for match in _TOKEN.finditer(text):
        token = match[0].rstrip(".-_")
        if len(token) >= MIN_FOREIGN_KEY_CHARS and _KNOWN_BEGINNING.match(token) and re.search(r"\d", token):
            yield token


def passwords_in(text: str) -> Iterator[tuple[str, str]]:
    """Returns user and password of each `scheme://user:password@` in a text, as they are written there."""
    for match in _USER_PASSWORD.finditer(text):
        yield match[1], match[2]


def is_plain_word(value: str) -> bool:
    """Returns whether a value is one word of letters."""
    return _PLAIN_WORD.fullmatch(value) is not None


def is_reference(value: str) -> bool:
    """Returns whether a value is the name of a variable, as `${NAME}` or `$NAME`."""
    return _REFERENCE.fullmatch(value) is not None


def forms_of(value: str) -> set[str]:
    """Returns the texts in which a secret is recognised: unchanged, as Python writes it, in JSON up to `JSON_LEVELS`
    deep, and, from 12 characters on, percent-encoded and in base64, wherever it begins in the encoded bytes, also of
    JSON."""
    forms = {value, unquote(value)} if "%" in value else {value}
    if len(value) >= MIN_ENCODED_CHARS:
        for each in (value, *_in_json(value)):
            data = each.encode("utf-8", "surrogatepass")
            encoded = {quote(data, safe=""), quote(data), quote_plus(data), *_base64_forms(data)}
            forms |= encoded | {re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), form) for form in encoded}
    lines = value.split("\n")
    if len(lines) > 1:  # for a key in several lines, each alone, and all in one line
        forms |= {line.strip() for line in lines if len(line) >= MIN_ENCODED_CHARS and not line.startswith("-----")}
        forms.add(" ".join(value.split()))
    forms |= {repr(form)[1:-1] for form in forms}
    deeper = forms
    for level in range(JSON_LEVELS):
        deeper = {escaped for form in deeper for escaped in (_in_json(form) if level else _in_any_json(form))}
        forms |= deeper
    return {form for form in forms if len(form) >= MIN_NAMED_CHARS}


def _in_json(text: str) -> set[str]:
    """Returns a text within a string of JSON, with characters as they are and with all but ASCII escaped."""
    return {json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]}


def _in_any_json(text: str) -> set[str]:
    """Returns a text within a string of JSON also as other languages write it: slashes escaped, or safe for HTML."""
    plain = _in_json(text)
    slashes = {each.replace("/", "\\/") for each in plain}
    return plain | slashes | {_FOR_HTML.sub(lambda sign: f"\\u{ord(sign[0]):04x}", each) for each in plain}


def _base64_forms(data: bytes) -> Iterator[str]:
    """Returns the characters of base64 that depend on these bytes alone, for each offset in a group of three."""
    for before in range(3):
        text = base64.b64encode(bytes(before) + data).decode()
        whole = (before + len(data)) * 8 // 6
        inner = text[-(-before * 8 // 6) : whole]
        for form in (inner, *((text, text.rstrip("=")) if before == 0 else ())):
            yield form
            yield form.translate(str.maketrans("+/", "-_"))


def _tells(name: str) -> bool:
    """Returns whether a variable's name says that its value is secret."""
    return any(map(_TELLING.fullmatch, _words(name)))


def _is_about(words: list[str]) -> bool:
    """Returns whether a name describes something about a secret instead: TOKEN_URL, CREDENTIAL_HELPER."""
    return _TELLING.fullmatch(words[-1]) is None


def _words(name: str) -> list[str]:
    return [word for word in (word.upper() for word in _WORD.findall(name)) if word not in _NO_KEYS]


def _is_path(value: str) -> bool:
    return value.startswith(("/", "~/")) and "\0" not in value and os.path.exists(os.path.expanduser(value))  # noqa: PTH110, PTH111
