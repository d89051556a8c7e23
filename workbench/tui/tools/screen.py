"""The screen of tools: servers to start, stop and call, their tools, and lint findings."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.analysis.tool_lint import LintFinding, lint_listing, lint_suite
from workbench.dataclasses import dataclass
from workbench.engine.breakpoints import Breakpoint
from workbench.engine.server_calls import ServerControl, SuiteServer
from workbench.numerals import count_text, counted
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Message, Span, message_lines
from workbench.show.views.server_output import failure_text
from workbench.show.visible import one_line
from workbench.suite.render import Table
from workbench.suite.suite_file import SuiteFile
from workbench.tools.connection import ServerState, ServerStatus
from workbench.tui.kit.actions import Situation, action, key_for
from workbench.tui.kit.list_screen import ListScreen
from workbench.tui.kit.side_screen import ActionOverride
from workbench.tui.runs.runner import Runner
from workbench.tui.tools.call import CallForm, CallScreen, NotInCaseError
from workbench.tui.tools.drafts import ToolDrafter
from workbench.tui.tools.server_logs import show_log
from workbench.tui.tools.state import (
    ServerTools,
    ServerToolsKey,
    ToolList,
    detail_lines,
    finding_sign,
    list_message,
    row_line,
)
from workbench.tui.variants.maker import VariantMaker

if TYPE_CHECKING:
    from workbench.tools.grant import Grant
    from workbench.tui.shell.workbench import Workbench


class ToolServers:
    """Starts and stops servers. Calls `on_change` on the app's loop with every change of their states."""

    def __init__(
        self,
        runner: Runner,
        call_later: Callable[..., object],
        on_change: Callable[[ServerToolsKey, ServerStatus], None],
    ) -> None:
        self._runner = runner
        self._call_later = call_later
        self._on_change = on_change
        self._watched: dict[ServerToolsKey, Future[ServerStatus]] = {}

    async def report_states(self, sources: Iterable[ServerTools]) -> None:
        """Report the current states of the servers in `sources`."""
        serving = self._runner.serving
        servers: list[tuple[ServerToolsKey, SuiteServer]] = []
        for source in sources:
            if (server := server_of(source)) is not None:
                servers.append((source.key, server))
        # Without an open runtime, no server has been started.
        if serving is None or not servers:
            return
        found = await asyncio.wrap_future(serving.status([server for _, server in servers]))
        for (key, server), status in zip(servers, found, strict=True):
            self._report(serving, key, server, status)

    async def start(self, key: ServerToolsKey, server: SuiteServer, grant: Grant) -> ServerStatus:
        """Start a server, or restart a server that is down. Return the server's state."""
        self._forget(key)
        serving = await self._runner.open_serving()
        self._on_change(key, ServerStatus("starting"))
        started = serving.start(server, grant)
        (now,) = await asyncio.wrap_future(serving.status([server]))
        if now.state == "starting":
            self._report(serving, key, server, now)
        status = await asyncio.wrap_future(started)
        self._report(serving, key, server, status)
        return status

    async def stop(self, key: ServerToolsKey, server: SuiteServer) -> None:
        self._forget(key)
        serving = await self._runner.open_serving()
        self._report(serving, key, server, await asyncio.wrap_future(serving.stop(server)))

    def close(self) -> None:
        """Stop reporting changes. The servers keep running."""
        for key in tuple(self._watched):
            self._forget(key)

    def _report(self, serving: ServerControl, key: ServerToolsKey, server: SuiteServer, status: ServerStatus) -> None:
        self._forget(key)
        self._on_change(key, status)
        if status.state == "not started":
            return
        loop = asyncio.get_running_loop()
        # Another thread completes the future at the next change. `on_done` then waits for the following change.
        future = self._watched[key] = serving.wait_for_change(server, status)

        def on_done(done: Future[ServerStatus]) -> None:
            if not (done.cancelled() or loop.is_closed()):
                loop.call_soon_threadsafe(self._call_later, self._changed, serving, key, server, done)

        future.add_done_callback(on_done)

    def _changed(
        self, serving: ServerControl, key: ServerToolsKey, server: SuiteServer, done: Future[ServerStatus]
    ) -> None:
        if self._watched.get(key) is done:
            self._report(serving, key, server, done.result())

    def _forget(self, key: ServerToolsKey) -> None:
        if (future := self._watched.pop(key, None)) is not None:
            future.cancel()


