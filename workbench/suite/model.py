"""The models of suite format 1: a suite with its cases, tools, servers and options.

The models are frozen, so an edit creates a new document. `workbench.suite.settings` computes the effective settings of
a case from those of the case and its suite."""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Annotated, Any, Final, Literal, Protocol, Self, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    model_validator,
)

from workbench.checks.answer_checks import AnswerChecks
from workbench.checks.check import Check, Checks, with_parts
from workbench.checks.clock import fixed_clock
from workbench.checks.combined_kinds import Judged
from workbench.checks.fields import PythonReference
from workbench.checks.values import keyword_text
from workbench.config.agents import AGENT, KNOWN_AGENTS, AgentName, BuiltIn, agent_named
from workbench.dataclasses import kept_property
from workbench.limits import MAX_REPEATS
from workbench.startup import late_pattern
from workbench.suite.expected_calls import (
    AnyOrder,
    DisallowedCall,
    ExpectedCall,
    OrderedItem,
    with_forbidden,
    written_items,
)
from workbench.suite.frozen import Frozen, Items, NonEmpty
from workbench.suite.grading_model import (
    Aggregate,
    Gate,
    GradingTable,
    LimitsTable,
    SuiteLimitsTable,
    WrittenExtraCalls,
)
from workbench.suite.problems import Place
from workbench.suite.server_model import Answer, Server, StateOwner
from workbench.suite.user_model import SaidText, UserTable, WrittenSaid, WrittenUser, said_text


def _clock(text: str) -> str:
    fixed_clock(text)
    return text


WrittenClock = Annotated[str, AfterValidator(_clock)]
"""The clock of runs: a fixed time and its time zone, or only a zone. With only a zone, runs have the real time."""


def _subject_name(values: dict[str, Any]) -> str:
    """Return the default name of a subject, from its other values.

    An agent is named like a model, such as `agent:codex`, so that `--model` can select it."""
    agent = values.get("agent")
    return "subject" if agent is None else f"{AGENT}{agent}"


class Subject(Frozen):
    """A program, a Python function or an agent that is evaluated in place of a model.

    `agent` names a known agent. `acp` is the command of an agent that speaks the Agent Client Protocol. With both,
    `agent` defines the agent's setup. `mode` is a session mode of the agent. `builtin` decides what happens to the
    agent's own tools. The agent's working folder is a copy of `folder`. `timeout_s` replaces `limits.timeout_s` for the
    agent's runs."""

    command: Annotated[Items[str], Field(min_length=1)] | None = None
    python: PythonReference | None = None
    agent: AgentName | None = None
    acp: Annotated[Items[str], Field(min_length=1)] | None = None
    mode: NonEmpty | None = None
    builtin: BuiltIn = "off"
    folder: NonEmpty | None = None
    name: NonEmpty = Field(default_factory=_subject_name)
    env: dict[str, str] = Field(default_factory=dict)
    timeout_s: Annotated[float, Field(gt=0)] | None = None

    @property
    def is_agent(self) -> bool:
        """Whether the subject is an agent that Workbench communicates with.

        The user can pause a run of such an agent and execute it step by step."""
        return self.agent is not None or self.acp is not None

    @property
    def called(self) -> str:
        """The subject's name without the prefix `agent:`."""
        return self.name.removeprefix(AGENT)

    @property
    def has_own_tools(self) -> bool:
        """Whether cases may name tools that only the subject has. An agent has such tools if `builtin` allows them."""
        return not self.is_agent or self.builtin == "allow"

    @property
    def started_command(self) -> tuple[str, ...] | None:
        """The command that each run starts, or `None` for a Python function."""
        if self.agent is not None and self.acp is None:
            return KNOWN_AGENTS[self.agent].command
        return self.acp or self.command

    @property
    def as_server(self) -> Server:
        """The subject in the form of a server, for code that decides which commands of a suite need trust."""
        return Server.model_construct(name=self.name, command=self.started_command, env=self.env)


