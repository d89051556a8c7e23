"""Runs the commands that print keys: on first use, and once more when an endpoint refuses the key."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path, PurePath

from workbench.config.read_only import refuse_if_read_only
from workbench.config.secrets import Secrets
from workbench.limits import MAX_ERROR_BYTES, MAX_KEY_BYTES
from workbench.numerals import seconds_text
from workbench.providers.model import ModelError
from workbench.providers.wire.errors import quoted

KEY_COMMAND_TIMEOUT_S = 30.0
MIN_RERUN_INTERVAL_S = 30.0
"""The least time between two runs of the command, if no request was accepted with the key in between."""
_PIPES_TIMEOUT_S = 1.0
"""Time to read the output of a command after its end, in seconds: a program left behind may hold the pipes open."""
_PIECE_BYTES = 4096
_LAST_LINES = 3


class KeyCommandError(ModelError):
    """A command did not print a key; the message has the end of its standard error, redacted."""


class KeyCommand:
    """A command that prints the key of its models.

    The command runs in `folder` with the whole `environment`, because programs that fetch keys need their variables.
    `clock` returns monotonic seconds. Use this object on one event loop."""

    def __init__(
        self,
        command_line: tuple[str, ...],
        folder: Path | None,
        environment: Mapping[str, str],
        secrets: Secrets,
        clock: Callable[[], float] = time.monotonic,
        timeout_s: float = KEY_COMMAND_TIMEOUT_S,
    ) -> None:
        self._words = command_line
        self._folder = folder
        self._environment = environment
        self._secrets = secrets
        self._clock = clock
        self._timeout_s = timeout_s
        self._alone = asyncio.Lock()
        self._key: str | None = None
        self._ran_s = 0.0
        self._is_doubtful = False

    @property
    def name(self) -> str:
        """The name that replaces the key in redacted texts, such as `GCLOUD_KEY`."""
        program = re.sub(r"\W+", "_", PurePath(self._words[0]).stem, flags=re.ASCII).strip("_")
        return f"{program or 'COMMAND'}_KEY".upper()

    async def key(self) -> str:
        """Return the key, after running the command on the first call.

        Raises KeyCommandError."""
        async with self._alone:
            if self._key is None:
                self._key = await self._run()
            return self._key

    async def renewed_key(self, refused_key: str) -> str | None:
        """Return a key in place of a key that an endpoint has refused; `None` if the command may not run again yet.

        See `MIN_RERUN_INTERVAL_S`. Raises KeyCommandError."""
        async with self._alone:
            # If several requests have the same expired key, the first of them runs the command, and the others get its
            # key here.
            if self._key is not None and self._key != refused_key:
                return self._key
            if self._is_doubtful and self._clock() - self._ran_s < MIN_RERUN_INTERVAL_S:
                return None
            self._is_doubtful = True
            self._key = await self._run()
            return self._key

    def note_accepted(self) -> None:
        self._is_doubtful = False

    async def _run(self) -> str:
        refuse_if_read_only("the command of a key is run")
        self._ran_s = self._clock()
        try:
            process = await asyncio.create_subprocess_exec(
                *self._words,
                cwd=self._folder,
                env=dict(self._environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise self._failed(f"cannot be started: {reason}", "correct it in workbench.toml") from error
        assert process.stdout is not None and process.stderr is not None
        printed = asyncio.create_task(_beginning(process.stdout, MAX_KEY_BYTES + 1))
        stderr = asyncio.create_task(_end(process.stderr, MAX_ERROR_BYTES))
        ended = asyncio.create_task(process.wait())
        try:
            async with asyncio.timeout(self._timeout_s):
                await asyncio.wait({printed, ended}, return_when="FIRST_COMPLETED")
                # Do not wait for a command that prints too much.
                if len(_result(printed)) <= MAX_KEY_BYTES:
                    await asyncio.wait({ended})
            await asyncio.wait({printed, stderr}, timeout=_PIPES_TIMEOUT_S)
        except TimeoutError:
            raise self._failed(
                f"printed no key within {seconds_text(self._timeout_s)}",
                "run it in a shell, where it may ask something",
            ) from None
        finally:
            if process.returncode is None:
                _kill(process)
                await ended
            for task in (printed, stderr):
                task.cancel()
            process._transport.close()  # type: ignore[attr-defined]
        return self._key_in(_result(printed), _result(stderr), ended.result())

    def _key_in(self, stdout: bytes, stderr: bytes, code: int) -> str:
        if len(stdout) > MAX_KEY_BYTES:
            raise self._failed(f"printed {MAX_KEY_BYTES.exceeded()}", MAX_KEY_BYTES.way_out)
        key = stdout.decode("utf-8", "replace").strip()
        is_key = key.isascii() and key.isprintable() and " " not in key
        # The key is registered as a secret before any output of the command is quoted. The output of a failed command
        # is registered only if it looks like a secret. Otherwise, a word such as `error` might be redacted in all
        # reports.
        if is_key and not code:
            self._secrets.add(self.name, key)
        else:
            self._secrets.add_from_file(self.name, key)
        if code:
            how = f"ended with exit code {code}"
            if code < 0:
                how = f"was ended by signal {-code}"
            if words := self._last_words(stderr):
                how += f" ({words})"
            raise self._failed(how, "run it in a shell")
        if not key:
            raise self._failed("printed nothing", "it must print the key on standard output")
        if not is_key:
            raise self._failed("printed more than a key", "it must print the key alone, on one line")
        return key

    def _last_words(self, stderr: bytes) -> str:
        """Return the last lines of the command's standard error, without secrets.

        They usually give the reason for a failure."""
        lines = self._secrets.redact(stderr.decode("utf-8", "replace")).splitlines()
        return quoted("\n".join([line for line in lines if line.strip()][-_LAST_LINES:]), self._secrets)

    def _failed(self, problem: str, advice: str) -> KeyCommandError:
        command = quoted(shlex.join(self._words), self._secrets)
        return KeyCommandError(f"the key_command {command} {problem}: {advice}")


async def _beginning(stream: asyncio.StreamReader, max_bytes: int) -> bytes:
    read = bytearray()
    while len(read) < max_bytes and (piece := await stream.read(min(_PIECE_BYTES, max_bytes - len(read)))):
        read += piece
    return bytes(read)


async def _end(stream: asyncio.StreamReader, max_bytes: int) -> bytes:
    read = b""
    while piece := await stream.read(_PIECE_BYTES):
        read = (read + piece)[-max_bytes:]
    return read


def _result(task: asyncio.Task[bytes]) -> bytes:
    if task.done() and not task.cancelled():
        return task.result()
    return b""


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
