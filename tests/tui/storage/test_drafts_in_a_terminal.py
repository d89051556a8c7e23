"""Unsaved text in the real program survives a kill and a dropped connection, and overwrites nothing unasked."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.tui.apps import SMART_HOME, suites_in
from tests.tui.in_terminal import Terminal

END = "\x1b[F"
CTRL_S = "\x13"
CTRL_Q = "\x11"


def typing(terminal: Terminal) -> None:
    """Type into the name of the first case, and see it."""
    terminal.wait_for("name         Movie night")
    for key in ("2", "\r"):
        terminal.quiet(0.2)
        terminal.send(key)
    terminal.quiet(0.2)
    terminal.send(f"{END}!! typed")
    terminal.wait_for("Movie night!! typed")


def taken_over_and_saved(suites: Path, state: Path) -> None:
    """Start again, take over the unsaved text, and save it."""
    with Terminal([str(suites)], state) as terminal:
        terminal.wait_for("Unsaved changes from an earlier session")
        terminal.wait_for('+ name = "Movie night!! typed"')
        terminal.wait_for("Esc later")
        terminal.send("1")
        terminal.wait_for("has its unsaved changes again")
        terminal.send(CTRL_S)
        terminal.wait_for("Saved in")
        terminal.send("q")
        assert terminal.end() == 0
    assert 'name = "Movie night!! typed"' in (suites / "smart_home.toml").read_text()
    assert list(state.rglob("*.draft")) == []


def test_a_kill_while_typing_loses_nothing(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    with Terminal([str(suites)], tmp_path) as terminal:
        typing(terminal)
        terminal.signal(signal.SIGKILL)
        assert terminal.end() == -signal.SIGKILL
    assert (suites / "smart_home.toml").read_text() == SMART_HOME
    taken_over_and_saved(suites, tmp_path)


@pytest.mark.slow
def test_a_dropped_connection_loses_nothing_and_asks_nothing(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    with Terminal([str(suites)], tmp_path) as terminal:
        typing(terminal)
        terminal.hang_up()
        assert terminal.end() == 128 + signal.SIGHUP
    taken_over_and_saved(suites, tmp_path)


@pytest.mark.slow
def test_a_file_that_changed_under_the_typing_is_not_overwritten(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    file = suites / "smart_home.toml"
    theirs = SMART_HOME.replace("Start movie night.", "Sleep well.")
    with Terminal([str(suites)], tmp_path, columns=80, rows=24) as terminal:
        typing(terminal)
        file.write_text(theirs)
        terminal.wait_for("changed on disk too: it is merged once you stop typing")
        terminal.send(CTRL_S)
        terminal.wait_for("Changed here and on disk")
        terminal.wait_for("Esc later")
        assert file.read_text() == theirs
        terminal.send("2")
        terminal.wait_for("merged with your changes")
        terminal.send(CTRL_Q)  # the field is still open
        assert terminal.end() == 0
    assert file.read_text() == theirs
