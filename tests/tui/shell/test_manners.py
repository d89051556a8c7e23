"""The real program in difficult terminals: stopped and continued, resized a hundred times, flooded, broken."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from tests.tui.apps import SMART_HOME, suites_in
from tests.tui.in_terminal import Terminal, assert_restored
from workbench.show.glyphs import GLYPHS

ENTERS, LEAVES, CURSOR_ON = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h"
UP, DOWN = "\x1b[A", "\x1b[B"


def is_stopped(terminal: Terminal) -> bool:
    status = Path(f"/proc/{terminal.process.pid}/stat").read_text()
    return status.rpartition(")")[2].split()[0] == "T"


def test_stopped_and_continued_the_terminal_is_given_back_and_drawn_anew(tmp_path: Path) -> None:
    with Terminal([str(suites_in(tmp_path, smart_home=SMART_HOME))], tmp_path) as terminal:
        terminal.wait_for("Not run yet.")
        terminal.wait_for(GLYPHS.audit)
        terminal.quiet(0.3)
        shown = terminal.screen
        terminal.signal(signal.SIGTSTP)
        terminal.wait_for(lambda: is_stopped(terminal))
        terminal.quiet(0.1)
        left = bytes(terminal.output)
        assert left.rindex(CURSOR_ON) > left.rindex(LEAVES) > left.rindex(ENTERS)
        for number in (signal.SIGCONT, signal.SIGSTOP, signal.SIGCONT, signal.SIGCONT):
            terminal.wipe()
            terminal.signal(number)
            if number is signal.SIGSTOP:  # which no program can see coming
                terminal.wait_for(lambda: is_stopped(terminal))
            else:
                terminal.wait_for(lambda: terminal.screen == shown)
                terminal.quiet(0.2)
        terminal.send(DOWN)
        terminal.wait_for("Switch the lights off.")
        terminal.send(UP)
        terminal.wait_for(lambda: terminal.screen == shown)
        terminal.send("q")
        assert terminal.end() == 0
        assert terminal.output.count(ENTERS) == terminal.output.count(LEAVES) == 4


@pytest.mark.slow
def test_ctrl_z_in_the_editor_does_not_stop_a_program_that_no_shell_resumes(tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text("#!/bin/sh\ntrap '' TSTP\necho editing; read line\n")
    editor.chmod(0o700)
    suites, environment = suites_in(tmp_path, smart_home=SMART_HOME), {"EDITOR": str(editor)}
    with Terminal([str(suites)], tmp_path, environment=environment) as terminal:
        terminal.wait_for("Not run yet.")
        terminal.send("\x1bOS")
        terminal.wait_for("editing")
        terminal.send("\x1a")
        terminal.wait_for("^Z")
        terminal.send("\n")
        terminal.wait_for("Not run yet.")
        terminal.send("q")
        assert terminal.end() == 0


@pytest.mark.slow
def test_after_a_storm_of_resizes_the_picture_is_right(tmp_path: Path) -> None:
    sizes = random.Random(4)
    with Terminal([str(suites_in(tmp_path, smart_home=SMART_HOME))], tmp_path, columns=120, rows=36) as terminal:
        terminal.wait_for("Not run yet.")
        terminal.wait_for(GLYPHS.audit)
        terminal.quiet(0.3)
        shown = terminal.screen
        for _ in range(100):
            terminal.resize(sizes.randint(1, 240), sizes.randint(1, 70))
            terminal.read(0.003)
        terminal.resize(120, 36)
        terminal.wait_for(lambda: terminal.screen == shown)
        terminal.send("q")
        assert terminal.end() == 0


@pytest.mark.slow
def test_a_megabyte_pasted_and_a_focus_that_comes_and_goes_do_no_harm(tmp_path: Path) -> None:
    with Terminal([str(suites_in(tmp_path, smart_home=SMART_HOME))], tmp_path, columns=80, rows=24) as terminal:
        terminal.wait_for("Start movie night.")
        terminal.send("\x1b[O\x1b[I" * 20)
        for keys, size in (("", 1_000), ("/", 80_000)):  # where nothing is typed, and where something is
            terminal.send(keys)
            terminal.send_all(b"\x1b[200~" + b"quit \xff\x1b[31mq\r" * size + b"\x1b[201~")
        terminal.wait_for("No case fits the")
        terminal.send("\x1b")
        terminal.wait_for(lambda: "No case fits the" not in terminal.screen and "Movie night" in terminal.screen)
        terminal.send("q")
        assert terminal.end() == 0


BREAKS = {
    "worker": "import workbench.authoring.workspace as at\ndef open_workspace(*_): raise ValueError('boom')\n"
    "at.open_workspace = open_workspace\n",
    "timer": "from workbench.tui.tree.background_audit import Auditor as at\nat._start = lambda _: 1 / 0\n",
    "dialog": "from workbench.tui.kit.help import HelpScreen as at\nat.on_mount = lambda _: 1 / 0\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("where", BREAKS)
def test_an_error_anywhere_is_said_in_one_line_and_the_third_in_a_row_ends_the_app(tmp_path: Path, where: str) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(BREAKS[where])
    environment = {"PYTHONPATH": os.pathsep.join([str(broken), os.environ.get("PYTHONPATH", "")])}
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    with Terminal([str(suites)], tmp_path, environment=environment) as terminal:
        if where == "dialog":
            terminal.wait_for("Not run yet.")
            terminal.send("?")
        terminal.wait_for("Something failed, and the rest still works")
        terminal.wait_for("details in")
        log = tmp_path / "toolcall-workbench" / "log" / "workbench.log"
        assert log.read_text().count("Traceback") >= 1
        if where != "dialog":
            terminal.send("q")
            assert terminal.end() == 0
            assert_restored(terminal)
            return
        terminal.send("??")
        assert terminal.end() == 1
        assert_restored(terminal)
        said = bytes(terminal.output).rpartition(LEAVES)[2].decode()
        assert said.count("\n") <= 3
        assert "workbench failed: ZeroDivisionError" in said
        assert log.read_text().count("Traceback") == 3


@pytest.mark.slow
def test_a_flood_of_what_is_no_key_is_over_at_once(tmp_path: Path) -> None:
    with Terminal([str(suites_in(tmp_path, smart_home=SMART_HOME))], tmp_path) as terminal:
        terminal.wait_for("Not run yet.")
        terminal.send_all(b"\0\xc2\x9b" * 1_000_000 + b"?")
        terminal.wait_for("search all keys")
