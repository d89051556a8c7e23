"""Terminal drivers that survive invalid input and the loss of the terminal, with a parser for terminal input."""

from __future__ import annotations

import codecs
import logging
import os
import re
import select
import selectors
import sys
import termios
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from workbench.dataclasses import dataclass
from workbench.limits import (
    MAX_MOUSE_COORDINATE,
    MAX_PASTE_CHARS,
    MAX_SEQUENCE_CHARS,
    MAX_TERMINAL_COLUMNS,
    MAX_TERMINAL_ROWS,
)
from workbench.startup import late_pattern
from workbench.tui.terminal.environment import ESCAPE_S, escape_delay_s
from workbench.tui.terminal.key_queue import PasteCleaned, control_count, without_controls
from workbench.tui.terminal.output_stage import OutputStage, erasing

if TYPE_CHECKING:
    from textual.app import App


_FOCUS = frozenset({"\x1b[I", "\x1b[O"})
_MOUSE = late_pattern(r"\x1b\[<(\d{1,3});(\d{1,5});(\d{1,5})[Mm]")
_SIZE = late_pattern(r"\x1b\[48;(\d{1,5})(?::\d*)*;(\d{1,5})(?::\d*)*;(\d{1,5})(?::\d*)*;(\d{1,5})(?::\d*)*t")
_MODE = late_pattern(r"\x1b\[\?(?:2026|2048);[0-4]\$y")
_KEY = late_pattern(
    r"\x1b\[(?P<code>\d{0,7})(?::\d*)*(?:;(?P<modifiers>\d{0,3})(?::(?P<kind>\d?))?(?:;(?P<text>[\d:]*))?)?(?P<end>[u~ABCDEFHPQS])"
)
_RELEASED = "3"
_CONTROL_KEYS = (8, 9, 13, 27, 127)
"""The codes of Backspace, Tab, Enter and Escape in the kitty keyboard protocol."""


def valid_sequences(sequence: str) -> tuple[str, ...]:
    """Check a complete escape sequence from the terminal, and return what to pass to Textual's parser.

    A valid sequence is returned unchanged. A key that types several characters becomes one sequence per character. An
    invalid sequence becomes an empty tuple."""
    # A broken device may send impossible numbers, so sizes, positions and key codes are checked.
    if sequence in _FOCUS:
        return (sequence,)
    if mouse := _MOUSE.fullmatch(sequence):
        button, x, y = map(int, mouse.groups())
        if button <= 0xFF and min(x, y) >= 1 and max(x, y) <= MAX_MOUSE_COORDINATE:
            return (sequence,)
        return ()
    if size := _SIZE.fullmatch(sequence):
        rows, columns, height, width = map(int, size.groups())
        is_possible = 1 <= columns <= MAX_TERMINAL_COLUMNS and 1 <= rows <= MAX_TERMINAL_ROWS
        is_possible = is_possible and columns <= width and rows <= height and max(width, height) <= MAX_MOUSE_COORDINATE
        if is_possible:
            return (f"\x1b[48;{rows};{columns};{height};{width}t",)
        return ()
    if _MODE.fullmatch(sequence):
        return (sequence,)
    if key := _KEY.fullmatch(sequence):
        return _valid_key(key, sequence)
    # A sequence that ends in `R` would report the position of the cursor, for which the app never asks.
    if sequence in ANSI_SEQUENCES_KEYS and not sequence.endswith("R"):
        return (sequence,)
    return ()


