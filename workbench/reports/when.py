"""Times of batches as a person reads them: where the program runs, and how long ago."""

from __future__ import annotations

from datetime import datetime

from workbench.reports.visible import one_line

_UNITS = ((86_400, "day"), (3_600, "h"), (60, "min"))
_AGO_UP_TO_S = 14 * 86_400
"""What is longer ago is told by its date alone."""


def moment(at: str) -> str:
    """A time, given as ISO 8601, as it is where the program runs: `2026-11-22 14:03`; any other text made visible."""
    try:
        return f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return one_line(at)


def moment_ms(at: str) -> float | None:
    """A time, given as ISO 8601, in milliseconds since 1970; `None` for any other text."""
    try:
        return datetime.fromisoformat(at).timestamp() * 1000
    except ValueError:
        return None


def moment_of_ms(at_ms: float) -> str:
    """A time, given in milliseconds since 1970, likewise."""
    return f"{datetime.fromtimestamp(at_ms / 1000):%Y-%m-%d %H:%M}"


def ago(at: str, now: datetime) -> str:
    """How long ago that was, where it is short: `now`, `4 min ago`, `3 h ago`, `2 days ago`; else nothing. `now` has a
    time zone."""
    seconds = took_s(at, now.isoformat())
    if seconds is None or seconds >= _AGO_UP_TO_S:
        return ""
    for length, unit in _UNITS:
        if seconds >= length:
            number = int(seconds // length)
            return f"{number} {unit}{'s' if unit == 'day' and number > 1 else ''} ago"
    return "now"


def took_s(began: str, ended: str | None) -> float | None:
    """The seconds between two times, given as ISO 8601, at least 0; `None` where that is not known."""
    try:
        between = datetime.fromisoformat(ended or "") - datetime.fromisoformat(began)
    except (ValueError, TypeError):
        return None
    return max(between.total_seconds(), 0.0)
