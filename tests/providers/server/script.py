"""The scripted answers of the server, and the requests that it records."""

from __future__ import annotations

import concurrent.futures
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal


class Break(Enum):
    """How an answer stops early."""

    CUT = "the connection is closed in the middle"
    RESET = "the connection is reset"
    HANG = "nothing more comes until the client leaves or the server is closed"


CUT, RESET, HANG = Break.CUT, Break.RESET, Break.HANG


@dataclass(frozen=True)
class Pause:
    """A pause of some seconds."""

    seconds: float


class Signal:
    """An event that is set by `set`, from any thread. As a piece of an answer, the server waits for it."""

    def __init__(self) -> None:
        self.future: concurrent.futures.Future[None] = concurrent.futures.Future()

    def set(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    def wait(self, timeout_s: float = 10.0) -> None:
        self.future.result(timeout_s)


@dataclass(frozen=True)
class Tell:
    """Sets a signal when the server reaches this piece."""

    signal: Signal


Piece = bytes | Pause | Signal | Tell | Break

EVENT_STREAM: Mapping[str, str] = {"content-type": "text/event-stream"}


@dataclass(frozen=True)
class Answer:
    """The answer to one request. `before` precedes the headers, and each piece of bytes is sent separately.

    `framing` is how the end of the body is marked: by chunks, by its length, or by closing the connection."""

    pieces: tuple[Piece, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: EVENT_STREAM)
    framing: Literal["chunked", "length", "close"] = "chunked"
    before: tuple[Piece, ...] = ()

    def in_pieces_of(self, size: int) -> Answer:
        """Return the same bytes in pieces of this size."""
        body = b"".join(piece for piece in self.pieces if isinstance(piece, bytes))
        pieces = tuple(body[start : start + size] for start in range(0, len(body), size))
        return Answer(pieces, self.status, self.headers, self.framing, self.before)


MARK = "MARK-OF-QUESTION"
"""Stands for the marker in the question to a judge. The server fills it in."""


def document(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer with one JSON document."""
    body = json.dumps(content).encode()
    return Answer((body,), status, {"content-type": "application/json", **(headers or {})}, "length")


def page(html: str, status: int = 200) -> Answer:
    """Return an answer with a web page."""
    return Answer((html.encode(),), status, {"content-type": "text/html; charset=utf-8"}, "length")


@dataclass(frozen=True)
class Request:
    """A received request. Names of headers are in lower case, and `connection` counts the server's connections from
    1."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)
