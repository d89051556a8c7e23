"""The tools of suites: servers to start, stop and call, what each tool says of itself, and what lint says of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Input

from workbench.analysis.tool_lint import Finding, lint_tools, offered_at_once
from workbench.batches.serving import ServerOf
from workbench.reports.visible import one_line
from workbench.suite.loading import SuiteFile
from workbench.tools.listings import Listings
from workbench.tools.server_status import ServerStatus
from workbench.tui.actions import BY_ID, ScreenName, Situation, ToolsNow, bindings_for, shown_keys
from workbench.tui.glyphs import GLYPHS
from workbench.tui.painting import Bar
from workbench.tui.screens.help import HelpScreen
from workbench.tui.screens.tool_call import CallScreen
from workbench.tui.state.call_form import CallForm
from workbench.tui.state.source import message_lines
from workbench.tui.state.spans import EMPTY, Line, Role, Span
from workbench.tui.state.tool_lines import detail_lines, finding_sign, title_line
from workbench.tui.state.tool_shelves import Shelf, ShelfKey, ToolShelves
from workbench.tui.state.words import many
from workbench.tui.tool_servers import ToolServers, server_of
from workbench.tui.widgets.bars import KeyBar
from workbench.tui.widgets.safe_input import SafeInput
from workbench.tui.widgets.tool_views import ToolDetail, ToolList

if TYPE_CHECKING:
    from workbench.tui.workbench import Workbench

TWO_COLUMNS_CELLS = 100
"""From this width on list and tool stand side by side."""

Column = Literal["list", "tool"]


class ToolsScreen(Screen[None]):
    """The servers and tools of some suites. Nothing is started before a key says so, and trust has been given."""

    DEFAULT_CSS = """
    ToolsScreen { layout: vertical; background: $background; }
    ToolsScreen #columns { height: 1fr; }
    ToolsScreen #list-column { width: 40%; max-width: 60; height: 100%; }
    ToolsScreen #tool-column { width: 1fr; height: 100%; border-left: solid $border; }
    ToolsScreen.one #list-column { width: 1fr; max-width: 100%; }
    ToolsScreen.one #tool-column { border-left: none; }
    ToolsScreen #tools-filter { height: 1; border: none; padding: 0 1; background: $panel; }
    """
    NAME: ClassVar[ScreenName] = "tools"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(NAME)
    AUTO_FOCUS = "#tools-list"

    def __init__(
        self,
        app: Workbench,
        files: Sequence[SuiteFile],
        place: str,
        forms: dict[tuple[Path, str], CallForm],
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    ) -> None:
        super().__init__()
        self._workbench = app
        self._files = tuple(files)
        self._place = place
        self._forms = forms
        self._now = now
        self.state = ToolShelves((), {})
        self.column: Column = "list"
        self._servers = ToolServers(app, self._take)

    def compose(self) -> ComposeResult:
        yield Bar("tools-title")
        with Horizontal(id="columns"):
            with Vertical(id="list-column"):
                yield ToolList(self.state, "tools-list")
                yield SafeInput(placeholder="words of name, description or server", widget_id="tools-filter")
            with Vertical(id="tool-column"):
                yield ToolDetail(self._detail, "tools-detail")
        yield KeyBar("tools-keys")

    def on_mount(self) -> None:
        self._filter.display = False
        self._place_columns()
        self.run_worker(self._load(), group="tools")

    def on_unmount(self) -> None:
        self._servers.close()

    # What is there

    async def _load(self) -> None:
        folder = self._workbench.program.folders.listings

        def remembered() -> ToolShelves:
            listings = Listings(folder)
            return ToolShelves(
                self._files, {file.path: listings.of(file.suite, file.path) for file in self._files if file.suite}
            )

        self.state = self._list.state = await asyncio.to_thread(remembered)
        self._list.loading_tools = False
        self._list.move_cursor(self.state.cursor)
        await self._servers.look(self.state.shelves)
        await self._lint()

    async def _lint(self) -> None:
        """Look at the tools of every suite, off the loop."""
        suites = [(file, self.state.tools_of(file.path)) for file in self._files if file.suite is not None]

        def look() -> Mapping[Path, tuple[Finding, ...]]:
            return {
                file.path: lint_tools(tools, offered_at_once(file.suite, tools)) for file, tools in suites if file.suite
            }

        for path, findings in (await asyncio.to_thread(look)).items():
            self.state.set_findings(path, findings)
        self._show_state()

    def _take(self, key: ShelfKey, status: ServerStatus) -> None:
        """A server is otherwise than it was; other tools are looked at anew."""
        ran = any(shelf.key == key and shelf.state == "running" for shelf in self.state.shelves)
        if self.is_mounted and ran and status.state == "down":
            self.announce(status.reason, "error", GLYPHS.error)
        if self.is_mounted and self.state.take(key, status, self._now()):
            self._workbench.main.known_tools.forget()
            self._workbench.main.auditor.forget()
            self.run_worker(self._lint(), group="tools")
        self._show_state()

    @property
    def _list(self) -> ToolList:
        return self.query_one("#tools-list", ToolList)

    def _detail(self, width: int) -> Sequence[Line]:
        row = self.state.selected
        if row is None:
            return message_lines((("Looking for tools …", "muted"),) if self._list.loading_tools else (), width)
        return detail_lines(self.state, row, width, self._now())

    def _show_state(self, *, moved: bool = False) -> None:
        if not self.is_mounted:
            return
        if self._list.cursor != self.state.cursor:
            self._list.move_cursor(self.state.cursor)
        self._list.repaint()
        self.query_one("#tools-detail", ToolDetail).show_anew(from_top=moved)
        self._show_bars()

    def _show_bars(self) -> None:
        state = self.state
        tokens = sum(shelf.tokens for shelf in state.shelves)
        known = f"{many(state.tool_count, 'tool')} {GLYPHS.dot} about {tokens:,} tokens " if state.tool_count else ""
        sign, role = finding_sign(state.findings)
        findings: Line = (Span(f"{sign} {many(state.finding_count, 'finding')} ", role),)
        found: Line = findings if state.finding_count else EMPTY
        right: Line = (Span(known, "muted"), *found)
        filtered = f"  /{one_line(state.filter)}" if state.filter and not self._filtering else ""
        left: Line = (Span(" Tools ", "badge"), Span(f" {one_line(self._place)}{filtered}"))
        self.query_one("#tools-title", Bar).say(lambda width: title_line(left, (right, found), width))
        self.query_one("#tools-keys", KeyBar).offer(shown_keys(self.situation) if self.app.screen is self else ())

    def announce(self, text: str, role: Role = "text", sign: str = "") -> None:
        """Say something at the bottom, until the next key."""
        said = f" {sign} {one_line(text)}" if sign else f" {one_line(text)}"
        self.query_one("#tools-keys", KeyBar).announce((Span(said, role),))

    @on(ToolList.Moved)
    def _moved(self) -> None:
        self._show_state(moved=True)

    @on(ToolList.Opened)
    def _opened(self) -> None:
        self.action_do("tools.show")

    # Columns

    def on_resize(self, event: events.Resize) -> None:
        self._place_columns()

    def _place_columns(self) -> None:
        one = self.app.size.width < TWO_COLUMNS_CELLS
        self.set_class(one, "one")
        self.query_one("#list-column").display = not one or self.column == "list"
        self.query_one("#tool-column").display = not one or self.column == "tool"

    def _go_to(self, column: Column) -> None:
        self.column = column
        self._place_columns()
        self.set_focus(self.query_one("#tools-list" if column == "list" else "#tools-detail"))

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if event.widget.id in ("tools-list", "tools-detail"):
            self.column = "list" if event.widget.id == "tools-list" else "tool"

    def on_screen_suspend(self) -> None:
        self.query_one("#tools-keys", KeyBar).offer(())

    def on_screen_resume(self) -> None:
        self._show_bars()

    # What can be done

    @property
    def situation(self) -> Situation:
        """What decides which actions can be taken."""
        row = self.state.selected
        server = row.shelf.state if row is not None and row.shelf.server is not None and row.kind != "suite" else None
        now = ToolsNow(on_tool=row is not None and row.tool is not None, server=server)
        running = len(self._workbench.main.book.under_way())
        return Situation(screen=self.NAME, running=running, has_text=row is not None, tools=now)

    def action_do(self, action_id: str) -> None:
        """Take an action of the registry, or say why it cannot be taken."""
        self.query_one("#tools-keys", KeyBar).clear_notice()
        why = BY_ID[action_id].why_not(self.situation)
        if why is not None:
            self.announce(why[:1].upper() + why[1:], "warned", GLYPHS.warned)
        else:
            self._workbench.main.commands.perform(action_id, self._workbench.main)

    def show(self) -> None:
        """Go to what the cursor is on."""
        if self.state.selected is not None:
            self._go_to("tool")

    def other_column(self) -> None:
        """Go to the other column."""
        self._go_to("tool" if self.column == "list" else "list")

    def back(self) -> None:
        """Leave the filter, then the tool, then the screen."""
        if self._filtering or self.state.filter:
            self._close_filter(keep=False)
        elif self.column == "tool":
            self._go_to("list")
        else:
            self.dismiss()

    def help(self) -> None:
        """Show the keys."""
        self.app.push_screen(HelpScreen(self.situation))

    def text_to_copy(self) -> tuple[str, str]:
        """The definition of the tool under the cursor as JSON, or what else the row is about, and what to call it."""
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

    # Servers

    def serve(self, what: Literal["start", "stop", "renew"]) -> None:
        """Start, stop or restart the server under the cursor."""
        row = self.state.selected
        if row is not None and (server := server_of(row.shelf)) is not None:
            self.run_worker(self._serve(what, row.shelf, server), group="start")

    async def _serve(self, what: Literal["start", "stop", "renew"], shelf: Shelf, server: ServerOf) -> None:
        if what != "stop" and not await self._may_start(shelf.file):
            return
        if what != "start":
            await self._servers.stop(shelf.key, server)
        if what != "stop":
            status = await self._servers.start(shelf.key, server)
            if status.state == "running":
                listed = f"{server.server.name} runs: {many(len(status.tools), 'tool')}"
                self.announce(listed, "passed", GLYPHS.passed)
            else:
                self.announce(status.reason, "error", GLYPHS.error)

    async def _may_start(self, file: SuiteFile) -> bool:
        why_not = await self._workbench.starter.may_start_servers(file)
        if why_not is not None:
            self.announce(why_not, "warned", GLYPHS.warned)
        return why_not is None

    # Calling

    def call(self) -> None:
        """Open the form of the tool under the cursor."""
        row = self.state.selected
        if row is None or row.tool is None or (server := server_of(row.shelf)) is None:
            return
        key = (row.shelf.file.path, row.tool.name)
        form = self._forms.get(key)
        if form is None or form.tool != row.tool:
            form = self._forms[key] = CallForm(row.tool)
        screen = CallScreen(self._workbench, form, server, may_start=partial(self._may_start, row.shelf.file))
        self.app.push_screen(screen, lambda _: self._called(row.shelf))

    def _called(self, shelf: Shelf) -> None:
        """A call may have started the server, or ended it, and its suite may have been changed."""
        suite = self._workbench.main.desk.at(shelf.file.path)
        if suite is not None:
            self.state.take_file(suite.file)
        self.run_worker(self._servers.look([shelf]), group="tools")

    # Filter

    @property
    def _filter(self) -> Input:
        return self.query_one("#tools-filter", Input)

    @property
    def _filtering(self) -> bool:
        return self.focused is self._filter

    def open_filter(self) -> None:
        """Type to filter the tools."""
        self._go_to("list")
        box = self._filter
        box.value, box.display = self.state.filter, True
        self.set_focus(box)

    @on(Input.Changed, "#tools-filter")
    def _filter_changed(self, event: Input.Changed) -> None:
        if not self._filtering:
            return
        self.state.set_filter(event.value)
        self._show_state(moved=True)

    @on(Input.Submitted, "#tools-filter")
    def _filter_submitted(self) -> None:
        self._close_filter(keep=True)

    def _close_filter(self, *, keep: bool) -> None:
        self._filter.display = False
        if not keep:
            self.state.set_filter("")
        self._go_to("list")
        self._show_state(moved=True)
