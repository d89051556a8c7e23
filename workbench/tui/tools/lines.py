"""The lines of the screen of tools: a row for each server and tool, and everything about the selected one."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping, Sequence
from datetime import datetime

from workbench.analysis.tool_lint import LintFinding, Parameter, parameters_of, tokens_of
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.lazy_lines import JoinedLines, JsonLines
from workbench.show.spans import EMPTY, Line, Message, Role, Span, cut_line, heading, paragraph, signed, spread, wrap
from workbench.show.views.server_output import last_said, server_output_lines
from workbench.show.views.tools import lint_text, listed_text, marks_text, not_offered, source_title
from workbench.show.visible import one_line, visible
from workbench.suite.model import Server
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.json_schema import Schema, type_text
from workbench.tui.kit.actions import unless_read_only
from workbench.tui.tools.shelves import Shelf, ToolRow, ToolShelves, expecting

INDENT = 2
MAX_DESCRIPTION_CHARS = 20_000
"""The characters of a description that are shown."""

_STATE_SIGNS: Mapping[str, tuple[str, Role]] = {
    "not started": (GLYPHS.never, "muted"),
    "starting": (GLYPHS.running, "running"),
    "running": (GLYPHS.passed, "passed"),
    "down": (GLYPHS.error, "error"),
}

_NO_TOOLS: Mapping[str, str] = {
    "running": "It lists no tools.",
    "starting": "Its tools are known as soon as it has listed them; x stops it.",
}

_FACTS = (
    "default",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "format",
    "pattern",
)
"""Further keywords of a schema, in display order."""


def row_line(state: ToolShelves, row: ToolRow, width: int, now: datetime) -> Line:
    """Return one row of the list."""
    shelf = row.shelf
    if row.kind == "suite":
        name = shelf.file.suite.name if shelf.file.suite is not None else shelf.file.path.name
        return cut_line((Span(one_line(name), "heading"),), width)
    if row.kind == "note":
        text = "no tools" if shelf.server is None or shelf.state == "running" else "unknown until it runs"
        return cut_line((Span(f"    {text}", "muted"),), width)
    if row.tool is None:
        return _shelf_line(shelf, width)
    findings = state.findings_on(row)
    sign, role = finding_sign(findings)
    mark: Line = (Span(f"{sign} {len(findings)}  ", role),)
    size: Line = (Span(f"{tokens_of([row.tool]):,}", "muted"),)
    return spread((Span("    "), Span(one_line(row.tool.name), "tool")), (*(mark if findings else EMPTY), *size), width)


def finding_sign(findings: Sequence[LintFinding]) -> tuple[str, Role]:
    """Return the sign of the worst finding."""
    bad = any(finding.severity == "error" for finding in findings)
    return (GLYPHS.error, "error") if bad else (GLYPHS.warned, "warned")


def _shelf_line(shelf: Shelf, width: int) -> Line:
    if shelf.server is None:
        name: Line = (Span(f"{GLYPHS.dot} ", "muted"), Span(source_title(None, shelf.case), "strong"))
        return spread(name, _size(shelf), width)
    sign, role = _STATE_SIGNS[shelf.state]
    said = last_said(shelf.output) if shelf.state == "down" else ""
    state = f"{_state(shelf)}{f': {said}' if said else ''}"
    name = (Span(f"{sign} ", role), Span(one_line(shelf.server.name), "strong"), Span(f"  {state}", role))
    return spread(name, _size(shelf), width)


def _state(shelf: Shelf) -> str:
    if shelf.starting_since is None:
        return shelf.state
    return f"{shelf.state} {int(time.monotonic() - shelf.starting_since)} s"


def _size(shelf: Shelf) -> Line:
    if not shelf.tools:
        return EMPTY
    return (Span(f"{counted(len(shelf.tools), 'tool')} {GLYPHS.dot} {shelf.tokens:,} tok", "muted"),)


def list_message(state: ToolShelves) -> Message:
    """Return the message of an empty list."""
    if state.filter:
        return (("No tool fits the filter.", "strong"), ("", "text"), ("Esc shows all tools again.", "muted"))
    return (
        ("No tools here.", "strong"),
        ("", "text"),
        ("A suite names servers ([[servers]]), or writes tools out ([[tools]]).", "muted"),
        ("A suite with errors shows none: correct it first.", "muted"),
    )


def detail_lines(state: ToolShelves, row: ToolRow, width: int, now: datetime) -> Sequence[Line]:
    """Return everything about the tool, server or suite of a row."""
    if row.tool is not None:
        return JoinedLines([_tool_lines(state, row, row.tool, width, now), _schema_lines(row.tool, width)])
    shelf = row.shelf
    lines: list[Line] = []
    if row.kind == "suite" or shelf.server is None:
        lines += paragraph(str(shelf.file.path), width, "strong")
        if row.kind != "suite":
            lines += paragraph("Tools written out in the suite: nothing is started for them.", width, "muted")
    else:
        lines += _server_lines(shelf, shelf.server, width, now)
    findings = state.findings_on(row)
    if findings:
        lines += [EMPTY, heading("About all tools of the suite"), *_finding_lines(findings, width)]
    return lines


def _server_lines(shelf: Shelf, server: Server, width: int, now: datetime) -> list[Line]:
    sign, role = _STATE_SIGNS[shelf.state]
    lines: list[Line] = [cut_line((Span(" "), Span(one_line(server.name), "strong")), width)]
    lines.append((Span(f" {sign} {_state(shelf)}", role),))
    if shelf.reason:
        lines += paragraph(shelf.reason, width, "error")
    if shelf.output is not None:
        lines += server_output_lines(shelf.output, width, 1)
    lines += paragraph(reached(server), width, "muted")
    if server.prefix:
        lines += paragraph(f"prefix {server.prefix}", width, "muted")
    if shelf.task_tools:
        lines += paragraph(not_offered(shelf.task_tools), width, "warned")
    if shelf.listed_at is not None:
        lines += paragraph(f"Its tools {listed_text(shelf.listed_at, now)}.", width, "warned")
    elif not shelf.tools:
        text = _NO_TOOLS.get(shelf.state, f"Its tools are unknown until it runs{unless_read_only('; r starts it')}.")
        lines += paragraph(text, width, "muted")
    return lines


def reached(server: Server) -> str:
    """Describe how a server is reached, in the suite's terms."""
    if server.command is not None:
        return f"command: {shlex.join(server.command)}"
    if server.url is not None:
        return f"url: {server.url}"
    return f"module: {server.module}:{server.object or 'mcp'}"


