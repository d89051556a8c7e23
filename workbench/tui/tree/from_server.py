"""The dialogs of a new suite for the tools of a server: which server, and what it answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from workbench.evaluation.client_servers import ClientConfigError, ConfiguredServer, FoundServers, server_of_text
from workbench.evaluation.first_suite import ServersToAsk
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.highlight import toml_lines
from workbench.show.spans import EMPTY, Line, cut_line, with_margin
from workbench.show.visible import one_line
from workbench.suite.suite_file import SuiteFile
from workbench.tools.answer import ServerError, UntrustedError
from workbench.trajectory.events import ToolDefinition
from workbench.tui.kit.asking import _ROWS_AROUND, _Naming
from workbench.tui.kit.dialogs import ChooseLines, Dialog, Option, ReadLines, keys_line
from workbench.tui.kit.stage import in_background

Listed = tuple[tuple[ToolDefinition, ...], ...]
"""The tools of each server."""

_TYPED = Option("as typed above")


class ServerScreen(_Naming[FoundServers]):
    """Asks for a server: its command or URL, or one that a client on this machine uses. `find` looks for those."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "other(-1)", show=False),
        Binding("down", "other(1)", show=False),
    ]

    def __init__(self, suite: str, proposed: str, find: Callable[[], Sequence[ConfiguredServer]]) -> None:
        self._found: Sequence[ConfiguredServer] = ()
        self._find = find
        self.typed = proposed
        """The command or URL that was typed, once it was taken."""
        super().__init__(
            f"The MCP server of {one_line(suite)}",
            proposed,
            "Its command, as in a shell (uvx mcp-server-git), or its URL. Nothing starts without your consent.",
            self._why_not,
            keys_line(("Enter", "take it"), ("Esc", "leave")),
        )

    def body(self) -> ComposeResult:
        yield from super().body()
        yield ChooseLines((), widget_id="clients")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#clients").display = False
        self.run_worker(self._look())

    async def _look(self) -> None:
        self._found = await in_background(self._find)
        if not self._found or not self.is_mounted:
            return
        choices = self.query_one("#clients", ChooseLines)
        widest = min(max(len(one_line(each.name)) for each in self._found), 24)
        choices.options = [
            _TYPED,
            *(Option(f"{one_line(each.name):<{widest}}", _about(each)) for each in self._found),
        ]
        choices.display = True
        self._keys = keys_line(("Enter", "take it"), ("↑↓", "servers of your MCP clients"), ("Esc", "leave"))
        self.say_keys(self._keys)
        choices.refresh(layout=True)

    def _make_room(self, height: int) -> None:
        super()._make_room(height)
        self.query_one("#clients").styles.max_height = max(height - _ROWS_AROUND - 2, 2)

    @property
    def _chosen(self) -> ConfiguredServer | None:
        at = self.query_one("#clients", ChooseLines).cursor
        return self._found[at - 1] if at and self._found else None

    def action_other(self, step: int) -> None:
        """Go to another server while one is typed."""
        if self._found:
            choices = self.query_one("#clients", ChooseLines)
            choices.move_cursor((choices.cursor + step) % len(choices.options))

    def submit(self) -> None:
        if self._chosen is not None:
            self.dismiss(self._chosen.found)
        else:
            super().submit()

    def answer(self, text: str) -> None:
        self.typed = text
        self.dismiss(server_of_text(text))

    @on(Input.Changed)
    def _typed(self) -> None:
        if self._found:
            self.query_one("#clients", ChooseLines).move_cursor(0)

    @on(ChooseLines.Chosen)
    def _picked(self) -> None:
        self.submit()

    def _why_not(self, text: str) -> str | None:
        try:
            server_of_text(text)
        except ClientConfigError as error:
            return str(error)
        return None


def _about(server: ConfiguredServer) -> str:
    table = server.found.tables[0]
    command = table.get("command")
    what = " ".join(map(str, command)) if isinstance(command, list) else str(table.get("url", ""))
    return f"{server.client}: {one_line(what)}"


class ListingScreen(Dialog[Listed]):
    """Waits for servers to list their tools, which `ask` has begun. Closes with them, or without an answer after the
    end of what a server said."""

    HAS_SUBJECT: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "again", "Try again", show=False)]

    def __init__(self, names: Sequence[str], ask: Callable[[], Future[Listed]]) -> None:
        super().__init__(keys_line(("Esc", "cancel")))
        self.TITLE_LINE = f"Asking {one_line(', '.join(names))} for its tools"  # type: ignore[misc]
        self._names = names
        self._ask = ask
        self._asked: Future[Listed] | None = None
        self._began_s = 0.0
        self._error: ServerError | UntrustedError | None = None

    def body(self) -> ComposeResult:
        yield ReadLines(self._lines, "reading")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#reading"))
        self.set_interval(1, self._second_passed)
        self.action_again()

    def on_unmount(self) -> None:
        if self._asked is not None:
            self._asked.cancel()

    def action_again(self) -> None:
        """Ask, if nothing is being asked."""
        if self._asked is None or self._error is not None:
            self._error, self._began_s = None, time.monotonic()
            self.say_keys(keys_line(("Esc", "cancel")))
            self._asked = self._ask()
            self._show()
            self.run_worker(self._wait(self._asked), group="ask")

    async def _wait(self, asked: Future[Listed]) -> None:
        try:
            listed = await asyncio.wrap_future(asked)
        except (ServerError, UntrustedError) as error:
            self._failed(error)
        else:
            if any(listed):
                self.dismiss(listed)
            else:
                self._failed(ServerError(f"{', '.join(self._names)} started, and lists no tools"))

    def _failed(self, error: ServerError | UntrustedError) -> None:
        self._error = error
        self.say_keys(keys_line(("Enter", "try again"), ("Esc", "another server")))
        self._show()

    def _second_passed(self) -> None:
        if self._error is None:
            self._show()

    def _show(self) -> None:
        self.query_one("#reading", ReadLines).show_anew(from_top=False)
        self.query_one("#reading").refresh(layout=True)

    def _lines(self, width: int) -> list[Line]:
        if self._error is None:
            passed = int(time.monotonic() - self._began_s)
            took = f" {passed} s" if passed else ""
            return [EMPTY, *with_margin(f"{GLYPHS.running} It starts, and says what it can do{took}", width), EMPTY]
        lines = [EMPTY, *with_margin(f"{GLYPHS.error} {self._error}", width, "error")]
        output = self._error.output if isinstance(self._error, ServerError) else None
        if output is not None and output.lines:
            lines += [EMPTY, *with_margin("The end of what it wrote:", width, "muted")]
            for text in output.lines:
                lines += with_margin(one_line(text), width)
        return [*lines, EMPTY]


def first_suite_lines(asked: ServersToAsk, made: SuiteFile, tools: int, width: int) -> list[Line]:
    """Return what is made for a server, before it is."""
    cases = len(made.suite.cases) if made.suite is not None else 0
    lines = [
        EMPTY,
        *with_margin(
            f"{counted(cases, 'case')} for {counted(tools, 'tool')}, each skipped until its request is written.", width
        ),
    ]
    for note in asked.found.notes:
        lines += with_margin(f"{GLYPHS.warned} {note}", width, "warned")
    if asked.missing:
        them = ", ".join(asked.missing)
        lines += with_margin(f"Set before it runs, in the environment or in a .env beside it: {them}", width, "warned")
    lines.append(EMPTY)
    return [*lines, *(cut_line(line, width) for line in toml_lines(made.text.rstrip("\n").split("\n"))), EMPTY]
