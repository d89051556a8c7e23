"""The palette: groups, keys in a column, recent commands, why something cannot be done, and fuzzy search."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from tests.tables import each_row
from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from workbench.show.spans import cells, plain
from workbench.tui.comparison.screen import CompareScreen
from workbench.tui.kit.actions import DEFAULT_KEYS
from workbench.tui.kit.help import HelpScreen
from workbench.tui.kit.memory import Memory
from workbench.tui.shell.actions import offered_actions
from workbench.tui.shell.palette import Palette, PaletteList, rows_of, sections_for


def palette_of(app: Opened) -> PaletteList:
    assert isinstance(app.app.screen, Palette)
    return app.app.screen.query_one(PaletteList)


def lines_of(app: Opened) -> list[str]:
    """The lines inside the box."""
    return [line.split("│")[-2].replace("┃", " ").rstrip() for line in app.screen.splitlines() if line.count("│") >= 2]


async def test_commands_stand_in_groups_with_their_keys_in_a_column(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(120, 48)) as app:
        await app.press("down", "down", "ctrl+p")
        lines = lines_of(app)
        assert lines[0].strip() == "Commands"
        assert lines.index("  Runs") + 1 == next(
            at for at, line in enumerate(lines) if line.split() == ["Run", "the", "case", "r"]
        )
        columns = {line.rindex(key) for line in lines for key in ("  r", "  R", "  m") if line.endswith(key)}
        assert len(columns) == 1
        assert palette_of(app).chosen_action is not None
        await app.press("down", "down", "up", "enter")
        await app.until(lambda: bool(app.session.runs))  # the whole suite


@pytest.mark.slow
async def test_what_cannot_be_done_stands_at_the_end_with_why(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(120, 48)) as app:
        await app.press("down", "down", "ctrl+p")
        entries = palette_of(app).entries
        reasons = [entry.why is None for entry in entries]
        assert reasons == sorted(reasons, reverse=True)
        await app.press("up")  # from the first to the last
        assert entries[-1].action is palette_of(app).chosen_action
        why = entries[-1].why
        assert why is not None and why in app.screen and "Not now" not in lines_of(app)[2]
        await app.press("enter")
        assert app.app.screen is app.app.main
        assert why[1:] in app.screen.splitlines()[-1]


@pytest.mark.slow
async def test_recent_commands_come_first_also_the_next_time_and_on_other_screens_only_their_own(
    tmp_path: Path,
) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, size=(120, 40)) as app:
        for words in ("zoom the", "keys and", "zoom the"):
            await app.press("ctrl+p", *words, "enter", "escape")
    async with opened(suites, size=(120, 40)) as app:
        await app.press("ctrl+p")
        assert [entry.action.id for entry in palette_of(app).entries[:2]] == ["zoom", "help"]
        assert lines_of(app)[3].strip() == "Recent"
        await app.press("escape", "down", "v")
        assert isinstance(app.app.screen, CompareScreen)
        await app.press("ctrl+p")
        assert "Recent" not in app.screen and "The comparison" in app.screen
    known = Memory(tmp_path / "state" / "app.json").read()
    assert known.commands == ("zoom", "help")


async def test_typing_finds_marks_and_ranks_and_says_when_nothing_is_found(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        await app.press("down", "down", "ctrl+p", *"run su")
        listed = palette_of(app)
        assert listed.entries[0].action.id == "run.suite"
        first = next(line for line in (listed.line_at(at) for at in range(5)) if "suite" in plain(line))
        assert [text for text, role in first if role == "heading"] == ["Run", "su"]
        await app.press(*"zzzq")
        assert "No command is called that" in app.screen and "0 of" in app.screen
        await app.press("enter", "up", "down", "pagedown", "pageup", "ctrl+end", "ctrl+home")
        assert isinstance(app.app.screen, Palette)
        await app.press("ctrl+u", *"keys and", "enter")
        assert isinstance(app.app.screen, HelpScreen)


@pytest.mark.slow
async def test_it_chooses_once_by_key_or_mouse_and_closes_once(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("ctrl+p", *"keys and")
        palette = app.app.screen
        assert isinstance(palette, Palette)
        for _ in range(3):
            palette.choose()
        await app.settle()
        assert [type(screen) for screen in app.app.screen_stack] == [type(app.app.main), HelpScreen]
        await app.press("escape", "ctrl+p", *"keys and")
        listed = palette_of(app)
        row = next(at for at in range(5) if "Keys and help" in plain(listed.line_at(at)))
        for y in (500, row):
            listed.post_message(events.Click(listed, 3, y, 0, 0, 1, False, False, False, 3, y, None))
        await app.settle()
        assert isinstance(app.app.screen, HelpScreen)


@pytest.mark.slow
async def test_it_takes_keys_that_come_in_one_burst_with_the_one_that_opens_it(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(40, 10)) as app:
        for key in ("pagedown", "pageup", "down", "ctrl+end", "end", "k", "backspace"):
            await app.press("ctrl+p", key)
            assert isinstance(app.app.screen, Palette)
            await app.press("escape")
            assert len(app.app.screen_stack) == 1


def test_titles_are_wrapped_and_never_cut() -> None:
    groups = offered_actions(None)
    names = {action.id: DEFAULT_KEYS.names(action) for _, actions in groups for action in actions}
    sections = sections_for(groups, ("zoom",), lambda action: "so it is" if action.id == "copy" else None, "")
    for width in (30, 44, 68, 88):
        assert all(cells(row.line) <= width for row in rows_of(sections, names, width))
    text = " ".join(word for row in rows_of(sections, names, 30) for word in plain(row.line).split())
    assert "Zoom the pane, z or end the zoom" in text and "…" not in text


@each_row(
    ("typed", "action"),
    [
        *[("env", "models"), ("key", "models"), ("endpoint", "models"), ("settings", "models"), ("model", "models")],
        *[("open", "reload"), ("new", "tree.new"), ("add", "tree.new"), ("import", "tree.new_suite")],
        *[("server", "tools"), ("mcp", "tools"), ("diff", "compare"), ("rerun", "run.failed"), ("retry", "run.failed")],
        *[("exit", "quit"), ("quit", "quit"), ("help", "help"), ("shortcuts", "help"), ("remove", "tree.delete")],
        *[
            ("dark", "theme"),
            ("screenshot", "picture"),
            ("cancel", "run.stop"),
            ("results", "history"),
            ("lint", "audit"),
        ],
    ],
)
def test_words_that_people_use_find_what_they_mean(typed: str, action: str) -> None:
    found = sections_for(offered_actions(None), (), lambda action: None, typed)
    assert action in [entry.action.id for section in found for entry in section.entries][:5]


def test_other_words_are_those_of_actions_are_shown_and_come_behind_beginnings_of_titles() -> None:
    groups = offered_actions(None)
    names = {action.id: DEFAULT_KEYS.names(action) for _, actions in groups for action in actions}
    (section,) = sections_for(groups, (), lambda action: None, "api ke")
    assert section.entries[0].action.id == "models"
    (row, *_) = rows_of([section], names, 88)
    assert "Choose models, or add one  api key" in plain(row.line)
    (section,) = sections_for(groups, (), lambda action: None, "compare")
    assert [entry.action.id for entry in section.entries][:2] == ["compare", "run.pair"]


async def test_a_colon_opens_it_and_is_text_where_text_is_typed(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("colon", *"exit")
        chosen = palette_of(app).chosen_action
        assert chosen is not None and chosen.id == "quit"
        await app.press("escape", "slash", "colon")
        assert app.app.screen is app.app.main and app.app.main.selection.tree.filter == ":"
