"""Files that other programs change while the app runs: noticed without a key, and merged with typed text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from tests.tui.storage.test_saving import drafts, edit
from workbench.authoring.open_suite import OpenSuite
from workbench.tui.storage.dialogs import ChangedScreen, SaveAsScreen

NEW = '\n[[cases]]\nname = "Rain"\nuser = "It rains."\n'
OFF = SMART_HOME.replace("Switch the lights off.", "Lights out!")


def selected(app: Opened) -> str:
    row = app.app.main.selection.row
    return row.label if row is not None else ""


def suite_of(app: Opened) -> OpenSuite:
    return app.app.main.open_suites.suites[0]


def replace(file: Path, text: str) -> None:
    """Write as many editors do: a new file takes the place of the old one."""
    new = file.with_name(".new.tmp")
    new.write_text(text)
    new.replace(file)


@pytest.mark.slow
async def test_an_unedited_suite_follows_its_file_and_the_cursor_stays(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    async with opened(suites, watches=True) as app:
        await app.press("down", "down")
        assert selected(app) == "Nothing to do"
        replace(
            suites / "home.toml", OFF.replace("# A film", "# The film").replace("[[cases]]", NEW + "\n[[cases]]", 1)
        )
        await app.until(lambda: "home.toml changed on disk: 2 cases changed, 1 added" in app.screen)
        assert selected(app) == "Nothing to do"
        assert "Rain" in app.screen


@pytest.mark.slow
async def test_files_that_come_and_go_are_seen(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    async with opened(suites, watches=True) as app:
        (suites / "pyproject.toml").write_text('[tool]\nname = "x"\n')
        (suites / "later.toml").write_text(SMART_HOME)
        await app.until(lambda: "later.toml new on disk: opened" in app.screen)
        assert [suite.path.name for suite in app.app.main.open_suites.suites] == ["home.toml", "later.toml"]
        (suites / "later.toml").unlink()
        await app.until(lambda: "later.toml no longer exists" in app.screen)
        assert [suite.path.name for suite in app.app.main.open_suites.suites] == ["home.toml"]


@pytest.mark.slow
async def test_what_was_typed_and_what_was_written_are_merged_as_one_step(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    file = suites / "home.toml"
    async with opened(suites, watches=True) as app:
        suite = edit(app)
        await app.press("down")
        replace(file, OFF + NEW)
        await app.until(lambda: "1 case changed, 1 added; merged with your changes, Ctrl+Z undoes it" in app.screen)
        both = (OFF + NEW).replace("Movie night", "Film night")
        assert (suite.document.text, suite.disk.text, suite.dirty) == (both, OFF + NEW, True)
        assert len(drafts(tmp_path)) == 1
        await app.press("ctrl+z")
        assert suite.document.text == SMART_HOME.replace("Movie night", "Film night")
        assert selected(app) == "Lights off"
        await app.pilot.press("ctrl+s")  # would take back what others wrote
        await app.until(lambda: isinstance(app.app.screen, ChangedScreen))
        await app.press("escape")
        await app.press("ctrl+y")
        assert suite.document.text == both
        await app.press("ctrl+s")
        await app.until(lambda: file.read_text() == both and not suite.dirty)


async def test_saving_merges_what_was_not_noticed_yet(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    async with opened(suites) as app:
        suite = edit(app)
        (suites / "home.toml").write_text(OFF)
        app.app.services.saver.save_soon([suite])
        await app.until(lambda: not suite.dirty)
        assert (suites / "home.toml").read_text() == OFF.replace("Movie night", "Film night")


@pytest.mark.slow
@pytest.mark.parametrize(("key", "user"), [("1", "Mine."), ("2", "Theirs.")])
async def test_only_what_both_changed_is_asked_about(tmp_path: Path, key: str, user: str) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    async with opened(suites, watches=True, size=(80, 24)) as app:
        suite = edit(app, "Start movie night.", "Mine.")
        edit(app, "Good night.", "Sleep.")
        mine = suite.document.text
        theirs = OFF.replace("Start movie night.", "Theirs.")
        replace(suites / "home.toml", theirs)
        await app.until(lambda: isinstance(app.app.screen, ChangedScreen) and "Esc" in app.screen)
        assert 'The case "Movie night" was changed here and changed on disk.' in app.screen
        assert '- user = "Theirs."' in app.screen and '+ user = "Mine."' in app.screen
        assert "Sleep." not in app.screen.split("Changed here and on disk")[1].split("keep mine")[0]
        await app.press(key)
        await app.until(lambda: app.app.screen is app.app.main)
        await app.until(lambda: "merged with your changes" in app.screen)
        assert suite.document.text == OFF.replace("Start movie night.", user).replace("Good night.", "Sleep.")
        assert (suites / "home.toml").read_text() == theirs
        await app.press("ctrl+z")
        assert suite.document.text == mine
        await app.press("ctrl+y", "ctrl+s")
        await app.until(lambda: not suite.dirty)
        assert (suites / "home.toml").read_text() == suite.document.text


@pytest.mark.slow
async def test_each_conflict_is_asked_about_and_later_leaves_everything_as_it_is(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    async with opened(suites, watches=True) as app:
        suite = edit(app, "Start movie night.", "Mine.")
        edit(app, "Good night.", "Sleep.")
        mine, theirs = suite.document.text, SMART_HOME.replace("night.", "day.")
        replace(suites / "home.toml", theirs)
        await app.until(lambda: isinstance(app.app.screen, ChangedScreen) and "(1 of 2)" in app.screen)
        await app.press("1")
        await app.until(lambda: "(2 of 2)" in app.screen)
        await app.press("escape")
        await app.until(lambda: "home.toml is not saved" in app.screen)
        assert (suite.document.text, suite.disk.text) == (mine, SMART_HOME)
        await app.pilot.press("ctrl+s")
        await app.until(lambda: "(1 of 2)" in app.screen)
        await app.press("2")
        await app.until(lambda: "(2 of 2)" in app.screen)
        await app.press("1")
        await app.until(lambda: not suite.dirty)
        assert (suites / "home.toml").read_text() == theirs.replace("Good day.", "Sleep.")


@pytest.mark.slow
async def test_mine_is_saved_elsewhere_instead_of_a_merge(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    async with opened(suites, watches=True) as app:
        mine = edit(app, "Good night.", "Mine.").document.text
        theirs = SMART_HOME.replace("Good night.", "Theirs.")
        replace(suites / "home.toml", theirs)
        await app.until(lambda: isinstance(app.app.screen, ChangedScreen) and "Esc" in app.screen)
        await app.press("3")
        await app.until(lambda: isinstance(app.app.screen, SaveAsScreen))
        await app.press("enter")
        await app.until(lambda: (suites / "home-2.toml").exists() and app.app.screen is app.app.main)
        assert ((suites / "home-2.toml").read_text(), suite_of(app).document.text) == (mine, theirs)


@pytest.mark.slow
async def test_a_file_that_is_broken_for_a_while_mends_itself(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    file = suites / "home.toml"
    async with opened(suites, watches=True) as app:
        await app.press("down")
        file.write_text(SMART_HOME.replace('"Lights off"', '"Lights'))
        await app.until(lambda: "1 cannot run" in app.screen)
        file.write_text(OFF)
        await app.until(lambda: selected(app) == "Lights off")
        assert "Lights out!" in app.screen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "said"),
    [(SMART_HOME.replace('"Lights off"', '"Lights'), "line 30 there is not TOML"), ("", "is empty on disk")],
)
async def test_a_draft_outlives_a_file_that_is_broken_for_a_while(tmp_path: Path, broken: str, said: str) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    file = suites / "home.toml"
    async with opened(suites, watches=True) as app:
        suite = edit(app)
        file.write_text(broken)
        await app.until(lambda: said in app.screen)
        assert "your changes are kept" in app.screen
        assert suite.document.text == SMART_HOME.replace("Movie night", "Film night")
        file.write_text(OFF)
        await app.until(lambda: suite.document.text == OFF.replace("Movie night", "Film night"))


@pytest.mark.slow
async def test_a_draft_outlives_its_file(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    file = suites / "home.toml"
    async with opened(suites, watches=True) as app:
        suite = edit(app)
        file.write_text("")
        await app.until(lambda: "is empty on disk" in app.screen)
        file.unlink()
        await app.until(lambda: "was deleted on disk: your changes are kept, Ctrl+S writes it again" in app.screen)
        assert app.app.screen is app.app.main and suite.dirty
        file.write_text(OFF)
        await app.until(lambda: suite.document.text == OFF.replace("Movie night", "Film night"))


@pytest.mark.slow
async def test_nothing_is_merged_below_what_is_being_typed(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    async with opened(suites, watches=True) as app:
        suite = edit(app)
        await app.press("2", "home", "e")
        assert app.app.main.case_pane.typing
        replace(suites / "home.toml", OFF)
        await app.until(lambda: "it is merged once you stop typing" in app.screen)
        assert "Lights out!" not in suite.document.text
        await app.pilot.press("escape")
        await app.until(lambda: "Lights out!" in suite.document.text)
