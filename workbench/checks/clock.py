"""The clock of a case: the time given to the model, and dates of checks relative to that time."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from workbench.dataclasses import dataclass
from workbench.startup import late_pattern

if TYPE_CHECKING:
    pass

_WRITTEN = late_pattern(
    r"(?P<at>[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2})"
    r"(?P<offset>Z|[+-][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?\s+(?P<zone>\S+)"
)
_EXAMPLES = "Europe/Berlin, or 2026-06-09T10:00 Europe/Berlin"


@dataclass(frozen=True, slots=True)
class Clock:
    """The time of a run, with an offset from UTC. `zone` is the name of its time zone in the IANA database."""

    at: datetime
    zone: str

    def __str__(self) -> str:
        """Return the clock to the minute, in the form that suites accept and the model receives.

        >>> str(fixed_clock("2026-06-09T10:00 Europe/Berlin"))
        '2026-06-09T10:00+02:00 Europe/Berlin'
        """
        return f"{self.at.isoformat(timespec='minutes')} {self.zone}"

    @property
    def tz(self) -> tzinfo:
        return _zone(self.zone)


NOMINAL_CLOCK = Clock(datetime(2026, 1, 14, 12, tzinfo=UTC), "UTC")
"""The time of imagined runs. Relative dates are computed for it."""


def fixed_clock(text: str) -> Clock | None:
    """Parse a suite's `clock`. Return `None` for a time zone without a time.

    Raises ValueError for other texts, unknown time zones, and times that do not exist or are ambiguous."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        _zone(text.strip())
        return None
    written, name = found["at"], found["zone"]
    zone = _zone(name)
    try:
        at = datetime.fromisoformat(written)
        candidates = wall_times(at, zone)
        shown = candidates[0].astimezone(UTC).astimezone(zone).replace(tzinfo=None)
    except OverflowError:
        raise ValueError(f"{written} is beyond the calendar") from None
    except ValueError as error:
        raise ValueError(f"{written} is not a date and time: {error}") from None
    if shown != at:
        raise ValueError(f"{name} skips {written}, when its clocks are put forward: write another time")
    if found["offset"] is not None:
        given = datetime.fromisoformat(written + found["offset"]).utcoffset()
        fitting = [each for each in candidates if each.utcoffset() == given]
        if not fitting:
            raise ValueError(f"{name} does not have the offset {found['offset']} at {written}: leave the offset out")
        candidates = fitting
    if len(candidates) > 1:
        both = " or ".join(each.isoformat(timespec="minutes") for each in candidates)
        raise ValueError(f"{written} occurs twice in {name}, because clocks are put back on that day: write {both}")
    return Clock(candidates[0], name)


def clock_at(text: str, now: datetime) -> Clock:
    """Return a suite's clock. If the suite fixes no time, the clock shows `now`, which must have an offset.

    Seconds are dropped because the model does not see them. Raises ValueError as `fixed_clock` does."""
    if (fixed := fixed_clock(text)) is not None:
        return fixed
    at = now.astimezone(_zone(text.strip())).replace(second=0, microsecond=0)
    return Clock(_with_own_offset(at), text.strip())


def wall_times(at: datetime, zone: tzinfo) -> list[datetime]:
    """Return the one or two times at which a zone's clocks show a date and time, each with its offset.

    When clocks are put forward, they skip some times. A skipped time gets the offset before the change, as in PEP
    495."""
    first, second = (_with_own_offset(at.replace(tzinfo=zone, fold=fold)) for fold in (0, 1))
    if (first.utcoffset() or timedelta()) > (second.utcoffset() or timedelta()):
        return [first, second]
    return [first]


def _with_own_offset(at: datetime) -> datetime:
    # Python compares two times of one zone by local time alone and ignores an offset change.
    return at.replace(tzinfo=timezone(at.utcoffset() or timedelta()), fold=0)


@lru_cache(maxsize=1)
def zone_names() -> tuple[str, ...]:
    """Return the names of all time zones known to this computer, in alphabetical order."""
    from zoneinfo import available_timezones  # lazy import: few suites have a clock

    return tuple(sorted(available_timezones()))


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo  # lazy import: few suites have a clock

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        known = zone_names()
    if not known:
        raise ValueError("this computer has no time zone data: install it with `pip install tzdata`")
    raise ValueError(f"there is no time zone {name!r}: {_nearest(name, known)}")


