"""Reads times written as text, in suites and in the arguments of calls."""

from __future__ import annotations

from datetime import datetime, tzinfo
from functools import lru_cache

_LONGEST_TEXT = 1_000
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
    if len(text) > _LONGEST_TEXT and not text.isdigit():
        raise ValueError("too long for a date and time")
    from dateutil import parser  # on use: most suites compare no times

    try:
        return parser.parse(text[:_LONGEST_TEXT], default=_UNWRITTEN_PARTS, tzinfos=_offset)
    except (ValueError, OverflowError):
        raise
    except Exception as error:  # free-form parsing of a model's text: whatever went wrong, it is not a date and time
        raise ValueError(f"not a date and time: {error}") from error
