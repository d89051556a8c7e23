"""Quick add: requests typed in the line below the panes, run, and accepted as cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.apps import SMART_HOME, Call, Opened, assert_golden, conversation, opened, suites_in
from workbench.history.history import History
from workbench.trajectory.events import ToolDefinition
from workbench.tui.quick_add import adder

DIM: Call = ("set_lights", {"room": "living room", "brightness": 20})


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the time after a question in which Enter does not count be as short as a message."""
    monkeypatch.setattr(adder, "ANSWER_DELAY_S", 0.001)


async def answered(app: Opened, *calls: Call, index: int = -1) -> None:
    """Let a run make some calls and end."""
    app.session.finish(app.session.runs[index], conversation(app.session.runs[index], calls, "Done."))
    app.session.end_batch()
    await app.settle()


async def test_a_request_is_run_and_accepted_and_saved(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, size=(80, 24)) as app:
        await app.run("n", *"Dim the living room", "enter")
        assert (suites / "smart_home.toml").read_text() == SMART_HOME
        await answered(app, DIM)
        assert_golden(app.screen, "quick-add-80x24")
        await app.press("enter")
        await app.until(lambda: "Saved in smart_home.toml" in app.screen)
        assert "✓ Dim the li…room 1.00" in app.screen
    block = """
[[cases]]
name = "Dim the living room"
user = "Dim the living room"

[[cases.ordered]]
tool = "set_lights"
args = { room = "living room", brightness = 20 }
"""
    assert block in (suites / "smart_home.toml").read_text()


def line_of(app: Opened) -> str:
    """The text in the line."""
    return app.app.main.request_line.field.value


def text_of(suites: Path) -> str:
    return (suites / "smart_home.toml").read_text(encoding="utf-8")


@pytest.mark.slow
async def test_letters_typed_when_a_result_comes_are_text_and_the_result_waits(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, size=(80, 24)) as app:
        await app.run("n", *"Dim", "enter")
        await app.press(*"op")
        await answered(app, DIM)
        assert "1 waits: Enter on the empty line" in app.screen
        await app.press(*"en", "backspace", "backspace", "backspace", "backspace")
        assert "Expect this?" not in app.screen, "only a key of the user shows what waits"
        await app.press("enter")
        assert "Expect this?" in app.screen
        # A letter begins the next request, even if only the question is shown.
        await app.press("escape")
        await app.run(*"Dim", "enter")
        await answered(app, DIM)
        assert "Expect this?" in app.screen
        await app.press(*"e-o")
        assert line_of(app) == "e-o"
        assert text_of(suites) == SMART_HOME


@pytest.mark.slow
async def test_enter_pressed_twice_accepts_nothing_that_was_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adder, "ANSWER_DELAY_S", 3600.0)
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, size=(80, 24)) as app:
        await app.run("n", *"Dim", "enter", "enter")
        await answered(app, DIM)
        await app.press("enter", "enter", "escape")
        assert "Expect this?" in app.screen
        assert text_of(suites) == SMART_HOME


@pytest.mark.slow
async def test_checks_calls_and_their_order_are_chosen_before_the_case_is_saved(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, size=(120, 36)) as app:
        await app.run("n", *"Film", "enter")
        await answered(app, DIM, ("set_tv", {"power": "on"}))
        await app.press("right")
        assert "similar" in app.screen
        await app.press("down", "e", *"30", "enter")
        assert "gave 20" in app.screen and "on this model" in app.screen
        await app.press("e", *"bright!", "escape")
        assert "30" in app.screen and line_of(app) == ""
        await app.press("down", "minus")
        assert "not expected" in app.screen
        await app.press("q")
        assert "No command on q here" in app.screen
        await app.press("enter")
        await app.until(lambda: "Saved in smart_home.toml" in app.screen)
        block = text_of(suites).partition('name = "Film"')[2].partition("[[cases]]")[0]
    assert 'args = { room = { similar = "living room" }, brightness = 30 }' in block
    assert "set_tv" not in block.partition("extra_calls")[0]


