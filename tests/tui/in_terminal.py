"""The real program in a real pseudo-terminal: its output, its screen and its costs."""

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
"""The starts of a question's last line once the question accepts keys."""

LINK_BYTES = 1_000
"""The number of bytes that are read from a slow link at a time."""


class Terminal:
    """`workbench` on some paths, or another program, in a terminal of `columns` × `rows` that answers no queries."""

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
        """Start the program. With `starts`, start `workbench` as a new process instead of a fork of one that has
        imported it.

        A `PYTHONPATH` in `environment` has the same effect. `first` is Python code that a forked program runs first."""
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
        """Whether output is drawn on a screen, which takes longer than writing it."""
        self._bytes_per_s = bytes_per_s
        """The speed of the link between program and terminal, `None` for no limit."""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.hang_up()

    @property
    def screen(self) -> str:
        """The text of the screen."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def send(self, keys: str | bytes) -> None:
        os.write(self._master, keys.encode() if isinstance(keys, str) else keys)

    def answer(self, question: str, keys: str) -> None:
        """Press keys at a question of the app, once it accepts keys. Until then it ignores all keys."""
        self.wait_for(lambda: any(shown in self.screen.partition(question)[2] for shown in TAKES_KEYS))
        self.send(keys)

    def send_all(self, content: bytes) -> None:
        """Send more than the terminal accepts at once, and read the output meanwhile."""
        os.set_blocking(self._master, False)
        while content:
            select.select([self._master], [self._master], [])
            with suppress(BlockingIOError):
                content = content[os.write(self._master, content[: 1 << 16]) :]
            self.read(0)
        os.set_blocking(self._master, True)

    def wipe(self) -> None:
        """Clear the screen, so that it shows only later output."""
        self._screen.reset()

    def resize(self, columns: int, rows: int) -> None:
        """Resize the terminal, as dragging a window's corner does."""
        self._screen.resize(rows, columns)
        self.resize_only(columns, rows)

    def resize_only(self, columns: int, rows: int) -> None:
        """Report another size to the program. The size may be impossible."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, timeout_s: float) -> int:
        """Read output for at most `timeout_s`. Return the number of bytes, or 0 if there was none."""
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
        """Read until a text is on the screen or a condition is true. Raises AssertionError after a deadline."""
        holds = condition if callable(condition) else lambda: condition in self.screen
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            assert time.monotonic() < deadline, f"waited for {condition!r}, saw:\n{self._seen}"
            self.read(0.05)

    @property
    def _seen(self) -> str:
        return self.screen if self._shows else repr(bytes(self.output[-2000:]))

    def wait_for_more(self, *, than: int) -> None:
        """Read until the total output has more than `than` bytes."""
        self.wait_for(lambda: len(self.output) > than)

    def quiet(self, silence_s: float) -> int:
        """Read until there was no output for `silence_s`. Return the number of bytes read."""
        total = 0
        while came := self.read(silence_s):
            total += came
        return total

    def falls_silent(self, silence_s: float) -> bool:
        """Return whether output stops for `silence_s`. A busy machine may first draw a few late frames."""
        return any(self.quiet(silence_s) == 0 for _ in range(5))

    def end(self) -> int:
        """Read until the program has ended, and return its exit code."""
        self.wait_for(lambda: self.process.poll() is not None)
        while self.read(0.05):
            pass
        return self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def hang_up(self) -> None:
        """Close the terminal, as a dropped connection does."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    @property
    def cpu_s(self) -> float:
        """The CPU time that the program has used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory_mb(self) -> float:
        """The resident memory of the program."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6


def assert_restored(terminal: Terminal) -> None:
    """Assert that the terminal was restored: main screen, no mouse, a visible cursor, and no output afterwards."""
    output = bytes(terminal.output)
    assert output.count(ENTERS) == 1
    assert output.count(LEAVES) == 1
    assert output.rindex(MOUSE_OFF) > output.index(ENTERS)
    assert output.rindex(CURSOR_ON) > output.rindex(LEAVES)
