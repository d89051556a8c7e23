"""Summaries of runs: numbers without events, so that thousands of runs can be compared and stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, Protocol

from workbench.dataclasses import dataclass
from workbench.grading.argument_counts import ToolArguments, valid_arguments_of
from workbench.grading.grade import ENDPOINT_FAULT, RunResult, UserOutcome
from workbench.grading.status import Status
from workbench.suite.settings import Grading, limited_ms

_DEFAULTS = Grading()


class UserFigures(NamedTuple):
    """The tokens and the cost in US dollars of the model that plays a user, or `None` if they are unknown."""

    tokens: int | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The figures of a finished run, without its events.

    `suite` identifies the suite of the run. `repeat` counts from 0. Tokens and `cost_usd` are `None` if they are
    unknown. `asked` is true if the model was asked at least once. `reason` says in one line why the run did not pass.
    `is_broken` and `grading` mean the same as in `RunResult`. A fork is an experiment and counts for no case.

    All times are milliseconds. `began_ms` and `ended_ms` count from 1970. `latency_ms` is the sum over the model's
    answers. `loop_ms` is the duration of the whole agent loop by the wall clock, or `None` in old histories.
    `first_token_ms` is the time to the first token of the first answer."""

    suite: str
    case_id: str
    case_name: str
    model: str
    repeat: int
    status: Status
    score: float | None
    reason: str | None
    latency_ms: float
    first_token_ms: float | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    asked: bool
    is_broken: bool = False
    grading: Grading = _DEFAULTS
    began_ms: float | None = None
    ended_ms: float | None = None
    is_fork: bool = False
    loop_ms: float | None = None
    metrics: tuple[tuple[str, float], ...] = ()
    """The names and values (0..1) of the named checks of the answer."""
    tool_arguments: tuple[ToolArguments, ...] = ()
    """The numbers of valid, checked and unknown calls of each tool."""
    repaired: tuple[str, ...] = ()
    """The kinds of the endpoint's deviations that were repaired."""
    agent: str | None = None
    """The name and version of the agent that made the run, or `None` for a model and in old histories."""
    user: UserFigures | None = None
    """The tokens and cost of the model that played the user. `None` if no model played a user, and in old histories."""
    user_outcome: UserOutcome | None = None
    """Whether the user of a conversation gave up or invalidated the run. `None` otherwise and in old histories."""

    @property
    def limited_ms(self) -> float:
        """The time that `max_latency_ms` limits under the deciding grader, in milliseconds."""
        loop_ms = self.loop_ms
        if loop_ms is None:
            # Histories of early versions lack the time of the loop, so the model's latency replaces it.
            loop_ms = self.latency_ms
        return limited_ms(self.grading, self.latency_ms, loop_ms)


class TimedRun(NamedTuple):
    """A finished run, reduced to what the pace of a batch depends on. The fields mean the same as in `RunSummary`."""

    suite: str
    case_id: str
    model: str
    repeat: int
    status: Status
    is_fork: bool
    began_ms: float | None
    ended_ms: float | None


def summary_of(
    result: RunResult, *, suite: str | None = None, began_ms: float | None = None, ended_ms: float | None = None
) -> RunSummary:
    """Return the summary of a run. `suite` is the key of its suite, by default the suite's path."""
    input_tokens = output_tokens = None
    if (usage := result.usage) is not None:
        input_tokens, output_tokens = usage.input_tokens, usage.output_tokens
    if suite is None:
        suite = result.suite
    return RunSummary(
        suite=suite,
        case_id=result.case_id,
        case_name=result.case_name,
        model=result.model,
        repeat=result.repeat,
        status=result.status,
        score=result.score,
        reason=result.reason,
        latency_ms=result.latency_ms,
        first_token_ms=result.first_token_ms,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cost_usd=result.cost_usd,
        asked=result.was_asked,
        is_broken=result.is_broken,
        grading=result.grading,
        began_ms=began_ms,
        ended_ms=ended_ms,
        is_fork=result.is_fork,
        loop_ms=result.loop_ms,
        metrics=tuple([(metric.name, metric.value) for metric in result.metrics]),
        tool_arguments=valid_arguments_of(result).tools,
        repaired=result.repaired,
        agent=None if result.agent is None else result.agent.title,
        user=_user_figures(result),
        user_outcome=result.user_outcome,
    )


def _user_figures(result: RunResult) -> UserFigures | None:
    usage, cost_usd = result.user_usage, result.user_cost_usd
    if usage is None and cost_usd == 0:
        return None
    tokens = None if usage is None else usage.input_tokens + usage.output_tokens
    return UserFigures(tokens, cost_usd)


# A planned run that is not made has no status of its own. The prefix of its reason says why. Histories store these
# texts, so they must never change.

NOT_NEEDED_PREFIX: Final = "not needed: "
"""The prefix of a skipped run's reason if its outcome could no longer decide anything."""


COST_LIMIT_PREFIX: Final = "not run: cost limit"
"""The prefix of a stopped run's reason if a cost limit prevented it."""


def is_cost_limited(run: RunSummary | RunResult) -> bool:
    """Return whether a limit on cost prevented a planned run."""
    return run.status == Status.STOPPED and (run.reason or "").startswith(COST_LIMIT_PREFIX)


def is_not_needed(run: RunSummary | RunResult) -> bool:
    """Return whether a planned run was skipped because earlier runs had already decided the result."""
    return run.status == Status.SKIPPED and (run.reason or "").startswith(NOT_NEEDED_PREFIX)


class _HasFigures(Protocol):
    @property
    def figures(self) -> RunSummary | None: ...


def finished_summaries(runs: Iterable[_HasFigures]) -> Iterator[RunSummary]:
    """Yield the figures of finished runs. `runs` are runs of the app or rows of the history."""
    for run in runs:
        if run.figures is not None:
            yield run.figures


def is_endpoint_fault(run: RunSummary | RunResult) -> bool:
    """Return whether a run failed, or ended in an error, because of a fault of the endpoint."""
    return run.status in (Status.FAILED, Status.ERROR) and (run.reason or "").startswith(ENDPOINT_FAULT)
