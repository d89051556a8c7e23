"""Reading again during other operations reverts nothing that was saved, made or deleted meanwhile."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from tests.tui.apps import SMART_HOME, Opened, ScriptedRuntime, opened, suites_in
from tests.tui.calm import Gate
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import Workspace, is_stale, open_workspace, reread_workspace
from workbench.config.model_book import ModelBook
from workbench.suite.files import FileState, save
from workbench.suite.project import Search
from workbench.suite.suite_file import SuiteFile, parse_suite
from workbench.tui.runs import start
from workbench.tui.shell import start as opening
from workbench.tui.storage import reload
from workbench.tui.storage import saver as saving
from workbench.tui.storage.dialogs import ChangedScreen

THEIRS = SMART_HOME.replace("Start movie night.", "Sleep well.")


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Holds back the results of reading, after the disk was read."""
    gate = Gate()

    def read(workspace: Workspace, models: ModelBook, search: Search) -> Workspace:
        found = reread_workspace(workspace, models, search)
        gate.wait()
        return found

    monkeypatch.setattr(reload, "reread_workspace", read)
    return gate


async def begun(app: Opened, gate: Gate) -> None:
    """Begin to read again, up to the point where the disk was read."""
    app.app.services.reader.read_soon()
    async with asyncio.timeout(20):
        while not gate.is_reached():
            await app.pilot.pause()


async def until(app: Opened, gate: Gate, suite: OpenSuite) -> None:
    """Wait until a suite is saved, while something else is still held."""
    async with asyncio.timeout(20):
        while suite.dirty:
            await app.pilot.pause()


async def test_what_was_saved_while_the_disk_was_read_is_not_taken_back(tmp_path: Path, slow_disk: Gate) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    async with opened(suites) as app:
        suite = app.app.main.open_suites.suites[0]
        app.app.main.open_suites.change(suite, suite.document.with_header("name", "Our home"), "Typed")
        await begun(app, slow_disk)
        await app.pilot.press("ctrl+s")
        await until(app, slow_disk, suite)
        slow_disk.open()
        await app.settle()
        assert 'name = "Our home"' in suite.document.text
        assert not suite.dirty


async def test_a_suite_made_while_the_disk_was_read_stays_in_the_tree(tmp_path: Path, slow_disk: Gate) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    async with opened(suites, paths=[suites / "home.toml"]) as app:
        await begun(app, slow_disk)
        app.app.main.open_suites.add(OpenSuite.new(suites / "fresh.toml", SMART_HOME))
        slow_disk.open()
        await app.settle()
        assert [row.label for row in app.app.main.selection.tree.rows if row.key.kind == "suite"] == ["home", "fresh"]
        assert app.app.screen is app.app.main


async def test_a_suite_deleted_while_the_disk_was_read_stays_away(tmp_path: Path, slow_disk: Gate) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME, other=SMART_HOME)
    async with opened(suites) as app:
        app.app.main.selection.select(suites / "other.toml")
        await begun(app, slow_disk)
        await app.pilot.press("delete")
        async with asyncio.timeout(20):
            while (suites / "other.toml").exists():
                await app.pilot.press("1")
        slow_disk.open()
        await app.until(lambda: len(app.app.main.open_suites.suites) == 1)
        await app.settle()
        assert [suite.path.name for suite in app.app.main.open_suites.suites] == ["home.toml"]


async def test_reading_again_before_the_suites_were_read_does_not_keep_them_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()

    def slowly(paths: list[Path], models: ModelBook, search: Search) -> Workspace:
        gate.wait()
        return open_workspace(paths, models, search)

    monkeypatch.setattr(opening, "open_workspace", slowly)
    monkeypatch.setattr(opening, "FIRST_PAINT_S", 0.001)
    monkeypatch.setattr(Opened, "settle", _paused)
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        await app.pilot.press("f5")
        gate.open()
        await app.until(lambda: bool(app.app.main.open_suites.suites))


async def _paused(app: Opened) -> None:
    await app.pilot.pause()


