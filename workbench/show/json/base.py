"""The base class of the models of JSON reports, and the parts that reports share: counts, measurements, gates."""

import sys
from collections.abc import Iterable
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from workbench.analysis.measures import GateMeasureName, Unit
from workbench.grading.status import Status
from workbench.show.views.runs_report import BrokenSuite
from workbench.suite.files import relative_to_cwd
from workbench.suite.grading_model import Statistic


def bounded(score: object) -> object:
    """Return a float with infinity replaced by the largest float, because JSON has no infinity.

    Any other object is returned unchanged."""
    if isinstance(score, float):
        return max(min(score, sys.float_info.max), -sys.float_info.max)
    return score


Finite = Annotated[float, BeforeValidator(bounded)]
"""A score. With `arcade_compatible` it may be negative infinity, which JSON cannot express."""

SuitePath = Annotated[
    str,
    AfterValidator(relative_to_cwd),
    Field(
        description=(
            "path of the suite's file, relative to the command's folder, with links resolved; for recordings graded by"
            " their own suites, the path of the recording"
        )
    ),
]
"""The path of a suite, with the same description in reports and in the history."""


def _open(schema: dict[str, JsonValue]) -> None:
    # `extra="forbid"` finds mistakes in this program. It also makes Pydantic write `additionalProperties: false`, which
    # would forbid the keys of later versions.
    schema.pop("additionalProperties", None)


class ReportModel(BaseModel):
    """Base class of the Pydantic models of reports. They are immutable and read the attributes of other objects.

    Their schemas allow additional keys, because later versions may add some."""

    model_config = ConfigDict(
        # Schemas of many nested models are slow to build, and a command needs few of them.
        defer_build=True,
        frozen=True,
        extra="forbid",
        from_attributes=True,
        json_schema_extra=_open,
    )

    @classmethod
    def made(cls, source: object, **others: object) -> Self:
        """Return a report with the attributes of `source` as fields. Fields given in `others` take precedence."""
        named = {}
        for name in cls.model_fields:
            if name not in others and hasattr(source, name):
                named[name] = getattr(source, name)
        return cls.model_validate(named | others)


class EndedReport(ReportModel):
    """Numbers of runs or cases by status. Subclasses add the number of errors, under different keys."""

    passed: int
    warned: int
    failed: int
    skipped: int
    stopped: int
    not_graded: int = Field(description="number of runs or cases whose case expects nothing yet")


class CountsReport(EndedReport):
    """Numbers of runs or cases by status."""

    # The key has the name of the attribute of `StatusCounts` from which its value is read.
    errors: int


class IntervalReport(ReportModel):
    """The bounds of a confidence interval of a share (0..1), a mean or a difference."""

    low: Finite
    high: Finite


class VerdictReport(ReportModel):
    """Status and score of a run."""

    status: Status
    score: Finite | None


class LatencyReport(ReportModel):
    """Model latency of the graded runs in milliseconds. Percentiles are by nearest rank."""

    mean_ms: float
    p50_ms: float
    p95_ms: float
    max_ms: float


class UsageReport(ReportModel):
    """Numbers of tokens as the providers counted them."""

    input_tokens: int
    output_tokens: int
    cached_input_tokens: int = Field(description="number of input tokens that were read from a cache")
    reasoning_tokens: int = Field(description="number of output tokens for reasoning")


class ToolArgumentsReport(ReportModel):
    """Numbers of calls of one tool.

    `checked` counts the calls whose arguments a schema could check, and `valid` counts the checked calls with valid
    arguments. `unknown` counts the other calls."""

    tool: str
    valid: int
    checked: int
    unknown: int = Field(description="number of calls that no schema could check")


class ValidArgumentsReport(ReportModel):
    """How many calls in graded runs have arguments that match the schema of their tool."""

    valid: int
    checked: int = Field(description="number of calls that a schema could check")
    unknown: int = Field(
        description="number of calls that no schema could check: the tool is unknown, or its schema is invalid"
    )
    rate: float | None = Field(description="valid calls divided by checked ones, 0..1; null where none was checked")
    tools: tuple[ToolArgumentsReport, ...]


