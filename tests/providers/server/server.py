"""The server: raw asyncio on its own thread, so that it and a test's event loop do not slow each other."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from http import HTTPStatus
from itertools import count

from tests.providers.server.formats import models_document
from tests.providers.server.script import (
    CUT,
    HANG,
    MARK,
    RESET,
    Answer,
    Break,
    Pause,
    Piece,
    Request,
    Signal,
    Tell,
    document,
)

Script = Sequence[Answer] | Callable[[Request], Answer]


class Server:
    """Listens on a free port of 127.0.0.1 while its context is open.

    `requests` are the received requests, and `most_at_once` is the maximum number of concurrent ones. `models` answers
    requests for lists of models, and `slots` those for llama.cpp's properties; neither uses up the script. Requests
    after the end of the script are answered with 500."""

    def __init__(
        self,
        script: Script,
        *,
        models: Answer | None = None,
        slots: int | None = None,
        tls: ssl.SSLContext | None = None,
        port: int = 0,
    ) -> None:
        self.requests: list[Request] = []
        self.listings: list[Request] = []
        self.most_at_once = 0
        self.port = port
        self._script = script
        self._slots = slots
        self._models = models or document(models_document("test-model"))
        self._tls = tls
        self._under_way = 0
        self._connections = count(1)
        self._loop = asyncio.new_event_loop()
        self._ready = Signal()
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="model server", daemon=True)

    @property
    def url(self) -> str:
        """The scheme, host and port."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Server:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_error: object) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(10)
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._talk, "127.0.0.1", self.port, ssl=self._tls, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._closing.wait()
        server.close()
        talks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in talks:
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = 0
        try:
            while (request := await _read_request(reader, connection)) is not None:
                if not connection and not _asks_for_properties(request):
                    connection = next(self._connections)
                    request = replace(request, connection=connection)
                self._under_way += 1
                self.most_at_once = max(self.most_at_once, self._under_way)
                try:
                    again = await self._answer(_with_mark(self._answer_to(request), request), reader, writer)
                finally:
                    self._under_way -= 1
                if not again or request.headers.get("connection") == "close":
                    return
            writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def _answer_to(self, request: Request) -> Answer:
        if request.method == "GET" and request.path.partition("?")[0].endswith("/models"):
            self.listings.append(request)
            return self._models
        if _asks_for_properties(request):
            closing = {"connection": "close"}
            told = {"total_slots": self._slots} if self._slots else {}
            return document(told, 200 if self._slots else 404, closing)
        self.requests.append(request)
        if callable(self._script):
            return self._script(request)
        if len(self.requests) > len(self._script):
            return document({"error": {"message": "the script is over"}}, 500)
        return self._script[len(self.requests) - 1]

    async def _answer(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Send an answer, and return whether the connection can take another request."""
        chunked = answer.framing == "chunked"
        if not await self._send(answer.before, False, reader, writer):
            return False
        headers = dict(answer.headers)
        if chunked:
            headers["transfer-encoding"] = "chunked"
        elif answer.framing == "length":
            headers.setdefault("content-length", str(sum(len(p) for p in answer.pieces if isinstance(p, bytes))))
        else:
            headers["connection"] = "close"
        lines = [f"HTTP/1.1 {answer.status} {_phrase(answer.status)}", *(f"{k}: {v}" for k, v in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        if not await self._send(answer.pieces, chunked, reader, writer):
            return False
        if chunked:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return answer.framing != "close"

    async def _send(
        self, pieces: tuple[Piece, ...], chunked: bool, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Send pieces, and return whether all were sent."""
        for piece in pieces:
            match piece:
                case bytes():
                    writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
                    await writer.drain()
                case Pause():
                    await asyncio.sleep(piece.seconds)
                case Signal():
                    await asyncio.shield(asyncio.wrap_future(piece.future))
                case Tell():
                    piece.signal.set()
                case Break():
                    await _break_off(piece, reader, writer)
                    return False
        return True


def _asks_for_properties(request: Request) -> bool:
    return (request.method, request.path) == ("GET", "/props")


def _with_mark(answer: Answer, request: Request) -> Answer:
    """Return the answer with the marker of the request's question in place of `MARK`."""
    asked = re.search(rb"CRITERIA ([0-9a-f]{16})", request.body)
    if asked is None:
        return answer
    pieces = (piece.replace(MARK.encode(), asked[1]) if isinstance(piece, bytes) else piece for piece in answer.pieces)
    return replace(answer, pieces=tuple(pieces))


async def _break_off(how: Break, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if how is HANG:
        await reader.read()
    elif how is RESET:
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    else:
        assert how is CUT


async def _read_request(reader: asyncio.StreamReader, connection: int) -> Request | None:
    with suppress(asyncio.IncompleteReadError):
        beginning = await reader.readexactly(1)
        if not beginning.isalpha():
            return None  # TLS where none is spoken
        head = (beginning + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        method, path, _version = first.split(" ")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return Request(method, path, headers, body, connection)
    return None


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


@contextmanager
def serve(*answers: Answer, models: Answer | None = None, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Start a server that gives these answers in turn."""
    with Server(answers, models=models, tls=tls) as server:
        yield server
