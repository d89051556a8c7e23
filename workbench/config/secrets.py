"""Secret values that this program has read, and text with the names in their place."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import urlsplit

SHORTEST_SECRET = 4
"""Shorter values are no secrets, and hiding them would garble everything."""

SHORTEST_GUESSED = 8
"""Values that only their variables' names speak for are longer."""

_TELLING = re.compile("KEYS?|APIKEY|TOKEN|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|PAT")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SHORT_NUMBER = re.compile(r"[+-]?\d{0,7}(\.\d*)?")
_PLAIN_WORD = re.compile(r"[A-Za-z]{1,12}")
_PLACEHOLDER = re.compile(
    "true|false|none|null|empty|dummy|test|demo|secret|password|changeme|placeholder|local|localhost|ollama|vllm|"
    "lm-?studio|not-(needed|required)|(sk-)?no-key(-required)?|your-api-key",
    re.IGNORECASE,
)
"""What people write where a key is asked for and none is needed."""

_OURS = frozenset({"kind", "status", "verdict", "role", "source", "stop_reason"})
"""Fields of our own records that hold our own words."""

_Value = TypeVar("_Value")


class Secrets:
    """The values to keep out of everything that leaves the program, by the names of the variables that hold them.

    Ordinary values are never among them, or all text would be garbled: those under four characters, numbers under eight
    digits, folders and files that exist, what is written where no key is needed (`ollama`), and short words of letters
    alone unless the variable's name says that it is a secret. One instance serves the whole program; it only ever
    grows. Safe to use from threads.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: tuple[tuple[str, str], ...] = ()
        """Name and value, longest value first, so that a secret that holds another is hidden whole."""

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """Name and value of each, longest value first. A value that JSON or Python would write differently stands there
        in that form too."""
        return self._values

    def add(self, name: str, value: str) -> None:
        """Keep the value of a variable that something refers to secret from now on, unless it is an ordinary one."""
        if len(value) < SHORTEST_SECRET or _is_ordinary(value) or (_PLAIN_WORD.fullmatch(value) and not _tells(name)):
            return
        forms = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
        with self._lock:
            new = [(name, form) for form in forms if all(known != form for _, known in self._values)]
            if new:  # else the same object stays: whoever has prepared it need not do so again
                self._values = tuple(sorted((*self._values, *new), key=lambda item: (-len(item[1]), item)))

    def guess(self, name: str, value: str) -> None:
        """Keep the value of a variable that nothing may refer to secret if its name says that it is one."""
        if len(value) >= SHORTEST_GUESSED and _tells(name) and not (_tells_about(name) and _is_about(value)):
            self.add(name, value)

    def redact(self, text: str) -> str:
        """The text with `$NAME` in place of every secret value."""
        for name, value in self._values:
            if value in text:
                text = text.replace(value, f"${name}")
        return text

    def redacted(self, value: _Value) -> _Value:
        """A JSON value, or a data class or named tuple of such values, with every text in it redacted, keys too; a
        number that is a secret becomes a text."""
        return self._redacted(value) if self._values else value

    def _redacted(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Mapping):
            return {self._redacted(key): self._redacted(inner) for key, inner in value.items()}
        if hasattr(value, "_asdict"):
            return value._replace(**self._redacted_fields(value._asdict()))
        if isinstance(value, list | tuple):
            return type(value)([self._redacted(inner) for inner in value])
        if is_dataclass(value) and not isinstance(value, type):
            held = {field.name: getattr(value, field.name) for field in fields(value)}
            return replace(value, **self._redacted_fields(held))
        if isinstance(value, int | float) and not isinstance(value, bool):
            text = str(value)
            shown = self.redact(text)
            return value if shown == text else shown
        return value

    def _redacted_fields(self, held: dict[str, Any]) -> dict[str, Any]:
        return {
            name: self._redacted(inner)
            for name, inner in held.items()
            if name not in _OURS and not isinstance(inner, int | float)
        }


def _tells(name: str) -> bool:
    """Whether a variable's name says that its value is secret."""
    return any(map(_TELLING.fullmatch, _words(name)))


def _tells_about(name: str) -> bool:
    """Whether a name rather says something about a secret: TOKEN_URL, CREDENTIAL_HELPER."""
    return not _TELLING.fullmatch(_words(name)[-1])


def _words(name: str) -> list[str]:
    return [word.upper() for word in _WORD.findall(name)]


def _is_about(value: str) -> bool:
    """Whether a value may say something about a secret: one word, or an address without a user."""
    return value.isalpha() or (value.startswith(("http://", "https://")) and "@" not in urlsplit(value).netloc)


def _is_ordinary(value: str) -> bool:
    if _PLACEHOLDER.fullmatch(value) or _SHORT_NUMBER.fullmatch(value):
        return True
    return value.startswith(("/", "~/")) and "\0" not in value and os.path.exists(os.path.expanduser(value))  # noqa: PTH110, PTH111


NO_SECRETS = Secrets()
"""For where nothing is secret; never added to."""