def server_of(source: ServerTools) -> SuiteServer | None:
    """Return the server of a source, `None` if its tools are defined in the suite."""
    if source.server is None:
        return None
    return SuiteServer(source.file.path, source.server)


@dataclass(frozen=True)
class ToolsSituation(Situation):
    """The facts that decide which actions of the tools screen are available."""

    on_tool: bool = False
    """Whether the cursor is on a tool."""
    server: ServerState | None = None
    """The state of the selected server or the tool's server, `None` if the suite defines the tools."""
    running: int = 0
    """The number of active runs."""


_DEFINED_IN_SUITE = "these tools are defined in the suite: there is no server"
_SERVER_IN_USE = "runs are under way and may need this server: stop them first"


def _start(situation: ToolsSituation) -> str | None:
    if situation.server == "running":
        return f"this server is already running; {key_for('tools.renew')} restarts it"
    if situation.server == "starting":
        return "this server is starting"
    return _log(situation)


def _stop(situation: ToolsSituation) -> str | None:
    if situation.server not in ("running", "starting"):
        return _log(situation) or "this server is not running"
    if situation.running:
        return _SERVER_IN_USE
    return None


def _renew(situation: ToolsSituation) -> str | None:
    if situation.server == "starting":
        return "this server is starting"
    if situation.server == "running" and situation.running:
        return _SERVER_IN_USE
    return _log(situation)


def _call(situation: ToolsSituation) -> str | None:
    if situation.on_tool and situation.server is None:
        return "this tool is defined in the suite: there is no server to call"
    return _tool(situation)


def _tool(situation: ToolsSituation) -> str | None:
    if situation.on_tool:
        return None
    return "put the cursor on a tool"


def _copy(situation: Situation) -> str | None:
    if situation.has_text:
        return None
    return "there is nothing to copy here"


def _log(situation: ToolsSituation) -> str | None:
    if situation.server is None:
        return _DEFINED_IN_SUITE
    return None


