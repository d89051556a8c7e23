"""A tool that is written out in a suite, as models are shown it."""

from __future__ import annotations

from workbench.suite.model import Tool
from workbench.trajectory.messages import ToolDefinition


def definition_of(tool: Tool) -> ToolDefinition:
    """The definition of a tool."""
    return ToolDefinition(tool.name, tool.description, tool.parameters, tool.annotations.model_dump(exclude_none=True))
