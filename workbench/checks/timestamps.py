"""Reads times and durations written as text, in suites and in the arguments of calls, and measures distances."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from functools import lru_cache

_MAX_TEXT_CHARS = 1_000
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*", re.ASCII)
_SECONDS_PER_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_USUAL_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?(Z|[+-][0-9]{2}:[0-9]{2})?)?")
_UNWRITTEN_PARTS = datetime(2000, 1, 1)
"""Fills in the parts that a text leaves out. It is fixed, so that a grade does not depend on the day on which it is
computed; a leap year and a first of the month, so that any day and any month fit."""


def _offset(name: str | None, seconds: int | None) -> tzinfo | None:
    """Only offsets that are written count; the meaning of a bare zone name depends on the machine."""
    from dateutil.tz import tzoffset

    return None if seconds is None else tzoffset(name, seconds)


@lru_cache(maxsize=1024)
def read_timestamp(text: str) -> datetime:
    """Read a time in any form that python-dateutil knows, month first where that is ambiguous.

    The result is naive if the text has no offset. Raises ValueError when the text cannot be read and OverflowError
    when a number in it is absurdly large.
    """
    if len(text) > _MAX_TEXT_CHARS and not text.isdigit():
        raise ValueError("too long for a date and time")
    from dateutil import parser  # on use: most suites compare no times

    try:
        return parser.parse(text[:_MAX_TEXT_CHARS], default=_UNWRITTEN_PARTS, tzinfos=_offset)
    except (ValueError, OverflowError):
        raise
    except Exception as error:  # free-form parsing of a model's text: whatever went wrong, it is not a date and time
        raise ValueError(f"not a date and time: {error}") from error


def seconds_between(left: datetime, right: datetime) -> float:
    """Return the distance of two times in seconds, never negative. If only one has an offset, it is dropped.

    Raises ValueError when both have an offset and one of them is a day or more.
    """
    if left.tzinfo is None or right.tzinfo is None:
        left, right = left.replace(tzinfo=None), right.replace(tzinfo=None)
    return abs((left - right).total_seconds())


def timestamp_credit(distance_s: float, tolerance_s: float, max_difference_s: float) -> float:
    """Return the credit, 0..1, for a time `distance_s` from the expected one: 1 within the tolerance, 0 from the
    maximum on, and `1 - distance / maximum` in between. It jumps down just past the tolerance, as Arcade's datetime
    critic does."""
    if distance_s <= tolerance_s:
        return 1.0
    return 0.0 if distance_s >= max_difference_s else 1 - distance_s / max_difference_s


def duration_seconds(text: str) -> float:
    """Return a duration such as `"500s"`, `"2h"` or `"250ms"` in seconds.

    Raises ValueError when the text is not a number followed by `ms`, `s`, `m`, `h` or `d`.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration: write a number with ms, s, m, h or d, such as '90s'")
    return float(match[1]) * _SECONDS_PER_UNIT[match[2]]


def is_timestamp(text: str) -> bool:
    """Return whether a text can be read as a date and time; usual ones without python-dateutil."""
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
    """Return whether a time is written with an offset; true for what cannot be read, which is reported elsewhere."""
    try:
        return read_timestamp(text).tzinfo is not None
    except (ValueError, OverflowError):
        return True