def _tool_lines(state: ToolShelves, row: ToolRow, tool: ToolDefinition, width: int, now: datetime) -> list[Line]:
    server = "written out" if tool.server is None else f"on {one_line(tool.server)}"
    tokens = f"about {tokens_of([tool]):,} tokens"
    lines = [cut_line((Span(" "), Span(one_line(tool.name), "tool"), Span(f"  {server}", "muted")), width)]
    description = visible(tool.description[:MAX_DESCRIPTION_CHARS]).strip()
    for text in description.split("\n") if description else ["It has no description."]:
        lines += paragraph(text, width, "text" if description else "warned")
    lines += paragraph(f" {GLYPHS.dot} ".join(filter(None, (marks_text(tool), tokens))), width, "muted")
    if row.shelf.listed_at is not None:
        lines += paragraph(listed_text(row.shelf.listed_at, now), width, "warned")
    findings = state.findings_on(row)
    if findings:
        lines += [EMPTY, heading("Lint"), *_finding_lines(findings, width)]
    lines += [EMPTY, heading("Parameters"), *parameter_lines(tool.parameters, width)]
    cases = expecting(row.shelf.file, tool.name)
    lines += [EMPTY, heading("Expected by")]
    for name, forbidden in cases:
        lines.append(
            cut_line((Span(f"   {one_line(name)}"), Span("  forbidden" if forbidden else "", "warned")), width)
        )
    return [*lines, *([] if cases else [(Span("   no case", "muted"),)])]


def _schema_lines(tool: ToolDefinition, width: int) -> Sequence[Line]:
    return JoinedLines([[EMPTY, heading("Schema")], JsonLines(dict(tool.parameters), width, INDENT + 1)])


def parameter_lines(schema: Schema, width: int) -> list[Line]:
    """Return the parameters as a tree: name, type, whether required, constraints and description."""
    parameters = [parameter for parameter in parameters_of(schema) if not parameter.item]
    if not parameters:
        return [(Span("   none", "muted"),)]
    return [line for parameter in parameters for line in _parameter(parameter, width)]


def _parameter(parameter: Parameter, width: int) -> list[Line]:
    indent = INDENT + 1 + 2 * parameter.depth
    room = max(width - indent - 2, 10)
    message = one_line(type_text(parameter.schema)) or "of no type"
    facts = [one_line(f"{key} {_json(parameter.schema[key])}") for key in _FACTS if key in parameter.schema]
    about = f" {GLYPHS.dot} ".join((message, *(["required"] if parameter.required else []), *facts))
    name = one_line(parameter.name)
    first, *rest = wrap(f"{name}  {about}", room)
    lines: list[Line] = [(Span(" " * indent), Span(first[: len(name)], "key"), Span(first[len(name) :], "literal"))]
    lines += [(Span(" " * (indent + 2)), Span(row, "literal")) for row in rest]
    description = visible(parameter.description[:MAX_DESCRIPTION_CHARS].replace("\t", " ").strip())
    rows = [row for text in description.split("\n") for row in wrap(text, room)] if description else []
    return [*lines, *((Span(" " * (indent + 2)), Span(row, "muted")) for row in rows)]


def _finding_lines(findings: Sequence[LintFinding], width: int) -> list[Line]:
    lines: list[Line] = []
    for finding in findings:
        sign, role = finding_sign([finding])
        lines += signed(sign, lint_text(finding), role, width, INDENT + 1)
    return lines


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