def _valid_key(key: re.Match[str], sequence: str) -> tuple[str, ...]:
    code, end = int(key["code"] or 1), key["end"]
    codes = []
    for part in (key["text"] or "").split(":"):
        if part and len(part) <= len(str(0x10FFFF)):
            codes.append(int(part))
    text = [char for char in codes if _is_printed(char)]
    if end == "u" and code != 1:
        is_possible = code in _CONTROL_KEYS or f"{code}u" in FUNCTIONAL_KEYS or _is_printed(code)
        # Input methods send composed text with the code 0.
        is_possible = is_possible or (code == 0 and bool(text))
    else:
        is_possible = f"{code}{end}" in FUNCTIONAL_KEYS
    if not is_possible or int(key["modifiers"] or 0) > 0x100 or key["kind"] == _RELEASED:
        if sequence in ANSI_SEQUENCES_KEYS:
            return (sequence,)
        return ()
    start = f"\x1b[{key['code'] or ''}"
    if key["modifiers"] is not None:
        start += f";{key['modifiers'] or ''}"
    return tuple(f"{start};{char}{end}" for char in text) or (start + end,)


def _is_printed(code: int) -> bool:
    return 0x20 <= code <= 0x10FFFF and not 0x7F <= code < 0xA0 and not 0xD800 <= code < 0xE000


START, END = "\x1b[200~", "\x1b[201~"
"""The marks around a paste (bracketed paste mode)."""

LATE_ESCAPE_S = 0.1
"""The time in seconds in which a lone Escape can still become a sequence after it was passed on."""

SEQUENCE_TIMEOUT_S = 1.0
"""The time in seconds to wait for the rest of a sequence."""

PASTE_TIMEOUT_S = 3.0
"""The time in seconds to wait for the rest of a paste."""

MIN_PASTE_CHARS = 2_000
"""The minimum number of characters in one read that counts as a paste in a terminal without paste marks."""

_ESC = "\x1b"
_NO_INPUT = late_pattern("[\x00\x80-\x9f\N{REPLACEMENT CHARACTER}\ud800-\udfff]")
"""Characters that no key sends. A broken device may send them endlessly."""

_OPENS_STRING = frozenset("PX]^_")
_STRING_ENDS = late_pattern("[\x07\x18\x1a]|\x1b\\\\|(?=\x1b[^\\\\])")
_CONTROLS_END = late_pattern("[@-~]|(?=[^ -~])")
_COMPLETE_SEQUENCE = late_pattern(
    "\x1b(?:"
    r"\[\[[^\x1b]"  # function keys of the Linux console
    r"|\[M[^\x1b]{3}"  # mouse reports in X10 format
    r"|\[(?![\[M])[ -?]*[@-~]"
    r"|O[0-9;]*[@-~])"
)
_INCOMPLETE_SEQUENCE = late_pattern("\x1b" r"(?:\[(?:\[|M[^\x1b]{0,2}|[ -?]*)|O[0-9;]*)")
_NOT_PASTED = late_pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True)
class Typed:
    """Typed characters or one complete escape sequence."""

    text: str


@dataclass(frozen=True)
class PastedText:
    """Pasted text without control characters. `removed_controls` is the number of removed control characters."""

    text: str
    removed_controls: int = 0
    is_truncated: bool = False
    """Whether the paste was longer than allowed."""


InputPart = Typed | PastedText


