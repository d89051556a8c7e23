"""The screen of two runs side by side."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from tests.tui.apps import Opened, assert_golden, opened, suites_in
from tests.tui.held import Held, held, until
from tests.tui.run_pair.pairs import SUITE, flight
from workbench.tui.run_pair import screen as pair
from workbench.tui.run_pair.screen import PairScreen
from workbench.tui.trajectory.screen import TrajectoryScreen

__all__ = ["held"]

SIZES = [(80, 24), (160, 48), (40, 10)]


@asynccontextmanager
async def two_runs(folder: Path, size: tuple[int, int] = (100, 30)) -> AsyncIterator[Opened]:
    """The app with two runs of one case side by side."""
    async with opened(suites_in(folder, travel=SUITE), size=size, models=["small", "big"]) as app:
        for run, dear in zip(await app.run("down", "r"), (False, True), strict=True):
            app.session.finish(run, list(flight(dear=dear)))
        app.session.end_batch()
        await app.settle()
        app.app.main.action_do("run.pair")
        await app.settle()
        yield app


def cursor_line(app: Opened) -> str:
    screen = app.app.screen
    assert isinstance(screen, PairScreen)
    rows = screen._list
    return "".join(span.text for span in rows.line_at(rows.cursor))


@pytest.mark.parametrize("size", first_of(SIZES, 1), ids=lambda size: f"{size[0]}x{size[1]}")
async def test_two_runs_side_by_side_look_like_this(tmp_path: Path, size: tuple[int, int]) -> None:
    async with two_runs(tmp_path, size) as app:
        assert_golden(app.screen, f"pair_{size[0]}x{size[1]}")


async def test_differences_values_and_either_run_are_reached_by_keys(tmp_path: Path) -> None:
    async with two_runs(tmp_path) as app:
        assert "→ book" in cursor_line(app)
        await app.press("right_square_bracket")
        assert "price" in cursor_line(app)
        assert "2 of 4 differences" in app.screen
        await app.press(*["left_square_bracket"] * 2)
        assert "4 of 4 differences" in app.screen
        assert app.screen.count("12A") < 4
        await app.press("enter")
        assert app.screen.count("12A") == 4, "Enter shows all of a value"
        await app.press("2")
        assert isinstance(app.app.screen, TrajectoryScreen)
        assert app.app.screen.record.model == "big"
        await app.press("escape")
        assert isinstance(app.app.screen, PairScreen)
        await app.press("escape")
        assert len(app.app.screen_stack) == 1


async def test_tab_and_a_narrow_terminal_put_one_above_the_other_and_two_clicks_unfold_a_line(tmp_path: Path) -> None:
    above = '≠1     class   "economy"'
    async with two_runs(tmp_path) as app:
        await app.pilot.resize_terminal(60, 24)
        await app.settle()
        assert above in app.screen
        await app.pilot.resize_terminal(100, 30)
        await app.settle()
        assert above not in app.screen
        await app.press("tab")
        assert above in app.screen
        assert "→ book" in cursor_line(app)
        await app.press("tab")
        assert above not in app.screen
        for _ in range(2):
            await app.pilot.click("#pair-list", offset=(5, 1))
        await app.settle()
        assert "▾ 3 rounds alike" in app.screen


@pytest.mark.slow
async def test_what_is_alike_is_unfolded_and_folded_from_within(tmp_path: Path) -> None:
    async with two_runs(tmp_path) as app:
        await app.press("home", "down", "right")
        assert "▾ 3 rounds alike" in app.screen
        await app.press("down", "down", "left")
        assert "▸ 3 rounds alike" in app.screen
        assert "3 rounds alike" in cursor_line(app)


async def test_a_run_that_ends_meanwhile_is_compared_again(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, travel=SUITE), models=["small", "big"]) as app:
        first, second = await app.run("down", "r")
        app.session.finish(first, list(flight(dear=False)))
        app.session.say(second, *list(flight(dear=False))[:4])
        await app.settle()
        app.app.main.action_do("run.pair")
        await app.settle()
        assert "is not over" in app.screen
        app.session.finish(second, list(flight(dear=False)))
        app.session.end_batch()
        await app.settle()
        assert "both runs say and do the same" in app.screen


async def test_a_run_that_ends_while_both_are_compared_is_compared_again(tmp_path: Path, held: Held) -> None:
    async with opened(suites_in(tmp_path, travel=SUITE), models=["small", "big"]) as app:
        first, second = await app.run("down", "r")
        app.session.finish(first, list(flight(dear=False)))
        app.session.say(second, *list(flight(dear=False))[:4])
        await app.settle()
        held.hold(pair, "PairState")
        app.app.main.action_do("run.pair")
        await held.begun(app)
        app.session.finish(second, list(flight(dear=False)))
        await until(app, lambda: app.app.main.selection.runs[1].stage == "done")
        held.discard_stream()
        await app.settle()
        assert isinstance(app.app.screen, PairScreen)
        assert "both runs say and do the same" in app.screen


async def test_a_search_marks_every_match_and_goes_from_one_to_the_next(tmp_path: Path) -> None:
    async with two_runs(tmp_path) as app:
        await app.press("home", "slash", *"CLASS")
        screen = app.app.screen
        assert isinstance(screen, PairScreen)

        def marked() -> list[tuple[str, str]]:
            spans = [span for line, _, _ in screen._list._requested_rows for span in line]
            return [(span.text, span.role) for span in spans if span.role in ("match", "badge")]

        assert marked()[0] == ("class", "badge")
        assert len(marked()) > 1
        assert set(marked()[1:]) == {("class", "match")}
        assert f"1 of {len(marked())}" in app.screen
        await app.press("down")
        assert [role for _, role in marked()][:2] == ["match", "badge"]
        await app.press("up", "up")
        assert marked()[-1] == ("class", "badge")
        await app.press(*"y")
        assert marked() == []
        assert "not found" in app.screen
        await app.press("backspace", "escape")
        assert marked() == []
