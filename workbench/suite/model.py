"""The suite as a document, with its options: frozen models of suite format 1.

A change makes a new document."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Strict,
    Tag,
    model_validator,
)

from workbench.checks.check import AnswerChecks, Check, Checks, with_parts
from workbench.checks.fields import PythonReference, Unit
from workbench.checks.values import keyword_text
from workbench.dataclasses import ByIdentity
from workbench.limits import MAX_REPEATS

if TYPE_CHECKING:
    from workbench.suite.problems import Place

# The options of a suite as written: limits, grading, gates and aggregates; and what all models of the document
# share. What they come to for a case, with the suite's defaults merged in, is computed by
# `workbench.suite.settings`.

GraderName = Literal["critics", "decision", "accuracy", "trajectory", "dimensions"]
GRADERS: tuple[GraderName, ...] = get_args(GraderName)
RepeatRule = Literal["every", "last", "mean", "majority"]
REPEAT_RULES: tuple[RepeatRule, ...] = get_args(RepeatRule)

InvalidArguments = Literal["fail", "note", "ignore"]
WholeNumbers = Literal["as JSON", "as BFCL"]
"""The effect on its run of a call whose arguments the tool's schema refuses: fail it, be an issue, or nothing."""

ComparedBy = Literal["status", "score"]
"""The question by which a comparison decides: which cases are good, or which score they reach."""
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
    """Return the values that are not `None`, those of nested models too.

    Unlike `model_dump`, it builds no serializer."""
    values = {}
    for name, value in model:
        if value is not None:
            values[name] = value
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
"""The effect of an endpoint's fault on its run: fail it as a fault of the model does, or end it in an error."""


class Gate(Frozen):
    """The suite's gate: the mean score, and the share of runs that passed or were warned.

    Runs of cases with a tag of `quarantine` are graded, and decide nothing. With `endpoint_faults` "error", a run
    that a fault of the endpoint fails is not graded."""

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

    `of` is a measure of runs, a grader, `GRADER.NUMBER`, or `response.NAME` for a named check of answers; with
    `tags` only runs of cases that have one of them count.
    """

    name: NonEmpty
    of: NonEmpty = "score"
    tags: Items[str] = ()
    per: GatePer = "model"
    statistics: Items[Statistic] = ("mean", "median", "mode", "minimum", "maximum", "spread")
    at_least: StatisticsTable = StatisticsTable.model_construct()
    above: StatisticsTable = StatisticsTable.model_construct()
    at_most: StatisticsTable = StatisticsTable.model_construct()


# The suite as a document: frozen models of suite format 1. A change makes a new document. Its options are in
# `workbench.suite.model`.

__all__ = [
    "ANY_TOOL",
    "GRADERS",
    "REPEAT_RULES",
    "Aggregate",
    "Case",
    "ComparedBy",
    "ExpectedCall",
    "Gate",
    "GatePer",
    "GraderName",
    "GradingTable",
    "LimitsTable",
    "Mock",
    "RepeatRule",
    "Server",
    "Statistic",
    "Step",
    "Subject",
    "Suite",
    "Tool",
    "ToolChange",
    "Variant",
]

Transport = Literal["http", "sse"]


class Server(Frozen):
    """An MCP server: exactly one of `command` (stdio), `url` and `module` (in memory)."""

    name: NonEmpty
    command: Annotated[Items[str], Field(min_length=1)] | None = None
    env: dict[str, str] = Field(default_factory=dict)
    url: NonEmpty | None = None
    transport: Transport | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    module: NonEmpty | None = None
    object: NonEmpty | None = None
    prefix: str = ""


class Subject(Frozen):
    """A program that is evaluated in the place of a model.

    `timeout_s` limits a run instead of `limits.timeout_s`."""

    command: Annotated[Items[str], Field(min_length=1)]
    name: NonEmpty = "subject"
    env: dict[str, str] = Field(default_factory=dict)
    timeout_s: Annotated[float, Field(gt=0)] | None = None

    @property
    def as_server(self) -> Server:
        """The subject as something that a suite starts, which needs the same of this machine as a server."""
        return Server.model_construct(name=self.name, command=self.command, env=self.env)


class Annotations(Frozen):
    """MCP's hints about a tool, under their names in the protocol."""

    title: str | None = None
    readOnlyHint: bool | None = None  # noqa: N815 (the wire's own spelling)
    destructiveHint: bool | None = None  # noqa: N815
    idempotentHint: bool | None = None  # noqa: N815
    openWorldHint: bool | None = None  # noqa: N815


