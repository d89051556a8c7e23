"""Detection of secrets by their form: tokens of well-known services, private keys, and passwords in addresses.

Such secrets are found even if the program does not know their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import NamedTuple
from urllib.parse import unquote

from workbench.startup import late_pattern

# Every event is searched, so the search must be fast. It first looks for a few characters, of which every form contains
# one. All patterns also match inside JSON texts, where line ends, quotes and slashes are escaped.

BEFORE_WORD = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2})|(?<=\[m)|(?<=[0-9]m))"
LOOK_BACK_CHARS = 6
"""The number of characters that `BEFORE_WORD` reads before a position."""

_ALNUM, _BASE64 = "[A-Za-z0-9]", "[A-Za-z0-9_-]"
# A name of lower-case words with hyphens, such as `sk-ant-colony-simulation`, is not a token.
_MIXED = rf"(?={_BASE64}{{0,64}}[A-Z0-9])"


class _Form(NamedTuple):
    """The form of a service's tokens: one of the `prefixes`, then `body`, a pattern. `name` replaces a found token.

    `alphabet` is a pattern for one character of the body."""

    name: str
    prefixes: tuple[str, ...]
    body: str
    alphabet: str


_FORMS = (
    _Form("GITHUB_TOKEN", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _ALNUM + "{30,}", _ALNUM),
    _Form("GITHUB_TOKEN", ("github_pat_",), "[A-Za-z0-9_]{22,}", "[A-Za-z0-9_]"),
    _Form("ANTHROPIC_KEY", ("sk-ant-",), _MIXED + _BASE64 + "{20,}", _BASE64),
    _Form("OPENAI_KEY", ("sk-proj-", "sk-svcacct-", "sk-admin-"), _MIXED + _BASE64 + "{20,}", _BASE64),
    _Form("OPENAI_KEY", ("sk-",), _ALNUM + "{32,}", _ALNUM),
    _Form("OPENROUTER_KEY", ("sk-or-v1-",), _ALNUM + "{32,}", _ALNUM),
    _Form("AWS_KEY", ("AKIA", "ASIA"), "[A-Z0-9]{16}(?![A-Za-z0-9])", "[A-Z0-9]"),
    _Form("GOOGLE_KEY", ("AIza",), _BASE64 + "{33,}", _BASE64),
    _Form("SLACK_TOKEN", ("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"),
          "(?=[A-Za-z0-9-]{0,64}[0-9])[A-Za-z0-9-]{10,}", "[A-Za-z0-9-]"),
    _Form("GITLAB_TOKEN", ("glpat-",), _MIXED + _BASE64 + "{20,}", _BASE64),
    _Form("NPM_TOKEN", ("npm_",), _ALNUM + "{30,}", _ALNUM),
    _Form("PYPI_TOKEN", ("pypi-",), rf"(?={_BASE64}{{0,64}}[A-Z])" + _BASE64 + "{40,}", _BASE64),
    _Form("HUGGING_FACE_TOKEN", ("hf_",), _ALNUM + "{30,}", _ALNUM),
    _Form("STRIPE_KEY", ("sk_live_", "rk_live_"), _ALNUM + "{16,}", _ALNUM),
    _Form("GROQ_KEY", ("gsk_",), _ALNUM + "{40,}", _ALNUM),
    _Form("XAI_KEY", ("xai-",), _ALNUM + "{40,}", _ALNUM),
    _Form("JWT", ("eyJ",), rf"{_BASE64}{{8,2048}}\.eyJ{_BASE64}{{8,16384}}\.{_BASE64}{{8,}}", "[A-Za-z0-9_.-]"),
)  # fmt: skip
_PREFIXES = tuple(chain.from_iterable(form.prefixes for form in _FORMS))


def _head_before(sign: str) -> re.Pattern[str]:
    """Return a pattern that finds `sign` after the beginning of a token's prefix.

    The beginning is the part of the prefix before its first `sign`, such as `ghp` for the sign `_`."""
    # A pattern is fastest if it begins with a single literal character and then looks behind it.
    heads = dict.fromkeys(prefix.partition(sign)[0] for prefix in _PREFIXES if sign in prefix)
    before = "".join(head[-1] for head in heads)
    return late_pattern(f"{sign}(?<=[{before}]{sign})(?:{'|'.join(f'(?<={head}{sign})' for head in heads)})")


_HEADS = tuple(map(_head_before, "_-"))
_WHOLE = tuple(filter(str.isalnum, _PREFIXES))
"""The prefixes that consist only of letters and digits."""

# These five patterns are not compiled here, because few commands need them. Compiling them takes half a percent of a
# short command's time.
_PEM = "-----BEGIN "
_PRIVATE_KEY = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?=(?:(?!-----)[\s\S]){0,300}?[A-Za-z0-9+/]{16})"
    r"(?:[^-]*(?:-(?!----)[^-]*)*-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"|(?:(?:\s|\\+[nr])*[A-Za-z0-9+/=]{30,80})+)"  # a key whose end is missing
)
_OPEN_KEY = (
    r"-----BEGIN [A-Z0-9 ]{0,60}(?:-{0,5}\Z"
    r"|-----[^-]*(?:-(?!----)[^-]*)*(?:-----(?:E|EN|END|END [A-Z0-9 ]{0,60}-{0,4})?)?\Z)"
)

_USER = r"[^\s\x00-\x1f/?#@:\"'<>`,\\\[]"
_PASSWORD_FORM = r"(?:[^\s\x00-\x1f/?#\"'<>`\\]|\\(?![nrt])|(?<=[\w\\])[\"'](?=\w|\\+u))"
_ADDRESS_FORM = (
    rf":\\*/\\*/(?P<user>{_USER}{{0,256}}):(?!\d{{1,5}}[,;|)\]}}\"'`\\])(?P<password>{_PASSWORD_FORM}{{1,512}})@"
)
_ENCODED_ADDRESS = (
    r"(?i)%3A%2F%2F(?P<user>(?:[^\s\x00-\x1f/?#@:&\"'<>`,\\%]|%(?!2F|3F|23|40|3A|20|0A)){0,256})%3A"
    r"(?P<password>(?:[^\s\x00-\x1f/?#&\"'<>`,\\%]|%(?!2F|3F|23|20|0A)){1,512})%40"
)
_OPEN_ADDRESS = (
    rf"(?i):\\*/?\\*\Z|:\\*/\\*/{_USER}{{0,256}}(?::[^\s/?#]{{0,512}})?\Z"
    r"|%(?:3(?:A(?:%(?:2(?:F(?:%(?:2(?:F[^\s/?#&]{0,768})?)?)?)?)?)?)?)?\Z"
)
_PLACEHOLDER = late_pattern(
    r"\$\{[^}]*\}|\$\([^)]*\)|\$[A-Z_][A-Z0-9_]*|\{+[^{}]*\}+|%[A-Za-z0-9_]+%|%s|\*+|[xX]{3,}|\.{3}|…"
)
"""Matches a placeholder instead of the password in an address."""
_BEFORE_WORD = late_pattern(BEFORE_WORD)
_ESCAPES = late_pattern(r"\\+[nrt]|[\s\\]")
# The text that is held back is searched again with each new piece, so its length is limited. A longer token that
# arrives in pieces may therefore be missed.
_MAX_OPEN_CHARS = 4_096
_WORD_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"


class FormPlace(NamedTuple):
    """The position and the replacement of a secret of a known form in a text.

    `what` is the secret without JSON escapes. For an address, it is `user:password`."""

    first: int
    end: int
    replacement: str
    what: str


def forms_in(text: str, begin: int = 0) -> Iterator[FormPlace]:
    """Yield the secrets of known forms that begin in a text at or after `begin`. They may overlap."""
    if _may_hold_token(text):
        for form, pattern in _patterns():
            if any(map(text.__contains__, form.prefixes)):
                for match in pattern.finditer(text, begin):
                    if _BEFORE_WORD.match(text, match.start()):
                        yield FormPlace(match.start(), match.end(), f"${form.name}", match[0])
    if "-" in text and _PEM in text:
        for match in re.compile(_PRIVATE_KEY).finditer(text, begin):
            yield FormPlace(match.start(), match.end(), "$PRIVATE_KEY", _ESCAPES.sub("", match[0]))
    if "@" in text and ("://" in text or ":\\" in text):
        # A match ends with "@". In most texts, the last "@" is near the beginning, in the name of the model.
        yield from _passwords(re.compile(_ADDRESS_FORM).finditer(text, begin, text.rindex("@") + 1))
    if "%" in text and "%40" in text:
        yield from _passwords(re.compile(_ENCODED_ADDRESS).finditer(text, begin))


def open_form_from(text: str) -> int:
    """Return the position of the first secret that the end of the text may cut off.

    Return the length of the text if there is none."""
    found = len(text)
    word = max(len(text.rstrip(_WORD_CHARACTERS)), found - _MAX_OPEN_CHARS)
    if word < found and (match := _open_token().search(text, word)) is not None:
        found = match.start()
    address = max(text.rfind(" ") + 1, text.rfind("\n") + 1, len(text) - _MAX_OPEN_CHARS)
    if (":" in text or "%" in text) and (match := re.compile(_OPEN_ADDRESS).search(text, address)) is not None:
        found = min(found, match.start())
    if "-" in text:
        last = text.rfind("-----B")
        if last >= 0 and (_PEM.startswith(text[last:]) or re.compile(_OPEN_KEY).match(text, last)):
            found = min(found, last)
        found = min(found, max(len(text.rstrip("-")), len(text) - 5))
    return found


def _passwords(matches: Iterable[re.Match[str]]) -> Iterator[FormPlace]:
    for match in matches:
        user, password = _plain(match["user"]), _plain(match["password"])
        if not _PLACEHOLDER.fullmatch(password):
            yield FormPlace(*match.span("password"), "$PASSWORD", f"{user}:{password}")


def _plain(text: str) -> str:
    return unquote(_ESCAPES.sub("", text))


def _may_hold_token(text: str) -> bool:
    if any(pattern.search(text) for pattern in _HEADS):
        return True
    return any(each[0] in text and each[-1] in text and each in text for each in _WHOLE)


@cache
def _patterns() -> tuple[tuple[_Form, re.Pattern[str]], ...]:
    patterns = []
    for form in _FORMS:
        patterns.append((form, late_pattern(f"(?:{'|'.join(form.prefixes)}){form.body}")))
    return tuple(patterns)


@cache
def _open_token() -> re.Pattern[str]:
    """Return a pattern for an incomplete token at the end of a text. Even the token's prefix may be incomplete."""
    # For the prefix `ab`, the pattern is `(?:a(?:b[…]*)?)?`: any beginning of the prefix, or the whole prefix and a
    # part of the body.
    begun = []
    for form in _FORMS:
        for prefix in form.prefixes:
            opened = "".join(f"(?:{sign}" for sign in prefix)
            begun.append(f"{opened}{form.alphabet}*" + ")?" * len(prefix))
    first = "".join(sorted({prefix[0] for prefix in _PREFIXES}))
    return re.compile(rf"{BEFORE_WORD}(?=[{first}])(?:{'|'.join(begun)})\Z")
