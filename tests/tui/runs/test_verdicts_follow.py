"""Verdicts on screens above the main one follow when runs are regraded meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.apps import MOVIE_NIGHT, SMART_HOME, Opened, conversation, opened, suites_in
from tests.tui.comparison.test_compare import compared as both_compared
from tests.tui.comparison.test_compare import comparing, finish, row
from workbench.authoring.document import HEAD, Document
from workbench.grading.status import Status
from workbench.tui.comparison.screen import CompareScreen
from workbench.tui.grades.screen import GradesScreen
from workbench.tui.run_pair.screen import PairScreen
from workbench.tui.runs.regrader import RUNS_PER_CHECK
from workbench.tui.trajectory.screen import TrajectoryScreen

CASES = 2 * RUNS_PER_CHECK + 1
MANY = 'format = 1\nname = "Many"\n\n[[tools]]\nname = "go"\n' + "".join(
    f'\n[[cases]]\nname = "Case {number}"\nuser = "Go."\n[[cases.ordered]]\ntool = "go"\nargs = {{ how = "fast" }}\n'
    for number in range(CASES)
)
OFF = ('power = "on"', 'power = "off"')


async def change(app: Opened, old: str, new: str) -> None:
    """Change the suite as if its file had been read again."""
    (suite,) = app.app.main.open_suites.suites
    assert old in suite.document.text
    app.app.main.open_suites.change(suite, Document.of(suite.document.text.replace(old, new)), "Changed", index=HEAD)
    await app.settle()


async def many_ran(app: Opened) -> None:
    for at, run in enumerate(await app.run("home", "R")):
        app.session.finish(run, conversation(run, [("go", {"how": "fast" if at else "slow"})], "Done."))
    app.session.end_batch()
    await app.settle()


@pytest.mark.slow
async def test_cells_and_totals_follow_when_many_runs_are_graded_anew_beside(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, many=MANY), models=("one",)) as app:
        await many_ran(app)
        screen = await comparing(app)
        assert row(app, "Case 1 ")[0] == "✓"
        await change(app, 'how = "fast"', 'how = "slow"')
        await app.until(lambda: not screen.totals.is_behind)
        assert app.app.main.book.counts().ended.get(Status.FAILED, 0) == CASES - 1
        assert [row(app, f"Case {number} ")[0] for number in (0, 1, 2)] == ["✓", "✗", "✗"]
        assert f"{100 / CASES:.1f}%" in app.screen
        await app.press("escape")
        assert f"{CASES - 1} ✗" in app.screen


@pytest.mark.slow
async def test_rows_that_are_sorted_are_sorted_anew_once_all_is_graded(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, many=MANY), models=("one",)) as app:
        await many_ran(app)
        screen = await comparing(app)
        await app.press("o")
        assert screen.state.cases_shown[0].name == "Case 0"
        await change(app, 'how = "fast"', 'how = "slow"')
        assert screen.state.cases_shown[-1].name == "Case 0"


@pytest.mark.slow
async def test_what_is_graded_at_once_is_seen_at_once_in_cells_runs_and_pairs(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        await both_compared(app)
        assert row(app, "Movie night")[:2] == ["✓", "1.00"]
        await change(app, *OFF)
        assert row(app, "Movie night")[:2] == ["✗", "0.75"]
        await app.press("enter")
        assert isinstance(app.app.screen, TrajectoryScreen)
        await change(app, *reversed(OFF))
        assert "✓ passed" in app.screen
        await app.press("escape", "space", "right", "space")
        assert isinstance(app.app.screen, PairScreen)
        assert "✓" in app.screen
        await change(app, *OFF)
        assert "✓" not in app.screen


async def test_a_run_below_another_screen_follows_once_it_is_seen_again(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one",)) as app:
        await comparing(app)
        (run,) = await app.run("r")
        finish(app, run)
        app.session.end_batch()
        await app.settle()
        await app.press("enter", "equals_sign")
        assert isinstance(app.app.screen, GradesScreen)
        await change(app, *OFF)
        await app.press("escape")
        assert isinstance(app.app.screen, TrajectoryScreen)
        assert "✗ failed" in app.screen


@pytest.mark.slow
async def test_two_runs_below_another_screen_are_compared_again_once_they_are_seen_again(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        await comparing(app)
        first, other, *_ = await app.run("R")
        finish(app, first, right=False)
        app.session.say(other, *conversation(other, MOVIE_NIGHT, "Done.")[:2])
        await app.settle()
        await app.press("space", "right", "space")
        pair = app.app.screen
        assert isinstance(pair, PairScreen)
        await app.press("1")
        app.session.say(other, *conversation(other, MOVIE_NIGHT, "Done.")[2:], first=2)
        finish(app, other, right=False)
        await app.settle()
        assert pair.state.differences
        await app.press("escape")
        assert app.app.screen is pair
        assert "no difference" in app.screen


@pytest.mark.slow
async def test_a_comparison_below_another_screen_is_right_when_it_is_seen_again(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        screen = await both_compared(app)
        await app.press("enter")
        await change(app, *OFF)
        await app.press("escape")
        assert isinstance(app.app.screen, CompareScreen)
        assert row(app, "Movie night")[:2] == ["✗", "0.75"]
        await app.until(lambda: not screen.totals.is_behind)
        assert "66.7%" in app.screen
