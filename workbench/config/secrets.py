"""Secret values: which values are secret, and how they are found and redacted in texts."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache, cached_property
from threading import Lock
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints
from urllib.parse import quote, quote_plus, unquote

from workbench.config.secret_forms import BEFORE_WORD, LOOK_BACK_CHARS, FormPlace, forms_in, open_form_from
from workbench.dataclasses import compact_encoder
from workbench.startup import late_pattern

# Whether a value is secret depends on where it comes from. A value that is used as a key or a header is secret unless
# it is obviously ordinary. A value of a `.env` is secret unless it is ordinary. The environment contains all kinds of
# settings, so a value from there is secret only if both its name and its form suggest a secret. If too many values were
# secret, ordinary words in reports would be redacted. If too few values were secret, a key would be stored.

MIN_DECLARED_CHARS = 4
"""The shortest used value that is secret under a name that does not suggest a secret."""

MIN_NAMED_CHARS = 2
"""The shortest secret: hiding a single character would hide every text."""

MIN_KEY_CHARS = 8
"""The shortest value that can look like a key."""

MIN_FOREIGN_KEY_CHARS = 16
"""The shortest text that counts as a service's key although this program did not use it as a key."""

MIN_ENCODED_CHARS = 12
"""The shortest secret that is also searched for percent-encoded and in base64."""

JSON_LEVELS = 3
"""The levels of JSON texts inside JSON texts in which a secret is found."""

_FOR_HTML = late_pattern("[<>&]")
_SECRET_WORDS = late_pattern(
    r".*(KEYS?|APIKEY|TOKEN|SECRETS?|PWD|JWT|CREDENTIALS?)|.*PASS(?!ED|ES|IVE|AGE).*|PAT", re.DOTALL
)
_PASSWORD = late_pattern(r".*(TOKEN|SECRETS?|PWD|CREDENTIALS?)|.*PASS(?!ED|ES|IVE|AGE).*|PAT", re.DOTALL)
_NO_KEYS = frozenset({"MONKEY", "TURKEY", "HOTKEY", "DONKEY", "KEYBOARD", "BYPASS", "COMPASS"})
_ORDINARY_NAME_WORDS = late_pattern(
    "BASE|DIR|DOMAIN|EMAIL|ENDPOINT|ENV|ENVIRONMENT|FILE|FOLDER|HOST|LANG|LEVEL|LOCALE|MODE|MODEL|NAME|ORG|PATH|PORT|"
    "PROJECT|REGION|STAGE|TIMEOUT|TZ|URI|URL|USER|USERNAME|VERSION|ZONE"
)
"""Words in the names of ordinary variables. A value under such a name is secret only if it begins like a key."""

_REFERENCE = late_pattern(r"\$(?:\{\w+\}|[A-Z_][A-Z0-9_]*)")

_WORD = late_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_TOKEN = late_pattern(r"(?<![\w-])[A-Za-z0-9_.-]{16,}")
_SHORT_NUMBER = late_pattern(r"[+-]?\d{0,7}(\.\d*)?")
_PLAIN_WORD = late_pattern(r"[^\W\d_]{1,32}")
_IDENTIFIER = late_pattern(r"[a-z]+([_.-][a-z]+)*|[A-Z]+([_.-][A-Z]+)*|[A-Za-z]?[a-z]+([A-Z][a-z]+)*")
_ADDRESS = late_pattern(
    r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s@]*|([a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,}|localhost|\d+(\.\d+){3})(:\d+)?(/\S*)?"
)
_USER_PASSWORD = late_pattern(r"[a-z][a-z0-9+.-]*://([^\s/?#@:]*):([^\s/?#]+)@", re.IGNORECASE)
_KNOWN_BEGINNING = late_pattern(
    r"sk-|pk-|rk-|sk_|pk_|rk_|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AKIA|ASIA|AIza|ya29\.|hf_|npm_|pypi-|SG\.|eyJ|"
    r"shpat_|dop_v1_|xai-|gsk_|-----BEGIN "
)
_PLACEHOLDERS = late_pattern(
    "true|false|yes|no|on|off|none|null|empty|dummy|localhost|ollama|vllm|lm-?studio|not-(needed|required)|"
    "(sk-)?no-key(-required)?|your-api-key",
    re.IGNORECASE,
)
"""Words for yes and no, and placeholders for keys that are not needed."""


