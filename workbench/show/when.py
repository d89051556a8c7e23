"""Times of batches, which are ISO 8601, for a person."""

from __future__ import annotations

from datetime import UTC, datetime

from workbench.numerals import age_text, moment_text
from workbench.show.visible import one_line


def local_time(at: str) -> str:
    """Return an ISO 8601 time in the local time zone, as `2026-11-22 14:03`; any other text as `one_line` shows it."""
    try:
        return moment_text(datetime.fromisoformat(at).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return one_line(at)


def epoch_ms(at: str) -> float | None:
    """Return an ISO 8601 time in milliseconds since 1970; `None` for any other text."""
    try:
        return datetime.fromisoformat(at).timestamp() * 1000
    except ValueError:
        return None


def ago(at: str, now: datetime) -> str:
    """Return the age of an ISO 8601 time: `now`, `4 min ago`, `3 h ago`, `2 days ago`; empty beyond two weeks.

    `now` has a time zone."""
    at_ms = epoch_ms(at)
    age = age_text(at_ms, now) if at_ms is not None else "-"
    if age == "now":
        return age
    return "" if "-" in age else f"{age} ago"


def took_s(began: str, ended: str | None) -> float | None:
    """Return the seconds between two ISO 8601 times, at least 0; `None` when one cannot be read."""
    try:
        between = datetime.fromisoformat(ended or "") - datetime.fromisoformat(began)
    except (ValueError, TypeError):
        return None
    return max(between.total_seconds(), 0.0)


def utc_time(at: str) -> str:
    """Return an ISO 8601 time in UTC, as `2026-11-22 14:03 UTC`, for a page that is read anywhere.

    Any other text is returned as `one_line` shows it.
    """
    try:
        return f"{datetime.fromisoformat(at).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError):
        return one_line(at)
