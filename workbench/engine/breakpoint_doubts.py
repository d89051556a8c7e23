"""Warns of breakpoints that may never hold: for an unknown tool or argument, or with a misspelt check, which is a plain
value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workbench.checks.check import CHECK_CLASSES
from workbench.engine.breakpoints import Breakpoint
from workbench.suite.problems import did_you_mean, quoted
from workbench.trajectory.json_schema import type_names
from workbench.trajectory.messages import JsonValue, ToolDefinition


def doubt_about(point: Breakpoint, tools: Iterable[ToolDefinition]) -> str | None:
    """Returns why a breakpoint may never hold, as far as the `tools` of the open suites are known; `None` where nothing
    suggests that. Names are not doubted while no tool is known."""
    if point.tool is None:
        return None
    known = tuple(tools)
    mine = [tool for tool in known if tool.name == point.tool]
    if known and not mine:
        doubt = f"no open suite is known to have a tool {quoted(point.tool)}"
        return _with(doubt, did_you_mean(point.tool, [tool.name for tool in known]))
    for name, check in (point.when or {}).items():
        arguments = [_arguments(tool) for tool in mine]
        if arguments and all(given is not None and name not in given for given in arguments):
            names = sorted({each for given in arguments for each in given or ()})
            way_out = did_you_mean(name, names) or (f"it has {', '.join(names)}" if names else "it takes none")
            return _with(f"{quoted(point.tool)} has no argument {quoted(name)}", way_out)
        if not any(_is_object((given or {}).get(name)) for given in arguments):
            misspelt = _misspelt(check.bare_value)
            if misspelt is not None:
                return misspelt
    return None


def _with(doubt: str, way_out: str) -> str:
    return f"{doubt} ({way_out})" if way_out else doubt


def _arguments(tool: ToolDefinition) -> Mapping[str, JsonValue] | None:
    """Returns the schemas of a tool's arguments by name; `None` when other arguments are allowed, or none is
    described."""
    schema = tool.parameters
    properties = schema.get("properties")
    open_to_others = schema.get("additionalProperties") not in (None, False)
    elsewhere = {"patternProperties", "allOf", "anyOf", "oneOf", "$ref"} & schema.keys()
    return properties if isinstance(properties, Mapping) and not open_to_others and not elsewhere else None


def _is_object(schema: JsonValue) -> bool:
    """Returns whether an argument may be an object, so that a table in a condition is compared with it."""
    return isinstance(schema, Mapping) and "object" in (type_names(schema) or ())


def _misspelt(value: JsonValue) -> str | None:
    for key in value if isinstance(value, Mapping) else ():
        hint = did_you_mean(key, CHECK_CLASSES)
        if hint:
            return f"{quoted(key)} is not a check, so the table is compared as a value ({hint})"
    return None
