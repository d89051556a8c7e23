"""Watching, searching and accepting runs on screen, and the ways to run more than one case."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tui.apps import MOVIE_NIGHT, SMART_HOME, Opened, assert_golden, conversation, opened, suites_in
from workbench.show.spans import Line, Span, cells, plain
from workbench.trajectory.events import Event, JsonValue
from workbench.trajectory.fold import fold
from workbench.tui.trajectory.pane import tabs_line

RIGHT: list[tuple[str, dict[str, JsonValue]]] = [
    ("set_lights", {"room": "living room", "brightness": 9}),
    ("set_tv", {"power": "on"}),
]


def go_to(app: Opened, text: str) -> None:
    """Move the cursor of the run pane to the line with a text."""
    pane = app.app.main.run_pane.run_list
    pane.move_cursor(next(index for index in range(pane.line_count()) if text in plain(pane.line_at(index))))


async def test_searching_counts_goes_on_and_unfolds(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        (run,) = await app.run("r")
        rows: list[JsonValue] = [{"name": f"lamp {number}"} for number in range(60)]
        app.session.finish(run, conversation(run, [("set_lights", {"rows": rows})], "Lamp 7 is off."))
        await app.settle()
        await app.press("3", "slash", *"lamp 7")
        assert "1 of 2" in app.screen
        assert '"name": "lamp 7"' in app.screen
        await app.press("enter")
        assert "2 of 2" in app.screen
        assert "Lamp 7 is off." in app.screen
        await app.press("ctrl+g")
        assert "1 of 2" in app.screen
        await app.press("shift+enter")
        assert "2 of 2" in app.screen
        assert_golden(app.screen, "search-80x24")
        await app.press("x", "y", "z")
        assert "not found" in app.screen
        await app.press("escape")
        assert "not found" not in app.screen
        assert app.app.main.focused is app.app.main.run_pane.run_list


async def test_what_is_being_read_stays_where_it_is_when_the_grade_puts_a_call_in_above(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 12)) as app:
        (run,) = await app.run("r")
        calls: list[tuple[str, dict[str, JsonValue]]] = [("set_tv", {"power": "on"})]
        calls += [("other", {})] * 20
        happenings = conversation(run, calls, "Done.")
        app.session.say(run, *happenings[:-1])
        await app.settle()
        await app.press("3", "pageup")
        pane = app.app.main.run_pane.run_list
        read = [plain(pane.line_at(pane.top + row)) for row in range(3)]
        top = pane.top
        events = [Event(run.run_id, number, float(number), what) for number, what in enumerate(happenings)]
        app.session.say(run, happenings[-1], first=len(happenings) - 1)
        app.session.grade(run, fold(events))
        await app.settle()
        assert pane.top > top
        assert [plain(pane.line_at(pane.top + row)) for row in range(3)] == read


async def test_tabs_are_clicked(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), models=("offline", "other")) as app:
        first, second = await app.run("r")
        app.session.finish(first, conversation(first, MOVIE_NIGHT, "From the first."))
        app.session.finish(second, conversation(second, RIGHT, "From the second."))
        await app.settle()
        await app.pilot.click("#choice", offset=(32, 0))
        await app.settle()
        assert "From the second." in app.screen


def test_tabs_that_do_not_fit_are_counted_on_either_side() -> None:
    tabs: list[Line] = [(Span(f" model {number} "),) for number in range(10)]
    for width in range(30, 100):
        for chosen in range(10):
            line, ends = tabs_line((Span(" "),), tabs, chosen, width)
            assert cells(line) <= width
            assert f" model {chosen} " in plain(line)
            assert [index for _, index in ends] == sorted({index for _, index in ends})
    line, ends = tabs_line((Span(" all "),), tabs, 5, 41)
    assert plain(line) == " < 5 more   model 5  model 6   3 more >"
    assert ends[0] == (11, 4)
    named: list[Line] = [(Span(f" {name} "), Span(" ✓ 1.00  ")) for name in ("offline (baseline)", "offline:careless")]
    line, ends = tabs_line((Span(" "),), named, 0, 51)
    assert plain(line).count("✓ 1.00") == len(ends) == 2


async def test_accepting_a_run_makes_it_pass_and_can_be_undone(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        (run,) = await app.run("r")
        app.session.finish(run, conversation(run, MOVIE_NIGHT, "Done."))
        await app.settle()
        await app.press("a")
        assert_golden(app.screen, "accept-80x24")
        await app.press("enter")
        assert "accepted 1 call, 1 expectation dropped: Ctrl+Z brings it back;\n the run now passes" in app.screen
        (suite,) = app.app.main.open_suites.suites
        assert suite.dirty
        assert "brightness = 60" in suite.document.text
        assert "set_tv" not in suite.document.block(0)
        assert "# A film, so the lights go down." in suite.document.text
        await app.press("ctrl+z")
        assert suite.document.text == SMART_HOME
        assert not suite.dirty


async def test_a_finished_run_is_accepted_with_a_chosen_check_or_call_by_call(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (suite,) = app.app.main.open_suites.suites
        await app.press("a")
        assert "This case has not been run; r runs it" in app.screen
        (run,) = await app.run("r")
        await app.press("a")
        assert "This run is not finished yet" in app.screen
        app.session.finish(run, conversation(run, MOVIE_NIGHT, "Done."))
        await app.settle()
        await app.press("a", "escape")
        assert not suite.dirty
        await app.press("a", "down", "right", "right", "enter")
        assert "brightness = { range = [54, 66] }" in suite.document.text
        await app.press("ctrl+z")
        assert suite.document.text == SMART_HOME
        await app.press("3")
        go_to(app, "never called")
        await app.press("a", "enter")
        assert "set_tv is no longer expected" in app.screen
        assert "set_tv" not in suite.document.block(0)
        await app.press("ctrl+z")
        go_to(app, "case mock")
        await app.press("a", "enter")
        assert "the call of set_lights accepted; the run is still failed" in app.screen
        assert "brightness = 60" in suite.document.block(0)
        assert "set_tv" in suite.document.block(0)


async def test_everything_that_the_filter_shows_is_run(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, one=SMART_HOME, two=SMART_HOME)
    async with opened(suites) as app:
        await app.press("slash", *"lights", "enter")
        assert [run.case.name for run in await app.run("E")] == ["Lights off", "Lights off"]


@pytest.mark.slow
async def test_only_what_failed_is_run_again(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("F")
        assert "No case has failed" in app.screen
        first, second, third = await app.run("R")
        app.session.finish(first, conversation(first, RIGHT, "Done."))
        app.session.finish(second, conversation(second, MOVIE_NIGHT, "Done."))
        app.session.finish(third, conversation(third, [], "Good night."))
        app.session.end_batch()
        await app.settle()
        assert [run.case.name for run in await app.run("F")] == ["Lights off"]


async def test_a_case_is_run_as_often_as_one_says(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("T", "0", "enter")
        assert "A number from 1 to 1,000" in app.screen
        runs = await app.run("backspace", "4", "enter")
        assert [run.repeat for run in runs] == [0, 1, 2, 3]


async def test_editing_does_not_change_what_runs_already(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (first,) = await app.run("r")
        app.session.finish(first, conversation(first, MOVIE_NIGHT, "Done."))
        await app.settle()
        await app.press("a", "enter")
        (second,) = await app.run("r")
        await app.press("ctrl+z")
        assert [json.loads(run.case.model_dump_json())["ordered"][0]["args"]["brightness"] for run in (first, second)][
            1
        ]["equals"] == 60


@pytest.mark.slow
async def test_a_prompt_for_a_coding_agent_is_copied_from_a_failed_run_alone(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), models=("offline", "other")) as app:
        failed, passed = await app.run("r")
        app.session.finish(failed, conversation(failed, MOVIE_NIGHT, "Done."))
        app.session.finish(passed, conversation(passed, RIGHT, "Done."))
        await app.settle()
        await app.press("colon", *"coding agent", "enter")
        copied = app.app.clipboard
        assert copied.startswith("# A failing tool call to fix")
        assert "movie-night" in copied
        await app.press("3", "right", "colon", *"coding agent")
        assert "this run did not fail" in app.screen
