"""Suites and cases created, copied, renamed, moved and deleted in the tree, by keys and mouse."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, Opened, assert_golden, opened, suites_in
from workbench.show.glyphs import GLYPHS
from workbench.tui.storage.dialogs import UnsavedScreen
from workbench.tui.tree.view import SuiteTree

CHAINS = """
format = 1
name = "Chains"

[[cases]]
name = "Multiply, then divide"

[[cases.steps]]
user = "Calculate 15 * 23, then divide the result by 5"
tool = "calculate"

[[cases.steps]]
tool = "divide"

[[cases.steps]]
""".lstrip()


EMPTY = ("n", "tab", "tab", "tab")
"""Opens the line for new cases, and chooses the kind that is not run."""


def tree_of(app: Opened) -> list[str]:
    """Return the tree's rows without the folder."""
    return [row.label for row in app.app.main.selection.tree.rows[1:]]


def selected(app: Opened) -> str:
    row = app.app.main.selection.tree.selected
    return row.label if row is not None else ""


def text_of(app: Opened, name: str) -> str:
    return next(suite.document.text for suite in app.app.main.open_suites.suites if suite.path.name == name)


async def typed(app: Opened, text: str) -> None:
    """Take a text for the name that a dialog asks for."""
    app.app.screen.query_one("#name", Input).value = text
    await app.press("enter")


async def test_a_new_suite_is_asked_for_its_file_and_is_on_the_disk_once_it_is_saved(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        await app.press("home", "n")
        await typed(app, "smart_home")
        assert "already exists" in app.screen
        await typed(app, "office/mail")
        assert selected(app) == "mail"
        assert not (suites / "office").exists()
        await app.press(*EMPTY, *"First", "enter")
        assert tree_of(app)[:3] == ["office", "mail", "First"]
        assert text_of(app, "mail.toml").startswith('format = 1\nname = "Mail"')


async def test_a_case_is_moved_deleted_and_copied_and_its_suite_copied(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("alt+down")
        assert tree_of(app) == ["smart_home", "Lights off", "Movie night", "Nothing to do"]
        assert selected(app) == "Movie night"
        await app.press("J", "J")
        assert "This is the last case shown of its suite" in app.screen
        await app.press("K", "alt+up")
        assert text_of(app, "smart_home.toml") == SMART_HOME
        await app.press("delete", "escape")
        assert text_of(app, "smart_home.toml") == SMART_HOME
        await app.press("delete")
        lines = app.screen.splitlines()
        assert any("Delete the case Movie night?" in line for line in lines)
        assert any("Movie night" in line and "Delete" not in line for line in lines), "the case stays in sight"
        await app.press("enter")
        assert selected(app) == "Lights off"
        assert "Deleted Movie night; Ctrl+Z brings it back" in app.screen
        await app.press("ctrl+z")
        assert selected(app) == "Movie night"
        assert text_of(app, "smart_home.toml") == SMART_HOME
        await app.press("up", "d")
        assert selected(app) == "smart_home-2"
        assert text_of(app, "smart_home-2.toml") == SMART_HOME.replace('"Smart home"', '"Smart home 2"')
        app.app.main.selection.select(app.app.main.open_suites.suites[0].path, "movie-night")
        await app.press("d")
        assert selected(app) == "Movie night 2"
        await app.press("f2")
        await typed(app, "{save} it")
        assert tree_of(app)[:5] == ["smart_home", "Movie night", "{save} it", "Lights off", "Nothing to do"]
        assert text_of(app, "smart_home.toml").count("# A film, so the lights go down.") == 2
        await app.press("delete", "enter")
        assert "Deleted {save} it; Ctrl+Z brings it back" in app.screen, "no action is read into a name"


async def test_the_copy_of_a_folded_suite_is_folded_and_keys_on_it_say_how_to_unfold_it(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("home", "down", "left", "d")
        assert tree_of(app) == ["smart_home", "smart_home-2"]
        assert selected(app) == "smart_home-2"
        await app.press("down")
        assert "Folded: → unfolds it" in app.screen
        await app.press("right")
        assert len(tree_of(app)) == 5


async def test_a_case_goes_to_another_suite_and_says_what_that_lacks(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME, chains=CHAINS)) as app:
        main = app.app.main
        main.selection.select(next(suite.path for suite in main.open_suites.suites if suite.path.name == "chains.toml"))
        await app.press("down", "P", "enter")
        assert selected(app) == "Multiply, then divide"
        assert "No tool there is called calculate, divide" in " ".join(app.screen.split())
        assert "[[cases]]" not in text_of(app, "chains.toml")
        await app.press("ctrl+z")
        assert text_of(app, "smart_home.toml") == SMART_HOME


async def test_a_suite_is_deleted_after_a_question_and_kept_elsewhere(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME, chains=CHAINS)
    async with opened(suites) as app:
        main = app.app.main
        main.selection.select(suites / "smart_home.toml", "movie-night")
        await app.press("delete", "enter")
        main.selection.select(suites / "smart_home.toml")
        await app.press("delete")
        await app.press("escape")
        assert (suites / "smart_home.toml").exists()
        await app.press("delete")
        await app.press("1")
        await app.until(lambda: not (suites / "smart_home.toml").exists())
        deleted = app.app.program.folders.deleted
        assert (deleted / "smart_home.toml").read_text(encoding="utf-8") == SMART_HOME
        assert "Movie night" not in (deleted / "smart_home-unsaved.toml").read_text(encoding="utf-8")
        assert "Deleted smart_home.toml; it is kept as" in app.screen
        assert [suite.path.name for suite in main.open_suites.suites] == ["chains.toml"]


async def test_what_is_no_toml_cannot_be_restructured_and_says_so(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, broken="format = 1\na = ")) as app:
        for keys in (["n"], ["f2"]):
            await app.press("home", "down", *keys)
            assert "broken.toml is not TOML: correct its text first" in app.screen


@pytest.mark.slow
async def test_where_keys_do_nothing_they_say_why(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, chains=CHAINS)) as app:
        await app.press("home")
        for key in ("d", "f2", "K", "P", "delete"):
            await app.press(key)
            assert "Put the cursor on a suite or a case" in app.screen, key
        await app.press("end")
        for key in ("d", "delete", "J", "K", "P"):
            await app.press("2", "1", key)
            assert "Put the cursor on the case; its steps are changed in the form" in app.screen, key
        await app.press("left", "P")
        assert "There is no other suite to move it to; N makes one" in app.screen


