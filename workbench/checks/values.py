"""Functions to compare, read and write JSON values, and to recognise the names of modules and functions.

Values are compared for equality, as numbers, as similar texts, as times or as durations."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import Any, Literal

from pydantic import JsonValue

from workbench.startup import late_pattern

_NAME = r"[^\W\d]\w*"
_MODULE = late_pattern(rf"{_NAME}(?:\.{_NAME})*")
_FUNCTION = late_pattern(rf"{_MODULE.pattern}:{_NAME}")


def is_module_name(text: str) -> bool:
    """Return whether a text is a module name: `my_server`, `tools.mocks`."""
    return _MODULE.fullmatch(text) is not None


def is_function_reference(text: str) -> bool:
    """Return whether a text names a module and a function in it: `tools.mocks:answer`."""
    return _FUNCTION.fullmatch(text) is not None


def file_name_fault(reference: object) -> Iterator[tuple[str, str]]:
    """Find a function reference that names a file instead of a module. Yield the problem with a hint."""
    if not isinstance(reference, str):
        return
    module, _, function = reference.partition(":")
    if module.endswith(".py"):
        yield f'"{module}" is a file name', f'write the module: "{module[:-3]}:{function}"'


SHOWN_CELLS = 60
"""The width to which shown values are cut, in terminal cells."""

_LONG = 10**15
"""Whole numbers below this bound are written without the JSON encoder, which refuses very large numbers."""

_ENCODER = json.JSONEncoder(ensure_ascii=False)
_SPACE = " \t\n\r"
_NUMBER = late_pattern(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LEFT_OUT = str.maketrans({**dict.fromkeys(" ,./-_*^", ""), "'": '"'})


def describe_value(value: JsonValue) -> str:
    """Return a JSON value as JSON on one line, cut to `SHOWN_CELLS`."""
    return cut_text(json_text(value))


def json_text(value: JsonValue) -> str:
    """Return a JSON value as JSON on one line, uncut. A value that cannot be written is described by a few words."""
    if type(value) is int and -_LONG < value < _LONG:
        return repr(value)
    try:
        return _ENCODER.encode(value)
    except (RecursionError, ValueError):
        return "a value nested too deeply or too long to show"


def cut_text(text: str, cells: int = SHOWN_CELLS) -> str:
    """Return a text cut to a number of terminal cells. A cut text ends with an ellipsis."""
    if text.isascii():
        if len(text) <= cells:
            return text
        return text[: cells - 1] + "…"
    width = 0
    keep = 0
    for index, character in enumerate(text):
        width += _cells(character)
        if width <= cells - 1:
            keep = index + 1
        if width > cells:
            return text[:keep] + "…"
    return text


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    if unicodedata.east_asian_width(character) in "WF":
        return 2
    return 1


def json_equal(left: JsonValue, right: JsonValue) -> bool:
    """Return whether two JSON values are equal at every depth.

    Numbers are compared by value (5 = 5.0), and integers exactly. A boolean is never a number. The order of a list
    matters. The order of an object's keys is ignored."""
    if isinstance(left, str):
        return left == right
    # A stack replaces recursion, because the arguments of a broken model can nest deeper than Python's recursion limit.
    pending: list[tuple[JsonValue, JsonValue]] = [(left, right)]
    while pending:
        a, b = pending.pop()
        if isinstance(a, dict):
            if not isinstance(b, dict) or a.keys() != b.keys():
                return False
            pending.extend((value, b[key]) for key, value in a.items())
        elif isinstance(a, list):
            if not isinstance(b, list) or len(a) != len(b):
                return False
            pending.extend(zip(a, b, strict=True))
        elif isinstance(a, bool) is not isinstance(b, bool) or a != b:
            return False
    return True


def hashable(value: JsonValue) -> Hashable:
    """Return a dictionary key for a JSON value. Two keys are equal exactly if `json_equal` holds for the values.

    Raises RecursionError for a value that is nested too deeply."""
    if isinstance(value, bool):
        # In Python, `True` equals 1.
        return bool, value
    if isinstance(value, list):
        return list, tuple(map(hashable, value))
    if isinstance(value, dict):
        return dict, frozenset((name, hashable(held)) for name, held in value.items())
    return value


