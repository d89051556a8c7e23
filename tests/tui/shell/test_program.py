"""Features of the program apart from suites: screenshots, the log, screens in ASCII."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from xml.etree import ElementTree

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Input

from tests.tui.apps import MOVIE_NIGHT, SMART_HOME, conversation, opened, suites_in
from workbench.tui.terminal.screenshot import save_picture, svg_of, text_of

HOSTILE = "</text><script>alert(1)</script> ]]> &amp; \x1b]0;x\x07 \x00 \ufffe [/b] \u202e"


async def test_a_picture_of_the_screen_is_saved_as_drawing_and_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        shown = app.screen
        await app.press("ctrl+p", *"picture", "enter")
        assert f"Saved in {tmp_path / 'workbench-1.svg'}, and as text in workbench-1.txt" in " ".join(
            app.screen.split()
        )
    assert (tmp_path / "workbench-1.txt").read_text() == shown + "\n"
    drawing = (tmp_path / "workbench-1.svg").read_text()
    assert "Start movie night." in "".join(ElementTree.fromstring(drawing).itertext())
    assert "url(http" not in drawing
    assert "@import" not in drawing


async def test_hostile_text_in_a_picture_is_only_text() -> None:
    class Typed(App[None]):
        def compose(self) -> ComposeResult:
            yield Input(HOSTILE)

    async with Typed().run_test() as pilot:
        drawing = svg_of(pilot.app)
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(drawing).iter()}
        assert tags <= {"svg", "style", "defs", "clipPath", "rect", "text", "g", "circle"}
        text_of(pilot.app).encode("utf-8")


def test_a_picture_never_replaces_another_and_finds_a_folder_that_takes_it(tmp_path: Path) -> None:
    folders = (tmp_path / "none", tmp_path / "state" / "pictures")
    first, _ = save_picture(folders, "<svg/>", "a")
    second, text = save_picture(folders, "<svg/>", "b")
    assert [first.parent, second.name] == [folders[1], "workbench-2.svg"]
    assert text.read_text() == "b"


async def test_the_app_says_where_the_log_is(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(200, 24)) as app:
        app.app.main.action_do("log")
        await app.settle()
        assert f"it will be in {tmp_path / 'state' / 'log' / 'workbench.log'}" in app.screen


async def test_without_a_shell_nothing_is_suspended(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        app.app.main.action_do("suspend")
        await app.settle()
        assert "no shell here" in app.screen


@pytest.mark.slow
async def test_in_ascii_there_is_nothing_else_on_any_screen(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME, broken="format = 1\n[[cases]]\nusr = 1\n")
    async with opened(suites, environment={"WORKBENCH_ASCII": "1"}, size=(100, 24)) as app:
        assert app.screen.isascii(), app.screen
        await app.press("slash", *"movie", "enter", "end")
        (run,) = await app.run("r")
        app.session.finish(run, conversation(run, MOVIE_NIGHT, "I dimmed the lights."))
        await app.settle()
        for keys in (["3"], ["question_mark"], ["end"], ["escape", "m"], ["escape", "ctrl+p"], ["escape", "2"]):
            await app.press(*keys)
            assert app.screen.isascii(), [char for char in app.screen if not char.isascii()]


async def test_in_ascii_signs_are_other_signs_and_what_a_suite_says_stays(tmp_path: Path) -> None:
    suite = SMART_HOME.replace("Movie night", "Kino für alle")
    async with opened(suites_in(tmp_path, smart_home=suite), environment={"WORKBENCH_ASCII": "yes"}) as app:
        assert "V smart_home" in app.screen
        assert "Kino für alle" in app.screen


async def test_suspending_is_asked_for_twice_while_runs_are_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        stopped: list[int] = []
        monkeypatch.setattr(os, "kill", lambda _, number: stopped.append(number))
        monkeypatch.setattr(os, "getsid", lambda _: 1)
        monkeypatch.setattr(type(app.app), "is_headless", False)
        await app.run("r")
        app.app.main.action_do("suspend")
        await app.settle()
        assert "1 run under way, whose time limits keep counting" in app.screen
        assert stopped == []
        app.app.main.action_do("suspend")
        assert stopped == [signal.SIGTSTP]
