"""Mutants of the exact agent, each with one change. A mutant that still passes shows what a case does not check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from workbench.analysis.audit.agents import ExactAgent, Made
from workbench.analysis.audit.finding import Weight
from workbench.analysis.audit.harm import harm_of, is_harmful_argument
from workbench.analysis.audit.samples import other_values
from workbench.analysis.audit.schema_values import required_arguments, value_of
from workbench.analysis.audit.tool_table import ToolTable, parameter_schema
from workbench.checks.check import Check
from workbench.checks.patterns import CheckError
from workbench.dataclasses import dataclass
from workbench.grading.extra_calls import ExtraCallRule
from workbench.grading.tool_names import is_meant
from workbench.suite.model import AnyOrder, Case, ExpectedCall
from workbench.suite.problems import Place, quoted
from workbench.trajectory.json_schema import properties_of
from workbench.trajectory.messages import JsonValue, ToolDefinition

Calls = tuple[tuple[Made, ...], ...]
"""Calls by round."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """The exact agent with one change, described by `what` and `how`: `"to"`, `wrong`. `place` is inside the case."""

    what: str
    how: Literal["wrong", "left out", "swapped", "added", "twice"]
    place: Place
    weight: Weight
    calls: Calls


@dataclass(frozen=True, slots=True)
class _Written:
    """An expected call, its place in the case, and its place among the exact agent's calls."""

    place: Place
    call: ExpectedCall
    round: int
    index: int


def mutants_of(agent: ExactAgent, table: ToolTable, rule: ExtraCallRule) -> Iterator[Mutant]:
    """Returns all mutants: of each expected call in turn, then of the order, then those that do more than is
    expected."""
    written = tuple(_written_calls(agent.case))
    for each in written:
        yield from _with_other_arguments(agent, each, table.find(_made_by(agent, each)), table)
    yield from _with_other_order(agent, written)
    yield from _with_further_call(agent, table, rule)
    for each in written:
        tool = table.find(_made_by(agent, each))
        if tool is not None:
            yield from _with_further_argument(agent, each, tool)


def _made_by(agent: ExactAgent, written: _Written) -> str:
    """Returns the tool that the exact agent calls for an expected call."""
    return agent.calls[written.round][written.index][0]


def _written_calls(case: Case) -> Iterator[_Written]:
    if case.steps:
        for number, step in enumerate(case.steps):
            if (expected := step.expected_call) is not None:
                yield _Written(("steps", number), expected, number, 0)
        return
    for index, (place, call) in enumerate(case.placed_expected_calls()):
        yield _Written(place, call, 0, index)


def _with_other_arguments(
    agent: ExactAgent, written: _Written, tool: ToolDefinition | None, table: ToolTable
) -> Iterator[Mutant]:
    checks = written.call.args or {}
    _, made = agent.calls[written.round][written.index]
    dropped = [name for name, check in checks.items() if _must_be_given(check, name, tool)]
    for name in dropped:
        left = {key: value for key, value in made.items() if key != name}
        yield _changed(agent, written, left, quoted(name), "left out")
    if len(dropped) > 1:
        yield _changed(agent, written, {}, "all arguments", "left out")
    for name, check in checks.items():
        other = _other_value(check, name, tool, table)
        if other:
            yield _changed(agent, written, {**made, name: other[0]}, quoted(name), "wrong")


def _must_be_given(check: Check, name: str, tool: ToolDefinition | None) -> bool:
    """Returns whether leaving an argument out differs from giving what is expected."""
    if check.optional or check.expects_null:
        return False
    schema = parameter_schema(tool, name) if tool is not None else None
    try:
        return schema is None or "default" not in schema or check.accepts_all or not check.holds(schema["default"])
    except CheckError:
        return True


def _other_value(check: Check, name: str, tool: ToolDefinition | None, table: ToolTable) -> tuple[JsonValue, ...]:
    """Returns one value that the tool's schema allows and the check refuses; nothing where none can be constructed."""
    if check.accepts_all:
        return ()
    schema = (parameter_schema(tool, name) if tool is not None else None) or {}
    try:
        for value in other_values(check, schema):
            if tool is None or table.refusal(tool, name, value) is None:
                return (value,)
    except CheckError:
        pass  # what it refuses cannot be asked
    return ()


