"""The comparison: cells that fill in during runs, links to runs, tests, totals, and keys that run cells."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from tests.tui.apps import MOVIE_NIGHT, NEEDY, SMART_HOME, Call, Opened, assert_golden, conversation, opened, suites_in
from tests.tui.run_book.test_book import done
from workbench.engine.plan import PlannedRun
from workbench.grading.status import Status
from workbench.trajectory.events import ToolDefinition
from workbench.tui.comparison.paired import PairedScreen
from workbench.tui.comparison.screen import CompareScreen
from workbench.tui.run_pair.screen import PairScreen
from workbench.tui.runs.dialogs import ExecutionScreen, TrustScreen
from workbench.tui.trajectory.screen import TrajectoryScreen

GARDEN = SMART_HOME.replace("Smart home", "Garden", 1).replace("Movie night", "Watering")
RIGHT: dict[str, list[Call]] = {
    "Movie night": [("set_lights", {"room": "living room", "brightness": 20}), ("set_tv", {"power": "on"})],
    "Watering": [("set_lights", {"room": "living room", "brightness": 20}), ("set_tv", {"power": "on"})],
    "Lights off": [("set_lights", {"brightness": 0})],
    "Nothing to do": [],
}


def finish(app: Opened, planned: PlannedRun, *, right: bool = True) -> None:
    calls = RIGHT[planned.case.name] if right else list(MOVIE_NIGHT)
    app.session.finish(planned, conversation(planned, calls, "Done."))


def row(app: Opened, name: str) -> list[str]:
    """Return the columns of a case's row."""
    line = next(line for line in app.screen.splitlines()[2:] if name in line)
    return line.split(name, 1)[1].split()


async def comparing(app: Opened, *keys: str) -> CompareScreen:
    await app.press(*keys, "v")
    screen = app.app.screen
    assert isinstance(screen, CompareScreen)
    return screen


async def added_up(app: Opened, screen: CompareScreen) -> None:
    """Wait until the totals are those of all that was delivered."""
    await app.settle()
    await app.until(lambda: not screen.totals.is_behind)


async def compared(app: Opened) -> CompareScreen:
    """All cases run on both models, of which the second gets the first case wrong."""
    screen = await comparing(app)
    for planned in await app.run("R"):
        finish(app, planned, right=planned.model == "one" or planned.case.name != "Movie night")
    app.session.end_batch()
    await added_up(app, screen)
    return screen


