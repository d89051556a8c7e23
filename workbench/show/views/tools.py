"""The tools of suites as text and as JSON: the origin, description and size of each tool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from workbench.analysis.tool_lint import LintFinding, ToolName, definition_size, tokens_in
from workbench.dataclasses import dataclass
from workbench.numerals import count_text, counted
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Role
from workbench.show.text import Paint
from workbench.show.views.server_output import output_lines
from workbench.show.views.values import hints_in_words
from workbench.show.visible import after, one_line, shortened, visible
from workbench.show.when import ago, local_time
from workbench.tools.connection import ListingIssue
from workbench.trajectory.events import ServerOutput, ToolDefinition
from workbench.trajectory.json_schema import properties_of, required_names, type_text
from workbench.trajectory.system_prompt import too_long

VERSION = 1

MAX_SHOWN_INSTRUCTIONS = 20_000
"""Most characters of a server's instructions that are shown."""


@dataclass(frozen=True)
class ToolSource:
    """The tools of one server or, if `server` is `None`, the tools that a suite or the case `case` defines.

    If the server did not list its tools, `error` says why, and `output` has the end of its standard error. `tools` are
    then from the list that was stored at the time `listed_at`, if there is such a list. `task_tools` names tools that
    models are not offered because they can be called only as MCP tasks. `issues` are violations of the protocol in the
    server's list. `instructions` is the server's text on how to use its tools, and `instructions_are_sent` says whether
    the system prompt has it. `notices` are about the server's start."""

    server: str | None
    tools: tuple[ToolDefinition, ...] = ()
    error: str | None = None
    listed_at: datetime | None = None
    case: str | None = None
    output: ServerOutput | None = None
    task_tools: tuple[str, ...] = ()
    issues: tuple[ListingIssue, ...] = ()
    instructions: str = ""
    instructions_are_sent: bool = True
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class SuiteTools:
    """All tools of a suite, grouped by source. `findings` are from lint, or `None` if lint did not run."""

    path: str
    name: str
    sources: tuple[ToolSource, ...]
    findings: tuple[LintFinding, ...] | None = None


def tool_lines(suites: Sequence[SuiteTools], width: int, paint: Paint) -> Iterator[str]:
    """Yield the tools of suites as lines of at most `width` cells. Errors are never cut."""
    for number, suite in enumerate(suites):
        if number:
            yield ""
        yield f"{paint(one_line(suite.name), 'strong')}  {paint(one_line(suite.path), 'muted')}"
        if not suite.sources:
            yield "  no tools"
        for source in suite.sources:
            yield from _source(source, width, paint)


def tools_json(suites: Sequence[SuiteTools]) -> dict[str, Any]:
    """Return the tools of suites as JSON, with the findings if lint ran."""
    return {"version": VERSION, "suites": [_suite_json(suite) for suite in suites]}


def finding_lines(suites: Sequence[SuiteTools], paint: Paint) -> Iterator[str]:
    """Yield the findings of lint as text, tool by tool. No line is cut."""
    for number, suite in enumerate(suites):
        if number:
            yield ""
        yield f"{paint(one_line(suite.name), 'strong')}  {paint(one_line(suite.path), 'muted')}"
        for source in suite.sources:
            if source.error is not None:
                failed = f"  server {one_line(source.server or '')}: {paint(one_line(source.error), 'failed')}"
                if source.listed_at:
                    failed += f"; {listed_text(source.listed_at)}"
                yield failed
                if source.output is not None:
                    yield from output_lines(source.output, paint, 4)
        findings = suite.findings or ()
        last = None
        for finding in findings:
            about = ", ".join(map(_origin, finding.tools)) or "all tools"
            # Findings are sorted by tool, so each tool is named once above its findings.
            if about != last:
                yield f"  {one_line(about)}"
            last = about
            role: Role = "warned"
            if finding.severity == "error":
                role = "failed"
            yield f"    {paint(finding.severity, role)}: {lint_text(finding)}"
        # Lint has only two severities, so every other finding is a warning.
        errors = sum(finding.severity == "error" for finding in findings)
        tools = counted(sum(len(source.tools) for source in suite.sources), "tool")
        yield f"  {tools}: {counted(errors, 'error')}, {counted(len(findings) - errors, 'warning')}"


def _origin(tool: ToolName) -> str:
    origin = tool.server
    if tool.case is not None:
        origin = f"case {tool.case}"
    if origin is None:
        return tool.name
    if not tool.name:
        return f"server {origin}"
    return f"{origin}: {tool.name}"


def _suite_json(suite: SuiteTools) -> dict[str, Any]:
    listed: dict[str, Any] = {"path": suite.path, "name": suite.name, "sources": list(map(_source_json, suite.sources))}
    if suite.findings is not None:
        listed["findings"] = list(map(asdict, suite.findings))
    return listed


