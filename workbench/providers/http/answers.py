"""Reads the body of an answer: a stream of server-sent events or one JSON document."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal

from pydantic_core import from_json

from workbench.limits import MAX_BODY_BYTES, MAX_ERROR_BYTES, MAX_MESSAGE_BYTES, oversized_answer_message
from workbench.providers.clouds.event_stream import CONTENT_TYPE as EVENT_STREAM
from workbench.providers.clouds.event_stream import EventStreamParser
from workbench.providers.http.bodies import Content, content_of
from workbench.providers.http.errors import EndpointErrors
from workbench.providers.model import AnswerFinished, AnswerTooLargeError
from workbench.providers.wire.errors import NotJsonError
from workbench.providers.wire.wire import AnswerEvents, AnswerReader, SseEvent
from workbench.trajectory.events import CallArgumentsDelta, JsonValue, ModelEvent, ReasoningDelta, TextDelta

if TYPE_CHECKING:
    import aiohttp


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseParser:
    """Parses one stream of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

    An event may have at most `MAX_MESSAGE_BYTES`. Bytes that are not UTF-8 become U+FFFD. Unlike in the standard, a
    line that begins with `{` counts as data."""

    def __init__(self) -> None:
        self._line_pieces: list[bytes] = []
        self._line_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._event = ""
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Return the events that these bytes complete.

        Raises AnswerTooLargeError for an event that is too large."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")  # the second half of a line end that arrived in two chunks
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
        place, last = 0, len(lines) - 1
        while place <= last:
            line = lines[place]
            place += 1
            # This is a fast path: nearly every event is one line of data and a blank line.
            is_whole = line.startswith(b"data: ") and place <= last and not lines[place]
            if is_whole and len(line) < MAX_MESSAGE_BYTES and not self._data and not self._event:
                self._at_start = False
                events.append(SseEvent("message", line[6:].decode("utf-8", "replace")))
                place += 1
            else:
                self._add_line(line, events)
        if rest:
            self._line_pieces.append(rest)
            self._line_bytes += len(rest)
            self._measure()
        return events

    def close(self) -> list[SseEvent]:
        """Return the last event if the stream ended without the blank line after it; otherwise an empty list."""
        # By the standard, an event without a blank line after it is dropped. But some servers omit the last blank line.
        events: list[SseEvent] = []
        self._add_line(b"".join(self._line_pieces), events)
        self._line_pieces = []
        self._add_line(b"", events)
        return events

    def _add_line(self, line: bytes, events: list[SseEvent]) -> None:
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
        # Some servers report an error as a line of JSON in the middle of a stream, without `data:`.
        elif line == b"data" or line.startswith(b"{"):
            self._add(line.removeprefix(b"data"))

    def _add(self, data: bytes) -> None:
        self._data.append(data)
        self._data_bytes += len(data) + 1
        self._measure()

    def _measure(self) -> None:
        if self._data_bytes + self._line_bytes > MAX_MESSAGE_BYTES:
            raise AnswerTooLargeError(oversized_answer_message(MAX_MESSAGE_BYTES))


DRAIN_TIMEOUT_S = 0.2
"""Time to read the rest of a body after its last event before the connection is dropped, in seconds."""
_SSE_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_MAX_FIELD_BYTES = max(map(len, _SSE_FIELDS))

BodyKind = Literal["events", "document", "page", "garbage"]


async def read_answer(
    response: aiohttp.ClientResponse, reader: AnswerReader, errors: EndpointErrors
) -> AsyncGenerator[AnswerEvents]:
    """Yield the events of an answer, up to its last event.

    Events that arrive together are yielded together. If the response was read to its end, its connection can be reused.
    Raises ModelError, and the errors of the HTTP library."""
    content = content_of(response)
    content_type = response.headers.get("content-type", "")
    kind: BodyKind | None
    parser: SseParser | EventStreamParser
    if content_type.startswith(EVENT_STREAM):
        kind, parser, body = "events", EventStreamParser(), await content.readany()
    else:
        kind, body = await _beginning(content, content_type)
        parser = SseParser()
    if kind == "events":
        received = 0
        while body and not reader.ended:
            received += len(body)
            if received > MAX_BODY_BYTES:
                raise AnswerTooLargeError(oversized_answer_message(MAX_BODY_BYTES))
            for joined in _read(reader, parser.feed(body)):
                yield joined
            if not reader.ended:
                body = await content.readany()
        if reader.ended:
            await _drain(response.content)
        else:
            with suppress(NotJsonError):  # the stream was cut within its last event
                for joined in _read(reader, parser.close()):
                    yield joined
    elif kind == "document":
        body = await _rest(body, content, MAX_MESSAGE_BYTES)
        if len(body) > MAX_MESSAGE_BYTES:
            raise AnswerTooLargeError(oversized_answer_message(MAX_MESSAGE_BYTES))
        for added in _added(reader, partial(reader.feed_document, _document(body, errors))):
            yield added
    elif kind == "page":
        raise errors.of_page(await _rest(body, content, MAX_ERROR_BYTES))
    elif body.strip():
        raise errors.of_unknown_body(body)
    else:
        raise errors.of_empty_body()
    for added in _added(reader, reader.finish):
        yield added


def _read(reader: AnswerReader, events: list[SseEvent]) -> Iterator[AnswerEvents]:
    """Convert server-sent events that arrived together to model events, and yield these as one list.

    If the reader raises an error, the events before the error are yielded first."""
    try:
        for event in events:
            reader.feed(event)
            if reader.ended:
                break
    finally:
        if reader.events:
            yield _joined(reader.events)
            reader.events.clear()


def _added(reader: AnswerReader, read: Callable[[], None]) -> Iterator[AnswerEvents]:
    """Call `read`, and yield the events that it adds to those of the reader.

    If `read` raises an error, the events before the error are yielded first."""
    try:
        read()
    finally:
        if reader.events:
            yield reader.events.copy()
            reader.events.clear()


def _joined(events: AnswerEvents) -> AnswerEvents:
    # Neighbouring pieces of a text are joined to one event, because each event takes time in the listeners. These
    # pieces are shown at the same moment anyway.
    joined = events[:1]
    for event in events[1:]:
        if not _join_pieces(joined, event):
            joined.append(event)
    return joined


def _join_pieces(joined: AnswerEvents, piece: ModelEvent | AnswerFinished) -> bool:
    """Append a piece of text to the last event if both belong to the same text, and return whether they do."""
    last = joined[-1]
    if isinstance(piece, CallArgumentsDelta):
        if not isinstance(last, CallArgumentsDelta) or last.call_id != piece.call_id:
            return False
        joined[-1] = CallArgumentsDelta(piece.call_id, last.fragment + piece.fragment)
    elif isinstance(piece, TextDelta) and isinstance(last, TextDelta):
        joined[-1] = TextDelta(piece.round, last.text + piece.text)
    elif isinstance(piece, ReasoningDelta) and isinstance(last, ReasoningDelta):
        joined[-1] = ReasoningDelta(piece.round, last.text + piece.text)
    else:
        return False
    return True


async def _beginning(content: Content, content_type: str) -> tuple[BodyKind | None, bytes]:
    """Return the kind of a body, and the bytes that were read to find it.

    The kind is `None` if the body ended before its kind was clear."""
    head, received = b"", 0
    while chunk := await content.readany():
        head = (head + chunk).lstrip()  # some servers send blanks while a model thinks
        kind = body_kind(head, content_type)
        if kind is not None:
            return kind, head
        received += len(chunk)
        if received > MAX_BODY_BYTES:
            raise AnswerTooLargeError(oversized_answer_message(MAX_BODY_BYTES))
    return None, head


async def _drain(content: aiohttp.StreamReader) -> None:
    """Read the rest of a body after its last event, so that the connection can be reused."""
    import aiohttp

    if content.at_eof():
        return
    with suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(DRAIN_TIMEOUT_S):
            while await content.readany():
                pass


async def _rest(head: bytes, content: Content, largest: int) -> bytes:
    body = bytearray(head)
    while len(body) <= largest and (chunk := await content.readany()):
        body += chunk
    return bytes(body)


def body_kind(head: bytes, content_type: str) -> BodyKind | None:
    """Return the kind of a body, found from its beginning; `None` if more bytes are needed.

    Many servers set a wrong content type, so it is used only if the beginning itself is not clear."""
    if _BYTE_ORDER_MARK.startswith(head):
        return None
    head = head.removeprefix(_BYTE_ORDER_MARK).lstrip()
    if not head:
        return None
    if head[:1] in (b"{", b"["):
        return "document"
    if head[:1] == b"<":
        return "page"
    if head.startswith(_SSE_FIELDS) or content_type.startswith("text/event-stream"):
        return "events"
    if len(head) < _MAX_FIELD_BYTES:
        return None
    return "garbage"


def _document(body: bytes, errors: EndpointErrors) -> JsonValue:
    try:
        document: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        if _is_truncated_json(body):
            raise errors.of_cut_document() from None
        raise errors.of_unknown_body(body) from None
    return document


def _is_truncated_json(body: bytes) -> bool:
    try:
        from_json(body, allow_partial=True)
    except ValueError:
        return False
    return True