@pytest.mark.parametrize("size", first_of([(80, 24), (160, 48)], 1), ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_comparison_looks_like_this(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two"), size=size) as app:
        await compared(app)
        screen = re.sub(r"(?<=cases a minute  ).*", "as fast as it went", app.screen)
        assert_golden(screen, f"compare-{size[0]}x{size[1]}")


@pytest.mark.slow
async def test_cells_fill_in_while_runs_go_on(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        screen = await comparing(app)
        assert row(app, "Movie night") == ["·", "·"]
        movie, *_ = await app.run("R")
        assert row(app, "Movie night") == ["…", "waiting"] * 2
        app.session.say(movie, *conversation(movie, MOVIE_NIGHT, "Done.")[:2])
        await app.settle()
        assert row(app, "Movie night") == ["…", "running", "…", "waiting"]
        finish(app, movie)
        await added_up(app, screen)
        assert row(app, "Movie night") == ["✓", "1.00", "713", "ms", "…", "waiting"]
        assert "100.0%" in app.screen


async def test_cells_lead_to_their_run_to_two_runs_side_by_side_and_to_another_run(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        screen = await compared(app)
        await app.press("down", "right", "enter")
        shown = app.app.screen
        assert isinstance(shown, TrajectoryScreen)
        assert (shown.record.case_name, shown.record.model) == ("Lights off", "two")
        await app.press("escape")
        assert app.app.screen is screen
        assert screen.state.key is not None
        assert screen.state.key[1:] == ("lights-off", "two")
        await app.press("up", "left", "space")
        assert "◆✓ 1.00" in app.screen
        await app.press("right", "space")
        await app.until(lambda: isinstance(app.app.screen, PairScreen))
        pair = app.app.screen
        assert isinstance(pair, PairScreen)
        assert [run.model for run in pair.state.runs] == ["one", "two"]
        await app.press("escape")
        assert app.app.screen == screen
        assert screen.state.marked is None
        (again,) = await app.run("r")
        assert (again.case.name, again.model) == ("Movie night", "two")
        assert row(app, "Movie night") == ["✓", "1.00", "713", "ms", "…", "waiting"]
        await app.press("r")
        assert "This cell is running; x stops it" in app.screen
        await app.press("x")
        assert app.session.stopped == [again.run_id]
        finish(app, again)
        await app.settle()
        assert row(app, "Movie night") == ["✓", "1.00", "713", "ms"] * 2


@pytest.mark.slow
async def test_all_that_has_not_run_is_run_first_and_then_all_again(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        await comparing(app)
        (first,) = await app.run("r")
        finish(app, first)
        app.session.end_batch()
        await app.settle()
        rest = await app.run("R")
        assert len(rest) == 5
        assert "Running the 5 cells without a finished run" in app.screen
        for run in rest:
            finish(app, run)
        app.session.end_batch()
        await app.settle()
        await app.press("R")
        assert "All 6 runs are finished. Press R again to rerun them all (about" in app.screen
        await app.press("right", "R")
        assert "Press R again" in app.screen
        assert len(await app.run("R")) == 6


@pytest.mark.slow
async def test_what_was_stopped_is_run_again_as_often_as_it_was_to_be(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one",)) as app:
        await comparing(app)
        await app.press("T")
        for run in await app.run("2", "enter"):
            if run.case.name == "Movie night":
                finish(app, run)
            else:
                app.session.listener(done(run, Status.STOPPED))
        app.session.end_batch()
        await app.settle()
        again = await app.run("R")
        assert [(run.case.name, run.repeat) for run in again] == [
            (name, repeat) for name in ("Lights off", "Nothing to do") for repeat in range(2)
        ]


async def test_what_is_filtered_away_is_not_run(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one",)) as app:
        await comparing(app)
        await app.press("slash", *"evening", "enter")
        assert "1 of 3 cases" in app.screen
        assert [run.case.name for run in await app.run("R")] == ["Movie night"]
        await app.press("escape")
        assert "Lights off" in app.screen


async def test_repeats_are_counted_in_the_cell_and_enter_asks_which_run(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one",)) as app:
        await comparing(app)
        await app.press("T")
        runs = await app.run("3", "enter")
        assert len(runs) == 9
        for run in runs:
            finish(app, run, right=run.repeat != 1 or run.case.name != "Movie night")
        app.session.end_batch()
        await app.settle()
        assert "✗ 2/3  0.67±0.47 713 ms" in app.screen
        await app.press("enter", "enter")
        await app.until(lambda: isinstance(app.app.screen, TrajectoryScreen))
        assert isinstance(app.app.screen, TrajectoryScreen)
        assert app.app.screen.record.repeat == 1


async def test_a_model_that_is_chosen_becomes_a_column(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one",)) as app:
        screen = await comparing(app)
        await app.press("m", "space", "enter")
        assert set(screen.state.models) == {"one", "offline"}
        assert "3 cases · 2 models" in app.screen
        await app.press("m", "space", "enter")
        assert screen.state.models == ("one",)
        assert "3 cases · 1 model" in app.screen


async def test_the_paired_test_says_whether_a_difference_is_real_and_all_is_copied_as_markdown(
    tmp_path: Path,
) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        screen = await compared(app)
        await app.press("p")
        assert "This column is the base" in app.screen
        await app.press("right", "p")
        await app.until(lambda: isinstance(app.app.screen, PairedScreen))
        assert "better on 0, worse on 1 of " in app.screen
        listed = [line for line in app.screen.splitlines() if "→" in line]
        assert "✓ 1.00 → ✗ 0.00  Movie night" in listed[0]
        await app.press("enter")
        await app.until(lambda: app.app.screen.query("#pair-list").first().has_focus)
        await app.press("escape", "escape")
        assert app.app.screen is screen
        await app.press("slash", *"two:failed", "enter", "y")
        await app.until(lambda: "Copied the comparison" in app.screen)
        copied = app.app.clipboard
        assert "1 of 3 cases by the filter two:failed; totals and tests are of all" in copied
        assert [line for line in copied.splitlines() if line.startswith("| graded cases")] == [
            "| graded cases | 3 of 3 | 3 of 3 |"
        ]
        assert "Lights off" not in copied


@pytest.mark.slow
async def test_only_differences_sorting_and_the_base_change_what_is_shown(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        screen = await compared(app)
        await app.press("full_stop")
        assert "Lights off" not in app.screen
        assert "only differences" in app.screen
        await app.press("full_stop", "right", "o", "o")
        assert [case.name for case in screen.state.cases_shown][-1] == "Movie night"
        assert "↑ two" in app.screen
        await app.press("left", "asterisk")
        assert "one = base" in app.screen
        assert "-✗ 0.00" in app.screen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("movie", "1 of 3 cases · 2 models"),
        ("movie evening night", "1 of 3 cases"),
        ("movie evening night smart home", "1 of 3"),
    ],
)
async def test_how_many_cases_are_shown_is_said_as_long_as_there_is_room(tmp_path: Path, words: str, said: str) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two"), size=(80, 24)) as app:
        await compared(app)
        await app.press("full_stop", "slash", *words, "enter")
        title = app.screen.splitlines()[0]
        assert title.split("only differences")[1].strip() == said


async def test_several_suites_stand_under_their_names(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, garden=GARDEN, home=SMART_HOME), models=("one",)) as app:
        await comparing(app, "home")
        shown = app.screen
        assert shown.index("Garden") < shown.index("Watering") < shown.index("Smart home") < shown.index("Movie night")
        await app.press("o")
        assert "Garden › Watering" in app.screen


@pytest.mark.slow
async def test_a_click_goes_to_a_cell_another_opens_it_and_one_on_a_head_sorts(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        screen = await compared(app)
        x = screen.table.columns.start(1)
        await app.pilot.click("#compare-table", offset=(x, 1))
        await app.settle()
        assert screen.state.key is not None
        assert screen.state.key[1:] == ("lights-off", "two")
        await app.pilot.click("#compare-table", offset=(x, 1))
        await app.until(lambda: isinstance(app.app.screen, TrajectoryScreen))
        await app.press("escape")
        await app.pilot.click("#compare-head", offset=(x, 0))
        await app.settle()
        assert screen.state.sorting is not None
        assert screen.state.cases_shown[0].name == "Movie night"


async def test_narrow_columns_scroll_under_the_first_one(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two", "three"), size=(40, 10)) as app:
        await comparing(app)
        assert_golden(app.screen, "compare-40x10")
        await app.press("right", "right")
        assert "three" in app.screen
        assert " one" not in app.screen
        assert "Movie night" in app.screen
        await app.press("question_mark", "escape", "z", "tab", "full_stop", "escape")
        assert app.app.screen is app.app.main


async def test_what_a_run_asks_is_asked_here(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one",)) as app:
        screen = await comparing(app)
        (run,) = await app.run("r")
        app.session.ask(run, ToolDefinition("send", "Sends.", server="office"))
        await app.until(lambda: isinstance(app.app.screen, ExecutionScreen))
        await app.until(lambda: "Esc no" in app.screen)
        await app.press("1")
        assert app.session.allowed == [(run.run_id, "c0", "call")]
        assert app.app.screen is screen
        assert "send is executed this once in Movie night" in app.screen


async def test_a_suite_is_trusted_before_its_cells_are_run(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, needy=NEEDY), models=("one",)) as app:
        screen = await comparing(app)
        await app.press("r")
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        await app.press("escape")
        await app.until(lambda: app.app.screen is screen)
        await app.until(lambda: "needy.toml is not trusted" in app.screen)


@pytest.mark.slow
async def test_the_place_the_order_and_the_filter_are_those_of_last_time(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        screen = await compared(app)
        await app.press("right", "down", "full_stop", "escape", "v")
        again = app.app.screen
        assert isinstance(again, CompareScreen)
        assert again is not screen
        assert again.state.only_differences
        assert again.state.column == 1


async def test_what_is_out_of_sight_draws_nothing_and_a_key_draws_two_rows(tmp_path: Path) -> None:
    cases = "".join(f'\n[[cases]]\nname = "Case {at}"\nuser = "x"\nexpect_no_calls = true\n' for at in range(100))
    suite = f'format = 1\nname = "Many"\n{cases}'
    suites = suites_in(tmp_path, many=suite)
    async with opened(suites, models=("one", "two"), size=(80, 24)) as app:
        screen = await comparing(app)
        runs = await app.run("R")
        for run in runs[-4:]:  # totals that have not been there yet may widen the columns
            app.session.finish(run, conversation(run, [], "Done."))
        await added_up(app, screen)
        before = screen.table.rows_drawn
        app.session.finish(runs[-5], conversation(runs[-5], [], "Done."))
        await app.until(lambda: "2 of 100" in app.screen and "3 of 100" in app.screen)
        assert screen.state.at((str(runs[-5].file.path), "case-97", "two")).stage == "done"
        assert screen.table.rows_drawn == before
        await app.press("down")
        assert screen.table.rows_drawn == before + 2