class JudgeUseReport(ReportModel):
    """The requests, tokens and cost of judges. The cost of a run does not include them."""

    asked: int = Field(description="number of requests to judges; reused judgements do not count")
    usage: UsageReport | None
    cost_usd: float | None = Field(description="US dollars; null if unknown")


class DifferenceReport(ReportModel):
    """An imported run on which its source and Workbench have different verdicts."""

    about: str
    value: float = Field(description="the source's score, 0..1")
    passed_here: bool


class AgreementReport(ReportModel):
    """How often Workbench agrees with the source of imported runs. `name` is the name of the compared score."""

    name: str
    agree: int = Field(description="number of runs with the same verdict in the source and here")
    of: int = Field(description="number of runs with a verdict in the source and here")
    ungraded: int = Field(description="number of runs without a verdict here")
    differ: tuple[DifferenceReport, ...]


class GateWatchedReport(ReportModel):
    """The result of the sequential test of a pass rate gate, which can end a batch early."""

    verdict: Literal["reached", "missed"] | None = Field(
        description="whether the sequential test decided that the gate is met; null if all runs left it undecided"
    )
    worse: float = Field(description="the pass rate treated as clearly too low")
    runs: int = Field(description="number of graded runs after which the test decided")
    of: int = Field(description="number of runs that were planned")
    saved: int = Field(description="number of planned runs that were not needed")
    cases: int = Field(description="number of cases with a graded run when the test decided")
    of_cases: int = Field(description="number of cases that were planned")
    clusters: int | None = Field(description="number of clusters of these cases; null if no case has a cluster")
    rate: float | None = Field(description="mean over these cases of the share of good runs, 0..1")
    interval: IntervalReport | None = Field(description="95% interval of `rate`; null if runs were stopped early")


class GateReport(ReportModel):
    """A gate for the runs of a model, and the value that the runs reached.

    `suite` is null for a gate from the command line."""

    suite: SuitePath | None
    model: str | None = Field(description="null for the runs of all models together")
    measure: GateMeasureName
    minimum: float
    reached: Finite | None
    met: bool
    counted_zero: int = Field(
        description=(
            "number of failed runs that count 0 in the mean score: they have no score, or failed for a reason besides "
            "it"
        )
    )
    watched: GateWatchedReport | None = Field(None, description="the decision of a batch that may stop early")


class AggregateGateReport(ReportModel):
    """A gate for one statistic of an aggregate."""

    statistic: Statistic
    threshold: float
    strictly: bool = Field(description="the statistic must be greater than the threshold, not equal to it")
    reached: Finite | None = Field(description="null if no run has a value: then no gate is met")
    met: bool
    at_most: bool = Field(False, description="true if the threshold is a maximum, false if it is a minimum")


class AggregateReport(ReportModel):
    """Statistics of a measure over the graded runs of a suite with a model. Runs without a value do not count.

    A statistic that the values do not define is null, such as the mean of no values."""

    suite: SuitePath
    model: str | None = Field(description="null for the runs of all models together")
    name: str
    of: str
    unit: Unit = Field("number", description="the statistics of the values")
    tags: tuple[str, ...]
    count: int = Field(description="number of runs with a value")
    statistics: dict[Statistic, Finite | None]
    gates: tuple[AggregateGateReport, ...]
    met: bool
    counted_zero: int = Field(
        description=(
            "for a score: number of failed runs that count 0, because they have no score or failed for another reason"
        )
    )


class BrokenSuiteReport(ReportModel):
    """A suite that was not run because of errors."""

    suite: SuitePath
    problems: tuple[str, ...] = Field(description="the suite's errors, each with its place")


BROKEN_SUITES: Final = "suites with errors, of which nothing was run; `exit_code` is 2 then"


def broken_suites(broken: Iterable[BrokenSuite]) -> tuple[BrokenSuiteReport, ...]:
    return tuple(BrokenSuiteReport(suite=each.suite, problems=each.problems) for each in broken)