@pytest.mark.slow
async def test_a_model_that_calls_nothing_is_asked_about_and_a_call_can_be_typed(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, size=(80, 24)) as app:
        await app.run("n", *"Sing", "enter")
        await answered(app)
        assert "Expect no call?" in app.screen
        await app.press("enter")
        await app.until(lambda: "Saved in" in app.screen)
        assert 'user = "Sing"\nexpect_no_calls = true' in text_of(suites)
        await app.run(*"Dim", "enter")
        await answered(app)
        await app.press("tab", "e", *"set_light", "enter")
        assert "did you mean `set_lights`?" in app.screen
        await app.press("s", "enter", "enter")
        await app.until(lambda: "✗ on this model" in app.screen)
        assert 'user = "Dim"\n\n[[cases.ordered]]\ntool = "set_lights"' in text_of(suites)


@pytest.mark.slow
async def test_three_requests_wait_and_the_fourth_stays_in_the_line(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, size=(80, 24)) as app:
        await app.run("n", *"One", "enter")
        await app.press(*"Two", "enter", *"Three", "enter", *"Four", "enter", *"Five", "enter")
        assert "running 1, waiting 3" in app.screen and line_of(app) == "Five"
        assert "3 requests are waiting already" in app.screen
        await answered(app, DIM, index=0)
        await app.until(lambda: len(app.session.runs) == 2)
        await app.press("enter", *["backspace"] * 4)
        await answered(app, DIM, index=1)
        await app.press("enter", "enter", "enter")
        await app.until(lambda: "2 added" in app.screen)
        assert [case.name for case in app.app.open_suites.suites[0].cases][1:3] == ["One", "Two"]


@pytest.mark.slow
async def test_an_error_keeps_the_request_and_enter_tries_again(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, size=(80, 24), models=["nowhere"], live=True) as app:
        await app.press("n", *"Turns the TV on or off", "enter")
        await app.until(lambda: "Enter again" in app.screen)
        assert "nowhere" in app.screen and "> Turns the TV on or off" in app.screen
        app.app.selection.models = ()
        await app.press("enter")
        await app.until(lambda: "Expect this?" in app.screen)
        app.app.selection.models = ("nowhere",)
        await app.press("escape", *"Again", "enter")
        await app.until(lambda: "Enter again" in app.screen)
        await app.press("up")
        assert line_of(app) == "Again"
        assert text_of(suites) == SMART_HOME


