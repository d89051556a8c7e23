"""The screen of tools: servers to start, stop and call, the definitions of tools, and lint findings."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from textual.binding import BindingType

from workbench.analysis.tool_lint import LintFinding, lint_suite
from workbench.engine.server_calls import ServerOf
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Span
from workbench.show.visible import one_line
from workbench.suite.model import Server
from workbench.suite.render import Table
from workbench.suite.suite_file import SuiteFile
from workbench.tools.connection import ServerStatus
from workbench.tui.kit.actions import bindings_for, key_for
from workbench.tui.kit.list_screen import ListScreen
from workbench.tui.kit.stage import Announce, Stage
from workbench.tui.lines.prose import Message, message_lines
from workbench.tui.lines.server_output import failure_text
from workbench.tui.tools.actions import FEATURE, ToolsNow
from workbench.tui.tools.call_lines import CallForm
from workbench.tui.tools.call_screen import CallScreen
from workbench.tui.tools.lines import detail_lines, finding_sign, list_message, row_line
from workbench.tui.tools.servers import Known, ToolServers, server_of
from workbench.tui.tools.shelves import Shelf, ShelfKey, ToolShelves

if TYPE_CHECKING:
    from workbench.evaluation.approval import Approval
    from workbench.tools.pool import Grant
    from workbench.trajectory.events import ToolDefinition


class ToolsWays(Protocol):
    """What the screen of tools needs from the rest of the app."""

    async def approve_servers(self, file: SuiteFile) -> Approval | str:
        """Return what the servers of a suite may use, after asking for trust, or why they may not be started."""
        ...

    def tools_changed(self) -> None:
        """Report that a server has listed different tools."""
        ...

    def file_at(self, path: Path) -> SuiteFile | None:
        """Return the current state of a suite."""
        ...

    def change_case(self, suite_file: Path, change: Callable[[Table], Table], done: str) -> str:
        """Change the selected case. See `call_screen.IntoCase`."""
        ...

    def show_log(self, suite_file: Path, server: Server, announce: Announce) -> None:
        """Show the log of a server, or announce why it has none."""
        ...

    def turn_breakpoint(self, tool: str, announce: Announce) -> None:
        """Set or remove a breakpoint on a tool."""
        ...

    def draft_or_stop(
        self, suite_file: Path, tool: ToolDefinition, tools: Sequence[ToolDefinition], announce: Announce
    ) -> None:
        """Let a model draft cases for a tool among the suite's, or stop that."""
        ...

    def vary(self, suite_file: Path, tool: ToolDefinition, announce: Announce, changed: Callable[[], object]) -> None:
        """Make a variant of the suite with another description of a tool. `changed` is called once it is made."""
        ...


