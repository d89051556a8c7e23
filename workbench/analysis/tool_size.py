"""How large the definition of a tool is that a model is sent with every request."""

from __future__ import annotations

import math
from collections.abc import Iterable

from workbench.trajectory.json_text import json_text
from workbench.trajectory.messages import ToolDefinition

CHARACTERS_PER_TOKEN = 4
"""A rule of thumb; every tokenizer counts differently."""


def definition_size(tool: ToolDefinition) -> int:
    """Characters of what a model is sent for a tool, as compact JSON."""
    return len(json_text({"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}))


def tokens_in(characters: int) -> int:
    """About how many tokens so many characters are."""
    return math.ceil(characters / CHARACTERS_PER_TOKEN)


def tokens_of(tools: Iterable[ToolDefinition]) -> int:
    """About how many tokens the definitions of tools take together."""
    return tokens_in(sum(map(definition_size, tools)))
