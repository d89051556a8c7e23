"""The state of the tools screen (sources of tools, a filter, a cursor) and its lines."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from workbench.analysis.tool_lint import LintFinding, Parameter, ToolName, parameters_of, tokens_of
from workbench.dataclasses import dataclass
from workbench.numerals import count_text, counted, seconds_text
from workbench.show.glyphs import GLYPHS
from workbench.show.lazy_lines import JoinedLines, JsonLines
from workbench.show.spans import (
    EMPTY,
    Line,
    Message,
    Role,
    Span,
    cut_line,
    heading,
    paragraph,
    sign_paragraph,
    spread,
    wrap,
)
from workbench.show.views.server_output import last_said, server_output_lines
from workbench.show.views.tools import (
    MAX_SHOWN_INSTRUCTIONS,
    instructions_note,
    issue_text,
    lint_text,
    listed_text,
    marks_text,
    not_offered,
    source_title,
)
from workbench.show.visible import one_line, visible
from workbench.suite.problems import has_error
from workbench.suite.server_model import Server
from workbench.suite.suite_file import SuiteFile
from workbench.tools.connection import ListingIssue, ServerState, ServerStatus
from workbench.tools.listings import Listing, definition_of
from workbench.trajectory.events import JsonValue, ServerOutput, ToolDefinition
from workbench.trajectory.json_schema import Schema, type_text
from workbench.tui.kit.actions import unless_read_only
from workbench.tui.kit.rows import ListState

RowKind = Literal["suite", "source", "tool", "note"]


ServerToolsKey = tuple[Path, str | None, str | None]
"""The identity of a source of tools: path of the suite, name of the server, id of the case."""


@dataclass(frozen=True)
class ServerTools:
    """A source of tools: a server, a suite, or a case.

    `server` is `None` if the tools are defined in the suite, or in its case with the id `case`. `listed_at` is the time
    of the tool list if it was remembered from an earlier start. `reason` says why a server is down, and `output` is the
    end of its output. `starting_since` is in seconds of the monotonic clock, `None` unless the server is starting."""

    file: SuiteFile
    server: Server | None
    tools: tuple[ToolDefinition, ...] = ()
    state: ServerState = "not started"
    reason: str = ""
    output: ServerOutput | None = None
    listed_at: datetime | None = None
    starting_since: float | None = None
    downloads: bool = False
    """Whether a launcher is downloading the starting server."""
    case: str | None = None
    task_tools: tuple[str, ...] = ()
    """The names of tools that can only be called as MCP tasks. Models are not offered these tools."""
    issues: tuple[ListingIssue, ...] = ()
    """The protocol violations in the server's last list of tools."""
    instructions: str = ""
    """The server's instructions on its tools."""

    @property
    def key(self) -> ServerToolsKey:
        if self.server is None:
            return self.file.path, None, self.case
        return self.file.path, self.server.name, self.case

    @cached_property
    def tokens(self) -> int:
        """The estimated number of tokens of the tools' definitions in a request."""
        return tokens_of(self.tools)

    @property
    def suite_name(self) -> str:
        """The name of the suite, "" if the suite has errors."""
        if self.file.suite is None:
            return ""
        return self.file.suite.name


class ToolRow(NamedTuple):
    """A row: a suite, a source of tools, a tool, or a note on a source without tools."""

    kind: RowKind
    source: ServerTools
    tool: ToolDefinition | None = None

    @property
    def key(self) -> tuple[RowKind, ServerToolsKey, str]:
        """The identity of the row. It stays the same when the state of a server changes."""
        tool = ""
        if self.tool is not None:
            tool = self.tool.name
        return self.kind, self.source.key, tool


