"""Finds values in texts and in the results of tools.

Evidence is a value that its form alone identifies: quoted words, numbers, dates, addresses, names.

Dates without a year and words such as "tomorrow" are not evidence, because their meaning depends on the clock, and runs
must be repeatable."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cached_property
from itertools import chain, pairwise
from typing import Literal, NamedTuple

from workbench.dataclasses import dataclass
from workbench.providers.offline.words import (
    NUMBER_WORDS,
    REQUEST_VERBS,
    STOPWORDS,
    operation_of,
    split_name,
    without_possessive,
    word_set,
)
from workbench.startup import late_pattern
from workbench.trajectory.events import JsonValue

Kind = Literal["quoted", "url", "email", "date", "datetime", "time", "handle", "pair", "path", "id", "number", "name"]
Span = tuple[int, int]
"""The start and the end of a place in a text."""

MAX_CHARS = 20_000
"""The most characters of a text that are searched."""

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_CLOCK = r"(?:[0-2]?[0-9]:[0-5][0-9](?::[0-5][0-9])?(?:\s?[ap]\.?m\b\.?)?|[01]?[0-9]\s?[ap]\.?m\b\.?)"
_DAY = r"[0-9]{1,2}(?:st|nd|rd|th)?"
_DATE = (
    r"(?:(?<![\w-])[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?(?![\w-])"
    rf"|(?<!\w)(?:{_CLOCK}\s+on\s+)?(?:{_DAY}\s+(?:of\s+)?{_MONTH},?|{_MONTH}\s+{_DAY},?)\s+[0-9]{{4}}(?!\w)"
    r"|(?<![\w/])[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}(?![\w/]))"
)
_FORMS: tuple[tuple[Kind, str], ...] = (
    ("quoted", r"""(?<!\w)'(?=\S)[^\n]{1,1000}?(?<=\S)'(?!\w)|"[^"\n]{1,1000}"|“[^”\n]{1,1000}”|`[^`\n]{1,1000}`"""),
    ("url", r"\bhttps?://[^\s<>\"']{1,2000}(?<![.,;:!?)])"),
    ("email", r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"),
    ("datetime", rf"{_DATE}(?:,?\s+(?:at\s+)?{_CLOCK})?"),
    ("time", rf"(?<![\w:.]){_CLOCK}(?![\w:])"),
    ("handle", r"(?<!\w)@[\w][\w.-]{0,63}(?<![.-])"),
    # Matches file names, and paths that begin with a root or a folder, have many parts, or end with a slash.
    (
        "path",
        r"(?<![\w/.~\\<-])(?:(?:~|\.{1,2})?/(?=[\d.-]{0,64}[^\W\d])|[a-z]:[\\/]|\\\\(?=\w)|\.[\w-]{1,64}/)"
        r"[\w.@+%~/\\-]{1,500}(?<!\.)"
        r"|(?<![\w/.-])\w[\w.-]{0,63}(?:(?:/[\w.-]{1,64}){4,32}/?|(?:/[\w.-]{1,64}){1,3}/)(?<!\.)(?![\w/])"
        r"|(?<![\w/.])(?:\.{0,2}/)?(?:[\w-]{1,64}/){0,8}[\w-]{2,64}\.[a-z]\w{0,4}(?![\w/])",
    ),
    ("pair", r"(?<![\w/.-])[a-z][\w.-]{0,63}(?:/[\w.-]{1,64}){1,3}(?<![.-])(?![\w/])"),
    ("id", r"(?<![\w-])(?=[\w-]{0,63}\d)[a-z][\w-]{0,63}(?<=\w)(?![\w-])"),
    (
        "number",
        r"(?<![\w.])(?:(?<![\d)]\s)[-−+])?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]{1,15})?(?![\w,])"
        r"|(?<![\w.])(?:(?<![\d)]\s)[-−])?[0-9]{1,18}(?:\.[0-9]{1,15})?(?!\d)"
        rf"|\b(?:{'|'.join(NUMBER_WORDS)})\b",
    ),
)
# One search finds all kinds. Where several kinds match, the first in the list is used. Repetitions are bounded, so that
# the search takes linear time for every text.
_EVIDENCE = late_pattern("|".join(f"(?P<{kind}>{form})" for kind, form in _FORMS), re.I)

