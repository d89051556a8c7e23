"""Unsaved changes outlive the app: they are offered at the next start, and go only when that is wanted."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from tests.tui.storage.test_saving import MINE, THEIRS, answer, drafts, edit
from workbench.authoring.open_suite import OpenSuite
from workbench.suite.drafts import Drafts
from workbench.suite.files import state_of
from workbench.tui.storage.dialogs import ChangedScreen, EarlierDraftScreen, UnsavedScreen


async def left_behind(suites: Path) -> None:
    """A session that ends with unsaved changes."""
    async with opened(suites) as app:
        edit(app)
        await app.press("q")
        await app.until(lambda: isinstance(app.app.screen, UnsavedScreen))
        await app.pilot.press("2")
        await app.until(lambda: app.app.return_code == 0)


def the_suite(app: Opened) -> OpenSuite:
    (suite,) = app.app.main.open_suites.suites
    return suite


async def test_what_was_kept_is_offered_and_taken_over(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    await left_behind(suites)
    async with opened(suites) as app:
        await app.until(lambda: isinstance(app.app.screen, EarlierDraftScreen) and "Esc" in app.screen)
        assert "1 line changed" in app.screen
        assert '+ name = "Film night"' in app.screen
        await answer(app, EarlierDraftScreen, "1")
        await app.until(lambda: the_suite(app).document.text == MINE)
        assert the_suite(app).dirty
        assert len(drafts(tmp_path)) == 1
        await app.press("ctrl+z")
        assert not the_suite(app).dirty
        assert drafts(tmp_path) == []


@pytest.mark.slow
async def test_what_is_thrown_away_is_gone_and_what_is_put_off_stays(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    await left_behind(suites)
    async with opened(suites) as app:
        await answer(app, EarlierDraftScreen, "escape")
        assert not the_suite(app).dirty
        assert len(drafts(tmp_path)) == 1
    async with opened(suites) as app:
        await answer(app, EarlierDraftScreen, "2")
        await app.until(lambda: "thrown away" in app.screen)
    assert drafts(tmp_path) == []


@pytest.mark.slow
async def test_a_draft_on_a_file_that_changed_since_is_asked_about_before_it_overwrites(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    await left_behind(suites)
    (suites / "smart_home.toml").write_text(THEIRS)
    async with opened(suites) as app:
        await app.until(lambda: isinstance(app.app.screen, EarlierDraftScreen))
        assert "has changed since" in app.screen
        await answer(app, EarlierDraftScreen, "1")
        await app.pilot.press("ctrl+s")
        await app.until(lambda: isinstance(app.app.screen, ChangedScreen))
        assert (suites / "smart_home.toml").read_text() == THEIRS


@pytest.mark.slow
async def test_of_two_drafts_on_different_texts_neither_overwrites_the_disk_unasked(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    file = suites / "smart_home.toml"
    for on_disk, text in ((SMART_HOME, MINE), (THEIRS, THEIRS.replace("Lights off", "Lamps off"))):
        file.write_text(on_disk)
        session = Drafts(tmp_path / "state" / "drafts")
        session.keep(file, on_disk, state_of(file), text)
        session.close()
    older, newer = sorted(drafts(tmp_path), key=lambda journal: len(journal.read_bytes().split(b"Sleep well")))
    os.utime(older, (1, 1))
    assert older != newer
    async with opened(suites) as app:
        await app.until(lambda: isinstance(app.app.screen, EarlierDraftScreen) and "Esc" in app.screen)
        first = app.app.screen
        await app.pilot.press("1")
        await app.until(lambda: isinstance(app.app.screen, EarlierDraftScreen) and app.app.screen is not first)
        assert "has changed since" in app.screen
        await answer(app, EarlierDraftScreen, "1")
        await app.until(lambda: the_suite(app).document.text == MINE)
        await app.pilot.press("ctrl+s")
        await app.until(lambda: isinstance(app.app.screen, ChangedScreen))
        assert file.read_text() == THEIRS


@pytest.mark.slow
async def test_drafts_are_offered_where_suites_are_reached_through_a_link(tmp_path: Path) -> None:
    suites_in(tmp_path, smart_home=SMART_HOME)
    (tmp_path / "link").symlink_to("suites")
    await left_behind(tmp_path / "link")
    async with opened(tmp_path / "link") as app:
        await answer(app, EarlierDraftScreen, "1")
        await app.until(lambda: the_suite(app).document.text == MINE)
        assert the_suite(app).path == tmp_path / "link" / "smart_home.toml"


async def test_typing_goes_on_when_the_current_folder_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    suites_in(here, smart_home=SMART_HOME)
    monkeypatch.chdir(here)
    async with opened(tmp_path / "suites", paths=[Path("suites")]) as app:
        suite = edit(app)
        here.rename(tmp_path / "away")
        shutil.rmtree(tmp_path / "away")
        edit(app, "Film night", "Cinema night")
        await app.pilot.press("ctrl+s")
        await app.until(lambda: "was not saved: the folder" in app.screen)
        assert suite.dirty
        await app.press("q")
        await app.until(lambda: isinstance(app.app.screen, UnsavedScreen))
        await app.pilot.press("2")
        await app.until(lambda: app.app.return_code == 0)
    assert len(drafts(tmp_path)) == 1


@pytest.mark.slow
async def test_a_draft_of_a_file_that_is_gone_is_offered_too(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME, other=SMART_HOME)
    async with opened(suites) as app:
        app.app.main.selection.select(suites / "smart_home.toml")
        edit(app)
    (suites / "smart_home.toml").unlink()
    async with opened(suites) as app:
        await app.until(lambda: isinstance(app.app.screen, EarlierDraftScreen))
        assert "no longer exists" in app.screen
        await answer(app, EarlierDraftScreen, "1")
        await app.until(lambda: bool(app.app.main.open_suites.dirty))
        assert "Film night" in app.screen
        await app.pilot.press("ctrl+s")
        await answer(app, ChangedScreen, "1")
        await app.until(lambda: not app.app.main.open_suites.dirty)
    assert (suites / "smart_home.toml").read_text() == MINE


@pytest.mark.slow
async def test_a_suite_that_never_was_on_the_disk_is_offered_too(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, other=SMART_HOME)
    async with opened(suites) as app:
        app.app.main.open_suites.add(OpenSuite.new(suites / "new.toml", MINE))
    async with opened(suites) as app:
        await app.until(lambda: isinstance(app.app.screen, EarlierDraftScreen) and "does not exist yet" in app.screen)
        assert app.screen.count("never saved") == 1
        await answer(app, EarlierDraftScreen, "1")
        await app.until(lambda: bool(app.app.main.open_suites.dirty))
        await app.press("ctrl+s")
        await app.until(lambda: (suites / "new.toml").exists())
    assert (suites / "new.toml").read_text() == MINE
    assert drafts(tmp_path) == []


async def test_discarding_leaves_nothing_behind(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        edit(app)
        await app.press("q")
        await app.until(lambda: isinstance(app.app.screen, UnsavedScreen))
        await app.pilot.press("3")
        await app.until(lambda: app.app.return_code == 0)
    assert drafts(tmp_path) == []
    assert (suites / "smart_home.toml").read_text() == SMART_HOME


@pytest.mark.slow
async def test_drafts_that_cannot_be_kept_are_said_once_and_typing_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        (tmp_path / "state").mkdir(exist_ok=True)
        (tmp_path / "state" / "drafts").write_text("in the way")
        suite = edit(app)
        await app.until(lambda: "unsaved changes cannot be backed up" in app.screen)
        await app.press("z")
        await app.until(lambda: "cannot be backed up" not in app.screen)
        edit(app, "Film night", "Cinema night")
        await app.settle()
        assert "cannot be backed up" not in app.screen
        assert "Cinema night" in suite.document.text
        await app.press("q")
        await app.until(lambda: isinstance(app.app.screen, UnsavedScreen) and "cannot be backed up" in app.screen)
        assert "keep as drafts" not in app.screen


async def test_a_draft_that_cannot_be_read_is_set_aside_and_said(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    folder = tmp_path / "state" / "drafts"
    folder.mkdir(parents=True)
    (folder / "s.draft").write_text("nonsense\n")
    async with opened(suites) as app:
        await app.until(lambda: "Unsaved changes from an earlier session cannot be read" in app.screen)
    assert [file.name for file in drafts(tmp_path)] == ["s.draft.damaged"]
