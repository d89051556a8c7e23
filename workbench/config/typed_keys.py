"""Finds API keys that were typed on a command line by mistake. Messages must not show them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from workbench.startup import late_pattern

HIDDEN = "(hidden: it looks like a key)"

KEY_OPTION = late_pattern(r"--?(api[-_]?key|key|token|secret|password)(=.*)?", re.DOTALL | re.IGNORECASE)
"""An option that takes a key in other programs, but does not exist in Workbench."""

NO_KEYS_ADVICE = (
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
"""The most changes between upper case, lower case and digits in names of files and models. Keys have more."""

_PIECES = late_pattern(r"[=,\s]")


def looks_like_key(word: str) -> bool:
    """Return whether a word begins like keys of known services, or mixes letters and digits as only keys do."""
    if _KNOWN_BEGINNING.fullmatch(word):
        return True
    changes = len(_CHANGES.findall(word))
    return _CHARACTERS.fullmatch(word) is not None and changes > max(_MAX_CHANGES, len(word) / 8)


def without_keys(text: str, words: Iterable[str]) -> str:
    """Return a message in which those words of the command line that look like keys are hidden."""
    keys: set[str] = set()
    for word in words:
        keys.update(_keys_in(word))
    # The longest come first: a key that contains another key is hidden as a whole.
    for key in sorted(keys, key=len, reverse=True):
        for written in (key, repr(key)[1:-1]):
            text = text.replace(written, HIDDEN)
    return text


def _keys_in(word: str) -> Iterator[str]:
    pieces = [word, *_PIECES.split(word)]
    _, equals, value = word.partition("=")
    if equals:
        pieces.append(value)
    return filter(looks_like_key, pieces)
