"""Programs that start at once: a program that has imported all of `workbench` forks one for every call.

Importing is most of what a short command costs, and the tests run hundreds of them. Each is a process of its own all
the same, with the words, environment, folder and standard streams it is given, and it ends as a program ends. That the
program also starts from nothing is tested wherever one is started, not run (`Program.start`, the tests in a terminal).
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import gc
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import workbench
from workbench.cli.main import main as run_workbench

ROOT = Path(__file__).parents[2]
WITH_APP = "with app"
"""The word by which a forking program imports the app too."""
IMPORTED_WHEN_NEEDED = (
    "anthropic",
    "anyio._backends._asyncio",
    "httpcore2",
    "jsonschema",
    "mcp.client.sse",
    "mcp.client.stdio",
    "mcp.client.streamable_http",
    "openai",
)
RECEIVED_BYTES = 1 << 16
NUMBER_BYTES = 12


def run_forked(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run `workbench` with `words` to its end, without a terminal; it is killed when that takes longer.

    Raises subprocess.TimeoutExpired.
    """
    request = {"words": words, "folder": str(folder), "environment": dict(environment)}
    mine, its = socket.socketpair()
    with mine, TemporaryFile("w+", encoding="utf-8") as output, TemporaryFile("w+", encoding="utf-8") as errors:
        with its:
            sent = json.dumps(request).encode() + b"\n"
            socket.send_fds(_forker(), [sent], [its.fileno(), output.fileno(), errors.fileno()])
        pid = int(mine.recv(NUMBER_BYTES, socket.MSG_WAITALL))
        mine.settimeout(timeout_s)
        try:
            code = int(mine.recv(NUMBER_BYTES, socket.MSG_WAITALL))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(["workbench", *words], timeout_s) from None
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(["workbench", *words], code, output.read(), errors.read())


class ForkedProgram:
    """`workbench` with `words` in a terminal that it leads, as a `subprocess.Popen` of it would be."""

    def __init__(self, words: Sequence[str], terminal: int, folder: Path, environment: Mapping[str, str]) -> None:
        request = {"words": words, "folder": str(folder), "environment": dict(environment)}
        self._answers, its = socket.socketpair()
        with its:
            sent = json.dumps(request).encode() + b"\n"
            socket.send_fds(_forker(WITH_APP), [sent], [its.fileno(), terminal])
        self.pid = int(self._answers.recv(NUMBER_BYTES, socket.MSG_WAITALL))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Returns the exit code, `None` while the program goes on."""
        return self._ended(0)

    def wait(self) -> int:
        """Wait for the end of the program. Returns its exit code."""
        code = self._ended(None)
        assert code is not None
        return code

    def _ended(self, timeout_s: float | None) -> int | None:
        if self.returncode is None:
            self._answers.settimeout(timeout_s)
            with suppress(BlockingIOError, TimeoutError):
                self.returncode = int(self._answers.recv(NUMBER_BYTES, socket.MSG_WAITALL))
                self._answers.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal to the program, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End the program at once."""
        self.send_signal(signal.SIGKILL)


@functools.cache
def _forker(*words: str) -> socket.socket:
    """Where the program that forks is asked; it ends when this one does."""
    mine, its = socket.socketpair()
    with its:
        command = [sys.executable, "-X", "utf8", "-m", "tests.cli.forking", str(its.fileno()), *words]
        forker = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=[its.fileno()])
    atexit.register(forker.wait)
    atexit.register(mine.close)  # comes first
    return mine


def main() -> int:
    """Fork a program for every request: its number is the answer, and its exit code once it has ended."""
    left_out = ("workbench.__main__",) if WITH_APP in sys.argv else ("workbench.__main__", "workbench.tui")
    for module in pkgutil.walk_packages(workbench.__path__, "workbench."):
        if not module.name.startswith(left_out):
            import_module(module.name)
    for name in IMPORTED_WHEN_NEEDED:
        import_module(name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait for a program
    requests = socket.socket(fileno=int(sys.argv[1]))
    while True:
        asked, descriptors, *_ = socket.recv_fds(requests, RECEIVED_BYTES, 3)
        if not asked:
            return 0
        while not asked.endswith(b"\n"):
            asked += requests.recv(RECEIVED_BYTES)
        if os.fork() == 0:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            answers, *streams = descriptors
            if (pid := os.fork()) == 0:
                os.close(answers)
                return _program(json.loads(asked), *streams)
            os.write(answers, b"%*d" % (NUMBER_BYTES, pid))
            _, status = os.waitpid(pid, 0)
            os.write(answers, b"%*d" % (NUMBER_BYTES, os.waitstatus_to_exitcode(status)))
            os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)


def _program(asked: dict[str, Any], output: int, errors: int | None = None) -> int:
    """What `python -m workbench` does, in this process. A single stream is the terminal that it leads."""
    if errors is None:
        os.setsid()
        fcntl.ioctl(output, termios.TIOCSCTTY, 0)
    for place, stream in enumerate((output,) * 3 if errors is None else (0, output, errors)):
        os.dup2(stream, place)
    for stream in {output, errors or output}:
        os.close(stream)
    sys.stdin, sys.stdout = os.fdopen(0, encoding="utf-8"), os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)
    os.environ.clear()
    os.environ.update(asked["environment"])
    time.tzset()
    os.chdir(asked["folder"])
    sys.argv = ["workbench", *asked["words"]]
    return run_workbench()


if __name__ == "__main__":
    sys.exit(main())
