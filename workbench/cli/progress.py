"""The progress of a batch on the last line of a terminal, below the steps that stream by."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO, cast

from rich.cells import cell_len

from workbench.reports.progress import Progress, progress_line
from workbench.show.text import paint_for

REDRAW_INTERVAL_S = 0.1
"""The shortest time between two drawings after something happened."""

LOOK_INTERVAL_S = 1.0
"""The time between two drawings while nothing happens: estimates change as time goes by."""

_CLEAR = "\r\x1b[2K"

_REWRAPS = (
    *("TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION"),
    *("ALACRITTY_WINDOW_ID", "WT_SESSION", "TERM_PROGRAM"),
)
"""Variables of terminals that rewrap lines when they become narrower; others, such as xterm, do not."""


class ProgressBar:
    """Draws the progress line on a stream that is a terminal; on any other stream, nothing.

    Write everything else for the terminal through `above`: that removes the line first, and the next drawing restores
    it. Draw on one thread only; other threads may write at the same time.
    """

    def __init__(
        self,
        progress: Progress,
        stream: TextIO,
        environment: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._progress = progress
        self._stream = stream
        self.enabled = stream.isatty() and environment.get("TERM") != "dumb"
        self._paint = paint_for(stream, environment)
        self._only_ascii = bool(environment.get("WORKBENCH_ASCII")) or not _can_encode(stream, "█░·✓✗▲■–")
        self._rewraps = any(environment.get(name) for name in _REWRAPS)
        self._clock = clock
        self._lock = threading.RLock()
        self._shown = ""
        """The line on the terminal, empty when there is none."""
        self._mid_line = False
        """Whether text above the line has not ended with a newline yet."""
        self._changed = False
        self._looked_at_s = -math.inf

    def changed(self) -> None:
        """Note that the progress has changed."""
        self._changed = True

    def wait_s(self) -> float | None:
        """Return the seconds until the line has to be drawn again; `None` where it never is."""
        return max(self._due_s() - self._clock(), 0.0) if self.enabled else None

    def draw(self) -> None:
        """Draw the line if it is due and differs from what is shown."""
        if not self.enabled or self._clock() < self._due_s():
            return
        with self._lock:
            now = self._clock()
            self._looked_at_s, self._changed = now, False
            if self._mid_line:
                return
            # The last column stays free: written to, many terminals go on to the next line. So do two more, for the
            # ^C that a terminal shows after the line.
            width = max(self._columns() - 3, 1)
            line = progress_line(self._progress, now, width=width, paint=self._paint, only_ascii=self._only_ascii)
            if line != self._shown:
                self._write(self._removal() + line)
                self._shown = line

    def _due_s(self) -> float:
        soon = self._changed or not self._shown
        return self._looked_at_s + (REDRAW_INTERVAL_S if soon else LOOK_INTERVAL_S)

    def close(self) -> None:
        """Remove the line for good."""
        with self._lock:
            self._clear()
            self.enabled = False

    def above(self, stream: TextIO) -> TextIO:
        """Return a stream that writes to `stream`, above the line where that is a terminal."""
        return cast(TextIO, _Above(self, stream)) if self.enabled and stream.isatty() else stream

    def write_above(self, stream: TextIO, text: str) -> int:
        """Remove the line, and write to a stream of the terminal."""
        with self._lock:
            self._clear()
            if text:
                self._mid_line = not text.endswith("\n")
            written = stream.write(text)
            if self.enabled:
                stream.flush()
            return written

    def _clear(self) -> None:
        if self._shown:
            self._write(self._removal())
            self._shown = ""

    def _removal(self) -> str:
        """Return what removes the line, with all rows into which a terminal that became narrower has broken it."""
        if not self._shown or not self._rewraps:
            return _CLEAR if self._shown else ""
        from rich.text import Text  # on use: only where a terminal has become narrower

        rows = -(-cell_len(Text.from_ansi(self._shown).plain) // self._columns())
        return _CLEAR if rows <= 1 else f"{_CLEAR}\x1b[{rows - 1}A\x1b[J"

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def _columns(self) -> int:
        try:
            return max(os.get_terminal_size(self._stream.fileno()).columns, 1)
        except OSError:
            return 80


class _Above:
    """A stream whose text appears above the line."""

    def __init__(self, bar: ProgressBar, stream: TextIO) -> None:
        self._bar = bar
        self._stream = stream

    def write(self, text: str) -> int:
        return self._bar.write_above(self._stream, text)

    def writelines(self, lines: list[str]) -> None:
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _can_encode(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
