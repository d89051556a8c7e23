"""One batch of a history as lines. The text that distinguishes runs is never cut."""

from __future__ import annotations

from workbench.history.records import RunRow, SuiteRef
from workbench.show.text import Paint
from workbench.show.views.batch import runs_lines

SUITE = SuiteRef(1, "/there", "weather.toml", "0" * 64, "Weather", 1)


def test_the_repeats_of_a_case_with_a_long_name_are_told_apart() -> None:
    name = "A rather long case name, longer than its column"
    runs = [
        RunRow(at, 1, at, SUITE, "long", name, "offline", False, at, None, is_fork=False, figures=None)
        for at in range(3)
    ]
    first, *again = runs_lines(runs, 60, Paint(False), every=True)
    assert "A rather long case name, long…  " in first
    assert [line.partition("#")[2][:1] for line in again] == ["2", "3"]
