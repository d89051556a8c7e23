"""The real program in a real terminal, from the start to a graded run and the end, and its output in bytes."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, suites_in
from tests.tui.in_terminal import LEAVES, Terminal, assert_restored
from workbench.config.folders import bundled
from workbench.show.glyphs import GLYPHS
from workbench.tui.app import discard_stream
from workbench.tui.shell import shutdown

START_BYTES = 6_000
KEY_BYTES = 500
PANE_BYTES = 800
"""For going to another pane."""
DOWN = "\x1b[B"
F4 = "\x1bOS"
COLOURS = re.compile(rb"\x1b\[(?:\d+;)*(?:[34][0-7]|[34]8;[25];[\d;]+)m")


def twenty_cases(folder: Path) -> Path:
    cases = "".join(
        f'\n[[cases]]\nname = "Case number {number}"\nuser = "Do thing {number}, please."\n' for number in range(20)
    )
    return suites_in(folder, twenty=f'format = 1\nname = "Twenty"\n{cases}')


def test_from_the_start_to_a_graded_run_and_out_again(tmp_path: Path) -> None:
    samples = bundled("sample_suites")
    with Terminal([str(samples / "weather.toml")], tmp_path, columns=80, rows=24) as terminal:
        terminal.wait_for("ordered")
        terminal.send("r")
        terminal.wait_for("✓ passed 1.00")
        assert "offline (baseline)" in terminal.screen
        terminal.send("q")
        assert terminal.end() == 0
        assert_restored(terminal)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT], ids=lambda number: number.name
)
def test_a_signal_gives_the_terminal_back(tmp_path: Path, number: signal.Signals) -> None:
    with Terminal([str(suites_in(tmp_path, smart_home=SMART_HOME))], tmp_path) as terminal:
        terminal.wait_for("Not run yet.")
        terminal.signal(number)
        assert terminal.end() == 128 + number
        assert_restored(terminal)


@pytest.mark.slow
def test_a_signal_during_a_run_leaves_no_server_behind(tmp_path: Path) -> None:
    server = bundled("sample_suites") / "office_server.py"
    with Terminal([str(bundled("sample_suites") / "office.toml")], tmp_path, columns=80, rows=24) as terminal:
        terminal.wait_for("ordered")
        terminal.send("R")
        terminal.wait_for("on office")
        terminal.signal(signal.SIGTERM)
        assert terminal.end() == 128 + signal.SIGTERM
        children = [
            process for process in _command_lines() if str(server) in process and f"{terminal.process.pid}" in process
        ]
        assert not children
        assert_restored(terminal)


HANGS = {
    "the loop, and goes on": "HelpScreen.on_mount = lambda _: [None for _ in iter(int, 1)]",
    "the loop, and stands": "HelpScreen.on_mount = lambda _: time.sleep(600)",
    "the threads of the loop": """
def block(_):
    for _ in range(50):
        asyncio.get_running_loop().run_in_executor(None, lambda: time.sleep(600))

HelpScreen.on_mount = block
""",
    "a worker that cannot be cancelled": """
async def endless():
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(600)

HelpScreen.on_mount = lambda self: self.run_worker(endless())
""",
    "closing": "from workbench.tui.runs.runner import Runner as at\nat.close = lambda _: time.sleep(600)",
}


def asked(folder: Path) -> str:
    """Python that has the help leave a file when it is asked for, just before it hangs."""
    return f"""
