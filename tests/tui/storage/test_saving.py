"""Saving in the app: the file equals the displayed text, and other programs' changes are not overwritten unasked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual import events
from textual.widgets import Input

from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from tests.tui.calm import Gate
from workbench.authoring.document import Document
from workbench.authoring.open_suite import OpenSuite
from workbench.config.folders import bundled
from workbench.suite.files import FileState, save
from workbench.suite.suite_file import SuiteFile, load_suite
from workbench.tui.storage.dialogs import ChangedScreen, RewrittenScreen, SaveAsScreen, UnsavedScreen

MINE = SMART_HOME.replace("Movie night", "Film night")
THEIRS = SMART_HOME.replace("Start movie night.", "Sleep well.")


def edit(app: Opened, old: str = "Movie night", new: str = "Film night") -> OpenSuite:
    """Change the text of the selected suite, as an editor of it does."""
    suite = app.app.main.selection.suite
    assert suite is not None
    app.app.main.open_suites.change(suite, Document.of(suite.document.text.replace(old, new)), "Typed")
    return suite


async def answer(app: Opened, screen: type, *keys: str) -> None:
    """Wait for a question that takes keys by now, and press some."""
    await app.until(lambda: isinstance(app.app.screen, screen))
    await app.until(lambda: "Esc" in app.screen)
    await app.press(*keys)
    await app.until(lambda: app.app.screen is app.app.main)


def drafts(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "state" / "drafts").glob("*"))


async def test_a_suite_is_saved_to_the_byte_and_its_draft_is_gone(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME, other=SMART_HOME)
    async with opened(suites) as app:
        app.app.main.selection.select(suites / "smart_home.toml")
        await app.press("ctrl+s")
        assert "There is nothing to save" in app.screen
        suite = edit(app)
        assert len(drafts(tmp_path)) == 1
        await app.press("ctrl+s")
        await app.until(lambda: "Saved in" in app.screen)
        assert (suites / "smart_home.toml").read_text() == MINE
        assert not suite.dirty
        assert drafts(tmp_path) == []
        edit(app, "Film night", "Movie night")
        other = app.app.main.open_suites.suites[0]
        app.app.main.open_suites.change(other, Document.of(MINE), "Typed")
        await app.press("S")
        await app.until(lambda: "Saved 2 suites" in app.screen)
        assert (suites / "smart_home.toml").read_text() == SMART_HOME
        assert (suites / "other.toml").read_text() == MINE


async def test_text_that_is_not_toml_is_refused_with_its_line_and_stays_a_draft(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        suite = app.app.main.selection.suite
        assert suite is not None
        block = suite.document.block(0).replace('"Start movie night."', '"Start')
        app.app.main.open_suites.change(suite, suite.document.with_block(0, block), "Typed")
        await app.press("ctrl+s")
        await app.until(lambda: "was not saved: line 17" in app.screen)
        assert (suites / "smart_home.toml").read_text() == SMART_HOME
        assert len(drafts(tmp_path)) == 1


@pytest.mark.slow
async def test_what_could_not_be_kept_is_shown_before_it_is_written(tmp_path: Path) -> None:
    cases = '[\n  {name = "A", user = "Hi"},  # first\n  {name = "B", user = "Ho"},\n]\n'
    inline = f'format = 1\nname = "S"\n# by hand\ncases = {cases}'
    suites = suites_in(tmp_path, inline=inline)
    async with opened(suites) as app:
        suite = app.app.main.selection.suite
        assert suite is not None
        app.app.main.open_suites.change(suite, suite.document.without_case(0), "Deleted A")
        await app.press("ctrl+s")
        await app.until(lambda: isinstance(app.app.screen, RewrittenScreen))
        assert "first" in app.screen
        await app.press("escape")
        await app.until(lambda: "was not saved" in app.screen)
        assert (suites / "inline.toml").read_text() == inline
        await app.press("ctrl+s")
        await answer(app, RewrittenScreen, "1")
        await app.until(lambda: not suite.dirty)
        assert (suites / "inline.toml").read_text() == suite.document.text


async def conflicting(app: Opened, suites: Path) -> OpenSuite:
    """A suite that changed here and on the disk, asked about as it is saved."""
    suite = edit(app)
    (suites / "smart_home.toml").write_text(THEIRS)
    await app.pilot.press("ctrl+s")
    await app.until(lambda: isinstance(app.app.screen, ChangedScreen))
    await app.until(lambda: "Esc" in app.screen)
    assert '- user = "Sleep well."' in app.screen
    assert '+ name = "Film night"' in app.screen
    return suite


@pytest.mark.parametrize("size", first_of([(120, 36), (40, 10)], 1))
async def test_what_somebody_else_wrote_is_overwritten_only_knowingly(tmp_path: Path, size: tuple[int, int]) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, size=size) as app:
        suite = edit(app)
        (suites / "smart_home.toml").write_text(THEIRS)
        await app.pilot.press("ctrl+s")
        await app.until(lambda: isinstance(app.app.screen, ChangedScreen) and "Esc" in app.screen)
        assert (suites / "smart_home.toml").read_text() == THEIRS
        while isinstance(app.app.screen, ChangedScreen):
            await app.press("pagedown", "1")
        await app.until(lambda: not suite.dirty)
        assert (suites / "smart_home.toml").read_text() == MINE


async def test_the_disks_text_is_taken_and_can_be_undone(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        suite = await conflicting(app, suites)
        await app.press("2")
        await app.until(lambda: suite.document.text == THEIRS and not suite.dirty)
        assert drafts(tmp_path) == []
        await app.press("ctrl+z")
        assert suite.document.text == MINE
        assert suite.dirty
        assert len(drafts(tmp_path)) == 1
        await app.press("ctrl+s")
        await app.until(lambda: not suite.dirty)
        assert (suites / "smart_home.toml").read_text() == MINE


async def test_mine_is_saved_beside_the_disks(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        suite = await conflicting(app, suites)
        await app.press("3")
        await app.until(lambda: isinstance(app.app.screen, SaveAsScreen))
        await app.press("enter")
        await app.until(lambda: (suites / "smart_home-2.toml").exists() and app.app.screen is app.app.main)
        assert (suites / "smart_home-2.toml").read_text() == MINE
        assert (suites / "smart_home.toml").read_text() == suite.document.text == THEIRS
        await app.until(lambda: app.app.main.selection.suite is not suite)
        assert app.app.main.open_suites.dirty == ()
        assert drafts(tmp_path) == []


@pytest.mark.slow
async def test_what_is_put_off_is_not_looked_into_at_each_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        await conflicting(app, suites)
        await answer(app, ChangedScreen, "escape")
        looked: list[Path] = []

        def look(path: Path) -> SuiteFile:
            looked.append(path)
            return load_suite(path)

        monkeypatch.setattr("workbench.tui.storage.saver.load_suite", look)
        await app.press("down", "up")
        await app.until(lambda: not is_asking(app))
        assert looked == []
        app.app.services.reader.read_soon()
        await app.until(lambda: bool(looked) and not is_asking(app))
        assert app.app.screen is app.app.main


def is_asking(app: Opened) -> bool:
    """Return whether a question is being prepared. A displayed question does not count."""
    asking = any(worker.group == "ask" for worker in app.app.workers)
    return asking and not isinstance(app.app.screen, ChangedScreen)


@pytest.mark.slow
async def test_what_is_put_off_is_asked_about_again_when_it_is_saved(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        suite = await conflicting(app, suites)
        await app.press("3")
        await app.until(lambda: isinstance(app.app.screen, SaveAsScreen))
        await app.press("escape")
        await app.until(lambda: app.app.screen is app.app.main)
        await app.press("down", "up")
        assert app.app.screen is app.app.main
        assert suite.dirty
        await app.press("ctrl+s")
        await app.until(lambda: isinstance(app.app.screen, ChangedScreen))
        assert (suites / "smart_home.toml").read_text() == THEIRS


async def test_a_file_that_is_gone_can_be_written_again(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        suite = edit(app)
        (suites / "smart_home.toml").unlink()
        await app.pilot.press("down")
        await app.until(lambda: "was deleted on disk: your changes are kept, Ctrl+S writes it again" in app.screen)
        await app.pilot.press("ctrl+s")
        await app.until(lambda: isinstance(app.app.screen, ChangedScreen))
        assert "no longer exists on disk" in app.screen
        await answer(app, ChangedScreen, "1")
        await app.until(lambda: not suite.dirty)
        assert (suites / "smart_home.toml").read_text() == MINE


@pytest.mark.slow
async def test_an_untouched_suite_whose_file_is_gone_says_so_and_can_be_written_again(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    file = suites / "smart_home.toml"
    async with opened(suites, paths=[file]) as app:
        file.unlink()
        await app.press("down")
        await app.until(lambda: app.screen.count("the file no longer exists") == 2)
        await app.press("ctrl+s")
        assert "Ctrl+Z restores its text, then save it again" in app.screen
        await app.press("ctrl+z", "ctrl+s")
        await answer(app, ChangedScreen, "1")
        await app.until(file.exists)
        assert file.read_text() == SMART_HOME


async def test_an_untouched_suite_that_changed_is_read_again_at_the_next_key(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        (suites / "smart_home.toml").write_text(MINE)
        await app.press("down")
        await app.until(lambda: "Film night" in app.screen)
        assert "smart_home.toml changed on disk: 1 case changed" in app.screen


@pytest.mark.slow
async def test_coming_back_to_the_terminal_looks_at_all_suites(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, a=SMART_HOME, b=SMART_HOME)
    async with opened(suites) as app:
        edit(app)
        (suites / "a.toml").write_text(THEIRS)
        (suites / "b.toml").write_text(MINE)
        app.app.post_message(events.AppFocus())
        await answer(app, ChangedScreen, "escape")
        assert [suite.dirty for suite in app.app.main.open_suites.suites] == [True, False]
        assert app.app.main.open_suites.suites[1].file.text == MINE


async def test_a_run_begins_with_the_question_about_a_suite_that_changed_twice(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        edit(app)
        (suites / "smart_home.toml").write_text(THEIRS)
        app.app.services.saver.postponed.clear()
        suite = app.app.main.open_suites.suites[0]
        app.app.services.starter.run_soon([(suite, ("film-night",))])
        await answer(app, ChangedScreen, "2")
        await app.until(lambda: suite.document.text == THEIRS)


async def test_a_sample_is_saved_as_a_copy_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sample = bundled("sample_suites") / "weather.toml"
    before = sample.read_text()
    async with opened(tmp_path, paths=[sample]) as app:
        suite = app.app.main.open_suites.suites[0]
        app.app.main.open_suites.change(suite, Document.of("# my own\n" + before), "Typed")
        await app.press("ctrl+s")
        await app.until(lambda: isinstance(app.app.screen, SaveAsScreen))
        assert "came with the program" in app.screen
        await app.press("enter")
        await app.until(lambda: (tmp_path / "weather.toml").exists() and app.app.screen is app.app.main)
        await app.until(lambda: app.app.main.selection.suite is not suite)
        assert (tmp_path / "weather.toml").read_text() == "# my own\n" + before
        assert sample.read_text() == before
        assert str(app.app.main.selection.suite.path) == "weather.toml"  # type: ignore[union-attr]
        assert app.app.main.open_suites.dirty == ()


async def test_a_name_that_a_file_or_a_new_suite_has_is_refused(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, a=SMART_HOME, b=SMART_HOME)
    async with opened(suites) as app:
        edit(app)
        app.app.main.open_suites.add(OpenSuite.new(suites / "new.toml", MINE))
        app.app.services.saver.save_as_soon(app.app.main.open_suites.suites[0])
        await app.until(lambda: isinstance(app.app.screen, SaveAsScreen))
        app.app.screen.query_one("#name", Input).value = str(suites / "b")
        await app.press("enter")
        assert "b.toml already exists" in app.screen
        app.app.screen.query_one("#name", Input).value = str(suites / "new.toml")
        await app.press("enter")
        assert "new.toml is already open" in app.screen
        assert not (suites / "new.toml").exists()
        await app.press("escape")
        await app.until(lambda: "was not saved" in app.screen)
        assert (suites / "b.toml").read_text() == SMART_HOME


async def test_a_suite_that_is_saved_by_its_whole_path_stands_once_in_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites = suites_in(tmp_path, a=SMART_HOME)
    monkeypatch.chdir(tmp_path)
    async with opened(suites, paths=[Path("suites")]) as app:
        app.app.main.open_suites.add(OpenSuite.new(Path("suites/new.toml"), MINE))
        app.app.services.saver.save_as_soon(app.app.main.open_suites.suites[1])
        await app.until(lambda: isinstance(app.app.screen, SaveAsScreen))
        app.app.screen.query_one("#name", Input).value = str(suites / "new.toml")
        await app.press("enter")
        await app.until(lambda: app.app.main.open_suites.dirty == ())
        assert [suite.path for suite in app.app.main.open_suites.suites] == [
            Path("suites/a.toml"),
            Path("suites/new.toml"),
        ]


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Nothing is written before the gate is open."""
    gate = Gate()

    def slowly(path: Path, text: str, expected: FileState | None) -> FileState:
        gate.wait()
        return save(path, text, expected)

    monkeypatch.setattr("workbench.tui.storage.saver.save", slowly)
    yield gate
    gate.open()


