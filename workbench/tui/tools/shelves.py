"""The state of the screen of tools: servers, their tools, a filter and a cursor."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, NamedTuple

from workbench.analysis.tool_lint import LintFinding, ToolName, tokens_of
from workbench.dataclasses import dataclass
from workbench.suite.model import Server
from workbench.suite.suite_file import SuiteFile
from workbench.tools.connection import ServerState, ServerStatus
from workbench.tools.listings import Listing, definition_of
from workbench.trajectory.events import ServerOutput, ToolDefinition
from workbench.tui.kit.rows import ListState

RowKind = Literal["suite", "shelf", "tool", "note"]


ShelfKey = tuple[Path, str | None, str | None]
"""Identifies a shelf: the suite, the server's name, and the case's id."""


@dataclass(frozen=True)
class Shelf:
    """The tools of one server of a suite or, if `server` is `None`, those defined in the suite or in the case with the
    id `case`. `listed_at` is set for tools from an earlier listing. `reason` is why the server is down, `output` is the
    end of what it wrote, and `starting_since`, on the monotonic clock, is set while it starts."""

    file: SuiteFile
    server: Server | None
    tools: tuple[ToolDefinition, ...] = ()
    state: ServerState = "not started"
    reason: str = ""
    output: ServerOutput | None = None
    listed_at: datetime | None = None
    starting_since: float | None = None
    case: str | None = None
    task_tools: tuple[str, ...] = ()
    """Tools that models are not offered, because only tasks of MCP may call them."""

    @property
    def key(self) -> ShelfKey:
        return self.file.path, self.server.name if self.server is not None else None, self.case

    @cached_property
    def tokens(self) -> int:
        """The estimated number of tokens of its tools."""
        return tokens_of(self.tools)


class ToolRow(NamedTuple):
    """One row: a suite, a shelf, a tool, or a note that there are no tools."""

    kind: RowKind
    shelf: Shelf
    tool: ToolDefinition | None = None

    @property
    def key(self) -> tuple[RowKind, ShelfKey, str]:
        """Identifies the row across changes."""
        return self.kind, self.shelf.key, self.tool.name if self.tool is not None else ""


class ToolShelves(ListState[ToolRow]):
    """All shelves of some suites as rows."""

    def __init__(self, files: Sequence[SuiteFile], remembered: Mapping[Path, Mapping[str, Listing]]) -> None:
        super().__init__()
        self._shelves = [shelf for file in files for shelf in _shelves_of(file, remembered.get(file.path, {}))]
        self._findings: dict[Path, tuple[LintFinding, ...]] = {}
        self._about: dict[tuple[Path, ToolName | None], list[LintFinding]] = {}
        self._named = len(files) > 1
        self._rebuild()
        self.cursor = next((at for at, row in enumerate(self.rows) if row.kind != "suite"), 0)

    @property
    def shelves(self) -> Sequence[Shelf]:
        return self._shelves

    def set_filter(self, text: str) -> None:
        """Show only tools with every word of `text` in their name, description, server or suite."""
        super().set_filter(text)
        row = self.selected
        if text and (row is None or row.kind != "tool"):
            self.move_to(next((at for at, row in enumerate(self.rows) if row.kind == "tool"), 0))

    def take(self, key: ShelfKey, status: ServerStatus, now: datetime) -> bool:
        """Take over the state of a server. Returns whether its tools changed. When it stops running, its tools count as
        listed at `now`."""
        at = next((at for at, shelf in enumerate(self._shelves) if shelf.key == key), None)
        if at is None:
            return False
        shelf = self._shelves[at]
        tools, listed_at = shelf.tools, shelf.listed_at
        if status.state == "running":
            tools, listed_at = status.tools, None
        elif shelf.state == "running":
            listed_at = now
        self._texts.clear()
        self._shelves[at] = replace(
            shelf,
            state=status.state,
            reason=status.reason,
            output=status.output,
            tools=tools,
            task_tools=status.task_tools if status.state == "running" else shelf.task_tools,
            listed_at=listed_at,
            starting_since=time.monotonic() - status.starting_s if status.state == "starting" else None,
        )
        self._rebuild()
        return tools != shelf.tools

    def take_file(self, file: SuiteFile) -> None:
        """Take over a changed suite."""
        self._shelves = [
            replace(shelf, file=file) if shelf.file.path == file.path else shelf for shelf in self._shelves
        ]
        self._rebuild()

    def tools_of(self, path: Path) -> tuple[ToolDefinition, ...]:
        """Return all known tools of a suite that are offered together. Those of single cases are excluded."""
        shelves = [shelf for shelf in self._shelves if shelf.file.path == path and shelf.case is None]
        return tuple(tool for shelf in shelves for tool in shelf.tools)

    def set_findings(self, path: Path, findings: Sequence[LintFinding]) -> None:
        """Set the lint findings of a suite."""
        self._findings[path] = tuple(findings)
        self._about = {}
        for of, found in self._findings.items():
            for finding in found:
                for name in finding.tools or (None,):
                    self._about.setdefault((of, name), []).append(finding)

    def findings_on(self, row: ToolRow) -> tuple[LintFinding, ...]:
        """Return the findings about a tool or, for a suite or shelf, those about all tools of its suite together."""
        name = ToolName(row.tool.name, row.tool.server, row.shelf.case) if row.tool is not None else None
        return tuple(self._about.get((row.shelf.file.path, name), ()))

    @property
    def findings(self) -> list[LintFinding]:
        return [finding for found in self._findings.values() for finding in found]

    @property
    def finding_count(self) -> int:
        return sum(map(len, self._findings.values()))

    @property
    def tool_count(self) -> int:
        return sum(len(shelf.tools) for shelf in self._shelves)

    def _key(self, row: ToolRow) -> tuple[RowKind, ShelfKey, str]:
        return row.key

    def _found(self) -> list[ToolRow]:
        found: list[ToolRow] = []
        last: Path | None = None
        for shelf in self._shelves:
            tools = [tool for tool in shelf.tools if self._fits((shelf.key, tool.name), partial(_text_of, shelf, tool))]
            if self._words and not tools:
                continue
            if self._named and shelf.file.path != last:
                found.append(ToolRow("suite", shelf))
            last = shelf.file.path
            found.append(ToolRow("shelf", shelf))
            found += [ToolRow("tool", shelf, tool) for tool in tools] or [ToolRow("note", shelf)]
        return found


def expecting(file: SuiteFile, tool: str) -> tuple[tuple[str, bool], ...]:
    """Return the names of the cases that expect a tool, each with whether the tool is only forbidden there."""
    found: list[tuple[str, bool]] = []
    for case in file.suite.cases if file.suite is not None else ():
        places = [place[0] for place, call in case.written_calls() if call.tool == tool]
        if places:
            found.append((case.name, all(place == "disallowed" for place in places)))
    return tuple(found)


def _shelves_of(file: SuiteFile, remembered: Mapping[str, Listing]) -> list[Shelf]:
    if file.suite is None:
        return []
    shelves = [Shelf(file, None, tuple(map(definition_of, file.suite.tools)))] if file.suite.tools else []
    for server in file.suite.servers:
        listing = remembered.get(server.name)
        if listing is None:
            shelves.append(Shelf(file, server))
        else:
            shelves.append(Shelf(file, server, listing.tools, listed_at=listing.listed_at))
    for case in file.suite.cases:
        if case.tools:
            shelves.append(Shelf(file, None, tuple(map(definition_of, case.tools)), case=case.id))
    return shelves


def _text_of(shelf: Shelf, tool: ToolDefinition) -> str:
    suite = shelf.file.suite.name if shelf.file.suite is not None else ""
    return f"{tool.name} {tool.description} {tool.server or ''} {suite} {shelf.file.path.stem}"
