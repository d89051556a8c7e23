"""Secrets: which values are secret, the forms in which they are written, and how texts are searched and redacted."""

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

from workbench.config.secret_forms import BEFORE_WORD, LOOKS_BACK, FormPlace, forms_in, open_form_from
from workbench.startup import late_pattern

# Decides which values are secret, and in which forms a secret may be written.

MIN_DECLARED_CHARS = 4
"""A shorter value that is really used is secret only if its variable's name says so."""

MIN_NAMED_CHARS = 2
"""A single character is never secret: hiding it would hide every text."""

MIN_KEY_CHARS = 8
"""A value that looks like a key has at least this many characters."""

MIN_FOREIGN_KEY_CHARS = 16
"""A value that was never used here as a key is one only if it is this long."""

MIN_ENCODED_CHARS = 12
"""A secret of this length is also searched percent-encoded and in base64."""

JSON_LEVELS = 3
"""A secret is found in JSON within JSON within JSON."""

_FOR_HTML = late_pattern("[<>&]")
_TELLING = late_pattern(
    r".*(KEYS?|APIKEY|TOKEN|SECRETS?|PWD|JWT|CREDENTIALS?)|.*PASS(?!ED|ES|IVE|AGE).*|PAT", re.DOTALL
)
_PASSWORD = late_pattern(r".*(TOKEN|SECRETS?|PWD|CREDENTIALS?)|.*PASS(?!ED|ES|IVE|AGE).*|PAT", re.DOTALL)
_NO_KEYS = frozenset({"MONKEY", "TURKEY", "HOTKEY", "DONKEY", "KEYBOARD", "BYPASS", "COMPASS"})
_EVERYDAY = late_pattern(
    "BASE|DIR|DOMAIN|EMAIL|ENDPOINT|ENV|ENVIRONMENT|FILE|FOLDER|HOST|LANG|LEVEL|LOCALE|MODE|MODEL|NAME|ORG|PATH|PORT|"
    "PROJECT|REGION|STAGE|TIMEOUT|TZ|URI|URL|USER|USERNAME|VERSION|ZONE"
)
"""Words in names of a `.env` that hold no secret, unless the value begins like a key."""

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
_NOTHING = late_pattern(
    "true|false|yes|no|on|off|none|null|empty|dummy|localhost|ollama|vllm|lm-?studio|not-(needed|required)|"
    "(sk-)?no-key(-required)?|your-api-key",
    re.IGNORECASE,
)
"""Placeholders for values that are not needed, and the words for yes and no."""


def is_secret_if_used(name: str, value: str) -> bool:
    """Return whether a value that was used as a key, a header or a server's setting is secret.

    All are but one character, a word for yes, no or nothing, a path that exists, and two or three characters under an
    everyday name."""
    shortest = MIN_NAMED_CHARS if _tells(name) else MIN_DECLARED_CHARS
    return len(value) >= shortest and not _NOTHING.fullmatch(value) and not _is_path(value)


def is_secret_of_file(name: str, value: str) -> bool:
    """Return whether an unused value in a `.env` is secret.

    All are but those that `is_secret_if_used` excludes, numbers, addresses, single words, and values of an everyday
    name such as MODEL or REGION.

    A name that says "password", "token" or "secret" makes a single word secret too, unless the word is part of the name
    (`POSTGRES_PASSWORD=postgres`)."""
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
    """Return whether an unused value of the environment is secret: its name says so, and it looks like a key.

    An ordinary word never does."""
    return _tells(name) and looks_like_key(value)


def names_a_secret(name: str) -> bool:
    """Return whether a name says that its value is secret, and not something about a secret, such as TOKEN_URL."""
    words = _words(name)
    return any(map(_TELLING.fullmatch, words)) and not _is_about(words)


def looks_like_key(value: str) -> bool:
    """Return whether a value has the length and the mixture of a key, or begins like keys of well-known services."""
    if len(value) < MIN_KEY_CHARS or _NOTHING.fullmatch(value) or _is_path(value) or _SHORT_NUMBER.fullmatch(value):
        return False
    if _KNOWN_BEGINNING.match(value):
        return True
    if re.search(r"\s", value) or _ADDRESS.fullmatch(value) or _IDENTIFIER.fullmatch(value):
        return False
    kinds = []
    for kind in ("[a-z]", "[A-Z]", r"\d", r"[^A-Za-z0-9_.-]"):
        kinds.append(re.search(kind, value))
    return sum(kind is not None for kind in kinds) > 1 or value.isdigit()


