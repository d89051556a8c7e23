"""Runs on screen: started, followed, graded, stopped, trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.apps import MOVIE_NIGHT, NEEDY, SMART_HOME, Call, conversation, opened, opening, suites_in
from workbench.engine.events import RunDone
from workbench.grading.grade import RunResult
from workbench.grading.status import Status
from workbench.trajectory.events import CallStarted, RequestStarted, RunFinished, TextDelta
from workbench.trajectory.trajectory import Trajectory
from workbench.tui.trajectory.view import RunList
from workbench.tui.tree.view import SuiteTree


async def test_running_a_case_shows_it_and_then_its_grade(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        (run,) = await app.run("r")
        assert "Waiting for its turn." in app.screen
        assert "3 Run  offline (baseline)" in app.screen
        app.session.say(run, opening(run), RequestStarted(1), TextDelta(1, "Dimming"))
        await app.settle()
        assert "answering …" in app.screen
        assert "Dimming" in app.screen
        assert "1 … running" in app.screen
        app.session.finish(run, conversation(run, MOVIE_NIGHT, "Done."))
        app.session.end_batch()
        await app.settle()
        assert "✗ failed 0.00" in app.screen
        assert "✗ expected 5..40" in app.screen
        assert "set_tv  expected, never called" in app.screen
        assert "✗ Movie night     0.00" in app.screen


async def test_running_a_suite_runs_what_the_filter_shows(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("slash", *"lights", "enter")
        runs = await app.run("R")
        assert [run.case.name for run in runs] == ["Lights off"]


async def test_a_run_that_is_watched_from_above_counts_what_is_new(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(120, 12)) as app:
        (run,) = await app.run("r")
        calls = [CallStarted(1, f"c{number}", "set_lights") for number in range(30)]
        app.session.say(run, opening(run), RequestStarted(1), *calls)
        await app.settle()
        view = app.app.main.query_one("#run", RunList)
        assert view.is_following
        await app.press("3", "home")
        assert not view.is_following
        more = [CallStarted(1, f"d{number}", "set_tv") for number in range(5)]
        app.session.say(run, *more, first=32)
        await app.settle()
        assert "5 new ↓ End" in app.screen
        assert view.top == 0
        await app.press("end")
        assert view.is_following
        assert "new ↓" not in app.screen
        app.session.say(run, TextDelta(1, "the end"), first=37)
        await app.settle()
        assert "the end" in app.screen


async def test_looking_at_another_case_does_not_disturb_a_run(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (run,) = await app.run("r")
        await app.press("down")
        app.session.finish(run, conversation(run, MOVIE_NIGHT, "Done."))
        await app.settle()
        assert "Not run yet." in app.screen
        assert "0.00" in app.screen
        await app.press("up")
        assert "✗ failed" in app.screen


async def test_a_long_value_opens_with_enter(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (run,) = await app.run("r")
        app.session.finish(run, conversation(run, [("set_lights", {"rooms": list(range(40))})], "Done."))
        await app.settle()
        await app.press("3", "home", "down", "down", "down", "down")
        assert "→ set_lights" in app.screen
        before = app.screen.count("\n")
        await app.press("enter")
        assert "39" not in app.screen.split("→ set_lights")[1][:60]
        assert app.app.main.query_one("#run", RunList).line_count() > 40
        assert app.screen.count("\n") == before


async def test_several_models_stand_side_by_side(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), models=("offline", "other")) as app:
        first, second = await app.run("r")
        app.session.finish(first, conversation(first, MOVIE_NIGHT, "From the first."))
        right: list[Call] = [
            ("set_lights", {"room": "living room", "brightness": 9}),
            ("set_tv", {"power": "on"}),
        ]
        app.session.finish(second, conversation(second, right, "From the second."))
        await app.settle()
        assert "From the first." in app.screen
        await app.press("3", "right")
        assert "From the second." in app.screen
        assert "✓ 1.00" in app.screen
        await app.press("right")
        assert "From the first." in app.screen


@pytest.mark.slow
async def test_models_are_chosen_from_a_list(tmp_path: Path) -> None:
    text = SMART_HOME.replace('name = "Smart home"\n', 'name = "Smart home"\nmodels = ["offline", "other"]\n')
    async with opened(suites_in(tmp_path, smart_home=text)) as app:
        await app.press("m", "down", "space", "enter")
        assert app.app.main.selection.models == ("other",)
        (run,) = await app.run("r")
        assert run.model == "other"
        await app.press("m", "down", "space", "escape")
        assert app.app.main.selection.models == ("other",)


async def test_a_suite_is_run_from_one_of_its_cases_and_stopped_by_the_session(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        first, *others = await app.run("R")
        assert len(others) == 2
        await app.press("x")
        assert app.session.stopped == [first.run_id]
        await app.press("X")
        assert set(app.session.stopped) >= {run.run_id for run in others}


@pytest.mark.slow
async def test_a_case_that_runs_is_not_started_twice(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.run("r")
        await app.press("r")
        assert "This case is running; x stops it" in app.screen
        assert len(app.session.runs) == 1


async def test_an_infrastructure_error_is_shown_as_one(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (run,) = await app.run("r")
        app.session.say(run, opening(run), RequestStarted(1), RunFinished("error", "no route to host"))
        await app.settle()
        assert "grading" in app.screen


async def test_a_suite_that_would_start_something_is_asked_about_first(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, needy=NEEDY)) as app:
        await app.press("r")
        await app.until(lambda: "This suite wants to start something" in app.screen)
        assert "run the command: python server.py" in app.screen
        await app.press("escape")
        await app.until(lambda: "Nothing was run" in app.screen)
        runs = await app.run("r", "1")
        assert len(runs) == 1
        assert app.session.trusted == [True]


@pytest.mark.slow
async def test_trust_for_once_holds_until_the_program_ends_and_always_is_remembered(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, needy=NEEDY)
    async with opened(suites) as app:
        (run,) = await app.run("r", "1")
        app.session.grade(run, Trajectory(run.run_id))
        await app.settle()
        (run,) = await app.run("r")
        app.session.grade(run, Trajectory(run.run_id))
    async with opened(suites) as app:
        assert await app.run("r", "2")
    async with opened(suites) as app:
        assert await app.run("r")


async def test_trust_is_asked_again_when_the_suite_wants_something_else(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, needy=NEEDY)
    async with opened(suites) as app:
        (run,) = await app.run("r", "1")
        app.session.grade(run, Trajectory(run.run_id))
        await app.settle()
        (suites / "needy.toml").write_text(NEEDY.replace("server.py", "other.py"), encoding="utf-8")
        await app.press("r")
        await app.until(lambda: "run the command: python other.py" in app.screen)
        await app.press("escape")


async def test_escape_at_the_question_of_trust_is_a_no(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, needy=NEEDY)) as app:
        await app.press("r")
        await app.until(lambda: "wants to start something" in app.screen)
        await app.press("enter")
        await app.until(lambda: "Nothing was run" in app.screen)


async def test_a_file_that_changed_on_disk_is_read_again_before_it_runs(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        changed = SMART_HOME.replace("Start movie night.", "Start the film.")
        (suites / "smart_home.toml").write_text(changed, encoding="utf-8")
        (run,) = await app.run("r")
        assert run.case.user == "Start the film."


async def test_a_run_of_an_older_file_says_so(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        (run,) = await app.run("r")
        app.session.finish(run, conversation(run, MOVIE_NIGHT, "Done."))
        await app.settle()
        (suites / "smart_home.toml").write_text(SMART_HOME.replace("Switch the", "Turn the"), encoding="utf-8")
        await app.press("f5")
        assert "changed since" not in app.screen, "that was another case"
        (suites / "smart_home.toml").write_text(SMART_HOME.replace("Start movie", "Begin movie"), encoding="utf-8")
        await app.press("f5")
        assert "changed since" in app.screen


async def test_quitting_with_runs_under_way_asks_once_more_and_closes_the_session(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.run("r")
        await app.press("q")
        assert "q again stops and quits" in app.screen
        await app.pilot.press("q")
        await app.until(lambda: app.session.closed)
    assert app.app.return_code == 0


async def test_whoever_does_something_else_after_asking_to_quit_is_asked_again(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.run("r")
        await app.press("q", "z")
        assert "q again stops and quits" not in app.screen
        await app.press("q")
        assert "q again stops and quits" in app.screen
        assert not app.session.closed


async def test_rows_of_the_tree_and_of_the_run_are_drawn_only_when_they_change(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (run,) = await app.run("r")
        app.session.say(run, opening(run), RequestStarted(1), TextDelta(1, "One"))
        await app.settle()
        tree, view = app.app.main.query_one("#suites", SuiteTree), app.app.main.query_one("#run", RunList)
        drawn = tree.rows_drawn, view.rows_drawn
        app.session.say(run, TextDelta(1, " two"), first=3)
        await app.settle()
        assert (tree.rows_drawn - drawn[0], view.rows_drawn - drawn[1]) == (0, 1)


async def test_running_a_suite_that_runs_already_adds_only_what_is_free(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (first,) = await app.run("r")
        others = await app.run("R")
        assert [run.case.name for run in others] == ["Lights off", "Nothing to do"]
        await app.press("R")
        assert "Every case here is already running" in app.screen
        assert app.session.runs == [first, *others]


async def test_of_several_repeats_the_one_that_decides_is_shown_and_all_have_their_sign(tmp_path: Path) -> None:
    text = SMART_HOME.replace('tags = ["evening"]', "repeats = 2")
    async with opened(suites_in(tmp_path, smart_home=text)) as app:
        first, second = await app.run("r")
        right: list[Call] = [("set_lights", {"room": "living room", "brightness": 9}), ("set_tv", {"power": "on"})]
        app.session.finish(first, conversation(first, right, "The first."))
        app.session.finish(second, conversation(second, MOVIE_NIGHT, "The second."))
        app.session.end_batch()
        await app.settle()
        await app.press("down", "up")
        assert "The second." in app.screen
        assert "✗ Movie night" in app.screen
        assert "#1  ✓ 1.00" in app.screen
        assert "#2  ✗ 0.00" in app.screen


async def test_a_failed_answer_check_says_what_was_expected_and_what_came(tmp_path: Path) -> None:
    text = SMART_HOME.replace('tags = ["evening"]', 'response_contains = ["good night"]')
    async with opened(suites_in(tmp_path, smart_home=text), size=(160, 48)) as app:
        (run,) = await app.run("r")
        app.session.finish(run, conversation(run, MOVIE_NIGHT, "Enjoy the film."))
        app.session.end_batch()
        await app.settle()
        await app.press("3", "z")
        assert 'response: expected containing "good night", got "Enjoy the film."' in app.screen


async def test_a_filter_that_nothing_fits_says_so(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("slash", *"zzz")
        assert "No case fits the filter." in app.screen
        await app.press("escape")
        assert "Movie night" in app.screen


async def test_what_was_stopped_is_run_again_with_what_failed_and_cannot_be_accepted(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (run,) = await app.run("r")
        case, trajectory = run.case, Trajectory(run.run_id)
        app.session.listener(
            RunDone(
                RunResult(run.run_id, str(run.file.path), case.id, case.name, run.model, 0, Status.STOPPED, trajectory)
            )
        )
        app.session.end_batch()
        await app.settle()
        await app.press("a")
        assert "Only a finished run can be accepted" in app.screen
        assert [again.case.name for again in await app.run("F")] == [run.case.name]
