"""A batch watched from the command line: its steps stream by, an interrupt stops it and keeps what is done."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TextIO

from rich.cells import cell_len

from workbench.batches.events import (
    BatchDone,
    BatchEvent,
    BatchStarted,
    ExecutionAsked,
    HistorySaid,
    JudgeAsked,
    RequestPutOff,
    RunDone,
    RunEvent,
    StartUp,
)
from workbench.batches.plan import PlannedRun
from workbench.batches.recordings import RecordingLines, Recordings
from workbench.batches.redacting import EventDoor, SuiteParts, shown_result
from workbench.cli.door import printing_to, warn, write
from workbench.cli.event_stream import EventStream
from workbench.cli.progress import LiveProgress
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.evaluation.approval import Approval
from workbench.evaluation.plan import Plan
from workbench.evaluation.run import Outcome
from workbench.evaluation.runtime import Runtime
from workbench.grading.grade import RunResult
from workbench.reports.grade_text import step_lines
from workbench.reports.paint import Paint
from workbench.reports.progress import starting_text
from workbench.reports.signs import STATUS_SIGNS
from workbench.reports.steps import StepLines
from workbench.reports.values import score_text, seconds
from workbench.reports.visible import fit, one_line
from workbench.suite.numerals import counted

TITLE_WIDTH_MAX = 32

LOOK_INTERVAL_S = 0.02
"""Events are taken in bursts so far apart: being woken for each of them costs the engine a third of its time."""


@dataclass(frozen=True)
class Show:
    """What of the steps is shown, where, and how."""

    stream: TextIO
    steps: bool
    verbose: bool
    width: int
    paint: Paint
    secrets: Secrets = NO_SECRETS


@dataclass
class Live:
    """A batch that was watched: what it came to, and whether everything was recorded that was to be."""

    outcome: Outcome = field(default_factory=Outcome)
    recorded: bool = True


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
) -> Live:
    """Run a plan to its end, or until Ctrl+C, SIGTERM or SIGHUP: then stop it, and wait for it to stop cleanly.

    A second signal gives up waiting. Servers are closed in any case. What Python code of a suite prints goes to
    standard error, so that it cannot spoil a report. With `lines`, the events are shown as such; `record` records the
    runs. The progress stands on standard error where that is a terminal. Raises HistoryError, before any run is made,
    when a batch that is resumed cannot be written.
    """
    events: _Queue = queue.SimpleQueue()
    live = Live()
    # What the caller ignores stays ignored: under nohup a hang-up is no reason to stop.
    handled = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda number, _: events.put(_Signalled(number))) for number in handled}
    runtime = Runtime(
        events.put, plan.program, own_pace=plan.own_pace, judge_anew=plan.judge_anew, history=plan.history
    )
    over = plan.resumed.over.values() if plan.resumed is not None else ()
    progress = LiveProgress(plan.runs, over, sys.stderr, os.environ)
    show = replace(show, stream=progress.bar.above(show.stream))
    printer = _Printer(plan, show) if lines is None else EventStream(plan.runs, lines, show.stream)
    errors = progress.bar.above(sys.stderr)
    name = ""
    try:
        with printing_to(errors), closing(runtime):
            live.outcome.begin()
            name = runtime.start(plan, approval, record=record)
            _watch(events, runtime, printer, live.outcome, progress)
            live.outcome.over()
            progress.bar.close()
    finally:
        progress.bar.close()
        _drain(events, live.outcome)
        live.outcome.end(runtime, name)
        for number, handler in before.items():
            signal.signal(number, handler)
    return live


def _watch(
    events: _Queue, runtime: Runtime, printer: _Printer | EventStream, outcome: Outcome, progress: LiveProgress
) -> None:
    """Print what happens until the batch is done, or somebody signals for the second time."""
    never = threading.Event()  # only time is waited for
    while True:
        progress.bar.draw()
        if events.empty():
            never.wait(LOOK_INTERVAL_S)
        try:
            event = events.get(timeout=progress.bar.wait_s())
        except queue.Empty:
            continue
        match event:
            case RunEvent():
                progress.step(event)
                printer.step(event)
            case RunDone(result):
                outcome.take(event)
                progress.done(result)
                printer.done(result)
            case StartUp():
                outcome.take(event)
                progress.start_up(event)
                if isinstance(printer, _Printer):
                    printer.start_up(event)
            case JudgeAsked() if isinstance(printer, _Printer):
                printer.judging(event)
            case RequestPutOff():
                progress.put_off(event)
                if isinstance(printer, _Printer):
                    printer.put_off(event)
            case _Signalled() if not outcome.interrupted:
                outcome.interrupted = True
                warn("stopping; what is done is kept")
                runtime.stop_all()
            case _Signalled() | BatchDone():
                return
            case HistorySaid(text):
                warn(text)
            case BatchStarted() | ExecutionAsked() | JudgeAsked():
                pass


def _drain(events: _Queue, outcome: Outcome) -> None:
    """Take the results that came in after nobody watched any more."""
    while not events.empty():
        event = events.get()
        if isinstance(event, RunDone):
            outcome.take(event)
        elif isinstance(event, HistorySaid):
            warn(event.text)


class _Printer:
    """Prints each step behind the title of its run."""

    def __init__(self, plan: Plan, show: Show) -> None:
        self._show = show
        several_models = len({run.model for run in plan.runs}) > 1
        names = plan.suite_names
        self._titles = {run.run_id: _title(run, names, with_model=several_models) for run in plan.runs}
        widest = max((cell_len(title) for title in self._titles.values()), default=0)
        self._title_width = min(widest, TITLE_WIDTH_MAX, max(show.width // 3, 8))
        self._room = max(show.width - self._title_width - 2, 20)
        self._steps: dict[str, StepLines] = {}
        self._parts = SuiteParts(show.secrets)
        self._doors: dict[str, EventDoor] = {}

    def step(self, happened: RunEvent) -> None:
        if not self._show.steps:
            return
        event = happened.event
        steps = self._steps.get(event.run_id)
        if steps is None:
            steps = StepLines(self._show.paint, verbose=self._show.verbose, width=self._room)
            self._steps[event.run_id] = steps
        for shown in self._doors.setdefault(event.run_id, EventDoor(self._parts)).take(event):
            for line in steps.lines(shown):
                self._print(event.run_id, line)

    def start_up(self, event: StartUp) -> None:
        """One line where something starts up. A run that needs what failed says so itself."""
        if self._show.steps and event.took_ms is None:
            line = self._show.paint(starting_text((event.what,)), "quiet")
            write(f"{line}\n", self._show.stream)

    def judging(self, asked: JudgeAsked) -> None:
        if not self._show.steps:
            return
        judge = f"the judge {one_line(asked.judge)}"
        if asked.again is not None:
            failed = f"{judge}: {one_line(asked.again.reason)}"
            lines = [f"▲ {failed}", f"↻ retry {asked.again.attempt} in {seconds(asked.again.wait_ms)}"]
        else:
            lines = [self._show.paint(f"· asking {judge} about {counted(asked.values, 'value')}", "quiet")]
        for line in lines:
            self._print(asked.run_id, line)

    def put_off(self, event: RequestPutOff) -> None:
        if self._show.steps:
            self._print(event.run_id, f"↻ waits {seconds(event.wait_s * 1000)}: the endpoint told another run to wait")

    def done(self, result: RunResult) -> None:
        steps, door = self._steps.pop(result.run_id, None), self._doors.pop(result.run_id, None)
        if not self._show.steps:
            return
        for shown in door.rest() if door is not None else ():
            for line in steps.lines(shown) if steps is not None else ():
                self._print(result.run_id, line)
        result = shown_result(result, self._show.secrets)
        for line in step_lines(result.steps, self._show.paint, sys.maxsize if self._show.verbose else self._room):
            self._print(result.run_id, line)
        said = f"{STATUS_SIGNS[result.status]} {result.status}"
        if result.grades:
            said += f" {score_text(result.score)}"
        elif result.error is not None:
            said += f": {one_line(result.error)}"
        self._print(result.run_id, self._show.paint(said, result.status))

    def _print(self, run_id: str, line: str) -> None:
        title = self._show.paint(fit(self._titles[run_id], self._title_width), "quiet")
        write(f"{title}  {line}\n", self._show.stream)


def _title(run: PlannedRun, suite_names: Mapping[str, str], *, with_model: bool) -> str:
    model = f" · {run.model}" if with_model else ""
    repeat = f" #{run.repeat + 1}" if run.repeat else ""
    return one_line(f"{run.case.name}{repeat}{model}") or suite_names[str(run.file.path)]
