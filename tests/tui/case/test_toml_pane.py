"""Typing in the TOML of a case, of a suite's head, and of a file that is not TOML."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from workbench.authoring.open_suite import OpenSuite
from workbench.tui.case.excerpt_view import CaseView
from workbench.tui.case.toml.pane import TomlPane
from workbench.tui.kit.text_editor import TomlEditor

MENDABLE = 'format = 1\nname = "Mendable"\n\n[[cases]\nname = "One"\nuser = "Hello."\n'


def suite_of(app: Opened) -> OpenSuite:
    suite = app.app.main.selection.suite
    assert suite is not None
    return suite


def editor_of(app: Opened) -> TomlEditor:
    return app.app.main.query_one(TomlEditor)


def pane_of(app: Opened) -> TomlPane:
    return app.app.main.query_one(TomlPane)


async def paste(app: Opened, text: str) -> None:
    app.app.post_message(events.Paste(text))
    await app.settle()


async def test_typing_begins_at_the_line_of_the_cursor_changes_the_suite_at_once_and_is_undone(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("2", "o", *["down"] * 4, "enter")
        assert editor_of(app).typed.cursor == (4, 0)
        assert "Esc done" in app.screen
        await app.press("end", "left", "left", "!")
        assert 'user = "Start movie night!."' in suite_of(app).document.text
        assert "17  user = " in app.screen
        await app.press("escape")
        assert app.app.main.focused is app.app.main.query_one(CaseView)
        assert app.app.main.query_one(CaseView).line == 4
        await app.press("ctrl+z", "e", "end", *"#so")
        assert editor_of(app).typed.lines[4].endswith("#so")
        await app.press("ctrl+z")
        assert suite_of(app).document.text == SMART_HOME
        assert editor_of(app).typed.text == suite_of(app).document.block(0)
        assert editor_of(app).typed.cursor == (4, 27)
        await app.press("ctrl+y", "x")
        assert "x#so" in suite_of(app).document.text
        assert pane_of(app).typing


async def test_what_is_not_toml_is_kept_and_its_problem_leads_to_its_line(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        await app.press("2", "o", *["down"] * 4, "e")
        await paste(app, "user = ")
        assert "17 is not TOML" in app.screen
        assert "▲17  user = user = " in app.screen
        assert "user = user = " in suite_of(app).document.text
        await app.press("pageup", "f8")
        assert editor_of(app).typed.cursor[0] == 4
        await app.press("ctrl+home", "z")
        await app.pilot.click("#toml-problems")
        await app.settle()
        assert editor_of(app).typed.cursor[0] == 0, "the first problem is in the first line now"


async def test_the_head_of_a_suite_is_typed_in_on_its_row(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("home", "down", "2", "o", "e")
        assert editor_of(app).typed.text == suite_of(app).document.block(-1)
        await app.press("end", "enter")
        await paste(app, 'tags = ["new"]')
        document = suite_of(app).document
        assert document.is_sound
        assert document.text.startswith('format = 1\ntags = ["new"]\nname')


async def test_a_file_that_is_not_toml_is_mended_in_the_app(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, mendable=MENDABLE)) as app:
        await app.press("home", "down", "e")
        assert editor_of(app).typed.text == MENDABLE
        await app.press("f8")
        assert editor_of(app).typed.cursor[0] == 3
        await app.press("end", "]")
        assert suite_of(app).file.suite is not None
        assert pane_of(app).typing
        await app.press("ctrl+end")
        await paste(app, "# end")
        assert suite_of(app).document.text == MENDABLE.replace("[[cases]", "[[cases]]") + "# end"
        await app.press("escape")
        assert "One" in app.screen


async def test_a_paste_of_several_lines_is_one_change_and_a_selection_is_copied_and_pasted(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("2", "o", "e", "ctrl+end")
        await paste(app, "\r\n[[cases.ordered]]\r\ntool = \x1b[31m")
        assert "[[cases.ordered]]\ntool = \x1b[31m\n" in suite_of(app).document.text
        assert "tool = ␛[31m" in app.screen
        await app.press("ctrl+z")
        assert suite_of(app).document.text == SMART_HOME
        await app.press("ctrl+home", "down", "down", "shift+end", "ctrl+c", "end", "enter", "ctrl+v")
        assert suite_of(app).document.block(0).count('name = "Movie night"') == 2
        await app.until(lambda: "Copied the selected text" in app.screen)
        await app.press("ctrl+x")
        assert suite_of(app).document.block(0).count('name = "Movie night"') == 1
        await app.until(lambda: "Copied the cut line" in app.screen)


async def test_line_ends_of_a_dos_file_stay_when_its_text_is_typed_in(tmp_path: Path) -> None:
    suites = suites_in(tmp_path)
    (suites / "dos.toml").write_bytes(SMART_HOME.replace("\n", "\r\n").encode())
    async with opened(suites) as app:
        await app.press("2", "o", "down", "e", "end", "enter")
        await paste(app, "skip = 'x'")
        text = suite_of(app).document.text
        assert text.count("\r\n") == text.count("\n") == SMART_HOME.count("\n") + 1


async def test_a_key_draws_one_line_and_the_mouse_puts_the_cursor_and_selects(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("2", "o", "down", "e", "#")
        editor = editor_of(app)
        before = editor.rows_drawn
        await app.press("x")
        assert editor.rows_drawn == before + 1
        await app.pilot.click("#toml-editor", offset=(12, 2))
        assert editor.typed.cursor == (2, 7)
        await app.pilot.click("#toml-editor", offset=(14, 2), times=2)
        assert editor.typed.selected == "Movie"


async def test_searching_the_view_and_the_text_that_is_typed(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        await app.press("2", "o", "slash", *"TOOL")
        assert "2 found" in app.screen
        await app.press("enter")
        assert "1 of 2" in app.screen
        await app.press("enter")
        assert app.app.main.query_one(CaseView).line == 13
        await app.press("escape", "e")
        assert editor_of(app).typed.cursor[0] == 13
        assert editor_of(app).has_focus


async def test_a_line_that_is_too_long_is_left_to_the_users_editor(tmp_path: Path) -> None:
    long = SMART_HOME.replace("Start movie night.", "x" * 30_000)
    async with opened(suites_in(tmp_path, smart_home=long)) as app:
        await app.press("2", "o")
        assert "characters more" in app.screen or "xxxx" in app.screen
        await app.press("e")
        assert "F4 opens it in your editor" in app.screen
        assert not pane_of(app).typing


@pytest.mark.slow
async def test_another_case_or_the_other_view_ends_the_typing(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("2", "o", "e", "#")
        await app.pilot.click("#suites", offset=(6, 3))
        await app.settle()
        assert not pane_of(app).typing
        assert "Switch the lights off." in app.screen
        assert suite_of(app).document.block(0).startswith("##")
        await app.press("e", "ctrl+t")
        assert not pane_of(app).typing
        assert app.app.main.case_pane.view == "form"


async def test_a_tool_is_completed_as_its_name_is_typed(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        await app.press("2", "o", "e", "ctrl+end")
        await paste(app, '\n[[cases.unordered]]\ntool = "set')
        await app.press("_")
        assert "Turns the TV on or off." in app.screen
        await app.press("down", "down", "enter")
        assert suite_of(app).document.block(0).endswith('[[cases.unordered]]\ntool = "set_tv"')
        assert "Turns the TV on or off." not in app.screen
        await app.press("enter", "f", "ctrl+@", "enter")
        assert editor_of(app).typed.text.endswith("\nforbidden_args = ")
