"""The driver of an app in a browser, connected to the web server of `workbench serve` by two pipes.

A packet has the same form in both directions, as in `textual-serve`. The first byte is the kind: `D` for terminal data,
`M` for JSON about the connection. Four bytes for the length (big endian) and the content follow."""

from __future__ import annotations

import asyncio
import codecs
import json
import logging
import os
import select
import sys
import time
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from textual import events
from textual._xterm_parser import XTermParser
from textual.geometry import Size

from workbench.dataclasses import dataclass
from workbench.limits import MAX_SERVED_PACKET_BYTES, MAX_TERMINAL_COLUMNS, MAX_TERMINAL_ROWS
from workbench.tui.terminal.driver import MAX_QUEUED_MESSAGES, READ_BYTES, SELECT_TIMEOUT_S, StagedDriver, TerminalInput
from workbench.tui.terminal.output_stage import EraseCapabilities, OutputStage

if TYPE_CHECKING:
    from textual.app import App
    from textual.theme import Theme

_log = logging.getLogger(__name__)

GREETING = b"__GANGLION__\n"
"""The first line expected by the server. Textual's own web driver sends the same line."""

_STARTS = "\x1b[?1049h\x1b[?1000h\x1b[?1003h\x1b[?1015h\x1b[?1006h\x1b[?25l\x1b[?2026$p\x1b[?2004h"
"""The start of the app: alternate screen, mouse reports, no cursor, whole frames, marks around pastes."""

_EMULATOR = EraseCapabilities(keeps_colour=True, within_row=True)
"""The capabilities of xterm.js, the terminal in the browser."""


@dataclass(frozen=True)
class Pipes:
    """Descriptors of the pipes from and to the server. Programs started by the app do not inherit them."""

    reading: int
    writing: int


_pipes: list[Pipes] = []


def reserve_pipes() -> None:
    """Reserve standard input and output for the driver. Standard input is then empty, and prints go to standard error.

    Otherwise, a print or a program started by the app would write between packets or read typed text."""
    _pipes.append(Pipes(os.dup(0), os.dup(1)))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.flush()
    os.dup2(2, 1)


class ServedDriver(StagedDriver):
    """The driver that draws in a browser."""

    def __init__(
        self, app: App[object], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size or _size_at_start())
        self._pipes = _pipes[-1]
        self._parser = XTermParser(debug)
        self._input = TerminalInput()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.stage = OutputStage(_EMULATOR)
        self._stopped = Event()
        self._lock = Lock()
        self._is_gone = False
        """Whether the server has closed its end of the pipe."""
        self._thread = Thread(target=self._read, name="textual-input", daemon=True)

    @property
    def is_web(self) -> bool:
        return True

    def write(self, data: str) -> None:
        if not self._is_drawing:
            self.stage.register_output(data)
        self._send(b"D", data.encode("utf-8", errors="replace"))

    def _send(self, kind: bytes, content: bytes) -> None:
        left = memoryview(b"%s%s%s" % (kind, len(content).to_bytes(4, "big"), content))
        with self._lock:
            self._write_all(left)

    def _write_all(self, data: memoryview) -> None:
        while data and not self._is_gone:
            try:
                data = data[os.write(self._pipes.writing, data) :]
            except OSError as error:
                self._is_gone = True
                _log.warning("the web server is gone: %s", error)

    def flush(self) -> None:
        pass

    def start_application_mode(self) -> None:
        self._write_all(memoryview(GREETING))
        self.write(_STARTS)
        self._colour_ground()
        self._app.theme_changed_signal.subscribe(self._app, lambda _: self._colour_ground())
        size = Size(*(self._size or (80, 24)))
        asyncio.get_running_loop().call_soon(self._app.post_message, events.Resize(size, size))
        self._thread.start()

    def _colour_ground(self) -> None:
        self.write(own_colours(self._app.current_theme))

    def disable_input(self) -> None:
        self._stopped.set()

    def stop_application_mode(self) -> None:
        self._stopped.set()
        self._send(b"M", b'{"type": "exit"}')

    def open_url(self, url: str, new_tab: bool = True) -> None:
        """Ignore the address, because a model's text could send the browser to any address."""

    def _read(self) -> None:
        waiting = bytearray()
        while not self._stopped.is_set():
            if self._app.message_queue_size > MAX_QUEUED_MESSAGES:
                self._stopped.wait(SELECT_TIMEOUT_S)
                continue
            wait_s = self._input.wait_s(time.monotonic())
            wait_s = SELECT_TIMEOUT_S if wait_s is None else min(wait_s, SELECT_TIMEOUT_S)
            if not select.select([self._pipes.reading], [], [], wait_s)[0]:
                self._pass_on(self._input.flush(time.monotonic()))
                continue
            read = os.read(self._pipes.reading, READ_BYTES)
            waiting += read
            if not read or not self._take_packets(waiting):
                self._app.call_later(self._app.run_action, "terminal_gone")
                return

    def _take_packets(self, waiting: bytearray) -> bool:
        while len(waiting) >= 5:
            kind, size = bytes(waiting[:1]), int.from_bytes(waiting[1:5], "big")
            if size > MAX_SERVED_PACKET_BYTES or kind not in (b"D", b"M"):
                _log.error("the web server sent an invalid packet")
                return False
            if len(waiting) < 5 + size:
                break
            content = bytes(waiting[5 : 5 + size])
            del waiting[: 5 + size]
            if kind == b"D":
                self._pass_on(self._input.feed(self._decoder.decode(content), time.monotonic()))
            else:
                self._handle(json.loads(content))
        return True

    def _handle(self, message: dict[str, object]) -> None:
        match message:
            case {"type": "resize", "width": int(width), "height": int(height)}:
                self._size = _bounded(width, height)
                size = Size(*self._size)
                self.process_message(events.Resize(size, size))
            case {"type": "focus"}:
                self.process_message(events.AppFocus())
            case {"type": "blur"}:
                self.process_message(events.AppBlur())
            case {"type": "quit"}:
                self._app.call_later(self._app.run_action, "terminal_gone")


def own_colours(theme: Theme) -> str:
    """Return the sequences that set the browser terminal's text and background colours for a theme."""
    # The background also fills the edges of the page that are too narrow for a cell. Themes in the terminal's own
    # colours need the text colour as well.
    text, ground = ("#ffffff", "#000000") if theme.dark else ("#000000", "#ffffff")
    if theme.background is not None and theme.background.startswith("#"):
        ground = theme.background
    return f"\x1b]10;{text}\x07\x1b]11;{ground}\x07"


def _size_at_start() -> tuple[int, int]:
    try:
        return _bounded(int(os.environ["COLUMNS"]), int(os.environ["LINES"]))
    except (KeyError, ValueError):
        return 80, 24


def _bounded(width: int, height: int) -> tuple[int, int]:
    return min(max(width, 1), MAX_TERMINAL_COLUMNS), min(max(height, 1), MAX_TERMINAL_ROWS)
