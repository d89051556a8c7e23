"""The user's own keys in the app: their effects, where they are shown, and messages about unusable ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.apps import SMART_HOME, opened, suites_in
from workbench.tui.kit.search_bar import SearchBar
from workbench.tui.tree.view import FilterBox


def with_keys(folder: Path, text: str) -> Path:
    """Write suites, and a `keys.toml` where the app looks for it."""
    config = folder / "state" / "config"
    config.mkdir(parents=True)
    (config / "keys.toml").write_text(text, encoding="utf-8")
    return suites_in(folder, smart_home=SMART_HOME)


@pytest.mark.slow
async def test_own_keys_work_and_are_shown_wherever_keys_are(tmp_path: Path) -> None:
    suites = with_keys(tmp_path, '[keys]\n"run.case" = ["f6"]\nzoom = ["Z"]\n"move.down" = ["j", "down"]\n')
    async with opened(suites) as app:
        assert "F6 run" in app.screen
        await app.press("z")
        assert not app.app.main.zoomed
        await app.press("Z", "Z", "j", "j", "r", "f6")
        await app.until(lambda: bool(app.session.runs))
        assert app.session.runs[0].case.name == "Nothing to do"
        await app.press("question_mark", "slash", *"down")
        assert "j ↓" in app.screen
        await app.press("escape", "escape", "ctrl+p", *"run the c")
        assert any("Run the case" in line and "F6" in line for line in app.screen.splitlines())


async def test_an_action_without_a_key_leaves_the_bar_and_stays_in_the_palette(tmp_path: Path) -> None:
    async with opened(with_keys(tmp_path, "[keys]\nzoom = []\n"), size=(200, 40)) as app:
        assert " zoom" not in app.screen.splitlines()[-1]
        await app.press("z")
        assert not app.app.main.zoomed
        await app.press("ctrl+p", *"zoom the", "enter")
        assert app.app.main.zoomed


async def test_another_key_for_the_filter_leaves_the_search_of_the_toml_its_own(tmp_path: Path) -> None:
    async with opened(with_keys(tmp_path, '[keys]\n"tree.filter" = ["f6", "/"]\n')) as app:
        box = app.app.main.query_one("#filter", FilterBox)
        for key in ("f6", "slash"):
            await app.press(key)
            assert app.app.focused is box
            await app.press("escape")
        await app.press("o", "2", "slash")
        assert app.app.focused is not box
        assert app.app.main.case_pane.toml.query(SearchBar)


async def test_the_palette_has_another_key_too(tmp_path: Path) -> None:
    async with opened(with_keys(tmp_path, '[keys]\npalette = ["f1"]\n')) as app:
        await app.press("ctrl+p")
        assert len(app.app.screen_stack) == 1
        await app.press("f1")
        assert len(app.app.screen_stack) == 2


@pytest.mark.slow
async def test_what_cannot_be_used_is_said_at_the_start_and_does_no_harm(tmp_path: Path) -> None:
    async with opened(with_keys(tmp_path, '[keys]\nzoom = "m"\ncopy = "hyper+x"\nhelp = "f1"\n')) as app:
        assert "keys.toml, line 2: zoom: m is yours, and no longer the key of 'models'" in " ".join(app.screen.split())
        said = " ".join(app.screen.split())
        assert "(the first of 2; all are in" in said
        assert "workbench.log)" in said
        await app.press("f1")
        assert "Keys" in app.screen


async def test_what_is_wrong_with_keys_is_said_before_what_is_wrong_with_themes(tmp_path: Path) -> None:
    suites = with_keys(tmp_path, '[keys]\nzoom = "m"\n')
    themes = tmp_path / "state" / "config" / "themes"
    themes.mkdir()
    (themes / "worse.toml").write_text("=")
    async with opened(suites) as app:
        assert "keys.toml, line 2" in " ".join(app.screen.split())
        assert "worse.toml" not in app.screen


async def test_the_hint_at_ctrl_c_names_the_keys_there_are(tmp_path: Path) -> None:
    async with opened(with_keys(tmp_path, '[keys]\nquit = []\nhelp = ["f1"]\n')) as app:
        await app.press("ctrl+c")
        assert app.screen.splitlines()[-1].strip() == "x stops the case, F1 shows all keys"


@pytest.mark.slow
async def test_keys_of_two_letters_and_half_pages_move_in_every_list_and_are_text_in_fields(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        tree = app.app.main.suite_tree
        rows = tree.line_count()
        for keys, at in (("g g", 0), ("G", rows - 1), ("ctrl+u", 0), ("j j k", 1), ("g j", 2), ("g g", 0)):
            await app.press(*keys.split())
            assert tree.cursor == at, keys
        await app.press("slash", *"gguuG")
        assert app.app.main.filter_box.value == "gguuG"


async def test_u_undoes_and_is_text_in_fields(tmp_path: Path) -> None:
    async with opened(with_keys(tmp_path, '[keys]\n"edit.undo" = ["u"]\n')) as app:
        suite = app.app.main.open_suites.suites[0]
        await app.press("d")
        assert suite.dirty
        await app.press("u")
        assert not suite.dirty
        await app.press("U")
        assert suite.dirty
        await app.press("slash", "u")
        assert suite.dirty
        assert app.app.main.filter_box.value == "u"


async def test_an_own_key_that_begins_a_default_one_acts_at_once(tmp_path: Path) -> None:
    async with opened(with_keys(tmp_path, '[keys]\nzoom = ["g"]\n')) as app:
        await app.press("g")
        assert app.app.main.zoomed


@pytest.mark.slow
async def test_messages_name_own_keys(tmp_path: Path) -> None:
    async with opened(
        with_keys(tmp_path, '[keys]\n"run.case" = ["f6"]\n"edit.undo" = ["f7"]\n'), size=(120, 40)
    ) as app:
        await app.press("a")
        assert "This case has not been run; F6 runs it" in app.screen
        await app.press("delete", "enter")
        assert "F7 brings it back" in app.screen
        await app.press("f7", "3", "question_mark", "slash", *"accept the whole")
        assert "not now: this case has not been run; F6 runs it" in app.screen
