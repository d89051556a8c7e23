"""The part of a multi-line paste that a field takes, and its message about the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events
from textual.widgets import Input

from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from workbench.limits import MAX_FILTER_CHARS
from workbench.tui.case.form.view import FormView
from workbench.tui.kit.dialogs import Dialog

LINES = "\n first\nsecond\n\nthird\n"


async def paste(app: Opened, text: str) -> str:
    """Paste, and return the screen."""
    app.app.post_message(events.Paste(text))
    await app.settle()
    return app.screen


@pytest.mark.slow
@pytest.mark.parametrize("keys", [["slash"], ["f2", "ctrl+u"], ["ctrl+p"], ["question_mark", "slash"], ["B", "a"]])
async def test_a_field_of_one_line_says_which_line_it_took(tmp_path: Path, keys: list[str]) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), size=(120, 36)) as app:
        await app.press("1", *keys)
        screen = app.app.screen
        shown = await paste(app, LINES)
        field = screen.focused
        assert isinstance(field, Input)
        assert field.value == " first", "the first line that is not blank"
        assert "Pasted the first of 3 lines: this field takes one line" in shown
        if isinstance(screen, Dialog):
            await app.press("x")
            assert "Pasted" not in app.screen and "Esc" in app.screen, "its keys are shown again"
        assert app.app.screen is screen
        field.value = ""
        await app.settle()
        assert "Pasted" not in await paste(app, "one\n") or not isinstance(screen, Dialog)
        assert field.value == "one"


@pytest.mark.slow
async def test_nothing_of_a_paste_is_lost_in_a_form_or_by_a_length(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), size=(120, 36)) as app:
        form, suite = app.app.main.query_one(FormView), app.app.main.open_suites.suites[0]
        await app.press("2")
        form.go_to(("name",))
        await app.press("e")
        assert "Pasted 3 lines as one: this field takes one line" in await paste(app, "a\nb\nc")
        assert suite.cases[0].name == "a b c"
        await app.press("alt+enter", "enter")
        assert suite.cases[0].name == "a b c"
        form.go_to(("user",))
        await app.press("e")
        assert "this field takes one line" not in await paste(app, "a\nb\nc")
        assert suite.document.table(0)["user"] == "a\nb\nc"
        await app.press("escape", "1", "slash", "x")
        assert f"this field takes at most {MAX_FILTER_CHARS} characters" in await paste(app, "a" * MAX_FILTER_CHARS)
        assert app.app.main.selection.tree.filter == "x"
