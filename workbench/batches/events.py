"""What a batch says while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from workbench.batches.plan import PlannedRun
from workbench.config.secrets import Secrets
from workbench.engine.permission import ExecutionQuestion
from workbench.grading.grade import RunResult
from workbench.trajectory.events import Event, RetryScheduled


@dataclass(frozen=True, slots=True)
class BatchStarted:
    """A batch begins; all its runs are waiting."""

    batch: str
    runs: tuple[PlannedRun, ...]


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Something happened in a run."""

    event: Event


@dataclass(frozen=True, slots=True)
class ExecutionAsked:
    """A run is held until `Session.allow` answers whether a call may really be executed, or the run is stopped."""

    question: ExecutionQuestion


@dataclass(frozen=True, slots=True)
class JudgeAsked:
    """A judge is asked about so many values of a run; with `again`, the request about one of them failed and will be
    made again."""

    run_id: str
    judge: str
    values: int
    again: RetryScheduled | None = None


@dataclass(frozen=True, slots=True)
class RunDone:
    """A run is over and, unless it was stopped, skipped or broke, graded."""

    result: RunResult


@dataclass(frozen=True, slots=True)
class BatchDone:
    """Every run of the batch is over."""

    batch: str


BatchEvent = BatchStarted | RunEvent | ExecutionAsked | JudgeAsked | RunDone | BatchDone
BatchListener = Callable[[BatchEvent], None]


def without_secrets(listener: BatchListener, secrets: Secrets) -> BatchListener:
    """The listener, told results whose grades and errors hold no secret; a run's events hold none already."""

    def tell(event: BatchEvent) -> None:
        if isinstance(event, RunDone):
            event = RunDone(result_without_secrets(event.result, secrets))
        listener(event)

    return tell


def result_without_secrets(result: RunResult, secrets: Secrets) -> RunResult:
    """A result whose grades, judgements and error hold no secret; neither do its steps."""
    if not secrets.values:
        return result
    return replace(
        result,
        grades=secrets.redacted(result.grades),
        steps=secrets.redacted(result.steps),
        judgements=secrets.redacted(result.judgements),
        error=secrets.redacted(result.error),
    )
