"""What the program and the workers of a cluster tell each other. All of it passes the scheduler, so that no value of a
secret may be in it: the errand is searched before it leaves, and what a worker tells passes the door there."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from workbench.config.model_book import ModelOptions
from workbench.dataclasses import dataclass
from workbench.engine.plan import PlannedRun, with_grader
from workbench.evaluation.worker_pool import Happened, Hold, Made
from workbench.providers.http.rate_limits import Lease
from workbench.providers.model import RetryPolicy
from workbench.suite.model import Case, GraderName, RepeatRule
from workbench.suite.suite_file import SuiteFile

SILENCE_S = 10.0
"""A worker that is not asked for so long works for nobody, and stops."""


@dataclass(frozen=True)
class SuiteText:
    """A suite as its text has it, `$NAME` and all; `path` is absolute, `hash` that of the file."""

    path: Path
    text: str
    hash: str
    as_then: bool


class RunRef(NamedTuple):
    """A run of the plan: its suite by its place in the errand, its case by its id."""

    run_id: str
    suite: int
    case: str
    model: str
    repeat: int
    model_of_suite: bool
    by: GraderName | None
    repeat_rule: RepeatRule | None

    @classmethod
    def of(cls, run: PlannedRun, suite: int) -> RunRef:
        """The reference to a run of a suite."""
        return cls(
            run.run_id, suite, run.written.id, run.model, run.repeat, run.model_of_suite, run.by, run.repeat_rule
        )

    def planned(self, file: SuiteFile, case: Case) -> PlannedRun:
        """The run again; `case` as its suite has it."""
        written = with_grader(case, self.by, self.repeat_rule)
        of_person = (self.model_of_suite, self.by)
        return PlannedRun(self.run_id, file, written, self.model, self.repeat, *of_person, repeat_rule=self.repeat_rule)


@dataclass(frozen=True)
class Errand:
    """To each worker, once: what it takes to make the runs of a plan, from which it finds out by itself what they need.

    `samples` are runs that need all that any run of the plan needs. `granted` are the suites that were approved, by
    their places, `approved` the hashes of all that was (`vouching`). `history` is whether runs are stored, `events`
    whether anybody else hears of their events. `is_ours`: the process was started for this batch.
    """

    token: str
    suites: tuple[SuiteText, ...]
    samples: tuple[RunRef, ...]
    granted: frozenset[int]
    approved: frozenset[str]
    models: ModelOptions
    execute: bool | None
    execute_all: bool
    concurrency: int
    own_pace: bool
    judge_anew: bool
    retries: RetryPolicy
    history: bool
    events: bool
    is_ours: bool


@dataclass(frozen=True)
class Portion:
    """To a worker: make these runs, `at_once` at a time, with some parts of what endpoints allow: `leases`, known as
    `lent` from now on, or those that the worker has under that number from another portion, which is over."""

    number: int
    runs: tuple[RunRef, ...]
    at_once: int
    lent: int
    leases: tuple[Lease, ...] | None


@dataclass(frozen=True)
class StopRuns:
    """To a worker: stop this run; all of them without an id."""

    run_id: str | None


@dataclass(frozen=True)
class GiveBack:
    """To a worker: give back these leases. It may be told again."""

    lent: int


@dataclass(frozen=True)
class Over:
    """From a worker: all runs of a portion were told. Its leases wait for another portion, or to be given back."""

    number: int


@dataclass(frozen=True)
class GivenBack:
    """From a worker: it uses leases no longer. `waits_s` says for each of them in how many seconds its permits are
    free."""

    lent: int
    waits_s: tuple[tuple[float, ...], ...]


ToWorker = StopRuns | Hold | GiveBack
FromWorker = Made | Hold | Happened | Over | GivenBack
