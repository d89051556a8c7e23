"""Checks how whole numbers are written, as the Berkeley Function Calling Leaderboard does: JSON has one type of
numbers, the leaderboard's checker those of Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Set

from workbench.checks.check import with_parts
from workbench.checks.text_kinds import EqualsText
from workbench.checks.value_kinds import Equals
from workbench.checks.values import describe_value
from workbench.grading.grade import Issue
from workbench.suite.model import Case
from workbench.trajectory.json_schema import Schema, properties_of, resolved, type_names
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.trajectory import Trajectory


def written_integer_issues(case: Case, trajectory: Trajectory) -> Iterator[Issue]:
    """Yield a deciding issue for each argument whose numbers are of another type in Python than its schema declares:
    5.0 for an integer, and 5 in a list of fractions. Alone, 5 is also a fraction. The type of an expected value is
    accepted beside the declared one."""
    tools = {tool.name: tool.parameters for tool in trajectory.start.tools} if trajectory.start is not None else {}
    expected = _expected_types(case)
    for index, record in enumerate(trajectory.calls):
        schema = tools.get(record.tool, {})
        for name, value in record.arguments.items():
            declared = resolved(properties_of(schema).get(name, {}), schema)
            if (why := _wrong(value, declared, schema, expected[record.tool, name])) is not None:
                got = describe_value(value)
                yield Issue("schema violation", why, tool=record.tool, call=index, argument=name, got=got, decides=True)


def _expected_types(case: Case) -> Mapping[tuple[str, str], set[type]]:
    """Return the types of the values that the case expects of each argument; a list has the type of its first item."""
    types: defaultdict[tuple[str, str], set[type]] = defaultdict(set)
    for call in case.expected_calls():
        for name, check in (call.args or {}).items():
            for part in with_parts(check):
                match part:
                    case EqualsText(equals_text=[first, *_]) | Equals(equals=first):
                        types[call.tool, name].add(type(first))
    return types


def _wrong(value: JsonValue, schema: Schema, root: Schema, expected: Set[type]) -> str | None:
    declared = type_names(schema)
    if declared == ("integer",) and isinstance(value, float) and float not in expected:
        return "a whole number is expected, and this is written with a fraction"
    if not isinstance(value, list):
        return None
    types = {type(item) for item in value} - expected
    of_items = type_names(resolved(schema.get("items", {}), root))
    if of_items == ("integer",) and float in types:
        return "whole numbers are expected in the list, and one is written with a fraction"
    if of_items == ("number",) and int in types:
        return "fractions are expected in the list, and one is written as a whole number"
    return None
