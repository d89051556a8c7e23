"""Variants in the app: created from a prompt or a description, run next to the suite, compared and rerun."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from tests.tui.apps import MOVIE_NIGHT, SMART_HOME, Call, Opened, conversation, opened, suites_in
from tests.tui.comparison.test_compare import finish
from workbench.authoring.document import Document
from workbench.evaluation.options import AddedVariants, AppStart, RunOptions
from workbench.suite.variants import Variants
from workbench.tui.comparison.screen import CompareScreen
from workbench.tui.holds.fork_screen import ForkScreen
from workbench.tui.kit.questions import NameScreen
from workbench.tui.kit.text_editor import TextEditor
from workbench.tui.models.dialog import ModelsScreen
from workbench.tui.variants.maker import VariantScreen, VariantTextScreen

TERSE = '\n[[variants]]\nname = "terse"\nsystem = "Be terse."\n'
WITH_TERSE = SMART_HOME.replace("\n# A film", f"{TERSE}\n# A film")
RENAMED = """
[[variants]]
name = "renamed"
[[variants.changes]]
tool = "set_tv"
name = "television"
arguments = { power = "state" }
"""


async def made(app: Opened, key: str, text: str, name: str) -> VariantScreen:
    """Make a variant up to the question whether it is written."""
    await app.pilot.press(key)
    await app.until(lambda: isinstance(app.app.screen, VariantTextScreen))
    await app.press("ctrl+s")
    assert "This is the suite's own text" in app.screen
    app.app.screen.query_one(TextEditor).typed.set_text(text)
    await app.pilot.press("ctrl+s")
    await app.until(lambda: isinstance(app.app.screen, NameScreen))
    for typed in (f"a × {name}", name):
        app.app.screen.query_one("#name", Input).value = typed
        await app.press("enter")
    await app.until(lambda: isinstance(app.app.screen, VariantScreen))
    screen = app.app.screen
    assert isinstance(screen, VariantScreen)
    return screen


@pytest.mark.slow
async def test_another_prompt_is_written_run_beside_the_suite_compared_and_taken_back(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        await made(app, "V", "You switch lights. Be terse.", "terse")
        assert "- You are a smart home assistant." in app.screen and '+ name = "terse"' in app.screen
        runs = await app.run("1")
        assert [run.model for run in runs] == ["one", "one × terse", "two", "two × terse"]
        assert {run.written.name for run in runs} == {"Movie night"}
        assert [run.settings.system for run in runs[:2]] == [
            "You are a smart home assistant.",
            "You switch lights. Be terse.",
        ]
        for planned in runs:
            finish(app, planned, right=planned.variant is None)
        app.session.end_batch()
        await app.settle()
        screen = app.app.screen
        assert isinstance(screen, CompareScreen)
        assert screen.state.models == ("one", "one × terse", "two", "two × terse")
        again = await app.run("right", "r")
        assert [(run.model, run.written.name, run.model_of_suite) for run in again] == [
            ("one × terse", "Movie night", False)
        ]
        await app.press("escape")
        assert "one · two × terse" in app.screen
        suite = app.app.main.selection.suite
        assert suite is not None
        assert suite.document.text.replace('[[variants]]\nname = "terse"\n', "").count("# A film") == 1
        await app.press("u")
        assert suite.document.text == SMART_HOME


@pytest.mark.slow
async def test_who_does_not_write_a_variant_finds_its_text_and_name_again(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one",)) as app:
        await made(app, "V", "You switch lights.", "lights")
        await app.pilot.press("enter")
        await app.until(lambda: isinstance(app.app.screen, VariantTextScreen))
        assert "You switch lights." in app.screen
        await app.pilot.press("ctrl+s")
        await app.until(lambda: isinstance(app.app.screen, NameScreen))
        assert app.app.screen.query_one("#name", Input).value == "lights"
        await app.press("escape")
        await app.until(lambda: isinstance(app.app.screen, VariantTextScreen))
        await app.press("escape")
        suite = app.app.main.selection.suite
        assert suite is not None and suite.document.text == SMART_HOME


@pytest.mark.slow
async def test_another_description_is_tried_in_all_cases_and_undone_runs_keep_their_grades(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), size=(160, 48)) as app:
        await app.press("t", "down")
        await made(app, "V", "Dims.", "dims")
        await app.press("2")
        suite = app.app.main.selection.open_suites.suites[0]
        assert suite.file.suite is not None
        (variant,) = suite.file.suite.variants
        assert [(change.tool, change.description) for change in variant.changes] == [("set_lights", "Dims.")]
        await app.press("escape")
        assert not app._sessions
        await app.press("colon")
        for letter in "all variants":
            await app.pilot.press("space" if letter == " " else letter)
        runs = await app.run("enter")
        assert [run.model for run in runs[:2]] == ["offline", "offline × dims"] and len(runs) == 6
        for planned in runs:
            finish(app, planned, right=planned.variant is None or planned.written.name != "Movie night")
        app.session.end_batch()
        await app.settle()
        await app.press("escape", "u")
        book = app.app.main.selection.book
        movie = (suite.path, "movie-night")
        assert book.summary(movie).status == "passed"
        (lost,) = (run for run in book.runs_of(movie) if run.planned.variant is not None)
        assert lost.status == "failed" and not lost.matches_case(suite, suite.cases[0])
        why = await app.app.services.starter.run_targets([(suite.path, "movie-night", "offline × dims")], None)
        assert why is not None and "has no variant 'dims' any more" in why


async def test_variants_are_chosen_beside_models_and_change_no_figure_of_the_tree(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=WITH_TERSE)
    async with opened(suites, size=(80, 24)) as app:
        await app.press("m")
        screen = app.app.screen
        assert isinstance(screen, ModelsScreen) and "× terse" in app.screen
        row = next(at for at, row in enumerate(screen.state.rows) if row.variant)
        await app.press(*["down"] * row, "space", "enter")
        plain, varied = await app.run("r")
        assert (plain.model, varied.model) == ("offline", "offline × terse")
        finish(app, plain)
        finish(app, varied, right=False)
        app.session.end_batch()
        await app.settle()
        assert app.app.main.selection.book.summary((plain.file.path, "movie-night")).status == "passed"
        await app.press("3", "right")
        shown = app.app.main.selection.run
        assert shown is not None and shown.model == "offline × terse" and "terse" in app.screen
        (stepped,) = await app.run("s")
        assert stepped.model == "offline × terse" and app.session.until[-1] != "end"
        app.app.remember()
    async with opened(suites, size=(80, 24)) as app:
        await app.press("m")
        assert "[✓] × terse" in app.screen


async def test_grades_follow_what_a_variant_renames_and_its_forks_have_its_prompt(tmp_path: Path) -> None:
    folder = suites_in(tmp_path, home=WITH_TERSE.replace(TERSE, TERSE + RENAMED))
    async with opened(folder, size=(120, 36)) as app:
        app.app.main.selection.variants = Variants(all_of_them=True)
        runs = {run.model: run for run in await app.run("r")}
        right: list[Call] = [
            ("set_lights", {"room": "living room", "brightness": 20}),
            ("television", {"state": "on"}),
        ]
        renamed = runs["offline × renamed"]
        app.session.finish(renamed, conversation(renamed, right, "Done."))
        app.session.finish(runs["offline × terse"], conversation(runs["offline × terse"], MOVIE_NIGHT, "Done."))
        finish(app, runs["offline"])
        app.session.end_batch()
        await app.settle()
        selection = app.app.main.selection
        suite = selection.suite
        assert suite is not None
        shown = {run.model: run for run in selection.runs}
        assert shown["offline × renamed"].status == "passed"
        edited = suite.document.text.replace("[5, 40]", "[5, 15]").replace('"state"', '"power_state"')
        selection.open_suites.change(suite, Document.of(edited), "edited")
        await app.settle()
        assert {model: run.status for model, run in shown.items()}["offline × renamed"] == "failed"
        assert shown["offline × terse"].matches_case(suite, suite.cases[0])
        assert not shown["offline × renamed"].matches_case(suite, suite.cases[0])
        selection.choose_run(next(at for at, run in enumerate(selection.runs) if run.model == "offline × terse"))
        await app.press("3", "Y")
        assert isinstance(app.app.screen, ForkScreen) and "Be terse." in app.screen
        (fork,) = await app.run("enter")
        assert fork.fork is not None and fork.model == "offline × terse" and fork.settings.system == "Be terse."


async def test_variants_from_a_file_are_run_and_run_again_as_long_as_the_app_is_open(tmp_path: Path) -> None:
    curt = AddedVariants(({"name": "curt", "system": "Be curt."},), "curt.md")
    folder = suites_in(tmp_path, home=WITH_TERSE)
    options = RunOptions(suites=(str(folder),), cases=("movie-night",), added_variants=(curt,), compares=True)
    async with opened(folder, begin=AppStart(options, opens="compare")) as app:
        await app.until(lambda: bool(app._sessions))
        runs = list(app.session.runs)
        assert [run.model for run in runs] == ["offline", "offline × curt"]
        for planned in runs:
            finish(app, planned)
        app.session.end_batch()
        await app.settle()
        (again,) = await app.run("right", "r")
        assert again.model == "offline × curt" and again.settings.system == "Be curt."


async def test_the_comparison_in_hosts_names_the_host_that_fails_most(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one",), size=(160, 48)) as app:
        await app.press("colon")
        for letter in "run in hosts":
            await app.pilot.press("space" if letter == " " else letter)
        runs = await app.run("enter")
        hosts = [f"one × {name}" for name in ("no prompt", "concise assistant", "coding agent", "forty tools")]
        assert list(dict.fromkeys(run.model for run in runs)) == ["one", *hosts]
        for planned in runs:
            finish(app, planned, right=planned.model != hosts[-1])
        app.session.end_batch()
        await app.settle()
        screen = app.app.screen
        assert isinstance(screen, CompareScreen) and screen.state.models == ("one", *hosts)
        await app.until(lambda: "most failures with one × forty tools (" in app.screen)
        suite = app.app.main.selection.open_suites.suites[0]
        assert suite.document.text == SMART_HOME, "the library changes no file"
