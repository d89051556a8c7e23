"""A long search for suites shows its position and can be ended by a key, on the command line and in the app."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, suites_in
from tests.tui.in_terminal import Terminal, assert_restored
from workbench.evaluation.exit_codes import INTERRUPTED, OK

LONG = """
import itertools, os, time
walk, begun = os.walk, time.monotonic()
def walked(top):
    yield from walk(top)
    while "sample_suites" not in str(top) and (CONDITION):
        yield from walk(top)
os.walk = walked
"""
"""Searches a folder again and again as long as a condition holds."""
ENDLESS = LONG.replace("CONDITION", "True")

WORDS = {
    "validate": ["validate"],
    "run": ["run", "--model", "offline"],
    "tools": ["tools"],
    "models": ["models"],
}


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a suite, next to a folder of installed packages."""
    suites = suites_in(tmp_path, home=SMART_HOME)
    (suites / "venv").mkdir()
    (suites / "venv" / "pyvenv.cfg").touch()
    (suites / "venv" / "other.toml").write_text(SMART_HOME)
    return suites


@pytest.mark.parametrize("words", first_of(WORDS.values(), 1), ids=WORDS)
def test_ctrl_c_ends_a_long_search_of_a_command(installed: Path, tmp_path: Path, words: list[str]) -> None:
    (endless := tmp_path / "endless.py").write_text(ENDLESS)
    with Terminal([*words, str(installed)], tmp_path, columns=200, rows=24, first=endless) as terminal:
        terminal.wait_for("Ctrl+C stops: ")
        terminal.wait_for(f"suites found, searching {installed}")
        terminal.send("\x03")
        assert terminal.end() == INTERRUPTED
        assert "searching" not in terminal.screen and "Traceback" not in terminal.screen


@pytest.mark.slow
def test_without_a_terminal_a_long_search_writes_one_line(installed: Path, tmp_path: Path) -> None:
    said = Program(tmp_path).run(
        "validate", str(installed), first=LONG.replace("CONDITION", "time.monotonic() < begun + 1.5")
    )
    assert said.returncode == OK
    assert said.stderr.count(f"found, searching {installed} (Ctrl+C stops the search)\n") == 1


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_commands_say_which_folders_were_skipped(installed: Path, tmp_path: Path, words: list[str]) -> None:
    said = Program(tmp_path).run(*words, str(installed))
    skipped = f"1 folder of installed packages not searched: {installed / 'venv'} (give a folder to search it)\n"
    assert said.stderr.count(skipped) == 1


def test_quiet_commands_do_not(installed: Path, tmp_path: Path) -> None:
    assert Program(tmp_path).run("run", "--model", "offline", "--quiet", str(installed)).stderr == ""


@pytest.mark.slow
def test_the_app_stops_a_long_search_at_esc_and_does_not_begin_it_again(installed: Path, tmp_path: Path) -> None:
    (endless := tmp_path / "endless.py").write_text(ENDLESS)
    with Terminal([str(installed)], tmp_path, columns=200, rows=24, first=endless) as terminal:
        terminal.wait_for("Esc stops: ")
        terminal.wait_for(f"suites found, searching {installed}")
        terminal.send("\x1b")
        terminal.wait_for("Search stopped: 1 suite found until then")
        terminal.wait_for("Movie night")
        terminal.send("\x1b[15~")
        terminal.wait_for("Reloaded from disk")
        terminal.send("q")
        assert terminal.end() == 0
        assert_restored(terminal)


@pytest.mark.slow
def test_the_app_opens_the_samples_if_a_search_is_stopped_before_any_suite(tmp_path: Path) -> None:
    (endless := tmp_path / "endless.py").write_text(ENDLESS)
    (folder := tmp_path / "none").mkdir()
    with Terminal([str(folder)], tmp_path, columns=200, rows=24, first=endless) as terminal:
        terminal.wait_for("0 suites found, searching")
        terminal.send("\x1b")
        terminal.wait_for("Search stopped before any suite: these are the samples")
        terminal.wait_for("sample_suites")


def test_the_app_ends_during_a_search(installed: Path, tmp_path: Path) -> None:
    (endless := tmp_path / "endless.py").write_text(ENDLESS)
    with Terminal([str(installed)], tmp_path, first=endless) as terminal:
        terminal.wait_for("Esc stops: ")
        terminal.send("q")
        assert terminal.end() == 0


def test_the_app_says_which_folders_were_skipped(installed: Path, tmp_path: Path) -> None:
    with Terminal([str(installed)], tmp_path, columns=200, rows=24) as terminal:
        terminal.wait_for(f"1 folder of installed packages not searched: {installed / 'venv'}")


@pytest.mark.slow
def test_a_reload_whose_search_is_stopped_leaves_everything_as_it_is(installed: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    (first := tmp_path / "first.py").write_text(LONG.replace("CONDITION", f"os.path.exists({str(slow)!r})"))
    with Terminal([str(installed)], tmp_path, columns=200, rows=24, first=first) as terminal:
        terminal.wait_for("Movie night")
        slow.touch()
        terminal.send("\x1b[15~")
        terminal.wait_for("Esc stops: ")
        terminal.send("\x1b")
        terminal.wait_for("The search for suites was stopped: nothing was reloaded")
        assert "Movie night" in terminal.screen
