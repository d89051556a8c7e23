"""Runs a program once: a text on its standard input, the text of its standard output, and a guaranteed end."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from workbench.dataclasses import dataclass
from workbench.limits import MAX_ERROR_BYTES, MAX_OUTPUT_BYTES
from workbench.tools.server_process import ends_within, left_behind, new_mark, signal_group, started_process

_CHUNK = 64 * 2**10
_DRAIN_S = 1.0
"""How long output may come after the program's end: of processes that it left behind, which are killed then."""
_REAP_S = 1.0
_POLL_S = 0.01

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ended:
    """How a program ended: its exit code (negative for a signal), and what it wrote. Of standard error, the end is
    kept. `too_much` says that it wrote more than it may: it was killed then."""

    code: int
    output: bytes
    errors: bytes
    too_much: bool = False

    @property
    def last_error(self) -> str:
        """The last line of standard error that holds something."""
        lines = self.errors.decode("utf-8", "replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    @property
    def how(self) -> str:
        """How it ended, for a person."""
        if self.code < 0:
            return f"was ended by {signal.Signals(-self.code).name}"
        return f"ended with exit code {self.code}"


async def run_program(
    command: Sequence[str],
    text: str,
    *,
    folder: Path,
    environment: Mapping[str, str],
) -> Ended:
    """Run a command to its end. Everything that it started is killed when it writes too much, when this is cancelled,
    and in any case at the end. Raises OSError when the command cannot be started."""
    mark = new_mark()
    words = (sys.executable if command[0] == "python" else command[0], *command[1:])
    process, watcher = await started_process(words, folder=folder, environment=environment, limit=_CHUNK, mark=mark)
    output, errors = _Collected(MAX_OUTPUT_BYTES), _Collected(MAX_ERROR_BYTES, keeps_end=True)
    code: int | None = None
    writing = asyncio.create_task(_write(process, text.encode("utf-8", "replace")))
    reading = {asyncio.create_task(output.read(process.stdout)), asyncio.create_task(errors.read(process.stderr))}
    try:
        # The end of its output says nothing: processes that it left behind may hold that open.
        while process.returncode is None and not output.too_much:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)
        code = process.returncode
        await asyncio.wait(reading, timeout=_DRAIN_S if code is not None else 0)
    finally:
        signal_group(process, hard=True)
        for pid, left in left_behind(process, mark):
            _logger.warning("process %d was left behind by %s, and killed: %s", pid, words[0], left)
        try:
            await ends_within(process, _REAP_S)
        finally:
            for task in (writing, *reading):
                task.cancel()
            if watcher is not None:
                watcher.close()
            process._transport.close()  # type: ignore[attr-defined]  # as in `StdioTransport`
    return Ended(code if code is not None else -9, bytes(output.kept), bytes(errors.kept), output.too_much)


class _Collected:
    """What comes through a pipe: up to `most` bytes, or the last ones."""

    def __init__(self, most: int, *, keeps_end: bool = False) -> None:
        self.kept = bytearray()
        self.too_much = False
        self._most = most
        self._keeps_end = keeps_end

    async def read(self, pipe: asyncio.StreamReader | None) -> None:
        assert pipe is not None
        while piece := await pipe.read(_CHUNK):
            self.kept += piece
            if len(self.kept) > self._most and self._keeps_end:
                del self.kept[: -self._most]
            elif len(self.kept) > self._most:
                self.too_much = True
                return


async def _write(process: asyncio.subprocess.Process, content: bytes) -> None:
    """Write all of the input and close it. A program need not read it."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.write(content)
        await process.stdin.drain()
        process.stdin.close()