@pytest.mark.slow
async def test_a_request_is_stopped_by_a_letter_once_tab_gave_letters_to_the_run(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        await app.run("n", *"Dim", "enter")
        await app.press("tab", "x")
        assert app.session.stopped == [app.session.runs[-1].run_id]


@pytest.mark.slow
async def test_the_line_outlives_esc_other_screens_and_quitting_and_keeps_no_secret(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    key = "sk-proj-aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5"
    async with opened(suites, size=(80, 24)) as app:
        await app.press("n", "tab", *"Half a wo", "escape", "2", "h", "escape", "n", *"rd ")
        assert line_of(app) == "Half a word "
        await app.press(*key)
        app.app.remember()
    stored = (tmp_path / "state" / "app.json").read_text()
    assert key not in stored and "Half a word" in stored
    async with opened(suites, size=(80, 24)) as app:
        await app.press("n")
        assert line_of(app).startswith("Half a word") and "kind: no call" in app.screen


@pytest.mark.slow
async def test_undo_takes_the_last_case_out_again_and_saves(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, size=(80, 24)) as app:
        for request in ("One", "Two"):
            await app.run(*(("n",) if request == "One" else ()), *request, "enter")
            await answered(app, DIM)
            await app.press("enter")
            await app.until(lambda: "Saved in" in app.screen)
        await app.press("ctrl+z")
        await app.until(lambda: 'name = "Two"' not in text_of(suites))
        assert 'name = "One"' in text_of(suites) and "1 added" in app.screen
        await app.press("up")
        assert line_of(app) == "Two"
        await app.press("ctrl+z")
        await app.until(lambda: text_of(suites) == SMART_HOME)


@pytest.mark.slow
async def test_a_suite_with_other_changes_is_not_saved_and_the_same_request_is_pointed_out(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, size=(100, 24)) as app:
        await app.press("d", "n", *"Start movie night.", "enter")
        assert "Movie night asks the same: Enter again adds it" in app.screen
        await app.run("enter")
        await answered(app, DIM)
        await app.press("enter")
        assert "smart_home.toml has other changes: S saves all" in app.screen
        assert text_of(suites) == SMART_HOME
        await app.press("ctrl+s")
        await app.until(lambda: 'name = "Start movie night"' in text_of(suites))


@pytest.mark.parametrize(
    ("tabs", "written"),
    [
        (1, 'user = "Dim"\nexpect_no_calls = true'),
        (2, '[[cases.steps]]\nuser = "Dim"\ntool = "set_lights"'),
        (3, 'user = "Dim"\nexpect_nothing_yet = true'),
        (4, '[[cases.user.messages]]\nsay = "Dim"'),
    ],
    ids=["no call", "chain", "empty", "conversation"],
)
@pytest.mark.slow
async def test_the_other_kinds_of_cases(tmp_path: Path, tabs: int, written: str) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, size=(80, 24)) as app:
        keys = ("3", "n", *["tab"] * tabs, *"Dim", "enter")
        if tabs >= 3:
            await app.press(*keys)
        else:
            await app.run(*keys)
            await answered(app, DIM)
            await app.press("enter")
        await app.until(lambda: "Saved in" in app.screen)
        assert written in text_of(suites)
        assert not app.app.open_suites.suites[0].file.errors


@pytest.mark.slow
async def test_from_a_run_tab_comes_back_and_its_keys_say_that_there_is_no_case_yet(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, size=(80, 24)) as app:
        await app.run("n", *"Dim", "enter")
        await answered(app, DIM)
        await app.press("shift+tab", "a")
        assert "no case yet" in app.screen
        await app.press("tab", *"and then")
        assert line_of(app) == "and then"


@pytest.mark.slow
async def test_a_run_that_asks_for_a_permission_waits_until_enter_lets_it(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, size=(80, 24)) as app:
        run = (await app.run("n", *"Dim", "enter"))[0]
        await app.press(*"ne")
        app.session.ask(run, ToolDefinition("set_lights", server="home"))
        await app.settle()
        await app.press("x")
        assert "a run asks: Enter on the empty line" in app.screen and line_of(app) == "nex"
        await app.press("backspace", "backspace", "backspace", "enter")
        await app.until(lambda: not app.app.shows_main)
        assert not app.session.allowed


@pytest.mark.slow
async def test_an_added_case_has_its_grade_also_after_a_restart(tmp_path: Path) -> None:
    suites, history = suites_in(tmp_path, home=SMART_HOME), tmp_path / "history.sqlite3"
    async with opened(suites, live=True, history=history) as app:
        await app.press("n", *"Turn the TV on", "enter")
        await app.until(lambda: "Expect this?" in app.screen)
        await app.settle()
        await app.press("enter")
        with History(history) as kept:
            await app.until(lambda: kept.regraded() == {1: 1})
    async with opened(suites, live=True, history=history) as app:
        await app.until(lambda: "✓ Turn the TV on" in app.screen)
        assert "edited" not in app.screen and "◇" not in app.screen
        await app.press("1", "home", "down", "down", "down", "3", "enter")
        await app.until(lambda: not app.app.shows_main)
        await app.press("equals_sign")
        await app.until(lambda: "set_tv" in app.screen and "Something failed" not in app.screen)