class ToolList(ListState[ToolRow]):
    """The sources of tools, and their tools, as rows. `remembered` has the last listings of servers."""

    def __init__(self, files: Sequence[SuiteFile], remembered: Mapping[Path, Mapping[str, Listing]]) -> None:
        super().__init__()
        self._sources: list[ServerTools] = []
        for file in files:
            self._sources += _sources_of(file, remembered.get(file.path, {}))
        self._findings: dict[Path, tuple[LintFinding, ...]] = {}
        self._findings_by_tool: dict[tuple[Path, ToolName | None], list[LintFinding]] = {}
        self._named = len(files) > 1
        self._rebuild()
        self.cursor = next((at for at, row in enumerate(self.rows) if row.kind != "suite"), 0)

    @property
    def sources(self) -> Sequence[ServerTools]:
        return self._sources

    def set_filter(self, text: str) -> None:
        """Show only tools with every word of `text` in name, description, server or suite."""
        super().set_filter(text)
        row = self.selected
        if text and (row is None or row.kind != "tool"):
            self.move_to(next((at for at, row in enumerate(self.rows) if row.kind == "tool"), 0))

    def update_server(self, key: ServerToolsKey, status: ServerStatus, now: datetime) -> bool:
        """Store the state of a server. Return whether its tools, their issues or its instructions changed.

        When a server stops, its tools are kept, with `now` as the time of their listing."""
        keys = [source.key for source in self._sources]
        if key not in keys:
            return False
        at = keys.index(key)
        before = self._sources[at]
        source = replace(before, state=status.state, reason=status.reason, output=status.output, starting_since=None)
        if status.state == "running":
            source = replace(source, tools=status.tools, task_tools=status.task_tools, listed_at=None)
            source = replace(source, issues=status.issues, instructions=status.instructions)
        # The tools listed by a server stay known after the server has stopped.
        elif before.state == "running":
            source = replace(source, listed_at=now)
        # The server may have begun to start before the screen opened.
        if status.state == "starting":
            since = time.monotonic() - status.starting_s
            source = replace(source, starting_since=since, downloads=status.downloads)
        # The filter also searches descriptions, which may have changed.
        self._texts.clear()
        self._sources[at] = source
        self._rebuild()
        same_list = source.tools == before.tools and source.issues == before.issues
        return not same_list or source.instructions != before.instructions

    def update_suite(self, file: SuiteFile) -> None:
        """Replace a changed suite."""
        for at, source in enumerate(self._sources):
            if source.file.path == file.path:
                self._sources[at] = replace(source, file=file)
        self._rebuild()

    def tools_of(self, path: Path) -> tuple[ToolDefinition, ...]:
        """Return all known tools that a suite offers to models. Tools of single cases are left out."""
        tools: list[ToolDefinition] = []
        for source in self._sources:
            if source.file.path == path and source.case is None:
                tools += source.tools
        return tuple(tools)

    def set_findings(self, path: Path, findings: Sequence[LintFinding]) -> None:
        self._findings[path] = tuple(findings)
        self._findings_by_tool = {}
        for source, found in self._findings.items():
            for finding in found:
                # A finding without a tool is about all tools of the suite.
                for name in finding.tools or (None,):
                    self._findings_by_tool.setdefault((source, name), []).append(finding)

    def findings_on(self, row: ToolRow) -> tuple[LintFinding, ...]:
        """Return the findings on a tool. For any other row, return the findings on all tools of the suite together."""
        name: ToolName | None = None
        if row.tool is not None:
            name = ToolName(row.tool.name, row.tool.server, row.source.case)
        return tuple(self._findings_by_tool.get((row.source.file.path, name), ()))

    @property
    def findings(self) -> list[LintFinding]:
        return list(chain.from_iterable(self._findings.values()))

    @property
    def finding_count(self) -> int:
        return sum(map(len, self._findings.values()))

    @property
    def tool_count(self) -> int:
        return sum(len(source.tools) for source in self._sources)

    def _key(self, row: ToolRow) -> tuple[RowKind, ServerToolsKey, str]:
        return row.key

    def _shown_rows(self) -> list[ToolRow]:
        found: list[ToolRow] = []
        last: Path | None = None
        for source in self._sources:
            tools: list[ToolDefinition] = []
            for tool in source.tools:
                if self._fits((source.key, tool.name), partial(_text_of, source, tool)):
                    tools.append(tool)
            if self._words and not tools:
                continue
            if self._named and source.file.path != last:
                found.append(ToolRow("suite", source))
            last = source.file.path
            found.append(ToolRow("source", source))
            found += [ToolRow("tool", source, tool) for tool in tools] or [ToolRow("note", source)]
        return found