def canonical_text(text: str) -> str:
    """Return a text in Unicode's composed form, NFC: letters with accents become single characters."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", text)


def keyword_text(text: str) -> str:
    """Return a text in the form used to search for keywords: NFC and lower case."""
    # `casefold` would turn "ß" into "ss". Lower case may undo NFC, so NFC is applied twice.
    return canonical_text(canonical_text(text).lower())


def without_case(value: JsonValue) -> JsonValue:
    """Return a value with its texts in NFC and lower case, at any depth. The keys of objects stay.

    Raises RecursionError for a value that is nested too deeply."""
    if isinstance(value, str):
        return keyword_text(value)
    if isinstance(value, list):
        return list(map(without_case, value))
    if isinstance(value, dict):
        return {name: without_case(held) for name, held in value.items()}
    return value


def canonical(value: JsonValue) -> JsonValue:
    """Return a value with all its texts and keys in NFC, at any depth."""
    if isinstance(value, str):
        return canonical_text(value)
    if not isinstance(value, list | dict):
        return value
    # Containers are copied from the outside in. A stack replaces recursion because deep values would exceed Python's
    # limit.
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


def bfcl_text(value: JsonValue) -> JsonValue:
    """Return a value with its texts standardised as in BFCL (the Berkeley Function-Calling Leaderboard).

    In texts, letters become lower case, spaces and `, . / - _ * ^` are removed, and single quotes become double quotes.
    The texts are in NFC. The keys of objects are unchanged. May raise RecursionError."""
    if isinstance(value, str):
        return canonical_text(value.translate(_LEFT_OUT).lower())
    if isinstance(value, list):
        return [bfcl_text(inner) for inner in value]
    if isinstance(value, dict):
        return {name: bfcl_text(inner) for name, inner in value.items()}
    return value


def spelled_number(text: str) -> int | float | None:
    """Return the number that a text spells in JSON's grammar, with optional white space around it.

    Returns `None` for any other text, and for an integer with more digits than Python reads (4,300)."""
    spelled = text.strip(_SPACE)
    if _NUMBER.fullmatch(spelled) is None:
        return None
    try:
        number: int | float = json.loads(spelled)
    except ValueError:
        return None
    return number


def json_number(value: JsonValue) -> int | float:
    """Return the value of a number, or of a text that spells a number.

    Raises TypeError for any other value, including booleans."""
    number = spelled_number(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError("not a number")
    return number


def published_number(value: JsonValue) -> float:
    """Return a value as Arcade's numeric critic reads it: by Python's `float`, with booleans as 1 and 0.

    Raises TypeError, ValueError or OverflowError as `float` does."""
    if value is None or isinstance(value, list | dict):
        raise TypeError("not a number")
    return float(value)


# The similarity of two texts, 0..1: by TF-IDF cosine like Arcade's similarity critic, or by a metric of rapidfuzz.

SimilarityMetric = Literal["cosine", "ratio", "partial_ratio", "token_sort_ratio", "token_set_ratio"]

_TOKEN = late_pattern(r"\w\w+")
_ONE_SIDED_IDF = math.log(3 / 2) + 1
"""The inverse document frequency of a token in only one of the two texts: ln((1 + n) / (1 + df)) + 1 with n = 2, df =
1.

For a token in both texts, the inverse document frequency is 1."""


def as_text(value: JsonValue) -> str:
    """Return a value as text for comparison: a list joined by spaces, any other value as Python writes it.

    Raises RecursionError for a value that is nested too deeply, and ValueError for a number that is too long."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value)


def similarity(expected: str, actual: str, metric: SimilarityMetric = "cosine") -> float:
    """Return the similarity of two texts, 0..1: 1 for two blank texts, 0 for a blank and a non-blank text."""
    if not expected.strip() or not actual.strip():
        if not expected.strip() and not actual.strip():
            return 1.0
        return 0.0
    if metric == "cosine":
        return cosine(expected, actual)
    # Lazy import: most suites use the default metric.
    from rapidfuzz import fuzz

    by_metric = {
        "ratio": fuzz.ratio,
        "partial_ratio": fuzz.partial_ratio,
        "token_sort_ratio": fuzz.token_sort_ratio,
        "token_set_ratio": fuzz.token_set_ratio,
    }
    return by_metric[metric](expected, actual) / 100


