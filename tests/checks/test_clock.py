"""The clock of a case, and the dates relative to it: written, read, and over changes of the offset."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.checks.clock import Clock, RelativeTime, clock_at, date_or_time_text, fixed_clock, relative_time

BERLIN = "2026-06-09T10:00 Europe/Berlin"
FORWARD = "2026-03-28T10:00 Europe/Berlin"
"""The day before clocks are put forward, from 02:00 to 03:00."""
BACK = "2026-10-24T10:00 Europe/Berlin"
"""The day before clocks are put back, from 03:00 to 02:00."""

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia", "UTC")


def clock_of(text: str) -> Clock:
    found = fixed_clock(text)
    assert found is not None
    return found


@each_row(
    ("clock", "text", "expected"),
    [
        (BERLIN, "today", ["2026-06-09T00:00+02:00"]),
        (BERLIN, "today+1d 15:00", ["2026-06-10T15:00+02:00"]),
        (BERLIN, "today + 1w - 2d 9:05", ["2026-06-14T09:05+02:00"]),
        (BERLIN, "now", ["2026-06-09T10:00+02:00"]),
        (BERLIN, "now+2h", ["2026-06-09T12:00+02:00"]),
        (BERLIN, "now-90m", ["2026-06-09T08:30+02:00"]),
        (BERLIN, "now+1d-30m", ["2026-06-10T09:30+02:00"]),
        ("2024-02-29T23:30 UTC", "today+365d", ["2025-02-28T00:00+00:00"]),
        ("2026-12-31T23:30 Asia/Kolkata", "today+1d", ["2027-01-01T00:00+05:30"]),
        # Days keep the time of day, hours elapse.
        (FORWARD, "now+1d", ["2026-03-29T10:00+02:00"]),
        (FORWARD, "now+24h", ["2026-03-29T11:00+02:00"]),
        (BACK, "now+1d", ["2026-10-25T10:00+01:00"]),
        (BACK, "now+24h", ["2026-10-25T09:00+01:00"]),
        # A skipped local time is written as meant. A repeated one is either of the two.
        (FORWARD, "today+1d 02:30", ["2026-03-29T02:30+01:00"]),
        (BACK, "today+1d 02:30", ["2026-10-25T02:30+02:00", "2026-10-25T02:30+01:00"]),
        ("2026-10-25T02:30+01:00 Europe/Berlin", "now", ["2026-10-25T02:30+01:00"]),
        ("2026-10-25T02:30+02:00 Europe/Berlin", "now+1h", ["2026-10-25T02:30+01:00"]),
        # Samoa had no 30 December in 2011.
        ("2011-12-29T12:00 Pacific/Apia", "now+24h", ["2011-12-31T12:00+14:00"]),
    ],
)
def test_relative_times(clock: str, text: str, expected: list[str]) -> None:
    when = relative_time(text)
    assert when is not None
    assert [each.isoformat(timespec="minutes") for each in when.moments(clock_of(clock))] == expected


NOT_RELATIVE = ["", "Today", "tomorrow", "today+1h", "today+1d 25:00", "now 15:00", "today 15", "now+1y", "now+.5h"]


@each_row("text", NOT_RELATIVE)
def test_texts_that_are_no_relative_time(text: str) -> None:
    assert relative_time(text) is None


@each_row(
    ("text", "message"),
    [
        ("Berlin", "there is no time zone 'Berlin': did you mean Europe/Berlin?"),
        ("New York", "there is no time zone 'New York': did you mean America/New_York?"),
        ("Europe/Berln", "there is no time zone 'Europe/Berln': did you mean Europe/Berlin?"),
        ("Europe", "there is no time zone 'Europe': write Europe/Berlin, or 2026-06-09T10:00 Europe/Berlin"),
        ("../secret", "there is no time zone '../secret': write Europe/Berlin, or 2026-06-09T10:00 Europe/Berlin"),
        ("2026-06-09T10:00 Mars/Base", "there is no time zone 'Mars/Base'"),
        ("2026-06-31T10:00 UTC", "2026-06-31T10:00 is not a date and time: day is out of range for month"),
        ("2026-03-29T02:30 Europe/Berlin", "Europe/Berlin skips 2026-03-29T02:30, when its clocks are put forward"),
        ("2026-10-25T02:30 Europe/Berlin", "clocks are put back on that day: write 2026-10-25T02:30+02:00 or 2026"),
        ("2026-06-09T10:00+05:00 Europe/Berlin", "Europe/Berlin does not have the offset +05:00 at 2026-06-09T10:00"),
        ("9999-12-31T23:59 America/New_York", "9999-12-31T23:59 is beyond the calendar"),
    ],
)
def test_clocks_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        fixed_clock(text)
    assert message in str(raised.value)


def test_a_computer_without_time_zones_is_told_which_package_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.checks.clock.zone_names", lambda: ())
    with pytest.raises(ValueError, match="install it with `pip install tzdata`"):
        fixed_clock("Nowhere/At_All")


AMOUNTS = st.lists(st.tuples(st.integers(-4000, 4000), st.sampled_from("dw")), max_size=3)
ELAPSING = st.lists(st.tuples(st.integers(-4000, 4000), st.sampled_from("mhdw")), max_size=3)
TIMES = st.times().map(lambda at: at.replace(microsecond=0, fold=0))
RELATIVE = st.builds(RelativeTime, st.just("today"), AMOUNTS.map(tuple), st.none() | TIMES) | st.builds(
    RelativeTime, st.just("now"), ELAPSING.map(tuple)
)
MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))


@given(RELATIVE)
def test_a_relative_time_reads_as_it_is_written(when: RelativeTime) -> None:
    assert relative_time(str(when)) == when


@given(MOMENTS, st.sampled_from(ZONES))
def test_a_clock_that_a_run_keeps_is_read_as_the_same_time(now: datetime, zone: str) -> None:
    clock = clock_at(zone, now)
    assert timedelta() <= now - clock.at < timedelta(minutes=1)
    assert fixed_clock(str(clock)) == clock
    assert clock_at(str(clock), now + timedelta(days=400)) == clock


@given(RELATIVE, MOMENTS, st.sampled_from(ZONES))
def test_relative_times_keep_the_face_or_let_time_elapse(when: RelativeTime, now: datetime, zone: str) -> None:
    clock = clock_at(zone, now)
    days = sum(amount * {"d": 1, "w": 7}.get(unit, 0) for amount, unit in when.amounts)
    minutes = sum(amount * {"m": 1, "h": 60}.get(unit, 0) for amount, unit in when.amounts)
    found = when.moments(clock)
    assert 1 <= len(found) <= 2
    for each in found:
        assert each.utcoffset() in {each.replace(tzinfo=ZoneInfo(zone), fold=fold).utcoffset() for fold in (0, 1)}
        if when.base == "now" and not days:
            assert each - clock.at == timedelta(minutes=minutes)
        elif not minutes:
            assert each.date() - clock.at.date() == timedelta(days=days)
            if when.base == "now":
                assert each.time() == clock.at.time()
            else:
                assert (each.hour, each.minute) == ((when.at.hour, when.at.minute) if when.at else (0, 0))
    if when.is_date:
        assert date_or_time_text(when, clock) == found[0].date().isoformat()
