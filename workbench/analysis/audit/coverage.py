"""Measures which tools, parameters and enum values the cases of a suite cover."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from workbench.analysis.audit.tool_table import ToolTable
from workbench.checks.check import Check
from workbench.checks.values import describe_value, json_equal
from workbench.dataclasses import dataclass
from workbench.suite.model import Case, ExpectedCall, Step
from workbench.trajectory.json_schema import properties_of, resolved
from workbench.trajectory.messages import JsonValue, ToolDefinition


@dataclass(frozen=True, slots=True)
class Share:
    """How many of the things some case covers, and the names of the others."""

    covered: int
    total: int
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage of the tools by cases that run. Parameters are named `tool.parameter`, values `tool.parameter =
    value`; those of a tool that no case covers are not listed again."""

    tools: Share
    parameters: Share
    values: Share

    @property
    def shares(self) -> tuple[tuple[str, Share], ...]:
        """The shares of the kinds that exist, by their names."""
        named = (("tools", self.tools), ("parameters", self.parameters), ("enum values", self.values))
        return tuple((what, share) for what, share in named if share.total)


def coverage_of(cases: Iterable[Case], table: ToolTable) -> Coverage:
    """Count every expected call; a disallowed one covers its tool, not its arguments."""
    running = [case for case in cases if case.skip is None]
    checks: dict[str, list[tuple[str, Check]]] = {}
    for case in running:
        for place, call in case.written_calls():
            is_own = any(each.name == call.tool for each in case.tools)
            tool = table.find(call.tool) if call.tool is not None and not is_own else None
            if tool is not None:
                checks.setdefault(tool.name, []).extend(_checks(call) if place[0] != "disallowed" else ())
    parameters: list[tuple[str, bool]] = []
    values: list[tuple[str, bool]] = []
    for tool in table.tools:
        if tool.name in checks:
            own = checks[tool.name]
            parameters += _parameters(tool, own)
            values += _values(tool, own)
    return Coverage(
        _share([(tool.name, tool.name in checks) for tool in table.tools]), _share(parameters), _share(values)
    )


def _checks(call: ExpectedCall | Step) -> Iterator[tuple[str, Check]]:
    yield from (call.args or {}).items()


def _parameters(tool: ToolDefinition, checks: Sequence[tuple[str, Check]]) -> Iterator[tuple[str, bool]]:
    checked = {name for name, _ in checks}
    for name in properties_of(tool.parameters):
        yield f"{tool.name}.{name}", name in checked


def _values(tool: ToolDefinition, checks: Sequence[tuple[str, Check]]) -> Iterator[tuple[str, bool]]:
    for name, written in properties_of(tool.parameters).items():
        choices = resolved(written, tool.parameters).get("enum")
        if isinstance(choices, list):
            expected = [value for argument, check in checks if argument == name for value in _expected(check)]
            for choice in choices:
                place = f"{tool.name}.{name} = {describe_value(choice)}"
                yield place, any(json_equal(choice, value) for value in expected)


def _expected(check: Check) -> tuple[JsonValue, ...]:
    return check.listed or ()


def _share(found: Sequence[tuple[str, bool]]) -> Share:
    missing = tuple(name for name, covered in found if not covered)
    return Share(len(found) - len(missing), len(found), missing)
