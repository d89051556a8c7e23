"""Interrupted batches of the real program, for tests of resuming."""

from __future__ import annotations

import signal
import subprocess

from tests.cli.forking import ForkedProgram
from tests.cli.program import Program, read_until, wait_until
from tests.cli.suites import WEATHER, WRONG
from workbench.history.history import History

WAITING = """
[[cases]]
name = "Waiting"
user = "What is the weather in Bergen?"
mocks = [{ tool = "get_weather", result = "late", delay_ms = 1 }]
[[cases.ordered]]
tool = "get_weather"
args = { city = "Bergen" }
"""
"""A case that never ends if mocks are `STUCK`, and otherwise ends at once."""

STUCK = """
from asyncio import Event
from workbench.tools.mocks import Mocks
async def never(_seconds):
    await Event().wait()
Mocks.__init__.__defaults__ = (never,)
"""
"""Python code for the start of a program: mocks with a delay never answer."""


def interrupted(
    program: Program, number: signal.Signals = signal.SIGINT, *words: str
) -> subprocess.CompletedProcess[str]:
    """Run three cases in turn, and end the program during the second one."""
    program.write("weather.toml", WEATHER + WAITING + WRONG)
    running = program.start("run", "weather.toml", "--concurrency", "1", *words, first=STUCK)
    said = read_until(running, 'get_weather(city="Bergen")')
    wait_until_one_is_kept(program, running)
    running.send_signal(number)
    rest, complaints = running.communicate()
    return subprocess.CompletedProcess(words, running.wait(), said + rest, complaints)


def wait_until_one_is_kept(program: Program, running: ForkedProgram) -> None:
    """Wait until a running batch has stored a graded run. The history is written in the background."""

    def is_kept() -> bool:
        for file in program.folder.rglob("*.sqlite3"):
            with History(file) as history:
                if any(batch.graded and batch.missing for batch in history.batches()):
                    return True
        return False

    wait_until(is_kept, running)
