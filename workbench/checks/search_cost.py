"""How much work a search by a regular expression can become, told from its text: nothing can interrupt one."""

from __future__ import annotations

import re

TOO_MANY = 10**12
"""Steps of a search of which no bound is known."""

LONGEST_STEPS = 10_000_000
"""Of a search that may hold up the whole program: a tenth of a second or so."""

_ESCAPED = re.compile(r"\\[^1-9]", re.DOTALL)
_REPEATED_PLACE = re.compile(r"\\[1-9]")
_CLASS = re.compile(r"\[\^?\]?[^\]]*\]")
_OPENING = re.compile(r"\(\?(?:P<\w+>|[:=!>]|<[=!]|[aims]+(?=[:)]))")
_VERBOSE = re.compile(r"\(\?[a-z]*x")
_REPEATED_GROUP = re.compile(r"\)(?:[*+]|\{)")
_MANY_TIMES = re.compile(r"(?:[*+]|\{\d*,?\d*\})[?+]?")


def may_be_endless(pattern: str, length: int) -> bool:
    """Whether searching a text of so many characters may take longer than anybody waits."""
    return most_steps(pattern, length) > LONGEST_STEPS


def most_steps(pattern: str, length: int) -> int:
    """At most so many steps, times a small number, are taken to search a text of so many characters; `TOO_MANY` for
    patterns that repeat a group, whose work may double with each character."""
    text = _CLASS.sub("x", _ESCAPED.sub("x", pattern))
    text = _OPENING.sub("(", text)
    if _REPEATED_GROUP.search(text) or _REPEATED_PLACE.search(text) or _VERBOSE.search(pattern) or "(?" in text:
        return TOO_MANY
    without, repeats = _MANY_TIMES.subn("", text)
    choices = min(without.count("?") + without.count("|"), 40)
    anchored = pattern.startswith(("^", r"\A")) and "|" not in without
    return int(min((length + 1) ** min(repeats + (not anchored), 12) * 2**choices, TOO_MANY))
