"""The screen of tools: servers to start, stop and call, the definitions of tools, and lint findings."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.analysis.tool_lint import LintFinding, lint_suite
from workbench.dataclasses import dataclass
from workbench.engine.breakpoints import Breakpoint
from workbench.engine.server_calls import ServerOf
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Message, Span, message_lines
from workbench.show.views.server_output import failure_text
from workbench.show.visible import one_line
from workbench.suite.render import Table
from workbench.suite.suite_file import SuiteFile
from workbench.tools.connection import ServerState, ServerStatus
from workbench.tui.kit.actions import Situation, action, key_for
from workbench.tui.kit.list_screen import ListScreen
from workbench.tui.kit.side_screen import Varied
from workbench.tui.tools.call_lines import CallForm
from workbench.tui.tools.call_screen import CallScreen, NotInCaseError
from workbench.tui.tools.drafting import ToolDrafter
from workbench.tui.tools.lines import detail_lines, finding_sign, list_message, row_line
from workbench.tui.tools.log_screen import show_log
from workbench.tui.tools.servers import ToolServers, server_of
from workbench.tui.tools.shelves import Shelf, ShelfKey, ToolShelves
from workbench.tui.variants.maker import VariantMaker

if TYPE_CHECKING:
    from workbench.tools.pool import Grant
    from workbench.tui.shell.workbench import Workbench


@dataclass(frozen=True)
class ToolsNow(Situation):
    """The situation of the screen of tools: whether the cursor is on a tool, and the state of its server, `None` for
    tools defined in the suite. `running` is the number of active runs."""

    on_tool: bool = False
    server: ServerState | None = None
    running: int = 0


_WRITTEN_OUT = "these tools are written out in the suite: there is no server"
_NEEDED = "runs are under way and may need this server: stop them first"


def _start(now: ToolsNow) -> str | None:
    if now.server == "running":
        return f"this server is already running; {key_for('tools.renew')} restarts it"
    return "this server is starting" if now.server == "starting" else None if now.server else _WRITTEN_OUT


def _stop(now: ToolsNow) -> str | None:
    if now.server in ("running", "starting"):
        return _NEEDED if now.running else None
    return "this server is not running" if now.server else _WRITTEN_OUT


def _renew(now: ToolsNow) -> str | None:
    if now.server == "starting":
        return "this server is starting"
    if now.server == "running" and now.running:
        return _NEEDED
    return None if now.server else _WRITTEN_OUT


def _call(now: ToolsNow) -> str | None:
    if not now.on_tool:
        return _tool(now)
    return None if now.server else "this tool is written out in the suite: there is no server to call"


def _tool(now: ToolsNow) -> str | None:
    return None if now.on_tool else "put the cursor on a tool"


def _copy(now: Situation) -> str | None:
    return None if now.has_text else "there is nothing to copy here"


def _log(now: ToolsNow) -> str | None:
    return None if now.server else _WRITTEN_OUT


class ToolsScreen(ListScreen[None, ToolShelves]):
    """The servers and tools of some suites. Servers start only by key, and only if trusted."""

    LIST_SHARES = (0.25, 0.5)
    TWO_COLUMNS_CELLS = 100
    STACKS = False
    CLICKED = "show"
    FILTERED_BY = "words of name, description or server"
    NAME = "tools"
    FIRST = ("stop", "renew", "call", "break", "copy", "log")
    TITLE_IN_TEXT = "the tools"
    VARIED = (Varied("back", keys="escape left"),)
    AUTO_FOCUS = "#tools-list"

    def __init__(
        self,
        stage: Workbench,
        files: Sequence[SuiteFile],
        place: str,
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    ) -> None:
        super().__init__(stage, ToolShelves((), {}))
        self._files = tuple(files)
        self._place = place
        self._forms = stage.part(CallForms).by_tool
        self._now = now
        self._loading = True
        """Whether the tools are still being loaded."""
        self._servers = ToolServers(stage.services.runner, stage.call_later, self._take)

    def on_mount(self) -> None:
        self.run_worker(self._load(), group="tools")

    def on_unmount(self) -> None:
        self._servers.close()

    # Content

    async def _load(self) -> None:
        listings = self.stage.main.known_tools.listings

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
            self.stage.services.tools_changed()
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
            running=len(self.stage.selection.book.under_way()),
        )

    @action("enter right", "Show what the cursor is on")
    def do_show(self) -> None:
        """Go to the details of the selected row."""
        if self.state.selected is not None:
            self._go_to("detail")

    @action("b", "Set or remove a breakpoint on calls of the tool", label="break", needs=_tool, changes=True)
    def do_break(self) -> None:
        """Set or remove a breakpoint on the selected tool."""
        row = self.state.selected
        if row is not None and row.tool is not None:
            self.stage.services.breakpoints.switch(Breakpoint("tool", row.tool.name), self.announce)

    @action(
        "n", "Draft new cases for the tool with a model, or stop that", label="draft cases", needs=_tool, changes=True
    )
    def do_draft(self) -> None:
        """Let a model draft cases for the selected tool, or stop that."""
        row = self.state.selected
        if row is not None and row.tool is not None:
            path = row.shelf.file.path
            self.stage.part(ToolDrafter).draft_or_stop(
                path, row.tool, (*self.state.tools_of(path), row.tool), self.stage.announce
            )

    @action("V", "Make a variant: try another description of the tool", label="variant", needs=_tool, changes=True)
    def do_variant(self) -> None:
        """Try another description of the selected tool, in a variant of its suite."""
        row = self.state.selected
        if row is not None and row.tool is not None:
            self.stage.part(VariantMaker).of_tool(
                row.shelf.file.path, row.tool, self.announce, partial(self._called, row.shelf)
            )

    @action("y", "Copy the definition of the tool", label="copy", needs=_copy)
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

    @action("l", "Log of the server, which follows it", label="log", needs=_log)
    def do_log(self) -> None:
        """Show the log of the selected server."""
        row = self.state.selected
        if row is not None and row.shelf.server is not None:
            show_log(self.stage, row.shelf.file.path, row.shelf.server, self.announce)

    # Servers

    @action("", "Start the server", needs=_start, changes=True)
    def do_start(self) -> None:
        """Start the selected server."""
        self._serve_soon("start")

    @action("x", "Stop the server", label="stop", needs=_stop, changes=True)
    def do_stop(self) -> None:
        """Stop the selected server."""
        self._serve_soon("stop")

    @action("r", "Run the server: start it, or restart it", label="start", needs=_renew, changes=True)
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
        approval = await self.stage.services.starter.approval_of_servers(file)
        if isinstance(approval, str):
            self.announce(approval, "warned", GLYPHS.warned)
            return None
        return approval.grant(file.path)

    # Calling

    @action("i", "Call the tool by hand", label="call", needs=_call, changes=True)
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
            runner=self.stage.services.runner,
            secrets=self.stage.program.secrets,
            grant=partial(self._grant, row.shelf.file),
            into_case=self._change_case,
            show_log=partial(show_log, self.stage, server.suite_file, server.server),
        )
        self.stage.show(screen, lambda _: self._called(row.shelf))

    def _called(self, shelf: Shelf) -> None:
        """Update after a call or a variant, which may have started or ended the server or changed the suite."""
        if not self.is_mounted:
            return
        file = self._file_at(shelf.file.path)
        if file is not None:
            self.state.take_file(file)
        self.run_worker(self._servers.look([shelf]), group="tools")

    def _file_at(self, path: Path) -> SuiteFile | None:
        """Return the current state of a suite."""
        suite = self.stage.open_suites.at(path)
        return suite.file if suite is not None else None

    def _change_case(self, suite_file: Path, change: Callable[[Table], Table], done: str) -> str:
        """Change the selected case. See `call_screen.IntoCase`."""
        suite, case = self.stage.selection.suite, self.stage.selection.outline
        if suite is None or case is None or suite.path != suite_file:
            raise NotInCaseError
        if suite.why_not_editable is not None:
            raise ValueError(suite.why_not_editable)
        document = suite.document.with_case(case.index, change(suite.document.table(case.index)))
        self.stage.open_suites.change(suite, document, done, case=case.key)
        return case.name


def _failure(status: ServerStatus) -> str:
    return failure_text(status.reason, status.output, key_for("tools.log"))


class CallForms:
    """The forms of calls by hand, kept until the program ends."""

    def __init__(self, app: Workbench) -> None:
        self.by_tool: dict[tuple[Path, str], CallForm] = {}


def open_tools(app: Workbench) -> None:
    """Show the tools of the selected suite or folder."""
    suites, place = app.selection.suites_below()
    # The main form uses the known tools, which may have changed meanwhile.
    app.show(ToolsScreen(app, [suite.file for suite in suites], place), lambda _: app.selection.show_again())
