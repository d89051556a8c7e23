"""Finds what can be recognised in a text without understanding it: quoted words, numbers, dates, addresses, names. No
clock is read: a date without a year, or a relative one such as "tomorrow", is not evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise
from typing import Literal

from workbench.dataclasses import dataclass
from workbench.providers.offline.words import NUMBER_WORDS, REQUEST_VERBS, STOPWORDS, operation_of, word_set

Kind = Literal["quoted", "url", "email", "date", "datetime", "time", "handle", "pair", "path", "id", "number", "name"]

MAX_CHARS = 20_000
"""The characters of a text that are searched."""

_MONTHS = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_CLOCK = r"(?:[0-2]?\d:[0-5]\d(?::[0-5]\d)?(?:\s?[ap]\.?m\b\.?)?|[01]?\d\s?[ap]\.?m\b\.?)"
_AT_CLOCK = rf"(?:,?\s+(?:at\s+)?{_CLOCK})?"
_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("quoted", re.compile(r"(?<!\w)'(?=\S)(?P<single>[^\n]{1,1000}?)(?<=\S)'(?!\w)")),
    ("quoted", re.compile(r'"(?P<double>[^"\n]{1,1000})"|“(?P<curly>[^”\n]{1,1000})”|`(?P<code>[^`\n]{1,1000})`')),
    ("url", re.compile(r"\bhttps?://[^\s<>\"']{1,2000}(?<![.,;:!?)])", re.I)),
    ("email", re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")),
    (
        "datetime",
        re.compile(
            r"(?<![\w-])\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2})?)?(?![\w-])"
            + _AT_CLOCK,
            re.ASCII,
        ),
    ),
    (
        "datetime",
        re.compile(
            rf"(?<!\w)(?:{_CLOCK}\s+on\s+)?\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTHS},?\s+\d{{4}}(?!\w)"
            + _AT_CLOCK,
            re.I | re.ASCII,
        ),
    ),
    (
        "datetime",
        re.compile(
            rf"(?<!\w)(?:{_CLOCK}\s+on\s+)?{_MONTHS}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}(?!\w)" + _AT_CLOCK,
            re.I | re.ASCII,
        ),
    ),
    (
        "datetime",
        re.compile(r"(?<![\w/])\d{1,2}/\d{1,2}/\d{4}(?![\w/])" + _AT_CLOCK, re.I | re.ASCII),
    ),
    ("time", re.compile(rf"(?<![\w:.]){_CLOCK}(?![\w:])", re.I | re.ASCII)),
    ("handle", re.compile(r"(?<!\w)@[\w][\w.-]{0,63}(?<![.-])")),
    (
        "path",
        re.compile(
            r"(?<![\w/.~\\<\x00-])(?:(?:~|\.{1,2})?/(?=[\d.-]{0,64}[^\W\d])|[A-Za-z]:[\\/]|\\\\(?=\w)|\.[\w-]{1,64}/)"
            r"[\w.@+%~/\\-]{1,500}(?<!\.)"
        ),
    ),
    (
        "path",
        re.compile(
            r"(?<![\w/.\x00-])\w[\w.-]{0,63}"
            r"(?:(?:/[\w.-]{1,64}){4,32}/?|(?:/[\w.-]{1,64}){1,3}/)(?<!\.)(?![\w/])"
        ),
    ),
    ("path", re.compile(r"(?<![\w/.])(?:\.{0,2}/)?(?:[\w-]{1,64}/){0,8}[\w-]{2,64}\.[A-Za-z]\w{0,4}(?![\w/])")),
    ("pair", re.compile(r"(?<![\w/.-])[A-Za-z][\w.-]{0,63}(?:/[\w.-]{1,64}){1,3}(?<![.-])(?![\w/])")),
    ("id", re.compile(r"(?<![\w-])[A-Za-z][\w-]{0,63}(?<=[\w])(?![\w-])")),
    ("number", re.compile(r"(?<![\w.])(?:(?<![\d)]\s)[-−+])?\d{1,3}(?:,\d{3})+(?:\.\d{1,15})?(?![\w,])", re.ASCII)),
    ("number", re.compile(r"(?<![\w.])(?:(?<![\d)]\s)[-−])?\d{1,18}(?:\.\d{1,15})?(?!\d)", re.ASCII)),
    ("number", re.compile(rf"\b(?:{'|'.join(NUMBER_WORDS)})\b", re.I)),
)
"""Applied in this order, each to the text that those before it left."""

_CAPITAL_RUN_LINK = word_set("of de da do del la le du van von der den")
_UNPUNCTUATED = re.compile(r"[^\n\x00,;:.!?()\"“”]+")
_NOT_BLANK = re.compile(r"\S+")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;]\s|\n)[\s\"'“(]*$")
_CALENDAR = word_set(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july
        august september october november december today tomorrow yesterday"""
)
_ARITHMETIC = re.compile(
    r"\s*(?P<sign>\*\*|[-+*×·÷/^%−]|\b(?:x|plus|minus|times|over|mod(?:ulo)?|multiplied\s+by|divided\s+by)\b)\s*", re.I
)
_JOINED = re.compile(
    r"\s*(?:[,;]|\b(?:and|or|vs\.?|versus)\b|&)\s*(?:(?:and|or|in|to|for|at|of|from|the)\s+){0,3}", re.I
)
_NO_CLOCK = datetime(2000, 1, 1)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing found: its kind, its value as it would be sent (dates and times as ISO text), and its place. `weak`
    marks a capitalised word that begins a sentence and so may not be a name."""

    kind: Kind
    value: str | int | float
    start: int
    end: int
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Expression:
    """Two numbers with an operation between them: `15 * 23`."""

    operation: str
    text: str
    start: int
    end: int


def find_evidence(text: str) -> tuple[Evidence, ...]:
    """Returns all evidence in a text, in order, without overlaps."""
    left = text[:MAX_CHARS]
    found: list[Evidence] = []
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(left):
            one = _read(kind, match)
            if one is not None:
                found.append(one)
        left = _blanked(left, found)
    found.extend(_names(left))
    return tuple(sorted(found, key=lambda one: one.start))


def find_expressions(text: str, evidence: Iterable[Evidence]) -> tuple[Expression, ...]:
    """Returns arithmetic between consecutive numbers."""
    numbers = [one for one in evidence if one.kind == "number"]
    found = []
    for left, right in pairwise(numbers):
        between = _ARITHMETIC.fullmatch(text, left.end, right.start)
        operation = operation_of(between["sign"].split()[0]) if between else None
        if operation:
            found.append(Expression(operation, text[left.start : right.end], left.start, right.end))
    return tuple(found)


def joined_groups(text: str, evidence: Iterable[Evidence]) -> list[list[Evidence]]:
    """Evidence of one kind strung together by commas and conjunctions: `Seattle, Portland and Boise` is one group."""
    groups: list[list[Evidence]] = []
    for one in evidence:
        last = groups[-1][-1] if groups else None
        if last is not None and last.kind == one.kind and _JOINED.fullmatch(text, last.end, one.start):
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _read(kind: Kind, match: re.Match[str]) -> Evidence | None:
    start, end = match.span()
    text = match[0]
    if kind == "quoted":
        inner = next(group for group in match.groups() if group is not None)
        return Evidence("quoted", inner, start, end)
    if kind in ("datetime", "time"):
        return _moment(kind, text, start, end)
    if kind == "handle":
        return Evidence("handle", text[1:], start, end)
    if kind == "id":
        return Evidence("id", text, start, end) if any(letter.isdigit() for letter in text) else None
    if kind == "number":
        return Evidence("number", _number(text), start, end)
    return Evidence(kind, text, start, end)


def _moment(kind: Kind, text: str, start: int, end: int) -> Evidence | None:
    from dateutil import parser as date_parser  # on use: few texts name a moment

    try:
        moment = date_parser.parse(text, default=_NO_CLOCK)
    except (ValueError, OverflowError):
        return None
    if kind == "time":
        return Evidence("time", moment.strftime("%H:%M:%S" if moment.second else "%H:%M"), start, end)
    if ":" in text or re.search(r"\d\s?[ap]\.?m\b", text, re.I):
        return Evidence("datetime", moment.isoformat(), start, end)
    return Evidence("date", moment.date().isoformat(), start, end)


def _number(text: str) -> int | float:
    plain = text.lower().replace(",", "").replace("−", "-")
    if plain in NUMBER_WORDS:
        return NUMBER_WORDS[plain]
    return float(plain) if "." in plain else int(plain)


def _blanked(text: str, found: Iterable[Evidence]) -> str:
    letters = list(text)
    for one in found:
        letters[one.start : one.end] = "\x00" * (one.end - one.start)
    return "".join(letters)


def _names(text: str) -> Iterable[Evidence]:
    for match in _UNPUNCTUATED.finditer(text):
        yield from _capital_runs(text, match.start(), match.end())


def _capital_runs(text: str, start: int, end: int) -> Iterable[Evidence]:
    """Runs of capitalised words between two punctuation marks; small words such as `of` may link them."""
    run: list[re.Match[str]] = []
    waiting: list[re.Match[str]] = []
    for word in _NOT_BLANK.finditer(text, start, end):
        if _capitalised(word[0]):
            run += [*waiting, word] if run else [word]
            waiting = []
        elif run and word[0] in _CAPITAL_RUN_LINK and not waiting:
            waiting = [word]
        else:
            yield from _name(text, run)
            run, waiting = [], []
    yield from _name(text, run)


def _name(text: str, run: list[re.Match[str]]) -> Iterable[Evidence]:
    weak = False
    if run and _SENTENCE_START.search(text, max(0, run[0].start() - 8), run[0].start()):
        first = re.split("['’]", run[0][0], maxsplit=1)[0].lower()
        if first in STOPWORDS or first in REQUEST_VERBS:
            run = run[1:]
        else:
            weak = len(run) == 1
    if run:
        value = text[run[0].start() : run[-1].start()] + _bare(run[-1][0])
        yield Evidence("name", value, run[0].start(), run[0].start() + len(value), weak)


def _capitalised(word: str) -> bool:
    bare = _bare(word)
    meaning = re.split("['’]", bare, maxsplit=1)[0]
    shouted = meaning.isupper() and len(meaning) > 1
    lowered = meaning.lower()
    return bare[:1].isupper() and lowered not in _CALENDAR and (lowered not in STOPWORDS or shouted)


def _bare(word: str) -> str:
    """Returns the word without a possessive ending."""
    return re.split("['’](?=s?$)", word, maxsplit=1)[0]
