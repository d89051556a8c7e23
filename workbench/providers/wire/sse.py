"""Parses server-sent events from bytes as they come."""

from __future__ import annotations

from workbench.limits import MAX_MESSAGE_BYTES, too_much_sent
from workbench.providers.model import TooMuchError
from workbench.providers.wire.wire import SseEvent

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseParser:
    """Parses one stream. No event may be larger than `MAX_MESSAGE_BYTES`; bytes that are not UTF-8 become U+FFFD.

    In addition to the standard's fields, a line that begins with `{` counts as data: some servers write an error like
    that into the middle of a stream.
    """

    def __init__(self) -> None:
        self._line_pieces: list[bytes] = []
        self._line_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._event = ""
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Returns the events that are complete with these bytes. Raises TooMuchError when one grows too large."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")  # the second half of a line end that was cut in two
            self._after_cr = False
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        events: list[SseEvent] = []
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._line_pieces:
            lines[0] = b"".join((*self._line_pieces, lines[0]))
            self._line_pieces, self._line_bytes = [], 0
        for line in lines:
            self._take(line, events)
        if rest:
            self._line_pieces.append(rest)
            self._line_bytes += len(rest)
            self._measure()
        return events

    def close(self) -> list[SseEvent]:
        """Returns the events that the end of the stream completes: some servers omit the blank line, or any line end,
        after the last event."""
        events: list[SseEvent] = []
        self._take(b"".join(self._line_pieces), events)
        self._line_pieces = []
        self._take(b"", events)
        return events

    def _take(self, line: bytes, events: list[SseEvent]) -> None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            if self._data:
                data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                events.append(SseEvent(self._event or "message", data.decode("utf-8", "replace")))
                self._data, self._data_bytes = [], 0
            self._event = ""
        elif line.startswith(b"data:"):
            self._add(line[6:] if line.startswith(b"data: ") else line[5:])
        elif line.startswith(b"event:"):
            self._event = line[6:].removeprefix(b" ").decode("utf-8", "replace")
        elif line == b"data" or line.startswith(b"{"):
            self._add(line.removeprefix(b"data"))

    def _add(self, data: bytes) -> None:
        self._data.append(data)
        self._data_bytes += len(data) + 1
        self._measure()

    def _measure(self) -> None:
        if self._data_bytes + self._line_bytes > MAX_MESSAGE_BYTES:
            raise TooMuchError(too_much_sent(MAX_MESSAGE_BYTES))