def _nearest(name: str, known: Sequence[str]) -> str:
    # Most mistakes are a city without its region, or a name with spaces.
    city = name.replace(" ", "_").rpartition("/")[2].lower()
    for zone in known:
        if zone.lower().endswith(f"/{city}"):
            return f"did you mean {zone}?"
    if nearest := difflib.get_close_matches(name, known, n=1, cutoff=0.8):
        return f"did you mean {nearest[0]}?"
    return f"write {_EXAMPLES}"


Unit = Literal["m", "h", "d", "w"]

_RELATIVE = late_pattern(
    r"\s*(?P<base>today|now)(?P<amounts>(?:\s*[+-]\s*[0-9]{1,7}\s*[mhdw])*)"
    r"(?:\s+(?P<at>[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?))?\s*"
)
_AMOUNT = late_pattern(r"([+-])\s*([0-9]+)\s*([mhdw])")
_ELAPSED = {"m": timedelta(minutes=1), "h": timedelta(hours=1)}
_DAYS = {"d": 1, "w": 7}


@dataclass(frozen=True, slots=True)
class RelativeTime:
    """A time relative to a clock, such as `today+1d 15:00`.

    `amounts` are numbers of units to add to `base`, and may be negative. `at` is a time of day, only with `today`."""

    base: Literal["today", "now"]
    amounts: tuple[tuple[int, Unit], ...] = ()
    at: time | None = None

    def __str__(self) -> str:
        """Return the time as a suite writes it: `today+1d 15:00`."""
        text = self.base + "".join(f"{amount:+}{unit}" for amount, unit in self.amounts)
        if self.at is None:
            return text
        return f"{text} {self.at.isoformat('seconds' if self.at.second else 'minutes')}"

    @property
    def is_date(self) -> bool:
        """Whether the time is a whole day, without a time of day."""
        return self.base == "today" and self.at is None

    def moments(self, clock: Clock) -> list[datetime]:
        """Return the time with its offset, or two times if it occurs twice because clocks are put back.

        Adding days and weeks keeps the time of day. Hours and minutes are added as elapsed time. Raises OverflowError
        beyond the calendar."""
        days = sum(amount * _DAYS[unit] for amount, unit in self.amounts if unit in _DAYS)
        elapsed = timedelta()
        for amount, unit in self.amounts:
            elapsed += amount * _ELAPSED.get(unit, timedelta())
        zone = clock.tz
        face = clock.at.replace(tzinfo=None) + timedelta(days=days)
        if self.base == "today":
            face = datetime.combine(face.date(), self.at or time())
        # The clock's own time has an offset, so it is unambiguous even when clocks are put back.
        times = [clock.at]
        if self.base == "today" or days:
            times = wall_times(face, zone)
        if not elapsed:
            return times
        return [_with_own_offset((each.astimezone(UTC) + elapsed).astimezone(zone)) for each in times]


@lru_cache(maxsize=1024)
def relative_time(text: str) -> RelativeTime | None:
    r"""Parse a relative time. Return `None` for any other text.

    `today` may be followed by days, weeks and a time of day. `now` may be followed by days, weeks, hours and minutes.

    >>> str(relative_time("today + 1d 15:00"))
    'today+1d 15:00'
    """
    found = _RELATIVE.fullmatch(text)
    if found is None:
        return None
    amounts: list[tuple[int, Unit]] = []
    for sign, digits, unit in _AMOUNT.findall(found["amounts"]):
        amounts.append((int(sign + digits), unit))
    base: Literal["today", "now"] = "today"
    if found["base"] == "now":
        base = "now"
    if base == "now" and found["at"] is not None:
        return None
    if base == "today" and any(unit in _ELAPSED for _, unit in amounts):
        return None
    try:
        at = None if found["at"] is None else time.fromisoformat(_with_two_digits(found["at"]))
    except ValueError:
        return None
    return RelativeTime(base, tuple(amounts), at)


def _with_two_digits(at: str) -> str:
    return at if at[1] != ":" else f"0{at}"


def date_or_time_text(when: RelativeTime, clock: Clock, *, with_offset: bool = False) -> str:
    """Return a relative time as a model would write it.

    A whole day is written as a date, unless `with_offset` is true."""
    at = when.moments(clock)[0]
    if when.is_date and not with_offset:
        return at.date().isoformat()
    return at.isoformat()