def is_secret_if_used(name: str, value: str) -> bool:
    """Return whether a value that is used as a key, a header or a server's setting is secret.

    It is secret unless it is a single character, a placeholder such as `true` or `none`, or the path of an existing
    file. A value of two or three characters is secret only if the name suggests a secret."""
    if len(value) < MIN_DECLARED_CHARS and not (len(value) >= MIN_NAMED_CHARS and _marks_secret(name)):
        return False
    return not _PLACEHOLDERS.fullmatch(value) and not _is_path(value)


def is_secret_of_file(name: str, value: str) -> bool:
    """Return whether a value in a `.env` is secret, if nothing is known about its use.

    The first of these rules that applies decides:

    - A value of fewer than `MIN_DECLARED_CHARS` characters, a placeholder and the path of an existing file are not
      secret.
    - A value that begins like the keys of well-known services is secret.
    - Under a name for a password, a token or another secret, every value is secret, except a word of the name
      (`POSTGRES_PASSWORD=postgres`).
    - A short number, an address, and an identifier made of words are not secret.
    - Any other value is secret if its name suggests a secret. It is also secret if it has at least `MIN_KEY_CHARS`
      characters and no word of its name is ordinary, such as MODEL or REGION."""
    if len(value) < MIN_DECLARED_CHARS or _PLACEHOLDERS.fullmatch(value) or _is_path(value):
        return False
    if _KNOWN_BEGINNING.match(value):
        return True
    words = _words(name)
    if any(map(_PASSWORD.fullmatch, words)) and not _is_about(words):
        return value.upper() not in words
    if _SHORT_NUMBER.fullmatch(value) or _ADDRESS.fullmatch(value) or _IDENTIFIER.fullmatch(value):
        return False
    return _marks_secret(name) or (len(value) >= MIN_KEY_CHARS and not any(map(_ORDINARY_NAME_WORDS.fullmatch, words)))


def looks_secret(name: str, value: str) -> bool:
    """Return whether the name of a variable suggests a secret and its value looks like a key.

    This rule is for the environment variables of the process, if nothing is known about their use."""
    return _marks_secret(name) and looks_like_key(value)


def names_a_secret(name: str) -> bool:
    """Return whether a variable's name is the name of a secret, such as API_KEY, but not TOKEN_URL."""
    words = _words(name)
    return any(map(_SECRET_WORDS.fullmatch, words)) and not _is_about(words)


def looks_like_key(value: str) -> bool:
    """Return whether a value begins like the keys of well-known services, or is long and mixes kinds of characters."""
    if (
        len(value) < MIN_KEY_CHARS
        or _PLACEHOLDERS.fullmatch(value)
        or _is_path(value)
        or _SHORT_NUMBER.fullmatch(value)
    ):
        return False
    if _KNOWN_BEGINNING.match(value):
        return True
    if re.search(r"\s", value) or _ADDRESS.fullmatch(value) or _IDENTIFIER.fullmatch(value):
        return False
    kinds = 0
    for kind in ("[a-z]", "[A-Z]", r"\d", r"[^A-Za-z0-9_.-]"):
        kinds += re.search(kind, value) is not None
    return kinds > 1 or value.isdigit()


def keys_in(text: str) -> Iterator[str]:
    """Yield the parts of a text that look like keys of well-known services.

    These parts need not be known secrets."""
    for match in _TOKEN.finditer(text):
        token = match[0].rstrip(".-_")
        if len(token) >= MIN_FOREIGN_KEY_CHARS and _KNOWN_BEGINNING.match(token) and re.search(r"\d", token):
            yield token


