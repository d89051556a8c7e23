"""Checks how whole numbers are written, as the Berkeley Function Calling Leaderboard does: JSON has one type of
numbers, the leaderboard's checker those of Python."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.checks.describe import describe_value
from workbench.grading.grade import Issue
from workbench.suite.checks import Equals, with_parts
from workbench.suite.model import Case
from workbench.trajectory.json_schema import Schema, properties_of, resolved, type_names
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.trajectory import Trajectory


def written_integer_issues(case: Case, trajectory: Trajectory) -> Iterator[Issue]:
    """Yield a deciding issue for each argument whose numbers are of another type in Python than its schema declares:
    5.0 for an integer, and 5 in a list of fractions. Alone, 5 is also a fraction."""
    tools = {tool.name: tool.parameters for tool in trajectory.start.tools} if trajectory.start is not None else {}
    fractions = _expected_as_fractions(case)
    for index, record in enumerate(trajectory.calls):
        schema = tools.get(record.tool, {})
        for name, value in record.arguments.items():
            declared = resolved(properties_of(schema).get(name, {}), schema)
            if (record.tool, name) not in fractions and (why := _wrong(value, declared, schema)) is not None:
                got = describe_value(value)
                yield Issue("schema violation", why, tool=record.tool, call=index, argument=name, got=got, decides=True)


def _expected_as_fractions(case: Case) -> set[tuple[str, str]]:
    """Return the arguments for which the case itself expects a fraction, which then is their type."""
    return {
        (call.tool, name)
        for call in case.expected_calls()
        for name, check in (call.args or {}).items()
        if any(isinstance(part, Equals) and isinstance(part.equals, float) for part in with_parts(check))
    }


def _wrong(value: JsonValue, schema: Schema, root: Schema) -> str | None:
    declared = type_names(schema)
    if declared == ("integer",) and isinstance(value, float):
        return "a whole number is expected, and this is written with a fraction"
    if not isinstance(value, list):
        return None
    of_items = type_names(resolved(schema.get("items", {}), root))
    if of_items == ("integer",) and any(isinstance(item, float) for item in value):
        return "whole numbers are expected in the list, and one is written with a fraction"
    if of_items == ("number",) and any(isinstance(item, int) and not isinstance(item, bool) for item in value):
        return "fractions are expected in the list, and one is written as a whole number"
    return None