def keys_in(text: str) -> Iterator[str]:
    """Return the parts of a text that look like keys of well-known services, the user's or not."""
    for match in _TOKEN.finditer(text):
        token = match[0].rstrip(".-_")
        if len(token) >= MIN_FOREIGN_KEY_CHARS and _KNOWN_BEGINNING.match(token) and re.search(r"\d", token):
            yield token


def passwords_in(text: str) -> Iterator[tuple[str, str]]:
    """Return user and password of each `scheme://user:password@` in a text, as they are written there."""
    for match in _USER_PASSWORD.finditer(text):
        yield match[1], match[2]


def is_plain_word(value: str) -> bool:
    """Return whether a value is one word of letters."""
    return _PLAIN_WORD.fullmatch(value) is not None


def is_reference(value: str) -> bool:
    """Return whether a value is the name of a variable, as `${NAME}` or `$NAME`."""
    return _REFERENCE.fullmatch(value) is not None


def forms_of(value: str) -> set[str]:
    """Return the texts in which a secret is recognised.

    It is looked for unchanged, as Python writes it, in JSON up to `JSON_LEVELS` deep, and, from 12 characters on,
    percent-encoded and in base64, wherever it begins in the encoded bytes, also of JSON."""
    forms = {value, unquote(value)} if "%" in value else {value}
    if len(value) >= MIN_ENCODED_CHARS:
        for each in (value, *_in_json(value)):
            data = each.encode("utf-8", "surrogatepass")
            encoded = {quote(data, safe=""), quote(data), quote_plus(data), *_base64_forms(data)}
            forms |= encoded | {re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), form) for form in encoded}
    lines = value.split("\n")
    if len(lines) > 1:  # of a key in several lines also each line, and all joined
        forms |= {line.strip() for line in lines if len(line) >= MIN_ENCODED_CHARS and not line.startswith("-----")}
        forms.add(" ".join(value.split()))
    forms |= {repr(form)[1:-1] for form in forms}
    deeper = forms
    for level in range(JSON_LEVELS):
        deeper = {escaped for form in deeper for escaped in (_in_json(form) if level else _in_any_json(form))}
        forms |= deeper
    return {form for form in forms if len(form) >= MIN_NAMED_CHARS}


def _in_json(text: str) -> set[str]:
    """Return a text within a string of JSON, with characters as they are and with all but ASCII escaped."""
    return {json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]}


def _in_any_json(text: str) -> set[str]:
    """Return a text within a string of JSON also as other languages write it: slashes escaped, or safe for HTML."""
    plain = _in_json(text)
    slashes = {each.replace("/", "\\/") for each in plain}
    return plain | slashes | {_FOR_HTML.sub(lambda sign: f"\\u{ord(sign[0]):04x}", each) for each in plain}


