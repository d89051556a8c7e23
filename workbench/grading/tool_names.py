"""Which tool a name means: equal names, names as providers bend them, and the defaults of a tool's arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from workbench.suite.model import ExpectedCall
from workbench.suite.tool_names import comparable_name
from workbench.trajectory.messages import JsonValue, ToolDefinition

normalised_name = lru_cache(maxsize=1024)(comparable_name)
"""A tool's name without the differences that providers introduce."""


def same_tool(left: str, right: str) -> bool:
    """Whether two names mean the same tool (Arcade evals' rule)."""
    return left == right or normalised_name(left) == normalised_name(right)


def is_meant(expected: ExpectedCall, tool: str) -> bool:
    """Whether a tool is one that an expected call means."""
    return expected.is_any or same_tool(expected.tool, tool)


class ToolRegistry:
    """The tools that were on offer, and what their schemas say about arguments that are left out."""

    def __init__(self, tools: Iterable[ToolDefinition]) -> None:
        self._tools: dict[str, ToolDefinition] = {}
        self._by_underscores: dict[str, ToolDefinition] = {}
        for tool in tools:
            self._tools.setdefault(tool.name, tool)
            self._by_underscores.setdefault(tool.name.replace(".", "_"), tool)
        self._defaults: dict[str, dict[str, JsonValue]] = {}

    def resolve(self, name: str) -> ToolDefinition | None:
        """The tool of that name; else the first whose dots, written as underscores, make that name."""
        return self._tools.get(name) or self._by_underscores.get(name)

    def defaults(self, name: str) -> Mapping[str, JsonValue]:
        """The defaults in the schema of the tool that a name means; none for an unknown tool."""
        known = self._defaults.get(name)
        if known is None:
            tool = self.resolve(name)
            known = self._defaults[name] = _schema_defaults(tool.parameters) if tool else {}
        return known

    def filled(self, name: str, arguments: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        """The arguments of a call, those that are missing or null replaced by their defaults."""
        defaults = self.defaults(name)
        if not defaults:
            return arguments
        return {**arguments, **{key: value for key, value in defaults.items() if arguments.get(key) is None}}


def _schema_defaults(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {
        name: definition["default"]
        for name, definition in properties.items()
        if isinstance(definition, dict) and "default" in definition
    }
