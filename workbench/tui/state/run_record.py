"""One run since it was planned: what happened in it, how far it is, what it came to, and what it asks a person."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from workbench.batches.plan import PlannedRun
from workbench.engine.permission import ExecutionQuestion
from workbench.grading.grade import RunResult, Status
from workbench.trajectory.events import Event
from workbench.tui.state.asked import graded_alike, read_now, same_question
from workbench.tui.state.document import CaseOutline
from workbench.tui.state.open_suite import OpenSuite
from workbench.tui.state.run_view import RunView
from workbench.tui.state.spend import Spend, spend_of

CaseKey = tuple[Path, str]
"""A case: its suite's file and its id."""

RunKind = tuple[str, int, bool]
"""Model, repeat, and whether it is recorded: a case shows the latest run of each."""

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
    held: bool = False
    """Whether it waits for a person."""
    saved_in: Path | None = None
    original: tuple[PlannedRun, RunResult] | None = None
    """How it was planned and graded when it ran, where it was graded anew since."""

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
    def made(self) -> PlannedRun:
        """The run as it was planned and made."""
        return self.original[0] if self.original is not None else self.planned

    def is_of(self, suite: OpenSuite, case: CaseOutline | None) -> bool:
        """Whether the model was asked what the case asks now, and the run is graded by what the case expects now."""
        now = read_now(suite, case) if case is not None else None
        if now is None:
            return suite.file.hash == self.planned.file.hash
        return same_question(self.made, now.suite, now.case) and graded_alike(self.planned, now.suite, now.case)

    @property
    def to_save(self) -> tuple[PlannedRun, RunResult | None]:
        """What a recording holds of it: what it comes to now. Where the case asks something else by now, it is what it
        came to when it ran."""
        if self.original is None or same_question(self.made, self.planned.suite, self.planned.case):
            return self.planned, self.result
        return self.original

    def add(self, event: Event) -> None:
        """Take one more event."""
        if not self.events and self.started_at:
            self.view.began = datetime.fromisoformat(self.started_at)
        self.events.append(event)
        self.view.add(event)

    def finish(self, result: RunResult) -> None:
        """Take the end."""
        self.stage, self.result, self.held = "done", result, False
        self.spent = Spend() if self.recorded else spend_of(self.model, result)
        self.view.grade(result, tuple(self.planned.case.placed_expected_calls()))

    def grade_anew(self, planned: PlannedRun, result: RunResult) -> None:
        """Take another grade: by the case in `planned`, which is that of now."""
        if self.result is not None and self.original is None:
            self.original = (self.planned, self.result)
        elif self.original is not None and planned is self.original[0]:
            self.original = None
        self.planned, self.result, self.saved_in = planned, result, None
        former = self.original[1] if self.original is not None else None
        self.view.grade(result, tuple(planned.case.placed_expected_calls()), former)


@dataclass(frozen=True)
class Question:
    """Whether a call of a run may really be executed."""

    run: RunRecord
    asked: ExecutionQuestion