async def test_recordings_and_texts_that_cannot_be_read_are_not_changed(tmp_path: Path) -> None:
    suites = suites_in(tmp_path)
    (suites / "latin.toml").write_bytes(b'format = 1\nname = "\xe9"\n')
    async with opened(suites) as app:
        await app.press("home", "down")
        for key in ("n", "d", "f2", "delete"):
            await app.press(key)
            assert "This file is not UTF-8: save it as UTF-8 in a text editor first" in app.screen, key


async def test_a_click_on_the_sign_folds_and_a_second_one_on_the_name_opens(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, chains=CHAINS)) as app:
        assert tree_of(app)[2:] == ["1 calculate", "2 divide", "3 no call"]
        await app.pilot.click("#suites", offset=(7, 2))
        assert tree_of(app) == ["chains", "Multiply, then divide"]
        await app.pilot.click("#suites", offset=(3, 1))
        assert tree_of(app) == ["chains"]
        await app.pilot.click("#suites", offset=(3, 1))
        await app.pilot.click("#suites", offset=(12, 2))
        await app.pilot.click("#suites", offset=(12, 2))
        await app.settle()
        assert app.app.main.pane == "case"


@pytest.mark.parametrize("size", first_of([(80, 24), (120, 36)], 1), ids=["80x24", "120x36"])
async def test_the_tree_looks_like_this(tmp_path: Path, size: tuple[int, int]) -> None:
    name = f"{size[0]}x{size[1]}"
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME, chains=CHAINS), size=size) as app:
        await app.press("end", "d", *EMPTY, *"A case with a rather long name", "enter", "escape")
        tree = "\n".join(line.split("│")[0].rstrip() for line in app.screen.split("\n")[1:14])
        assert_golden(tree, f"tree-{name}")


async def test_the_dialogs_can_be_used_on_the_smallest_screen(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME, chains=CHAINS), size=(40, 10)) as app:
        await app.press("1", "end", *EMPTY, *"New", "enter")
        assert selected(app) == "New"
        await app.press("escape", "1", "P")
        assert "chains.toml" in app.screen
        await app.press("enter")
        assert selected(app) == "New"
        await app.press("f2")
        await typed(app, "Newer")
        assert selected(app) == "Newer"


