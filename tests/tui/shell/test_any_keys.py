"""Any keys in any order, with any changes of files: the app survives, suites equal their texts, each step of undo
undoes something, and unsaved changes are in the journals."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from textual import events

from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from workbench.authoring.open_suite import OpenSuite
from workbench.suite.drafts import Drafts
from workbench.suite.suite_file import SuiteFile, parse_suite
from workbench.tui.case.form.view import FormView

KEYS = (
    *("down", "up", "left", "right", "home", "end", "pagedown", "enter", "enter", "escape", "tab", "shift+tab"),
    *("e", "e", "n", "n", "d", "delete", "o", "G", "U", "J", "K", "full_stop", "1", "2", "2", "2", "3", "z", "N"),
    *("ctrl+z", "ctrl+z", "ctrl+y", "ctrl+t", "f2", "x", "5", "quotation_mark", "space", "backspace", "a", "A", "y"),
    *("left_square_bracket", "equals_sign", "comma", "full_stop", "ctrl+u", "m", "M", "t", "question_mark", "ctrl+s"),
)
FILTERS = ("evening", "movie", "status:never", "status:broken", "status:unsaved", "bad", "nowhere")
BROKEN = SMART_HOME.replace("format = 1", "format = 1\nrepeats = 0").replace('user = "Good night."', 'usr = "x"')
NOT_TOML = SMART_HOME.replace('name = "Smart home"', 'name = "Smart home')
CHARACTERS = {
    "full_stop": ".",
    "quotation_mark": '"',
    "left_square_bracket": "[",
    "equals_sign": "=",
    "comma": ",",
    "slash": "/",
    "space": " ",
    "question_mark": "?",
}
LENGTH = 25


def bursts(chosen: random.Random) -> list[str]:
    """One key most often, or several that lead somewhere: a filter, then typing; a row of the tree, then typing."""
    lot = chosen.random()
    if lot < 0.1:
        keep = chosen.choice(("enter", "enter", "escape"))
        return ["escape", "1", "slash", "ctrl+u", *chosen.choice(FILTERS), keep]
    if lot < 0.2:
        where = ["down"] * chosen.randrange(6)
        return ["escape", "1", "home", *where, "2", *["down"] * chosen.randrange(4), "e", chosen.choice("5x")]
    return [chosen.choice(KEYS)]


def said(file: SuiteFile) -> tuple[object, ...]:
    problems = sorted((problem.where, problem.message, problem.line or 0) for problem in file.problems)
    return file.text, file.suite, problems


def is_typed_in_what_is_selected(app: Opened) -> bool:
    """Return whether undo and saving apply to the suite that is typed in, and the form shows the selected case."""
    main = app.app.main
    pane, selected = main.case_pane, main.selection.suite
    if main.is_catching_up or pane.typing is None or selected is None:
        return main.is_catching_up or pane.typing is None
    if pane.typing == "toml":
        return pane.toml.part is not None and pane.toml.part.suite is selected
    source, row = main.query_one(FormView).page.source, main.selection.tree.selected
    assert source is not None and row is not None
    return source.table == selected.document.table(row.case.index if row.case is not None else -1)


def undone_and_done_again(suite: OpenSuite) -> list[str]:
    """Return the texts of a suite: from the last redo back to the beginning of its history, and forward again."""
    while suite.redo() is not None:
        pass
    texts = [suite.document.text]
    while suite.undo() is not None:
        texts.append(suite.document.text)
    while suite.redo() is not None:
        texts.append(suite.document.text)
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_any_keys_do_no_harm(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    size = chosen.choice([(40, 10), (80, 24), (120, 36)])
    folder = suites_in(tmp_path, home=SMART_HOME, second=SMART_HOME, bad=BROKEN, torn=NOT_TOML)
    pressed: list[str] = []
    async with opened(folder, size=size) as app:
        desk = app.app.main.open_suites
        for _ in range(LENGTH):
            if chosen.random() < 0.05:
                text = chosen.choice((SMART_HOME, BROKEN, NOT_TOML, SMART_HOME[: chosen.randrange(len(SMART_HOME))]))
                (folder / chosen.choice(("home.toml", "bad.toml"))).write_text(text, encoding="utf-8")
            keys = bursts(chosen)
            pressed += keys
            for key in keys:
                app.app.post_message(events.Key(key, CHARACTERS.get(key, key if len(key) == 1 else None)))
            await app.pilot.pause()
            assert app.app.is_running and app.app._exception is None, pressed
            assert app.app.screen is not app.app.main or is_typed_in_what_is_selected(app), pressed
        await app.settle()
        for suite in desk.suites:
            if suite.document.is_sound:
                assert said(suite.file) == said(parse_suite(suite.document.text, suite.path)), pressed
        unsaved = {suite.path.resolve(): suite.document.text for suite in desk.dirty}
        for suite in desk.suites:
            texts = undone_and_done_again(suite)
            assert texts == texts[::-1], pressed
            assert all(one != other for one, other in pairwise(texts)), pressed
    drafts = Drafts(tmp_path / "state" / "drafts")
    left = {draft.path.resolve(): draft.text for draft in drafts.recoverable([folder, Path()]).drafts}
    drafts.close()
    assert left == unsaved, pressed
