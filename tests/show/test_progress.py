"""The progress line of a batch: its facts, what it omits when narrow, and its estimates."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.tables import each_row
from workbench.grading.status import Status
from workbench.numerals import estimate_time_text
from workbench.show.spans import plain
from workbench.show.views.progress import Progress, progress_line


def progress_of(model: str, planned: int, ended: Sequence[Status], running: int = 0, cost: float = 0.0) -> Progress:
    """A model whose runs began at 0 s."""
    progress = Progress()
    progress.plan([model] * planned)
    for number in range(len(ended) + running):
        progress.add_run(f"{model}-{number}", model, 0.0)
    for number, status in enumerate(ended):
        progress.count_run(f"{model}-{number}", model, status, cost)
    return progress


def test_the_line_says_what_is_over_how_what_is_under_way_and_what_is_left() -> None:
    progress = progress_of("m", 12, [Status.PASSED, Status.PASSED, Status.FAILED, Status.ERROR], running=2, cost=0.25)
    line = plain(progress_line(progress, 8.0, width=200))
    assert line == "████░░░░░░░░ · 4/12 · ✓ 2 ✗ 1 ▲ 1 · 2 running · 8 left · about 16 s · $1.00"


def test_it_says_how_many_of_those_that_run_wait() -> None:
    progress = progress_of("m", 12, [Status.PASSED], running=6)
    for number in range(1, 6):
        progress.set_waiting(f"m-{number}", waits=True)
    progress.set_waiting("m-1", waits=False)
    progress.set_waiting("m-11", waits=True)  # it has not begun
    assert " · 6 running, 4 of them waiting · " in plain(progress_line(progress, 0.5, width=200))
    for number in range(2, 6):
        progress.count_run(f"m-{number}", "m", Status.ERROR, 0.0)
    assert " · 2 running · " in plain(progress_line(progress, 0.5, width=200))


def test_without_signs_it_says_the_same_in_words() -> None:
    progress = progress_of("m", 4, [Status.PASSED, Status.ERROR])
    line = plain(progress_line(progress, 0.0, width=200, only_ascii=True))
    assert line == "######...... | 2/4 | 1 passed 1 in error | 2 left"
    assert line.isascii()


def test_where_room_is_short_what_matters_less_goes_first() -> None:
    progress = progress_of("m", 12, [Status.PASSED, Status.PASSED, Status.FAILED, Status.ERROR], running=2, cost=0.25)
    lines = [plain(progress_line(progress, 8.0, width=width)) for width in (68, 62, 60, 45, 30, 12, 3)]
    assert lines == [
        "████░░░░░░░░ · 4/12 · ✓ 2 ✗ 1 ▲ 1 · 2 running · 8 left · about 16 s",
        "██░░░░ · 4/12 · ✓ 2 ✗ 1 ▲ 1 · 2 running · 8 left · about 16 s",
        "4/12 · ✓ 2 ✗ 1 ▲ 1 · 2 running · 8 left · about 16 s",
        "4/12 · ✓ 2 ✗ 1 ▲ 1 · 2 running · about 16 s",
        "4/12 · ✓ 2 ✗ 1 ▲ 1 · 2 running",
        "4/12",
        "4/…",
    ]


def test_a_cost_that_is_not_all_says_so() -> None:
    progress = progress_of("m", 12, [Status.PASSED], cost=0.25)
    assert plain(progress_line(progress, 8.0, width=120)).endswith(" · $0.2500")
    progress.count_run("m-1", "m", Status.PASSED, None)
    assert plain(progress_line(progress, 8.0, width=120)).endswith(" · $0.2500 + ?")


@given(width=st.integers(1, 200), name=st.text(max_size=30))
def test_the_line_is_never_wider_than_the_terminal(width: int, name: str) -> None:
    progress = progress_of(name, 2_000, [Status.PASSED] * 7, running=3)
    progress.add_ended("other", Status.FAILED, 0.01)
    assert cell_len(plain(progress_line(progress, 9.0, width=width))) <= width


def test_several_models_are_told_apart_where_there_is_room() -> None:
    progress = progress_of("fast", 4, [Status.PASSED] * 3)
    progress.plan(["slow"] * 4)
    assert plain(progress_line(progress, 9.0, width=120)).endswith(" · fast 3/4 · slow 0/4")


def test_nothing_is_guessed_before_every_model_has_shown_how_fast_it_is() -> None:
    progress = progress_of("fast", 10, [Status.PASSED] * 5)
    assert progress.left_s(5.0) == 5.0
    progress.plan(["slow"] * 10)
    assert progress.left_s(5.0) is None


def test_the_slowest_model_decides_how_long_it_takes() -> None:
    progress = progress_of("fast", 10, [Status.PASSED] * 9)
    progress.plan(["slow"] * 10)
    for number in range(3):
        progress.add_run(f"slow-{number}", "slow", 0.0)
        progress.count_run(f"slow-{number}", "slow", Status.PASSED, None)
    assert progress.left_s(30.0) == 70.0


def test_what_was_over_before_counts_as_done_and_says_nothing_of_the_speed() -> None:
    progress = progress_of("m", 3, [])
    for _ in range(7):
        progress.add_ended("m", Status.PASSED, None)
    assert (progress.done, progress.planned, progress.left_s(60.0)) == (7, 10, None)


@each_row(
    ("seconds", "text"),
    [
        (0.2, "1 s"),
        (8.4, "8 s"),
        (59.4, "59 s"),
        (90, "2 min"),
        (3_600, "1 h"),
        (7_800, "2 h 10 min"),
        (90_000, "25 h"),
    ],
)
def test_a_guess_has_few_digits(seconds: float, text: str) -> None:
    assert estimate_time_text(seconds) == text
