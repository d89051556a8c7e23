"""Validates escape sequences of a terminal.

Textual's parser turns every number that it reads into a character, a position or a size. Only sequences that terminals
really send are passed on.
"""

from __future__ import annotations

import re

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS

MAX_COLUMNS, MAX_ROWS = 1_000, 500
"""Larger sizes are rejected."""

MAX_PLACE = 32_767
"""The largest coordinate of a mouse, which may be in pixels."""

_FOCUS = frozenset({"\x1b[I", "\x1b[O"})
_MOUSE = re.compile(r"\x1b\[<(\d{1,3});(\d{1,5});(\d{1,5})[Mm]")
_SIZE = re.compile(r"\x1b\[48;(\d{1,5})(?::\d*)*;(\d{1,5})(?::\d*)*;(\d{1,5})(?::\d*)*;(\d{1,5})(?::\d*)*t")
_MODE = re.compile(r"\x1b\[\?(?:2026|2048);[0-4]\$y")
_KEY = re.compile(
    r"\x1b\[(?P<code>\d{0,7})(?::\d*)*(?:;(?P<modifiers>\d{0,3})(?::(?P<kind>\d?))?(?:;(?P<text>[\d:]*))?)?(?P<end>[u~ABCDEFHPQS])"
)
_RELEASED = "3"
_CONTROL_KEYS = (8, 9, 13, 27, 127)
"""Backspace, tab, enter and escape in the kitty protocol."""


def believed(sequence: str) -> tuple[str, ...]:
    """Return what Textual's parser should read for a complete escape sequence: nothing, one sequence, or one for each
    character of a key's text.

    Cursor position reports (`R`) are never requested, so they are dropped.
    """
    if sequence in _FOCUS:
        return (sequence,)
    if mouse := _MOUSE.fullmatch(sequence):
        button, x, y = map(int, mouse.groups())
        return (sequence,) if button <= 0xFF and 1 <= x <= MAX_PLACE and 1 <= y <= MAX_PLACE else ()
    if size := _SIZE.fullmatch(sequence):
        rows, columns, height, width = map(int, size.groups())
        is_possible = 1 <= columns <= MAX_COLUMNS and 1 <= rows <= MAX_ROWS
        is_possible = is_possible and columns <= width <= MAX_PLACE and rows <= height <= MAX_PLACE
        return (f"\x1b[48;{rows};{columns};{height};{width}t",) if is_possible else ()
    if _MODE.fullmatch(sequence):
        return (sequence,)
    if key := _KEY.fullmatch(sequence):
        return _believed_key(key, sequence)
    return (sequence,) if sequence in ANSI_SEQUENCES_KEYS and not sequence.endswith("R") else ()


def _believed_key(key: re.Match[str], sequence: str) -> tuple[str, ...]:
    code, end = int(key["code"] or 1), key["end"]
    codes = [int(part) for part in (key["text"] or "").split(":") if part and len(part) <= len(str(0x10FFFF))]
    text = [char for char in codes if _is_printed(char)]
    if end == "u" and code != 1:
        is_possible = code in _CONTROL_KEYS or f"{code}u" in FUNCTIONAL_KEYS or _is_printed(code)
        is_possible = is_possible or (code == 0 and bool(text))  # composed by an input method
    else:
        is_possible = f"{code}{end}" in FUNCTIONAL_KEYS
    if not is_possible or int(key["modifiers"] or 0) > 0x100 or key["kind"] == _RELEASED:
        return (sequence,) if sequence in ANSI_SEQUENCES_KEYS else ()
    start = f"\x1b[{key['code'] or ''}" + (f";{key['modifiers'] or ''}" if key["modifiers"] is not None else "")
    return tuple(f"{start};{char}{end}" for char in text) or (start + end,)


def _is_printed(code: int) -> bool:
    return 0x20 <= code <= 0x10FFFF and not 0x7F <= code < 0xA0 and not 0xD800 <= code < 0xE000