def _json_schema(value: Any) -> Any:
    """Accept a schema written as JSON text, the only way to write one that contains null."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value, parse_constant=_no_such_number)
    except RecursionError as error:
        raise ValueError("the text is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"the text is not JSON: {error}") from error


def _no_such_number(name: str) -> None:
    raise ValueError(f"JSON has no {name}")


def _empty_schema() -> dict[str, JsonValue]:
    return {"type": "object", "properties": {}}


class Tool(Frozen):
    """A tool that is defined in the suite."""

    name: NonEmpty
    description: str = ""
    parameters: Annotated[dict[str, JsonValue], BeforeValidator(_json_schema)] = Field(default_factory=_empty_schema)
    annotations: Annotations = Annotations.model_construct()


class Mock(Frozen):
    """Answers a tool call instead of a server: exactly one of `result`, `results`, `error` and `python`.

    With `unlisted`, there may intentionally be no tool of that name."""

    tool: NonEmpty
    when: Checks | None = None
    result: JsonValue = None
    results: Annotated[Items[JsonValue], Field(min_length=1)] | None = None
    error: str | None = None
    python: PythonReference | None = None
    delay_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0
    unlisted: bool = False


class PriorCall(Frozen):
    """A tool call inside a conversation that precedes the request."""

    id: NonEmpty
    tool: NonEmpty
    args: dict[str, JsonValue] = Field(default_factory=dict)


class PriorMessage(Frozen):
    """One message before the request: `user`, `assistant` (content, tool calls) or `tool` (the result of a call)."""

    role: Literal["user", "assistant", "tool"]
    content: str = ""
    tool_calls: Items[PriorCall] = ()
    call: str | None = None
    is_error: bool = False


ANY_TOOL: Final = "*"
"""The tool of an expected call that may go to any tool."""


def tool_text(tool: str) -> str:
    """Return the tool of an expected call for a person."""
    return "any tool" if tool == ANY_TOOL else tool


@lru_cache(maxsize=1024)
def comparable_name(name: str) -> str:
    """Return a tool's name as `critics` and prohibitions compare it: lower case, with `-`, `_` and `.` alike."""
    return name.replace("-", ".").replace("_", ".").lower()


def same_tool(left: str, right: str) -> bool:
    """Return whether two names mean the same tool, by the rule of Arcade evals."""
    return left == right or comparable_name(left) == comparable_name(right)


class ExpectedCall(Frozen):
    """A call that must (or must not) happen.

    `args` absent: arguments do not matter; empty: none are expected.

    With `only_args`, no arguments other than those in `args` may be given. With `unlisted`, there may intentionally be
    no tool of that name.
    """

    tool: NonEmpty
    args: Checks | None = None
    forbidden_args: Items[str] = ()
    only_args: bool = False
    unlisted: bool = False

    @property
    def is_any(self) -> bool:
        """Whether a call of any tool fulfils it."""
        return self.tool == ANY_TOOL

    def means(self, tool: str) -> bool:
        """Return whether a call of that tool may fulfil it."""
        return self.is_any or same_tool(self.tool, tool)

    @property
    def tool_text(self) -> str:
        """The tool, for a person."""
        return tool_text(self.tool)

    @property
    def limits_args(self) -> bool:
        """Whether there are arguments that must not be given."""
        return self.only_args or bool(self.forbidden_args)

    def unwanted(self, given: Collection[str]) -> list[str]:
        """Return those of the given arguments that must not be given."""
        if not self.limits_args:
            return []
        others = []
        for name in given:
            if self.only_args and name not in (self.args or {}):
                others.append(name)
        forbidden = [name for name in self.forbidden_args if name in given]
        return [*forbidden, *(name for name in others if name not in forbidden)]


class AnyOrder(Frozen):
    """One position of the ordered list that several calls fill in any order."""

    any_order: Annotated[Items[ExpectedCall], Field(min_length=1)]


def _call_or_group(value: Any) -> str:
    if isinstance(value, AnyOrder):
        return "group"
    if isinstance(value, dict) and "any_order" in value:
        return "group"
    return "call"


OrderedItem = Annotated[
    Annotated[ExpectedCall, Tag("call")] | Annotated[AnyOrder, Tag("group")], Discriminator(_call_or_group)
]


