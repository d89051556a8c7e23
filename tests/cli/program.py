"""The real program as a user runs it, with its own folders."""

from __future__ import annotations

import fcntl
import functools
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from typing import Any

from tests.cli.forking import ForkedProgram
from tests.cli.repeated import run_program

COMMAND = [sys.executable, "-m", "workbench"]
OK, QUALITY_MISSED, USAGE, INFRASTRUCTURE = range(4)
"""The documented exit codes."""
IN_FULL = ("-q", "--format", "text")
"""The options for the full report without the steps."""
_FOLDERS = {"XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data"}


@dataclass(frozen=True)
class Program:
    """The program in a folder, with state, logs and settings below it. `variables` are added to its environment."""

    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "SYSTEMROOT") if name in os.environ}
        own = {name: str(self.folder / folder) for name, folder in _FOLDERS.items()}
        return kept | own | {"TERM": "xterm-256color", "PYTHONUTF8": "1"} | dict(self.variables)

    def run(self, *words: str, first: str = "") -> subprocess.CompletedProcess[str]:
        """Run to the end without a terminal. `first` is Python code to run first, as for `ForkedProgram`."""
        with TemporaryFile("w+", encoding="utf-8") as output, TemporaryFile("w+", encoding="utf-8") as errors:
            streams = [_nothing(), output.fileno(), errors.fileno()]
            if first:
                code = ForkedProgram(words, streams, self.folder, self.environment, first=first).wait(60)
            else:
                code = run_program(words, streams, self.folder, self.environment, 60)
            output.seek(0)
            errors.seek(0)
            return subprocess.CompletedProcess(["workbench", *words], code, output.read(), errors.read())

    def start(self, *words: str, first: str = "") -> StartedProgram:
        """Start without a terminal and return at once."""
        return StartedProgram(words, self.folder, self.environment, first)

    def ask(self, *words: str, first: str = "") -> Dialogue:
        """Start on a terminal and return at once."""
        return Dialogue(words, self.folder, self.environment, first)

    def write(self, name: str, text: str) -> Path:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file


class StartedProgram(ForkedProgram):
    """A running program without a terminal, whose output can be read before it ends."""

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str], first: str) -> None:
        reading, writing = os.pipe()
        self._errors = TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 (closed with the program)
        super().__init__(words, [_nothing(), writing, self._errors.fileno()], folder, environment, first=first)
        os.close(writing)
        self.stdout = os.fdopen(reading, encoding="utf-8")

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.stdout.close()
        self._errors.close()

    def communicate(self) -> tuple[str, str]:
        """Read until the program has ended. Return the rest of standard output, and all of standard error."""
        with self, killed_in_time(self):
            rest = self.stdout.read()
            self.wait()
            self._errors.seek(0)
            return rest, self._errors.read()


class Dialogue(ForkedProgram):
    """A program on a wide terminal, in which a test answers its questions."""

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str], first: str) -> None:
        self._terminal, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 300, 0, 0))
        super().__init__(words, [its], folder, environment, first=first)
        os.close(its)
        self._said = b""

    def wait_for(self, text: str) -> None:
        """Read until a text appears. Raises AssertionError if the program ends first."""
        with killed_in_time(self):
            while text.encode() not in self._said:
                assert self._read(), f"the program ended before it said {text!r}: {self._said.decode()}"

    def answer(self, line: str) -> None:
        os.write(self._terminal, f"{line}\n".encode())

    def press(self, key: str) -> None:
        r"""Press a key such as Ctrl+D (`\x04`)."""
        os.write(self._terminal, key.encode())

    def end(self) -> str:
        """Read until the program has ended. Return everything that was on the terminal."""
        with killed_in_time(self):
            while self._read():
                pass
            self.wait()
        os.close(self._terminal)
        return self._said.decode()

    def _read(self) -> bool:
        try:
            said = os.read(self._terminal, 1 << 16)
        except OSError:  # nobody has the terminal any more
            return False
        self._said += said
        return bool(said)


@contextmanager
def killed_in_time(program: ForkedProgram) -> Iterator[None]:
    """Kill the program if the body of the `with` statement takes too long."""
    too_late = Timer(60, program.kill)
    too_late.start()
    try:
        yield
    finally:
        too_late.cancel()


@functools.cache
def _nothing() -> int:
    return os.open(os.devnull, os.O_RDONLY)


def wait_until(condition: Callable[[], bool], running: ForkedProgram) -> None:
    """Wait until a condition of the system holds. Raises AssertionError if the program ends first."""
    while not condition():
        assert running.poll(0.01) is None, "the program has ended"


def read_until(running: StartedProgram, text: str) -> str:
    """Return the program's output up to the line with `text`. Raises AssertionError if the program ends first."""
    said = ""
    while text not in said:
        line = running.stdout.readline()
        assert line, f"the program ended before it said {text!r}: {said}"
        said += line
    return said