from pathlib import Path
compose = HelpScreen.compose
HelpScreen.compose = lambda self: Path({str(folder / "asked")!r}).touch() or compose(self)
"""


@pytest.mark.parametrize("hang", first_of(HANGS, 1))
def test_a_signal_ends_the_program_and_gives_the_terminal_back_whatever_hangs(tmp_path: Path, hang: str) -> None:
    limits = "shutdown.MAX_ENDING_SECONDS, shutdown.ENDING_S, shutdown.ANSWER_S = 3, 1, 1"
    plant = "import asyncio, time\nfrom contextlib import suppress\nfrom workbench.tui.kit.help import HelpScreen\n"
    plant += f"from workbench.tui.shell import shutdown\n{limits}\n{HANGS[hang]}\n{asked(tmp_path)}"
    planted = tmp_path / "planted.py"
    planted.write_text(plant)
    with Terminal([str(suites_in(tmp_path, smart_home=SMART_HOME))], tmp_path, first=planted) as terminal:
        terminal.wait_for("Not run yet.")
        terminal.send("d")
        terminal.wait_for("Movie night 2")
        terminal.send("?")
        terminal.wait_for((tmp_path / "asked").exists)
        terminal.quiet(0.3)
        terminal.signal(signal.SIGTERM)
        assert terminal.end() == 128 + signal.SIGTERM
        assert_restored(terminal)
        assert "did not respond and was ended" in terminal.screen
        log = (tmp_path / "toolcall-workbench" / "log" / "workbench.log").read_text()
        assert "ended by force" in log
        assert "planted.py" in log
    with Terminal([str(tmp_path / "suites")], tmp_path) as terminal:
        terminal.wait_for("Unsaved changes from an earlier session")


@pytest.mark.slow
def test_a_hanging_app_ends_and_is_logged_when_the_connection_drops(tmp_path: Path) -> None:
    plant = "import time\nfrom workbench.tui.kit.help import HelpScreen\n"
    plant += f"{HANGS['the loop, and stands']}\n{asked(tmp_path)}"
    (tmp_path / "sitecustomize.py").write_text(plant)
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    with Terminal([str(suites_in(tmp_path, smart_home=SMART_HOME))], tmp_path, environment=environment) as terminal:
        terminal.wait_for("Not run yet.")
        terminal.send("?")
        terminal.wait_for((tmp_path / "asked").exists)
        terminal.quiet(0.3)
        terminal.hang_up()
        assert terminal.end() == 128 + signal.SIGHUP
    assert "ended by force" in (tmp_path / "toolcall-workbench" / "log" / "workbench.log").read_text()


def test_the_program_ends_within_twenty_seconds_after_a_signal() -> None:
    assert shutdown.MAX_ENDING_SECONDS + shutdown.HANG_REPORT_S < 20


def test_a_connection_that_drops_ends_the_program(tmp_path: Path) -> None:
    with Terminal([str(suites_in(tmp_path, smart_home=SMART_HOME))], tmp_path) as terminal:
        terminal.wait_for("Not run yet.")
        terminal.hang_up()
        assert terminal.end() == 128 + signal.SIGHUP


def test_what_is_left_for_a_terminal_that_is_gone_is_dropped() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        stream.write("the last words")
        os.close(reading)
        with pytest.raises(BrokenPipeError):
            stream.flush()
        discard_stream(stream)
        stream.flush()


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    with Terminal([str(suites_in(tmp_path, smart_home=SMART_HOME))], tmp_path) as terminal:
        terminal.wait_for("Not run yet.")
        terminal.send(b"\xff\xfe\x1b[M\xff\xe0\xe1\xc3(\x80")
        terminal.quiet(0.3)
        terminal.send(b"2")
        terminal.send(DOWN)
        terminal.quiet(0.3)
        terminal.send("q")
        assert terminal.end() == 0
        assert_restored(terminal)


@pytest.mark.slow
def test_a_pane_that_can_never_be_drawn_ends_the_app_with_one_line_and_a_restored_terminal(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    patch = "import workbench.tui.tree.lines as lines\nlines.GLYPHS = None\n"
    (broken / "sitecustomize.py").write_text(patch)
    environment = {"PYTHONPATH": os.pathsep.join([str(broken), os.environ.get("PYTHONPATH", "")])}
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    with Terminal([str(suites)], tmp_path, environment=environment) as terminal:
        terminal.wait_for("this cannot be drawn; the log")
        terminal.wait_for("Start movie night.")
        terminal.send("2")
        terminal.quiet(0.5)
        terminal.send("1")
        assert terminal.end() == 1
        assert_restored(terminal)
        said = bytes(terminal.output).rsplit(LEAVES, 1)[1].decode()
        assert said.count("\n") <= 3
        assert "workbench failed: AttributeError" in said
        assert "workbench.log" in said
        log = (tmp_path / "toolcall-workbench" / "log" / "workbench.log").read_text()
        assert "Traceback" in log


def test_the_gates_of_bytes(tmp_path: Path) -> None:
    """The bytes written at the start, when idle and at a key in the tree are always the same. Ctrl+L draws everything
    again."""
    with Terminal([str(twenty_cases(tmp_path))], tmp_path) as terminal:
        terminal.wait_for("Not run yet.")
        terminal.quiet(0.5)
        assert len(terminal.output) <= START_BYTES
        terminal.wait_for(GLYPHS.audit)  # the cases ask too little, which is found out once nothing else is to be done
        assert terminal.falls_silent(1.5), "an idle screen writes nothing"
        assert COLOURS.search(terminal.output)
        assert max(_bytes_of(terminal, key) for key in [DOWN] * 5) <= KEY_BYTES
        assert max(_bytes_of(terminal, pane) for pane in "231") <= PANE_BYTES
        before = terminal.screen
        terminal.wipe()  # as another program does that writes into this terminal
        terminal.send("\x0c")
        terminal.wait_for(lambda: terminal.screen == before)


def _bytes_of(terminal: Terminal, key: str) -> int:
    before = len(terminal.output)
    terminal.send(key)
    terminal.wait_for_more(than=before)
    terminal.quiet(0.2)
    return len(terminal.output) - before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("term", "used", "unknown"),
    [("xterm-256color", rb"\b48;5;\d", rb"\b[34]8;2;"), ("xterm", rb"\b9[1-6][;m]", rb"\b[34]8;[25];")],
)
def test_only_colours_that_the_terminal_has_are_written(tmp_path: Path, term: str, used: bytes, unknown: bytes) -> None:
    fewer = {"TERM": term, "COLORTERM": ""}
    with Terminal([str(twenty_cases(tmp_path))], tmp_path, environment=fewer) as terminal:
        terminal.wait_for("Not run yet.")
        terminal.wait_for(GLYPHS.audit)
        written = b"\n".join(re.findall(rb"\x1b\[[\d;]*m", terminal.output))
        assert re.search(used, written)
        assert not re.search(unknown, written)


def test_an_unknown_terminal_without_colours_can_be_used(tmp_path: Path) -> None:
    plain = {"TERM": "xterm", "COLORTERM": "", "NO_COLOR": "1"}
    with Terminal([str(suites_in(tmp_path, smart_home=SMART_HOME))], tmp_path, environment=plain) as terminal:
        terminal.wait_for("Not run yet.")
        terminal.send("r")
        terminal.wait_for("✗ Movie night")  # the run has finished
        assert not COLOURS.search(terminal.output)
        terminal.send("q")
        assert terminal.end() == 0


def test_the_users_editor_changes_a_case_and_what_it_says_is_taken_over(tmp_path: Path) -> None:
    editor = tmp_path / "vi"
    editor.write_text('#!/bin/sh\necho "$@" > "$0.called"\nsed -i "s/Movie night/Film night/" "$2"\n')
    editor.chmod(0o755)
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    with Terminal([str(suites)], tmp_path, environment={"EDITOR": str(editor)}) as terminal:
        terminal.wait_for("Not run yet.")
        terminal.send(F4)
        terminal.wait_for("Film night")
        line, file = (tmp_path / "vi.called").read_text().split()
        assert line == "+7", "at the warning of an order that `critics` does not look at"
        assert Path(file).name == "movie-night.toml"
        assert not Path(file).exists()
        assert (suites / "smart_home.toml").read_text() == SMART_HOME, "nothing is saved that was not asked for"
        terminal.send("\x1a")
        terminal.wait_for("Undone: Changing Movie night in your editor")
        terminal.send("q")
        assert terminal.end() == 0


def _command_lines() -> list[str]:
    """The command lines of all processes, each with its parent's number."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
            found.append(f"{parent} " + (folder / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found