def _with_other_order(agent: ExactAgent, written: Sequence[_Written]) -> Iterator[Mutant]:
    """Returns mutants with two neighbours of the ordered list exchanged."""
    position = 0
    for item in agent.case.ordered[:-1]:
        position += len(item.any_order) if isinstance(item, AnyOrder) else 1
        first, second = written[position - 1], written[position]
        calls = list(agent.calls[0])
        one, other = calls[position - 1], calls[position]
        if _meets(first.call, other) and _meets(second.call, one):
            continue
        calls[position - 1], calls[position] = other, one
        what = f"the calls of {quoted(one[0])} and {quoted(other[0])}"
        yield Mutant(what, "swapped", ("ordered",), "warning", (tuple(calls),))


def _meets(expected: ExpectedCall, made: Made) -> bool:
    tool, arguments = made
    if not is_meant(expected, tool) or (expected.args == {} and arguments) or expected.unwanted(arguments):
        return False
    try:
        return all(
            check.accepts_all or check.holds(arguments[name]) if name in arguments else check.optional
            for name, check in (expected.args or {}).items()
        )
    except CheckError:
        return False


def _with_further_call(agent: ExactAgent, table: ToolTable, rule: ExtraCallRule) -> Iterator[Mutant]:
    """Return mutants with one more call at the end: of a tool that the case does not mention, and the call of a harmful
    tool once more, the most harmful ones. What cannot be taken back is a warning. Tools that the case's rule frees by
    name or by their annotations are meant to be called."""
    named = (table.find(call.tool) for _, call in agent.case.written_calls() if call.tool is not None)
    spoken_of = {tool.name for tool in named if tool is not None}
    *before, last = agent.calls or ((),)
    made = [(call, tool) for call in last if (tool := table.find(call[0])) is not None]
    twice = max(made, key=lambda each: harm_of(each[1]), default=None)
    others = [tool for tool in agent.tools if tool.name not in spoken_of and not rule.is_free_tool(tool.name)]
    if others:
        other = max(others, key=harm_of)
        added: Made = (other.name, required_arguments(other.parameters))
        weight = _weight(harm_of(other) == 2)
        yield Mutant(f"a call of {quoted(other.name)}", "added", (), weight, (*before, (*last, added)))
    if twice is not None and (not others or harm_of(twice[1]) == 2):
        call, tool = twice
        weight = _weight(harm_of(tool) == 2)
        yield Mutant(f"the call of {quoted(call[0])}", "twice", (), weight, (*before, (*last, call)))


def _weight(is_harmful: bool) -> Weight:
    return "warning" if is_harmful else "note"


def _with_further_argument(agent: ExactAgent, written: _Written, tool: ToolDefinition) -> Iterator[Mutant]:
    """Returns mutants with an argument that the tool lists and the expected call does not, with a value other than its
    default."""
    if written.call.args is None:
        return
    _, made = agent.calls[written.round][written.index]
    spoken_of = {*made, *written.call.forbidden_args}
    for name in sorted(properties_of(tool.parameters), key=is_harmful_argument, reverse=True):
        schema = parameter_schema(tool, name) or {}
        value = value_of({key: value for key, value in schema.items() if key != "default"}, tool.parameters)
        if name not in spoken_of and value != schema.get("default"):
            weight = _weight(is_harmful_argument(name) and harm_of(tool) > 0)
            yield _changed(agent, written, {**made, name: value}, quoted(name), "added", weight)
            return


def _changed(
    agent: ExactAgent,
    written: _Written,
    arguments: Mapping[str, JsonValue],
    what: str,
    how: Literal["wrong", "left out", "added"],
    weight: Weight = "warning",
) -> Mutant:
    calls = [list(made) for made in agent.calls]
    calls[written.round][written.index] = (calls[written.round][written.index][0], arguments)
    return Mutant(what, how, written.place, weight, tuple(map(tuple, calls)))
