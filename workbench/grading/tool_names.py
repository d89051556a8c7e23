"""Resolves names to tools: equal names, names as providers change them, and the defaults of a tool's arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from workbench.suite.model import ExpectedCall
from workbench.suite.tool_names import comparable_name
from workbench.trajectory.json_schema import properties_of
from workbench.trajectory.messages import JsonValue, ToolDefinition

normalised_name = lru_cache(maxsize=1024)(comparable_name)
"""Returns a tool's name without the differences that providers introduce."""


def same_tool(left: str, right: str) -> bool:
    """Returns whether two names mean the same tool, by the rule of Arcade evals."""
    return left == right or normalised_name(left) == normalised_name(right)


def is_meant(expected: ExpectedCall, tool: str) -> bool:
    """Returns whether an expected call means a tool."""
    return expected.is_any or same_tool(expected.tool, tool)


def is_offered(name: str, tools: Iterable[ToolDefinition]) -> bool:
    """Return whether a name is that of one of the tools."""
    return any(same_tool(tool.name, name) for tool in tools)


class ToolRegistry:
    """The tools that were offered, and what their schemas say about arguments that are left out."""

    def __init__(self, tools: Iterable[ToolDefinition]) -> None:
        self._tools: dict[str, ToolDefinition] = {}
        self._by_underscores: dict[str, ToolDefinition] = {}
        for tool in tools:
            self._tools.setdefault(tool.name, tool)
            self._by_underscores.setdefault(tool.name.replace(".", "_"), tool)
        self._defaults: dict[str, dict[str, JsonValue]] = {}

    def resolve(self, name: str) -> ToolDefinition | None:
        """Returns the tool of that name; else the first whose name is equal once dots are written as underscores."""
        return self._tools.get(name) or self._by_underscores.get(name)

    def defaults(self, name: str) -> Mapping[str, JsonValue]:
        """Returns the defaults in the schema of the tool that a name means; none for an unknown tool."""
        known = self._defaults.get(name)
        if known is None:
            tool = self.resolve(name)
            known = self._defaults[name] = _schema_defaults(tool.parameters) if tool else {}
        return known

    def filled(self, name: str, arguments: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        """Returns the arguments of a call with missing ones and nulls replaced by their defaults."""
        defaults = self.defaults(name)
        if not defaults:
            return arguments
        return {**arguments, **{key: value for key, value in defaults.items() if arguments.get(key) is None}}


def _schema_defaults(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        name: definition["default"]
        for name, definition in properties_of(schema).items()
        if isinstance(definition, dict) and "default" in definition
    }