async def test_what_is_typed_while_it_is_written_is_not_saved_and_stays_a_draft(
    tmp_path: Path, slow_disk: Gate
) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        suite = edit(app)
        app.app.services.saver.save_soon([suite])
        await app.pilot.pause()
        edit(app, "Film night", "Cinema night")
        slow_disk.open()
        await app.until(lambda: "Saved in" in app.screen)
        assert (suites / "smart_home.toml").read_text() == suite.disk.text == MINE
        assert suite.dirty
        assert "Cinema night" in suite.document.text
        assert len(drafts(tmp_path)) == 1


async def test_what_is_typed_while_it_is_saved_elsewhere_goes_along(tmp_path: Path, slow_disk: Gate) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        new = OpenSuite.new(suites / "new.toml", MINE)
        app.app.main.open_suites.add(new)
        app.app.main.selection.select(new.path)
        app.app.services.saver.save_as_soon(new)
        await app.until(lambda: isinstance(app.app.screen, SaveAsScreen))
        app.app.screen.query_one("#name", Input).value = str(suites / "other.toml")
        await app.press("enter")
        edit(app, "Film night", "Cinema night")
        slow_disk.open()
        await app.until(lambda: "Saved in" in app.screen)
        (suite,) = app.app.main.open_suites.dirty
        assert suite.path == suites / "other.toml"
        assert suite.path.read_text() == MINE
        assert suite.document.text == MINE.replace("Film night", "Cinema night")
        assert len(drafts(tmp_path)) == 1


