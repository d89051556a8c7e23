"""Numbers as people read them."""

from __future__ import annotations

import pytest

from tests.tables import each_row
from workbench.engine.events import BatchStarted, StartUp
from workbench.grading.status import Status
from workbench.numerals import counted, duration_text, elapsed_text, score_text
from workbench.show.spans import cells, plain
from workbench.tui.run_book.book import Progress, RunBook
from workbench.tui.run_book.record import Spend
from workbench.tui.run_book.summaries import Counts
from workbench.tui.runs.status_line import models_label, progress_ends, status_line


@each_row(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (0.2, "<1 ms"),
        (12.4, "12 ms"),
        (999.6, "1.0 s"),
        (1_430, "1.4 s"),
        (125_000, "2:05 min"),
        (3_725_000, "1:02:05 h"),
    ],
)
def test_durations(milliseconds: float, text: str) -> None:
    assert duration_text(milliseconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (64.9, "1:04"), (3_723, "1:02:03")])
def test_clocks(seconds: float, text: str) -> None:
    assert elapsed_text(seconds) == text


def test_a_score_below_one_never_reads_as_one() -> None:
    assert [score_text(value) for value in (1.0, 0.999, 0.85, 0.0, None)] == ["1.00", "0.99", "0.85", "0.00", "n/a"]


def test_one_is_not_many() -> None:
    assert [counted(1, "case"), counted(2_000, "case")] == ["1 case", "2,000 cases"]


def test_the_offline_model_is_always_called_a_baseline() -> None:
    assert models_label(("offline",)) == "offline (baseline)"
    assert "baseline" in models_label(("offline", "openai:gpt-4o-mini"))


SPEND = Spend(12_400, 0.042, unknown=True)


def test_the_status_line_fits_and_keeps_the_counts() -> None:
    counts = Counts({Status.PASSED: 12, Status.WARNED: 1, Status.FAILED: 3, Status.ERROR: 1}, running=2, waiting=4)
    progress = Progress(17, 23, 83.0, True, running=2, left_s=29.0)
    wide = plain(status_line("suites", "offline (baseline)", 23, counts, SPEND, progress, 150))
    assert wide.startswith(" suites  offline (baseline) ")
    assert "12 ✓  1 !  3 ✗  1 ▲ error  2 … running  6 left, about 29 s  12k tok  $0.0420 + ?  1:23" in wide
    assert "━━━━━━━━──── 17/23" in wide
    for width in range(1, 150):
        assert cells(status_line("suites", "offline (baseline)", 23, counts, SPEND, progress, width)) <= width
    assert "12 ✓" in plain(status_line("suites", "offline (baseline)", 23, counts, SPEND, progress, 60))


def test_at_80_columns_a_long_batch_shows_its_bar_and_what_runs_is_done_failed_and_left() -> None:
    counts = Counts({Status.PASSED: 12, Status.WARNED: 1, Status.FAILED: 3, Status.ERROR: 1}, running=2, waiting=4)
    line = plain(status_line("smart_home", "m", 23, counts, SPEND, Progress(17, 23, 83.0, True, running=2), 80))
    assert "━━━━── 17/23  12 ✓  1 !  3 ✗  1 ▲ error  2 … running  6 left  1:23" in line


def test_what_starts_up_is_named_while_runs_wait_for_it() -> None:
    book = RunBook(lambda: 0.0)
    book.apply(BatchStarted("batch-1", ()))
    book.apply(StartUp(1, "server weather", downloads=True))
    book.apply(StartUp(2, "model m"))

    def shown() -> tuple[str, str]:
        progress = book.progress()
        line = status_line("smart_home", "m", 23, Counts(waiting=4), Spend(), progress, 80)
        return plain(line), plain(progress_ends(progress)[0])

    assert all("downloading server weather … 0 s and 1 other" in text for text in shown())
    book.apply(StartUp(1, "server weather"))
    assert all("starting server weather … 0 s and 1 other" in text for text in shown())
    book.apply(StartUp(2, "model m", 700.0))
    assert all("starting server weather … 0 s  " in text for text in shown())
    book.apply(StartUp(1, "server weather", 900.0))
    assert not any("starting" in text for text in shown())


def test_nothing_is_guessed_of_the_time_that_is_left_before_there_is_something_to_go_by() -> None:
    assert "about" not in plain(progress_ends(Progress(0, 23, 83.0, True, running=2))[0])
    assert "6 left, about 2 min" in plain(progress_ends(Progress(17, 23, 83.0, True, left_s=115.0))[0])


def test_the_end_of_a_title_says_how_far_the_runs_are_in_ever_fewer_words() -> None:
    progress = Progress(17, 23, 83.0, True, 2, 29.0, {Status.PASSED: 13, Status.FAILED: 3, Status.ERROR: 1})
    longest, *shorter = map(plain, progress_ends(progress))
    assert longest == "━━━━━━━━──── 17/23  13 ✓  3 ✗  1 ▲  2 … running  6 left, about 29 s  1:23  "
    assert [len(line) for line in shorter] == sorted((len(line) for line in shorter), reverse=True)
    assert progress_ends(Progress(23, 23, 83.0, False)) == ((), ())


def test_it_says_how_many_of_those_that_run_wait_where_there_is_room() -> None:
    progress = Progress(1, 9, 83.0, True, running=6, waiting=4)
    longest, *_, shorter, _, _, _ = map(plain, progress_ends(progress))
    assert "6 … running, 4 of them waiting  8 left" in longest
    assert "6 …  8 left" in shorter


def test_a_short_batch_shows_no_bar() -> None:
    line = plain(status_line("suites", "m", 4, Counts(running=1), SPEND, Progress(0, 1, 0.4, True), 120))
    assert "─" not in line


def test_a_price_that_is_not_known_is_never_nothing() -> None:
    counts, progress = Counts({Status.PASSED: 1}), Progress(1, 1, 0.4, False)
    line = plain(status_line("suites", "m", 4, counts, Spend(40, 0.0, unknown=True), progress, 120))
    assert "cost unknown" in line
    assert "$" not in line
    assert "cost" not in plain(status_line("suites", "m", 4, counts, Spend(40), progress, 120))


@pytest.mark.parametrize(("width", "kept"), [(120, 4), (80, 2), (60, 2)])
def test_a_narrow_status_line_loses_cost_and_tokens_before_time_and_counts(width: int, kept: int) -> None:
    counts = Counts({Status.PASSED: 12, Status.WARNED: 1, Status.FAILED: 3}, running=6)
    progress = Progress(17, 23, 83.0, True)
    line = plain(status_line("smart_home", "offline (baseline)", 23, counts, SPEND, progress, width))
    assert [part in line for part in ("12 ✓", "1:23", "12k tok", "$0.0420")] == [True] * kept + [False] * (4 - kept)


def test_long_models_are_cut_in_the_middle_and_only_where_there_is_no_room() -> None:
    models = "lab-of-the-second-floor/qwen3-coder-30b-a3b-instruct"
    for width in (60, 80, 120):
        line = status_line("suites", models, 23, Counts(), Spend(), Progress(0, 0, 0.0, False), width)
        assert cells(line) <= width and "23 cases" in plain(line)
        assert plain(line)[9:].startswith(models if width > 72 else "lab-of-the-second"), line
        assert "instruct" in plain(line), "what differs is at the end"
