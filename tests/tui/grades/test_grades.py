"""The screen of grades, and the marks of graders that disagree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tui.apps import MOVIE_NIGHT, SMART_HOME, Call, Opened, assert_golden, conversation, opened, suites_in
from workbench.engine.events import RunDone
from workbench.grading.grade import RunResult
from workbench.grading.status import Status
from workbench.trajectory.trajectory import Trajectory
from workbench.tui.grades.screen import GradesScreen
from workbench.tui.kit.help import HelpScreen

TWICE: list[Call] = [("set_lights", {"brightness": 0})] * 2
"""The calls of a model that switched the lights off twice. Only some graders object."""
HOSTILE = "\x1b[31m[/nope]\u202e [bold]list[int]\r\n\0 漢字"


async def graded(app: Opened, *, down: int = 2, calls: list[Call] | None = None) -> GradesScreen:
    """Run a case and open its grades."""
    await app.press("1", "home", *["down"] * down)
    (run,) = await app.run("r")
    app.session.finish(run, conversation(run, MOVIE_NIGHT if calls is None else calls, "Done."))
    app.session.end_batch()
    await app.settle()
    await app.press("equals_sign")
    screen = app.app.screen
    assert isinstance(screen, GradesScreen)
    return screen


async def test_the_grades_of_a_run_are_seen_grader_by_grader(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(160, 48)) as app:
        screen = await graded(app)
        assert_golden(app.screen, "grades-160x48")
        assert "decides" in app.screen
        await app.press("down")
        assert "(1 + 1 + 0.5) ÷ 3 = 0.833 · adds 0.417 of 0.5" in app.screen
        assert "How Toolvaluator scores" not in app.screen
        await app.press("enter")
        assert "How Toolvaluator scores" in app.screen
        await app.press(*["right_curly_bracket"] * 2)
        assert "How Apple Evaluations scores" in app.screen
        await app.press("left_curly_bracket", "enter", "tab", "end")
        assert screen.column == "detail"
        assert "score = (exact + 0.5 × right name only − 0.25 × wrong)" in app.screen
        await app.press("question_mark")
        assert isinstance(app.app.screen, HelpScreen)
        assert "Here, in the grades" in app.screen
        await app.press("escape", "escape", "escape")
        assert app.app.screen_stack == [app.app.main]


async def test_at_80_cells_graders_and_calls_stand_side_by_side(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        await graded(app)
        await app.press("end")
        # The latency varies.
        assert_golden(re.sub(r"latency {5}<?[\d.]+ m?s", "latency     7 ms", app.screen), "grades-80x24")
        await app.pilot.click("#grades-list", offset=(3, 3))
        await app.settle()
        assert "decision  Toolvaluator" in app.screen


async def test_on_a_small_screen_one_column_is_seen_at_a_time(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(40, 10)) as app:
        await graded(app)
        await app.press("end")
        assert "dimensions" in app.screen
        assert "not called: set_tv" in app.screen
        await app.press("enter")
        assert "five-dimension" in app.screen
        assert "critics" not in app.screen
        await app.press("left", "home")
        assert "critics  decides" in app.screen


@pytest.mark.slow
async def test_brackets_go_from_repeat_to_repeat_and_b_to_what_is_not_right(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        await app.press("1", "home", "down", "down")
        first, second = await app.run("T", "2", "enter")
        app.session.finish(first, conversation(first, MOVIE_NIGHT, "Done."))
        app.session.finish(second, conversation(second, [], "Done."))
        app.session.end_batch()
        await app.settle()
        await app.press("equals_sign", "right_curly_bracket")
        assert "Movie night · offline #1" in app.screen
        await app.press("right_square_bracket")
        assert "Movie night · offline #2" in app.screen
        assert "decision  Toolvaluator" in app.screen
        await app.press("f8")
        assert "1 of 2 wrong calls" in app.screen
        await app.press("f8")
        assert "2 of 2 wrong calls" in app.screen
        await app.press("escape")
        shown = app.app.main.selection.run
        assert shown is not None
        assert shown.repeat == 1


async def test_a_run_without_grades_says_why_it_has_none(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("home", "down", "down", "equals_sign")
        assert "This case has not been run; r runs it" in app.screen
        (run,) = await app.run("r")
        await app.press("equals_sign")
        assert "This run is not finished yet" in app.screen
        path, case = str(run.file.path), run.case
        begun = Trajectory(run.run_id)
        ended = RunResult(run.run_id, path, case.id, case.name, run.model, 0, Status.ERROR, begun, error="no route")
        app.session.listener(RunDone(ended))
        app.session.end_batch()
        await app.settle()
        await app.press("equals_sign")
        assert "This run did not finish, so it is not graded: no route" in app.screen


@pytest.mark.slow
async def test_a_grade_is_copied_with_everything_behind_it(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await graded(app)
        await app.pilot.press("y")
        await app.until(lambda: "Copied the grade of critics" in app.screen)


@pytest.mark.slow
async def test_a_recorded_run_has_grades_too(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await graded(app)
        await app.press("escape", "w")
        await app.until(lambda: "Saved in" in app.screen)
        shown = app.app.main.selection.run
        assert shown is not None
        assert shown.saved_in is not None
        recording = shown.saved_in
    async with opened(recording.parent, paths=[recording], size=(120, 36)) as app:
        await app.press("equals_sign")
        assert "critics  decides" in app.screen
        assert "Decided before that: fail_on_tool_call_quantity" in app.screen


@pytest.mark.slow
async def test_disagreement_is_marked_in_the_tree_found_by_the_filter_and_said_in_the_run(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(140, 36)) as app:
        await graded(app, down=3, calls=TWICE)
        assert "≠ the graders disagree" in app.screen
        assert "≠ trajectory and dimensions would pass it; critics, decision and accuracy would fail it" in app.screen
        await app.press("escape")
        assert re.search(r"≠ +0\.00 │", app.screen)
        assert "✗ failed 0.00  critics  ≠ graders disagree: =" in app.screen
        await app.press("slash", *"status", "colon", *"dis", "enter")
        names = [row.case.name for row in app.app.main.selection.tree.rows if row.case is not None]
        assert names == ["Lights off"]


@pytest.mark.slow
async def test_hostile_arguments_are_only_shown(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 60)) as app:
        calls: list[Call] = [("set_lights", {HOSTILE: HOSTILE, "room": [HOSTILE]}), (HOSTILE, {HOSTILE: {}})]
        await graded(app, calls=calls)
        await app.press("enter")
        for _ in range(5):
            await app.press("right_curly_bracket")
            assert not set(app.screen) & set("\x1b\x9b\x00\r\u202e")
            assert "[bold]list[int]" in app.screen
