"""Print the steps of a batch in the terminal, draw its progress, and stop it on an interrupt."""

from __future__ import annotations

import math
import os
import queue
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import field, replace
from functools import partial
from itertools import chain
from typing import Any, Protocol, TextIO, cast

from rich.cells import cell_len

from workbench.cli.redaction import printing_to, warn, write, write_json_text
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.dataclasses import dataclass
from workbench.engine.events import (
    BatchDone,
    BatchEvent,
    ClusterNotice,
    EndpointNotice,
    HistoryProblem,
    JudgeAsked,
    RequestDelayed,
    RunDone,
    RunEvent,
    StartUp,
)
from workbench.engine.plan import PlannedRun
from workbench.engine.recordings import RecordingLines, Recordings
from workbench.engine.redaction import EventRedaction, SuiteParts, shown_result
from workbench.evaluation.approval import Approval
from workbench.evaluation.plan import Plan
from workbench.evaluation.progress import BatchProgress
from workbench.evaluation.run import Outcome
from workbench.evaluation.runtime import Runtime
from workbench.grading.grade import RunResult
from workbench.grading.run_summary import is_not_needed
from workbench.numerals import counted, duration_text
from workbench.show.text import Paint, paint_for
from workbench.show.views.grades import result_text, step_lines
from workbench.show.views.progress import Progress, progress_line, starting_text
from workbench.show.views.trajectory import StepLines
from workbench.show.visible import fit, one_line
from workbench.trajectory.recording import event_to_line

MAX_TITLE_CELLS = 32


@dataclass(frozen=True)
class Show:
    """Where and how to print the steps of runs.

    `steps` is whether steps are printed at all, and `verbose` whether they are printed in full. `width` is the maximum
    width of a line in columns."""

    stream: TextIO
    steps: bool
    verbose: bool
    width: int
    paint: Paint
    secrets: Secrets = NO_SECRETS