@cache
def agent_subject(model: str) -> Subject | None:
    """Return the subject for a name such as `agent:codex` in a list of models, or `None` for other names."""
    agent = agent_named(model)
    return None if agent is None else Subject(agent=agent.name)


class Annotations(Frozen):
    """MCP's hints about a tool, with their names in the protocol."""

    title: str | None = None
    readOnlyHint: bool | None = None  # noqa: N815
    destructiveHint: bool | None = None  # noqa: N815
    idempotentHint: bool | None = None  # noqa: N815
    openWorldHint: bool | None = None  # noqa: N815


def _json_schema(value: Any) -> Any:
    # TOML has no null, so a schema with a null must be text.
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


class ProviderTool(Frozen):
    """A tool that a model's provider runs itself, such as a web search.

    `chat`, `messages` and `responses` describe the tool in requests to these APIs, and are sent unchanged. A model
    behind any other API is not offered the tool. If none of the three is set, the endpoint itself offers the tool."""

    name: NonEmpty
    chat: dict[str, JsonValue] | None = None
    messages: dict[str, JsonValue] | None = None
    responses: dict[str, JsonValue] | None = None

    @property
    def forms(self) -> dict[str, JsonValue]:
        return {name: form for name in API_NAMES if (form := getattr(self, name)) is not None}


API_NAMES: tuple[str, ...] = ("chat", "messages", "responses")
"""The APIs of models, as suites name them."""


class Mock(Frozen):
    """An answer to calls of a tool in place of its server: exactly one of `result`, `results`, `error` and `python`.

    It answers the first `times` matching calls of a run, or all of them. With `state = "batch"`, a Python function's
    module is imported once for all runs. `unlisted` means that the tool intentionally does not exist."""

    tool: NonEmpty
    when: Checks | None = None
    result: JsonValue = None
    results: Annotated[Items[JsonValue], Field(min_length=1)] | None = None
    error: str | None = None
    python: PythonReference | None = None
    state: StateOwner = "run"
    times: Annotated[int, Field(ge=1)] | None = None
    delay_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0
    unlisted: bool = False

    @property
    def answers_all(self) -> bool:
        """Whether the mock answers every call of its tool."""
        return self.when is None and self.times is None


class PriorCall(Frozen):
    """A tool call in the conversation before the request."""

    id: NonEmpty
    tool: NonEmpty
    args: dict[str, JsonValue] = Field(default_factory=dict)


class PriorMessage(Frozen):
    """A message of the conversation before the request.

    `role` is `user`, `assistant` (with content or tool calls) or `tool` (the result of the call with the id `call`)."""

    role: Literal["user", "assistant", "tool"]
    content: str = ""
    tool_calls: Items[PriorCall] = ()
    call: str | None = None
    is_error: bool = False


class AtMost(Frozen):
    """Upper limits for a run. A run that exceeds one of them fails. `tokens` is for input and output together."""

    calls: Annotated[int, Field(ge=0)] | None = None
    rounds: Annotated[int, Field(ge=1)] | None = None
    tokens: Annotated[int, Field(ge=1)] | None = None
    cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    latency_ms: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


class CaseImage(Frozen):
    """An image in the request of a case: the path of a file in the suite's folder, relative to this folder."""

    file: NonEmpty


class SetupCall(Frozen):
    """A call that the suite makes before each run of a case, to set up the state of its tools."""

    tool: NonEmpty
    args: dict[str, JsonValue] = Field(default_factory=dict)


class FinalState(Frozen):
    """A call of a tool after the run, and a check of its result.

    A check of text receives the result as text. Any other check receives the result's JSON. With `is_error`, the tool
    must answer with an error."""

    tool: NonEmpty
    args: dict[str, JsonValue] = Field(default_factory=dict)
    result: Check | None = None
    is_error: bool | None = None


