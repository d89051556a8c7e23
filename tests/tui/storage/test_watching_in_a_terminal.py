"""The real program notices changes of files without a key, and writes nothing while nothing changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.apps import SMART_HOME, suites_in
from tests.tui.in_terminal import Terminal, assert_restored
from tests.tui.storage.test_watching import NEW, replace

IDLE_S = 3.0
"""Several looks at the files."""


@pytest.mark.slow
def test_what_others_write_appears_without_a_key_and_an_idle_screen_writes_nothing(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    with Terminal([str(suites)], tmp_path, columns=80, rows=24) as terminal:
        terminal.wait_for("Nothing to do")
        replace(suites / "home.toml", SMART_HOME + NEW)
        terminal.wait_for("home.toml changed on disk: 1 case added")
        terminal.wait_for("Rain")
        (suites / "later.toml").write_text(SMART_HOME)
        terminal.wait_for("later.toml new on disk: opened")
        terminal.wait_for(lambda: "opened" not in terminal.screen)
        assert terminal.falls_silent(IDLE_S)
        terminal.send("q")
        assert terminal.end() == 0
        assert_restored(terminal)