class StepPrinter:
    """Prints the steps of runs. Each line begins with the title of its run."""

    def __init__(self, plan: Plan, show: Show) -> None:
        self._show = show
        runs = plan.runs if show.steps else ()
        several_models = len({run.model for run in runs}) > 1
        names = plan.suite_names
        # Titles are redacted before they are cut, because a cut secret would not be found.
        self._titles = {run.run_id: show.secrets.redact(_title(run, names, with_model=several_models)) for run in runs}
        widest = max((cell_len(title) for title in self._titles.values()), default=0)
        self._title_width = min(widest, MAX_TITLE_CELLS, max(show.width // 3, 8))
        self._room = max(show.width - self._title_width - 2, 20)
        self._steps: dict[str, StepLines] = {}
        self._parts = SuiteParts(show.secrets)
        self._redactions: dict[str, EventRedaction] = {}

    def step(self, run_event: RunEvent) -> None:
        if not self._show.steps:
            return
        event = run_event.event
        steps = self._steps.get(event.run_id)
        if steps is None:
            steps = StepLines(self._show.paint, verbose=self._show.verbose, width=self._room)
            self._steps[event.run_id] = steps
        for shown in self._redactions.setdefault(event.run_id, EventRedaction(self._parts)).add(event):
            for line in steps.lines(shown):
                self._print(event.run_id, line)

    def start_up(self, event: StartUp) -> None:
        """Print one line when a server begins to start.

        A failed start is reported by the run that needs the server."""
        if self._show.steps and event.took_ms is None:
            line = self._show.paint(starting_text((event.words,)), "muted")
            write(f"{line}\n", self._show.stream)

    def judging(self, event: JudgeAsked) -> None:
        if not self._show.steps:
            return
        judge = f"the judge {one_line(event.judge)}"
        if event.retry is not None:
            failed = f"{judge}: {one_line(event.retry.reason)}"
            lines = [f"▲ {failed}", f"↻ retry {event.retry.attempt} in {duration_text(event.retry.wait_ms)}"]
        else:
            lines = [self._show.paint(f"· asking {judge} about {counted(event.values, 'value')}", "muted")]
        for line in lines:
            self._print(event.run_id, line)

    def delayed(self, event: RequestDelayed) -> None:
        if self._show.steps:
            self._print(
                event.run_id, f"↻ waits {duration_text(event.wait_s * 1000)}: the endpoint asked another run to wait"
            )

    def done(self, result: RunResult) -> None:
        steps, redaction = self._steps.pop(result.run_id, None), self._redactions.pop(result.run_id, None)
        if not self._show.steps or is_not_needed(result):
            return
        if redaction is not None and steps is not None:
            for line in chain.from_iterable(map(steps.lines, redaction.flush())):
                self._print(result.run_id, line)
        result = shown_result(result, self._show.secrets)
        width = sys.maxsize if self._show.verbose else self._room
        for line in step_lines(result.steps, self._show.paint, width):
            self._print(result.run_id, line)
        self._print(result.run_id, self._show.paint(result_text(result), result.status.role))

    def _print(self, run_id: str, line: str) -> None:
        title = self._show.paint(fit(self._titles[run_id], self._title_width), "muted")
        write(f"{title}  {line}\n", self._show.stream)


def _title(run: PlannedRun, suite_names: Mapping[str, str], *, with_model: bool) -> str:
    model = f" · {run.model}" if with_model else ""
    repeat = f" #{run.repeat + 1}" if run.repeat else ""
    return one_line(f"{run.case.name}{repeat}{model}") or suite_names[str(run.file.path)]


class EventStream:
    """Writes events as JSON lines. The header of a run comes before its first event."""

    def __init__(self, runs: Sequence[PlannedRun], lines: RecordingLines, stream: TextIO) -> None:
        self._runs = {run.run_id: run for run in runs}
        self._waiting = dict(self._runs)
        self._redactions: dict[str, EventRedaction] = {}
        self._lines = lines
        self._stream = stream

    def step(self, event: RunEvent) -> None:
        self._begin(event.event.run_id)
        run_id = event.event.run_id
        redaction = self._redactions.get(run_id) or self._redactions.setdefault(run_id, self._lines.redaction())
        for shown in redaction.add(event.event):
            self._write(partial(event_to_line, shown))

    def done(self, result: RunResult) -> None:
        """Write the result of a run. If the run never began, write its header first."""
        self._begin(result.run_id)
        for shown in self._redactions.pop(result.run_id, self._lines.redaction()).flush():
            self._write(partial(event_to_line, shown))
        self._write(lambda: self._lines.result(self._runs[result.run_id], result))

    def _begin(self, run_id: str) -> None:
        run = self._waiting.pop(run_id, None)
        if run is not None:
            self._write(lambda: self._lines.header(run))

    def _write(self, line: Callable[[], str]) -> None:
        try:
            text = line()
        except (ValueError, TypeError, RecursionError) as error:
            warn(f"a line is missing from the stream, because an event cannot be written as JSON: {error}")
        else:
            write_json_text(f"{text}\n", self._stream)


REDRAW_INTERVAL_S = 0.1
"""The minimum time in seconds between two drawings after changes."""

PROGRESS_POLL_S = 1.0
"""The time in seconds between two drawings without a change. They update the estimate of the remaining time."""

_CLEAR = "\r\x1b[2K"

_REWRAPS = (
    *("TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION"),
    *("ALACRITTY_WINDOW_ID", "WT_SESSION", "TERM_PROGRAM"),
)
"""The environment variables of terminals that rewrap lines when they become narrower. Other terminals, such as xterm,
do not rewrap."""


class ProgressBar:
    """Draws the progress of a batch on the last line of a terminal. Draws nothing if the stream is not a terminal.

    All other output to the terminal must go through `stream_above`, which first removes the progress line. The line is
    drawn again later. Only one thread may call `draw`, but any thread may write meanwhile."""

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
        """The progress line on the terminal, "" if there is none."""
        self._mid_line = False
        """Whether the text above the line does not end with a newline yet."""
        self._changed = False
        self._checked_s = -math.inf

    def changed(self) -> None:
        self._changed = True

    def wait_s(self) -> float | None:
        """Return the seconds until the progress line must be drawn again, `None` if no line is drawn."""
        if self.enabled:
            return max(self._due_s() - self._clock(), 0.0)
        return None

    def draw(self) -> None:
        """Draw the line if it is due and has changed."""
        if not self.enabled or self._clock() < self._due_s():
            return
        with self._lock:
            now = self._clock()
            self._checked_s, self._changed = now, False
            if self._mid_line:
                return
            # Three columns stay free. Many terminals wrap after the last column, and the echoed ^C takes two.
            width = max(self._columns() - 3, 1)
            line = self._paint.line(progress_line(self._progress, now, width=width, only_ascii=self._only_ascii))
            if line != self._shown:
                # The line is removed and drawn in one write, so that it does not flicker.
                self._write(self._removal() + line)
                self._shown = line

    def _due_s(self) -> float:
        if self._changed or not self._shown:
            return self._checked_s + REDRAW_INTERVAL_S
        return self._checked_s + PROGRESS_POLL_S

    def close(self) -> None:
        """Remove the line. It is not drawn again."""
        with self._lock:
            self._clear()
            self.enabled = False

    def stream_above(self, stream: TextIO) -> TextIO:
        """Return a stream that writes to `stream`. On a terminal, the text appears above the progress line."""
        if not self.enabled or not stream.isatty():
            return stream
        return cast("TextIO", _StreamAbove(self, stream))

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
        """Return the escape sequence that removes the line.

        A terminal that was made narrower may have wrapped the line into several rows."""
        if not self._shown:
            return ""
        if not self._rewraps:
            return _CLEAR
        # Lazy import: Rich takes long to import.
        from rich.text import Text

        rows = -(-cell_len(Text.from_ansi(self._shown).plain) // self._columns())
        if rows <= 1:
            return _CLEAR
        return f"{_CLEAR}\x1b[{rows - 1}A\x1b[J"

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def _columns(self) -> int:
        try:
            return max(os.get_terminal_size(self._stream.fileno()).columns, 1)
        except OSError:
            return 80


class _StreamAbove:
    """A stream of a terminal whose text appears above the progress line."""

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


STOP_POLL_S = 0.02
"""The time in seconds in which events are collected before they are handled together. Handling each event at once would
take a third of the engine's time."""


@dataclass
class BatchOutcome:
    """The outcome of a batch, and whether all requested recordings could be written."""

    outcome: Outcome = field(default_factory=Outcome)
    recorded: bool = True


class BatchObserver(Protocol):
    """An observer of a batch in this process."""

    def begun(self, runtime: Runtime, name: str) -> None:
        """Handle the beginning of the batch. `name` is its name in the runtime."""
        ...

    def on_event(self, event: BatchEvent) -> None:
        """Handle an event of the batch."""
        ...


_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM and SIGHUP, as on Ctrl+C. Not for use while servers are running."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = {}
    for number in _handled():
        before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _handled() -> list[signal.Signals]:
    """Return the signals to handle. Signals that the parent process ignores stay ignored.

    Under nohup, for example, a hang-up must not stop the process."""
    return [number for number in _STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


@dataclass(frozen=True)
class _Signalled:
    """A received signal, as a message in the queue of events.

    If the signal handler raised an exception instead, it could interrupt any code, such as the closing of servers, and
    the report would be lost."""

    number: int


MAX_QUEUED_RESULTS = 64
"""The number of results after which the main thread is woken if it prints no steps. Each time the main thread wakes, it
delays the runs."""


_DISPLAY_EVENTS = (RunEvent, JudgeAsked, RequestDelayed)
"""The events that are only printed."""


class _Inbox:
    """The queue of events for the main thread. Any thread and any signal handler may add events.

    If the main thread prints no steps, events that are only printed are dropped. Results then wake the main thread only
    in groups."""

    def __init__(self, *, shows: bool) -> None:
        self._is_displayed = shows
        self._events: deque[BatchEvent | _Signalled] = deque()
        # Signals interrupt the `get` of a `SimpleQueue`, and their handlers may call its `put`.
        self._news: queue.SimpleQueue[None] = queue.SimpleQueue()

    def put(self, event: BatchEvent | _Signalled) -> None:
        if not self._is_displayed and isinstance(event, _DISPLAY_EVENTS):
            return
        self._events.append(event)
        if self._is_displayed or not isinstance(event, RunDone) or len(self._events) >= MAX_QUEUED_RESULTS:
            self._news.put(None)

    @property
    def is_empty(self) -> bool:
        return not self._events

    def get(self, timeout_s: float | None = None) -> BatchEvent | _Signalled | None:
        while not self._events:
            try:
                self._news.get(timeout=timeout_s)
            except queue.Empty:
                return None
        return self._events.popleft()


def run_live(
    plan: Plan,
    approval: Approval,
    show: Show,
    *,
    lines: RecordingLines | None = None,
    record: Recordings | None = None,
    watcher: BatchObserver | None = None,
    from_history: bool = False,
) -> BatchOutcome:
    """Run a plan to its end, or until Ctrl+C, SIGTERM or SIGHUP stops it cleanly.

    A second signal ends the wait for runs in progress. Servers are always closed. Output of a suite's Python code goes
    to standard error, where it cannot corrupt a report. With `lines`, the events are printed as JSON lines. `record`
    records the runs, and `watcher` gets all events. With `from_history`, the results of a large batch are read back
    from the history, without secrets. The progress is drawn on standard error if that is a terminal.

    Before any run, raises HistoryError if a resumed batch cannot be written, and ClusterError if the cluster cannot
    execute the runs."""
    live = BatchOutcome()
    signals: list[_Signalled] = []

    # The handler interrupts the main thread at any point, so it only adds a message to the queue.
    def take_signal(number: int, _frame: object) -> None:
        signals.append(_Signalled(number))
        events.put(signals[-1])

    progress = BatchProgress(plan.runs)
    if plan.resumed is not None:
        for tally in plan.resumed.before.tallies:
            progress.add_ended(*tally)
    bar = ProgressBar(progress, sys.stderr, os.environ)
    receives_events = show.steps or lines is not None or watcher is not None
    events = _Inbox(shows=receives_events or bar.enabled)
    before = {number: signal.signal(number, take_signal) for number in _handled()}
    runtime = Runtime(
        events.put,
        plan.program,
        original_pace=plan.original_pace,
        renew_judgements=plan.renew_judgements,
        history=plan.history,
        receives_events=receives_events,
    )
    show = replace(show, stream=bar.stream_above(show.stream))
    printer = StepPrinter(plan, show) if lines is None else EventStream(plan.runs, lines, show.stream)
    errors = bar.stream_above(sys.stderr)
    name = ""
    try:
        with printing_to(errors), closing(runtime):
            live.outcome.begin()
            name = runtime.start(plan, approval, recordings=record, is_cancelled=lambda: bool(signals))
            if from_history and plan.history is not None and (handle := runtime.handle_of(name)) is not None:
                live.outcome.results.read_from(plan.history, handle)
            if watcher is not None:
                watcher.begun(runtime, name)
            _watch(events, runtime, printer, live.outcome, progress, bar, watcher)
            live.outcome.end_clock()
            bar.close()
    finally:
        bar.close()
        # The results of runs that finished while the runtime closed are in the queue now.
        _drain(events, live.outcome)
        live.outcome.end(runtime, name)
        for number, handler in before.items():
            signal.signal(number, handler)
    return live


def _watch(
    events: _Inbox,
    runtime: Runtime,
    printer: StepPrinter | EventStream,
    outcome: Outcome,
    progress: BatchProgress,
    bar: ProgressBar,
    watcher: BatchObserver | None = None,
) -> None:
    """Print events until the batch is done or a second signal arrives."""
    # The wait on this event ends early on a signal. A `time.sleep` would continue.
    never = threading.Event()
    printed = set[str]()
    while True:
        bar.draw()
        if events.is_empty:
            never.wait(STOP_POLL_S)
        event = events.get(bar.wait_s())
        if event is None:
            continue
        if isinstance(event, _Signalled):
            if outcome.interrupted:
                return
            outcome.interrupted = True
            warn("stopping; finished runs are kept")
            runtime.stop_all()
            continue
        outcome.on_event(event)
        if watcher is not None:
            watcher.on_event(event)
        if bar.enabled and progress.on_event(event, time.monotonic()):
            bar.changed()
        match event:
            case RunEvent():
                printer.step(event)
            case RunDone(result):
                printer.done(result)
            case StartUp() if isinstance(printer, StepPrinter):
                printer.start_up(event)
            case JudgeAsked() if isinstance(printer, StepPrinter):
                printer.judging(event)
            case RequestDelayed() if isinstance(printer, StepPrinter):
                printer.delayed(event)
            case HistoryProblem(text) | ClusterNotice(text=text):
                warn(text)
            case EndpointNotice(text) if text not in printed:
                # Every worker process sends the same notice, so it is printed once.
                printed.add(text)
                warn(text)
            case BatchDone():
                return
            case _:
                pass


def _drain(events: _Inbox, outcome: Outcome) -> None:
    while not events.is_empty:
        event = events.get()
        if isinstance(event, RunDone):
            outcome.on_event(event)
        elif isinstance(event, HistoryProblem | ClusterNotice):
            warn(event.text)
