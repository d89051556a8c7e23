"""The progress of a batch on the last line of a terminal, below the steps that stream by."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO, cast

from rich.cells import cell_len
from rich.text import Text

from workbench.batches.events import RequestPutOff, RunEvent, StartUp
from workbench.batches.plan import PlannedRun
from workbench.grading.grade import RunResult
from workbench.grading.run_summary import RunSummary
from workbench.reports.paint import paint_for
from workbench.reports.progress import Progress, progress_line
from workbench.trajectory.events import RetryScheduled

REDRAW_INTERVAL_S = 0.1
"""At most so often it is drawn."""

LOOK_INTERVAL_S = 1.0
"""So often it is looked whether the line would be another one although nothing has happened: time goes by."""

_CLEAR = "\r\x1b[2K"

_REWRAPS = (
    "TMUX",
    "VTE_VERSION",
    "KITTY_WINDOW_ID",
    "KONSOLE_VERSION",
    "ALACRITTY_WINDOW_ID",
    "WT_SESSION",
    "TERM_PROGRAM",
)
"""What terminals set that break lines anew when they become narrower, as others, such as xterm, do not."""


class ProgressBar:
    """Draws the line of some progress on a stream that is a terminal; on any other one, nothing at all.

    What else is written to the terminal goes through `above`: then the line is taken away first, and comes back with
    the next drawing. To be drawn on one thread; others may write meanwhile.
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
        self._only_ascii = bool(environment.get("WORKBENCH_ASCII")) or not _can_say(stream, "█░·✓✗▲■–")
        self._rewraps = any(environment.get(name) for name in _REWRAPS)
        self._clock = clock
        self._lock = threading.RLock()
        self._shown = ""
        """What stands on the terminal, empty when nothing does."""
        self._mid_line = False
        """Whether somebody has begun a line there and not ended it."""
        self._changed = False
        self._looked_at_s = -math.inf

    def changed(self) -> None:
        """Something has happened that the line is about."""
        self._changed = True

    def wait_s(self) -> float | None:
        """How long may be waited for what happens next before the line is to be drawn; `None`: for ever."""
        return max(self._due_s() - self._clock(), 0.0) if self.enabled else None

    def draw(self) -> None:
        """Draw the line where it is time to and it is another one than before."""
        if not self.enabled or self._clock() < self._due_s():
            return
        with self._lock:
            now = self._clock()
            self._looked_at_s, self._changed = now, False
            if self._mid_line:
                return
            # The last column stays free: written to, many terminals go on to the next line.
            width = max(self._columns() - 1, 1)
            line = progress_line(self._progress, now, width=width, paint=self._paint, only_ascii=self._only_ascii)
            if line != self._shown:
                self._write(self._taken_away() + line)
                self._shown = line

    def _due_s(self) -> float:
        soon = self._changed or not self._shown
        return self._looked_at_s + (REDRAW_INTERVAL_S if soon else LOOK_INTERVAL_S)

    def close(self) -> None:
        """Take the line away for good."""
        with self._lock:
            self._clear()
            self.enabled = False

    def above(self, stream: TextIO) -> TextIO:
        """The stream, what is written to which appears above the line where it is a terminal."""
        return cast(TextIO, _Above(self, stream)) if self.enabled and stream.isatty() else stream

    def write_above(self, stream: TextIO, text: str) -> int:
        """Write to a stream of the terminal, the line taken away."""
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
            self._write(self._taken_away())
            self._shown = ""

    def _taken_away(self) -> str:
        """What takes the line away, with all rows that a terminal which became narrower has broken it into."""
        if not self._shown or not self._rewraps:
            return _CLEAR if self._shown else ""
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
    """A stream whose writing takes the line away."""

    def __init__(self, bar: ProgressBar, stream: TextIO) -> None:
        self._bar = bar
        self._stream = stream

    def write(self, text: str) -> int:
        return self._bar.write_above(self._stream, text)

    def writelines(self, lines: list[str]) -> None:
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _can_say(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class LiveProgress:
    """The progress of some runs while they are made, and the bar that shows it. `over` are runs of the same batch that
    were over before."""

    def __init__(
        self, runs: Sequence[PlannedRun], over: Iterable[RunSummary], stream: TextIO, environment: Mapping[str, str]
    ) -> None:
        self._models = {run.run_id: run.model for run in runs}
        self._progress = Progress()
        self._progress.plan(run.model for run in runs)
        for run in over:
            self._progress.over_already(run.model, run.status, run.cost_usd)
        self.bar = ProgressBar(self._progress, stream, environment)

    def step(self, happened: RunEvent) -> None:
        """Something happened in a run."""
        if self.bar.enabled:
            run_id = happened.event.run_id
            self._progress.began(run_id, self._models[run_id], time.monotonic())
            self._progress.waits(run_id, waits=isinstance(happened.event.payload, RetryScheduled))
            self.bar.changed()

    def start_up(self, event: StartUp) -> None:
        """A server or a model starts up, or has done so."""
        if self.bar.enabled:
            self._progress.starts_up(event.number, event.what, over=event.took_ms is not None)
            self.bar.changed()

    def put_off(self, event: RequestPutOff) -> None:
        """A run waits since its endpoint has told another one to."""
        if self.bar.enabled:
            self._progress.waits(event.run_id, waits=True)
            self.bar.changed()

    def done(self, result: RunResult) -> None:
        """A run is over."""
        if self.bar.enabled:
            self._progress.ended(result.run_id, result.model, result.status, result.cost_usd)
            self.bar.changed()
