"""Conversion of the ISO 8601 times of batches to text for people."""

from __future__ import annotations

from datetime import UTC, datetime

from workbench.numerals import age_text, moment_text
from workbench.show.visible import one_line


def local_time(time: str) -> str:
    """Return an ISO 8601 time as local time, such as `2026-11-22 14:03`.

    If `time` is not such a time, return the text on one line."""
    try:
        return moment_text(datetime.fromisoformat(time).timestamp() * 1000)
    # A year beyond the range of the system's clock raises OverflowError or OSError.
    except (ValueError, OverflowError, OSError):
        return one_line(time)


def epoch_ms(time: str) -> float | None:
    """Return an ISO 8601 time in milliseconds since 1970, or `None` for any other text."""
    try:
        return datetime.fromisoformat(time).timestamp() * 1000
    except ValueError:
        return None


def ago(time: str, now: datetime) -> str:
    """Return the age of an ISO 8601 time as `now`, `4 min ago`, `3 h ago` or `2 days ago`.

    Return "" for an age of more than two weeks. `now` must have a time zone."""
    at_ms = epoch_ms(time)
    if at_ms is None:
        return ""
    age = age_text(at_ms, now)
    # Beyond two weeks, `age_text` returns a date. Only dates have hyphens.
    if "-" in age:
        return ""
    if age == "now":
        return age
    return f"{age} ago"


def took_s(began: str, ended: str | None) -> float | None:
    """Return the seconds between two ISO 8601 times, at least 0.

    Return `None` if a time is missing or not ISO 8601."""
    try:
        between = datetime.fromisoformat(ended or "") - datetime.fromisoformat(began)
    # Subtracting a time without a zone from a time with a zone raises a TypeError.
    except (ValueError, TypeError):
        return None
    return max(between.total_seconds(), 0.0)


def utc_time(time: str) -> str:
    """Return an ISO 8601 time in UTC, such as `2026-11-22 14:03 UTC`, for pages that are read in any time zone.

    If `time` is not such a time, return the text on one line."""
    try:
        return f"{datetime.fromisoformat(time).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError):
        return one_line(time)
