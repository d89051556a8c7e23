"""The options of a suite as written: limits, grading, gates and aggregates; and what all models of the document share.

What they come to for a case, with the suite's defaults merged in, is computed by `workbench.suite.settings`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Strict, Tag

from workbench.checks.check import Unit

GraderName = Literal["critics", "decision", "accuracy", "trajectory", "dimensions"]
GRADERS: tuple[GraderName, ...] = get_args(GraderName)
RepeatRule = Literal["every", "last", "mean", "majority"]
REPEAT_RULES: tuple[RepeatRule, ...] = get_args(RepeatRule)

InvalidArguments = Literal["fail", "note", "ignore"]
WholeNumbers = Literal["as JSON", "as BFCL"]
"""What a call does to its run whose arguments its tool's schema refuses: fail it, be an issue, or nothing."""

ComparedBy = Literal["status", "score"]
"""The question by which a comparison decides: which cases are good, or what they score."""
Statistic = Literal["mean", "median", "mode", "minimum", "maximum", "spread", "variance", "p95"]

_Item = TypeVar("_Item")
Items = Annotated[tuple[_Item, ...], Strict(False)]
"""A TOML array as a tuple."""

NonEmpty = Annotated[str, Field(min_length=1)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Frozen(BaseModel):
    """Immutable, strictly typed, and without unknown keys."""

    # A whole suite is validated by one validator. Building one for each nested model, too, would be 14 % of the CPU
    # of `workbench history`, which reads no suite, and 5 % of a short run.
    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid", strict=True)


def values_of(model: BaseModel) -> dict[str, Any]:
    """Return the values that are not `None`, those of nested models too. Unlike `model_dump`, it builds no
    serializer."""
    values = {name: value for name, value in model if value is not None}
    return {name: values_of(value) if isinstance(value, BaseModel) else value for name, value in values.items()}


ExtraCallsRule = Literal["allow_read_only", "allow", "forbid"]
EXTRA_CALLS_RULES: tuple[ExtraCallsRule, ...] = get_args(ExtraCallsRule)
ExtraCalls = ExtraCallsRule | tuple[str, ...]
"""Which calls beside the expected ones are free: those of read-only tools, all, none, or those of the listed tools."""

NEW_SUITES_FREE: Final[ExtraCallsRule] = "allow_read_only"
"""The rule that is written into new suites: a look-up passes, a second payment fails."""

EXTRA_RULE: Final = "rule of extra calls"
EXTRA_TOOLS: Final = "tools of extra calls"


def _rule_or_tools(value: Any) -> str:
    return EXTRA_TOOLS if isinstance(value, list | tuple) else EXTRA_RULE


WrittenExtraCalls = Annotated[
    Annotated[ExtraCallsRule, Tag(EXTRA_RULE)] | Annotated[Items[NonEmpty], Tag(EXTRA_TOOLS)],
    Discriminator(_rule_or_tools),
]


class LimitsTable(Frozen):
    """Limits as written; `None` means "not written here"."""

    max_rounds: Annotated[int, Field(ge=1)] | None = None
    max_tool_calls: Annotated[int, Field(ge=0)] | None = None
    max_latency_ms: Annotated[float, Field(gt=0)] | None = None
    timeout_s: Annotated[float, Field(gt=0)] | None = None


class SuiteLimitsTable(LimitsTable):
    """Limits of a suite: those of each run, and the US dollars that a batch may cost."""

    batch_cost_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


class CriticsTable(Frozen):
    """Options of the `critics` grader as written."""

    tool_selection_weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    fail_on_tool_selection: bool | None = None
    fail_on_tool_call_quantity: bool | None = None
    arcade_compatible: bool | None = None


class AccuracyTable(Frozen):
    """Options of the `accuracy` grader as written."""

    mode: Literal["exact", "flexible"] | None = None
    name_only: Finite | None = None
    extra_penalty: Finite | None = None
    wrong_penalty: Finite | None = None


class DimensionsTable(Frozen):
    """Options of the `dimensions` grader as written."""

    latency: Literal["wall", "model"] | None = None
    repeated_calls: Literal["as expected", "as published"] | None = None


class GradingTable(Frozen):
    """Grading options as written."""

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
"""Whose runs a gate or an aggregate covers: those of each model, or those of all models together."""


EndpointFaults = Literal["fail", "error"]
"""What a fault of the endpoint does to its run: fail it as a fault of the model does, or end it in an error."""


class Gate(Frozen):
    """What the suite's runs must reach: the mean score, and the share of runs that passed or were warned. Runs of cases
    with a tag of `quarantine` are graded, and decide nothing. With `endpoint_faults` "error", a run that a fault of the
    endpoint fails is not graded."""

    per: GatePer = "model"
    min_score: Unit | None = None
    min_pass_rate: Unit | None = None
    quarantine: Items[str] = ()
    endpoint_faults: EndpointFaults = "fail"


class StatisticsTable(Frozen):
    """A number for some statistics; `None` means "not written here"."""

    mean: float | None = None
    median: float | None = None
    mode: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    spread: float | None = None
    variance: float | None = None
    p95: float | None = None


class Aggregate(Frozen):
    """One line of a named group: statistics over the suite's runs, and what some of them must reach.

    `of` is one of `workbench.suite.rules.MEASURES`, or `response.NAME` for a named check of answers; with `tags` only
    runs of cases that have one of them count.
    """

    name: NonEmpty
    of: NonEmpty = "score"
    tags: Items[str] = ()
    per: GatePer = "model"
    statistics: Items[Statistic] = ("mean", "median", "mode", "minimum", "maximum", "spread")
    at_least: StatisticsTable = StatisticsTable.model_construct()
    above: StatisticsTable = StatisticsTable.model_construct()
    at_most: StatisticsTable = StatisticsTable.model_construct()