def lint_text(finding: LintFinding) -> str:
    """Return a lint finding as text, with its place and hint."""
    return one_line(f"{after('', finding.where, ': ')}{finding.message} ({finding.hint})")


def marks_text(tool: ToolDefinition) -> str:
    """Return in words what a tool's annotations say about its effects, such as that it only reads.

    Return "" for a tool that a suite defines without annotations."""
    hints = hints_in_words(tool.annotations)
    if not hints and tool.server is not None:
        return "not marked, so it may do anything"
    return hints


def source_title(server: str | None, case: str | None) -> str:
    """Return a title that says where tools come from: a server, the suite or one of its cases."""
    if server is not None:
        return f"server {one_line(server)}"
    if case is None:
        return "in the suite"
    return f"in case {one_line(case)}"


def listed_text(at: datetime, now: datetime | None = None) -> str:
    """Return the time at which a stored list of tools was fetched. With `now`, add the age of the list."""
    text = f"as listed on {local_time(at.isoformat())}"
    if now is None:
        return text
    return f"{text}, {ago(at.isoformat(), now) or 'long ago'}"


def _source(source: ToolSource, width: int, paint: Paint) -> Iterator[str]:
    title = source_title(source.server, source.case)
    if source.error is not None:
        yield f"  {title}: {paint(one_line(source.error), 'failed')}"
        if source.output is not None:
            yield from output_lines(source.output, paint, 4)
        if source.listed_at is None:
            return
        title = listed_text(source.listed_at)
    head = f"  {title}: {counted(len(source.tools), 'tool')}"
    if size := sum(map(definition_size, source.tools)):
        head += paint(f", {_size(size)}", "muted")
    yield head
    if source.instructions:
        note = instructions_note(source.instructions, sent=source.instructions_are_sent)
        yield paint(f"    {note}", "muted")
        for row in visible(source.instructions[:MAX_SHOWN_INSTRUCTIONS]).split("\n"):
            yield shortened(f"        {row}", width).rstrip()
    for tool in source.tools:
        about = f" {GLYPHS.dot} ".join(filter(None, [marks_text(tool), _size(definition_size(tool))]))
        yield shortened(f"    {one_line(tool.name)}({_parameters(tool)})", width)
        yield paint(shortened(f"        {about}", width), "muted")
        if tool.description:
            yield shortened(f"        {one_line(tool.description.strip())}", width)
    if source.task_tools:
        yield f"    {not_offered(source.task_tools)}"
    for issue in source.issues:
        yield f"    {paint(issue_text(issue), 'warned')}"


def issue_text(issue: ListingIssue) -> str:
    """Return a protocol violation in a server's list of tools, with its consequence."""
    return one_line(f"{issue.outcome}: {issue}")


def instructions_note(text: str, *, sent: bool) -> str:
    """Return the note that stands before the instructions of a server."""
    if not sent:
        return 'instructions, not sent to models (instructions = "off"):'
    if (excess := too_long(text)) is not None:
        return f"instructions, sent in the system prompt; the server {excess}:"
    return "instructions, sent in the system prompt:"


def not_offered(task_tools: Sequence[str]) -> str:
    """Return a note that names the tools of a server that are not offered to models, with the reason."""
    return f"not offered to models, callable only as MCP tasks: {', '.join(map(one_line, task_tools))}"


def _size(characters: int) -> str:
    return f"{count_text(characters)} characters ≈ {count_text(tokens_in(characters))} tokens"


def _parameters(tool: ToolDefinition) -> str:
    """Return the parameters of a tool with types, such as `city: string, days?: integer`. `?` marks an optional one."""
    must = required_names(tool.parameters)
    parts: list[str] = []
    for name, schema in properties_of(tool.parameters).items():
        mark = "?"
        if name in must:
            mark = ""
        parts.append(one_line(name) + mark + after(": ", one_line(type_text(schema) or "")))
    return ", ".join(parts)


def _source_json(source: ToolSource) -> dict[str, Any]:
    return {
        "server": source.server,
        "case": source.case,
        "error": source.error,
        "server_output": source.output and asdict(source.output),
        "listed_at": source.listed_at and source.listed_at.isoformat(),
        "tools": list(map(_tool_json, source.tools)),
        "task_tools": list(source.task_tools),
        "issues": list(map(asdict, source.issues)),
        "instructions": source.instructions or None,
        "instructions_are_sent": bool(source.instructions) and source.instructions_are_sent,
    }


def _tool_json(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "annotations": dict(tool.annotations),
        "parameters": dict(tool.parameters),
        "characters": definition_size(tool),
        "tokens": tokens_in(definition_size(tool)),
    }
