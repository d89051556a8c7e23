"""The form in the real app: its look, and writing and running a case with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, Opened, assert_golden, opened, suites_in
from tests.tui.form_app import KEYS
from workbench.tui.case.form.view import FormView

SIZES = pytest.mark.parametrize("size", first_of([(80, 24), (120, 36)], 1), ids=lambda size: f"{size[0]}x{size[1]}")

SCHEMAS = """
[tools.parameters]
type = "object"
required = ["room"]
[tools.parameters.properties.room]
type = "string"
enum = ["living room", "bedroom"]
[tools.parameters.properties.brightness]
type = "integer"
maximum = 100
"""
HOME = SMART_HOME.replace(
    'description = "Sets the lights of a room."\n', 'description = "Sets the lights of a room."\n' + SCHEMAS, 1
)


async def type_in(app: Opened, text: str) -> None:
    await app.press(*(KEYS.get(character, character) for character in text))


def panes(app: Opened) -> str:
    """The screen without the row of keys."""
    return app.screen.rpartition("\n")[0]


def go(app: Opened, *place: str | int) -> None:
    form = app.app.main.query_one(FormView)
    if all(row.place != place for row in form.page.rows):
        form.show_every_key()
    form.go_to(place)


@SIZES
async def test_a_case_looks_like_this(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(suites_in(tmp_path, smart_home=HOME), size=size) as app:
        await app.press("2", "down", "down", "down", "down", "down", "down", "down", "down")
        assert_golden(panes(app), f"form-{size[0]}x{size[1]}")


@SIZES
async def test_a_field_and_its_completions_look_like_this(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(suites_in(tmp_path, smart_home=HOME), size=size) as app:
        await app.press("2")
        go(app, "ordered", 0, "args", "room")
        await app.press("right", "right", "enter")
        assert_golden(panes(app), f"form-typing-{size[0]}x{size[1]}")


async def test_a_suites_settings_look_like_this(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=HOME), size=(80, 24)) as app:
        await app.press("up", "2")
        assert_golden(panes(app), "form-suite-80x24")


async def test_what_is_typed_is_in_the_tree_the_toml_and_the_history_at_once(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=HOME)) as app:
        await app.press("2", "enter", "end")
        await type_in(app, "!")
        suite = app.app.main.selection.suite
        assert suite is not None and suite.dirty and suite.cases[0].name == "Movie night!"
        assert "Movie night!" in app.screen.split("│")[0] or "Movie night!" in app.screen
        await app.press("ctrl+z")
        assert not suite.dirty
        assert "Undone" in app.screen
        await app.press("escape")
        await app.press("o")
        assert 'name = "Movie night"' in app.screen


async def test_a_case_is_finished_in_the_form_and_runs(tmp_path: Path) -> None:
    text = HOME + '\n[[cases]]\nid = "dim"\nname = "Dim"\nuser = ""\n'
    async with opened(suites_in(tmp_path, home=text), trust=True) as app:
        await app.press("end", "2")
        go(app, "user")
        await app.press("enter")
        await type_in(app, "Dim the bedroom.")
        await app.press("enter")
        go(app, "ordered")
        await app.press("plus", "enter", "down", "enter", "down", "enter")
        suite = app.app.main.selection.suite
        assert suite is not None and suite.file.suite is not None
        case = suite.file.suite.cases[-1]
        assert case.user == "Dim the bedroom."
        assert [call.tool for call in case.expected_calls()] == ["set_lights"]
        (planned,) = await app.run("r")
        assert planned.case == case


@pytest.mark.slow
async def test_a_case_that_is_not_toml_says_so_and_offers_the_toml(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=HOME)) as app:
        main = app.app.main
        suite = main.selection.suite
        assert suite is not None
        main.open_suites.change(suite, suite.document.with_block(0, suite.document.block(0) + "\nbroken ="), "typed")
        await app.settle()
        assert "This case is not TOML" in app.screen
        assert "o  shows the TOML" in app.screen


async def test_undo_goes_to_the_row_that_it_changes(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=HOME)) as app:
        await app.press("2")
        go(app, "repeats")
        await app.press("enter", "3", "enter", "home", "ctrl+z")
        current = app.app.main.query_one(FormView).page.current
        assert current is not None and current.place == ("repeats",)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["ctrl+z", "ctrl+y"])
async def test_undo_and_redo_close_a_field_that_refuses_and_change_nothing_behind_it(tmp_path: Path, key: str) -> None:
    async with opened(suites_in(tmp_path, smart_home=HOME), size=(160, 36)) as app:
        await app.press("2", "enter", "end", *"!!", "escape", "ctrl+z", "enter", "end", "X", "escape")
        if key == "ctrl+y":
            await app.press("ctrl+z")
        text = app.app.main.open_suites.suites[0].document.text
        go(app, "repeats")
        await app.press("enter", "x")
        assert app.app.main.case_pane.refused
        await app.press(key)
        assert "The field is as it was, and nothing else was" in app.screen
        await app.press("X")
        assert app.app.main.case_pane.typing is None
        assert app.app.main.open_suites.suites[0].document.text == text
        await app.press("enter")
        assert not app.app.main.case_pane.refused


async def test_at_40_by_10_a_value_is_edited(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=HOME), size=(40, 10)) as app:
        await app.press("2")
        go(app, "ordered", 0, "args", "brightness")
        await app.press("right", "right", "enter", "end", "0", "enter")
        suite = app.app.main.selection.suite
        assert suite is not None and "range = [5, 400]" in suite.document.text
        assert "5..400" in app.screen


async def test_an_id_is_typed_without_losing_the_field(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=HOME)) as app:
        await app.press("2", "full_stop")
        go(app, "id")
        await app.press("enter")
        await type_in(app, "film")
        suite = app.app.main.selection.suite
        assert suite is not None and suite.cases[0].id == "film"
        assert app.app.main.case_pane.typing


@pytest.mark.slow
async def test_an_empty_case_gets_its_message_in_the_form_and_then_what_it_expects(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=HOME)) as app:
        await app.press("n", "tab", "tab", "tab", *"Dim", "enter", "escape")
        await app.press("e", "end", *" Erase it: ", "r")
        suite = app.app.main.selection.suite
        assert suite is not None
        index = next(case.index for case in suite.cases if case.name == "Dim")
        assert suite.document.table(index)["user"] == "Dim Erase it: r", "no letter is a command"
        assert "Esc leave as it was" in app.screen and "Ctrl+Z undo" in app.screen
        await app.press("enter")
        current = app.app.main.query_one(FormView).page.current
        assert current is not None and current.kind == "more"
        await app.press("plus", "enter", "escape")
        assert 'tool = "set_lights"' in suite.document.block(index)


async def test_from_elsewhere_a_case_is_edited_at_its_message_and_here_at_the_cursor(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=HOME)) as app:
        form = app.app.main.query_one(FormView)
        await app.press("2", "end", "1", "e")
        assert form.typing and form.page.current is not None and form.page.current.place == ("user",)
        await app.press("escape")
        go(app, "tags")
        await app.press("e")
        assert form.typing and form.page.current.place == ("tags",)
