"""Reads the body of an answer: a stream of events, one JSON document, or neither."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Literal

from workbench.providers.http.errors import EndpointErrors
from workbench.providers.model import MOST_STREAM_BYTES, AnswerFinished, TooMuchError
from workbench.providers.wire.sse import SseParser
from workbench.providers.wire.wire import AnswerReader, SseEvent
from workbench.trajectory.events import ModelEvent
from workbench.trajectory.messages import JsonValue

if TYPE_CHECKING:
    import httpx2

DRAIN_TIMEOUT_S = 0.2
"""How long a body may take to end after its last event before the connection is dropped, in seconds."""
LARGEST_DOCUMENT_BYTES = 32 * 1024 * 1024
LARGEST_PAGE_BYTES = 64 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SSE_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_LONGEST_FIELD = max(map(len, _SSE_FIELDS))

Kind = Literal["events", "document", "page", "garbage"]


async def read_answer(
    response: httpx2.Response, reader: AnswerReader, errors: EndpointErrors
) -> AsyncGenerator[ModelEvent | AnswerFinished]:
    """Yields the events of an answer piece by piece. It ends with the answer's last event, even when the connection
    stays open.

    Raises ModelError, and whatever the HTTP library raises.
    """
    body_chunks = response.aiter_bytes() if "content-encoding" in response.headers else response.aiter_raw()
    async with aclosing(body_chunks) as chunks:
        kind, body = await _beginning(chunks, response.headers.get("content-type", ""))
        if kind == "events":
            async with aclosing(_events(body, chunks)) as events:
                async for event in events:
                    for said in reader.feed(event):
                        yield said
                    if reader.ended:
                        await _drain(chunks)
                        break
        elif kind == "document":
            body = await _rest(body, chunks, LARGEST_DOCUMENT_BYTES)
            if len(body) > LARGEST_DOCUMENT_BYTES:
                raise _too_much(LARGEST_DOCUMENT_BYTES)
            for said in reader.feed_whole(_document(body, errors)):
                yield said
        elif kind == "page":
            raise errors.of_page(await _rest(body, chunks, LARGEST_PAGE_BYTES))
        elif body.strip():
            raise errors.of_garbage(body)
        else:
            raise errors.of_nothing()
    for last in reader.finish():
        yield last


async def _beginning(chunks: AsyncIterator[bytes], content_type: str) -> tuple[Kind | None, bytes]:
    """Returns as much of a body as its kind requires, and the kind."""
    head = b""
    async for chunk in chunks:
        head = (head + chunk).lstrip()  # some servers send blanks for as long as a model thinks
        kind = kind_of(head, content_type)
        if kind is not None:
            return kind, head
    return None, head


async def _events(head: bytes, chunks: AsyncGenerator[bytes]) -> AsyncGenerator[SseEvent]:
    parser = SseParser()
    chunk: bytes | None = head
    received = 0
    while chunk is not None:
        received += len(chunk)
        if received > MOST_STREAM_BYTES:
            raise _too_much(MOST_STREAM_BYTES)
        for event in parser.feed(chunk):
            yield event
        chunk = await anext(chunks, None)
    for event in parser.close():
        yield event


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the rest of a body after its last event, so that its connection can be reused."""
    import httpx2

    with suppress(TimeoutError, httpx2.HTTPError):
        async with asyncio.timeout(DRAIN_TIMEOUT_S):
            async for _ in chunks:
                pass


async def _rest(head: bytes, chunks: AsyncIterator[bytes], largest: int) -> bytes:
    body = bytearray(head)
    async for chunk in chunks:
        body += chunk
        if len(body) > largest:
            break
    return bytes(body)


def _too_much(most: int) -> TooMuchError:
    return TooMuchError(f"the model sent too much: more than {most // 1024**2} MiB for one answer")


def kind_of(head: bytes, content_type: str) -> Kind | None:
    """Returns the kind of a body by its beginning, since content types are unreliable; `None` when more bytes are
    needed."""
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
    return None if len(head) < _LONGEST_FIELD else "garbage"


def _document(body: bytes, errors: EndpointErrors) -> JsonValue:
    try:
        document: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        raise errors.of_garbage(body) from None
    return document
