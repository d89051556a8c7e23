"""The screen of a server's log, updated while the server writes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from workbench.show.spans import ELLIPSIS, Line, Role, Span, title_line, wrap
from workbench.show.visible import one_line
from workbench.tui.kit.actions import Situation, action
from workbench.tui.kit.bars import KeyBar
from workbench.tui.kit.line_search import SearchedScreen
from workbench.tui.kit.line_view import LineView
from workbench.tui.kit.side_screen import ActionOverride
from workbench.tui.kit.strips import Bar

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench

CHECK_INTERVAL_S = 0.5
"""The time in seconds between two checks of an open log's file."""

MAX_LINE_CHARS = 4_000
"""The maximum number of displayed characters per line. Copying includes all characters."""


def _copy(situation: Situation) -> str | None:
    if situation.has_text:
        return None
    return "there is nothing to copy here"


class LogView(LineView):
    """The wrapped lines of a log. The view stays at the end unless the user moved up."""

    def __init__(self, widget_id: str) -> None:
        super().__init__(widget_id)
        self._lines: list[str] = []
        self._rows: list[Line] = []
        self._laid_out = -1

    @property
    def rows(self) -> list[Line]:
        if self._laid_out != self.text_width:
            self._laid_out = self.text_width
            room = max(self.text_width - 2, 10)
            self._rows = []
            for text in self._lines:
                # Lines by Workbench stand out less than lines by the server.
                role: Role = "text"
                if text.startswith(("== ", "[workbench] ")):
                    role = "muted"
                # A server may write anything, so control characters are made visible and harmless.
                shown = one_line(text[:MAX_LINE_CHARS])
                if len(text) > MAX_LINE_CHARS:
                    shown += ELLIPSIS
                self._rows += [(Span(f" {row}", role),) for row in wrap(shown, room)]
        return self._rows

    @property
    def has_cursor(self) -> bool:
        return bool(self.rows)

    def line_count(self) -> int:
        return len(self.rows)

    def line_at(self, index: int) -> Line:
        return self.rows[index]

    def show_lines(self, lines: list[str]) -> None:
        """Show the current lines of the log."""
        follows = self.cursor >= len(self.rows) - 1
        self._lines, self._laid_out = lines, -1
        last = len(self.rows) - 1
        if follows:
            self.move_cursor(last)
        else:
            self.move_cursor(min(self.cursor, last))
        self.repaint()


class LogScreen(SearchedScreen[None]):
    """The whole log of one server."""

    NAME = "log"
    TITLE_IN_TEXT = "the log of a server"
    ACTION_OVERRIDES = (ActionOverride("back", keys="escape left"),)
    AUTO_FOCUS = "#log-lines"

    def __init__(self, app: Workbench, server: str, file: Path) -> None:
        super().__init__(app)
        self._server = server
        self._file = file
        self._seen: tuple[int, int] | None = None
        self._text = ""

    def compose(self) -> ComposeResult:
        yield Bar("log-title")
        yield LogView("log-lines")
        yield KeyBar("log-keys")

    def on_mount(self) -> None:
        left: Line = (Span(" Log ", "badge"), Span(f" {one_line(self._server)}"))
        right: Line = (Span(f"{one_line(str(self._file))} ", "muted"),)
        self.query_one("#log-title", Bar).set_line(lambda width: title_line(left, (right, ()), width))
        self.set_interval(CHECK_INTERVAL_S, self._check)
        # The first check waits until the width of the lines is known.
        self.call_after_refresh(self._check)

    async def _check(self) -> None:
        read = await asyncio.to_thread(self._read)
        if read is not None:
            self._text = read
            self.query_one(LogView).show_lines(
                read.splitlines() or ["The server was never started here: there is no log."]
            )
            self._show_bars()

    def _read(self) -> str | None:
        """Return the text of the log, `None` if it has not changed since the last call."""
        # An error is compared like a file state, so that the same error is returned only once.
        try:
            status = self._file.stat()
            now = status.st_size, status.st_mtime_ns
            if now == self._seen:
                return None
            self._seen = now
            return self._file.read_text(encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            now = -1, error.errno or 0
            if now == self._seen:
                return None
            self._seen = now
            if isinstance(error, FileNotFoundError):
                return ""
            return f"{self._file} cannot be read: {error.strerror}"

    @property
    def situation(self) -> Situation:
        return Situation(has_text=bool(self._text))

    @action("y", "Copy the log", label="copy", needs=_copy)
    def do_copy(self) -> None:
        self.workbench.copy(self._text, "the log", self.announce)