def passwords_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield user and password of each `scheme://user:password@` in a text, as written there."""
    for match in _USER_PASSWORD.finditer(text):
        yield match[1], match[2]


def is_plain_word(value: str) -> bool:
    """Return whether a value is one word of letters."""
    return _PLAIN_WORD.fullmatch(value) is not None


def is_reference(value: str) -> bool:
    """Return whether a value is a reference to a variable, `${NAME}` or `$NAME`."""
    return _REFERENCE.fullmatch(value) is not None


def forms_of(value: str) -> set[str]:
    """Return all forms in which a secret may appear in a text.

    The forms are the secret itself, its Python `repr`, and its text in JSON, escaped up to `JSON_LEVELS` times. For
    secrets of at least 12 characters, they include the percent-encoded secret, and its base64 at any offset."""
    forms = {value}
    if "%" in value:
        forms.add(unquote(value))
    if len(value) >= MIN_ENCODED_CHARS:
        for each in (value, *_in_json(value)):
            data = each.encode("utf-8", "surrogatepass")
            encoded = {quote(data, safe=""), quote(data), quote_plus(data), *_base64_forms(data)}
            forms |= encoded
            # Some programs percent-encode in lower case.
            forms.update(re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), form) for form in encoded)
    lines = value.split("\n")
    if len(lines) > 1:
        # A key of several lines may be quoted line by line, or with spaces between its lines.
        for line in lines:
            if len(line) >= MIN_ENCODED_CHARS and not line.startswith("-----"):
                forms.add(line.strip())
        forms.add(" ".join(value.split()))
    forms |= {repr(form)[1:-1] for form in forms}
    deeper = forms
    for level in range(JSON_LEVELS):
        # The escapes of PHP and Go (`\/`, `\u003c`) are tried only on the first level, because the number of forms
        # grows exponentially with the levels.
        escape = _in_json if level else _in_any_json
        deeper = set().union(*map(escape, deeper))
        forms |= deeper
    return {form for form in forms if len(form) >= MIN_NAMED_CHARS}


def _in_json(text: str) -> set[str]:
    """Return the forms of a text inside a JSON string, with and without escapes of characters outside ASCII."""
    return {json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]}


def _in_any_json(text: str) -> set[str]:
    """Return the forms of a text inside a JSON string, including those of PHP and Go.

    PHP escapes slashes, and Go escapes the characters of HTML."""
    forms = _in_json(text)
    for plain in tuple(forms):
        forms.add(plain.replace("/", "\\/"))
        forms.add(_FOR_HTML.sub(lambda sign: f"\\u{ord(sign[0]):04x}", plain))
    return forms


def _base64_forms(data: bytes) -> Iterator[str]:
    """Yield strings, of which at least one occurs in every base64 text that contains these bytes.

    Both the usual and the URL-safe alphabet are covered."""
    # Base64 encodes groups of three bytes as four characters. The same bytes therefore have three forms, one for each
    # offset in a group. Characters at both ends also depend on neighbouring bytes and are omitted.
    for before in range(3):
        text = base64.b64encode(bytes(before) + data).decode()
        whole = (before + len(data)) * 8 // 6
        forms = [text[-(-before * 8 // 6) : whole]]
        if before == 0:
            forms += [text, text.rstrip("=")]
        for form in forms:
            yield form
            yield form.translate(str.maketrans("+/", "-_"))


def _marks_secret(name: str) -> bool:
    return any(map(_SECRET_WORDS.fullmatch, _words(name)))


def _is_about(words: list[str]) -> bool:
    """Return whether the words of a name mean a property of a secret, as in TOKEN_URL or CREDENTIAL_HELPER."""
    return _SECRET_WORDS.fullmatch(words[-1]) is None


def _words(name: str) -> list[str]:
    words = map(str.upper, _WORD.findall(name))
    return [word for word in words if word not in _NO_KEYS]


def _is_path(value: str) -> bool:
    return value.startswith(("/", "~/")) and "\0" not in value and os.path.exists(os.path.expanduser(value))  # noqa: PTH110, PTH111


_LONG_TEXT = 2_048
"""Texts of at least this length are first searched for a few plain strings. That is fast for texts without secrets."""

_WHOLE_WORD_BELOW = 8
"""Below this length, a value of letters and digits counts only as a whole word."""

_AFTER_WORD = r"(?![A-Za-z0-9])"
_NEVER_MATCHES = "(?!)"
_LONE_SURROGATE = late_pattern("[\ud800-\udfff]")

Place = tuple[int, int, str]
"""Start and end of a value in a text, and its replacement."""


# One pattern contains every form of every secret (`forms_of`), the longest first, so one pass finds all secrets. Most
# texts hold no secret, so a search begins with a fast test for a few plain strings, of which every secret contains one.
# Short values are found only as whole words. Otherwise the password "test" would be redacted inside other words.
#
# Text that arrives in pieces is redacted up to the first place where an incomplete secret may begin (`undecided_from`).
# Only the rest is held back until more text arrives, so streamed text appears almost without delay.
class Finder:
    """A search for secret values, and for secrets that are recognised by their form.

    `replacements` maps each value to its replacement. `exempt` has secrets (`FormPlace.what`) that are not replaced
    although they are recognised by their form, because the user wrote them in a suite."""

    def __init__(self, replacements: Mapping[str, str], exempt: frozenset[str] = frozenset()) -> None:
        self.replacements = replacements
        self.exempt = exempt
        self.values = tuple(sorted(replacements, key=lambda value: (-len(value), value)))
        self.longest = max(map(len, self.values), default=0)
        self._pattern = _pattern_of(self.values)
        self._words = frozenset(filter(_is_word, self.values))
        self._by_first: dict[str, list[str]] = {}
        for value in self.values:
            self._by_first.setdefault(value[0], []).append(value)
        begins = "|".join(_beginning(first, values) for first, values in self._by_first.items())
        self._begins = re.compile(begins or _NEVER_MATCHES)

    def may_contain(self, text: str) -> bool:
        """Return whether a text may hold a secret. The answer may be wrongly true, but never wrongly false."""
        if len(text) > _LONG_TEXT:
            return any(map(text.__contains__, self._needles)) or self._has_form(text)
        return (bool(self.values) and self._pattern.search(text) is not None) or self._has_form(text)

    def json_may_contain(self, text: str) -> bool:
        """Return whether a JSON text may hold a secret, in a string or as a number.

        Characters outside ASCII must not be escaped in the text. The test is fast if there is no secret."""
        may_be = any(map(text.__contains__, self._json_needles)) and self._json_pattern.search(text) is not None
        return may_be or self._has_form(text)

    def replaced(self, text: str) -> str:
        """Return a text with each secret replaced. A text without secrets is returned as the same object."""
        if len(text) > _LONG_TEXT:
            if not self.may_contain(text):
                return text
            # A pattern of the few values in this text is faster than a pattern of all values.
            here = [value for value in self.values if value in text]
            if len(here) < len(self.values):
                return Finder({value: self.replacements[value] for value in here}, self.exempt).replaced(text)
        shown: list[str] = []
        at = 0
        for first, end, replacement in self._places(text, 0):
            shown += (text[at:first], replacement)
            at = end
        if not at:
            return text
        return "".join((*shown, text[at:]))

    def undecided_from(self, text: str) -> int:
        """Return the position of the first secret that the end of the text may cut off, or the length of the text."""
        form = open_form_from(text)
        for begin in self._begins.finditer(text, len(text) - min(self.longest, len(text)), form):
            tail = text[begin.start() :]
            for value in self._by_first[tail[0]]:
                if value.startswith(tail) and (len(value) > len(tail) or value in self._words):
                    return begin.start()
        return form

    def decided_part(self, text: str, begin: int, *, is_last: bool) -> tuple[int, list[Place]]:
        """Return the length of the part of a text that later pieces cannot change, and the secrets in this part.

        Without `is_last`, more text may follow, and a secret may be incomplete at the end. The part before `begin` was
        searched earlier."""
        until = len(text)
        if not is_last:
            until = max(self.undecided_from(text), begin)
        places = self._places(text, begin)
        # A value that extends beyond this part may be the beginning of a longer value.
        for first, end, _ in places:
            if first < until < end:
                until = first
        return until, [place for place in places if place[1] <= until]

    def _places(self, text: str, begin: int) -> list[Place]:
        """Return the places of secrets in a text, in order and without overlaps.

        Overlapping places are joined. The joined place gets the replacement of the secret that begins first. If several
        secrets begin there, it gets the replacement of the longest. If a known value and a recognised form are equally
        long, the value counts, because its name says more."""
        values: list[Place] = []
        if self.values:
            for match in self._pattern.finditer(text, begin):
                values.append((match.start(), match.end(), self.replacements[match[0]]))
        forms = [form[:3] for form in self._forms(text, begin)]
        if not forms:
            return values
        places: list[Place] = []
        for place in sorted([*values, *forms], key=lambda place: (place[0], -place[1])):
            if places and place[0] < places[-1][1]:
                first, end, replacement = places.pop()
                place = (first, max(end, place[1]), replacement)
            places.append(place)
        return places

    def _forms(self, text: str, begin: int = 0) -> Iterator[FormPlace]:
        return (form for form in forms_in(text, begin) if form.what not in self.exempt)

    def _has_form(self, text: str) -> bool:
        return next(self._forms(text), None) is not None

    @cached_property
    def _needles(self) -> tuple[str, ...]:
        return _needles_of(self.values)

    @cached_property
    def _json_needles(self) -> tuple[str, ...]:
        return _needles_of(self._values_in_json)

    @cached_property
    def _json_pattern(self) -> re.Pattern[str]:
        return _pattern_of(sorted(self._values_in_json, key=lambda value: (-len(value), value)))

    @cached_property
    def _values_in_json(self) -> frozenset[str]:
        return frozenset().union(*map(_finding_in_json, self.values))


class RedactedPieces:
    """The redaction of a text that arrives in pieces.

    If the end of a piece may be the beginning of a secret, that end is held back until further pieces arrive."""

    def __init__(self) -> None:
        self._pending = ""
        self._before = ""

    def add(self, piece: str, finder: Finder) -> str:
        """Add a piece. Return redacted text as far as it cannot contain the beginning of a secret."""
        return self._decided(piece, finder, is_last=False)

    def flush(self, finder: Finder) -> str:
        """End the text. Return the part that was held back, redacted."""
        return self._decided("", finder, is_last=True)

    def _decided(self, piece: str, finder: Finder, *, is_last: bool) -> str:
        text, begin = self._before + self._pending + piece, len(self._before)
        until, places = finder.decided_part(text, begin, is_last=is_last)
        shown: list[str] = []
        at = begin
        for first, last, replacement in places:
            shown += (text[at:first], replacement)
            at = last
        # The last characters before the held text are kept, because they determine whether a word begins after them.
        self._pending, self._before = text[until:], text[max(until - LOOK_BACK_CHARS, 0) : until]
        return "".join((*shown, text[at:until]))


def _finding_in_json(value: str) -> tuple[str, ...]:
    """Return the forms of a value inside a JSON string: with lone surrogates unescaped, and escaped."""
    text = json.dumps(value, ensure_ascii=False)[1:-1]
    if text.isascii():
        return (text,)
    return (text, _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def _needles_of(values: Iterable[str]) -> tuple[str, ...]:
    """Return short strings, of which at least one occurs in each of the values. They serve for a fast first test."""
    # Most forms of a secret contain another form of it, so the shortest forms are enough.
    needles: list[str] = []
    for value in sorted(values, key=len):
        if not any(needle in value for needle in needles):
            needles.append(value)
    return tuple(needles)


def _pattern_of(values: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds the longest value at each position. `values` must have the longest first."""
    words, others = [], []
    for value in values:
        if _is_word(value):
            words.append(value)
        else:
            others.append(value)
    alternatives = []
    if others:
        alternatives.append(_alternatives(others))
    if words:
        alternatives.append(f"{BEFORE_WORD}{_alternatives(words)}{_AFTER_WORD}")
    return re.compile("|".join(alternatives) or _NEVER_MATCHES)


