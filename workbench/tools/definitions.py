"""A tool that is written out in a suite, as models are shown it."""

from __future__ import annotations

from workbench.suite.model import Case, Suite, Tool, written_tools
from workbench.trajectory.messages import ToolDefinition


def definition_of(tool: Tool) -> ToolDefinition:
    """The definition of a tool."""
    return ToolDefinition(tool.name, tool.description, tool.parameters, tool.annotations.model_dump(exclude_none=True))


def definitions_for(suite: Suite, case: Case) -> list[ToolDefinition]:
    """The definitions of the tools written out that a case has."""
    return [definition_of(tool) for tool in written_tools(suite, case)]
