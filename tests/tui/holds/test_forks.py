"""Forking in the app: the places, the texts, and the resulting branches."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.events import Paste

from tests.engine.test_stepping_over_http import conversation as things_of
from tests.providers.server import Answer, Call, Request, Server, base_url_of, said
from tests.tui.apps import MOVIE_NIGHT, NEEDY, SMART_HOME, Opened, conversation, opened, opening, suites_in
from workbench.engine.checkpoint import EditResult
from workbench.engine.fork import ForkPoint
from workbench.engine.plan import PlannedRun
from workbench.show.views.run_items import Item, OutcomeItem, ResultItem, RoundItem
from workbench.trajectory.events import Paused
from workbench.trajectory.recording import read_recording
from workbench.tui.holds.fork_screen import ForkScreen
from workbench.tui.runs.dialogs import TrustScreen

LOCAL = '[models.local]\nprovider = "openai"\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "llama"\n'


async def made(app: Opened) -> PlannedRun:
    """Run the first case, and go to its run."""
    (run,) = await app.run("r")
    app.session.finish(run, conversation(run, MOVIE_NIGHT, "Done."))
    app.session.end_batch()
    await app.settle()
    await app.press("3")
    return run


async def go_to(app: Opened, kind: type[Item], number: int = 0) -> None:
    """Put the cursor on the so-manieth item of a kind."""
    run_list = app.app.main.run_pane.run_list
    assert run_list.lines is not None
    found = [index for index, item in enumerate(run_list.lines.view.items) if isinstance(item, kind)]
    run_list.move_cursor(run_list.lines.start_of(found[number]))
    await app.settle()


@pytest.mark.slow
async def test_a_run_is_forked_after_a_result_on_another_model_with_other_texts(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    (suites / "workbench.toml").write_text(LOCAL, encoding="utf-8")
    async with opened(suites, trust=True) as app:
        origin = await made(app)
        await go_to(app, ResultItem)
        await app.press("Y")
        assert "from the result of set_lights" in app.screen
        await app.press("right", "down", "down", "enter", "f7", "n", "o", "enter", "w", "escape")
        await app.press("down", "enter", "f7")
        app.app.post_message(Paste("broken"))
        await app.press("f3", "escape")
        assert "local" in app.screen and "✎ broken" in app.screen and "[✓] tool error" in app.screen
        await app.press("down", "enter")
        assert "[ ] tool error" in app.screen
        await app.press("f3", "up", "up", "up", "up")
        (fork,) = await app.run("enter")
        assert fork.fork is not None
        assert (fork.model, fork.fork.at, fork.fork.system) == ("local", ForkPoint(1, 1), "no\nw")
        assert fork.fork.result == EditResult("broken", is_error=True)
        assert fork.fork.origin.run_id == origin.run_id != fork.run_id
        assert "Forked from the result of set_lights" in app.screen
        assert "↳ fork 1" in app.screen


async def test_on_the_smallest_screen_all_that_can_be_changed_is_there_and_the_keys(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(40, 10), trust=True) as app:
        await made(app)
        await go_to(app, ResultItem)
        await app.press("Y")
        wanted = ("Fork", "model", "system", "result", "[ ] tool error", "Enter", "Esc leave")
        assert all(shown in app.screen for shown in wanted), app.screen


@pytest.mark.slow
@pytest.mark.parametrize("size", [(120, 36), (40, 10)])
async def test_what_was_typed_survives_leaving_and_a_start_that_is_refused(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with opened(suites_in(tmp_path, needy=NEEDY + 'system = "Old."\n'), size=size, trust=False) as app:
        app.app.services.starter._trust._all_of_them = True
        (run,) = await app.run("r")
        app.session.finish(run, conversation(run, (), "Done."))
        app.session.end_batch()
        app.app.services.starter._trust._all_of_them = False
        await app.press("3")
        await go_to(app, RoundItem)
        await app.press("Y", "down", "down", "enter", "f7", "N", "e", "w", "escape", "escape", "Y")
        assert "New" in app.screen
        await app.pilot.press("enter")
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        await app.press("escape")
        await app.until(lambda: app.app.screen is app.app.main)
        assert len(app.session.runs) == 1
        await app.press("Y")
        assert isinstance(app.app.screen, ForkScreen)
        assert "New" in app.screen
        await app.press("down", "down", "delete", "escape")
        await app.press("Y")
        assert "New" not in app.screen


@pytest.mark.slow
async def test_why_a_run_cannot_be_forked_is_said(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("3", "Y")
        assert "This case has not been run" in app.screen
        await app.press("1")
        (run,) = await app.run("r")
        app.session.say(run, opening(run))
        await app.settle()
        await app.press("3", "Y")
        assert "This run is under way: s holds it" in app.screen
        app.session.say(run, Paused("step by step", None, "request", 1), first=1)
        await app.settle()
        await app.press("Y")
        assert "from round 1" in app.screen
        await app.press("escape")
        app.session.finish(run, conversation(run, MOVIE_NIGHT, "Done."))
        app.session.end_batch()
        await app.settle()
        await go_to(app, OutcomeItem)
        await app.press("Y")
        assert "Not forked: the model answered in round 2, so there is nothing left to ask" in app.screen


@pytest.mark.slow
async def test_forks_stand_as_branches_with_their_first_difference(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(200, 40)) as app:
        await made(app)
        await go_to(app, RoundItem, 1)
        await app.press("Y")
        (fork,) = await app.run("enter")
        app.session.finish(fork, conversation(fork, MOVIE_NIGHT, "Gone."))
        app.session.end_batch()
        await app.settle()
        assert "↳ round 2: says" in app.screen
        assert app.screen.splitlines()[0].count("1 ✗") == 1, "the fork is not counted"
        await app.press("left")
        assert "↳ before round 2" not in app.screen
        await go_to(app, RoundItem)
        await app.press("Y")
        await app.run("enter")
        assert "↳ fork 2" in app.screen
        assert [run.is_fork for run in app.app.main.selection.runs] == [False, True, True]


@pytest.mark.slow
async def test_c_on_another_run_says_which_run_of_the_case_is_held_and_how_to_get_there(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(200, 40)) as app:
        await made(app)
        await go_to(app, RoundItem, 1)
        await app.press("Y")
        (fork,) = await app.run("enter")
        app.session.say(fork, opening(fork), Paused("step by step", None, "request", 1))
        await app.settle()
        await app.press("left", "c")
        assert "This run has ended; fork 1 is held: → shows it" in app.screen
        await app.press("right", "c")
        assert app.session.gone_on == [(fork.run_id, "end")]


@pytest.mark.slow
async def test_a_recording_is_forked_and_its_fork_saved_beside_it(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        run = await made(app)
        await app.press("w")
        await app.until(lambda: "Saved in" in app.screen)
        (file,) = (run.file.path.parent / "recordings").iterdir()
    async with opened(tmp_path / "suites", paths=[file]) as app:
        await app.press("3")
        await go_to(app, RoundItem, 1)
        await app.press("Y")
        (fork,) = await app.run("enter")
        assert fork.model_of_suite, "not the user chose the model of a recording"
        app.session.finish(fork, conversation(fork, MOVIE_NIGHT, "Gone."))
        app.session.end_batch()
        await app.settle()
        await app.press("w")
        await app.until(lambda: "Saved in" in app.screen)
        saved = [other for other in file.parent.iterdir() if other != file]
        assert [read_recording(other).trajectory.final_answer for other in saved] == ["Gone."]


@pytest.mark.slow
async def test_nothing_is_asked_about_what_came_before(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        results = sum(thing.who == "result" for thing in things_of("openai", request.json))
        calls = [Call("set_lights", {"room": "living room", "brightness": 20}, "c1")]
        return said("openai", f"Answer {len(server.requests)}.") if results else said("openai", calls=calls)

    with Server(answer) as server:
        model = f"openai:test@{base_url_of(server, 'openai')}"
        async with opened(suites_in(tmp_path, smart_home=SMART_HOME), live=True, models=(model,)) as app:
            book = app.app.main.book
            await app.press("r")
            await app.until(lambda: bool(book.finished((tmp_path / "suites/smart_home.toml", "movie-night"))))
            assert len(server.requests) == 2
            await app.press("3")
            await go_to(app, ResultItem)
            await app.press("Y", "enter")
            await app.until(lambda: len(book.finished((tmp_path / "suites/smart_home.toml", "movie-night"))) == 2)
            assert len(server.requests) == 3
            assert server.requests[2].body == server.requests[1].body
            assert "Answer 3." in app.screen
            assert "replayed" in app.screen


@pytest.mark.slow
async def test_a_run_on_a_model_that_is_no_longer_chosen_says_whose_it_is(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(160, 40)) as app:
        await made(app)
        told = "ran on offline (baseline); r runs it on local"
        assert told not in app.screen
        app.app.main.selection.models = ("local",)
        app.app.main.selection.notify_all()
        await app.settle()
        assert told in app.screen
        app.app.main.selection.models = ("offline",)
        app.app.main.selection.notify_all()
        await app.settle()
        assert told not in app.screen
