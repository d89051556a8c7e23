"""Names of keys: Textual's, and those that a person reads and writes."""

from __future__ import annotations

import re
import string
import unicodedata

_NAMED = {
    "enter": "Enter",
    "escape": "Esc",
    "tab": "Tab",
    "space": "Space",
    "backspace": "Backspace",
    "delete": "Del",
    "insert": "Ins",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    **{f"f{number}": f"F{number}" for number in range(1, 13)},
}
_ALSO = {"esc": "escape", "return": "enter", "del": "delete", "ins": "insert", "pgup": "pageup", "pgdn": "pagedown"}
_ALSO |= {"↑": "up", "↓": "down", "←": "left", "→": "right"}
_MODIFIERS = {"ctrl": "Ctrl", "alt": "Alt", "shift": "Shift"}
_SHORTER = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
"""Textual's names for characters with long Unicode names."""

_SAME = {"ctrl+m": "Enter", "ctrl+i": "Tab", "ctrl+h": "Backspace", "ctrl+left_square_bracket": "Esc"}
_UNICODE = {char: unicodedata.name(char).lower().replace("-", "_").replace(" ", "_") for char in string.punctuation}
_CHARACTERS = {char: _SHORTER.get(name, name) for char, name in _UNICODE.items()}
_SIGNS = {name: char for char, name in _CHARACTERS.items()}


def is_sequence(key: str) -> bool:
    """Return whether a key is two characters that are typed one after the other, such as `gg`."""
    return len(key) == 2 and key.isalpha() and key not in _NAMED


def key_name(key: str) -> str:
    """Return a key as a person reads it: `Ctrl+R`, `F5`, `/`, `R`."""
    *modifiers, last = key.split("+")
    shown = (
        _NAMED.get(last) or _SIGNS.get(last) or (last.upper() if "ctrl" in modifiers or "alt" in modifiers else last)
    )
    return "+".join([*(_MODIFIERS.get(modifier, modifier) for modifier in modifiers), shown])


def key_of(written: str) -> str:
    """Return Textual's name for a key as a person writes it: `f6`, `Ctrl+R`, `/`, `PgUp`. Two characters that are typed
    one after the other are a key, too: `gg`. Raises ValueError with a message about the key."""
    *modifiers, last = re.split(r"(?<=.)\+(?=.)", written.strip(), flags=re.DOTALL)
    modifiers = sorted(modifier.lower() for modifier in modifiers)
    if not modifiers and is_sequence(last) and last.lower() not in (*_NAMED, *_ALSO):
        return last
    if len(last) > 1 or last in _ALSO:
        last = _ALSO.get(last.lower(), last.lower())
        if last not in _NAMED and last not in _SIGNS:
            raise ValueError("is not a key: write r, R, /, f6, enter, pageup, ctrl+r or alt+x")
    elif last in _CHARACTERS:
        last = _CHARACTERS[last]
    elif not last.isalnum():
        raise ValueError("is not a key: write r, R, /, f6, enter, pageup, ctrl+r or alt+x")
    if not set(modifiers) <= _MODIFIERS.keys() or len(set(modifiers)) < len(modifiers):
        raise ValueError("is not a key: the modifiers are ctrl, alt and shift")
    if "shift" in modifiers and last not in _NAMED:
        raise ValueError("is not sent by terminals: write the letter itself, R for shift+r")
    if "ctrl" in modifiers and len(last) == 1:
        last = last.lower()
    key = "+".join([*modifiers, last])
    if key in _SAME:
        raise ValueError(f"cannot be told apart from {_SAME[key]} in a terminal: choose another key")
    return key


def is_character(key: str) -> bool:
    """Return whether a key types a character, or two of them."""
    return is_sequence(key) or len(key) == 1 or key in _SIGNS
