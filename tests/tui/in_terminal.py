"""The real program in a real pseudo-terminal: what it writes, what that looks like, what it costs."""

from __future__ import annotations

import fcntl
import os
import pty
import resource
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyte

from tests.cli.forking import ForkedProgram

WORKBENCH = (sys.executable, "-m", "workbench")

DEADLINE_S = 30.0

LEAVES = b"\x1b[?1049l"
ENTERS = b"\x1b[?1049h"
MOUSE_OFF = b"\x1b[?1003l"
CURSOR_ON = b"\x1b[?25h"

TAKES_KEYS = ("↑↓ choose", "↑↓ Enter choose", "PgDn read on")
"""What the last line of a question begins with, once it takes keys."""

LINK_BYTES = 1_000
"""So much of what comes over a slow link is taken in at a time."""


class Terminal:
    """`workbench` on some paths (or another program), in a terminal of `columns` × `rows` that answers nothing."""

    def __init__(
        self,
        arguments: Sequence[str],
        state: Path,
        *,
        columns: int = 120,
        rows: int = 36,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        program: Sequence[str] = WORKBENCH,
        bytes_per_s: float | None = None,
        shows: bool = True,
        starts: bool = False,
        first: Path | None = None,
    ) -> None:
        """`starts`: `workbench` starts from nothing, instead of being forked from a program that has imported it. So it
        does where `environment` has it import something of its own. `first` is Python that a forked one begins with."""
        self.output = bytearray()
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "PYTHONPATH")}
        terminal = {
            **kept,
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "XDG_STATE_HOME": str(state),
            "XDG_DATA_HOME": str(state / "data"),
            **(environment or {}),
        }
        self.process: ForkedProgram | subprocess.Popen[bytes]
        if program is WORKBENCH and not starts and "PYTHONPATH" not in (environment or {}):
            begin = f"exec(compile({first.read_text()!r}, {str(first)!r}, 'exec'))" if first else ""
            self.process = ForkedProgram(arguments, [slave], folder or Path.cwd(), terminal, first=begin)
        else:
            self.process = subprocess.Popen(
                [*program, *arguments],
                stdin=slave,
                stdout=slave,
                stderr=slave,
                cwd=folder,
                env=terminal,
                start_new_session=True,
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            )
        os.close(slave)
        self._master = master
        self._shows = shows
        """Whether what is written is looked at; that takes longer than writing it."""
        self._bytes_per_s = bytes_per_s
        """As slow as the link is that what is written comes over; `None`: no link."""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.hang_up()

    @property
    def screen(self) -> str:
        """What a person would see."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def send(self, keys: str | bytes) -> None:
        """Press keys."""
        os.write(self._master, keys.encode() if isinstance(keys, str) else keys)

    def answer(self, question: str, keys: str) -> None:
        """Press keys at a question of the app once it shows which it takes: until then it ignores all."""
        self.wait_for(lambda: any(shown in self.screen.partition(question)[2] for shown in TAKES_KEYS))
        self.send(keys)

    def send_all(self, content: bytes) -> None:
        """Send more than the terminal takes at once, reading meanwhile what is written."""
        os.set_blocking(self._master, False)
        while content:
            select.select([self._master], [self._master], [])
            with suppress(BlockingIOError):
                content = content[os.write(self._master, content[: 1 << 16]) :]
            self.read(0)
        os.set_blocking(self._master, True)

    def wipe(self) -> None:
        """Forget what is on the screen, so that only what is drawn from now on is seen."""
        self._screen.reset()

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size, as dragging a window's corner does."""
        self._screen.resize(rows, columns)
        self.resize_only(columns, rows)

    def resize_only(self, columns: int, rows: int) -> None:
        """Say that the terminal has another size, which may be none that can be shown."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, timeout_s: float) -> int:
        """Take in what is written within `timeout_s`; the number of bytes, 0 when nothing was."""
        if self._master < 0 or not select.select([self._master], [], [], timeout_s)[0]:
            return 0
        try:
            data = os.read(self._master, 1 << 16 if self._bytes_per_s is None else LINK_BYTES)
        except OSError:
            return 0
        if self._bytes_per_s is not None:
            select.select([], [], [], len(data) / self._bytes_per_s)  # the link's own pace
        self.output += data
        if self._shows:
            self._stream.feed(data)
        return len(data)

    def wait_for(self, condition: str | Callable[[], bool]) -> None:
        """Read until a text is on the screen, or something holds; raises AssertionError when it never does."""
        holds = condition if callable(condition) else lambda: condition in self.screen
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            assert time.monotonic() < deadline, f"waited for {condition!r}, saw:\n{self._seen}"
            self.read(0.05)

    @property
    def _seen(self) -> str:
        return self.screen if self._shows else repr(bytes(self.output[-2000:]))

    def wait_for_more(self, *, than: int) -> None:
        """Read until more than so many bytes were written in all."""
        self.wait_for(lambda: len(self.output) > than)

    def quiet(self, silence_s: float) -> int:
        """Read until nothing came for `silence_s`; the number of bytes that did come."""
        total = 0
        while came := self.read(silence_s):
            total += came
        return total

    def falls_silent(self, silence_s: float) -> bool:
        """Whether nothing more comes for `silence_s`, at once or after a few late paints of a busy machine."""
        return any(self.quiet(silence_s) == 0 for _ in range(5))

    def end(self) -> int:
        """Read until the program has ended; its exit code."""
        self.wait_for(lambda: self.process.poll() is not None)
        while self.read(0.05):
            pass
        return self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send the program a signal."""
        self.process.send_signal(number)

    def hang_up(self) -> None:
        """Close the terminal, as a dropped connection does."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    @property
    def cpu_s(self) -> float:
        """Processor time that the program has used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory_mb(self) -> float:
        """Resident memory of the program."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6


def assert_restored(terminal: Terminal) -> None:
    """The terminal was given back: main screen, no mouse, a cursor, and nothing written behind that."""
    output = bytes(terminal.output)
    assert output.count(ENTERS) == 1
    assert output.count(LEAVES) == 1
    assert output.rindex(MOUSE_OFF) > output.index(ENTERS)
    assert output.rindex(CURSOR_ON) > output.rindex(LEAVES)