def _beginning(first: str, values: Iterable[str]) -> str:
    """Return a pattern for the first two characters of values that begin with `first`.

    The pattern also finds the first character alone at the end of a text."""
    seconds = {re.escape(value[1]) for value in values}
    return f"{re.escape(first)}(?=[{''.join(seconds)}]|\\Z)"


def _is_word(value: str) -> bool:
    return len(value) < _WHOLE_WORD_BELOW and value.isascii() and value.isalnum()


def _alternatives(values: Iterable[str]) -> str:
    # Values are grouped by their first two characters, so that positions where no value begins are skipped quickly.
    rests: dict[str, list[str]] = {}
    for value in values:
        rests.setdefault(value[:2], []).append(re.escape(value[2:]))
    groups = (f"{re.escape(begin)}(?:{'|'.join(each)})" for begin, each in rests.items())
    return f"(?:{'|'.join(groups)})"


_OWN_FIELDS = frozenset(
    {"by", "decided_by", "grader", "hash", "program", "role", "run", "run_id", "started_at", "status", "suite_hash"}
    | {"verdict", "workbench"}
)
"""Fields of Workbench's records whose texts come from Workbench alone and need no search."""

_Value = TypeVar("_Value")


class Secrets:
    """The secret values that the program knows, each with the name of its variable.

    One instance serves the whole program, and values are only added. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[str, str] = {}
        self.finder = Finder({})
        """The search for the values and for secrets of known forms. Adding a value makes a new object."""

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """All forms in which the secret values may occur, each with the name of its variable. The longest come first.

        A pair holds the name and the form, in this order."""
        finder = self.finder
        return tuple((finder.replacements[value].lstrip("$"), value) for value in finder.values)

    def add(self, name: str, value: str) -> None:
        """Add a value that is used as a key, a header or a server's setting.

        The passwords of addresses in the value are added too."""
        if is_secret_if_used(name, value):
            self._add(name, value)
        self.add_passwords(name, value)

    def add_from_file(self, name: str, value: str) -> None:
        """Add a value of a `.env` file if it is secret by the rule of `is_secret_of_file`.

        The passwords of addresses in the value are added too."""
        if is_secret_of_file(name, value):
            self._add(name, value)
        self.add_passwords(name, value)

    def add_if_it_looks_secret(self, name: str, value: str) -> None:
        """Add a value of the environment if its name and its form suggest a secret."""
        if looks_secret(name, value):
            self._add(name, value)
        self.add_passwords(name, value)

    def add_text(self, name: str, text: str) -> None:
        """Add a text that the caller has found to be secret."""
        self._add(name, text)

    def add_passwords(self, name: str, text: str) -> None:
        """Add the password of each `scheme://user:password@` in a text.

        A password that is an ordinary word is redacted only after its user and a colon. Otherwise, the password in
        `postgres://postgres:postgres@` would hide the word "postgres" in every text."""
        if "://" not in text:
            return
        for user, password in passwords_in(text):
            if is_reference(password):
                continue
            if is_plain_word(password) or not is_secret_if_used("PASSWORD", password):
                self._remember({f"{user}:{password}@": f"{user}:${name}@"})
            else:
                self._add(name, password)

    def _add(self, name: str, value: str) -> None:
        self._remember(dict.fromkeys(forms_of(value), f"${name}"))

    def _remember(self, replacements: Mapping[str, str]) -> None:
        with self._lock:
            new = {form: shown for form, shown in replacements.items() if form not in self._known}
            # The finder is replaced only for a new value, because compiling the finder's patterns is slow.
            if new:
                self._known |= new
                self.finder = Finder(dict(self._known), self.finder.exempt)

    def exempt(self, text: str) -> None:
        """Do not redact the tokens and passwords in a suite's text that are recognised only by their form.

        Values that were added stay secret."""
        # The user wrote these values. If they were redacted in a run but not in an expectation, the run and the
        # expectation would differ.
        own = {form.what for form in forms_in(text)}
        with self._lock:
            if not own <= self.finder.exempt:
                self.finder = Finder(dict(self._known), self.finder.exempt | own)

    @property
    def replacements(self) -> Mapping[str, str]:
        """The replacement of each form of each value. Adding a value creates a new mapping."""
        return self.finder.replacements

    def merge(self, replacements: Mapping[str, str]) -> None:
        """Add the `replacements` of another process."""
        self._remember(replacements)

    def __reduce__(self) -> tuple[Callable[..., Secrets], tuple[Mapping[str, str], frozenset[str]]]:
        # Only worker processes get the pickle, over a private pipe.
        return _like, (self.finder.replacements, self.finder.exempt)

    def redact(self, text: str) -> str:
        """Return a text with `$NAME` in place of every secret.

        A text without secrets is returned as the same object."""
        return self.finder.replaced(text)

    def redacted(self, value: _Value) -> _Value:
        """Return a JSON value, or a record of JSON values, with every text redacted.

        A record is a data class, a named tuple or a pydantic model. Keys of objects are also redacted, and a number
        that is a secret becomes a text. Values and parts without secrets stay the same objects."""
        # One search of the JSON text shows that most values hold no secret.
        finder = self.finder
        if not _may_hold(value, finder):
            return value
        redacted: _Value = _ValueRedaction(finder).redacted(value)
        return redacted

    def json_may_contain(self, text: str) -> bool:
        """Return whether a JSON text may hold a secret value."""
        return self.finder.json_may_contain(text)


def _like(replacements: Mapping[str, str], exempt: frozenset[str]) -> Secrets:
    secrets = Secrets()
    secrets.finder = Finder({}, exempt)
    secrets.merge(replacements)
    return secrets


class _ValueRedaction:
    """The redaction of one value. A list or an object that occurs several times is searched once."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._known: dict[int, tuple[object, object]] = {}

    def redacted(self, value: Any) -> Any:
        kind: Any = type(value)
        if kind is str:
            return self._finder.replaced(value)
        if kind in (bool, NoneType):
            return value
        if kind in (int, float):
            text = str(value)
            shown = self._finder.replaced(text)
            if shown is text:
                return value
            return shown
        if kind is dict or kind is list:
            return self._json(value)
        if kind is tuple:
            items = [self.redacted(item) for item in value]
            if _are_same(items, value):
                return value
            return tuple(items)
        names = _text_fields(kind)
        if names is None:
            if isinstance(value, Mapping):
                return self._json(dict(value))
            return value
        changed = {}
        for name in names:
            before = getattr(value, name)
            after = self.redacted(before)
            if after is not before:
                changed[name] = after
        if not changed:
            return value
        if hasattr(value, "_replace"):
            return value._replace(**changed)
        if is_dataclass(kind):
            return replace(value, **changed)
        return value.model_copy(update=changed)

    def _json(self, value: Any) -> Any:
        """Redact a list or an object. Its items are searched only if its JSON text may hold a secret."""
        known = self._known.get(id(value))
        if known is None:
            redacted = value
            if _may_hold(value, self._finder):
                redacted = self._walked(value)
            # The cache also keeps the value alive. Otherwise another object could get the same id.
            known = self._known[id(value)] = (value, redacted)
        return known[1]

    def _walked(self, value: Any) -> Any:
        kind = type(value)
        if kind is dict:
            keys = []
            for key in value:
                keys.append(self._finder.replaced(key) if type(key) is str else key)
            items = [self._walked(item) for item in value.values()]
            same = _are_same(items, value.values()) and _are_same(keys, value)
            if same:
                return value
            return dict(zip(keys, items, strict=True))
        if kind is list:
            items = [self._walked(item) for item in value]
            if _are_same(items, value):
                return value
            return items
        return self.redacted(value)