def expecting_cases(file: SuiteFile, tool: str) -> tuple[tuple[str, bool], ...]:
    """Return the cases that expect or forbid a tool: the name, and whether the case only forbids the tool."""
    if file.suite is None:
        return ()
    found: list[tuple[str, bool]] = []
    for case in file.suite.cases:
        places = [place for place, call in case.written_calls() if call.tool == tool]
        if places:
            found.append((case.name, all(place[0] == "disallowed" and len(place) == 2 for place in places)))
    return tuple(found)


def _sources_of(file: SuiteFile, remembered: Mapping[str, Listing]) -> list[ServerTools]:
    if file.suite is None:
        return []
    sources: list[ServerTools] = []
    if file.suite.tools:
        sources.append(ServerTools(file, None, tuple(map(definition_of, file.suite.tools))))
    for server in file.suite.servers:
        listing = remembered.get(server.name)
        if listing is None:
            sources.append(ServerTools(file, server))
        else:
            known = ServerTools(file, server, listing.tools, listed_at=listing.listed_at)
            sources.append(replace(known, instructions=listing.instructions))
    for case in file.suite.cases:
        if case.tools:
            sources.append(ServerTools(file, None, tuple(map(definition_of, case.tools)), case=case.id))
    return sources


def _text_of(source: ServerTools, tool: ToolDefinition) -> str:
    return f"{tool.name} {tool.description} {tool.server or ''} {source.suite_name} {source.file.path.stem}"


INDENT = 2
MAX_DESCRIPTION_CHARS = 20_000
"""The maximum number of displayed characters of a description."""

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
"""The keywords of a schema shown beside its type, in this order."""


def row_line(state: ToolList, row: ToolRow, width: int, now: datetime) -> Line:
    source = row.source
    if row.kind == "suite":
        return cut_line((Span(one_line(source.suite_name or source.file.path.name), "heading"),), width)
    if row.kind == "note" and (source.server is None or source.state == "running"):
        return cut_line((Span("    no tools", "muted"),), width)
    if row.kind == "note":
        return cut_line((Span("    unknown until it runs", "muted"),), width)
    if row.tool is None:
        return _source_line(source, width)
    right = [Span(count_text(tokens_of([row.tool])), "muted")]
    findings = state.findings_on(row)
    if findings:
        sign, role = finding_sign(findings)
        right.insert(0, Span(f"{sign} {len(findings)}  ", role))
    return spread((Span("    "), Span(one_line(row.tool.name), "tool")), tuple(right), width)


def finding_sign(findings: Sequence[LintFinding]) -> tuple[str, Role]:
    """Return the sign of the most severe finding."""
    if has_error(findings):
        return GLYPHS.error, "error"
    return GLYPHS.warned, "warned"


def _source_line(source: ServerTools, width: int) -> Line:
    if source.server is None:
        name: Line = (Span(f"{GLYPHS.dot} ", "muted"), Span(source_title(None, source.case), "strong"))
        return spread(name, _size(source), width)
    sign, role = _STATE_SIGNS[source.state]
    state = _state(source)
    if source.state == "down" and (last_line := last_said(source.output)):
        state += f": {last_line}"
    name = (Span(f"{sign} ", role), Span(one_line(source.server.name), "strong"), Span(f"  {state}", role))
    return spread(name, _size(source), width)