class TerminalInput:
    """Splits terminal input into text, escape sequences and pastes, wherever a read happens to end.

    A lone Escape, or Alt with a bracket, could begin a sequence, so it is held back for `escape_s`. Times are seconds
    of one clock."""

    # The splitter passes on only complete, valid sequences (`valid_sequences`). It drops strings (such as answers to
    # queries) and overlong sequences up to their end. It drops incomplete sequences after a time. None of these is
    # mistaken for typed text.

    def __init__(self, escape_s: float = ESCAPE_S) -> None:
        self._escape_s = escape_s
        self._incomplete = ""
        """The incomplete end of the last read: part of a sequence or, inside a paste, part of its end mark."""
        self._skipped_until: re.Pattern[str] | None = None
        """The pattern that ends a dropped string or sequence."""
        self._string_start = ""
        """The two characters that begin a string, until more characters follow. They may be a key with Alt."""
        self._pasted: list[str] | None = None
        self._pasted_size = 0
        self._is_paste_abandoned = False
        """Whether a paste timed out. The rest of the paste and its end mark may still arrive."""
        self._is_burst = False
        self._read_s = 0.0
        self._passed_on = ""
        """The lone Escape or key with Alt that was passed on at the last pause."""

    def feed(self, text: str, now_s: float) -> list[InputPart]:
        """Parse text that was read at `now_s`. Return the complete parts, and hold back an incomplete sequence."""
        rest, self._incomplete = self._incomplete + text, ""
        # A slow connection may delay the rest of a sequence after its Escape was passed on. No key sends such a rest,
        # so it is recognised and completed.
        if now_s - self._read_s < LATE_ESCAPE_S and _COMPLETE_SEQUENCE.match(self._passed_on + rest):
            rest = self._passed_on + rest
        self._passed_on = ""
        self._read_s = now_s
        self._string_start = "" if rest else self._string_start
        return list(self._cut(rest))

    def wait_s(self, now_s: float) -> float | None:
        """Return the seconds to wait for the rest of an incomplete sequence, `None` if no sequence is incomplete."""
        patience_s = self._timeout_s
        if patience_s is None:
            return None
        return max(self._read_s + patience_s - now_s, 0.0)

    def flush(self, now_s: float) -> Sequence[InputPart]:
        """Return the input that a pause completes, such as a lone Escape."""
        self._is_burst = False
        if self.wait_s(now_s) != 0.0:
            return ()
        if self._pasted is not None:
            self._incomplete, self._is_paste_abandoned = "", True
            return [self._end_of_paste()]
        key = self._string_start or self._incomplete
        self._incomplete = self._string_start = ""
        self._skipped_until = None
        if key == _ESC or len(key) == 2:
            self._passed_on = key
            return [Typed(key)]
        return ()

    @property
    def _timeout_s(self) -> float | None:
        if self._pasted is not None:
            return PASTE_TIMEOUT_S
        if self._string_start or len(self._incomplete) in (1, 2):
            return self._escape_s
        if self._incomplete or self._skipped_until is not None:
            return SEQUENCE_TIMEOUT_S
        return None

    def _cut(self, rest: str) -> Iterator[InputPart]:
        if self._is_paste_abandoned and END in rest:
            # The paste timed out, and its end has arrived now. The text before the end mark belongs to the paste.
            late, _, rest = rest.partition(END)
            self._is_paste_abandoned = False
            yield PastedText(without_controls(late), control_count(late))
        while rest:
            if self._pasted is not None:
                rest, arrived = self._in_paste(rest, self._pasted)
            elif self._skipped_until is not None:
                rest, arrived = self._skip_until(rest, self._skipped_until), ()
            elif rest[0] == _ESC:
                self._is_burst = False
                rest, arrived = self._sequence(rest)
            else:
                typed, escape, behind = rest.partition(_ESC)
                rest, arrived = escape + behind, self._typed(typed)
            yield from arrived

    def _sequence(self, rest: str) -> tuple[str, Sequence[InputPart]]:
        if (whole := _COMPLETE_SEQUENCE.match(rest)) is not None:
            if whole[0] == START:
                self._pasted, self._pasted_size, self._is_paste_abandoned = [], 0, False
                return rest[whole.end() :], ()
            return rest[whole.end() :], [Typed(sequence) for sequence in valid_sequences(whole[0])]
        second = rest[1:2]
        if second == _ESC or _NO_INPUT.match(second):
            return rest[1:], [Typed(_ESC)]
        if second in _OPENS_STRING:
            self._skipped_until = _STRING_ENDS
            self._string_start = rest if len(rest) == 2 else ""
            return rest[2:], ()
        begun = _INCOMPLETE_SEQUENCE.match(rest)
        if begun is None and second:
            return rest[2:], [Typed(rest[:2])]  # a key with Alt
        if begun is not None and begun.end() < len(rest):
            return rest[begun.end() :], ()  # an incomplete sequence
        if len(rest) > MAX_SEQUENCE_CHARS:
            self._skipped_until = _CONTROLS_END
        else:
            self._incomplete = rest
        return "", ()

    def _skip_until(self, rest: str, until: re.Pattern[str]) -> str:
        end = until.search(rest)
        if end is None:
            self._incomplete = _ESC if rest.endswith(_ESC) else ""
            return ""
        self._skipped_until = None
        return rest[end.end() :]

    def _typed(self, text: str) -> Sequence[InputPart]:
        text = _NO_INPUT.sub("", text)
        is_text = _NOT_PASTED.search(text) is None
        # A burst of typed text is treated as a paste, but a held key, which repeats one or two characters, is not.
        self._is_burst = is_text and (self._is_burst or (len(text) >= MIN_PASTE_CHARS and len(set(text)) > 2))
        if not text:
            return ()
        if self._is_burst:
            return [PastedText(without_controls(text))]
        return [Typed(text)]

    def _in_paste(self, rest: str, pasted: list[str]) -> tuple[str, Sequence[InputPart]]:
        piece, end, behind = rest.partition(END)
        if not end:
            # If the text read so far ends in a part of the end mark, that part is held back until the next read.
            for size in range(len(END) - 1, 0, -1):
                if piece.endswith(END[:size]):
                    piece, self._incomplete = piece[:-size], END[:size]
                    break
        if self._pasted_size < MAX_PASTE_CHARS:
            pasted.append(piece[: MAX_PASTE_CHARS - self._pasted_size])
        self._pasted_size += len(piece)
        if end:
            return behind, [self._end_of_paste()]
        return behind, ()

    def _end_of_paste(self) -> PastedText:
        pasted, self._pasted = "".join(self._pasted or ()), None
        return PastedText(without_controls(pasted), control_count(pasted), self._pasted_size > MAX_PASTE_CHARS)


