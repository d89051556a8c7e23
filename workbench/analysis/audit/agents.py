"""Imagined agents: three that understand nothing, and one that does exactly what a case expects.

Their actions are written down as the trajectory of a run, so that the graders themselves decide whether it passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from workbench.analysis.audit.schema_values import ANY_TEXT, all_arguments, candidates_of, required_arguments, value_of
from workbench.analysis.audit.tool_table import ToolTable, parameter_schema
from workbench.checks.check import Check, CheckContext, Checks, CheckVerdict, UnknownSampleError
from workbench.checks.patterns import CheckError
from workbench.checks.value_kinds import Present
from workbench.dataclasses import dataclass
from workbench.grading.requirements import keyword_text
from workbench.suite.model import ANY_TOOL, AnyOrder, Case, ExpectedCall, Step
from workbench.trajectory.events import RunFinished, RunStarted
from workbench.trajectory.messages import JsonValue, ToolCall, ToolDefinition
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

Made = tuple[str, Mapping[str, JsonValue]]
"""A call: the tool and its arguments."""

AGREEING = CheckContext(lambda _reference, _value: True, lambda _check, _value: CheckVerdict(1.0, True))
"""A judge and Python functions that accept everything, to find out what can be passed at all."""

REFUSING = CheckContext(lambda _reference, _value: False, lambda _check, _value: CheckVerdict(0.0, False))
"""A judge and Python functions that refuse everything, so that an empty run does not pass by them."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent with its description, and its run of a case."""

    description: str
    run: Trajectory


def careless_agents(case: Case, table: ToolTable) -> tuple[Agent, ...]:
    """Returns agents that pass only cases that ask too little."""
    request = _request(case)
    every = [(tool.name, all_arguments(tool.parameters)) for tool in table.offered(case.offer)]
    tools = _without_unmet_schemas(table, case, every)
    rounds = len(case.steps)
    return (
        Agent("an agent that neither calls nor says anything", _run(tools, [[] for _ in range(rounds)] or [[]], "")),
        Agent(
            "an agent that only repeats the request",
            _run(tools, [[] for _ in range(rounds)] or [[]], request),
        ),
        Agent(
            "an agent that calls every tool once and repeats the request",
            _run(tools, [every for _ in range(rounds)] or [every], request),
        ),
    )


@dataclass(frozen=True, slots=True)
class ExactAgent:
    """An agent that does exactly what is expected. `case` is the case to grade it by, in which checks without a sample
    value are assumed to hold; `calls` are its calls by round, in the order in which the case writes them."""

    case: Case
    tools: tuple[ToolDefinition, ...]
    calls: tuple[tuple[Made, ...], ...]
    answer: str

    def run(self, calls: Iterable[Sequence[Made]] | None = None) -> Trajectory:
        """Returns its run, or the run with other calls in place of its own."""
        return _run(self.tools, self.calls if calls is None else calls, self.answer)


def exact_agent(case: Case, table: ToolTable, max_rounds: int) -> ExactAgent:
    """Returns the exact agent of a case. Raises NeverHoldsError when some check never holds."""
    rounds: list[list[Made]]
    if case.steps:
        steps = [_step_with_values(step, case, table) for step in case.steps]
        case = case.model_copy(update={"steps": tuple(step for step, _ in steps)})
        rounds = [made for _, made in steps]
    else:
        made: list[Made] = []
        ordered: list[ExpectedCall | AnyOrder] = []
        for item in case.ordered:
            if isinstance(item, AnyOrder):
                inner = [_with_values(call, made, case, table) for call in item.any_order]
                ordered.append(item.model_copy(update={"any_order": tuple(inner)}))
            else:
                ordered.append(_with_values(item, made, case, table))
        unordered = tuple(_with_values(call, made, case, table) for call in case.unordered)
        case = case.model_copy(update={"ordered": tuple(ordered), "unordered": unordered})
        rounds = [made]
    case, answer = _answer(case)
    cut_off = max_rounds == 1 and not case.steps and any(rounds)
    tools = _without_unmet_schemas(table, case, [call for made in rounds for call in made])
    return ExactAgent(case, tools, tuple(map(tuple, rounds)), "" if cut_off else answer)


def _without_unmet_schemas(table: ToolTable, case: Case, calls: Iterable[Made]) -> tuple[ToolDefinition, ...]:
    """Return the offered tools, without the schema of each one for which no valid arguments were found: an imagined
    agent is no proof that there are none."""
    unmet: set[str] = set()
    for name, arguments in calls:
        tool = table.find(name)
        if tool is not None and not table.allows(tool, arguments):
            unmet.add(tool.name)
    return tuple(
        ToolDefinition(tool.name, tool.description, {}, tool.annotations, tool.server) if tool.name in unmet else tool
        for tool in table.offered(case.offer)
    )


