"""The summary of a run: what comparing and storing many runs needs of each, without its events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from workbench.dataclasses import dataclass
from workbench.grading.grade import ENDPOINT_FAULT, RunResult
from workbench.grading.status import Status
from workbench.suite.settings import Grading, limited_ms

# The measure "valid arguments": how many calls of each tool have arguments that the tool's own schema accepts.


class ToolArguments(NamedTuple):
    """Calls of one tool: the valid ones, those that a schema could check, and those that none could."""

    tool: str
    valid: int
    checked: int
    unknown: int


@dataclass(frozen=True, slots=True)
class ValidArguments:
    """The calls of runs by tool, in the order of their first calls. Nothing is known of calls in runs that were not
    graded, and in runs that an earlier version graded."""

    tools: tuple[ToolArguments, ...] = ()

    @property
    def valid(self) -> int:
        return sum(tool.valid for tool in self.tools)

    @property
    def checked(self) -> int:
        return sum(tool.checked for tool in self.tools)

    @property
    def unknown(self) -> int:
        return sum(tool.unknown for tool in self.tools)

    @property
    def rate(self) -> float | None:
        """Valid calls divided by checked ones, 0..1; `None` where none was checked."""
        return self.valid / checked if (checked := self.checked) else None


NOTHING_CHECKED = ValidArguments()


class _Called(Protocol):
    @property
    def called(self) -> tuple[str, ...]: ...
    @property
    def valid_arguments(self) -> tuple[bool | None, ...]: ...


class ArgumentsFold:
    """Counts that are added run by run."""

    def __init__(self) -> None:
        self._tools: dict[str, list[int]] = {}

    def add(self, run: _Called) -> None:
        """Add the calls of a run."""
        # The part of an answer over the limits is not graded: the calls in it come last, and were not checked.
        for tool, valid in zip(run.called, run.valid_arguments, strict=False):
            self._add(tool, int(valid is True), int(valid is not None), int(valid is None))

    def add_counts(self, counts: Iterable[ToolArguments]) -> None:
        """Add the counts of a run."""
        for tool, *numbers in counts:
            self._add(tool, *numbers)

    def _add(self, tool: str, valid: int, checked: int, unknown: int) -> None:
        counts = self._tools.setdefault(tool, [0, 0, 0])
        counts[0] += valid
        counts[1] += checked
        counts[2] += unknown

    def counts(self) -> ValidArguments:
        """Returns the counts so far."""
        if not self._tools:
            return NOTHING_CHECKED
        return ValidArguments(tuple(ToolArguments(tool, *counts) for tool, counts in self._tools.items()))


def valid_arguments_of(run: _Called) -> ValidArguments:
    """Returns the counts of one run."""
    fold = ArgumentsFold()
    fold.add(run)
    return fold.counts()


def valid_arguments_in(counts: Iterable[Iterable[ToolArguments]]) -> ValidArguments:
    """Returns the counts of several runs together."""
    fold = ArgumentsFold()
    for of_run in counts:
        fold.add_counts(of_run)
    return fold.counts()


_DEFAULTS = Grading()


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A finished run in numbers. `suite` identifies its suite; `repeat` counts from 0.

    Times are milliseconds: `began_ms` and `ended_ms` since 1970, `latency_ms` the sum of the model's answers, `loop_ms`
    the whole agent loop by the wall clock (`None` in histories that lack it), `first_token_ms` that of the first
    answer. Tokens are `None` where the provider did not report them, `cost_usd` where it is not known; `asked` tells
    whether the model was asked at all. `reason` says in one line why it did not pass. `is_broken` and `grading` are
    those of the `RunResult`. A fork is an experiment and counts for no case.
    """

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
    """How many calls of each tool have valid arguments."""
    repaired: tuple[str, ...] = ()
    """The kinds of the endpoint's deviations that were repaired."""

    @property
    def limited_ms(self) -> float:
        """The time that `max_latency_ms` limits under the deciding grader, the model's where the loop's is unknown."""
        return limited_ms(self.grading, self.latency_ms, self.latency_ms if self.loop_ms is None else self.loop_ms)


def summary_of(
    result: RunResult, *, suite: str | None = None, began_ms: float | None = None, ended_ms: float | None = None
) -> RunSummary:
    """Returns the summary of a run; `suite` identifies its suite where that is not its path."""
    usage = result.usage
    return RunSummary(
        suite=result.suite if suite is None else suite,
        case_id=result.case_id,
        case_name=result.case_name,
        model=result.model,
        repeat=result.repeat,
        status=result.status,
        score=result.score,
        reason=result.reason,
        latency_ms=result.latency_ms,
        first_token_ms=result.first_token_ms,
        input_tokens=usage.input_tokens if usage is not None else None,
        output_tokens=usage.output_tokens if usage is not None else None,
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
    )


NOT_NEEDED: Final = "not needed: "
"""How the reason of a skipped run begins that was planned, and not made because its outcome could decide nothing."""


COST_LIMIT: Final = "not run: cost limit"
"""How the reason of a stopped run begins that a limit on cost kept from being made."""


def is_cost_limited(run: RunSummary | RunResult) -> bool:
    """Return whether a run was not made because of a limit on cost."""
    return run.status == Status.STOPPED and (run.reason or "").startswith(COST_LIMIT)


def is_not_needed(run: RunSummary | RunResult) -> bool:
    """Returns whether a run was planned, and not made because its outcome could decide nothing."""
    return run.status == Status.SKIPPED and (run.reason or "").startswith(NOT_NEEDED)


def is_endpoint_fault(run: RunSummary | RunResult) -> bool:
    """Return whether a fault of the endpoint failed a run, or ended it in an error."""
    return run.status in (Status.FAILED, Status.ERROR) and (run.reason or "").startswith(ENDPOINT_FAULT)
