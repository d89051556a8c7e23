"""Textual's terminal driver, hardened against invalid bytes and terminals that disappear."""

from __future__ import annotations

import codecs
import logging
import os
import select
import selectors
import sys
import termios
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

from textual import events
from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from workbench.limits import MAX_TERMINAL_COLUMNS, MAX_TERMINAL_ROWS
from workbench.tui.terminal.input import Arrived, Pasted, TerminalInput
from workbench.tui.terminal.key_queue import PasteCleaned
from workbench.tui.terminal.output_stage import OutputStage, erasing

if TYPE_CHECKING:
    from textual.app import App


_log = logging.getLogger(__name__)

READ_BYTES = 4096
SELECT_TIMEOUT_S = 0.1

GIVING_BACK = (
    b"\x18\x1b[?2026l\x1b[0m"  # ends any unfinished sequence or frame
    b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"
    b"\x1b[?2004l\x1b[?2048l\x1b[?7h\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"
)
GIVING_BACK_S = 0.5
"""How long to wait for the terminal to accept the sequence."""

MAX_WAITING = 200
"""Reading pauses while more messages wait for the app."""


class StagedDriver(Driver):
    """What our drivers share: frames pass an output stage, and input is read whatever it holds."""

    stage: OutputStage
    _draws = False
    """Whether a frame is being written."""
    _parser: XTermParser

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Write a frame of the output stage meanwhile."""
        self._draws = True
        try:
            yield
        finally:
            self._draws = False

    def give_back(self) -> None:
        """Restore the terminal from any thread and write nothing more."""

    def _pass_on(self, arrived: Iterable[Arrived]) -> None:
        for one in arrived:
            if isinstance(one, Pasted):
                self.process_message(events.Paste(one.text))
                if one.left_out or one.was_cut:
                    self.process_message(PasteCleaned(one.left_out, was_cut=one.was_cut))
                continue
            for message in self._parsed(one.text):
                self.process_message(message)

    def _parsed(self, typed: str) -> list[Message]:
        """Parse input with Textual's parser, without waiting for more."""
        parser = self._parser
        try:
            messages = list(parser.feed(typed))
            if parser._timeout_time is not None:
                parser._timeout_time = 0.0
                messages += parser.tick()
        except (ParseError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            _log.exception("input that could not be read: %r", typed)
            self._parser = XTermParser(self._debug)
            return []
        return messages


class TolerantDriver(StagedDriver, LinuxDriver):
    """Reads any bytes, and writes as long as the terminal exists.

    In Textual's own driver, one byte that is not UTF-8 (such as an X10 mouse report after attaching tmux) ends the app,
    and a terminal that is gone blocks it.
    """

    def __init__(
        self, app: App[object], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._is_away = True
        """Whether a different program has the terminal."""
        assert sys.__stderr__ is not None
        self._parser = XTermParser(self._debug)
        self._size = size or self._get_terminal_size()
        self._terminal = _Terminal(sys.__stderr__)
        self.stage = OutputStage(erasing(os.environ.get("TERM", ""), self._terminal.fileno()))
        self._file = self._terminal  # type: ignore[assignment]  # all that the writing thread asks for

    def start_application_mode(self) -> None:
        super().start_application_mode()  # type: ignore[no-untyped-call]
        # Textual postpones its start if the program was resumed in the background.
        self._is_away = self._key_thread is None or not self._key_thread.is_alive()

    def write(self, data: str) -> None:
        if not self._draws:
            self.stage.passes(data)
        super().write(data)

    def stop_application_mode(self) -> None:
        super().stop_application_mode()
        self._is_away = True

    def _get_terminal_size(self) -> tuple[int, int]:
        columns, rows = super()._get_terminal_size()
        return min(columns, MAX_TERMINAL_COLUMNS), min(rows, MAX_TERMINAL_ROWS)

    def suspend_application_mode(self) -> None:
        if not self._is_away:
            self._is_away = True
            super().suspend_application_mode()

    def give_back(self) -> None:
        if self._is_away:
            return
        self._terminal.shut()
        self.exit_event.set()
        with suppress(termios.error, OSError):
            if self.attrs_before is not None:
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)
            if select.select([], [self._terminal.fileno()], [], GIVING_BACK_S)[1]:
                os.write(self._terminal.fileno(), GIVING_BACK)

    def _sigtstp_application(self, *_: object) -> None:
        """Stop, but not on Ctrl+Z in the user's editor if there is no shell to resume from."""
        if self._auto_restart or os.getsid(0) != os.getpid():
            super()._sigtstp_application()

    def _sigcont_application(self, *_: object) -> None:
        """Resume after SIGSTOP, which cannot be handled in advance. Without a stop before it, Textual would start a
        second reader of the keyboard."""
        if self._auto_restart:
            self.suspend_application_mode()
            self._must_signal_resume = True
            self.resume_application_mode()

    def run_input_thread(self) -> None:
        """Read the terminal until the app stops or the terminal is gone."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._input = TerminalInput()
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if self._app.message_queue_size > MAX_WAITING:
                    self.exit_event.wait(SELECT_TIMEOUT_S)  # too much input waits in the terminal
                    continue
                wait_s = self._input.wait_s(time.monotonic())
                if selector.select(SELECT_TIMEOUT_S if wait_s is None else min(wait_s, SELECT_TIMEOUT_S)):
                    read = _read(self.fileno)
                    if not read:
                        self._app.call_later(self._app.run_action, "terminal_gone")
                        return
                    self._pass_on(self._input.take(decoder.decode(read), time.monotonic()))
                else:
                    self._pass_on(self._input.pause(time.monotonic()))


def _read(descriptor: int) -> bytes:
    """Read what is available, empty if the terminal is gone."""
    try:
        return os.read(descriptor, READ_BYTES)
    except OSError:
        return b""


class _Terminal:
    """A terminal to write to. Output to a terminal that is gone is discarded."""

    def __init__(self, file: IO[str]) -> None:
        self._terminal = file
        self._gone = False

    def write(self, text: str) -> int:
        if not self._gone:
            try:
                self._terminal.write(text)
            except OSError as error:
                self._lost(error)
        return len(text)

    def flush(self) -> None:
        if not self._gone:
            try:
                self._terminal.flush()
            except OSError as error:
                self._lost(error)

    def fileno(self) -> int:
        return self._terminal.fileno()

    def isatty(self) -> bool:
        return self._terminal.isatty()

    def shut(self) -> None:
        """Write nothing more."""
        self._gone = True

    def _lost(self, error: OSError) -> None:
        self._gone = True
        _log.warning("the terminal is gone: %s", error)