class ToolsScreen(ListScreen[None, ToolList]):
    """The screen of the servers and tools of suites. A server starts on request, after the user trusted it."""

    LIST_SHARES = (0.25, 0.5)
    TWO_COLUMNS_CELLS = 100
    CAN_STACK = False
    CLICK_ACTION = "show"
    FILTER_PLACEHOLDER = "words of name, description or server"
    NAME = "tools"
    FIRST_ACTIONS = ("stop", "renew", "call", "break", "copy", "log")
    TITLE_IN_TEXT = "the tools"
    ACTION_OVERRIDES = (ActionOverride("back", keys="escape left"),)
    AUTO_FOCUS = "#tools-list"

    def __init__(
        self,
        app: Workbench,
        files: Sequence[SuiteFile],
        place: str,
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    ) -> None:
        super().__init__(app, ToolList((), {}))
        self._files = tuple(files)
        self._place = place
        self._forms = app.part(CallForms).by_tool
        self._now = now
        self._loading = True
        """Whether the tools are still being loaded."""
        self._servers = ToolServers(app.services.runner, app.call_later, self._show_server)

    def on_mount(self) -> None:
        self.run_worker(self._load(), group="tools")

    def on_unmount(self) -> None:
        self._servers.close()

    # Content

    async def _load(self) -> None:
        listings = self.workbench.main.known_tools.listings

        def remembered() -> ToolList:
            known = {file.path: listings.of(file.suite, file.path) for file in self._files if file.suite}
            return ToolList(self._files, known)

        # This runs in a thread, because tool lists from earlier starts are read from files.
        self.state = await asyncio.to_thread(remembered)
        self._list.state = self.state
        self._loading = False
        self._list.move_cursor(self.state.cursor)
        await self._servers.report_states(self.state.sources)
        await self._lint()

    async def _lint(self) -> None:
        suites = [(file, self.state.tools_of(file.path)) for file in self._files]
        listings = [source for source in self.state.sources if source.server is not None]

        def lint_all() -> Mapping[Path, tuple[LintFinding, ...]]:
            found: dict[Path, tuple[LintFinding, ...]] = {}
            for file, tools in suites:
                if file.suite:
                    found[file.path] = lint_suite(file.suite, tools)
            for source in listings:
                assert source.server is not None
                of_listing = lint_listing(source.server.name, source.issues, source.task_tools, source.instructions)
                found[source.file.path] = (*of_listing, *found.get(source.file.path, ()))
            return found

        for path, findings in (await asyncio.to_thread(lint_all)).items():
            self.state.set_findings(path, findings)
        self._show_state(cursor_moved=False)

    def _show_server(self, key: ServerToolsKey, status: ServerStatus) -> None:
        ran = any(source.key == key and source.state == "running" for source in self.state.sources)
        if self.is_mounted and ran and status.state == "down":
            self.announce(_failure(status), "error", GLYPHS.error)
        if self.is_mounted and self.state.update_server(key, status, self._now()):
            self.workbench.services.tools_changed()
            self.run_worker(self._lint(), group="tools")
        self._show_state(cursor_moved=False)

    def _row_line(self, index: int, width: int) -> Line:
        return row_line(self.state, self.state.rows[index], width, self._now())

    def _message(self) -> Message:
        if self._loading:
            return ()
        return list_message(self.state)

    def _detail_lines(self, width: int) -> Sequence[Line]:
        row = self.state.selected
        if row is not None:
            return detail_lines(self.state, row, width, self._now())
        if self._loading:
            return message_lines((("Looking for tools …", "muted"),), width)
        return message_lines((), width)

    def _show_state(self, *, cursor_moved: bool = True) -> None:
        # A server may report after the screen was closed.
        if self.is_mounted:
            super()._show_state(cursor_moved=cursor_moved)

    def update_times(self) -> None:
        # The list shows the seconds since a server began to start, so it is drawn again.
        if any(source.starting_since for source in self.state.sources):
            self._show_state(cursor_moved=False)

    def _title(self) -> tuple[Line, Sequence[Line]]:
        state = self.state
        known = ""
        if state.tool_count:
            tokens = sum(source.tokens for source in state.sources)
            known = f"{counted(state.tool_count, 'tool')} {GLYPHS.dot} about {count_text(tokens)} tokens "
        found = EMPTY
        if state.finding_count:
            sign, role = finding_sign(state.findings)
            found = (Span(f"{sign} {counted(state.finding_count, 'finding')} ", role),)
        left: Line = (Span(" Tools ", "badge"), Span(f" {one_line(self._place)}{self._filter_text}"))
        return left, ((Span(known, "muted"), *found), found)

    # Actions

    @property
    def exit_actions(self) -> tuple[tuple[str, str], ...]:
        return ("stop", "stops the server"), *super().exit_actions

    @property
    def situation(self) -> ToolsSituation:
        row = self.state.selected
        server: ServerState | None = None
        if row is not None and row.source.server is not None and row.kind != "suite":
            server = row.source.state
        typing: Literal["a filter"] | None = None
        if self._filtering:
            typing = "a filter"
        return ToolsSituation(
            typing=typing,
            has_text=row is not None,
            on_tool=row is not None and row.tool is not None,
            server=server,
            running=len(self.workbench.selection.book.active_runs()),
        )

    @action("enter right", "Show what the cursor is on")
    def do_show(self) -> None:
        if self.state.selected is not None:
            self._go_to("detail")

    @action("b", "Set or remove a breakpoint on calls of the tool", label="break", needs=_tool, changes=True)
    def do_break(self) -> None:
        row = self.state.selected
        if row is not None and row.tool is not None:
            self.workbench.services.breakpoints.switch(Breakpoint("tool", row.tool.name), self.announce)

    @action(
        "n",
        "Draft new cases for the tool with a model, or stop",
        label="draft cases",
        needs=_tool,
        changes=True,
    )
    def do_draft(self) -> None:
        """Let a model draft cases for the selected tool, or stop drafting."""
        row = self.state.selected
        if row is not None and row.tool is not None:
            path = row.source.file.path
            self.workbench.part(ToolDrafter).draft_or_stop(
                path, row.tool, (*self.state.tools_of(path), row.tool), self.workbench.announce
            )

    @action("V", "Make a variant: try another description of the tool", label="variant", needs=_tool, changes=True)
    def do_variant(self) -> None:
        row = self.state.selected
        if row is not None and row.tool is not None:
            self.workbench.part(VariantMaker).make_tool_variant(
                row.source.file.path, row.tool, self.announce, partial(self._called, row.source)
            )

    @action("y", "Copy the definition of the tool", label="copy", needs=_copy)
    def do_copy(self) -> None:
        """Copy the definition of the selected tool as JSON, the reason why a server is down, or the suite's path."""
        self.workbench.copy(*self._text_to_copy(), self.announce)

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
        if row.source.reason:
            return row.source.reason, "the reason why the server is down"
        return str(row.source.file.path), "the suite's path"

    @action("l", "Live log of the server", label="log", needs=_log)
    def do_log(self) -> None:
        row = self.state.selected
        if row is not None and row.source.server is not None:
            show_log(self.workbench, row.source.file.path, row.source.server, self.announce)

    # Servers

    @action("", "Start the server", needs=_start, changes=True)
    def do_start(self) -> None:
        self._serve_soon("start")

    @action("x", "Stop the server", label="stop", needs=_stop, changes=True)
    def do_stop(self) -> None:
        self._serve_soon("stop")

    @action("r", "Run or restart the server", label="start", needs=_renew, changes=True)
    def do_renew(self) -> None:
        self._serve_soon("renew")

    def _serve_soon(self, what: Literal["start", "stop", "renew"]) -> None:
        row = self.state.selected
        if row is not None and (server := server_of(row.source)) is not None:
            self.run_worker(self._serve(what, row.source, server), group="start")

    async def _serve(self, what: Literal["start", "stop", "renew"], source: ServerTools, server: SuiteServer) -> None:
        if what == "stop":
            await self._servers.stop(source.key, server)
            return
        grant = await self._grant(source.file)
        if grant is None:
            return
        if what == "renew":
            await self._servers.stop(source.key, server)
        status = await self._servers.start(source.key, server, grant)
        if status.state == "running":
            listed = f"{server.server.name} runs: {counted(len(status.tools), 'tool')}"
            self.announce(listed, "passed", GLYPHS.passed)
        else:
            self.announce(_failure(status), "error", GLYPHS.error)

    async def _grant(self, file: SuiteFile) -> Grant | None:
        """Ask for trust in the servers of a suite. Return the permission to start them, `None` if the user refuses."""
        approval = await self.workbench.services.starter.approval_of_servers(file)
        if isinstance(approval, str):
            self.announce(approval, "warned", GLYPHS.warned)
            return None
        return approval.grant(file.path)

    # Calling

    @action("i", "Call the tool by hand", label="call", needs=_call, changes=True)
    def do_call(self) -> None:
        row = self.state.selected
        if row is None or row.tool is None or (server := server_of(row.source)) is None:
            return
        key = (row.source.file.path, row.tool.name)
        form = self._forms.get(key)
        # A changed tool needs a new form for its new parameters.
        if form is None or form.tool != row.tool:
            form = self._forms[key] = CallForm(row.tool)
        screen = CallScreen(
            self.workbench,
            form,
            server,
            runner=self.workbench.services.runner,
            secrets=self.workbench.program.secrets,
            grant=partial(self._grant, row.source.file),
            into_case=self._change_case,
            show_log=partial(show_log, self.workbench, server.suite_file, server.server),
        )
        self.workbench.show(screen, lambda _: self._called(row.source))

    def _called(self, source: ServerTools) -> None:
        """Update a server and its suite after the user called a tool or added a variant."""
        if not self.is_mounted:
            return
        file = self._file_at(source.file.path)
        if file is not None:
            self.state.update_suite(file)
        self.run_worker(self._servers.report_states([source]), group="tools")

    def _file_at(self, path: Path) -> SuiteFile | None:
        suite = self.workbench.open_suites.at(path)
        if suite is None:
            return None
        return suite.file

    def _change_case(self, suite_file: Path, change: Callable[[Table], Table], success_text: str) -> str:
        suite, case = self.workbench.selection.suite, self.workbench.selection.outline
        if suite is None or case is None or suite.path != suite_file:
            raise NotInCaseError
        if suite.why_not_editable is not None:
            raise ValueError(suite.why_not_editable)
        document = suite.document.with_case(case.index, change(suite.document.table(case.index)))
        self.workbench.open_suites.change(suite, document, success_text, case=case.key)
        return case.name


def _failure(status: ServerStatus) -> str:
    return failure_text(status.reason, status.output, key_for("tools.log"))


class CallForms:
    """The argument forms of tools, by suite and tool. The texts typed into them are kept until the program ends."""

    def __init__(self, app: Workbench) -> None:
        self.by_tool: dict[tuple[Path, str], CallForm] = {}


def open_tools(app: Workbench) -> None:
    suites, place = app.selection.suites_below()
    # When the screen closes, the case's form is updated, because it offers the names of known tools.
    app.show(ToolsScreen(app, [suite.file for suite in suites], place), lambda _: app.selection.notify_all())
