"""Numbers as people read them."""

from __future__ import annotations

import pytest

from workbench.tui.state.runs import Progress
from workbench.tui.state.spans import cells, plain
from workbench.tui.state.spend import Spend
from workbench.tui.state.status import models_label, status_line
from workbench.tui.state.summaries import Counts
from workbench.tui.state.words import clock, duration, many, score


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0 ms"), (0.2, "<1 ms"), (12.4, "12 ms"), (999.6, "1.0 s"), (1_430, "1.4 s"), (125_000, "2:05 min")],
)
def test_durations(milliseconds: float, text: str) -> None:
    assert duration(milliseconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (64.9, "1:04"), (3_723, "1:02:03")])
def test_clocks(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_a_score_below_one_never_reads_as_one() -> None:
    assert [score(value) for value in (1.0, 0.999, 0.85, 0.0, None)] == ["1.00", "0.99", "0.85", "0.00", ""]


def test_one_is_not_many() -> None:
    assert [many(1, "case"), many(2_000, "case")] == ["1 case", "2,000 cases"]


def test_the_offline_model_is_always_called_a_baseline() -> None:
    assert models_label(("offline",)) == "offline (baseline)"
    assert "baseline" in models_label(("offline", "openai:gpt-4o-mini"))


SPEND = Spend(12_400, 0.042, unknown=True)


def test_the_status_line_fits_and_keeps_the_counts() -> None:
    counts = Counts(passed=12, warned=1, failed=3, error=1, running=2, waiting=4)
    progress = Progress(17, 23, 83.0, True)
    wide = plain(status_line("suites", "offline (baseline)", 23, counts, SPEND, progress, 130))
    assert wide.startswith(" suites  offline (baseline) ")
    assert "12 ✓  1 !  3 ✗  1 ▲ error  6 … running  12k tok  $0.0420 + ?  1:23" in wide
    assert "17/23" in wide
    for width in range(1, 130):
        assert cells(status_line("suites", "offline (baseline)", 23, counts, SPEND, progress, width)) <= width
    assert "12 ✓" in plain(status_line("suites", "offline (baseline)", 23, counts, SPEND, progress, 60))


def test_a_short_batch_shows_no_bar() -> None:
    line = plain(status_line("suites", "m", 4, Counts(running=1), SPEND, Progress(0, 1, 0.4, True), 120))
    assert "─" not in line


def test_a_price_that_is_not_known_is_never_nothing() -> None:
    counts, progress = Counts(passed=1), Progress(1, 1, 0.4, False)
    line = plain(status_line("suites", "m", 4, counts, Spend(40, 0.0, unknown=True), progress, 120))
    assert "cost unknown" in line
    assert "$" not in line
    assert "cost" not in plain(status_line("suites", "m", 4, counts, Spend(40), progress, 120))


@pytest.mark.parametrize(("width", "kept"), [(120, 4), (80, 2), (60, 2)])
def test_a_narrow_status_line_loses_cost_and_tokens_before_time_and_counts(width: int, kept: int) -> None:
    counts = Counts(passed=12, warned=1, failed=3, running=6)
    progress = Progress(17, 23, 83.0, True)
    line = plain(status_line("smart_home", "offline (baseline)", 23, counts, SPEND, progress, width))
    assert [part in line for part in ("12 ✓", "1:23", "12k tok", "$0.0420")] == [True] * kept + [False] * (4 - kept)
