"""Protection of a held run, and of the text typed for it, from a wrong key, a mistake or a paste."""

from __future__ import annotations

from pathlib import Path

from textual import events

from tests.tui.apps import SMART_HOME, opened, suites_in
from tests.tui.in_terminal import Terminal
from tests.tui.stepped import editor, held, shown, stepped, typed
from workbench.config.folders import bundled
from workbench.trajectory.events import Resumed, RunFinished
from workbench.trajectory.trajectory import Trajectory
from workbench.tui.terminal.driver import END, START, PastedText, TerminalInput
from workbench.tui.terminal.key_queue import PasteCleaned

# The run


async def test_a_case_whose_run_is_under_way_stays_where_it_is(tmp_path: Path) -> None:
    other = SMART_HOME.replace("Smart home", "Other")
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME, other=other)) as app:
        await app.press("down")
        run = await stepped(app)
        await held(app, run)
        for key in ("delete", "P"):
            app.app.main.go_to("suites")
            await app.press(key)
            assert "is running: x stops it" in app.screen, key
            await app.press("z", "z")
            assert "is running: x stops it" not in app.screen
        await app.press("H")
        assert shown(app).run_id == run.run_id
        await app.press("x")
        assert app.session.stopped == [run.run_id]


async def test_a_new_case_keeps_its_name_while_it_runs_and_its_run_survives_an_undo(
    tmp_path: Path,
) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("1", "d")
        await held(app, await stepped(app))
        await app.press("1", "f2")
        assert "is running: x stops it" in app.screen
        await app.press("ctrl+z", "H")
        assert "its run is under way, and X stops it" in " ".join(app.screen.split())


async def test_s_on_a_stepped_run_that_is_over_asks_once_and_r_does_not(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        run = await stepped(app)
        await held(app, run)
        app.session.say(run, Resumed(1.0), RunFinished("answered"), first=6)
        app.session.grade(run, Trajectory(run.run_id))
        await app.settle()
        await app.press("s")
        assert "This run is finished: press s again to step through the case from its start" in app.screen
        assert app.session.runs == [run]
        again = await stepped(app)
        app.session.grade(again, Trajectory(again.run_id))
        await app.settle()
        assert len(await app.run("r")) == 1


# Typed text


async def test_what_a_paste_drops_is_said_and_that_what_was_typed_stays_behind_when_the_run_goes_on(
    tmp_path: Path,
) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        run = await stepped(app)
        await held(app, run, "result")
        await app.press("e")
        app.app.post_message(PasteCleaned(2))
        await app.settle()
        assert "Not pasted: 2 control characters; paste them in your editor with F4" in app.screen
        await typed(app, "dark")
        await app.press("escape", "s")
        assert "The run continues without your text; the same key shows it again" in app.screen
        assert app.session.gone_on == [(run.run_id, "stop")]


async def test_a_mistake_has_the_cursor_and_typing_on_shows_the_keys_again(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await held(app, await stepped(app))
        await app.press("e")
        assert "F7 select all" in app.screen.splitlines()[-1]
        await typed(app, '{"room": "attic",\n "brightness": }')
        await app.press("ctrl+s")
        assert editor(app).editor.typed.cursor == (1, 15)
        assert "Not sent, but kept: line 2, column 16" in app.screen
        await app.press("5")
        assert "Not sent" not in app.screen
        assert "Ctrl+S keep" in app.screen.splitlines()[-1]


async def test_what_a_paste_drops_is_said_behind_the_keys_that_came_before_it(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await held(app, await stepped(app))
        await app.press("I")
        for read in (events.Key("ctrl+s", None), events.Paste("one"), PasteCleaned(2)):
            app.app.post_message(read)
        await app.settle()
        assert editor(app).text == "one"
        assert "Not pasted: 2 control characters" in app.screen


def test_a_paste_counts_what_it_drops_and_line_ends_are_not_dropped() -> None:
    read = TerminalInput()
    assert read.feed(f"{START}R1\x07 \x1b[31m\x00\x9b\r\n\t\r{END}", 0.0) == [PastedText("R1 [31m\n\t\n", 4)]
    assert read.feed(f"{START}a{END}", 0.0) == [PastedText("a", 0)]


def test_a_real_terminal_says_it_too(tmp_path: Path) -> None:
    with Terminal([str(bundled("sample_suites") / "office.toml")], tmp_path, columns=80, rows=24) as terminal:
        terminal.wait_for("Find the company vacation")
        terminal.send("s")
        terminal.wait_for("the request of round 1")
        terminal.send("I")
        terminal.wait_for("To the model")
        terminal.send("\x13")
        terminal.wait_for("there is nothing to say yet")
        terminal.send(f"{START}one\x07\x00{END}")
        terminal.wait_for("Not pasted: 2 control characters")
        terminal.send(f"{START} two{END}")
        terminal.wait_for("one two")
