"""Runs a batch from the command line: prints its steps as they happen, and stops it on an interrupt."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import field, replace
from typing import Protocol

from workbench.batches.events import (
    BatchDone,
    BatchEvent,
    ClusterSaid,
    EndpointSaid,
    HistorySaid,
    JudgeAsked,
    RequestPutOff,
    RunDone,
    RunEvent,
    StartUp,
)
from workbench.batches.recordings import RecordingLines, Recordings
from workbench.cli.door import printing_to, warn
from workbench.cli.progress import ProgressBar
from workbench.cli.step_printer import EventStream, Show, StepPrinter
from workbench.dataclasses import dataclass
from workbench.evaluation.approval import Approval
from workbench.evaluation.plan import Plan
from workbench.evaluation.progress import BatchProgress
from workbench.evaluation.run import Outcome
from workbench.evaluation.runtime import Runtime

LOOK_INTERVAL_S = 0.02
"""The time between bursts of events: waking up for each of them would cost the engine a third of its time."""


@dataclass
class Live:
    """The outcome of a batch, and whether all of it was recorded as asked."""

    outcome: Outcome = field(default_factory=Outcome)
    recorded: bool = True


class Watcher(Protocol):
    """Looks on at a batch of this process."""

    def begun(self, runtime: Runtime, name: str) -> None:
        """The batch of this name begins."""
        ...

    def take(self, event: BatchEvent) -> None:
        """Something happened."""
        ...


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Have SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl+C does, while nothing runs that has to be closed."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in _handled()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _handled() -> list[signal.Signals]:
    """What the caller ignores stays ignored: under nohup a hang-up is no reason to stop."""
    return [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]


@dataclass(frozen=True)
class _Signalled:
    """A signal came. It takes its turn in the queue: raised as an exception it could strike anywhere, while the servers
    are being closed for one, and cost the report."""

    number: int


_Queue = queue.SimpleQueue[BatchEvent | _Signalled]


def run_live(
    plan: Plan,
    approval: Approval,
    show: Show,
    *,
    lines: RecordingLines | None = None,
    record: Recordings | None = None,
    watcher: Watcher | None = None,
    from_history: bool = False,
) -> Live:
    """Run a plan to its end, or until Ctrl+C, SIGTERM or SIGHUP: then stop it, and wait for it to stop cleanly.

    A second signal gives up waiting. Servers are closed in any case. What Python code of a suite prints goes to
    standard error, so that it cannot spoil a report. With `lines`, the events are shown as such; `record` records the
    runs, and a `watcher` hears of all events. With `from_history`, results of a large batch are read from there,
    without secrets. The progress stands on standard error where that is a terminal. Raises HistoryError, before any run
    is made, when a batch that is resumed cannot be written, and ClusterError when its cluster cannot make its runs.
    """
    events: _Queue = queue.SimpleQueue()
    live = Live()
    signals: list[_Signalled] = []

    def take_signal(number: int, _frame: object) -> None:
        signals.append(_Signalled(number))
        events.put(signals[-1])

    before = {number: signal.signal(number, take_signal) for number in _handled()}
    runtime = Runtime(
        events.put,
        plan.program,
        own_pace=plan.own_pace,
        judge_anew=plan.judge_anew,
        history=plan.history,
        hears_events=show.steps or lines is not None or watcher is not None,
    )
    progress = BatchProgress(plan.runs)
    for tally in plan.resumed.before.tallies if plan.resumed is not None else ():
        progress.over_already(*tally)
    bar = ProgressBar(progress, sys.stderr, os.environ)
    show = replace(show, stream=bar.above(show.stream))
    printer = StepPrinter(plan, show) if lines is None else EventStream(plan.runs, lines, show.stream)
    errors = bar.above(sys.stderr)
    name = ""
    try:
        with printing_to(errors), closing(runtime):
            live.outcome.begin()
            name = runtime.start(plan, approval, record=record, given_up=lambda: bool(signals))
            if from_history and plan.history is not None and (handle := runtime.handle_of(name)) is not None:
                live.outcome.results.read_from(plan.history, handle)
            if watcher is not None:
                watcher.begun(runtime, name)
            _watch(events, runtime, printer, live.outcome, progress, bar, watcher)
            live.outcome.over()
            bar.close()
    finally:
        bar.close()
        _drain(events, live.outcome)
        live.outcome.end(runtime, name)
        for number, handler in before.items():
            signal.signal(number, handler)
    return live


def _watch(
    events: _Queue,
    runtime: Runtime,
    printer: StepPrinter | EventStream,
    outcome: Outcome,
    progress: BatchProgress,
    bar: ProgressBar,
    watcher: Watcher | None = None,
) -> None:
    """Print what happens until the batch is done, or somebody signals for the second time."""
    never = threading.Event()  # only time is waited for
    said = set[str]()
    while True:
        bar.draw()
        if events.empty():
            never.wait(LOOK_INTERVAL_S)
        try:
            event = events.get(timeout=bar.wait_s())
        except queue.Empty:
            continue
        if isinstance(event, _Signalled):
            if outcome.interrupted:
                return
            outcome.interrupted = True
            warn("stopping; finished runs are kept")
            runtime.stop_all()
            continue
        outcome.take(event)
        if watcher is not None:
            watcher.take(event)
        if bar.enabled and progress.take(event, time.monotonic()):
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
            case RequestPutOff() if isinstance(printer, StepPrinter):
                printer.put_off(event)
            case HistorySaid(text) | ClusterSaid(text=text):
                warn(text)
            case EndpointSaid(text) if text not in said:
                said.add(text)  # each of several processes finds it out by itself
                warn(text)
            case BatchDone():
                return
            case _:
                pass


def _drain(events: _Queue, outcome: Outcome) -> None:
    """Take the results that came in after nobody watched any more."""
    while not events.empty():
        event = events.get()
        if isinstance(event, RunDone):
            outcome.take(event)
        elif isinstance(event, HistorySaid | ClusterSaid):
            warn(event.text)
