"""Puts texts into normal forms in which they are compared: Unicode's canonical composition (NFC), and BFCL's loose
form."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

from pydantic import JsonValue

from workbench.checks.kinds import AllOf, AnyOf, Check, Contains, Equals, OneOf, Pattern, Prefix, Suffix, asks


def canonical_text(text: str) -> str:
    """Returns the text in NFC."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def canonical(value: JsonValue) -> JsonValue:
    """Returns the value with all its texts and keys in NFC. Works without recursion, at any depth."""
    if isinstance(value, str):
        return canonical_text(value)
    if not isinstance(value, list | dict):
        return value
    whole: list[JsonValue] = [value]
    pending: list[list[JsonValue] | dict[str, JsonValue]] = [whole]
    while pending:
        container = pending.pop()
        places: Iterable[Any] = range(len(container)) if isinstance(container, list) else tuple(container)
        for place in places:
            inner = container[place]
            if isinstance(inner, str):
                container[place] = canonical_text(inner)
            elif isinstance(inner, list):
                container[place] = copied = inner.copy()
                pending.append(copied)
            elif isinstance(inner, dict):
                container[place] = renamed = {canonical_text(name): held for name, held in inner.items()}
                pending.append(renamed)
    return whole[0]


def compares_texts(check: Check) -> bool:
    """Returns whether the check, or one nested in it, compares texts character by character."""
    return asks(check, Equals, OneOf, Contains, Prefix, Suffix, Pattern)


def canonical_check(check: Check) -> Check:
    """Returns a check that compares texts with its texts in NFC; any other check unchanged."""
    match check:
        case Equals(equals=value):
            return _changed(check, "equals", value, canonical(value))
        case OneOf(one_of=values):
            return _changed(check, "one_of", values, tuple(map(canonical, values)))
        case Contains(contains=text) | Prefix(prefix=text) | Suffix(suffix=text) | Pattern(pattern=text):
            return _changed(check, check.kind, text, canonical_text(text))
        case AllOf() | AnyOf():
            return check.model_copy(update={check.kind: tuple(map(canonical_check, check.parts))})
        case _:
            return check


def _changed(check: Check, key: str, before: object, after: object) -> Check:
    return check if before is after or before == after else check.model_copy(update={key: after})


_LEFT_OUT = str.maketrans({**dict.fromkeys(" ,./-_*^", ""), "'": '"'})


def loose(value: JsonValue) -> JsonValue:
    """Returns the value with its texts in lower case and NFC, without blanks and `, . / - _ * ^`, and with single
    quotes as double ones, as BFCL standardises texts. Names in objects stay. May raise RecursionError."""
    if isinstance(value, str):
        return canonical_text(value.translate(_LEFT_OUT).lower())
    if isinstance(value, list):
        return [loose(inner) for inner in value]
    if isinstance(value, dict):
        return {name: loose(inner) for name, inner in value.items()}
    return value