def _base64_forms(data: bytes) -> Iterator[str]:
    """Return the characters of base64 that depend on these bytes alone, for each offset in a group of three."""
    for before in range(3):
        text = base64.b64encode(bytes(before) + data).decode()
        whole = (before + len(data)) * 8 // 6
        inner = text[-(-before * 8 // 6) : whole]
        for form in (inner, *((text, text.rstrip("=")) if before == 0 else ())):
            yield form
            yield form.translate(str.maketrans("+/", "-_"))


def _tells(name: str) -> bool:
    """Return whether a variable's name says that its value is secret."""
    return any(map(_TELLING.fullmatch, _words(name)))


def _is_about(words: list[str]) -> bool:
    """Return whether a name describes something about a secret instead: TOKEN_URL, CREDENTIAL_HELPER."""
    return _TELLING.fullmatch(words[-1]) is None


def _words(name: str) -> list[str]:
    return [word for word in (word.upper() for word in _WORD.findall(name)) if word not in _NO_KEYS]


def _is_path(value: str) -> bool:
    return value.startswith(("/", "~/")) and "\0" not in value and os.path.exists(os.path.expanduser(value))  # noqa: PTH110, PTH111


# Finds many values in a text at once, also where the text comes in pieces.

_LONG_TEXT = 2_048
"""In a longer text a few strings are searched first, which is the fastest way to find nothing."""

_AS_WORD_BELOW = 8
"""A shorter value of letters and digits is found only as a word of its own."""

_AFTER_WORD = r"(?![A-Za-z0-9])"
_FINDING_NOTHING = "(?!)"
_LONE_SURROGATE = late_pattern("[\ud800-\udfff]")

Place = tuple[int, int, str]
"""Where a value begins and ends in a text, and its replacement."""


# Most texts hold no secret, so every search begins with what excludes one: a pattern of all values, in a long text a
# few characters of each, in JSON its escaped forms. Values stand in one alternation, the longest first, in every form
# in which they leave: as they are, escaped in JSON, in Base64 and in addresses (`forms_of`). Short words count only as
# words of their own; otherwise a password "test" would blank out half a report.
#
# A text that comes in pieces is decided up to the first place at which a value may begin that the next piece would
# complete (`open_from`). Only that tail is held back, so that what streams still appears at once.
class Finder:
    """Replaces values in texts, and secrets of known forms.

    `replacements` maps each value to its replacement. Forms of which `own` says that they are the user's
    (`FormPlace.what`) stay."""

    def __init__(self, replacements: Mapping[str, str], own: frozenset[str] = frozenset()) -> None:
        self.replacements = replacements
        self.own = own
        self.values = tuple(sorted(replacements, key=lambda value: (-len(value), value)))
        self.longest = max(map(len, self.values), default=0)
        self._pattern = _pattern_of(self.values)
        self._words = frozenset(filter(_is_word, self.values))
        self._by_first: dict[str, list[str]] = {}
        for value in self.values:
            self._by_first.setdefault(value[0], []).append(value)
        begins = "|".join(_beginning(first, values) for first, values in self._by_first.items())
        self._begins = re.compile(begins or _FINDING_NOTHING)

    def may_be_in(self, text: str) -> bool:
        """Return whether any value is in a text, as a word or within one, or a secret of a known form."""
        if len(text) > _LONG_TEXT:
            return any(map(text.__contains__, self._needles)) or self._has_form(text)
        return (bool(self.values) and self._pattern.search(text) is not None) or self._has_form(text)

    def may_be_in_json(self, text: str) -> bool:
        """Return whether a JSON text that leaves all but ASCII unescaped may hold a value or a secret of a known form.

        Texts and numbers are searched. It takes next to no time if there is none."""
        may_be = any(map(text.__contains__, self._json_needles)) and self._json_pattern.search(text) is not None
        return may_be or self._has_form(text)

    def replaced(self, text: str) -> str:
        """Return the text with each value replaced: the same object if there is none."""
        if len(text) > _LONG_TEXT:
            if not self.may_be_in(text):
                return text
            here = [value for value in self.values if value in text]
            if len(here) < len(self.values):
                return Finder({value: self.replacements[value] for value in here}, self.own).replaced(text)
        shown: list[str] = []
        at = 0
        for first, end, replacement in self._places(text, 0):
            shown += (text[at:first], replacement)
            at = end
        return "".join((*shown, text[at:])) if at else text

    def open_from(self, text: str) -> int:
        """Return where a value may begin that is not complete at the end of the text; its length if there is none."""
        form = open_form_from(text)
        for begin in self._begins.finditer(text, len(text) - min(self.longest, len(text)), form):
            tail = text[begin.start() :]
            for value in self._by_first[tail[0]]:
                if value.startswith(tail) and (len(value) > len(tail) or value in self._words):
                    return begin.start()
        return form

    def decided(self, text: str, begin: int, *, over: bool = False) -> tuple[int, list[Place]]:
        """Return the length of the decided part of a text, and the places of values in it.

        The text may continue unless it is `over`. Text before `begin` was decided earlier."""
        until = len(text) if over else max(self.open_from(text), begin)
        places = self._places(text, begin)
        for first, end, _ in places:
            if first < until < end:
                until = first  # it may be the beginning of a longer one
        return until, [place for place in places if place[1] <= until]

    def _places(self, text: str, begin: int) -> list[Place]:
        """Return where values and forms stand, one after the other.

        Where several overlap, all are covered by the one that begins first; of those, by the longest; of equal ones, by
        the value, whose name says more."""
        found = self._pattern.finditer(text, begin) if self.values else ()
        values = []
        for match in found:
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
        return (form for form in forms_in(text, begin) if form.what not in self.own)

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
        return frozenset(form for value in self.values for form in _finding_in_json(value))


class Pieces:
    """A text that comes in pieces.

    A possible beginning of a value is held back until the next piece decides."""

    def __init__(self) -> None:
        self._held = ""
        self._before = ""

    def add(self, piece: str, finder: Finder) -> str:
        """Add one more piece, and return the decided text, with values replaced."""
        return self._decided(piece, finder, over=False)

    def rest(self, finder: Finder) -> str:
        """Return the held-back text at the end."""
        return self._decided("", finder, over=True)

    def _decided(self, piece: str, finder: Finder, *, over: bool) -> str:
        text, begin = self._before + self._held + piece, len(self._before)
        until, places = finder.decided(text, begin, over=over)
        shown: list[str] = []
        at = begin
        for first, last, replacement in places:
            shown += (text[at:first], replacement)
            at = last
        self._held, self._before = text[until:], text[max(until - LOOKS_BACK, 0) : until]
        return "".join((*shown, text[at:until]))


def _finding_in_json(value: str) -> tuple[str, ...]:
    """Return a value as it is within a string of a JSON text, with lone surrogates as they are and escaped."""
    text = json.dumps(value, ensure_ascii=False)[1:-1]
    if text.isascii():
        return (text,)
    return (text, _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def _needles_of(values: Iterable[str]) -> tuple[str, ...]:
    """Return as few strings as possible of which at least one is in every text that holds one of the values.

    Most forms of a secret are part of its other forms."""
    needles: list[str] = []
    for value in sorted(values, key=len):
        if not any(needle in value for needle in needles):
            needles.append(value)
    return tuple(needles)


def _pattern_of(values: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for the longest of some values, which come longest first."""
    values = tuple(values)
    words = [value for value in values if _is_word(value)]
    others = [value for value in values if not _is_word(value)]
    found = [_alternatives(others)] if others else []
    found += [f"{BEFORE_WORD}{_alternatives(words)}{_AFTER_WORD}"] if words else []
    return re.compile("|".join(found) or _FINDING_NOTHING)


def _beginning(first: str, values: Iterable[str]) -> str:
    """Return a pattern for the first two characters of some values, or the first one at the end of a text."""
    return f"{re.escape(first)}(?=[{''.join({re.escape(value[1]) for value in values})}]|\\Z)"


def _is_word(value: str) -> bool:
    return len(value) < _AS_WORD_BELOW and value.isascii() and value.isalnum()


def _alternatives(values: Iterable[str]) -> str:
    """Return a pattern for the longest of some values.

    Those with the same first two characters are grouped, so that a place where none begins is passed quickly."""
    rests: dict[str, list[str]] = {}
    for value in values:
        rests.setdefault(value[:2], []).append(re.escape(value[2:]))
    groups = (f"{re.escape(begin)}(?:{'|'.join(each)})" for begin, each in rests.items())
    return f"(?:{'|'.join(groups)})"


_OURS = frozenset(
    {"by", "decided_by", "grader", "hash", "program", "role", "run", "run_id", "started_at", "status", "suite_hash"}
    | {"verdict", "workbench"}
)
"""Fields of our own records that hold our own words although their type is only text."""

_Value = TypeVar("_Value")


class Secrets:
    """The values to redact, by the names of the variables that hold them.

    `workbench.config.secrets` decides which values those are.

    One instance serves the whole program; values are only ever added. Usable from any thread.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[str, str] = {}
        self.finder = Finder({})
        """Finds the values, and secrets of known forms; replaced whenever a value is added."""

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """The replacement of each value, without its dollar sign, and the value, in every form, longest first."""
        finder = self.finder
        return tuple((finder.replacements[value].lstrip("$"), value) for value in finder.values)

    def add(self, name: str, value: str) -> None:
        """Add a value that is used as a key, a header or a server's setting, and the password in an address."""
        if is_secret_if_used(name, value):
            self._add(name, value)
        self.add_passwords(name, value)

    def add_from_file(self, name: str, value: str) -> None:
        """Add a value of a `.env` unless it is an ordinary one."""
        if is_secret_of_file(name, value):
            self._add(name, value)
        self.add_passwords(name, value)

    def guess(self, name: str, value: str) -> None:
        """Add a value of the environment that was not used, if its name and its look both say that it is secret."""
        if is_secret_by_look(name, value):
            self._add(name, value)
        self.add_passwords(name, value)

    def add_passwords(self, name: str, text: str) -> None:
        """Add the password of each `scheme://user:password@` in a text.

        A password that is one plain word is redacted only behind its user: `postgres://postgres:postgres@` must not
        hide every "postgres"."""
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
            new = {}
            for form, shown in replacements.items():
                if form not in self._known:
                    new[form] = shown
            if new:  # otherwise the same finder stays, with what was prepared for it
                self._known |= new
                self.finder = Finder(dict(self._known), self.finder.own)

    def keep(self, text: str) -> None:
        """Keep the tokens and passwords of known forms in a text of the user's own, a suite.

        Its expectations and its runs are compared, so these stay as the user wrote them. A value that was added stays
        secret."""
        own = {form.what for form in forms_in(text)}
        with self._lock:
            if not own <= self.finder.own:
                self.finder = Finder(dict(self._known), self.finder.own | own)

    @property
    def replacements(self) -> Mapping[str, str]:
        """The replacement of each value, in every form; another object whenever a value was added."""
        return self.finder.replacements

    def take(self, replacements: Mapping[str, str]) -> None:
        """Add another process's values and replacements."""
        self._remember(replacements)

    def __reduce__(self) -> tuple[Callable[..., Secrets], tuple[Mapping[str, str], frozenset[str]]]:
        """For the worker processes that this one starts, over a pipe that nobody else reads."""
        return _like, (self.finder.replacements, self.finder.own)

    def redact(self, text: str) -> str:
        """Return the text with `$NAME` in place of every secret value; the same object if there is none in it."""
        return self.finder.replaced(text)

    def redacted(self, value: _Value) -> _Value:
        """Return a JSON value, or a record of such values, with every text in it redacted.

        A record is a data class, a named tuple or a pydantic model. Keys of objects are redacted too; names and words
        of our own are not. A number that is a secret becomes a text. A value without secrets stays the same object,
        also as a part of the result: most hold none, which one search through their JSON text shows."""
        finder = self.finder
        if not _may_hold(value, finder):
            return value
        redacted: _Value = _Walk(finder).redacted(value)
        return redacted

    def may_be_in_json(self, text: str) -> bool:
        """Return whether a secret value may be in a JSON text."""
        return self.finder.may_be_in_json(text)


def _like(replacements: Mapping[str, str], own: frozenset[str]) -> Secrets:
    secrets = Secrets()
    secrets.finder = Finder({}, own)
    secrets.take(replacements)
    return secrets


class _Walk:
    """One walk through a value.

    A list or an object that occurs in it several times is searched once."""

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
            return value if shown is text else shown
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
        """Search the JSON text of a list or an object at once: most hold no secret, and need not be walked."""
        known = self._known.get(id(value))
        if known is None:
            may_hold = _may_hold(value, self._finder)
            known = self._known[id(value)] = (value, self._walked(value) if may_hold else value)
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
    """Return whether a value may hold a secret; true for one that JSON cannot express."""
    try:
        text = value if type(value) is str else _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError):
        return True
    if text is value:
        return finder.may_be_in(text)
    return finder.may_be_in_json(text)


def _searched(value: Any) -> dict[str, Any]:
    """Return the texts of a record that have to be searched.

    Raises TypeError for an object that is no record."""
    kind: Any = type(value)
    names = _text_fields(kind)
    if names is not None:
        return {name: getattr(value, name) for name in names}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is nothing that JSON has")


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=_searched)


def _are_same(items: Any, others: Any) -> bool:
    return all(item is other for item, other in zip(items, others, strict=True))


@cache
def _text_fields(kind: Any) -> tuple[str, ...] | None:
    """Return the fields of a record that may hold foreign text; `None` for a value that is no record."""
    if is_dataclass(kind):
        names = []
        for field in fields(kind):
            if field.init:
                names.append(field.name)
    elif hasattr(kind, "_fields"):
        names = list(kind._fields)
    elif hasattr(kind, "model_fields"):
        names = list(kind.model_fields)
    else:
        return None
    try:
        hints = get_type_hints(kind)
    except NameError:  # a type that is imported for type checkers only
        hints = {}
    return tuple(name for name in names if not _is_our_own(hints.get(name, str), ours=name in _OURS))


def _is_our_own(hint: Any, *, ours: bool = False) -> bool:
    """Return whether a type holds only words of our own, numbers and nothing; with `ours`, texts are such words too."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _is_our_own(get_args(hint)[0], ours=ours)
    if origin in (Union, UnionType):
        inner = get_args(hint)
        return len(inner) < 4 and all(_is_our_own(each, ours=ours) for each in inner)  # a JSON value is one of more
    if origin is Mapping:
        return get_args(hint) == (str, float)
    return origin is Literal or hint in (bool, int, float, NoneType) or (ours and hint is str)


NO_SECRETS = Secrets()
"""For use where nothing but known forms is secret; never added to."""
