"""Whatever keys come, in whatever order: the app lives, every suite can be read, and undo leads back to the start."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.tui.apps import SMART_HOME, opened, suites_in
from workbench.tui.state.document import Document

KEYS = (
    *("down", "up", "left", "right", "home", "end", "pagedown", "enter", "enter", "escape", "tab", "shift+tab"),
    *("e", "n", "n", "d", "delete", "o", "G", "U", "J", "K", "full_stop", "1", "2", "2", "2", "3", "slash", "z", "N"),
    *("ctrl+z", "ctrl+y", "ctrl+t", "f2", "x", "5", "quotation_mark", "space", "backspace", "a", "A", "y", "M"),
    *("left_square_bracket", "equals_sign", "comma", "full_stop", "ctrl+u", "m", "t", "question_mark"),
)
LENGTH = 80


@pytest.mark.parametrize("seed", range(3))
async def test_any_keys_do_no_harm(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    async with opened(suites_in(tmp_path, home=SMART_HOME, second=SMART_HOME), size=(100, 30)) as app:
        pressed = []
        for _ in range(LENGTH):
            pressed.append(chosen.choice(KEYS))
            await app.pilot.press(pressed[-1])
        assert app.app.is_running, pressed
        for suite in app.app.main.desk.suites:
            assert suite.file is not None, pressed
            while suite.undo() is not None:
                assert Document.of(suite.document.text).text == suite.document.text
            assert suite.document.text == suite.disk.text, pressed
