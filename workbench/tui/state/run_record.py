"""One run since it was planned: what happened in it, how far it is, what it came to, and what it asks a person."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from workbench.batches.plan import PlannedRun
from workbench.engine.permission import ExecutionQuestion
from workbench.grading.grade import RunResult, Status
from workbench.trajectory.events import Event, Paused, Resumed, StepStarted
from workbench.trajectory.fold import fold
from workbench.trajectory.trajectory import Trajectory
from workbench.tui.state.asked import graded_alike, read_now, same_question, stops_alike
from workbench.tui.state.document import CaseOutline
from workbench.tui.state.missing import expected_of
from workbench.tui.state.open_suite import OpenSuite
from workbench.tui.state.run_view import RunView
from workbench.tui.state.spend import Spend, spend_of

if TYPE_CHECKING:
    from workbench.analysis.divergence import Difference

CaseKey = tuple[Path, str]
"""A case: its suite's file and its id."""


class RunKind(NamedTuple):
    """A case shows the latest run of each model, repeat, and whether it is recorded. A fork is one of its own: it has
    the run's id, too."""

    model: str
    repeat: int
    recorded: bool
    fork: str | None = None


Stage = Literal["waiting", "running", "done"]

RUN_AGAIN: frozenset[Status] = frozenset({"failed", "error", "stopped"})
"""How a run ended that somebody may want to see again."""

BROKEN_OFF: frozenset[Status] = frozenset({"error", "stopped", "skipped"})
"""How a run ended that did not come to its end."""


@dataclass
class RunRecord:
    """One run, from the moment it was planned. `recorded` says that it comes from a recording; `started_at` is the time
    of day, ISO 8601, of its first event. `planned` has the case by which `result` is graded, which may say something
    else than when the run was made."""

    planned: PlannedRun
    batch: str = ""
    recorded: bool = False
    started_at: str = ""
    events: list[Event] = field(default_factory=list)
    view: RunView = field(default_factory=RunView)
    stage: Stage = "waiting"
    result: RunResult | None = None
    spent: Spend = field(default_factory=Spend)
    """What it used, once it is over; nothing for a recorded one."""
    paused: Paused | None = None
    """Where it waits for a person, while it does."""
    step: int = 0
    """The step of a chain that it is in, counted from 1."""
    saved_in: Path | None = None
    original: tuple[PlannedRun, RunResult] | None = None
    """How it was planned and graded when it ran, where it was graded anew since."""
    origin: RunRecord | None = field(default=None, repr=False)
    """The run from which it was forked here."""
    _compared: tuple[int, Difference | None] = field(default=(-1, None), repr=False)
    """How it differs from that, by how many events that one had when both were compared."""

    @property
    def run_id(self) -> str:
        return self.planned.run_id

    @property
    def path(self) -> Path:
        return self.planned.file.path

    @property
    def case_id(self) -> str:
        return self.planned.case.id

    @property
    def case_name(self) -> str:
        return self.planned.case.name

    @property
    def model(self) -> str:
        return self.planned.model

    @property
    def repeat(self) -> int:
        return self.planned.repeat

    @property
    def held(self) -> bool:
        """Whether it is held, until a person lets it go on."""
        return self.paused is not None and self.paused.at != "permission"

    @property
    def hold(self) -> int | None:
        """Which hold that is: the sequence number of its `Paused`."""
        return next(at.sequence for at in reversed(self.events) if at.what is self.paused) if self.held else None

    @property
    def was_held(self) -> bool:
        """Whether it was held anywhere, as by stepping through it."""
        return any(isinstance(each.what, Paused) and each.what.at != "permission" for each in self.events)

    @property
    def asks(self) -> bool:
        """Whether it asks if a call may be executed."""
        return self.paused is not None and self.paused.at == "permission"

    @property
    def trajectory(self) -> Trajectory:
        """What happened so far. Of a run that is not over, all its events are added up for it."""
        return self.result.trajectory if self.result is not None else fold(self.events)

    @property
    def kind(self) -> RunKind:
        """What is told apart among the runs of a case."""
        return RunKind(self.model, self.repeat, self.recorded, self.run_id if self.is_fork else None)

    @property
    def is_fork(self) -> bool:
        """Whether it was forked here from another run: it then does not speak for its case."""
        return self.planned.fork is not None

    @property
    def difference(self) -> Difference | None:
        """How it differs first from the run from which it was forked; known once it is over. While that one goes on
        they are compared once, and again where it is held or over: adding up a long run costs too much for every news.
        """
        if self.origin is None or self.result is None:
            return None
        from workbench.analysis.divergence import first_difference  # not before there are forks

        seen, now = self._compared[0], len(self.origin.events)
        if seen < 0 or (seen != now and (self.origin.held or self.origin.stage == "done")):
            self._compared = now, first_difference(self.origin.trajectory, self.result.trajectory)
        return self._compared[1]

    @property
    def made(self) -> PlannedRun:
        """The run as it was planned and made."""
        return self.original[0] if self.original is not None else self.planned

    def is_of(self, suite: OpenSuite, case: CaseOutline | None) -> bool:
        """Whether the model was asked what the case asks now, and the run is graded by what the case expects now."""
        now = read_now(suite, case) if case is not None else None
        if now is None:
            return suite.file.hash == self.planned.file.hash
        asked = same_question(self.made, now.suite, now.case) and graded_alike(self.planned, now.suite, now.case)
        return asked and (self.result is None or stops_alike(now.case, self.result))

    @property
    def to_save(self) -> tuple[PlannedRun, RunResult | None]:
        """What a recording holds of it: what it comes to now. Where the case asks something else by now, it is what it
        came to when it ran."""
        if self.original is None or same_question(self.made, self.planned.suite, self.planned.case):
            return self.planned, self.result
        return self.original

    def add(self, event: Event) -> None:
        """Take one more event."""
        if not self.events:
            self.view.began = datetime.fromisoformat(self.started_at) if self.started_at else None
            self.view.steps = len(self.planned.case.steps)
        self.events.append(event)
        if isinstance(event.what, StepStarted):
            self.step = event.what.step
        self.view.add(event)
        self.saved_in = None  # that ended before this
        if isinstance(event.what, Paused):
            self.paused = event.what
        elif isinstance(event.what, Resumed):
            self.paused = None

    def finish(self, result: RunResult) -> None:
        """Take the end."""
        self.stage, self.result, self.paused, self.saved_in = "done", result, None, None
        self.spent = Spend() if self.recorded else spend_of(self.model, result)
        self.view.grade(result, expected_of(self.planned.case))
        if self.difference is not None:
            self.view.differs(self.difference.sentence)

    def grade_anew(self, planned: PlannedRun, result: RunResult) -> None:
        """Take another grade: by the case in `planned`, which is that of now."""
        if self.result is not None and self.original is None:
            self.original = (self.planned, self.result)
        elif self.original is not None and planned is self.original[0]:
            self.original = None
        self.planned, self.result, self.saved_in = planned, result, None
        former = self.original[1] if self.original is not None else None
        self.view.grade(result, expected_of(planned.case), former)


@dataclass(frozen=True)
class Question:
    """Whether a call of a run may really be executed."""

    run: RunRecord
    asked: ExecutionQuestion