class FinalTable(Frozen):
    """The conditions at the end of a run: on the changes that it made, on its answers, and on the state of tools.

    `changes` lists every call that may change something. The run must make exactly these calls with success, except for
    read-only tools and for tools that match a pattern in `readers`. An empty list means that no such call may be made.
    Each text in `says` must be in some answer. `goal` is a check of the whole conversation by a judge."""

    changes: Items[ExpectedCall] | None = None
    readers: Items[NonEmpty] = ()
    says: Items[WrittenSaid] = ()
    state: Items[FinalState] = ()
    goal: Check | None = None

    @property
    def texts(self) -> tuple[SaidText, ...]:
        return tuple(map(said_text, self.says))


class Step(Frozen):
    """One model request of a chain. If `tool` names a tool, a call of the tool is expected in the answer."""

    user: str | None = None
    system: str | None = None
    tool: NonEmpty | None = None
    args: Checks | None = None
    forbidden_args: Items[str] = ()
    only_args: bool = False
    unlisted: bool = False
    any_of: Items[ExpectedCall] = ()
    result: Check | None = None
    is_error: bool | None = None
    because: NonEmpty | None = None
    mock_result: JsonValue = None

    @property
    def expects_call(self) -> bool:
        return self.tool is not None or bool(self.any_of)

    @property
    def expected_call(self) -> ExpectedCall | None:
        """The expected call, or `None`. Each access creates a new object."""
        if not self.expects_call:
            return None
        # The values are already validated. A second validation would need its own validator, and building that
        # validator takes long.
        call = ExpectedCall.model_construct(
            tool=self.tool or "",
            args=self.args,
            forbidden_args=self.forbidden_args,
            only_args=self.only_args,
            unlisted=self.unlisted,
            any_of=self.any_of,
            result=self.result,
            is_error=self.is_error,
            because=self.because,
        )
        return with_forbidden(call)


TEMPLATE_SKIP: Final = "write the request"
"""The `skip` of a case that was generated for a tool and lacks only its request."""
TEMPLATE_REQUEST: Final = "…"
"""The request of a generated case until the author writes one."""


def derived_id(name: str) -> str:
    """Derive an id from the name of a case that has no id.

    >>> derived_id("Refund: Order 7")
    'refund-order-7'"""
    return _BETWEEN_WORDS.sub("-", name.lower()).strip("-") or "case"


_Item = TypeVar("_Item")
_BETWEEN_WORDS = late_pattern(r"[\W_]+")


def _placed(items: Iterable[_Item], place: Place) -> Iterator[tuple[Place, _Item]]:
    for index, item in enumerate(items):
        yield (*place, index), item


EACH_FILE: Final = "file of rows"
EACH_ROWS: Final = "rows"


def _file_or_rows(value: Any) -> str:
    return EACH_ROWS if isinstance(value, list | tuple) else EACH_FILE


WrittenEach = Annotated[
    Annotated[NonEmpty, Tag(EACH_FILE)] | Annotated[Items[dict[str, JsonValue]], Tag(EACH_ROWS)],
    Discriminator(_file_or_rows),
]


class CaseVariant(Frozen):
    """The calls that a case expects in a variant, in place of its usual calls."""

    name: NonEmpty
    ordered: Items[OrderedItem] = ()
    unordered: Items[OrderedItem] = ()
    disallowed: Items[DisallowedCall] = ()
    expect_no_calls: bool = False