async def test_an_undo_behind_what_was_read_again_is_saved_only_knowingly(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        suite = edit(app)
        await app.press("ctrl+z")
        (suites / "smart_home.toml").write_text(THEIRS)
        await app.press("f5")
        assert suite.document.text == THEIRS
        await app.press("ctrl+z", "down", "up")
        assert suite.document.text == SMART_HOME
        await app.pilot.press("ctrl+s")
        await app.until(lambda: isinstance(app.app.screen, ChangedScreen))
        assert (suites / "smart_home.toml").read_text() == THEIRS
        await answer(app, ChangedScreen, "1")
        await app.until(lambda: not suite.dirty)
        assert (suites / "smart_home.toml").read_text() == SMART_HOME


async def test_quitting_asks_only_when_something_is_not_saved(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        suite = edit(app)
        await app.press("q")
        await app.until(
            lambda: isinstance(app.app.screen, UnsavedScreen) and "1 suite with unsaved changes" in app.screen
        )
        await app.press("escape")
        await app.until(lambda: app.app.screen is app.app.main)
        assert app.app.return_code is None
        assert suite.dirty
        await app.press("q")
        await app.until(lambda: isinstance(app.app.screen, UnsavedScreen))
        await app.pilot.press("1")
        await app.until(lambda: app.app.return_code == 0)
    assert (suites / "smart_home.toml").read_text() == MINE
    async with opened(suites) as app:
        await app.pilot.press("q")
        await app.until(lambda: app.app.return_code == 0)
