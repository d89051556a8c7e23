"""A run that is held in the real program, which then ends in every way that there is: no process is left, no half file,
a terminal that was given back, and a recording that opens."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.sampled_rows import first_of
from tests.tools.processes import becomes_true, is_running, servers_of
from tests.tui.in_terminal import Terminal, assert_restored
from workbench.config.folders import bundled
from workbench.trajectory.events import Paused
from workbench.trajectory.recording import Recording, read_recording

SUITE = bundled("sample_suites") / "office.toml"


def held_after_a_real_call(terminal: Terminal) -> int:
    """Step to the result of an executed call. Return the process id of the tool server."""
    terminal.wait_for("Find the company vacation")
    for stop in ("the request of round 1", "before search_docs", "after the result of search_docs"):
        terminal.send("s")
        terminal.wait_for(stop)
    (server,) = servers_of(terminal.process.pid, "office_server.py")
    return server


def is_gone(*processes: int) -> bool:
    """Return whether all of these processes end soon."""
    asyncio.run(becomes_true(lambda: not any(map(is_running, processes))))
    return True


def recorded(folder: Path, ending: str) -> Recording:
    """The one recording in a folder, which holds nothing else."""
    (file,) = folder.iterdir()
    assert file.name == f"office.vacation-policy.offline.1{ending}"
    return read_recording(file)


def assert_nothing_half(state: Path) -> None:
    """No temporary file is left in the program's folders."""
    names = [file.name for file in state.rglob("*") if file.is_file() and file.parent.name != "recorded"]
    assert [name for name in names if name.startswith((".", "tmp")) or name.endswith((".tmp", ".part", "~"))] == []


def quit_twice(terminal: Terminal) -> None:
    """Quit, and mean it."""
    terminal.send("q")
    terminal.wait_for("q again stops and quits")
    terminal.send("q")


WAYS: dict[str, tuple[Callable[[Terminal], object], int]] = {
    "quitting": (quit_twice, 0),
    "SIGTERM": (lambda terminal: terminal.signal(signal.SIGTERM), 128 + signal.SIGTERM),
    "SIGHUP": (lambda terminal: terminal.signal(signal.SIGHUP), 128 + signal.SIGHUP),
    "a terminal that is closed": (lambda terminal: terminal.hang_up(), 128 + signal.SIGHUP),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", first_of(WAYS, 1))
def test_the_program_ends_while_a_run_is_held(tmp_path: Path, way: str) -> None:
    end, exit_code = WAYS[way]
    folder = tmp_path / "recorded"
    with Terminal([str(SUITE), "--record", str(folder)], tmp_path, columns=80, rows=24) as terminal:
        server = held_after_a_real_call(terminal)
        end(terminal)
        assert terminal.end() == exit_code
        assert is_gone(server)
        if way != "a terminal that is closed":
            assert_restored(terminal)
    recording = recorded(folder, ".run.jsonl")
    assert recording.complete
    assert recording.trajectory.finish is not None
    assert recording.trajectory.finish.reason == "stopped"
    assert_nothing_half(tmp_path)


@pytest.mark.slow
def test_a_run_that_the_command_line_had_held_ends_like_every_other(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    held = ["--case", "vacation-policy", "--break", "tool search_docs", "--record", str(folder)]
    with Terminal(["run", str(SUITE), *held], tmp_path, columns=80, rows=24) as terminal:
        terminal.wait_for("breakpoint: tool search_docs")
        (server,) = servers_of(terminal.process.pid, "office_server.py")
        terminal.signal(signal.SIGTERM)
        assert terminal.end() == 128 + signal.SIGTERM
        assert is_gone(server)
        assert_restored(terminal)
    assert recorded(folder, ".run.jsonl").complete
    assert_nothing_half(tmp_path)


@pytest.mark.slow
def test_a_killed_program_leaves_no_process_and_a_recording_that_opens(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    with Terminal([str(SUITE), "--record", str(folder)], tmp_path, columns=80, rows=24) as terminal:
        server = held_after_a_real_call(terminal)
        assert terminal.falls_silent(1.2), "nothing moves while everything waits for a person"
        terminal.signal(signal.SIGKILL)
        assert terminal.end() == -signal.SIGKILL
        assert is_gone(server)
    recording = recorded(folder, ".run.jsonl.part")
    assert not recording.complete
    assert isinstance(recording.events[-1].payload, Paused), "what it was held for is the last thing on the disk"
    (file,) = folder.iterdir()
    with Terminal([str(file)], tmp_path / "again", columns=80, rows=24) as terminal:
        terminal.wait_for("search_docs")
        terminal.send("3")
        terminal.wait_for("Vacation policy: Thirty days")
        terminal.send("q")
        assert terminal.end() == 0
    program = Program(tmp_path)
    graded = program.run("grade", str(file))
    assert "never ended" in graded.stdout + graded.stderr
    replayed = program.run("run", str(SUITE), "--case", "vacation-policy", "--model", f"replay:{file}")
    assert "search_docs" in replayed.stdout
    assert_nothing_half(tmp_path)
