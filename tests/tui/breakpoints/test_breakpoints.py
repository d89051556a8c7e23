"""Breakpoints in the app: set at the cursor, listed, typed, stored, and sent to active runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from tests.tui.apps import MOVIE_NIGHT, SMART_HOME, Opened, conversation, opened, suites_in
from workbench.engine.breakpoints import Breakpoint, breakpoint_line
from workbench.show.glyphs import GLYPHS
from workbench.show.views.run_items import CallItem

LIGHTS = "tool set_lights"
AT_CALL = f"{GLYPHS.breakpoint} {GLYPHS.call} set_lights"


def lines(app: Opened) -> list[str]:
    return [
        f"{'' if each.enabled else 'off '}{breakpoint_line(each)}" for each in app.app.services.breakpoints.all.points
    ]


async def at_call(app: Opened) -> None:
    """Run a case to its end, and move the cursor to its call."""
    await app.press("down")
    (planned,) = await app.run("r")
    app.session.finish(planned, conversation(planned, MOVIE_NIGHT, "Done."))
    await app.settle()
    await app.press("3")
    run = app.app.main.run_pane.run_list
    assert run.lines is not None
    at = next(at for at, item in enumerate(run.lines.view.items) if isinstance(item, CallItem))
    run.move_cursor(run.lines.start_of(at))


async def test_b_sets_one_at_a_call_marks_it_and_takes_it_away_again(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), size=(160, 40)) as app:
        await at_call(app)
        await app.press("b")
        assert lines(app) == [LIGHTS]
        assert f"{GLYPHS.breakpoint} Breakpoint set: {LIGHTS}; B lists all" in app.screen
        assert AT_CALL in app.screen
        held_at = list(app.session.breakpoints)
        assert held_at == [Breakpoint("tool", "set_lights")], "runs under way are held there, too"
        await app.press("b")
        assert "Breakpoint removed" in app.screen
        assert AT_CALL not in app.screen
        assert not app.session.breakpoints


async def test_b_in_a_form_sets_one_at_the_call_or_the_argument(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), size=(160, 40)) as app:
        await app.press("down", "2")
        form = app.app.main.case_pane.query_one("#form")
        form.go_to(("ordered", 0, "args", "brightness"))  # type: ignore[attr-defined]
        await app.press("b")
        assert lines(app) == ["tool set_lights when { brightness = 0 }"]
        assert f"{GLYPHS.breakpoint} 1 set_lights" in app.screen
        form.go_to(("user",))  # type: ignore[attr-defined]
        await app.press("b")
        assert "No breakpoint was set: put the cursor on an expected call" in app.screen


async def test_b_in_the_tree_says_where_it_does_something_and_among_tools_it_does(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        await app.press("b")
        assert "in the run, put the cursor on a call" in app.screen
        await app.press("t", "home", "b")
        assert "Put the cursor on a tool" in app.screen
        await app.press("down", "b")
        assert lines(app) == [LIGHTS]
        assert f"Breakpoint set: {LIGHTS}" in app.screen


@pytest.mark.slow
async def test_breakpoints_are_kept_hold_every_run_and_are_there_again(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    async with opened(suites) as app:
        await app.press("B", "a", *"error", "enter", "a", *LIGHTS, "enter", "space")
        assert lines(app) == ["error", f"off {LIGHTS}"]
    async with opened(suites) as app:
        assert lines(app) == ["error", f"off {LIGHTS}"]
        await app.press("down")
        await app.run("r")
        assert app.session.breakpoints == app.app.services.breakpoints.all.points
        file = app.app.services.breakpoints.all.file
    assert file is not None
    file.path.write_text("error\nnonsense\n")
    async with opened(suites, size=(160, 40), paths=[suites / "home.toml"]) as app:
        assert "was damaged and renamed to" in app.screen
        assert lines(app) == ["error"]


@pytest.mark.slow
async def test_the_list_switches_changes_and_deletes_on_a_tiny_screen(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), size=(40, 10)) as app:
        await app.press("B")
        assert "No breakpoint is set." in app.screen
        await app.press("a", *"tool set_tv", "enter", "a", *"round 2", "enter", "minus")
        assert lines(app) == ["off tool set_tv", "off round 2"]
        await app.press("plus", "home", "e", *" when", "enter")
        assert "the condition is missing" in " ".join(app.screen.split())
        await app.press(*" { power = 1 }", "enter")
        assert lines(app) == ["tool set_tv when { power = 1 }", "round 2"]
        await app.press("e", "escape", "delete")
        assert lines(app) == ["round 2"]
        await app.press("escape", "escape")
        assert app.app.screen is app.app.main


async def test_kinds_and_tools_are_completed_while_one_is_typed(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        await app.press("B", "a", "tab", *"tv", "down", "enter", "enter")
        assert lines(app) == ["tool set_tv"]


async def test_completions_stand_next_to_the_line_that_is_typed(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), size=(80, 24)) as app:
        await app.press("B", "a")
        completions = app.app.screen.query_one("CompletionList")
        said = app.app.screen.query_one("#breakpoints-said")
        assert completions.region.height == len(completions.found)  # type: ignore[attr-defined]
        assert completions.region.bottom == said.region.y
        await app.press(*"tool ")
        assert completions.region.height == len(completions.found)  # type: ignore[attr-defined]
        assert completions.region.bottom == said.region.y


@pytest.mark.slow
async def test_what_may_never_hold_is_set_with_a_warning(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME.replace('tool = "set_tv"', 'tool = "set_radio"'))
    async with opened(suites, size=(160, 40)) as app:
        await app.press("B", "a", *"tool set_light", "enter")
        assert lines(app) == ["tool set_light"]
        assert 'no open suite has a known tool "set_light" (did you mean `set_lights`?)' in app.screen
        await app.press("a", *"error", "enter")
        assert "no open suite" not in app.screen
        await app.press("up")
        assert "no open suite" in app.screen
        await app.press("escape", "2")
        form = app.app.main.case_pane.query_one("#form")
        form.go_to(("ordered", 1, "args", "power"))  # type: ignore[attr-defined]
        await app.press("b")
        assert 'tool set_radio when { power = "on" }; but no open suite has a known tool "set_radio"' in app.screen


@pytest.mark.slow
async def test_what_changes_nothing_or_cannot_be_seen_is_said(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), size=(120, 30)) as app:
        await app.press("B", "a", *"error", "enter", "a", *"error", "enter")
        assert lines(app) == ["error"]
        assert "error already exists" in app.screen
        await app.press("delete")
        assert "Deleted: error" in app.screen
        await app.press("a")
        app.app.screen.query_one("#breakpoints-line").post_message(events.Paste(f"{LIGHTS}\nround 2"))
        await app.settle()
        assert "Pasted the first of 2 lines: this field takes one line" in app.screen
        await app.press("enter")
        assert lines(app) == [LIGHTS]


async def test_the_list_is_used_with_the_mouse(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
        await app.press("B")
        bar = app.app.screen.query_one("#breakpoints-keys")
        add = app.screen.splitlines()[-1].index("a add")
        await app.pilot.click(bar, offset=(add, 0))
        await app.settle()
        await app.pilot.click("CompletionList", offset=(3, 1))
        await app.press("enter")
        assert lines(app) == ["error"]
        await app.pilot.click("#breakpoints-list", offset=(5, 0))
        await app.settle()
        assert lines(app) == ["off error"]
