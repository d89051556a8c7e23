"""Programs that start at once, forked from a process that has imported all of `workbench`.

Importing is most of the cost of a short command, and the tests run hundreds of them. Each program is still a separate
process with its own words, environment, folder and standard streams. It ends as programs do, except that modules are
not torn down, which would cost more than the program itself. Tests that start a program as a command
(`tests.cli.program.COMMAND`) cover a real start and end.

The workers of a test run are forked too (`tests/conftest.py`), because their imports took a third of the time before
their first test. All share one forking process, which ends with the last worker."""

from __future__ import annotations

import atexit
import fcntl
import functools
import gc
import io
import json
import logging
import os
import pkgutil
import runpy
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from pydantic import BaseModel

from workbench.dataclasses import _Init

ROOT = Path(__file__).parents[2]
WORKBENCH = "workbench.cli.main:main"
WORKER = "tests.cli.forking:run_code"
"""The function that a worker of pytest-xdist runs."""
PYTHON = "tests.cli.forking:run_python"
"""The function of a program that stands in for `python`."""
IMPORTED_WHEN_NEEDED = (
    "anyio._backends._asyncio",
    "hypothesis.strategies",
    "httpcore2",
    "jsonschema",
    "mcp.client.sse",
    "mcp.client.stdio",
    "mcp.client.streamable_http",
)
RECEIVED_BYTES = 1 << 16
NUMBER_BYTES = 12
READY = b"!"
FOLDERS = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


class ForkedProgram:
    """A forked program with `words`, by default `workbench`, with the interface of `subprocess.Popen`.

    `streams` are its standard input, output and errors, or one terminal that it leads. `first` is Python code that runs
    first and may change the program. `run` names the function to run, with its module. `needs` are further modules to
    import before the fork."""

    def __init__(
        self,
        words: Sequence[str],
        streams: Sequence[int],
        folder: Path,
        environment: Mapping[str, str],
        *,
        first: str = "",
        run: str = WORKBENCH,
        needs: Sequence[str] = (),
    ) -> None:
        request = {
            "words": list(words),
            "folder": str(folder),
            "environment": dict(environment),
            "first": first,
            "run": run,
            "needs": list(needs),
        }
        self.args = ["workbench", *words]
        self.returncode: int | None = None
        self._answers, its = socket.socketpair()
        with its:
            sent = json.dumps(request).encode() + b"\n"
            socket.send_fds(_forker(), [sent], [its.fileno(), *streams])
        self.pid = int(self._answers.recv(NUMBER_BYTES, socket.MSG_WAITALL))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self.kill()
        self.wait()

    def poll(self, timeout_s: float = 0) -> int | None:
        """Return the exit code, or `None` if the program still runs after `timeout_s`."""
        return self._ended(timeout_s)

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for the end of the program. Returns its exit code.

        Raises subprocess.TimeoutExpired, after killing it, when that takes longer than `timeout_s`.
        """
        code = self._ended(timeout_s)
        if code is None:
            assert timeout_s is not None
            self.kill()
            raise subprocess.TimeoutExpired(self.args, timeout_s)
        return code

    def _ended(self, timeout_s: float | None) -> int | None:
        if self.returncode is None:
            self._answers.settimeout(timeout_s)
            with suppress(BlockingIOError, TimeoutError):
                self.returncode = int(self._answers.recv(NUMBER_BYTES, socket.MSG_WAITALL))
                self._answers.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal to the program unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the program."""
        self.send_signal(signal.SIGKILL)


def forked_command(run: str = WORKBENCH) -> list[str]:
    """Return the first words of a command that runs `workbench`, or another function, in a forked process.

    Signals to the command's own process do not end it."""
    _forker()
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("forked.py")), _address(), run]


def forked_python(*words: str) -> list[str]:
    """Return a command equivalent to `python WORDS` (a file or `-m`) that runs in a forked process. The MCP SDK, which
    takes a second to import, is already loaded."""
    return [*forked_command(PYTHON), *words]


def write_forked_python(file: Path) -> Path:
    """Write a stand-in for the `python` of a command that cannot be changed. It forks for a file and for `-m`. Return
    its path."""
    forks = shlex.join(forked_python())
    text = f'#!/bin/sh\ncase "$1" in -m|*.py) exec {forks} "$@";; esac\nexec {shlex.quote(sys.executable)} "$@"\n'
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)
    return file


def _address() -> str:
    """Return the address of the forking process. A test run and its workers share it by inheritance."""
    return f"workbench tests {os.environ.setdefault('FORKED_FOR_TESTS_OF', str(os.getpid()))}"


@functools.cache
def _forker() -> socket.socket:
    """Return a connection to the forking process. Start the process unless a worker of this test run already has."""
    address = f"\0{_address()}"
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(address)
            if connection.recv(1) == READY:
                atexit.register(connection.close)
                return connection
        except ConnectionError:
            pass  # there is none yet, or it is about to end
        connection.close()
        with socket.socket(socket.AF_UNIX) as listener:
            try:
                listener.bind(address)
            except OSError:
                continue  # another worker starts it
            listener.listen()
            listener.set_inheritable(True)
            command = [sys.executable, "-X", "utf8", "-m", "tests.cli.forking", str(listener.fileno())]
            # No process waits for it, because it may outlive this worker.
            os.posix_spawn("/bin/sh", ["sh", "-c", 'cd "$0" && exec "$@" </dev/null', str(ROOT), *command], os.environ)