class ToolsScreen(ListScreen[None, ToolShelves]):
    """The servers and tools of some suites. Servers start only by key, and only if trusted."""

    LIST_SHARES = (0.25, 0.5)
    TWO_COLUMNS_CELLS = 100
    STACKS = False
    CLICKED = "show"
    FILTERED_BY = "words of name, description or server"
    FEATURE = FEATURE
    NAME = "tools"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(FEATURE.at(NAME))
    AUTO_FOCUS = "#tools-list"

    def __init__(
        self,
        stage: Stage,
        files: Sequence[SuiteFile],
        place: str,
        forms: dict[tuple[Path, str], CallForm],
        known: Known,
        ways: ToolsWays,
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    ) -> None:
        super().__init__(stage, ToolShelves((), {}))
        self._files = tuple(files)
        self._place = place
        self._forms = forms
        self._now = now
        self._known = known
        self._ways = ways
        self._loading = True
        """Whether the tools are still being loaded."""
        self._servers = ToolServers(known.runner, stage.call_later, self._take)

    def on_mount(self) -> None:
        self.run_worker(self._load(), group="tools")

    def on_unmount(self) -> None:
        self._servers.close()

    # Content

    async def _load(self) -> None:
        listings = self._known.listings

        def remembered() -> ToolShelves:
            return ToolShelves(
                self._files, {file.path: listings.of(file.suite, file.path) for file in self._files if file.suite}
            )

        self.state = await asyncio.to_thread(remembered)
        self._list.state = self.state
        self._loading = False
        self._list.move_cursor(self.state.cursor)
        await self._servers.look(self.state.shelves)
        await self._lint()

    async def _lint(self) -> None:
        """Lint the tools of every suite in a thread."""
        suites = [(file, self.state.tools_of(file.path)) for file in self._files if file.suite is not None]

        def look() -> Mapping[Path, tuple[LintFinding, ...]]:
            return {file.path: lint_suite(file.suite, tools) for file, tools in suites if file.suite}

        for path, findings in (await asyncio.to_thread(look)).items():
            self.state.set_findings(path, findings)
        self._show_state(moved=False)

    def _take(self, key: ShelfKey, status: ServerStatus) -> None:
        """Take over the state of a server. If its tools changed, they are linted again."""
        ran = any(shelf.key == key and shelf.state == "running" for shelf in self.state.shelves)
        if self.is_mounted and ran and status.state == "down":
            self.announce(_failure(status), "error", GLYPHS.error)
        if self.is_mounted and self.state.take(key, status, self._now()):
            self._ways.tools_changed()
            self.run_worker(self._lint(), group="tools")
        self._show_state(moved=False)

    def _row_line(self, index: int, width: int) -> Line:
        return row_line(self.state, self.state.rows[index], width, self._now())

    def _message(self) -> Message:
        return () if self._loading else list_message(self.state)

    def _detail_lines(self, width: int) -> Sequence[Line]:
        row = self.state.selected
        if row is None:
            return message_lines((("Looking for tools …", "muted"),) if self._loading else (), width)
        return detail_lines(self.state, row, width, self._now())

    def _show_state(self, *, moved: bool = True) -> None:
        if self.is_mounted:  # a server may report after the screen was closed
            super()._show_state(moved=moved)

    def second_passed(self) -> None:
        if any(shelf.starting_since for shelf in self.state.shelves):
            self._show_state(moved=False)

    def _title(self) -> tuple[Line, Sequence[Line]]:
        state = self.state
        tokens = sum(shelf.tokens for shelf in state.shelves)
        known = f"{counted(state.tool_count, 'tool')} {GLYPHS.dot} about {tokens:,} tokens " if state.tool_count else ""
        sign, role = finding_sign(state.findings)
        findings: Line = (Span(f"{sign} {counted(state.finding_count, 'finding')} ", role),)
        found: Line = findings if state.finding_count else EMPTY
        right: Line = (Span(known, "muted"), *found)
        left: Line = (Span(" Tools ", "badge"), Span(f" {one_line(self._place)}{self._filter_text}"))
        return left, (right, found)

    # Actions

    @property
    def ways_out(self) -> tuple[tuple[str, str], ...]:
        return ("stop", "stops the server"), *super().ways_out

    @property
    def situation(self) -> ToolsNow:
        row = self.state.selected
        server = row.shelf.state if row is not None and row.shelf.server is not None and row.kind != "suite" else None
        return ToolsNow(
            typing="a filter" if self._filtering else None,
            has_text=row is not None,
            on_tool=row is not None and row.tool is not None,
            server=server,
            running=len(self._known.book.under_way()),
        )

    def do_show(self) -> None:
        """Go to the details of the selected row."""
        if self.state.selected is not None:
            self._go_to("detail")

    def do_break(self) -> None:
        """Set or remove a breakpoint on the selected tool."""
        row = self.state.selected
        if row is not None and row.tool is not None:
            self._ways.turn_breakpoint(row.tool.name, self.announce)

    def do_draft(self) -> None:
        """Let a model draft cases for the selected tool, or stop that."""
        row = self.state.selected
        if row is not None and row.tool is not None:
            path = row.shelf.file.path
            self._ways.draft_or_stop(path, row.tool, (*self.state.tools_of(path), row.tool), self.stage.announce)

    def do_variant(self) -> None:
        """Try another description of the selected tool, in a variant of its suite."""
        row = self.state.selected
        if row is not None and row.tool is not None:
            self._ways.vary(row.shelf.file.path, row.tool, self.announce, partial(self._called, row.shelf))

    def do_copy(self) -> None:
        """Copy the definition of the selected tool as JSON, or the text of a different row."""
        self.stage.copy(*self._text_to_copy(), self.announce)

    def _text_to_copy(self) -> tuple[str, str]:
        row = self.state.selected
        if row is None:
            return "", ""
        if row.tool is not None:
            tool = row.tool
            definition = {"name": tool.name, "description": tool.description, "inputSchema": dict(tool.parameters)}
            if tool.annotations:
                definition["annotations"] = dict(tool.annotations)
            return json.dumps(definition, ensure_ascii=False, indent=2), f"the definition of {one_line(tool.name)}"
        if row.shelf.reason:
            return row.shelf.reason, "why the server is down"
        return str(row.shelf.file.path), "the suite's path"

    def do_log(self) -> None:
        """Show the log of the selected server."""
        row = self.state.selected
        if row is not None and row.shelf.server is not None:
            self._ways.show_log(row.shelf.file.path, row.shelf.server, self.announce)

    # Servers

    def do_start(self) -> None:
        """Start the selected server."""
        self._serve_soon("start")

    def do_stop(self) -> None:
        """Stop the selected server."""
        self._serve_soon("stop")

    def do_renew(self) -> None:
        """Restart the selected server."""
        self._serve_soon("renew")

    def _serve_soon(self, what: Literal["start", "stop", "renew"]) -> None:
        row = self.state.selected
        if row is not None and (server := server_of(row.shelf)) is not None:
            self.run_worker(self._serve(what, row.shelf, server), group="start")

    async def _serve(self, what: Literal["start", "stop", "renew"], shelf: Shelf, server: ServerOf) -> None:
        grant = await self._grant(shelf.file) if what != "stop" else None
        if what != "stop" and grant is None:
            return
        if what != "start":
            await self._servers.stop(shelf.key, server)
        if grant is not None:
            status = await self._servers.start(shelf.key, server, grant)
            if status.state == "running":
                listed = f"{server.server.name} runs: {counted(len(status.tools), 'tool')}"
                self.announce(listed, "passed", GLYPHS.passed)
            else:
                self.announce(_failure(status), "error", GLYPHS.error)

    async def _grant(self, file: SuiteFile) -> Grant | None:
        """Return what the servers of a suite may use, after asking for trust, `None` if they may not be started."""
        approval = await self._ways.approve_servers(file)
        if isinstance(approval, str):
            self.announce(approval, "warned", GLYPHS.warned)
            return None
        return approval.grant(file.path)

    # Calling

    def do_call(self) -> None:
        """Open the form of the selected tool."""
        row = self.state.selected
        if row is None or row.tool is None or (server := server_of(row.shelf)) is None:
            return
        key = (row.shelf.file.path, row.tool.name)
        form = self._forms.get(key)
        if form is None or form.tool != row.tool:
            form = self._forms[key] = CallForm(row.tool)
        screen = CallScreen(
            self.stage,
            form,
            server,
            runner=self._known.runner,
            secrets=self._known.secrets,
            grant=partial(self._grant, row.shelf.file),
            into_case=self._ways.change_case,
            show_log=partial(self._ways.show_log, server.suite_file, server.server),
        )
        self.stage.show(screen, lambda _: self._called(row.shelf))

    def _called(self, shelf: Shelf) -> None:
        """Update after a call or a variant, which may have started or ended the server or changed the suite."""
        if not self.is_mounted:
            return
        file = self._ways.file_at(shelf.file.path)
        if file is not None:
            self.state.take_file(file)
        self.run_worker(self._servers.look([shelf]), group="tools")


def _failure(status: ServerStatus) -> str:
    return failure_text(status.reason, status.output, key_for("tools.log"))
