"""Whole sessions in a real terminal, with the real program, files and signals."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, assert_golden, is_golden, suites_in
from tests.tui.in_terminal import Terminal

SIZES = ((80, 24), (60, 20), (120, 36), (200, 60))
ENTER, ESC, DOWN = "\r", "\x1b", "\x1b[B"
HOME, END = "\x1b[H", "\x1b[F"
EMPTY = "\t\t\t"
"""Chooses, in the line for new cases, the kind that is not run."""

PAGE_DOWN, BACK_TAB = "\x1b[6~", "\x1b[Z"
CTRL_S, CTRL_Y, CTRL_Z = "\x13", "\x19", "\x1a"
PARAMETERS = (
    '{"type": "object", "required": ["room", "state"], "properties": '
    '{"room": {"type": "string", "enum": ["bathroom", "kitchen"]}, "state": {"type": "string", "enum": ["off", "on"]}}}'
)
REQUEST = "Turn on the light in the kitchen."

WRONG, RIGHT = 'room = "bathroom", state = "off"', 'room = "kitchen", state = "on"'

LIGHTS = f"""
format = 1
name = "Lights"
models = ["offline"]

[[tools]]
name = "set_light"
description = "Turn the light of a room on or off."
parameters = {PARAMETERS.replace('": ', '" = ')}
""".lstrip()

CASE = f"""
[[cases]]
name = "Kitchen light"
user = "{REQUEST}"