async def test_among_many_cases_a_key_draws_two_rows_of_the_tree_and_an_edit_its_own(tmp_path: Path) -> None:
    cases = "".join(f'\n[[cases]]\nname = "Case {number}"\nuser = "x"\n' for number in range(2_000))
    async with opened(suites_in(tmp_path, many=f'format = 1\nname = "Many"\n{cases}')) as app:
        await app.press("home", "down", "right", "down", "down")
        tree = app.app.main.query_one("#suites", SuiteTree)
        drawn = tree.rows_drawn
        await app.press("down")
        assert tree.rows_drawn - drawn == 2
        drawn = tree.rows_drawn
        await app.press("J")
        assert selected(app) == "Case 2"
        assert tree.rows_drawn - drawn <= 4


NO_NAMES = {
    "~nobody-of-that-name": "there is no home folder for ~nobody-of-that-name",
    "..": ".. is not a file name",
    "/": "/ is not a file name",
    "x" * 300: "xxx",
}


async def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        app.app.services.saver.save_as_soon(app.app.main.open_suites.suites[0])
        await app.until(lambda: app.app.screen is not app.app.main)
        for of_a_dot in (". is not a file name", "a new suite must be in"):
            for name, why in {".": of_a_dot, **NO_NAMES}.items():
                await typed(app, name)
                assert app.app.screen is not app.app.main, name
                assert f"│  {GLYPHS.warned} {why}" in app.screen
            await app.press("escape", "N")


INSERTED = SMART_HOME.replace(
    '[[cases]]\nname = "Lights', '[[cases]]\nname = "New"\nuser = "x"\n\n[[cases]]\nname = "Lights'
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("on_disk", "names"),
    [
        (INSERTED, ["Movie night", "New", "Renamed", "Nothing to do"]),
        (SMART_HOME[: SMART_HOME.index('[[cases]]\nname = "Lights')], ["Movie night"]),
    ],
)
async def test_what_is_renamed_is_the_case_that_was_asked_about_or_nothing(
    tmp_path: Path, on_disk: str, names: list[str]
) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        await app.press("down", "f2")
        (suites / "smart_home.toml").write_text(on_disk, encoding="utf-8")
        app.app.services.reader.read_soon()
        await app.settle()
        await typed(app, "Renamed")
        assert [case.name for case in app.app.main.open_suites.suites[0].cases] == names


@pytest.mark.slow
async def test_a_move_is_undone_in_both_suites_at_once_also_after_one_was_saved(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME, other=SMART_HOME)
    async with opened(suites) as app:
        home, other = app.app.main.open_suites.suites
        await app.press("P", "enter")
        app.app.main.selection.select(home.path)
        await app.press("ctrl+s")
        await app.until(lambda: not home.dirty)
        app.app.main.selection.select(other.path)
        await app.press("ctrl+z")
        assert home.document.text == other.document.text == SMART_HOME
        assert selected(app) == "Movie night"
        await app.pilot.press("ctrl+q")
        await app.until(lambda: isinstance(app.app.screen, UnsavedScreen))
        await app.press("escape", "ctrl+y")
        assert (len(home.cases), len(other.cases)) == (2, 4)


async def test_a_case_does_not_vanish_from_both_suites_by_undo(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME, other=SMART_HOME)
    async with opened(suites) as app:
        home, other = app.app.main.open_suites.suites
        await app.press("P", "enter")
        app.app.main.open_suites.change(home, home.document.with_header("name", "Our home"), "Typed")
        await app.press("ctrl+z")
        assert "home.toml, which the case came from, has changed since: undo there first (Ctrl+Z)" in app.screen
        assert len(other.cases) == 4


async def test_a_new_suite_in_a_folder_that_is_not_there_yet_is_saved_with_its_folder(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        await app.press("N")
        await typed(app, "abc/d/e")
        await app.press("ctrl+s")
        await app.until(lambda: "Saved in" in app.screen)
    assert (suites / "abc" / "d" / "e.toml").is_file()


async def test_n_in_the_form_of_a_suite_without_cases_makes_its_first_one_as_the_form_says(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, empty='format = 1\nname = "Empty"\n')) as app:
        await app.press("down", "2")
        assert "n makes the first one" in app.screen
        await app.press(*EMPTY, *"first", "enter")
        assert [case.name for case in app.app.main.selection.suite.cases] == ["first"]  # type: ignore[union-attr]
