"""Programs that run one after another in one process.

Forking, and copying the pages that a program writes, takes as long as a short command. So a program that no test
observes or changes reuses a process, with its own words, environment, folder and standard streams. If a program leaves
something behind that would end with its process (a thread, an open file, a child process, a module of the test), the
process ends, and the next program gets a new one."""

from __future__ import annotations

import functools
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from tests.cli.forking import NUMBER_BYTES, ROOT, ForkedProgram, code_of
from workbench.cli.main import main
from workbench.config import read_only
from workbench.suite import files

REQUEST_BYTES = 1 << 20


class _Process:
    """A process that runs programs until one leaves something behind."""

    def __init__(self) -> None:
        self._requests, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its, open(os.devnull, "w") as nothing:  # noqa: PTH123
            streams = [its.fileno(), nothing.fileno(), 2]
            self._process = ForkedProgram([], streams, ROOT, os.environ, run="tests.cli.repeated:serve")

    def run(
        self,
        words: Sequence[str],
        streams: Sequence[int],
        folder: Path,
        environment: Mapping[str, str],
        timeout_s: float,
    ) -> tuple[int, bool]:
        """Run a program. Return its exit code, and whether the process can run another one."""
        request = json.dumps([*map(list, (words, environment.items())), str(folder)]).encode()
        socket.send_fds(self._requests, [request], streams)
        self._requests.settimeout(timeout_s)
        try:
            answer = self._requests.recv(NUMBER_BYTES)
        except TimeoutError:
            self._process.kill()
            raise subprocess.TimeoutExpired(["workbench", *words], timeout_s) from None
        if answer:
            return int(answer), True
        self._requests.close()
        return self._process.wait(timeout_s), False


@functools.cache
def _idle() -> list[_Process]:
    """Return the processes of this worker that wait for a program."""
    return []


def run_program(
    words: Sequence[str], streams: Sequence[int], folder: Path, environment: Mapping[str, str], timeout_s: float
) -> int:
    """Run `workbench` to its end with `streams` as its standard streams, and return its exit code.

    Kills the program and raises subprocess.TimeoutExpired after `timeout_s`."""
    process = _idle().pop() if _idle() else _Process()
    code, goes_on = process.run(words, streams, folder, environment, timeout_s)
    if goes_on:
        _idle().append(process)
    return code


def serve() -> int:
    """Run the requested programs until one leaves something behind or the requests end. Return the last exit code."""
    requests = socket.socket(fileno=os.dup(0))
    before = _State()
    first = sys.stdin, sys.stdout, sys.stderr  # they would be closed with their descriptors
    code = 0
    while True:
        asked, streams, *_ = socket.recv_fds(requests, REQUEST_BYTES, 3)
        if not asked:
            sys.stdin, sys.stdout, sys.stderr = first
            return code
        words, environment, folder = json.loads(asked)
        for place, stream in enumerate(streams):
            os.dup2(stream, place)
            os.close(stream)
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        os.chdir(folder)
        sys.argv = ["workbench", *words]
        own = [open(0, encoding="utf-8", closefd=False), open(1, "w", encoding="utf-8", closefd=False)]  # noqa: SIM115
        own.append(open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False))  # noqa: SIM115
        sys.stdin, sys.stdout, sys.stderr = own
        with warnings.catch_warnings():
            code = code_of(main)
        if not (_are_flushed(sys.stdout, sys.stderr, *own[1:]) and before.comes_back()):
            return code
        requests.send(b"%*d" % (NUMBER_BYTES, code))


def _are_flushed(*streams: TextIO) -> bool:
    try:
        for stream in streams:
            stream.flush()
    except OSError:
        return False
    return True


class _State:
    """The state of a process before a program, as far as a program can change it."""

    def __init__(self) -> None:
        self._files = _open_files()
        self._threads = threading.enumerate()
        self._handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
        self._path = list(sys.path)
        self._modules = set(sys.modules)
        self._hooks = sys.excepthook, threading.excepthook

    def comes_back(self) -> bool:
        """Restore the state, and return whether nothing else remains."""
        for number, handler in self._handlers.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        sys.path[:] = self._path
        sys.excepthook, threading.excepthook = self._hooks
        root = logging.getLogger()
        for kept in list(root.handlers):
            root.removeHandler(kept)
            kept.close()
        for cached in (files._from, files.repository_of):
            cached.cache_clear()
        return (
            threading.enumerate() == self._threads
            and _open_files() == self._files
            and not _has_children()
            and not read_only._is_read_only
            and not any(map(self._is_of_a_test, set(sys.modules) - self._modules))
        )

    def _is_of_a_test(self, name: str) -> bool:
        file = getattr(sys.modules[name], "__file__", None)
        return file is not None and not file.startswith(tuple(filter(None, self._path)))


def _open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True