[[cases.ordered]]
tool = "set_light"
args = {{ {RIGHT} }}
"""


def escape(terminal: Terminal) -> None:
    """Leave a text field. Without a pause, earlier input would form one key with Esc."""
    terminal.wait_for(lambda: "Esc" in terminal.screen.splitlines()[-1])
    terminal.send(ESC)
    terminal.wait_for(lambda: "? keys" in terminal.screen.splitlines()[-1])


def quit_from(terminal: Terminal) -> None:
    terminal.send("q")
    assert terminal.end() == 0


@pytest.mark.parametrize("size", first_of(SIZES, 1), ids=lambda size: "x".join(map(str, size)))
def test_from_an_empty_folder_to_a_case_that_passes(tmp_path: Path, size: tuple[int, int]) -> None:
    columns, rows = size
    folder = tmp_path / "home"
    folder.mkdir()
    with Terminal(["."], tmp_path, folder=folder, columns=columns, rows=rows) as terminal:
        terminal.wait_for("No suites here.")
        terminal.wait_for("Enter  begins")

        terminal.send(f"Nlights{ENTER}")
        terminal.wait_for("New suite lights.toml")
        terminal.send(f"2{END}+{ENTER}set_light{ENTER}Turn the light of a room on or off.{ENTER}")
        terminal.wait_for("parameters")
        terminal.send(PARAMETERS)
        terminal.wait_for(PARAMETERS[-8:])  # all of it is typed
        terminal.send(ENTER)
        terminal.quiet(0.3)

        terminal.send(f"1n{EMPTY}{REQUEST}{ENTER}")
        terminal.wait_for("1 added")
        escape(terminal)
        terminal.send(f"e{ENTER}")
        terminal.wait_for("+ adds a call that you expect")
        terminal.send(f"+set_light{ENTER}")
        terminal.wait_for("state  is  off")
        terminal.send(HOME)  # wherever the form was scrolled to while it was typed in
        # What is found out about the case in the background comes and goes while it is typed in.
        with suppress(AssertionError):
            terminal.wait_for(lambda: is_golden(terminal.screen, f"journey-{columns}x{rows}"))
        assert_golden(terminal.screen, f"journey-{columns}x{rows}")

        terminal.send(CTRL_S)
        terminal.wait_for("Saved in lights.toml")
        before = (folder / "lights.toml").read_text()
        assert WRONG in before

        terminal.send("r3")
        terminal.wait_for('✗ expected "bathroom"')
        terminal.wait_for('✗ expected "off"')
        terminal.send("a")
        terminal.wait_for("Accept the run as the expectation?")
        terminal.send(ENTER)
        terminal.wait_for("regraded; was failed")
        terminal.send(CTRL_Z)
        terminal.wait_for("Undone:")
        terminal.send(CTRL_S)
        terminal.wait_for("There is nothing to save")
        terminal.send(CTRL_Y)
        terminal.wait_for("Redone:")
        assert (folder / "lights.toml").read_text() == before
        terminal.send(CTRL_S)
        terminal.wait_for("Saved in lights.toml")
        quit_from(terminal)
    assert (folder / "lights.toml").read_text() == before.replace(WRONG, RIGHT)

    with Terminal(["."], tmp_path, folder=folder, columns=columns, rows=rows) as terminal:
        terminal.wait_for("✗ Turn on")  # its last run, before it was corrected
        terminal.send("r3")
        terminal.wait_for("✓ passed 1.00")
        quit_from(terminal)


@pytest.mark.slow
def test_a_suite_that_was_never_saved_outlives_a_kill_while_typing(tmp_path: Path) -> None:
    folder = suites_in(tmp_path, lights=LIGHTS)
    with Terminal(["."], tmp_path, folder=folder, columns=80, rows=24) as terminal:
        terminal.wait_for("the suite has no cases")
        terminal.send(f"Nmore lights{ENTER}")
        terminal.wait_for("New suite more lights.toml")
        terminal.send(f"n{EMPTY}Good night{ENTER}{ESC}")
        terminal.wait_for("? keys")
        terminal.send(f"e{END}, all lights o")
        terminal.wait_for("all lights o")
        terminal.signal(signal.SIGKILL)
        assert terminal.end() == -signal.SIGKILL
    assert not (folder / "more lights.toml").exists()

    with Terminal(["."], tmp_path, folder=folder, columns=80, rows=24) as terminal:
        terminal.wait_for("Unsaved changes from an earlier session")
        terminal.wait_for("PgDn read on")
        terminal.send(PAGE_DOWN)
        terminal.wait_for("all lights o")
        terminal.wait_for("Esc later")
        terminal.send("1")
        terminal.wait_for("has its unsaved changes again")
        terminal.send("/night")
        terminal.wait_for("Good night")
        terminal.send(f"{ENTER}2{DOWN}e{END}ut.{ENTER}")
        terminal.wait_for("all lights out.")
        terminal.send(CTRL_S)
        terminal.wait_for("Saved in more lights.toml")
        quit_from(terminal)
    assert 'user = "Good night, all lights out."' in (folder / "more lights.toml").read_text()
    assert list(tmp_path.rglob("*.draft")) == []


@pytest.mark.slow
def test_a_hang_up_during_a_run_ends_it_and_keeps_what_was_typed(tmp_path: Path) -> None:
    folder = suites_in(tmp_path, lights=LIGHTS + CASE)
    file = folder / "lights.toml"
    with Terminal(["."], tmp_path, folder=folder, columns=80, rows=24) as terminal:
        terminal.wait_for("· Kitchen light")
        terminal.send(f"2e\x05!{ENTER}")
        terminal.wait_for("Kitchen light!")
        terminal.send("T")
        terminal.wait_for("Esc")
        terminal.send(f"\x15500{ENTER}")
        terminal.wait_for("running")
        terminal.wait_for("✓")
        terminal.hang_up()
        assert terminal.end() == 128 + signal.SIGHUP
    assert file.read_text() == LIGHTS + CASE

    with Terminal(["."], tmp_path, folder=folder, columns=80, rows=24) as terminal:
        terminal.wait_for("Unsaved changes from an earlier session")
        terminal.wait_for('+ name = "Kitchen light!"')
        terminal.wait_for("Esc later")
        terminal.send("1")
        terminal.wait_for("has its unsaved changes again")
        terminal.send(CTRL_Z)
        terminal.wait_for("Undone:")
        quit_from(terminal)
    assert file.read_text() == LIGHTS + CASE


def test_a_broken_file_is_mended_where_it_stands_and_runs(tmp_path: Path) -> None:
    whole = LIGHTS + CASE
    folder = suites_in(tmp_path, lights=whole.replace('kitchen."', "kitchen."))
    with Terminal(["."], tmp_path, folder=folder, columns=80, rows=24) as terminal:
        terminal.wait_for("1 problem")
        terminal.send("r")
        terminal.wait_for("This suite has errors")
        terminal.send("e")
        terminal.wait_for("F8 next problem")
        terminal.send(f'{END}"')
        terminal.wait_for("· Kitchen light")
        escape(terminal)
        terminal.send(CTRL_S)
        terminal.wait_for("Saved in lights.toml")
        terminal.send(f"1{DOWN}r3")
        terminal.wait_for("✓ passed 1.00")
        quit_from(terminal)
    assert (folder / "lights.toml").read_text() == whole


@pytest.mark.slow
def test_keys_that_arrive_all_at_once_do_what_they_do_one_by_one(tmp_path: Path) -> None:
    folder = suites_in(tmp_path, smart_home=SMART_HOME)
    with Terminal(["."], tmp_path, folder=folder, columns=80, rows=24) as terminal:
        terminal.wait_for("· Movie night")
        new = f"n{EMPTY}Dim the lights.{ENTER}{EMPTY}TV off.{ENTER}{BACK_TAB}"
        elsewhere = f"1Nother{ENTER}n{EMPTY}Only this.{ENTER}{CTRL_S}{BACK_TAB}"
        again = f"1/movie{ENTER}{DOWN}e{END}!{ENTER}{CTRL_S}q"
        terminal.send(new + elsewhere + again)
        assert terminal.end() == 0
    text = (folder / "smart_home.toml").read_text()
    assert 'name = "Dim the lights"\nuser = "Dim the lights."\n' in text
    assert 'name = "TV off"\nuser = "TV off."\n' in text
    assert 'user = "Only this."' in (folder / "other.toml").read_text()
