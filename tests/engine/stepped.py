"""A session whose runs are stepped through. At each hold, named as in "call 1", it performs the commands that the test
gives for it, and continues."""

from __future__ import annotations

import queue
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.programs import begin
from workbench.config.program import Program
from workbench.engine.checkpoint import (
    AnswerCall,
    AnswerQuestion,
    Command,
    EditMessage,
    Regenerate,
    SayMessage,
    SkipCall,
)
from workbench.engine.events import BatchDone, BatchEvent, RunDone, RunEvent
from workbench.engine.plan import plan_runs
from workbench.engine.recordings import Recordings
from workbench.engine.stepper import StepTarget
from workbench.evaluation.runtime import Runtime
from workbench.grading.grade import RunResult
from workbench.suite.suite_file import SuiteFile
from workbench.trajectory.events import Event, Paused

Does = Mapping[str, Sequence[Command]]


@dataclass
class Stepped:
    """The events and results of runs, and the places at which they were held."""

    events: list[Event] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    results: list[RunResult] = field(default_factory=list)

    @property
    def result(self) -> RunResult:
        (only,) = self.results
        return only


class Person:
    """A session with a user who steps through runs. The caller closes the session."""

    def __init__(self, program: Program) -> None:
        self.said: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
        self.session = Runtime(self.said.put, program, asks=True)
        self.held_at: int | None = None

    def run(
        self,
        file: SuiteFile,
        model: str,
        does: Does | None = None,
        *,
        until: StepTarget = "stop",
        record: Recordings | None = None,
    ) -> Stepped:
        """Run the suite's cases on a model to the end."""
        runs = plan_runs([file], models=[model])
        begin(self.session, runs, until=until, record=record)
        waiting = {place: list(commands) for place, commands in (does or {}).items()}
        stepped = Stepped()
        while not isinstance(said := self.said.get(timeout=30), BatchDone):
            if isinstance(said, RunDone):
                stepped.results.append(said.result)
            if isinstance(said, RunEvent):
                stepped.events.append(said.event)
                if isinstance(said.event.payload, Paused):
                    place = f"{said.event.payload.at} {said.event.payload.round}"
                    stepped.held.append(place)
                    self._act(said.event, waiting.pop(place, []))
        assert not waiting, f"never held at {[*waiting]}"
        return stepped

    def hold(self, file: SuiteFile, model: str, at: str, record: Recordings | None = None) -> str:
        """Run the first case up to a place, where it stays held. Return the run's id. `held_at` is the hold's
        number."""
        run, *_ = plan_runs([file], models=[model])
        begin(self.session, [run], until="stop", record=record)
        while True:
            said = self.said.get(timeout=30)
            if isinstance(said, RunEvent) and isinstance(said.event.payload, Paused):
                if f"{said.event.payload.at} {said.event.payload.round}" == at:
                    self.held_at = said.event.sequence
                    return run.run_id
                self._act(said.event, [])

    def finished(self) -> list[RunResult]:
        """Wait for the end of the batch, and return the results that arrive until then."""
        results = []
        while not isinstance(said := self.said.get(timeout=30), BatchDone):
            if isinstance(said, RunDone):
                results.append(said.result)
        return results

    def _act(self, held: Event, commands: Sequence[Command]) -> None:
        """Send commands without waiting for their replies, as a fast user does. Continue the run unless the last
        command does."""
        refusals = [self.session.apply_command(held.run_id, command, held.sequence) for command in commands]
        leaving = AnswerCall | AnswerQuestion | SkipCall | Regenerate | EditMessage | SayMessage
        if not commands or not isinstance(commands[-1], leaving):
            refusals.append(self.session.continue_run(held.run_id, "stop", held.sequence))
        assert [why for refusal in refusals if (why := refusal.result(10)) is not None] == []
