"""Amazon's binary event streams, `application/vnd.amazon.eventstream`, read as server-sent events.

A frame begins with its length, the length of its headers, and a checksum of both. Headers, a payload, and a checksum of
the whole frame follow: https://smithy.io/2.0/aws/amazon-eventstream.html
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
import zlib

from workbench.limits import MAX_MESSAGE_BYTES, oversized_answer_message
from workbench.providers.model import AnswerTooLargeError, ModelError
from workbench.providers.wire.wire import SseEvent, as_dict

CONTENT_TYPE = "application/vnd.amazon.eventstream"

_PRELUDE = struct.Struct(">III")
_CHECKSUM_BYTES = 4
_EMPTY_FRAME = _PRELUDE.size + _CHECKSUM_BYTES
"""The size of a frame without headers and payload."""
_FIXED_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""The sizes of headers' values by type: true, false, integers, a time, a UUID."""
_SIZED = (6, 7)
"""The types of bytes and texts, whose values begin with their size."""


class EventStreamParser:
    """Parses one stream of frames. The interface is that of `SseParser`."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Return the events of the frames that these bytes complete.

        Raises ModelError for a damaged frame, and AnswerTooLargeError for a frame that is too large."""
        rest = self._rest
        rest += chunk
        events: list[SseEvent] = []
        begin = 0
        while len(rest) - begin >= _PRELUDE.size:
            total, headers_bytes, checksum = _PRELUDE.unpack_from(rest, begin)
            if zlib.crc32(rest[begin : begin + 8]) != checksum or total < _EMPTY_FRAME + headers_bytes:
                raise _damaged("the beginning")
            if total > MAX_MESSAGE_BYTES:
                raise AnswerTooLargeError(oversized_answer_message(MAX_MESSAGE_BYTES))
            if len(rest) - begin < total:
                break
            frame = bytes(rest[begin : begin + total])
            begin += total
            if zlib.crc32(frame[:-_CHECKSUM_BYTES]) != int.from_bytes(frame[-_CHECKSUM_BYTES:]):
                raise _damaged("the content")
            payload_at = _PRELUDE.size + headers_bytes
            headers = _headers(frame[_PRELUDE.size : payload_at])
            events.append(_event(headers, frame[payload_at:-_CHECKSUM_BYTES]))
        del rest[:begin]
        return events

    def close(self) -> list[SseEvent]:
        """Return no events, because every event ends with its frame.

        Raises ModelError for a stream that ended within a frame."""
        if self._rest:
            raise ModelError("the stream of the answer ended in the middle of an event", retryable=True)
        return []


def _damaged(part: str) -> ModelError:
    return ModelError(f"the stream of the answer is damaged: {part} of an event has a wrong checksum", retryable=True)


def _headers(packed: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    at = 0
    try:
        while at < len(packed):
            name_end = at + 1 + packed[at]
            name = packed[at + 1 : name_end].decode("utf-8", "replace")
            kind = packed[name_end]
            at = name_end + 1
            if kind in _SIZED:
                size = int.from_bytes(packed[at : at + 2])
                headers[name] = packed[at + 2 : at + 2 + size].decode("utf-8", "replace")
                at += 2 + size
            else:
                at += _FIXED_SIZES[kind]
    except (IndexError, KeyError):
        raise ModelError("the stream of the answer has an event with unreadable headers", retryable=True) from None
    return headers


def _event(headers: dict[str, str], payload: bytes) -> SseEvent:
    """Convert a frame to the server-sent event that the model's own API would send."""
    text = payload.decode("utf-8", "replace")
    if headers.get(":message-type") == "event":
        if headers.get(":event-type") == "chunk":
            return SseEvent("message", _content(text))
        return SseEvent(headers.get(":event-type", "message"), text)
    # An exception in the middle of a stream has the same causes as an error status: throttling, or a failure of the
    # model.
    kind = headers.get(":exception-type") or headers.get(":error-code", "")
    message = headers.get(":error-message", "")
    try:
        document = as_dict(json.loads(text))
        message = document.get("message") or document.get("Message") or message
    except (ValueError, RecursionError):
        message = message or text
    return SseEvent("error", json.dumps({"type": "error", "error": {"type": kind, "message": message}}))


def _content(text: str) -> str:
    """Return the model's event inside a `chunk` frame, decoded from base64.

    A text in another form stays unchanged."""
    try:
        encoded = as_dict(json.loads(text)).get("bytes")
        if isinstance(encoded, str):
            return base64.b64decode(encoded, validate=True).decode("utf-8", "replace")
    except (ValueError, RecursionError, binascii.Error):
        pass
    return text
