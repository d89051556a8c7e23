"""Output in a job of GitHub Actions: annotations and the summary of the job.

The runner of the job executes every output line that begins with `::` as a command, even if a model wrote the line. All
commands in the output, except those of `write_commands`, are therefore escaped."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO, cast

from workbench.show.workflow_commands import inert

_SUMMARY = "GITHUB_STEP_SUMMARY"


def in_github() -> bool:
    """Return whether this process runs in a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def escape_output() -> None:
    """Escape all further output, so that only `write_commands` gives commands to the runner."""
    sys.stdout, sys.stderr = (cast("TextIO", EscapedStream(stream)) for stream in (sys.stdout, sys.stderr))


class EscapedStream:
    """A stream to the runner that escapes commands, even a command written in several pieces."""

    def __init__(self, stream: TextIO) -> None:
        self.commands = stream
        """The underlying stream, which does not escape commands."""
        self._line = ""

    def write(self, text: str) -> int:
        # Only the beginning of a line can be a command. `_line` keeps it until the rest of the line is written.
        whole = inert(self._line + text)
        self.commands.write(whole[len(self._line) :])
        line = whole[max(whole.rfind("\n"), whole.rfind("\r")) + 1 :]
        begun = line.strip()
        self._line = f" {begun}" if begun in ("", ":", "#", "##") else f"x{line[-2:]}"
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.commands, name)


def write_commands(commands: Iterable[str], stream: TextIO) -> None:
    """Write annotations as commands to the runner. The caller must redact them."""
    its: TextIO = getattr(stream, "commands", stream)
    stream.flush()
    its.writelines(commands)
    its.flush()


def write_summary(pieces: Callable[[int], Iterable[str]]) -> None:
    """Append a report to the job's summary, if there is one. An error is printed, not raised.

    `pieces` is called with the number of bytes left in the summary."""
    from workbench.cli.redaction import warn
    from workbench.show.views.batch_markdown import SUMMARY_MAX

    name = os.environ.get(_SUMMARY)
    if not name:
        return
    file = Path(name)
    try:
        before = file.stat().st_size if file.exists() else 0
        with file.open("a", encoding="utf-8") as summary:
            summary.writelines(pieces(max(SUMMARY_MAX - before, 0)))
            summary.write("\n")
    except OSError as error:
        warn(f"the summary of the job could not be written to {file}: {error.strerror}")