def _state(source: ServerTools) -> str:
    if source.starting_since is None:
        return source.state
    state = "downloading" if source.downloads else source.state
    return f"{state} {int(time.monotonic() - source.starting_since)} s"


def _size(source: ServerTools) -> Line:
    marks: Line = EMPTY
    if source.issues:
        marks = (Span(f"{GLYPHS.warned} {len(source.issues)}  ", "warned"),)
    if not source.tools:
        return marks
    size = f"{counted(len(source.tools), 'tool')} {GLYPHS.dot} {count_text(source.tokens)} tok"
    return (*marks, Span(size, "muted"))


def list_message(state: ToolList) -> Message:
    if state.filter:
        return (("No tool fits the filter.", "strong"), ("", "text"), ("Esc shows all tools again.", "muted"))
    return (
        ("No tools here.", "strong"),
        ("", "text"),
        ("A suite names servers ([[servers]]) or defines tools ([[tools]]).", "muted"),
        ("A suite with errors shows none: correct it first.", "muted"),
    )


def detail_lines(state: ToolList, row: ToolRow, width: int, now: datetime) -> Sequence[Line]:
    """Return the details of a row's tool, server or suite."""
    if row.tool is not None:
        # A schema may have thousands of lines, so lines are laid out on demand.
        return JoinedLines([_tool_lines(state, row, row.tool, width, now), _schema_lines(row.tool, width)])
    source = row.source
    lines: list[Line] = []
    if row.kind == "suite" or source.server is None:
        lines += paragraph(str(source.file.path), width, "strong")
        if row.kind != "suite":
            lines += paragraph("Tools defined in the suite: they need no server.", width, "muted")
    else:
        lines += _server_lines(source, source.server, width, now)
    findings = state.findings_on(row)
    if findings:
        lines += [EMPTY, heading("About all tools of the suite"), *_finding_lines(findings, width)]
    return lines


def _server_lines(source: ServerTools, server: Server, width: int, now: datetime) -> list[Line]:
    sign, role = _STATE_SIGNS[source.state]
    lines: list[Line] = [cut_line((Span(" "), Span(one_line(server.name), "strong")), width)]
    lines.append((Span(f" {sign} {_state(source)}", role),))
    if source.reason:
        lines += paragraph(source.reason, width, "error")
    if source.output is not None:
        lines += server_output_lines(source.output, width, 1)
    lines += paragraph(server_address(server), width, "muted")
    if server.cwd is not None:
        lines += paragraph(f"folder: {server.cwd}", width, "muted")
    if server.prefix:
        lines += paragraph(f"prefix {server.prefix}", width, "muted")
    if server.state == "run":
        lines += paragraph("Each run that executes tools has a server of its own; this one only lists.", width, "muted")
    if server.protocol != "auto":
        lines += paragraph(f"protocol {server.protocol}", width, "muted")
    for key, seconds in (("start", server.start_timeout_s), ("call", server.call_timeout_s)):
        if seconds is not None:
            lines += paragraph(f"{key} within {seconds_text(seconds)}", width, "muted")
    if source.task_tools:
        lines += paragraph(not_offered(source.task_tools), width, "warned")
    for issue in source.issues:
        lines += paragraph(issue_text(issue), width, "warned")
    if source.listed_at is not None:
        lines += paragraph(f"Its tools {listed_text(source.listed_at, now)}.", width, "warned")
    elif not source.tools:
        text = _NO_TOOLS.get(source.state, f"Its tools are unknown until it runs{unless_read_only('; r starts it')}.")
        lines += paragraph(text, width, "muted")
    if source.instructions:
        note = instructions_note(source.instructions, sent=server.instructions == "system")
        lines += [EMPTY, heading("Instructions"), *paragraph(note, width, "muted")]
        for row in visible(source.instructions[:MAX_SHOWN_INSTRUCTIONS]).split("\n"):
            lines += paragraph(row, width, "text")
    return lines


