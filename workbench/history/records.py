"""What is written into a history, and what is read out of it: suites, batches, runs."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from workbench.grading.grade import RunResult, Status
from workbench.grading.run_summary import RunSummary
from workbench.suite.loading import SuiteFile
from workbench.trajectory.events import Event
from workbench.trajectory.messages import JsonValue


class HistoryError(Exception):
    """A history that cannot be used for what was wanted; the message names the file and the way out."""


class DamagedError(HistoryError):
    """A history's file says what no program wrote."""


Kind = Literal["runs", "fork"]
"""What a batch is: runs of cases, or a fork of one run."""

COUNTED: tuple[Status, ...] = ("passed", "warned", "failed", "error", "skipped", "stopped")
"""How runs end, in the order of the columns."""


@dataclass(frozen=True)
class NewRun:
    """A run that is planned. `run_id` is its id in the events; `by` the grader where it is another than the case
    says."""

    run_id: str
    file: SuiteFile
    case_id: str
    case_name: str
    model: str
    repeat: int
    model_of_suite: bool
    by: str | None = None
    is_fork: bool = False


ResumedBy = Literal["run", "compare"]


def resumed_by(settings: Mapping[str, JsonValue]) -> ResumedBy:
    """The command that goes on with a batch that was made with these settings."""
    return "compare" if settings.get("compares") is True else "run"


@dataclass(frozen=True)
class NewBatch:
    """A batch that begins. `started_at` is ISO 8601; `settings` say what it was made with, without secrets. `projects`
    gives the folder of the project that each suite's file belongs to."""

    kind: Kind
    started_at: str
    program: str
    settings: Mapping[str, JsonValue]
    runs: tuple[NewRun, ...]
    projects: Mapping[Path, Path]


@dataclass(frozen=True)
class DoneRun:
    """A run that is over. Times are milliseconds since 1970."""

    run_id: str
    result: RunResult
    events: tuple[Event, ...]
    began_ms: float
    ended_ms: float


@dataclass(frozen=True, slots=True)
class SuiteRef:
    """A suite as it was. `path` is that of its file below `project`, with slashes; `cases` is how many it had."""

    id: int
    project: str
    path: str
    hash: str
    name: str
    cases: int

    @property
    def key(self) -> str:
        """What tells suites of one history apart, as in `RunSummary`: two projects may each have one at the same path.
        It is where the file was, resolved, and nothing to be shown."""
        return posixpath.join(self.project, self.path)

    @property
    def file(self) -> Path:
        """Where its file was."""
        return Path(self.project) / self.path


@dataclass(frozen=True, slots=True)
class BatchPart:
    """The runs of one suite with one model in a batch; `cases` is how many of the suite's cases were planned. What is
    planned and not counted never finished."""

    suite: SuiteRef
    model: str
    planned: int
    cases: int
    counts: Mapping[Status, int]

    @property
    def whole(self) -> bool:
        """Whether all cases of the suite were planned."""
        return self.cases == self.suite.cases


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch as a list of batches shows it. `number` is how it is called, and `name` if a person has named it.

    `ended_at` is `None` while it goes on, and for one that was cut off. `damage` says what of it cannot be read, if
    something cannot: then it has no parts, and is there to be told of and
    to be removed.
    """

    number: int
    name: str | None
    kind: Kind
    started_at: str
    ended_at: str | None
    program: str
    settings: Mapping[str, JsonValue]
    planned: int
    parts: tuple[BatchPart, ...] = field(repr=False)
    damage: str | None = None

    @property
    def resumed_by(self) -> ResumedBy:
        """The command that goes on with it where runs are missing: it reports what the batch was made for."""
        return resumed_by(self.settings)

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.model for part in self.parts))

    @property
    def suites(self) -> tuple[SuiteRef, ...]:
        return tuple(dict.fromkeys(part.suite for part in self.parts))

    def count(self, *statuses: Status) -> int:
        """How many runs ended in one of these ways."""
        return sum(part.counts[status] for part in self.parts for status in statuses)

    @property
    def graded(self) -> int:
        return self.count("passed", "warned", "failed")

    @property
    def pass_rate(self) -> float | None:
        """Passed and warned over graded runs, 0..1."""
        return self.count("passed", "warned") / self.graded if self.graded else None

    @property
    def missing(self) -> int:
        """How many runs never came to their end: resuming the batch makes them."""
        return self.planned - self.count("passed", "warned", "failed", "error", "skipped")


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run of a batch; `place` is where it stands in the plan, from 0. `figures` are `None` for one that never
    finished, and of the newest grading wanted."""

    id: int
    batch: int
    place: int
    suite: SuiteRef
    case_id: str
    case_name: str
    model: str
    model_of_suite: bool
    repeat: int
    by: str | None
    is_fork: bool
    figures: RunSummary | None

    @property
    def missing(self) -> bool:
        """Whether it never came to its end: resuming the batch makes it."""
        return self.figures is None or self.figures.status == "stopped"


@dataclass(frozen=True, slots=True)
class Regrade:
    """A grading of a whole batch after it ran; `number` counts from 1 in its batch."""

    id: int
    batch: int
    number: int
    graded_at: str
    program: str