_NAME_LINKS = word_set("of de da do del la le du van von der den")
_UNPUNCTUATED = late_pattern(r"[^\n\x00,;:.!?()\"“”]+")
_NOT_BLANK = late_pattern(r"\S+")
_SENTENCE_START = late_pattern(r"(?:^|[.!?:;]\s|\n)[\s\"'“(]*$")
_NO_NAMES = STOPWORDS | word_set(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december"""
)
_SIGN = late_pattern(
    r"\s*(?P<sign>\*\*|[-+*×·÷/^%−]|\b(?:x|plus|minus|times|over|mod(?:ulo)?|multiplied\s+by|divided\s+by)\b)\s*", re.I
)
_JOINED = late_pattern(
    r"\s*(?:[,;]|\b(?:and|or|vs\.?|versus)\b|&)\s*(?:(?:and|or|in|to|for|at|of|from|the)\s+){0,3}", re.I
)
_NO_CLOCK = datetime(2000, 1, 1)


class Evidence(NamedTuple):
    """A value in a text, with its kind and its position. Dates and times are ISO 8601 text.

    `is_uncertain` marks a capitalised word at the beginning of a sentence, which may not be a name."""

    kind: Kind
    value: str | int | float
    start: int
    end: int
    is_uncertain: bool = False


class Expression(NamedTuple):
    """An arithmetic operation between two numbers in a text, such as `15 * 23`."""

    operation: str
    text: str
    start: int
    end: int


def evidence_of_kind(evidence: Iterable[Evidence], kind: Kind) -> list[Evidence]:
    return [one for one in evidence if one.kind == kind]


def find_evidence(text: str) -> tuple[Evidence, ...]:
    """Return all evidence in a text, in order, without overlaps."""
    text = text[:MAX_CHARS]
    found: list[Evidence] = []
    for match in _EVIDENCE.finditer(text):
        if (one := _read(match)) is not None:
            found.append(one)
    rest = blank_out(text, found, "\x00")
    return tuple(sorted((*found, *_names(rest)), key=lambda one: one.start))


def blank_out(text: str, evidence: Iterable[Evidence], blank: str = " ") -> str:
    """Replace values in a text by equally many blanks, so that all positions stay the same."""
    for one in evidence:
        text = text[: one.start] + blank * (one.end - one.start) + text[one.end :]
    return text


def find_expressions(text: str, evidence: Iterable[Evidence]) -> tuple[Expression, ...]:
    """Return the arithmetic operations that a text writes between neighbouring numbers."""
    found = []
    for left, right in pairwise(evidence_of_kind(evidence, "number")):
        between = _SIGN.fullmatch(text, left.end, right.start)
        if between and (operation := operation_of(between["sign"].split()[0])):
            found.append(Expression(operation, text[left.start : right.end], left.start, right.end))
    return tuple(found)


def joined_groups(text: str, evidence: Iterable[Evidence]) -> list[list[Evidence]]:
    """Group evidence into enumerations: values of one kind, joined by commas and conjunctions.

    `Seattle, Portland and Boise` is one group."""
    groups: list[list[Evidence]] = []
    for one in evidence:
        if groups and groups[-1][-1].kind == one.kind and _JOINED.fullmatch(text, groups[-1][-1].end, one.start):
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _read(match: re.Match[str]) -> Evidence | None:
    kind: Kind = match.lastgroup  # type: ignore[assignment]  # the groups are named after the kinds
    text, (start, end) = match[0], match.span()
    if kind == "quoted":
        return Evidence(kind, text[1:-1], start, end)
    if kind in ("datetime", "time"):
        return _moment(kind, text, start, end)
    if kind == "number":
        return Evidence(kind, _number(text), start, end)
    return Evidence(kind, text.removeprefix("@"), start, end)


def _moment(kind: Kind, text: str, start: int, end: int) -> Evidence | None:
    from dateutil import parser as date_parser  # imported here: few texts have dates

    try:
        moment = date_parser.parse(text, default=_NO_CLOCK)
    except (ValueError, OverflowError):
        return None
    if kind == "time":
        return Evidence("time", moment.strftime("%H:%M:%S" if moment.second else "%H:%M"), start, end)
    # The parser sets a date without a time of day to midnight, so the text decides whether there is a time.
    if ":" in text or re.search(r"\d\s?[ap]\.?m\b", text, re.I):
        return Evidence("datetime", moment.isoformat(), start, end)
    return Evidence("date", moment.date().isoformat(), start, end)


def _number(text: str) -> int | float:
    plain = text.lower().replace(",", "").replace("−", "-")
    if plain in NUMBER_WORDS:
        return NUMBER_WORDS[plain]
    return float(plain) if "." in plain else int(plain)


def _names(text: str) -> Iterator[Evidence]:
    """Yield names in a text: runs of capitalised words without punctuation, such as "Bank of England"."""
    for part in _UNPUNCTUATED.finditer(text):
        run: list[re.Match[str]] = []
        link: list[re.Match[str]] = []
        for word in chain(_NOT_BLANK.finditer(text, *part.span()), (None,)):
            if word and _capitalised(word[0]):
                run += [*link, word]
                link = []
            elif word and run and not link and word[0] in _NAME_LINKS:
                link = [word]
            else:
                yield from _name(text, run)
                run, link = [], []


def _name(text: str, run: list[re.Match[str]]) -> Iterator[Evidence]:
    # The first word of a sentence is always capitalised, so it may not be a name. A stop word or a verb is dropped. Any
    # other word is marked as uncertain if it stands alone.
    weak = False
    if run and _SENTENCE_START.search(text, max(0, run[0].start() - 8), run[0].start()):
        first = re.split("['’]", run[0][0], maxsplit=1)[0].lower()
        if first in STOPWORDS or first in REQUEST_VERBS:
            run = run[1:]
        else:
            weak = len(run) == 1
    if run:
        value = text[run[0].start() : run[-1].start()] + without_possessive(run[-1][0])
        yield Evidence("name", value, run[0].start(), run[0].start() + len(value), weak)


def _capitalised(word: str) -> bool:
    if not word[:1].isupper():
        return False
    meaning = re.split("['’]", without_possessive(word), maxsplit=1)[0]
    shouted = meaning.isupper() and len(meaning) > 1 and meaning.lower() in STOPWORDS
    return shouted or meaning.lower() not in _NO_NAMES


# Values in the results of earlier calls, which later calls may need.

_RESULT_NUMBER = late_pattern(r"(?<![\w.])-?\d{1,18}(?:\.\d{1,15})?(?![\w]|\.\d)", re.ASCII)
_RESULT_KEYS = ("result", "value", "answer", "total", "output", "sum")
_MAX_SHOWN_CHARS = 400
_MAX_DEPTH = 6
"""The most levels of nesting that are searched for a value."""
_MAX_PARSED_CHARS = 200_000


@dataclass(frozen=True)
class ToolResult:
    """The result of an earlier call, read from its tool message."""

    content: str
    is_error: bool = False

    @cached_property
    def data(self) -> JsonValue:
        """The content parsed as JSON, or the text if it is not JSON."""
        try:
            data: JsonValue = json.loads(self.content[:_MAX_PARSED_CHARS])
            # `dumps` raises ValueError for NaN and Infinity, which Python parses, but which are not JSON and could not
            # be sent in an argument.
            json.dumps(data, allow_nan=False)
        except (ValueError, RecursionError):
            return self.content
        return data

    @cached_property
    def number(self) -> int | float | None:
        """The number that the result most likely means; `None` if there is none.

        In a text, this is the last number. In an object, it is the number under a key such as `result`, or the only
        number."""
        return _number_in(self.data, _MAX_DEPTH)

    def named(self, name: str) -> JsonValue:
        """Return the first value in the result that has the given name; `None` if there is none.

        Names are compared word by word: `orderId` finds `order_id`."""
        return _under(self.data, split_name(name), _MAX_DEPTH)

    @property
    def line(self) -> str:
        """The result as one readable line, shortened if necessary."""
        text = " ".join(_readable(self.data).split())
        return text if len(text) <= _MAX_SHOWN_CHARS else text[: _MAX_SHOWN_CHARS - 1] + "…"


def _number_in(data: JsonValue, depth: int) -> int | float | None:
    if isinstance(data, bool) or depth == 0:
        return None
    if isinstance(data, int | float):
        return data
    if isinstance(data, str):
        found = _RESULT_NUMBER.findall(data[:_MAX_SHOWN_CHARS])
        if not found:
            return None
        return float(found[-1]) if "." in found[-1] else int(found[-1])
    if isinstance(data, list):
        return _number_in(data[0], depth - 1) if len(data) == 1 else None
    if not isinstance(data, dict):
        return None
    for key in _RESULT_KEYS:
        if key in data and (number := _number_in(data[key], depth - 1)) is not None:
            return number
    # If there are several numbers under other keys, it is unclear which of them is the result.
    numbers = [value for value in data.values() if isinstance(value, int | float) and not isinstance(value, bool)]
    return numbers[0] if len(numbers) == 1 else None


def _under(data: JsonValue, words: tuple[str, ...], depth: int) -> JsonValue:
    inner: Iterable[JsonValue] = data if isinstance(data, list) else ()
    if isinstance(data, dict):
        for key, value in data.items():
            if split_name(key) == words and value is not None:
                return value
        inner = data.values()
    found = (_under(one, words, depth - 1) for one in inner if depth > 1)
    return next((one for one in found if one is not None), None)


def _readable(data: JsonValue) -> str:
    if isinstance(data, dict) and all(not isinstance(value, dict | list) for value in data.values()):
        return ", ".join(f"{key} {_plain(value)}" for key, value in data.items()) or "{}"
    return _plain(data)


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