def server_address(server: Server) -> str:
    """Return the command, URL or module of a server."""
    if server.command is not None:
        return f"command: {shlex.join(server.command)}"
    if server.url is not None:
        return f"url: {server.url}"
    return f"module: {server.module}:{server.object or 'mcp'}"


def _tool_lines(state: ToolList, row: ToolRow, tool: ToolDefinition, width: int, now: datetime) -> list[Line]:
    server = "in the suite"
    if tool.server is not None:
        server = f"on {one_line(tool.server)}"
    tokens = f"about {count_text(tokens_of([tool]))} tokens"
    lines = [cut_line((Span(" "), Span(one_line(tool.name), "tool"), Span(f"  {server}", "muted")), width)]
    # A server may send a description of any length with any characters.
    description = visible(tool.description[:MAX_DESCRIPTION_CHARS]).strip()
    if not description:
        lines += paragraph("It has no description.", width, "warned")
    else:
        for text in description.split("\n"):
            lines += paragraph(text, width, "text")
    lines += paragraph(f" {GLYPHS.dot} ".join(filter(None, (marks_text(tool), tokens))), width, "muted")
    if row.source.listed_at is not None:
        lines += paragraph(listed_text(row.source.listed_at, now), width, "warned")
    findings = state.findings_on(row)
    if findings:
        lines += [EMPTY, heading("Lint"), *_finding_lines(findings, width)]
    lines += [EMPTY, heading("Parameters"), *parameter_lines(tool.parameters, width)]
    lines += [EMPTY, heading("Expected by")]
    cases = expecting_cases(row.source.file, tool.name)
    if not cases:
        lines.append((Span("   no case", "muted"),))
    for name, forbidden in cases:
        mark = ""
        if forbidden:
            mark = "  forbidden"
        lines.append(cut_line((Span(f"   {one_line(name)}"), Span(mark, "warned")), width))
    return lines


def _schema_lines(tool: ToolDefinition, width: int) -> Sequence[Line]:
    return JoinedLines([[EMPTY, heading("Schema")], JsonLines(dict(tool.parameters), width, INDENT + 1)])


def parameter_lines(schema: Schema, width: int) -> list[Line]:
    """Return the parameters of a schema as a tree: name, type, whether required, constraints and description."""
    parameters = [parameter for parameter in parameters_of(schema) if not parameter.item]
    if not parameters:
        return [(Span("   none", "muted"),)]
    return list(chain.from_iterable(_parameter(parameter, width) for parameter in parameters))


def _parameter(parameter: Parameter, width: int) -> list[Line]:
    indent = INDENT + 1 + 2 * parameter.depth
    room = max(width - indent - 2, 10)
    facts = [one_line(type_text(parameter.schema)) or "of no type"]
    if parameter.required:
        facts.append("required")
    for key in _FACTS:
        if key in parameter.schema:
            facts.append(one_line(f"{key} {_json(parameter.schema[key])}"))
    about = f" {GLYPHS.dot} ".join(facts)
    name = one_line(parameter.name)
    # The name and the facts are wrapped together. Only the part of the name in the first row is coloured.
    first, *rest = wrap(f"{name}  {about}", room)
    lines: list[Line] = [(Span(" " * indent), Span(first[: len(name)], "key"), Span(first[len(name) :], "literal"))]
    lines += [(Span(" " * (indent + 2)), Span(row, "literal")) for row in rest]
    description = visible(parameter.description[:MAX_DESCRIPTION_CHARS].replace("\t", " ").strip())
    if description:
        for text in description.split("\n"):
            lines += [(Span(" " * (indent + 2)), Span(row, "muted")) for row in wrap(text, room)]
    return lines


def _finding_lines(findings: Sequence[LintFinding], width: int) -> list[Line]:
    lines: list[Line] = []
    for finding in findings:
        sign, role = finding_sign([finding])
        lines += sign_paragraph(sign, lint_text(finding), role, width, INDENT + 1)
    return lines


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