class Step(Frozen):
    """One model request of a chain, with the one call that is expected of it (none without `tool`)."""

    user: str | None = None
    system: str | None = None
    tool: NonEmpty | None = None
    args: Checks | None = None
    forbidden_args: Items[str] = ()
    only_args: bool = False
    unlisted: bool = False
    mock_result: JsonValue = None

    @property
    def expected_call(self) -> ExpectedCall | None:
        """The call it expects, `None` if it expects none; a new object each time."""
        if self.tool is None:
            return None
        return ExpectedCall.model_construct(  # of what was validated; a validator of its own would take long to build
            tool=self.tool,
            args=self.args,
            forbidden_args=self.forbidden_args,
            only_args=self.only_args,
            unlisted=self.unlisted,
        )


def derived_id(name: str) -> str:
    """Return the id of a case that writes none: lower case, with `-` for runs of other characters, trimmed."""
    return re.sub(r"[\W_]+", "-", name.lower()).strip("-") or "case"


def _placed(items: Iterable[_Item], place: Place) -> Iterator[tuple[Place, _Item]]:
    for index, item in enumerate(items):
        yield (*place, index), item


class Case(Frozen):
    """One request, with the expected tool calls and the checks of the final answer."""

    id: NonEmpty
    name: NonEmpty
    tags: Items[str] = ()
    cluster: NonEmpty | None = None
    user: str | None = None
    messages: Items[PriorMessage] = ()
    skip: str | None = None
    repeats: Annotated[int, Field(ge=1, le=MAX_REPEATS)] = 1
    ordered: Items[OrderedItem] = ()
    unordered: Items[ExpectedCall] = ()
    disallowed: Items[ExpectedCall] = ()
    extra_calls: WrittenExtraCalls | None = None
    expect_no_calls: bool = False
    expect_nothing_yet: bool = False
    response_contains: Items[str] = ()
    response: AnswerChecks | None = None
    steps: Items[Step] = ()
    stop_on_failure: bool = False
    tools: Items[Tool] = ()
    offer: Items[str] | None = None
    system: str | None = None
    models: Items[NonEmpty] | None = None
    execute: bool | None = None
    mocks: Items[Mock] = ()
    limits: LimitsTable = LimitsTable.model_construct()
    grading: GradingTable = GradingTable.model_construct()

    @model_validator(mode="before")
    @classmethod
    def _give_id(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and "id" not in raw and isinstance(raw.get("name"), str):
            return {"id": derived_id(raw["name"]), **raw}
        return raw

    def expected_calls(self) -> tuple[ExpectedCall, ...]:
        """Return the expected calls: the ordered list, then the unordered one; for a chain, those of its steps.

        Groups are flattened in place. The same case returns the same objects."""
        return _expected_calls(self)

    def placed_expected_calls(self) -> Iterator[tuple[Place, ExpectedCall]]:
        """Yield the expected calls outside steps, with their places in the case."""
        for index, item in enumerate(self.ordered):
            if isinstance(item, AnyOrder):
                yield from _placed(item.any_order, ("ordered", index, "any_order"))
            else:
                yield ("ordered", index), item
        yield from _placed(self.unordered, ("unordered",))

    def written_calls(self) -> Iterator[tuple[Place, ExpectedCall | Step]]:
        """Return everything that describes a call, with its place: expected calls, disallowed ones and steps.

        Trust relies on this: it includes everything that may hold a check on arguments."""
        yield from self.placed_expected_calls()
        yield from _placed(self.disallowed, ("disallowed",))
        yield from _placed(self.steps, ("steps",))

    def written_checks(self) -> Iterator[Check]:
        """Yield every check of the case: on arguments and on the answer, nested ones included."""
        for _, call in self.written_calls():
            for check in (call.args or {}).values():
                yield from with_parts(check)
        for _, check in self.answer_checks:
            yield from with_parts(check)

    @property
    def answer_checks(self) -> tuple[tuple[str | None, Check], ...]:
        """The checks of the final answer with their names, `None` for the only one that has no name."""
        if isinstance(self.response, dict):
            return tuple(self.response.items())
        return ((None, self.response),) if self.response is not None else ()

    @property
    def checks_answer(self) -> bool:
        """Whether the case checks the final answer."""
        return bool(self.response_contains) or self.response is not None

    def missing_keywords(self, answer: str) -> list[str]:
        """Return the keywords of `response_contains` that the final answer lacks."""
        text = keyword_text(answer)
        return [keyword for keyword in self.response_contains if keyword_text(keyword) not in text]

    @property
    def forbids_all_calls(self) -> bool:
        """Whether the case forbids all calls: as a whole, or in each step of a chain."""
        return self.expect_no_calls or (bool(self.steps) and all(step.tool is None for step in self.steps))

    @property
    def expects_calls_or_none(self) -> bool:
        """Whether the case has expectations of calls, or expects none."""
        return bool(self.ordered or self.unordered or self.steps or self.expect_no_calls)

    @property
    def expects_nothing_yet(self) -> bool:
        """Whether runs are not graded: the case says that it expects nothing yet, and expects nothing.

        In a chain that says so, steps without a tool expect nothing either."""
        return (
            self.expect_nothing_yet
            and not any(getattr(self, key) for key in EXPECTATIONS)
            and all(step.tool is None for step in self.steps)
        )

    @property
    def expects_nothing(self) -> bool:
        """Whether no run of it can show a mistake, although it does not say that it expects nothing yet."""
        if self.expect_nothing_yet or self.steps or self.extra_calls not in (None, "allow"):
            return False
        return not any(getattr(self, key) for key in EXPECTATIONS if key != "extra_calls")

    @property
    def why_no_expected_calls(self) -> str:
        """The reason of graders that need expected calls, for a case without any."""
        says_more = self.disallowed or self.checks_answer or self.extra_calls is not None
        if says_more:
            return "this case has no expected calls"
        return "this case expects nothing yet"


EXPECTATIONS = (
    *("ordered", "unordered", "disallowed", "extra_calls", "expect_no_calls"),
    *("response_contains", "response"),
)
"""The keys by which a case that is no chain expects something."""


def _all_expected_calls(case: Case) -> tuple[ExpectedCall, ...]:
    return (
        *(call for step in case.steps if (call := step.expected_call) is not None),
        *(call for _, call in case.placed_expected_calls()),
    )


_expected_calls: ByIdentity[Case, tuple[ExpectedCall, ...]] = ByIdentity(_all_expected_calls)


class ToolChange(Frozen):
    """A variant's changes to one tool, whoever defines it.

    `name` and `arguments` (old names to new ones) rename; expectations and mocks follow by themselves. `hidden`
    offers it no more."""

    tool: NonEmpty
    name: NonEmpty | None = None
    description: str | None = None
    parameters: Annotated[dict[str, JsonValue], BeforeValidator(_json_schema)] | None = None
    arguments: dict[NonEmpty, NonEmpty] = Field(default_factory=dict)
    hidden: bool = False


class Variant(Frozen):
    """A declared difference: the changes under which the suite is run as this variant.

    `servers` and `tools` replace those of the same name and add the others, `mocks` are asked before all others.
    `offer` replaces each case's `offer`. `names` says which tool stands for an expected one (old name to new one)."""

    name: NonEmpty
    description: str = ""
    system: str | None = None
    model: NonEmpty | None = None
    params: dict[str, JsonValue] = Field(default_factory=dict)
    offer: Items[str] | None = None
    names: dict[NonEmpty, NonEmpty] = Field(default_factory=dict)
    servers: Items[Server] = ()
    tools: Items[Tool] = ()
    mocks: Items[Mock] = ()
    changes: Items[ToolChange] = ()


class Suite(Frozen):
    """A whole suite file."""

    format: Literal[1]
    name: NonEmpty
    description: str = ""
    system: str | None = None
    models: Items[NonEmpty] = ("offline",)
    tags: Items[str] = ()
    execute: bool = False
    limits: SuiteLimitsTable = SuiteLimitsTable.model_construct()
    grading: GradingTable = GradingTable.model_construct()
    gate: Gate = Gate.model_construct()
    aggregates: Items[Aggregate] = ()
    subject: Subject | None = None
    servers: Items[Server] = ()
    tools: Items[Tool] = ()
    mocks: Items[Mock] = ()
    variants: Items[Variant] = ()
    cases: Items[Case] = ()


def started_by(suite: Suite) -> tuple[Server, ...]:
    """Return everything that a suite starts or reaches: its servers, its variants' servers, and its subject as one."""
    of_variants = tuple(server for variant in suite.variants for server in variant.servers)
    subject = () if suite.subject is None else (suite.subject.as_server,)
    return (*suite.servers, *subject, *of_variants)


def written_tools(suite: Suite, case: Case) -> tuple[Tool, ...]:
    """Return the tools defined for a case: the suite's, and its own, which replace those of the same name."""
    return tuple({tool.name: tool for tool in (*suite.tools, *case.tools)}.values())
