"""What a variant changes of tools: their definitions for the model, and its calls for the servers behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from workbench.suite.model import ToolChange
from workbench.tools.answer import ToolsError
from workbench.trajectory.events import JsonValue, ToolCall, ToolDefinition


def changed_definitions(definitions: Iterable[ToolDefinition], changes: Sequence[ToolChange]) -> list[ToolDefinition]:
    """Return the definitions as a variant has them. Raises ToolsError for a change of a tool or an argument that is
    not there: such a variant would be compared with itself."""
    by_tool = {change.tool: change for change in changes}
    found, there = [], set()
    for definition in definitions:
        there.add(definition.name)
        change = by_tool.get(definition.name)
        if change is None:
            found.append(definition)
        elif not change.hidden:
            found.append(_changed(definition, change))
    unknown = [tool for tool in by_tool if tool not in there]
    if unknown:
        raise ToolsError(f"the variant changes {unknown[0]!r}, but there is no such tool: correct its `changes`")
    return found


def _changed(definition: ToolDefinition, change: ToolChange) -> ToolDefinition:
    parameters = change.parameters if change.parameters is not None else definition.parameters
    if change.arguments:
        parameters = _renamed(parameters, change)
    return replace(
        definition,
        name=change.name or definition.name,
        description=definition.description if change.description is None else change.description,
        parameters=parameters,
    )


def _renamed(parameters: Mapping[str, JsonValue], change: ToolChange) -> dict[str, JsonValue]:
    """Return a schema with renamed parameters, in their order."""
    properties = cast("dict[str, JsonValue]", parameters.get("properties") or {})
    missing = [name for name in change.arguments if name not in properties]
    if missing:
        raise ToolsError(
            f"the variant renames the argument {missing[0]!r} of {change.tool!r}, which has no such argument"
        )
    names = change.arguments
    schema = {**parameters, "properties": {names.get(name, name): value for name, value in properties.items()}}
    required = parameters.get("required")
    if isinstance(required, list):
        schema["required"] = [names.get(name, name) if isinstance(name, str) else name for name in required]
    return schema


def as_defined(call: ToolCall, changes: Iterable[ToolChange]) -> ToolCall:
    """Return a call of a changed tool under the names that its server knows."""
    for change in changes:
        if call.tool == (change.name or change.tool):
            names = {new: old for old, new in change.arguments.items()}
            arguments = {names.get(name, name): value for name, value in call.arguments.items()}
            return replace(call, tool=change.tool, arguments=arguments)
    return call