def cosine(left: str, right: str) -> float:
    """Return the cosine of the TF-IDF vectors of two texts, which form the whole corpus.

    Tokens are runs of two or more word characters, in lower case. Texts without tokens are similar only if they are
    equal. The formula is that of Arcade's evals, which use scikit-learn's defaults (smoothed idf, L2 norm)."""
    if left == right:
        return 1.0
    left_counts, right_counts = _token_counts(left), _token_counts(right)
    shared = left_counts.keys() & right_counts.keys()
    dot = sum(left_counts[token] * right_counts[token] for token in shared)
    norms = _square_norm(left_counts, shared) * _square_norm(right_counts, shared)
    return min(dot / math.sqrt(norms), 1.0) if dot else 0.0


@lru_cache(maxsize=256)
def _token_counts(text: str) -> Counter[str]:
    return Counter(_TOKEN.findall(text.lower()))


def _square_norm(counts: Counter[str], shared: set[str]) -> float:
    weights: list[float] = []
    for token, count in counts.items():
        weights.append(count if token in shared else count * _ONE_SIDED_IDF)
    return sum(weight**2 for weight in weights)


# Times and durations written as text, in suites and in the arguments of calls.

_MAX_TEXT_CHARS = 1_000
_DURATION = late_pattern(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*", re.ASCII)
_SECONDS_PER_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_USUAL_MOMENT = late_pattern(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_UNWRITTEN_PARTS = datetime(2000, 1, 1)
"""The default for the parts of a time that a text leaves out.

The parts are fixed, so a grade does not depend on the current date. A leap year and a month of 31 days allow any day
that a text may have."""


def _offset(name: str | None, seconds: int | None) -> tzinfo | None:
    from dateutil.tz import tzoffset

    # A zone's name could mean different zones on different machines.
    if seconds is None:
        return None
    return tzoffset(name, seconds)


@lru_cache(maxsize=1024)
def read_timestamp(text: str) -> datetime:
    """Return the time that a text spells in any form known to python-dateutil. Ambiguous dates are month first.

    The time is naive if the text has no offset. Raises ValueError for a text that cannot be read, and OverflowError for
    a number that is absurdly large."""
    if len(text) > _MAX_TEXT_CHARS and not text.isdigit():
        raise ValueError("too long for a date and time")
    # Lazy import: most suites compare no times.
    from dateutil import parser

    try:
        return parser.parse(text[:_MAX_TEXT_CHARS], default=_UNWRITTEN_PARTS, tzinfos=_offset)
    except (ValueError, OverflowError):
        raise
    except Exception as error:
        # On free text of a model, dateutil raises many kinds of errors. All of them mean that the text cannot be read.
        raise ValueError(f"not a date and time: {error}") from error


def seconds_between(left: datetime, right: datetime) -> float:
    """Return the distance of two times in seconds, at least 0. If only one time has an offset, the offset is ignored.

    Raises ValueError if both times have an offset and one of the offsets is a day or more."""
    if left.tzinfo is None or right.tzinfo is None:
        left, right = left.replace(tzinfo=None), right.replace(tzinfo=None)
    return abs((left - right).total_seconds())


def timestamp_credit(distance_s: float, tolerance_s: float, max_difference_s: float) -> float:
    """Return the credit, 0..1, for the distance of a time from the expected time, by the formula of Arcade's critic.

    The credit is 1 within the tolerance, 0 from the maximum on, and `1 - distance / maximum` in between. At the
    tolerance, the credit therefore jumps down."""
    if distance_s <= tolerance_s:
        return 1.0
    if distance_s >= max_difference_s:
        return 0.0
    return 1 - distance_s / max_difference_s


def duration_seconds(text: str) -> float:
    """Return a duration such as `"500s"`, `"2h"` or `"250ms"` in seconds.

    Raises ValueError for any text except a number followed by `ms`, `s`, `m`, `h` or `d`."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration: write a number with ms, s, m, h or d, such as '90s'")
    return float(match[1]) * _SECONDS_PER_UNIT[match[2]]


def is_timestamp(text: str) -> bool:
    """Return whether a text can be read as a date and time."""
    # Common forms are recognised without importing python-dateutil.
    if _USUAL_MOMENT.fullmatch(text) and _is_iso_format(text):
        return True
    try:
        read_timestamp(text)
    except (ValueError, OverflowError):
        return False
    return True


def _is_iso_format(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def has_offset(text: str) -> bool:
    """Return whether a time has an offset from UTC.

    Return True for a text that is not a time, because that fault is reported separately."""
    try:
        return read_timestamp(text).tzinfo is not None
    except (ValueError, OverflowError):
        return True
