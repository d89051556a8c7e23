"""The tools of suites as text and as JSON: where each comes from, what it is said to do, how large it is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workbench.reports.paint import Paint
from workbench.reports.values import counted, shown_json
from workbench.reports.visible import one_line, shortened
from workbench.trajectory.json_text import json_text
from workbench.trajectory.messages import JsonValue, ToolDefinition

CHARACTERS_PER_TOKEN = 4
"""A rule of thumb; every tokenizer counts differently."""

VERSION = 1


@dataclass(frozen=True)
class ToolSource:
    """The tools of one server of a suite, or (`server` is `None`) those written out in it. `error` says why the server
    could not be asked; its tools are then those that it listed at `listed_at`, if that is known."""

    server: str | None
    tools: tuple[ToolDefinition, ...] = ()
    error: str | None = None
    listed_at: datetime | None = None


@dataclass(frozen=True)
class SuiteTools:
    """All tools of a suite."""

    path: str
    name: str
    sources: tuple[ToolSource, ...]


def tool_lines(suites: Sequence[SuiteTools], width: int, paint: Paint) -> Iterator[str]:
    """The listing as text, at most `width` cells wide; errors are never cut."""
    for number, suite in enumerate(suites):
        if number:
            yield ""
        yield f"{paint(one_line(suite.name), 'strong')}  {paint(one_line(suite.path), 'quiet')}"
        if not suite.sources:
            yield "  no tools"
        for source in suite.sources:
            yield from _source(source, width, paint)


def tools_json(suites: Sequence[SuiteTools]) -> dict[str, Any]:
    """The listing as JSON."""
    return {
        "version": VERSION,
        "suites": [
            {"path": suite.path, "name": suite.name, "sources": [_source_json(source) for source in suite.sources]}
            for suite in suites
        ],
    }


def definition_size(tool: ToolDefinition) -> int:
    """Characters of what a model is sent for a tool, as compact JSON."""
    return len(json_text({"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}))


def hint(tool: ToolDefinition) -> str:
    """What a server says that its tool does to the world."""
    annotations = tool.annotations
    if annotations.get("readOnlyHint") is True:
        return "read-only"
    if annotations.get("destructiveHint") is True:
        return "destructive"
    if annotations.get("destructiveHint") is False:
        return "only adds"
    return "not read-only" if "readOnlyHint" in annotations else ""


def _source(source: ToolSource, width: int, paint: Paint) -> Iterator[str]:
    title = "written out" if source.server is None else f"server {one_line(source.server)}"
    if source.error is not None:
        yield f"  {title}: {paint(one_line(source.error), 'bad')}"
        if source.listed_at is None:
            return
        title = f"as listed on {source.listed_at:%Y-%m-%d %H:%M}"
    size = sum(map(definition_size, source.tools))
    yield f"  {title}: {counted(len(source.tools), 'tool')}{paint(f', {_size(size)}', 'quiet') if size else ''}"
    for tool in source.tools:
        said = hint(tool) or ("unmarked" if source.server is not None else "")
        about = ", ".join(filter(None, [said, _size(definition_size(tool))]))
        yield shortened(f"    {one_line(tool.name)}({_parameters(tool)})", width)
        yield paint(shortened(f"        {about}", width), "quiet")
        if tool.description:
            yield shortened(f"        {one_line(tool.description.strip())}", width)


def _size(characters: int) -> str:
    return f"{characters:,} characters ≈ {math.ceil(characters / CHARACTERS_PER_TOKEN):,} tokens"


def _parameters(tool: ToolDefinition) -> str:
    """`city: string, days?: integer`: names with their types, a question mark where one may be left out."""
    properties, required = tool.parameters.get("properties"), tool.parameters.get("required")
    if not isinstance(properties, dict):
        return ""
    must = required if isinstance(required, list) else []
    return ", ".join(
        f"{one_line(name)}{'' if name in must else '?'}{_type(schema)}" for name, schema in properties.items()
    )


def _type(schema: JsonValue) -> str:
    if not isinstance(schema, Mapping):
        return ""
    if isinstance(choices := schema.get("enum"), list):
        return ": " + "|".join(map(shown_json, choices))
    if isinstance(named := schema.get("type"), str | list):
        return ": " + one_line("|".join(map(str, named)) if isinstance(named, list) else named)
    for key in ("anyOf", "oneOf"):
        if isinstance(options := schema.get(key), list):
            types = [_type(option).removeprefix(": ") for option in options]
            return ": " + "|".join(filter(None, types)) if any(types) else ""
    return ""


def _source_json(source: ToolSource) -> dict[str, Any]:
    return {
        "server": source.server,
        "error": source.error,
        "listed_at": source.listed_at.isoformat() if source.listed_at is not None else None,
        "tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "annotations": dict(tool.annotations),
                "parameters": dict(tool.parameters),
                "characters": definition_size(tool),
                "tokens": math.ceil(definition_size(tool) / CHARACTERS_PER_TOKEN),
            }
            for tool in source.tools
        ],
    }