def _with_values(call: ExpectedCall, made: list[Made], case: Case, table: ToolTable) -> ExpectedCall:
    name = _tool_of(call.tool, table.offered(case.offer))
    checks, arguments = _values(call.args, table.find(name), table)
    made.append((name, arguments))
    return call.model_copy(update={"args": checks})


def _tool_of(name: str, tools: Sequence[ToolDefinition]) -> str:
    """Returns the tool to call; for any tool, the last one offered, which is the least likely to be named elsewhere."""
    return tools[-1].name if name == ANY_TOOL and tools else name


def _step_with_values(step: Step, case: Case, table: ToolTable) -> tuple[Step, list[Made]]:
    if step.tool is None:
        return step, []
    name = _tool_of(step.tool, table.offered(case.offer))
    checks, arguments = _values(step.args, table.find(name), table)
    return step.model_copy(update={"args": checks}), [(name, arguments)]


def _values(
    checks: Checks | None, tool: ToolDefinition | None, table: ToolTable
) -> tuple[Checks | None, dict[str, JsonValue]]:
    """Returns the checks, with `present` in place of those without a sample value, and arguments that meet them and the
    tool's schema."""
    needed = required_arguments(tool.parameters) if tool is not None and checks != {} else {}
    if checks is None:
        return None, needed
    meetable: Checks = {}
    arguments: dict[str, JsonValue] = {}
    for name, check in checks.items():
        meetable[name], arguments[name] = _argument(check, name, tool, table)
    return meetable, {**arguments, **{name: value for name, value in needed.items() if name not in arguments}}


def _argument(check: Check, name: str, tool: ToolDefinition | None, table: ToolTable) -> tuple[Check, JsonValue]:
    """Return a check and a value that meets it and the tool's schema. Where no such value is found, `present` stands
    for the check, except for one that lists its values."""
    schema = parameter_schema(tool, name) if tool is not None else None
    if tool is None or schema is None:
        return _value(check)
    if check.accepts_all:
        return check, value_of(schema, tool.parameters)
    samples = check.known_samples()
    allowed = (value for value in samples if table.refusal(tool, name, value) is None)
    if (found := next(allowed, None)) is not None or check.listed is not None:
        return check, samples[0] if found is None else found
    try:
        for value in islice(candidates_of(schema, tool.parameters), _MAX_TRIED):
            if check.holds(value) and table.refusal(tool, name, value) is None:
                return check, value
    except (CheckError, UnknownSampleError):
        pass  # what it accepts cannot be asked
    return _present(check), value_of(schema, tool.parameters)


_MAX_TRIED = 60


def _present(check: Check) -> Present:
    return Present(present=True, weight=check.weight, optional=check.optional, required=check.required)


def _value(check: Check) -> tuple[Check, JsonValue]:
    if check.accepts_all:
        return check, ANY_TEXT
    try:
        return check, check.samples()[0]
    except UnknownSampleError:
        return _present(check), ANY_TEXT


def _answer(case: Case) -> tuple[Case, str]:
    """Returns an answer with all keywords that meets the check on it, as far as one check allows both."""
    words = " ".join(case.response_contains)
    if case.response is None:
        return case, words or ANY_TEXT
    if isinstance(case.response, dict):  # no sample is sure to meet several checks, so none of them is looked at
        return case.model_copy(update={"response": None}), words or ANY_TEXT
    check, value = _value(case.response)
    case = case.model_copy(update={"response": check})
    text = value if isinstance(value, str) else str(value)
    lacking = [word for word in case.response_contains if keyword_text(word) not in keyword_text(text)]
    return case, check.with_words(text, lacking) if lacking else text


def _request(case: Case) -> str:
    return case.user or " ".join(step.user for step in case.steps if step.user) or ANY_TEXT


def _run(tools: Sequence[ToolDefinition], made: Iterable[Sequence[Made]], answer: str) -> Trajectory:
    rounds: list[Round] = []
    for number, calls in enumerate(made, 1):
        records = tuple(
            CallRecord(ToolCall(f"call-{number}-{index}", tool, arguments), number)
            for index, (tool, arguments) in enumerate(calls)
        )
        rounds.append(Round(number, calls=records, stop_reason="tool calls" if records else "answered"))
    rounds.append(Round(len(rounds) + 1, text=answer, stop_reason="answered", latency_ms=0.0))
    start = RunStarted("", "", "", "imagined", None, (), tuple(tools))
    return Trajectory("audit", start, tuple(rounds), RunFinished("answered"))
