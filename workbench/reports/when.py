"""Times of batches for a person: in the local time zone, and how long ago."""

from __future__ import annotations

from datetime import datetime

from workbench.reports.visible import one_line

_UNITS = ((86_400, "day"), (3_600, "h"), (60, "min"))
_AGO_UP_TO_S = 14 * 86_400
"""Older times are shown by their date alone."""


def local_time(at: str) -> str:
    """Returns an ISO 8601 time in the local time zone, as `2026-11-22 14:03`; any other text as `one_line` shows it."""
    try:
        return f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return one_line(at)


def epoch_ms(at: str) -> float | None:
    """Returns an ISO 8601 time in milliseconds since 1970; `None` for any other text."""
    try:
        return datetime.fromisoformat(at).timestamp() * 1000
    except ValueError:
        return None


def local_time_of_ms(at_ms: float) -> str:
    """Returns a time in milliseconds since 1970 as `local_time` does."""
    return f"{datetime.fromtimestamp(at_ms / 1000):%Y-%m-%d %H:%M}"


def ago(at: str, now: datetime) -> str:
    """Returns the age of an ISO 8601 time: `now`, `4 min ago`, `3 h ago`, `2 days ago`; empty beyond two weeks. `now`
    has a time zone."""
    seconds = took_s(at, now.isoformat())
    if seconds is None or seconds >= _AGO_UP_TO_S:
        return ""
    return f"{_length(seconds)} ago" if seconds >= _UNITS[-1][0] else "now"


def age(at_ms: float, now: datetime) -> str:
    """Returns the age of a time in milliseconds since 1970: `now`, `4 min`, `3 h`, `2 days`, later its date."""
    seconds = max(now.timestamp() - at_ms / 1000, 0.0)
    if seconds >= _AGO_UP_TO_S:
        return f"{datetime.fromtimestamp(at_ms / 1000):%Y-%m-%d}"
    return _length(seconds) if seconds >= _UNITS[-1][0] else "now"


def _length(seconds: float) -> str:
    length, unit = next((length, unit) for length, unit in _UNITS if seconds >= length)
    number = int(seconds // length)
    return f"{number} {unit}{'s' if unit == 'day' and number > 1 else ''}"


def took_s(began: str, ended: str | None) -> float | None:
    """Returns the seconds between two ISO 8601 times, at least 0; `None` when one cannot be read."""
    try:
        between = datetime.fromisoformat(ended or "") - datetime.fromisoformat(began)
    except (ValueError, TypeError):
        return None
    return max(between.total_seconds(), 0.0)
