"""Searches a text for a regular expression, with a time limit.

Patterns are written for Python's `re` and searched by the package `regex`, whose searches can be ended. docs/checks.md
lists the differences.
"""

from __future__ import annotations

import re
import time
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

from workbench.checks.pattern_shape import prepared_size
from workbench.limits import MAX_PATTERN_ITEMS

if TYPE_CHECKING:
    import regex

SEARCH_LIMIT_S = 0.5
"""Processor time for all searches of one check in a run."""

_QUICK_S = 0.02
"""Most searches end within it. Until then the interpreter lock is held, because releasing it costs more than the
search."""

_QUICK_CHARACTERS = 100_000
"""In a longer text the end of the time limit is noticed late."""

_MAX_SHOWN_CHARS = 80
_KEPT_PATTERNS = 512

_TOKEN = r"""
      \\N\{[^}]*\} | \\.                            # an escape
    | \(\?\#[^)]*\)                                 # a comment
    | \[ \^? \]? (?: \\. | [^\]\\] )* \]            # a set
    | \{ (?: \d+ (?: , \d* )? | , \d* ) \}          # a repetition
    | \{
"""
_TOKENS = re.compile(_TOKEN, re.VERBOSE | re.DOTALL)
_TOKENS_OF_VERBOSE = re.compile(rf"\#[^\n]* | {_TOKEN}", re.VERBOSE | re.DOTALL)
_VERBOSE = re.compile(r"\(\?[a-z]*x")

SpentTime = dict[str, float]
"""The seconds of processor time that the searches for a pattern have taken, by pattern."""


class CheckError(Exception):
    """A check could not be evaluated: its Python function raised, or something it needs is missing.

    That says nothing about the model, so it ends a run with status `error`. The message names the check.
    """


class SearchError(CheckError):
    """A text could not be searched. The message names the pattern and the text's length."""


def found(pattern: str, text: str, spent: SpentTime | None = None) -> bool:
    """Returns whether a pattern is found in a text. With `spent`, the time of earlier searches for it counts too.

    Raises SearchError when the time runs out, and for a pattern that cannot be searched for.
    """
    spent = {} if spent is None else spent
    left_s = SEARCH_LIMIT_S - spent.get(pattern, 0.0)
    if left_s <= 0:
        raise _ran_out(pattern, text)
    prepared = _prepared(pattern)
    timeout_s, concurrent = (_QUICK_S, False) if len(text) <= _QUICK_CHARACTERS else (left_s, True)
    while True:
        began_s = time.thread_time()
        try:
            return prepared.search(text, timeout=timeout_s, concurrent=concurrent) is not None
        except TimeoutError:
            pass
        except MemoryError:
            raise SearchError(f"{_place(pattern, text)} needs too much memory") from None
        finally:
            took_s = time.thread_time() - began_s
            spent[pattern] = spent.get(pattern, 0.0) + took_s
        if took_s >= left_s * 0.9:
            raise _ran_out(pattern, text)
        # The timeout counts the processor time of all threads, so others may have used it up. They do less while the
        # lock
        # is held, and the time is doubled until this thread has had its share.
        timeout_s, concurrent = (left_s, True) if timeout_s < left_s else (timeout_s * 2, False)


@lru_cache(maxsize=_KEPT_PATTERNS)
def _prepared(pattern: str) -> regex.Pattern[str]:
    import regex

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            if prepared_size(pattern) > MAX_PATTERN_ITEMS:
                raise SearchError(MAX_PATTERN_ITEMS.reached(pattern=_shown(pattern)))
            return regex.compile(for_regex(pattern), flags=regex.VERSION0, cache_pattern=False)
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        raise SearchError(f"the pattern {_shown(pattern)} cannot be searched for: {error}") from None


def for_regex(pattern: str) -> str:
    """Returns a pattern of Python's `re` so that `regex` reads it the same way: `{e}` is no fuzzy match, `[[:alpha:]]`
    no class."""
    tokens = _TOKENS_OF_VERBOSE if _VERBOSE.search(pattern) else _TOKENS
    return tokens.sub(lambda token: _escaped(token[0]), pattern)


def _escaped(token: str) -> str:
    if token == "{":
        return r"\{"
    if token.startswith("["):
        return "[" + re.sub(r"\\.|\[", lambda part: r"\[" if part[0] == "[" else part[0], token[1:], flags=re.DOTALL)
    return token


def _ran_out(pattern: str, text: str) -> SearchError:
    return SearchError(f"{_place(pattern, text)} did not end within {SEARCH_LIMIT_S:g} s; simplify the pattern")


def _place(pattern: str, text: str) -> str:
    return f"the search for the pattern {_shown(pattern)} in a text of {len(text):,} characters"


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= _MAX_SHOWN_CHARS else pattern[: _MAX_SHOWN_CHARS - 1] + "…")