class Case(Frozen):
    """A request to the model, a chain of requests, or a conversation, with the expected calls and checks of answers."""

    id: NonEmpty
    name: NonEmpty
    each: WrittenEach | None = None
    tags: Items[str] = ()
    cluster: NonEmpty | None = None
    user: WrittenUser | None = None
    images: Items[CaseImage] = ()
    messages: Items[PriorMessage] = ()
    skip: str | None = None
    repeats: Annotated[int, Field(ge=1, le=MAX_REPEATS)] = 1
    setup: Items[SetupCall] = ()
    ordered: Items[OrderedItem] = ()
    unordered: Items[OrderedItem] = ()
    disallowed: Items[DisallowedCall] = ()
    extra_calls: WrittenExtraCalls | None = None
    duplicate_calls: Literal["forbid"] | None = None
    at_most: AtMost | None = None
    expect_no_calls: bool = False
    expect_nothing_yet: bool = False
    response_contains: Items[str] = ()
    response: AnswerChecks | None = None
    final: FinalTable | None = None
    steps: Items[Step] = ()
    stop_on_failure: bool = False
    tools: Items[Tool] = ()
    offer: Items[str] | None = None
    system: str | None = None
    clock: WrittenClock | None = None
    models: Items[NonEmpty] | None = None
    execute: bool | None = None
    mocks: Items[Mock] = ()
    answers: Items[Answer] = ()
    limits: LimitsTable = LimitsTable.model_construct()
    grading: GradingTable = GradingTable.model_construct()
    variants: Items[CaseVariant] = ()

    @model_validator(mode="before")
    @classmethod
    def _give_id(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and "id" not in raw and isinstance(raw.get("name"), str):
            return {"id": derived_id(raw["name"]), **raw}
        return raw

    @property
    def request(self) -> str | None:
        """The text of the request, or `None` for a chain or a conversation, which has several messages."""
        return self.user if isinstance(self.user, str) else None

    @property
    def conversation(self) -> UserTable | None:
        """The user of a conversation, or `None` if the case is not a conversation."""
        return self.user if isinstance(self.user, UserTable) else None

    @property
    def opening_text(self) -> str | None:
        """The request, or `None` for a case without `user`.

        For a conversation, this is the user's opening, first scripted message, or goal."""
        if isinstance(self.user, UserTable):
            return self.user.opening_text
        return self.user

    @property
    def row(self) -> dict[str, JsonValue]:
        """The columns of the row that the case was made for, or an empty dictionary for a case without rows."""
        # `suite.case_rows` has replaced a case with several rows by one case for each row. The key `each` of such a
        # case lists only the case's own row.
        if self.each is None or isinstance(self.each, str):
            return {}
        return self.each[0]

    def in_variant(self, name: str) -> Self:
        """Return the case with the expected calls of a variant, or the case itself if the variant has none."""
        for own in self.variants:
            if own.name == name:
                calls = {key: getattr(own, key) for key in CALLS_IN_VARIANTS}
                return self.model_copy(update={**calls, "variants": ()})
        return self

    @property
    def versions(self) -> tuple[Self, ...]:
        """The case itself, and the case as it is in each of its variants."""
        return (self, *(self.in_variant(own.name) for own in self.variants))

    @property
    def runs_only_in_variants(self) -> bool:
        """Whether the case expects calls in its variants and nothing otherwise. It then runs only in these variants."""
        return bool(self.variants) and not any(getattr(self, key) for key in CALLS_IN_VARIANTS)

    @property
    def template(self) -> str | None:
        """The id of the case with rows that this case was made from, or `None` if the case has no row."""
        return self.id.removesuffix(f"/{self.row['id']}") if self.row else None

    def expected_calls(self) -> tuple[ExpectedCall, ...]:
        """Return the expected calls: first the ordered list, then the unordered list.

        For a chain, these are the calls of its steps. Groups are flattened. Repeated calls return the same objects."""
        return self._expected_calls

    # A case is immutable and asked many times in each run, so it keeps these properties.
    @kept_property
    def _expected_calls(self) -> tuple[ExpectedCall, ...]:
        of_steps = [step.expected_call for step in self.steps]
        others = [with_forbidden(call) for _, call in self.placed_expected_calls()]
        return (*filter(None, of_steps), *others)

    def placed_expected_calls(self) -> Iterator[tuple[Place, ExpectedCall]]:
        """Yield the expected calls with their places in the case. Calls of steps are omitted."""
        for key, items in (("ordered", self.ordered), ("unordered", self.unordered)):
            yield from written_items(items, (key,))

    def written_calls(self) -> tuple[tuple[Place, ExpectedCall | Step], ...]:
        """Return every description of a call with its place: expected and disallowed calls, steps and changes.

        The alternatives of a call replace it."""
        # `suite.trust` finds the Python functions of checks with this method, so it must include every place for checks
        # on arguments.
        whole = self._whole_calls
        if not any(call.any_of for _, call in whole):
            return whole
        found: list[tuple[Place, ExpectedCall | Step]] = []
        for place, call in whole:
            found += _placed(call.any_of, (*place, "any_of")) if call.any_of else [(place, call)]
        return tuple(found)

    @kept_property
    def _whole_calls(self) -> tuple[tuple[Place, ExpectedCall | Step], ...]:
        return tuple(_placed_whole_calls(self))

    def checked_results(self) -> Iterator[tuple[Place, Check]]:
        for place, call in self._whole_calls:
            if call.result is not None:
                yield (*place, "result"), call.result
            for at, alternative in _placed(call.any_of, (*place, "any_of")):
                if alternative.result is not None:
                    yield (*at, "result"), alternative.result

    def written_checks(self) -> tuple[Check, ...]:
        """Return every check of the case: of arguments, results, answers, the conversation and the final state.

        Checks that are nested in these checks are included."""
        return self._written_checks

    @kept_property
    def _written_checks(self) -> tuple[Check, ...]:
        return tuple(_every_check(self))

    @kept_property
    def judged_checks(self) -> tuple[Judged, ...]:
        """The checks of `written_checks` that a judge model decides."""
        return tuple([check for check in self._written_checks if isinstance(check, Judged)])

    @kept_property
    def has_quick_checks(self) -> bool:
        """Whether no check may take long: no Python, no pattern and no judge."""
        return all(check.cost != "unbounded" for check in self._written_checks)

    def conversation_checks(self) -> Iterator[tuple[Place, Check]]:
        """Yield the checks of a conversation's answers and of the whole conversation, with their places."""
        if (user := self.conversation) is not None:
            for at, condition in user.conditions():
                if condition.answer is not None:
                    yield ("user", *at, "answer"), condition.answer
            for index, message in enumerate(user.messages):
                for name, check in named_checks(message.response):
                    response: Place = ("user", "messages", index, "response")
                    yield response if name is None else (*response, name), check
        if self.final is not None and self.final.goal is not None:
            yield ("final", "goal"), self.final.goal

    def own_calls(self) -> Iterator[tuple[Place, SetupCall | FinalState]]:
        """Yield the calls that the suite itself makes, each with its place: first `setup`, then `final`."""
        yield from _placed(self.setup, ("setup",))
        yield from _placed(self.final_states, ("final", "state"))

    @property
    def final_states(self) -> tuple[FinalState, ...]:
        return self.final.state if self.final is not None else ()

    @property
    def answer_checks(self) -> tuple[tuple[str | None, Check], ...]:
        """The checks of the final answer with their names. The name of a single unnamed check is `None`."""
        return named_checks(self.response)

    @property
    def checks_answer(self) -> bool:
        return bool(self.response_contains) or self.response is not None

    def missing_keywords(self, answer: str) -> list[str]:
        text = keyword_text(answer)
        return [keyword for keyword in self.response_contains if keyword_text(keyword) not in text]

    @kept_property
    def needs_resolving(self) -> bool:
        """Whether the number or the kind of expected calls depends on the calls that a run made."""
        if any(isinstance(item, AnyOrder) and item.parallel for item in (*self.ordered, *self.unordered)):
            return True
        return any(call.needs_resolving for call in self._expected_calls)

    @kept_property
    def makes_demands(self) -> bool:
        """Whether the case has requirements that depend on the grader and are not part of the score."""
        without_call = any(step.tool is None for step in self.steps)
        if without_call or self.disallowed or self.response_contains or self.duplicate_calls:
            return True
        return any(call.limits_args for call in self._expected_calls)

    @property
    def alternatives(self) -> tuple[ExpectedCall, ...]:
        """The expected calls. A call with `any_of` is replaced by its alternatives."""
        return tuple(alternative for call in self.expected_calls() for alternative in call.alternatives)

    @property
    def forbids_all_calls(self) -> bool:
        """Whether the case forbids all calls: as a whole, or in each step of a chain."""
        return self.expect_no_calls or (bool(self.steps) and not any(step.expects_call for step in self.steps))

    @property
    def expects_calls_or_none(self) -> bool:
        """Whether the case expects calls, or expects that no call is made."""
        return bool(self.ordered or self.unordered or self.steps or self.expect_no_calls)

    @property
    def expects_nothing_yet(self) -> bool:
        """Whether runs stay ungraded, because the case has `expect_nothing_yet` and expects nothing else.

        In a chain, a step without a tool is not an expectation."""
        if not self.expect_nothing_yet or self.expects_in_turns or any(getattr(self, key) for key in EXPECTATIONS):
            return False
        return not any(step.expects_call for step in self.steps)

    @property
    def expects_in_turns(self) -> bool:
        """Whether a scripted user's message has expectations for the answer that follows the message."""
        return self.conversation is not None and any(message.expects for message in self.conversation.messages)

    @property
    def expects_nothing(self) -> bool:
        """Whether the case expects nothing and does not say so by `expect_nothing_yet`. Every run of it then passes."""
        if self.expect_nothing_yet or self.steps or self.variants or self.extra_calls not in (None, "allow"):
            return False
        if self.expects_in_turns:
            return False
        return not any(getattr(self, key) for key in EXPECTATIONS if key != "extra_calls")

    @property
    def why_no_expected_calls(self) -> str:
        """The reason that graders of expected calls give for a case that expects no calls."""
        deciding = [key for key in EXPECTATIONS if getattr(self, key)]
        if self.expects_in_turns:
            deciding.append("turns")
        if not deciding:
            return "the case expects nothing yet"
        return f"the case expects no calls; decided by {', '.join(deciding)}"


def named_checks(response: AnswerChecks | None) -> tuple[tuple[str | None, Check], ...]:
    """Return the checks of an answer with their names. The name of a single unnamed check is `None`."""
    if isinstance(response, dict):
        return tuple(response.items())
    if response is not None:
        return ((None, response),)
    return ()


CALLS_IN_VARIANTS = ("ordered", "unordered", "disallowed", "expect_no_calls")
"""The keys of a case that its `variants` replace."""

EXPECTATIONS = (
    *("ordered", "unordered", "disallowed", "extra_calls", "expect_no_calls", "duplicate_calls", "at_most"),
    *("response_contains", "response", "final"),
)
"""The keys of expectations in a case that is not a chain."""


def _placed_whole_calls(case: Case) -> Iterator[tuple[Place, ExpectedCall | Step]]:
    yield from case.placed_expected_calls()
    for place, call in _placed(case.disallowed, ("disallowed",)):
        yield place, call
        for key, other in call.conditions:
            yield (*place, key), other
    yield from _placed(case.steps, ("steps",))
    if (user := case.conversation) is not None:
        for index, message in enumerate(user.messages):
            for at, expected in message.placed_calls():
                yield ("user", "messages", index, *at), expected
    if case.final is not None:
        yield from _placed(case.final.changes or (), ("final", "changes"))


def _every_check(case: Case) -> Iterator[Check]:
    for _, call in case.written_calls():
        for check in (call.args or {}).values():
            yield from with_parts(check)
    for _, check in (*case.checked_results(), *case.answer_checks, *case.conversation_checks()):
        yield from with_parts(check)
    for state in case.final_states:
        if state.result is not None:
            yield from with_parts(state.result)


class ToolChange(Frozen):
    """A variant's changes to one tool of the suite, a case or a server.

    `name` renames the tool. `arguments` maps old names of arguments to new names. Expectations and mocks are renamed
    too. A `hidden` tool is not offered."""

    tool: NonEmpty
    name: NonEmpty | None = None
    description: str | None = None
    parameters: Annotated[dict[str, JsonValue], BeforeValidator(_json_schema)] | None = None
    arguments: dict[NonEmpty, NonEmpty] = Field(default_factory=dict)
    hidden: bool = False


class Variant(Frozen):
    """Changes to a suite whose results are compared with those of the unchanged suite and of other variants.

    `servers` and `tools` replace servers and tools of the same name, or are added. `mocks` take precedence over all
    other mocks. `offer` replaces the `offer` of each case. `names` maps the tools of expectations to replacements. With
    `host`, the variant imitates an MCP host: each case also offers the variant's tools. An agent is itself a host, so
    it does not run such a variant."""

    name: NonEmpty
    description: str = ""
    system: str | None = None
    model: NonEmpty | None = None
    host: bool = False
    params: dict[str, JsonValue] = Field(default_factory=dict)
    offer: Items[str] | None = None
    names: dict[NonEmpty, NonEmpty] = Field(default_factory=dict)
    servers: Items[Server] = ()
    tools: Items[Tool] = ()
    mocks: Items[Mock] = ()
    changes: Items[ToolChange] = ()


class Suite(Frozen):
    """A suite: the content of one whole suite file."""

    format: Literal[1]
    name: NonEmpty
    description: str = ""
    system: str | None = None
    clock: WrittenClock | None = None
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
    provider_tools: Items[ProviderTool] = ()
    mocks: Items[Mock] = ()
    answers: Items[Answer] = ()
    variants: Items[Variant] = ()
    cases: Items[Case] = ()

    def case_of_id(self, case_id: str) -> Case:
        """Return the case with an id. Raise KeyError if there is none."""
        for case in self.cases:
            if case.id == case_id:
                return case
        raise KeyError(case_id)

    def variant_of_name(self, name: str) -> Variant:
        """Return the variant with a name. Raise KeyError if there is none."""
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise KeyError(name)


def servers_of(suite: Suite) -> tuple[Server, ...]:
    """Return the servers of a suite and of its variants.

    A program that is the subject is included in the form of a server."""
    started = list(suite.servers)
    if suite.subject is not None and suite.subject.command is not None:
        started.append(suite.subject.as_server)
    for variant in suite.variants:
        started += variant.servers
    return tuple(started)


def agents_of(suite: Suite) -> tuple[Subject, ...]:
    """Return the agents that a suite names as its subject or among its models."""
    agents = []
    if suite.subject is not None and suite.subject.is_agent:
        agents.append(suite.subject)
    for model in dict.fromkeys(_models_in(suite)):
        if (agent := agent_subject(model)) is not None:
            agents.append(agent)
    return tuple(agents)


def _models_in(suite: Suite) -> Iterator[str]:
    yield from suite.models
    for case in suite.cases:
        yield from case.models or ()
    for variant in suite.variants:
        if variant.model is not None:
            yield variant.model


class _HasName(Protocol):
    @property
    def name(self) -> str: ...


_Named = TypeVar("_Named", bound=_HasName)


def by_name(items: Iterable[_Named]) -> dict[str, _Named]:
    """Return tools, servers or suites by name, in the order in which names first occur.

    Of several items with one name, the last counts."""
    return {item.name: item for item in items}


def written_tools(suite: Suite, case: Case) -> tuple[Tool, ...]:
    """Return the tools that a suite defines for a case.

    A tool of the case replaces the suite's tool of the same name."""
    return tuple(by_name((*suite.tools, *case.tools)).values())
