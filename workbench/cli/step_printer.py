"""What is shown of the runs of a batch while they go on: their steps for a person, or their events as JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TextIO

from rich.cells import cell_len

from workbench.batches.events import JudgeAsked, RequestPutOff, RunEvent, StartUp
from workbench.batches.plan import PlannedRun
from workbench.batches.recordings import RecordingLines
from workbench.batches.redacting import EventDoor, SuiteParts, shown_result
from workbench.cli.door import warn, write, write_json_text
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.dataclasses import dataclass
from workbench.evaluation.plan import Plan
from workbench.grading.grade import RunResult
from workbench.grading.run_summary import is_not_needed
from workbench.reports.grade_text import result_text, step_lines
from workbench.reports.paint import Paint
from workbench.reports.progress import starting_text
from workbench.reports.steps import StepLines
from workbench.reports.values import seconds
from workbench.reports.visible import fit, one_line
from workbench.suite.numerals import counted
from workbench.trajectory.event_lines import event_to_line

MAX_TITLE_CELLS = 32


@dataclass(frozen=True)
class Show:
    """What of the steps is shown, where, and how."""

    stream: TextIO
    steps: bool
    verbose: bool
    width: int
    paint: Paint
    secrets: Secrets = NO_SECRETS


class StepPrinter:
    """Prints each step behind the title of its run."""

    def __init__(self, plan: Plan, show: Show) -> None:
        self._show = show
        several_models = len({run.model for run in plan.runs}) > 1
        names = plan.suite_names
        self._titles = {run.run_id: _title(run, names, with_model=several_models) for run in plan.runs}
        widest = max((cell_len(title) for title in self._titles.values()), default=0)
        self._title_width = min(widest, MAX_TITLE_CELLS, max(show.width // 3, 8))
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
            self._print(event.run_id, f"↻ waits {seconds(event.wait_s * 1000)}: the endpoint asked another run to wait")

    def done(self, result: RunResult) -> None:
        steps, door = self._steps.pop(result.run_id, None), self._doors.pop(result.run_id, None)
        if not self._show.steps or is_not_needed(result):
            return
        for shown in door.rest() if door is not None else ():
            for line in steps.lines(shown) if steps is not None else ():
                self._print(result.run_id, line)
        result = shown_result(result, self._show.secrets)
        for line in step_lines(result.steps, self._show.paint, sys.maxsize if self._show.verbose else self._room):
            self._print(result.run_id, line)
        self._print(result.run_id, self._show.paint(result_text(result), result.status))

    def _print(self, run_id: str, line: str) -> None:
        title = self._show.paint(fit(self._titles[run_id], self._title_width), "quiet")
        write(f"{title}  {line}\n", self._show.stream)


def _title(run: PlannedRun, suite_names: Mapping[str, str], *, with_model: bool) -> str:
    model = f" · {run.model}" if with_model else ""
    repeat = f" #{run.repeat + 1}" if run.repeat else ""
    return one_line(f"{run.case.name}{repeat}{model}") or suite_names[str(run.file.path)]


class EventStream:
    """Writes each line as soon as it is known; a run's header comes before its first line."""

    def __init__(self, runs: Sequence[PlannedRun], lines: RecordingLines, stream: TextIO) -> None:
        self._runs = {run.run_id: run for run in runs}
        self._waiting = dict(self._runs)
        self._doors: dict[str, EventDoor] = {}
        self._lines = lines
        self._stream = stream

    def step(self, happened: RunEvent) -> None:
        """Write an event."""
        self._begin(happened.event.run_id)
        run_id = happened.event.run_id
        door = self._doors.get(run_id) or self._doors.setdefault(run_id, self._lines.door())
        for shown in door.take(happened.event):
            self._write(partial(event_to_line, shown))

    def done(self, result: RunResult) -> None:
        """Write what became of a run; for one that never began, that is all there is beside its header."""
        self._begin(result.run_id)
        for shown in self._doors.pop(result.run_id, self._lines.door()).rest():
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
            warn(f"a line is missing in the stream, because it cannot be written as JSON: {error}")
        else:
            write_json_text(f"{text}\n", self._stream)