@pytest.mark.slow
async def test_nothing_is_asked_in_the_middle_of_a_word(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    async with opened(suites) as app:
        await app.press("2", "home", "e")
        assert app.app.main.case_pane.typing
        (suites / "home.toml").write_text(THEIRS, encoding="utf-8")
        await app.pilot.press(*"ab")
        await app.until(lambda: "it is merged once you stop typing" in app.screen)
        assert app.app.screen is app.app.main
        await app.pilot.press("enter", "ctrl+s")
        await app.until(lambda: isinstance(app.app.screen, ChangedScreen))


async def test_each_letter_of_a_sentence_puts_off_when_a_question_takes_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChangedScreen, "ANSWER_DELAY_S", 60.0)  # however slow this machine is, these keys come early
    suites = suites_in(tmp_path, home=SMART_HOME)
    async with opened(suites) as app:
        suite = app.app.main.open_suites.suites[0]
        app.app.main.open_suites.change(suite, suite.document.with_header("name", "Our home"), "Typed")
        (suites / "home.toml").write_text(SMART_HOME.replace("Smart home", "Home"), encoding="utf-8")
        app.app.services.reader.read_soon()
        await app.until(lambda: isinstance(app.app.screen, ChangedScreen))
        screen = app.app.screen
        assert isinstance(screen, ChangedScreen)
        resets: list[bool] = []
        rest = screen._delay_timer
        assert rest is not None
        rest.reset = lambda: resets.append(True)  # type: ignore[method-assign]
        await app.pilot.press("equals_sign", "r", "m")
        assert len(resets) == 3  # the rest begins anew with each of them, an answer or not
        assert app.app.screen is screen


async def test_two_keys_in_a_row_run_a_case_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()

    def slowly(file: SuiteFile) -> bool:
        gate.wait()
        return is_stale(file)

    monkeypatch.setattr(start, "is_stale", slowly)
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        await app.pilot.press("r", "r")
        gate.open()
        await app.until(lambda: bool(app._sessions) and not any(worker.group == "start" for worker in app.app.workers))
        assert [run.case.name for run in app.session.runs] == ["Movie night"]


@pytest.fixture
def slow_save(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Holds back the results of saving, after the disk was written."""
    gate = Gate()

    def write(path: Path, text: str, expected: FileState | None) -> FileState:
        state = save(path, text, expected)
        gate.wait()
        return state

    monkeypatch.setattr(saving, "save", write)
    return gate


async def test_a_suite_deleted_while_it_was_saved_stays_away(tmp_path: Path, slow_save: Gate) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME, other=SMART_HOME)
    async with opened(suites) as app:
        main, suite = app.app.main, app.app.main.open_suites.suites[0]
        main.open_suites.change(suite, suite.document.with_header("name", "Our home"), "Typed")
        await app.pilot.press("ctrl+s")
        await app.until(slow_save.is_reached)
        main.open_suites.close(suite)
        slow_save.open()
        await app.until(lambda: "Saved in" in app.screen)
        assert [file.path.name for file in main.open_suites.workspace.files] == ["other.toml"]


async def test_a_suite_that_is_typed_in_while_it_is_saved_is_read_off_the_loop(
    tmp_path: Path, slow_save: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def read(text: str, path: Path) -> SuiteFile:
        threads.append(threading.current_thread())
        return parse_suite(text, path)

    monkeypatch.setattr(saving, "parse_suite", read)
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        main, suite = app.app.main, app.app.main.open_suites.suites[0]
        main.open_suites.change(suite, suite.document.with_header("name", "Our home"), "Typed")
        await app.pilot.press("ctrl+s")
        await app.until(slow_save.is_reached)
        main.open_suites.change(suite, suite.document.with_header("name", "Her home"), "Typed")
        slow_save.open()
        await app.until(lambda: "Saved in" in app.screen)
        assert len(threads) == 1
        assert threads[0] is not threading.main_thread()
        assert suite.dirty
        assert 'name = "Our home"' in suite.disk.text


def test_a_suite_that_follows_the_disk_is_not_read_once_more(tmp_path: Path) -> None:
    path = tmp_path / "home.toml"
    suite = OpenSuite(parse_suite(SMART_HOME, path))
    suite.change(suite.document.with_header("name", "Our home"), "Typed")
    suite.undo()
    theirs = parse_suite(THEIRS, path)
    suite.reloaded(theirs, None)
    assert suite.document.text == THEIRS
    assert suite.file is theirs


async def test_what_was_started_is_under_way_before_the_engine_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScriptedRuntime, "start", lambda session, *what, **how: "batch-1")
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        await app.pilot.press("r")
        await app.until(lambda: not any(worker.group == "start" for worker in app.app.workers))
        assert [run.case_name for run in app.app.main.book.active_runs()] == ["Movie night"]