_log = logging.getLogger(__name__)

READ_BYTES = 4096
SELECT_TIMEOUT_S = 0.1

# The app may have been interrupted anywhere, so everything that Textual can switch on is switched off.
RESTORE_SEQUENCE = (
    b"\x18\x1b[?2026l\x1b[0m"  # ends any unfinished sequence or frame
    b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"
    b"\x1b[?2004l\x1b[?2048l\x1b[?7h\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"
)
RESTORING_S = 0.5
"""The time in seconds to wait until the terminal accepts `RESTORE_SEQUENCE`."""

MAX_QUEUED_MESSAGES = 200
"""The number of waiting messages above which reading pauses. More input then waits in the terminal."""


class StagedDriver(Driver):
    """The base of the app's drivers. It writes frames through an output stage. No input makes it raise an error."""

    stage: OutputStage
    _is_drawing = False
    """Whether a frame is being written."""
    _parser: XTermParser

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Mark everything written within the context as a frame, as opposed to other output to the terminal."""
        self._is_drawing = True
        try:
            yield
        finally:
            self._is_drawing = False

    def restore_terminal(self) -> None:
        """Restore the terminal and write nothing more. Callable in any thread."""

    def _pass_on(self, arrived: Iterable[InputPart]) -> None:
        for one in arrived:
            if isinstance(one, PastedText):
                self.process_message(events.Paste(one.text))
                if one.removed_controls or one.is_truncated:
                    self.process_message(PasteCleaned(one.removed_controls, is_truncated=one.is_truncated))
                continue
            for message in self._parsed(one.text):
                self.process_message(message)

    def _parsed(self, typed: str) -> list[Message]:
        """Convert typed characters or one sequence to Textual's messages. Return none if Textual's parser fails."""
        parser = self._parser
        try:
            messages = list(parser.feed(typed))
            # The parser keeps a lone Escape until its timeout. `TerminalInput` has already waited, so the timeout is
            # set to 0.
            if parser._timeout_time is not None:
                parser._timeout_time = 0.0
                messages += parser.tick()
        except (ParseError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            _log.exception("input that could not be read: %r", typed)
            self._parser = XTermParser(self._debug)
            return []
        return messages


class TolerantDriver(StagedDriver, LinuxDriver):
    """The driver of a terminal. Reads any bytes. Discards output when the terminal is gone."""

    # Textual's own driver ends the app at the first byte that is not UTF-8, such as a mouse report in X10 format after
    # attaching tmux. It also blocks if the terminal is lost.

    def __init__(
        self, app: App[object], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._is_away = True
        """Whether another program has the terminal: before the start, while suspended, after the end."""
        assert sys.__stderr__ is not None
        self._parser = XTermParser(self._debug)
        self._size = size or self._get_terminal_size()
        self._terminal = _Terminal(sys.__stderr__)
        self.stage = OutputStage(erasing(os.environ.get("TERM", ""), self._terminal.fileno()))
        self._file = self._terminal  # type: ignore[assignment]  # `_Terminal` has the methods that the writing thread calls

    def start_application_mode(self) -> None:
        super().start_application_mode()  # type: ignore[no-untyped-call]
        # Textual starts its key thread later if the program was resumed in the background.
        self._is_away = self._key_thread is None or not self._key_thread.is_alive()

    def write(self, data: str) -> None:
        if not self._is_drawing:
            self.stage.register_output(data)
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

    def restore_terminal(self) -> None:
        if self._is_away:
            return
        self._terminal.discard_output()
        self.exit_event.set()
        with suppress(termios.error, OSError):
            if self.attrs_before is not None:
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)
            if select.select([], [self._terminal.fileno()], [], RESTORING_S)[1]:
                os.write(self._terminal.fileno(), RESTORE_SEQUENCE)

    def _sigtstp_application(self, *_: object) -> None:
        # The leader of a session was not started from a shell that could resume it, so Ctrl+Z has no effect.
        if self._auto_restart or os.getsid(0) != os.getpid():
            super()._sigtstp_application()

    def _sigcont_application(self, *_: object) -> None:
        # A program cannot handle SIGSTOP, so Textual was not suspended before this SIGCONT. Without the suspension
        # here, Textual would start a second thread that reads the keyboard.
        if self._auto_restart:
            self.suspend_application_mode()
            self._must_signal_resume = True
            self.resume_application_mode()

    def run_input_thread(self) -> None:
        """Read the terminal until the app stops or the terminal is gone."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._input = TerminalInput(escape_delay_s(os.environ))
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if self._app.message_queue_size > MAX_QUEUED_MESSAGES:
                    self.exit_event.wait(SELECT_TIMEOUT_S)
                    continue
                wait_s = self._input.wait_s(time.monotonic())
                timeout_s = SELECT_TIMEOUT_S if wait_s is None else min(wait_s, SELECT_TIMEOUT_S)
                if selector.select(timeout_s):
                    read = _read(self.fileno)
                    if not read:
                        self._app.call_later(self._app.run_action, "terminal_gone")
                        return
                    self._pass_on(self._input.feed(decoder.decode(read), time.monotonic()))
                else:
                    self._pass_on(self._input.flush(time.monotonic()))


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, READ_BYTES)
    except OSError:
        return b""


class _Terminal:
    """A terminal as a file to write to. If the terminal is gone, output is discarded."""

    def __init__(self, file: IO[str]) -> None:
        self._terminal = file
        self._is_gone = False

    def write(self, text: str) -> int:
        if not self._is_gone:
            try:
                self._terminal.write(text)
            except OSError as error:
                self._lost(error)
        return len(text)

    def flush(self) -> None:
        if not self._is_gone:
            try:
                self._terminal.flush()
            except OSError as error:
                self._lost(error)

    def fileno(self) -> int:
        return self._terminal.fileno()

    def isatty(self) -> bool:
        return self._terminal.isatty()

    def discard_output(self) -> None:
        self._is_gone = True

    def _lost(self, error: OSError) -> None:
        self._is_gone = True
        _log.warning("the terminal is gone: %s", error)
