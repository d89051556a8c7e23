"""Models of the settings for grading: limits, options of graders, gates and aggregates."""

from typing import Annotated, Any, Final, Literal, get_args

from pydantic import Discriminator, Field, Tag

from workbench.checks.fields import Unit, Weight
from workbench.suite.frozen import Frozen, Items, NonEmpty

GraderName = Literal["critics", "decision", "accuracy", "trajectory", "dimensions"]
GRADERS: tuple[GraderName, ...] = get_args(GraderName)
RepeatRule = Literal["every", "last", "mean", "majority"]
REPEAT_RULES: tuple[RepeatRule, ...] = get_args(RepeatRule)

InvalidArguments = Literal["fail", "note", "ignore"]
"""The effect of a call whose arguments the tool's schema refuses: the run fails, gets an issue, or is unaffected."""
WholeNumbers = Literal["as JSON", "as BFCL"]

ComparedBy = Literal["status", "score"]
"""The subject of a comparison: the statuses of cases, or their scores."""
Statistic = Literal["mean", "median", "mode", "minimum", "maximum", "spread", "variance", "p95"]

Finite = Annotated[float, Field(allow_inf_nan=False)]

ExtraCallsRule = Literal["allow_read_only", "allow", "forbid"]
EXTRA_CALLS_RULES: tuple[ExtraCallsRule, ...] = get_args(ExtraCallsRule)
ExtraCalls = ExtraCallsRule | tuple[str, ...]
"""The extra calls that are allowed: calls of read-only tools, of all tools, of no tool, or of the listed tools."""

NEW_SUITE_EXTRA_CALLS: Final[ExtraCallsRule] = "allow_read_only"
"""The rule of extra calls in new suites: a look-up is allowed, and a second payment fails."""

EXTRA_RULE: Final = "rule of extra calls"
EXTRA_TOOLS: Final = "tools of extra calls"


def _rule_or_tools(value: Any) -> str:
    return EXTRA_TOOLS if isinstance(value, list | tuple) else EXTRA_RULE


WrittenExtraCalls = Annotated[
    Annotated[ExtraCallsRule, Tag(EXTRA_RULE)] | Annotated[Items[NonEmpty], Tag(EXTRA_TOOLS)],
    Discriminator(_rule_or_tools),
]


class LimitsTable(Frozen):
    """The limits that the text of a suite or a case sets, without defaults. `None` means that a limit is not set."""

    max_rounds: Annotated[int, Field(ge=1)] | None = None
    max_tool_calls: Annotated[int, Field(ge=0)] | None = None
    max_latency_ms: Annotated[float, Field(gt=0)] | None = None
    timeout_s: Annotated[float, Field(gt=0)] | None = None


class SuiteLimitsTable(LimitsTable):
    """The limits that a suite sets for each run, and its limit for the cost of a batch in US dollars."""

    batch_cost_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


class CriticsTable(Frozen):
    """The options of the `critics` grader that a suite or a case sets, without defaults."""

    tool_selection_weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    fail_on_tool_selection: bool | None = None
    fail_on_tool_call_quantity: bool | None = None
    arcade_compatible: bool | None = None
    weights: dict[NonEmpty, Weight] | None = None


class AccuracyTable(Frozen):
    """The options of the `accuracy` grader that a suite or a case sets, without defaults."""

    mode: Literal["exact", "flexible"] | None = None
    name_only: Finite | None = None
    extra_penalty: Finite | None = None
    wrong_penalty: Finite | None = None
    answer_checks: Literal["apart", "averaged"] | None = None


class DimensionsTable(Frozen):
    """The options of the `dimensions` grader that a suite or a case sets, without defaults."""

    latency: Literal["wall", "model"] | None = None
    repeated_calls: Literal["as expected", "as published"] | None = None


class GradingTable(Frozen):
    """The grading options that a suite or a case sets, without defaults."""

    by: GraderName | None = None
    fail_threshold: Unit | None = None
    warn_threshold: Unit | None = None
    repeat_rule: RepeatRule | None = None
    invalid_arguments: InvalidArguments | None = None
    whole_numbers: WholeNumbers | None = None
    extra_calls: WrittenExtraCalls | None = None
    compare_by: ComparedBy | None = None
    published_report: bool | None = None
    critics: CriticsTable = CriticsTable.model_construct()
    accuracy: AccuracyTable = AccuracyTable.model_construct()
    dimensions: DimensionsTable = DimensionsTable.model_construct()


GatePer = Literal["model", "batch"]
"""The runs that a gate or an aggregate covers: of each model separately, or of all models together."""


EndpointFaults = Literal["fail", "error"]
"""The status of a run after a fault of its endpoint: `fail`, as for a fault of the model, or `error`."""


class Gate(Frozen):
    """The gate of a suite: the least mean score, and the least share of runs that passed or got a warning.

    Runs of cases with a tag in `quarantine` are graded but do not count in the gate. With `endpoint_faults = "error"`,
    a run that fails because of a fault of its endpoint is not graded. `max_user_errors` limits the share of
    conversations that ended through an error of the simulated user."""

    per: GatePer = "model"
    min_score: Unit | None = None
    min_pass_rate: Unit | None = None
    quarantine: Items[str] = ()
    endpoint_faults: EndpointFaults = "fail"
    max_user_errors: Unit | None = None


class StatisticsTable(Frozen):
    """Limits by statistic. `None` means that the statistic has no limit."""

    mean: float | None = None
    median: float | None = None
    mode: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    spread: float | None = None
    variance: float | None = None
    p95: float | None = None


class Aggregate(Frozen):
    """Statistics of a measure over the runs of a suite, with limits for some statistics.

    `of` is a measure of runs, a grader, `GRADER.NUMBER`, or `response.NAME` for a named check of answers. With `tags`,
    only runs of cases with one of the tags count."""

    name: NonEmpty
    of: NonEmpty = "score"
    tags: Items[str] = ()
    per: GatePer = "model"
    statistics: Items[Statistic] = ("mean", "median", "mode", "minimum", "maximum", "spread")
    at_least: StatisticsTable = StatisticsTable.model_construct()
    above: StatisticsTable = StatisticsTable.model_construct()
    at_most: StatisticsTable = StatisticsTable.model_construct()
