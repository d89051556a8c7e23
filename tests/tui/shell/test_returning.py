"""Coming back: the app is found as it was left, as far as it is still there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, opened, suites_in
from workbench.evaluation.options import AppStart, RunOptions

OAK = 'extends = "graphite"\ntitle = "Oak"\n[colours]\naccent = "{}"\n'


async def test_a_project_is_shown_as_it_was_left(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, one=SMART_HOME, two=SMART_HOME)
    async with opened(suites) as app:
        await app.press("home", "down", "left", "end", "up")
        app.app.main.selection.models = ("offline", "gone:model")
        app.app.main.zoomed, app.app.main.case_pane.view = True, "toml"
        app.app.remember()
        left = app.app.main.selection.tree
        before = (left.selected and left.selected.key, [row.key for row in left.rows])
    async with opened(suites) as app:
        found = app.app.main.selection.tree
        assert (found.selected and found.selected.key, [row.key for row in found.rows]) == before
        assert (app.app.main.zoomed, app.app.main.case_pane.view) == (True, "toml")
        assert app.app.main.selection.models == (), "one of them is no model any more"


@pytest.mark.slow
async def test_another_project_is_not_touched_and_a_case_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, one=SMART_HOME)
    async with opened(suites) as app:
        await app.press("end")
        app.app.remember()
    (suites / "one.toml").write_text(SMART_HOME.replace("Nothing to do", "Nothing at all"))
    async with opened(suites) as app:
        assert app.app.main.selection.tree.selected is not None
        assert app.app.is_running
    async with opened(suites, paths=[suites / "one.toml"]) as app:
        selected = app.app.main.selection.tree.selected
        assert selected is not None
        assert selected.label == "Movie night"


@pytest.mark.slow
@pytest.mark.parametrize("models", first_of([("offline",), ()], 1))
async def test_the_models_of_the_command_line_are_for_that_start_only(tmp_path: Path, models: tuple[str, ...]) -> None:
    suites = suites_in(tmp_path, one=SMART_HOME)
    chosen = ("openai:o9", "openai:o10")
    async with opened(suites) as app:
        app.app.main.selection.models = chosen
        app.app.remember()
    # Without selected models, the first runs of an app use those of the suites.
    begin = None if models else AppStart(RunOptions(suites=(".",)), opens="compare")
    async with opened(suites, models=models, begin=begin) as app:
        assert app.app.main.selection.models == models
        app.app.remember()
    async with opened(suites) as app:
        assert app.app.main.selection.models == chosen


@pytest.mark.slow
async def test_models_that_are_chosen_instead_of_those_of_the_command_line_are_remembered(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, one=SMART_HOME)
    async with opened(suites, models=("offline",)) as app:
        await app.press("m", "escape")
        app.app.remember()
    async with opened(suites, models=("offline",)) as app:
        assert json.loads((tmp_path / "state" / "app.json").read_text())["projects"][str(suites)]["models"] == []
        await app.press("m", "enter")
        app.app.remember()
    async with opened(suites) as app:
        assert app.app.main.selection.models == ("offline",)


async def test_leaving_is_enough_to_be_remembered(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, one=SMART_HOME)
    async with opened(suites) as app:
        await app.press("down", "q")
        await app.until(lambda: not app.app.is_running)
    (project,) = json.loads((tmp_path / "state" / "app.json").read_text())["projects"].values()
    assert project["case"] == "lights-off"


@pytest.mark.slow
async def test_a_chosen_theme_is_kept_and_one_only_tried_is_not(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, one=SMART_HOME)
    async with opened(suites) as app:
        app.app.appearance.choose(app.app)
        await app.press("home", "escape")
    async with opened(suites) as app:
        assert app.app.theme == "graphite"
        app.app.appearance.choose(app.app)
        await app.press("home", "enter")
        chosen = app.app.theme
        assert chosen != "graphite"
    async with opened(suites) as app:
        assert app.app.theme == chosen
    async with opened(suites, environment={"COLORTERM": "", "TERM": "xterm"}) as app:
        assert app.app.theme == "sixteen", "this terminal has no colours for the other"


async def test_a_theme_of_ones_own_is_read_again_when_the_terminal_is_looked_at(tmp_path: Path) -> None:
    own = tmp_path / "state" / "config" / "themes"
    own.mkdir(parents=True)
    (own / "oak.toml").write_text(OAK.format("#112233"))
    async with opened(suites_in(tmp_path, one=SMART_HOME)) as app:
        app.app.theme = "oak"
        await app.settle()
        assert app.app.get_css_variables()["accent"].lower() == "#112233"
        (own / "oak.toml").write_text(OAK.format("#445566") + "\n")
        app.app.on_app_focus()
        await app.settle()
        assert app.app.get_css_variables()["accent"].lower() == "#445566"
        (own / "oak.toml").write_text("colours = 1")
        app.app.on_app_focus()
        await app.settle()
        assert app.app.theme == "oak"
        assert "oak.toml: colours must be a table" in " ".join(app.screen.split())


@pytest.mark.parametrize("content", first_of(["{", '{"format": 1, "view": "odd", "projects": {"": 5}}'], 1))
async def test_a_damaged_memory_is_no_reason_not_to_start(tmp_path: Path, content: str) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "app.json").write_text(content)
    async with opened(suites_in(tmp_path, one=SMART_HOME)) as app:
        assert "Movie night" in app.screen
