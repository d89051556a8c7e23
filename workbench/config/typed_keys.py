"""Keys typed on a command line, where they do not belong: found, and left out of messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from workbench.startup import late_pattern

HIDDEN = "(hidden: it looks like a key)"

KEY_OPTION = late_pattern(r"--?(api[-_]?key|key|token|secret|password)(=.*)?", re.DOTALL | re.IGNORECASE)
"""An option that does not exist, and to which people give a key."""

NO_KEYS_HERE = (
    "a key is never given on the command line, where others can read it: put it into an environment variable or .env, "
    "and name that variable with --api-key-env"
)

_KNOWN_BEGINNING = late_pattern(
    r"([spr]k[-_]|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|xai-|gsk_|hf_|npm_|pypi-|shpat_|dop_v1_|AKIA|ASIA|AIza|"
    r"ya29\.|SG\.|eyJ|Bearer ).{4,}",
    re.DOTALL,
)
_CHARACTERS = late_pattern(r"[A-Za-z0-9_+/=.~-]{16,}")
_CHANGES = late_pattern(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[a-z0-9])|(?<=[0-9])(?=[A-Za-z])")
_MAX_CHANGES = 4
"""Names of files and models change so often between capitals, small letters and digits; keys do more often."""

_PIECES = late_pattern(r"[=,\s]")


def looks_like_key(word: str) -> bool:
    """Return whether a word begins as keys of known services do, or mixes letters and digits as only keys do."""
    if _KNOWN_BEGINNING.fullmatch(word):
        return True
    changes = len(_CHANGES.findall(word))
    return _CHARACTERS.fullmatch(word) is not None and changes > max(_MAX_CHANGES, len(word) / 8)


def without_keys(text: str, words: Iterable[str]) -> str:
    """Return a text about the words of a command line, without those of them that look like keys."""
    for key in sorted({key for word in words for key in _keys_in(word)}, key=len, reverse=True):
        for written in (key, repr(key)[1:-1]):
            text = text.replace(written, HIDDEN)
    return text


def _keys_in(word: str) -> Iterator[str]:
    _, equals, value = word.partition("=")
    return (piece for piece in (word, *([value] if equals else []), *_PIECES.split(word)) if looks_like_key(piece))
