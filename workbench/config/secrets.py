"""The secret values that this program has read, and their redaction from everything that leaves it, together with
secrets of known forms (`workbench.config.known_forms`).

Inside the program everything is unredacted. Everything that leaves it passes one of the doors listed in
`workbench.config.doors`, and each of them uses `Secrets.redact`, `Secrets.redacted` or `finding.Pieces`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from threading import Lock
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from workbench.config.finding import Finder
from workbench.config.known_forms import forms_in
from workbench.config.secret_values import (
    forms_of,
    is_plain_word,
    is_reference,
    is_secret_by_look,
    is_secret_if_used,
    is_secret_of_file,
    passwords_in,
)

_OURS = frozenset(
    {"by", "decided_by", "grader", "hash", "program", "role", "run", "run_id", "started_at", "status", "suite_hash"}
    | {"verdict", "workbench"}
)
"""Fields of our own records that hold our own words although their type is only text."""

_Value = TypeVar("_Value")


class Secrets:
    """The values to redact, by the names of the variables that hold them. `workbench.config.secret_values` decides
    which values those are.

    One instance serves the whole program; values are only ever added. Usable from any thread.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[str, str] = {}
        self.finder = Finder({})
        """Finds the values, and secrets of known forms; replaced whenever a value is added."""

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """Returns the replacement of each value, without its dollar sign, and the value, in every form, longest
        first."""
        finder = self.finder
        return tuple((finder.replacements[value].lstrip("$"), value) for value in finder.values)

    def add(self, name: str, value: str) -> None:
        """Add a value that is really used as a key, a header or a server's setting, and the password in it if it is an
        address with one."""
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
        """Add the password of each `scheme://user:password@` in a text. A password that is one plain word is redacted
        only behind its user: `postgres://postgres:postgres@` must not hide every "postgres"."""
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
            if new:  # otherwise the same finder stays, with what was prepared for it
                self._known |= new
                self.finder = Finder(dict(self._known), self.finder.own)

    def keep(self, text: str) -> None:
        """Keep the tokens and passwords of known forms in a text of the user's own, a suite: what it expects and what
        happens in its runs is compared, and stays as the user wrote it. A value that was added stays secret."""
        own = {form.what for form in forms_in(text)}
        with self._lock:
            if not own <= self.finder.own:
                self.finder = Finder(dict(self._known), self.finder.own | own)

    @property
    def replacements(self) -> Mapping[str, str]:
        """What stands in place of each value, in every form; another object whenever a value was added."""
        return self.finder.replacements

    def take(self, replacements: Mapping[str, str]) -> None:
        """Add what another process has learned: values and what stands in their place."""
        self._remember(replacements)

    def __reduce__(self) -> tuple[Callable[..., Secrets], tuple[Mapping[str, str], frozenset[str]]]:
        """For the worker processes that this one starts, over a pipe that nobody else reads."""
        return _like, (self.finder.replacements, self.finder.own)

    def redact(self, text: str) -> str:
        """Returns the text with `$NAME` in place of every secret value; the same object if there is none in it."""
        return self.finder.replaced(text)

    def redacted(self, value: _Value) -> _Value:
        """Returns a JSON value, or a record of such values (data class, named tuple, pydantic model), with every text
        in it redacted.

        Keys of objects are redacted too; names and words of our own are not. A number that is a secret becomes a text.
        A value without secrets stays the same object, also as a part of the result: most hold none, which one search
        through their JSON text shows.
        """
        finder = self.finder
        return _Walk(finder).redacted(value) if _may_hold(value, finder) else value

    def may_be_in_json(self, text: str) -> bool:
        """Returns whether a secret value may be in a JSON text."""
        return self.finder.may_be_in_json(text)


def _like(replacements: Mapping[str, str], own: frozenset[str]) -> Secrets:
    secrets = Secrets()
    secrets.finder = Finder({}, own)
    secrets.take(replacements)
    return secrets


class _Walk:
    """One walk through a value. A list or an object that occurs in it several times is searched once."""

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
            return value if _are_same(items, value) else tuple(items)
        names = _text_fields(kind)
        if names is None:
            return self._json(dict(value)) if isinstance(value, Mapping) else value
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
        return replace(value, **changed) if is_dataclass(kind) else value.model_copy(update=changed)

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
            keys = [self._finder.replaced(key) if type(key) is str else key for key in value]
            items = [self._walked(item) for item in value.values()]
            same = _are_same(items, value.values()) and _are_same(keys, value)
            return value if same else dict(zip(keys, items, strict=True))
        if kind is list:
            items = [self._walked(item) for item in value]
            return value if _are_same(items, value) else items
        return self.redacted(value)


def _may_hold(value: Any, finder: Finder) -> bool:
    """Returns whether a value may hold a secret; true for one that JSON cannot express."""
    try:
        text = value if type(value) is str else _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError):
        return True
    return finder.may_be_in(text) if text is value else finder.may_be_in_json(text)


def _searched(value: Any) -> dict[str, Any]:
    """Returns what of a record has to be searched. Raises TypeError for what is no record."""
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
    """Returns the fields of a record that may hold foreign text; `None` for a value that is no record."""
    if is_dataclass(kind):
        names = [field.name for field in fields(kind) if field.init]
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
    """Returns whether a type holds only words of our own, numbers and nothing; with `ours`, texts are such words
    too."""
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