class _Forker:
    """Forks a program for each request. Replies with its process id, and later with its exit code."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._watched = selectors.DefaultSelector()
        self._workers = 0
        self._imported: set[str] = set()

    def serve(self) -> None:
        """Serve until the last worker has disconnected."""
        self._watch(self._listener.fileno(), self._accept)
        while True:
            for key, _ in self._watched.select():
                key.data()

    def _watch(self, descriptor: int, react: Callable[[], None]) -> None:
        self._watched.register(descriptor, selectors.EVENT_READ, react)

    def _accept(self) -> None:
        worker, _ = self._listener.accept()
        self._workers += 1
        self._watch(worker.fileno(), lambda: self._answer(worker))
        worker.send(READY)

    def _answer(self, worker: socket.socket) -> None:
        try:
            asked, descriptors, *_ = socket.recv_fds(worker, RECEIVED_BYTES, 4)
        except ConnectionError:  # it was killed
            asked, descriptors = b"", []
        if not asked:
            self._watched.unregister(worker.fileno())
            worker.close()
            self._workers -= 1
            if not self._workers:
                sys.exit()
            return
        while not asked.endswith(b"\n"):
            asked += worker.recv(RECEIVED_BYTES)
        request = json.loads(asked)
        for name in request["needs"]:
            if name not in self._imported:
                self._imported.add(name)
                _import_all(name)
        answers, *streams = descriptors
        pid = os.fork()
        if pid == 0:
            _become(request, streams)
        for descriptor in streams:
            os.close(descriptor)
        os.write(answers, b"%*d" % (NUMBER_BYTES, pid))
        program = os.pidfd_open(pid)
        self._watch(program, lambda: self._tell_end(pid, program, answers))

    def _tell_end(self, pid: int, program: int, answers: int) -> None:
        self._watched.unregister(program)
        _, status = os.waitpid(pid, 0)
        with suppress(BrokenPipeError):  # whoever started the program does not want to know
            os.write(answers, b"%*d" % (NUMBER_BYTES, os.waitstatus_to_exitcode(status)))
        os.close(program)
        os.close(answers)


def _become(request: dict[str, Any], streams: Sequence[int]) -> None:
    """Do what `python -m workbench` does in this process. `streams` become the standard streams."""
    if request["run"] != WORKER:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
    if len(streams) == 1:
        os.setsid()
        fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
    for place, stream in enumerate(streams if len(streams) > 1 else [*streams] * 3):
        os.dup2(stream, place)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    sys.stdin, sys.stdout = os.fdopen(0, encoding="utf-8"), os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["folder"])
    sys.argv = ["workbench", *request["words"]]
    exec(request["first"], {})
    module, _, name = request["run"].partition(":")
    _end(getattr(import_module(module), name))


def _end(run: Callable[[], int]) -> None:
    """Run a program to its end and exit as Python does, without tearing down modules."""
    code: Any = 1
    try:
        code = code_of(run)
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                code = 120
        os._exit(code)


def code_of(run: Callable[[], int]) -> int:
    """Run a program and return its exit code. Print an error as Python does."""
    try:
        return run()
    except SystemExit as exit_:
        code: Any = exit_.code or 0
        return code  # type: ignore[no-any-return]
    except BaseException as error:  # noqa: BLE001 (this is the end of the program)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1


def run_code() -> int:
    """Do what `python -c CODE` does. CODE is the last word."""
    exec(sys.argv[-1], {"__name__": "__main__"})
    return 0


def run_python() -> int:
    del sys.argv[0]
    if sys.argv[0] == "-m":
        del sys.argv[0]
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(sys.argv[0]).resolve().parent))
        runpy.run_path(sys.argv[0], run_name="__main__")
    return 0


def _import_all(package: str) -> None:
    imported = import_module(package)
    if package == "workbench":
        for module in pkgutil.walk_packages(imported.__path__, f"{package}."):
            if module.name != "workbench.__main__":
                import_module(module.name)
    _make_what_is_made_late()
    gc.collect()
    gc.freeze()


def _make_what_is_made_late() -> None:
    """Build what modules build lazily. Each program would otherwise repeat it, which is half the time of a short
    one."""
    for made in gc.get_objects():
        if isinstance(made, _Init):
            _ = made._cls.__init__
        elif isinstance(made, type) and issubclass(made, BaseModel) and made.model_config.get("defer_build"):
            made.model_rebuild()


SUITE = """
format = 1
name = "Lights"
tools = [{ name = "set_light", description = "Turn on the light." }]
cases = [{ name = "Light", user = "Turn on the light.", ordered = [{ tool = "set_light" }] }]
"""


def _run_a_suite() -> None:
    """Run a suite once to fill the caches of patterns, lazy imports and type hints. That is a third of a short run."""
    environment, here = dict(os.environ), Path.cwd()
    with TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        os.environ.update(dict.fromkeys(FOLDERS, folder))
        os.chdir(folder)
        Path("lights.toml").write_text(SUITE, encoding="utf-8")
        assert import_module("workbench.cli.main").main(["run", "lights.toml", "--quiet"]) == 0
        os.chdir(here)
    os.environ.clear()
    os.environ.update(environment)
    for handler in list(logging.getLogger().handlers):
        logging.getLogger().removeHandler(handler)
        handler.close()


def main() -> None:
    """Import what programs need, then fork one for each request."""
    for name in IMPORTED_WHEN_NEEDED:
        import_module(name)
    _import_all("workbench")
    _run_a_suite()
    gc.collect()
    gc.freeze()
    _Forker(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
