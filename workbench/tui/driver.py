"""Textual's terminal driver, made to live through what real terminals do: send bytes that are no text, and vanish."""

from __future__ import annotations

import codecs
import logging
import os
import re
import selectors
import sys
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING

from textual import events
from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from workbench.tui.pasting import PasteCleaned, Pastes

if TYPE_CHECKING:
    from textual.app import App

_log = logging.getLogger(__name__)

READ_BYTES = 4096
SELECT_TIMEOUT_S = 0.1
UNREADABLE = "\N{REPLACEMENT CHARACTER}"

_NO_INPUT = re.compile("[\x00\x80-\x9f]")
"""Control characters that are no key of any action here; a device may send them without end."""

_UNREADABLE_INPUT = (ParseError, ValueError, TypeError, LookupError, AttributeError)
"""What Textual's parser raises for sequences that no terminal should send."""


class TolerantDriver(LinuxDriver):
    """Reads whatever bytes come in, and writes as long as somebody is there.

    On Textual's own driver one byte that is not UTF-8 (an X10 mouse report after tmux was attached again, say) ends
    the app, and a terminal that is gone blocks it.
    """

    def __init__(
        self, app: App[object], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._is_away = True
        """Whether the terminal is somebody else's."""
        assert sys.__stderr__ is not None
        self._file = _Terminal(sys.__stderr__)  # type: ignore[assignment]  # all that the writing thread asks for

    def start_application_mode(self) -> None:
        super().start_application_mode()  # type: ignore[no-untyped-call]
        # Textual gives up, to try again later, where the program was brought back into the background only.
        self._is_away = self._key_thread is None or not self._key_thread.is_alive()

    def suspend_application_mode(self) -> None:
        if not self._is_away:
            self._is_away = True
            super().suspend_application_mode()

    def _sigcont_application(self, *_: object) -> None:
        """Come back, from wherever: after SIGSTOP, which nobody can prepare for, or without having been stopped at all,
        what Textual takes for a return would start a second reader of the keyboard."""
        if self._auto_restart:
            self.suspend_application_mode()
            self._must_signal_resume = True
            self.resume_application_mode()

    def run_input_thread(self) -> None:
        """Read the terminal until the app says stop, or the terminal is gone."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        parser, pastes = XTermParser(self._debug), Pastes()
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                text, more = "", False
                if selector.select(SELECT_TIMEOUT_S):
                    read = _read(self.fileno)
                    if not read:
                        self._app.call_later(self._app.run_action, "terminal_gone")
                        return
                    text, more = decoder.decode(read), len(read) == READ_BYTES
                try:
                    for piece, pasted in pastes.split(text, more=more):
                        if pasted:
                            self._pass_on([events.Paste(piece)])
                            self._pass_on([PasteCleaned(pastes.left_out)] if pastes.left_out else ())
                        elif keys := _NO_INPUT.sub("", piece):
                            self._pass_on(parser.feed(keys))
                    self._pass_on(parser.tick())
                except _UNREADABLE_INPUT:
                    _log.exception("input that could not be read: %r", text)
                    parser = XTermParser(self._debug)

    def _pass_on(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if not (isinstance(message, events.Key) and message.character == UNREADABLE):
                self.process_message(message)


def _read(descriptor: int) -> bytes:
    """What is there to read; nothing when the terminal is gone."""
    try:
        return os.read(descriptor, READ_BYTES)
    except OSError:
        return b""


class _Terminal:
    """A terminal to write to; what is written to one that is gone is lost, without a word."""

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

    def _lost(self, error: OSError) -> None:
        self._gone = True
        _log.warning("the terminal is gone: %s", error)
