"""One visitor of `workbench serve`: the process of their app, started when their browser connects and ended with it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from workbench.config.environment import SERVED
from workbench.dataclasses import dataclass
from workbench.limits import MAX_PIPED_BYTES

_log = logging.getLogger(__name__)

ENDING_S = 20.0
"""How long an app may take to stop its runs and servers before it is killed."""

_NOT_STARTED = "It did not start: what it said stands where 'workbench serve' was started."
_FAILED = "It failed: the program log says why, or the terminal where 'workbench serve' was started."

_GREETING = b"__GANGLION__\n"

_NEEDED = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV"),
    "WORKBENCH_ASCII",
)
_NEEDED_ON_WINDOWS = ("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "SYSTEMROOT", "TEMP", "USERPROFILE")
_NEEDED_BEGINNINGS = ("LC_", "XDG_", "PYTHON")
_OF_A_TERMINAL = ("NO_COLOR", "COLORTERM", "TERM_PROGRAM", "TMUX", "STY", "TEXTUAL_DRIVER", "TEXTUAL_COLOR_SYSTEM")
"""What the server's own terminal is, which no browser has."""


@dataclass(frozen=True)
class App:
    """The app that visitors get: the words of its command, and the variables of its process."""

    words: Sequence[str]
    environment: Mapping[str, str]


def app_for(words: Sequence[str], environment: Mapping[str, str], *, read_only: bool) -> App:
    """Return the app with the words of a command line. One that only shows gets no variables but those that any program
    needs: no keys of providers."""
    kept = {name: value for name, value in environment.items() if name not in _OF_A_TERMINAL}
    if read_only:
        needed = (*_NEEDED, *_NEEDED_ON_WINDOWS)
        kept = {name: value for name, value in kept.items() if name in needed or name.startswith(_NEEDED_BEGINNINGS)}
    # Without the current folder in front, from which a module of its own could be taken.
    begin = f"import sys; sys.path[:] = {sys.path!r}; from workbench.cli.main import main; sys.exit(main())"
    return App((sys.executable, "-P", "-c", begin, *words), {**kept, "TERM": "xterm-256color", SERVED: "1"})


class Visitor(AppService):
    """The process of one visitor's app."""

    def __init__(
        self,
        app: App,
        *,
        write: Callable[[bytes], Awaitable[None]],
        write_text: Callable[[str], Awaitable[None]],
        close: Callable[[bytes], Awaitable[object]],
    ) -> None:
        async def end() -> None:
            await close(self.why.encode())

        self.why = ""
        """Why the app ends, for its page: at most 123 bytes."""

        super().__init__(
            "workbench", write_bytes=write, write_str=write_text, close=end, download_manager=DownloadManager()
        )
        self._app = app
        self.typed_s = asyncio.get_running_loop().time()
        """When something was typed, or done with the mouse, by the loop's clock."""

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        self._process = await asyncio.create_subprocess_exec(
            *self._app.words,
            stdin=PIPE,
            stdout=PIPE,
            env={**self._app.environment, "COLUMNS": str(width), "LINES": str(height)},
            # The server ends its visitors itself: Ctrl+C is for it alone.
            start_new_session=os.name == "posix",
        )
        self._stdin = self._process.stdin
        return self._process

    async def stop(self, why: str = "") -> None:
        """End the process as a terminal that closes would: its runs are stopped, its history is kept."""
        process, task = self._process, self._task
        self.why = self.why or why
        if process is None or task is None:
            return
        if process.returncode is None:
            # Not `process.terminate`: it would take the exit code of one that has just ended from who waits for it.
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
        try:
            # What it still writes is read, so that nothing holds it up.
            await asyncio.wait_for(asyncio.shield(process.wait()), ENDING_S)
        except TimeoutError:
            _log.error("the app of a visitor did not end and was killed")
            process.kill()
            await process.wait()
        await task

    async def run(self) -> None:
        """Pass on what the app writes, until it ends."""
        assert self._process is not None and self._process.stdout is not None
        stdout = self._process.stdout
        is_there = True
        try:
            if await stdout.readline() != _GREETING:
                _log.error("the app of a visitor did not start")
                self.why = self.why or _NOT_STARTED
                return
            while True:
                kind = await stdout.readexactly(1)
                size = int.from_bytes(await stdout.readexactly(4), "big")
                if size > MAX_PIPED_BYTES:
                    _log.error("the app of a visitor wrote what is no packet")
                    self.why = self.why or _FAILED
                    return
                content = await stdout.readexactly(size)
                try:
                    if is_there and kind == b"D":  # no address that it opens, no file that it loads
                        await self.remote_write_bytes(content)
                except (ConnectionError, RuntimeError):
                    is_there = False  # the browser has gone
        except (asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            if not self.why:
                failed = await self._process.wait()
                self.why = self.why or (_FAILED if failed else "It was quit.")
            with suppress(ConnectionError, RuntimeError):  # the browser has gone just now
                await self.remote_close()