def _may_hold(value: Any, finder: Finder) -> bool:
    """Return whether a value may hold a secret. The result is true for a value that JSON cannot express."""
    if type(value) is str:
        return finder.may_contain(value)
    try:
        text = _encoded(value)
    except (TypeError, ValueError, RecursionError):
        return True
    return finder.json_may_contain(text)


def _searched(value: Any) -> dict[str, Any]:
    """Return the fields of a record that must be searched for secrets, by name. Empty fields are left out.

    Raises TypeError for an object that is not a record."""
    kind: Any = type(value)
    names = _text_fields(kind)
    if names is not None:
        filled = {}
        for name in names:
            item = getattr(value, name)
            # Most fields of a case are empty. The float 0.0 is searched, because its text may be a secret.
            if item or type(item) is float:
                filled[name] = item
        return filled
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


_encoded = compact_encoder(_searched)


def _are_same(items: Any, others: Any) -> bool:
    return all(item is other for item, other in zip(items, others, strict=True))


@cache
def _text_fields(kind: Any) -> tuple[str, ...] | None:
    """Return the names of the fields of a record type that may hold secrets, or `None` for any other type.

    Fields of data classes that are marked `opaque` are not searched, because a change would destroy their content."""
    if is_dataclass(kind):
        names = [field.name for field in fields(kind) if field.init and not field.metadata.get("opaque", False)]
    elif hasattr(kind, "_fields"):
        names = list(kind._fields)
    elif hasattr(kind, "model_fields"):
        names = list(kind.model_fields)
    else:
        return None
    # A type that is imported only for type checkers cannot be resolved at run time. All fields are then searched.
    try:
        hints = get_type_hints(kind)
    except NameError:
        hints = {}
    return tuple(name for name in names if not _is_our_own(hints.get(name, str), ours=name in _OWN_FIELDS))


def _is_our_own(hint: Any, *, ours: bool) -> bool:
    """Return whether values with a type hint need no search: literals, numbers and `None`.

    With `ours`, strings need no search either, because only this program writes them."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _is_our_own(get_args(hint)[0], ours=ours)
    if origin in (Union, UnionType):
        # The limit on the members keeps this function from following the recursive union `JsonValue` for ever.
        inner = get_args(hint)
        return len(inner) < 4 and all(_is_our_own(each, ours=ours) for each in inner)
    if origin is Mapping:
        return get_args(hint) == (str, float)
    return origin is Literal or hint in (bool, int, float, NoneType) or (ours and hint is str)


NO_SECRETS = Secrets()
"""Secrets without values, which find only secrets that are recognised by their form. Never add a value."""
