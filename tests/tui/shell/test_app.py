"""The app as a person uses it: moving, filtering, looking, editing elsewhere, copying."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from textual import events
from textual._compositor import Compositor, ReflowResult
from textual.geometry import Size
from textual.widget import Widget

from tests.tui.apps import BROKEN, NEEDY, SMART_HOME, opened, suites_in
from tests.tui.in_terminal import Terminal
from workbench.grading.status import Status
from workbench.show.glyphs import GLYPHS, Sign
from workbench.tui.case.excerpt_view import CaseView
from workbench.tui.shell.main_screen import MainScreen


async def test_the_case_follows_the_tree_whose_branches_fold_and_a_pane_is_zoomed(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        assert app.app.main.selection.case is not None
        assert "Start movie night." in app.screen
        assert "Not run yet." in app.screen
        await app.press("down")
        assert "Switch the lights off." in app.screen
        await app.press("up", "up")
        assert "You are a smart home" in app.screen
        await app.press("down", "left", "left")
        assert "Movie night" not in app.screen.split("│")[0]
        assert "▸ smart_home" in app.screen
        assert "unfolds it" not in app.screen
        await app.press("down")
        assert "Folded: → unfolds it" in app.screen
        await app.press("right")
        assert "▾ smart_home" in app.screen
        await app.press("enter")
        assert "▸ smart_home" in app.screen
        await app.press("right", "down", "2", "z")
        assert "Not run yet." not in app.screen
        assert "▾ smart_home" not in app.screen
        await app.press("3")
        assert "Not run yet." in app.screen
        await app.press("escape")
        assert "▾ smart_home" in app.screen
        for width, height in ((60, 20), (200, 60), (80, 24), (40, 10), (120, 36)):
            await app.pilot.resize_terminal(width, height)
        await app.settle()
        assert "brightness" in app.screen
        assert "Not run yet." in app.screen


async def test_typing_filters_and_escape_brings_everything_back(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME, needy=NEEDY)) as app:
        await app.press("slash", *"evening")
        assert "Movie night" in app.screen
        assert "Lights off" not in app.screen
        assert "needy" not in app.screen
        await app.press("enter")
        assert app.app.main.pane == "suites"
        assert "Lights off" not in app.screen
        await app.press("escape")
        assert "Lights off" in app.screen
        await app.press("slash", *"rqxz")
        assert app.app.main.selection.tree.filter == "rqxz", "keys typed into the filter do nothing else"
        assert app.app.is_running


async def test_with_80_columns_the_right_pane_is_the_one_asked_for(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        assert "brightness" in app.screen
        await app.press("3")
        assert "Not run yet." in app.screen
        assert "Movie night" in app.screen
        await app.press("2")
        assert "brightness" in app.screen
        await app.press("tab", "tab")
        assert app.app.main.pane == "suites"


async def test_what_changed_on_disk_is_read_again_on_request(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        (suites / "smart_home.toml").write_text(SMART_HOME.replace("Lights off", "Lights out"), encoding="utf-8")
        await app.press("f5")
        assert "Lights out" in app.screen
        assert app.app.main.selection.case == (suites / "smart_home.toml", "movie-night")


async def test_a_suite_that_broke_says_so_after_reading_again(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        (suites / "smart_home.toml").write_text(BROKEN, encoding="utf-8")
        await app.press("f5")
        assert "2 problems" in app.screen
        await app.press("home", "down", "r")
        assert "This suite has errors" in app.screen


async def test_a_problem_in_the_tree_leads_to_its_line(tmp_path: Path) -> None:
    text = BROKEN.replace('name = "Broken"\n', 'name = "Broken"\n' + "# a comment\n" * 200 + "execute = True\n")
    async with opened(suites_in(tmp_path, broken=text)) as app:
        await app.press("o", "1", "down", "down", "down")
        assert app.app.main.query_one("#case", CaseView).top > 100
        assert "execute = True" in app.screen


async def test_help_opens_and_closes(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("question_mark")
        assert "R run suite" in app.screen
        await app.press("escape")
        assert isinstance(app.app.screen, MainScreen)


async def test_the_help_of_each_pane_and_all_signs_fit_one_page(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        for pane, last in (("1", "Delete the case"), ("2", "Show every key"), ("3", "Previous model or repeat")):
            await app.press(pane, "question_mark")
            texts = ["Here, in", "Everywhere", "Signs", last, *(f"{status.sign} {status}" for status in Status)]
            texts += [f"{sign} {sign.meaning}" for sign in vars(GLYPHS).values() if isinstance(sign, Sign)]
            assert [text for text in texts if text not in app.screen] == [], app.screen
            assert app.app.screen.query_one("#reading").max_scroll_y == 0, "nothing is below the page"
            await app.press("escape")


@pytest.mark.slow
async def test_the_help_shows_what_applies_first_and_is_searched(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(160, 48)) as app:
        await app.press("3", "question_mark")
        lines = [line.split("│") for line in app.screen.splitlines()]
        assert len(max((part for line in lines for part in line), key=len)) > 140, "it uses the width"
        assert app.screen.index("Here, in Run") < app.screen.index("Everywhere")
        (title,) = (line.index("Signs") for line in app.screen.splitlines() if "Signs" in line)
        of_signs = [line.index(GLYPHS.by_hand) for line in app.screen.splitlines() if GLYPHS.by_hand in line]
        assert of_signs == [title + 1], "the signs stay in one column"
        await app.press("slash", *"sorting")
        assert "In the comparison" in app.screen and "Switch the column's sorting" in app.screen
        assert "Run the case" not in app.screen
        await app.press("backspace", *"zzq")
        assert "No key and no action is called that" in app.screen
        await app.press("escape")
        assert "Here, in Run" in app.screen
        await app.press("slash", *"ctrl+y", "enter")
        assert "Redo" in app.screen and "not now: there is nothing to redo" in app.screen
        await app.press("escape")
        assert isinstance(app.app.screen, MainScreen)


async def test_a_folder_without_suites_says_what_a_suite_is(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path)) as app:
        assert "No suites here." in app.screen
        await app.press("r", "R", "e", "y", "enter", "x")
        assert app.app.is_running


async def test_without_a_path_and_without_suites_here_the_samples_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(suites_in(tmp_path))
    async with opened(tmp_path / "suites", paths=[]) as app:
        assert "sample suites" in app.screen
        assert "these are the samples" in app.screen


async def test_without_a_path_the_suites_of_the_current_folder_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(suites_in(tmp_path, smart_home=SMART_HOME))
    async with opened(tmp_path / "suites", paths=[]) as app:
        assert "▾ smart_home" in app.screen


async def test_a_path_that_is_not_there_is_a_problem_in_the_tree(tmp_path: Path) -> None:
    async with opened(tmp_path, paths=[tmp_path / "gone" / "lost.toml"]) as app:
        assert "there is no such file" in app.screen


async def test_the_name_of_a_file_that_is_not_there_begins_a_suite_that_is_written_when_it_is_saved(
    tmp_path: Path,
) -> None:
    file = tmp_path / "smart-lights.toml"
    async with opened(tmp_path, paths=[file], size=(160, 36)) as app:
        assert "New suite smart-lights.toml" in app.screen
        assert "Ctrl+S saves it as /" in app.screen
        assert "Smart lights" in app.screen
        await app.press("f5")
        assert "no such file" not in app.screen
        assert not file.exists()
        await app.press("ctrl+s")
        await app.until(file.exists)
        assert file.read_text() == (
            'format = 1\nname = "Smart lights"\nmodels = ["offline"]\n\n[grading]\nextra_calls = "allow_read_only"\n'
        )


@pytest.mark.slow
async def test_an_empty_folder_offers_a_suite_from_a_server_and_the_samples(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path)) as app:
        assert "No suites here." in app.screen
        await app.press("enter", "2")
        assert "A suite for an MCP server" in app.screen
        await app.press("ctrl+u", *"'uvx", "enter")
        assert "the command cannot be split into words: no closing quotation" in app.screen
        await app.press("home", "delete", "end", *" mcp-server-git", "enter")
        await app.until(lambda: "Asking git for its tools" in app.screen)
        await app.press("escape", "escape")
        assert app.app.open_suites.suites == ()
    other = tmp_path / "other"
    other.mkdir()
    async with opened(other) as app:
        await app.press("enter", "3")
        await app.until(lambda: "▾ office" in app.screen)


async def test_copying_says_where_it_went(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("y")
        assert "Copied the case's id to the terminal's clipboard (OSC 52)" in app.screen
        assert app.app.clipboard == "movie-night"
        await app.press("2", "o", "y")
        assert app.app.clipboard.startswith("# A film, so the lights go down.\n[[cases]]\n")


async def test_the_mouse_selects_folds_and_scrolls(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(120, 12)) as app:
        await app.pilot.click("#suites", offset=(8, 3))
        await app.settle()
        assert "Switch the lights off." in app.screen
        await app.pilot.click("#suites", offset=(4, 1))
        await app.pilot.click("#suites", offset=(4, 1))
        await app.settle()
        assert "▸ smart_home" in app.screen
        await app.pilot.click("#run-title", offset=(4, 0))
        await app.settle()
        assert app.app.main.pane == "run"


async def test_without_an_editor_the_key_says_which_variable_to_set(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), environment={"EDITOR": ""}) as app:
        await app.press("f4")
        assert "No editor was found: set VISUAL or EDITOR" in app.screen


LOADED = [sys.executable, "-m", "tests.tui.loaded"]

FIRST_SCREEN_WIDGETS = 29
"""Each costs a millisecond of the start, and of every change of theme."""


@pytest.mark.slow
def test_the_first_screen_loads_nothing_that_is_not_on_it(tmp_path: Path) -> None:
    suites, file = suites_in(tmp_path, smart_home=SMART_HOME), tmp_path / "loaded"
    with Terminal([str(file), str(suites)], tmp_path / "state", program=LOADED) as terminal:
        terminal.wait_for("Not run yet.")
        terminal.signal(signal.SIGTERM)
        terminal.end()
    loaded = set(file.read_text(encoding="utf-8").split())
    assert {"textual.app", "workbench.tui.shell.main_screen"} <= loaded
    screens = {name for name in loaded if name.startswith("workbench.tui.") and name.endswith("screen")}
    assert screens == {"workbench.tui.shell.main_screen"}
    not_yet = {
        *("openai", "anthropic", "mcp", "httpx2", "aiohttp", "jsonschema", "tomlkit", "rapidfuzz", "dateutil"),
        *("importlib.metadata", "email", "zipfile"),
        *("textual.widgets._text_area", "textual.document", "rich.syntax", "rich.markdown"),
        *(
            "workbench.engine.agent_loop",
            "workbench.engine.fork",
            "workbench.providers.model",
            "workbench.evaluation.runtime",
        ),
        *("workbench.grading.critics", "workbench.analysis"),
        *("workbench.providers.http", "workbench.providers.offline"),
        *("workbench.tui.kit.side_screen", "workbench.tui.kit.dialogs", "workbench.tui.acceptance.accept"),
        *("workbench.tui.tools.screen", "workbench.tui.terminal.screenshot", "workbench.show.difference"),
    }
    assert sorted(loaded & not_yet) == []


async def test_only_the_suite_that_is_shown_is_taken_apart_for_editing(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, first=SMART_HOME, second=SMART_HOME)) as app:
        taken_apart = [suite.path.stem for suite in app.app.open_suites.suites if "parts" in vars(suite.disk)]
        assert taken_apart == ["first"]


async def test_few_widgets_are_on_the_first_screen(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        assert len(app.app.main.walk_children()) <= FIRST_SCREEN_WIDGETS


async def test_sizes_that_come_while_frames_are_held_back_do_not_bring_each_other_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layouts = 0
    reflow = Compositor.reflow

    def counted(compositor: Compositor, parent: Widget, size: Size) -> ReflowResult:
        nonlocal layouts
        layouts += 1
        assert layouts < 50, "it lays out for ever"
        return reflow(compositor, parent, size)

    async with opened(suites_in(tmp_path, home=SMART_HOME), size=(100, 30)) as app:
        monkeypatch.setattr(Compositor, "reflow", counted)
        with app.app.batch_update():
            for size in (Size(80, 24), Size(120, 36), Size(80, 24)):
                app.app.main.post_message(events.Resize(size, size))
                app.app.main.call_later(lambda: None)  # two sizes that follow each other are one
            await app.pilot.pause()
        assert app.app.main.size == (100, 30)
